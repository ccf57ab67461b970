//! Replaces a document, except its `_id`.

use std::cmp::Ordering;

use super::{
    Context, EmptyTimestamps, Phase,
    storage::{self, Depth},
};
use crate::{
    Code, Error, Result, order,
    raw::{Doc, Element, Kind, Value, Writer, with_id},
};

/// A replacement document.
#[derive(Debug)]
pub(super) struct Replacement(Box<[u8]>);

impl Replacement {
    pub(super) fn new(document: Doc<'_>) -> Self {
        Self(document.bytes().into())
    }

    pub(super) fn apply(&self, old: Doc<'_>, context: &Context) -> Result<Option<Vec<u8>>> {
        replace(old, Doc::new(&self.0), NewDocument::Update, context)
    }
}

/// The origin of the new document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NewDocument {
    /// The update itself: at the top level, the context decides on empty timestamps, and names do not begin with `$`.
    Update,
    /// An update given as a pipeline: the document is stored as the stages made it.
    Pipeline,
}

/// Returns the new document with its `_id`, or else that of the old document, first; `None` if nothing changes.
///
/// # Errors
/// `ImmutableField` (66) if the new document has another `_id`; the errors of documents that cannot be stored.
pub(super) fn replace(old: Doc<'_>, new: Doc<'_>, source: NewDocument, context: &Context) -> Result<Option<Vec<u8>>> {
    // As in MongoDB, a replacement without `_id` always counts as a change.
    if new.bytes() == old.bytes() {
        return Ok(None);
    }
    if source == NewDocument::Update && context.phase == Phase::Modify {
        storage::check_replacement(new)?;
    }
    let (old_id, new_id) = (old.get("_id"), new.get("_id"));
    if let Some(new_id) = new_id {
        storage::check_id(new_id)?;
        if old_id.is_some_and(|old_id| order::compare(old_id, new_id) != Ordering::Equal) {
            let message = "after applying the update, the immutable field '_id' was found to have been altered";
            return Err(Error::new(Code::IMMUTABLE_FIELD, message).at("_id"));
        }
    }
    let keeps_timestamps = source == NewDocument::Pipeline
        || context.empty_timestamps == EmptyTimestamps::Kept
        || !new.may_hold(Kind::Timestamp);
    let now = context.timestamp.to_le_bytes();
    let stamp = (!keeps_timestamps).then(|| Value::new(Kind::Timestamp, &now));
    let bytes = match (old_id, new_id) {
        (Some(id), None) if stamp.is_none() => with_id(id, new),
        _ => with_id_first(new_id.or(old_id), new, stamp),
    };
    storage::check_whole(&bytes, Depth::Bounded, context)?;
    Ok(Some(bytes))
}

/// Returns the document with this `_id` in front, and the stamp, if there is one, in place of empty timestamps at the
/// top level.
fn with_id_first(id: Option<Value<'_>>, doc: Doc<'_>, stamp: Option<Value<'_>>) -> Vec<u8> {
    let mut out = Writer::into_buffer(Vec::with_capacity(doc.bytes().len() + 32));
    if let Some(id) = id {
        out.append(b"_id", id);
    }
    for element in without_first_id(doc) {
        let stamp = stamp.filter(|_| element.value.as_timestamp() == Some(0));
        out.append(element.name, stamp.unwrap_or(element.value));
    }
    out.finish()
}

/// Returns the fields except the first `_id`.
pub(super) fn without_first_id(doc: Doc<'_>) -> impl Iterator<Item = Element<'_>> {
    let id = doc.elements().position(|element| element.name == b"_id");
    doc.elements().enumerate().filter(move |(place, _)| Some(*place) != id).map(|(_, element)| element)
}
