//! Merges the fields of one document into another.

use super::{
    Context,
    storage::{self, Depth},
};
use crate::{
    Code, Error, Result,
    raw::{Doc, Element, Writer, same},
};

/// `doc` with the fields of `patch`, whose names are taken literally and whose values replace whole fields. Existing
/// fields keep their order, new fields are appended in the patch's order. `None` if nothing changes.
///
/// # Errors
/// `ImmutableField` (66) if the patch would change `_id`; 17419 for a result of more than 16 MiB.
pub fn merge(doc: Doc<'_>, patch: Doc<'_>) -> Result<Option<Vec<u8>>> {
    let bytes = doc.bytes();
    let mut fields = distinct(patch);
    let mut out = Writer::into_buffer(Vec::with_capacity(bytes.len() + patch.bytes().len()));
    // Unchanged fields are copied in runs.
    let mut unchanged = 4..4;
    for element in doc.elements() {
        let field = fields.iter_mut().find(|(field, written)| {
            // Only the first of repeated fields is replaced.
            *written == Written::No && same(field.name, element.name)
        });
        if let Some((field, written)) = field {
            *written = Written::Yes;
            if field.value != element.value {
                if field.name == b"_id" {
                    let message = "the merge would modify the immutable field '_id'";
                    return Err(Error::new(Code::IMMUTABLE_FIELD, message).at("_id"));
                }
                out.append_raw(bytes.get(unchanged.clone()).unwrap_or_default());
                out.append(field.name, field.value);
                unchanged.start = unchanged.end + element.size();
            }
        }
        unchanged.end += element.size();
    }
    if unchanged.start == 4 && fields.iter().all(|(_, written)| *written == Written::Yes) {
        return Ok(None);
    }
    out.append_raw(bytes.get(unchanged).unwrap_or_default());
    for (field, _) in fields.iter().filter(|(_, written)| *written == Written::No) {
        out.append(field.name, field.value);
    }
    let bytes = out.finish();
    storage::check_whole(&bytes, Depth::Bounded, &Context::modify(0, None))?;
    Ok(Some(bytes))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    No,
}

/// The fields of a document, without repetitions.
fn distinct(doc: Doc<'_>) -> Vec<(Element<'_>, Written)> {
    let mut fields: Vec<(Element<'_>, Written)> = Vec::with_capacity(USUAL);
    for element in doc.elements() {
        if !fields.iter().any(|(field, _)| same(field.name, element.name)) {
            fields.push((element, Written::No));
        }
    }
    fields
}

/// Most patches have at most this number of fields.
const USUAL: usize = 8;
