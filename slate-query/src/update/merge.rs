//! Merges the fields of one document into another.

use std::collections::BTreeMap;

use super::{
    Context,
    storage::{self, Depth},
};
use crate::{
    Code, Error, Result,
    raw::{Doc, Writer},
};

/// Returns `doc` with the fields of `patch`, whose names are taken literally and whose values replace whole fields.
/// Existing fields keep their order, new fields are appended in the patch's order. `None` if nothing changes.
///
/// # Errors
/// `ImmutableField` (66) if the patch would change `_id`; 17419 for a result of more than 16 MiB.
pub fn merge(doc: Doc<'_>, patch: Doc<'_>) -> Result<Option<Vec<u8>>> {
    let bytes = doc.bytes();
    // The fields that were not written yet; the first of repeated fields.
    let mut fields = BTreeMap::new();
    for element in patch.elements() {
        fields.entry(element.name).or_insert(element.value);
    }
    let mut out = Writer::into_buffer(Vec::with_capacity(bytes.len() + patch.bytes().len()));
    // Unchanged fields are copied in runs.
    let mut unchanged = 4..4;
    for element in doc.elements() {
        if let Some(value) = fields.remove(element.name).filter(|value| *value != element.value) {
            if element.name == b"_id" {
                let message = "the merge would modify the immutable field '_id'";
                return Err(Error::new(Code::IMMUTABLE_FIELD, message).at("_id"));
            }
            out.append_raw(bytes.get(unchanged.clone()).unwrap_or_default());
            out.append(element.name, value);
            unchanged.start = unchanged.end + element.size();
        }
        unchanged.end += element.size();
    }
    if unchanged.start == 4 && fields.is_empty() {
        return Ok(None);
    }
    out.append_raw(bytes.get(unchanged).unwrap_or_default());
    for element in patch.elements() {
        if let Some(value) = fields.remove(element.name) {
            out.append(element.name, value);
        }
    }
    let bytes = out.finish();
    storage::check_whole(&bytes, Depth::Bounded, &Context::modify(0, None))?;
    Ok(Some(bytes))
}
