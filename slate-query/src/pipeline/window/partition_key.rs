use super::parse::Windows;
use crate::{
    Code, Error, Result,
    collation::{Collation, Compared},
    key,
    raw::{Doc, Kind, Value},
    value_set::AsValue as _,
};

/// The partition of the documents that follow each other.
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
    /// Moves to the partition of a document. Returns whether it is another than that of the last document.
    ///
    /// # Errors
    /// Those of the expression; `TypeMismatch` (14) if its value is an array.
    pub fn enter(&mut self, windows: &Windows, document: Doc<'_>) -> Result<bool> {
        let is_first = !std::mem::replace(&mut self.has_document, true);
        let Some(partition) = windows.partition() else { return Ok(is_first) };
        windows.bindings().within(document, |env| {
            partition.visit(env, |value| {
                let value = value.unwrap_or(Value::NULL);
                if !is_first && self.kind == Some(value.kind()) && self.value == value.bytes() {
                    return Ok(false);
                }
                encode(env.collation(), value, &mut self.scratch)?;
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

/// Replaces the content of `out` by the key of a partition.
pub(super) fn encode(collation: Option<&Collation>, value: Value<'_>, out: &mut Vec<u8>) -> Result<()> {
    if value.kind() == Kind::Array {
        let message = "an expression used to partition cannot evaluate to value of type array";
        return Err(Error::new(Code::TYPE_MISMATCH, message));
    }
    out.clear();
    key::encode(Compared::new(collation, value).as_value(), out);
    Ok(())
}
