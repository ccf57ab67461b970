//! Writing the fields of one document over another's.

use super::{
    Context,
    storage::{self, Depth},
};
use crate::{
    Code, Error, Result,
    raw::{Doc, Writer},
};

/// `doc` with the fields of `patch` written over it: top-level names taken literally, whole values; fields that exist
/// keep their places, new ones are appended in the patch's order. `None` where nothing changes.
///
/// # Errors
/// `ImmutableField` (66) where the patch would change `_id`; 17419 beyond 16 MiB.
pub fn merge(doc: Doc<'_>, patch: Doc<'_>) -> Result<Option<Vec<u8>>> {
    // Of duplicate names the first one counts, in both documents.
    let fields = distinct(patch);
    let mut written = vec![Written::No; fields.len()];
    let mut changed = false;
    let mut out = Writer::into_buffer(Vec::with_capacity(doc.bytes().len() + patch.bytes().len()));
    for element in doc.elements() {
        let place = fields.iter().position(|field| field.name == element.name);
        let field = place.and_then(|place| Some((fields.get(place)?, written.get_mut(place)?)));
        match field {
            Some((field, written @ Written::No)) => {
                *written = Written::Yes;
                changed |= field.value != element.value;
                if field.name == b"_id" && field.value != element.value {
                    let message = "the merge would modify the immutable field '_id'";
                    return Err(Error::new(Code::IMMUTABLE_FIELD, message).at("_id"));
                }
                out.append(element.name, field.value);
            }
            Some((_, Written::Yes)) | None => out.append(element.name, element.value),
        }
    }
    for (field, _) in fields.iter().zip(&written).filter(|(_, written)| **written == Written::No) {
        changed = true;
        out.append(field.name, field.value);
    }
    if !changed {
        return Ok(None);
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

fn distinct(doc: Doc<'_>) -> Vec<crate::raw::Element<'_>> {
    let mut fields = Vec::<crate::raw::Element<'_>>::new();
    for element in doc.elements() {
        if !fields.iter().any(|field| field.name == element.name) {
            fields.push(element);
        }
    }
    fields
}
