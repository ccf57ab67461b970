use super::parse::{Windows, encode_partition};
use crate::{
    Result,
    raw::{Doc, Kind, Value},
};

/// Finds where one partition ends and the next begins in documents that come partition by partition.
#[derive(Debug, Default)]
pub struct CurrentPartition {
    /// The last value that documents are partitioned by: equal bytes of one type need no comparison of keys.
    kind: Option<Kind>,
    value: Vec<u8>,
    key: Vec<u8>,
    scratch: Vec<u8>,
    has_document: bool,
}

impl CurrentPartition {
    /// Moves to the partition of a document. Returns whether it differs from the partition of the last document.
    ///
    /// # Errors
    /// The errors of the expression; `TypeMismatch` (14) if its value is an array.
    pub fn enter(&mut self, windows: &Windows, document: Doc<'_>) -> Result<bool> {
        let is_first = !std::mem::replace(&mut self.has_document, true);
        let Some(partition) = windows.partition() else { return Ok(is_first) };
        windows.bindings().within(document, |env| {
            partition.visit(env, |value| {
                let value = value.unwrap_or(Value::NULL);
                if !is_first && self.kind == Some(value.kind()) && self.value == value.bytes() {
                    return Ok(false);
                }
                encode_partition(env.collation(), value, &mut self.scratch)?;
                self.kind = Some(value.kind());
                self.value.clear();
                self.value.extend_from_slice(value.bytes());
                let is_other = is_first || self.key != self.scratch;
                std::mem::swap(&mut self.key, &mut self.scratch);
                Ok(is_other)
            })?
        })
    }
}
