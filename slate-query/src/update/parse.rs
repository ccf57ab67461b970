use crate::{
    Code, Error, Result,
    path::Path,
    raw::{Doc, Value},
};

use super::Context;

/// A parsed update: operators or a replacement.
#[derive(Debug)]
pub struct Update {}

/// Whether an update needs the array position that the filter matched at (the positional operator `$`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsesPosition {
    /// It does: evaluate the whole filter for it.
    Yes,
    /// It does not.
    No,
}

impl Update {
    /// Parses an update document and the array filters its `$[name]` refer to.
    ///
    /// # Errors
    /// MongoDB's codes; a pipeline is unsupported by name.
    pub fn parse(update: Value<'_>, array_filters: &[Doc<'_>]) -> Result<Self> {
        let _ = (update, array_filters);
        Ok(Self {})
    }

    /// The document after the update; `None` where it stays as it is.
    ///
    /// # Errors
    /// MongoDB's codes, where this document cannot be updated so.
    pub fn apply(&self, doc: Doc<'_>, context: &Context) -> Result<Option<Vec<u8>>> {
        let _ = (doc, context);
        Err(Error::new(Code::INTERNAL_ERROR, "updates are being built"))
    }

    /// Whether it replaces the whole document (but for its `_id`).
    pub fn is_replacement(&self) -> bool {
        false
    }

    /// Whether the positional operator `$` occurs in it.
    pub fn needs_position(&self) -> UsesPosition {
        UsesPosition::No
    }

    /// Whether the update may change what stands at `path` or below or above it: false only where it cannot.
    pub fn touches(&self, path: &Path) -> bool {
        let _ = path;
        true
    }
}

/// `doc` with the fields of `patch` written over it: top-level names taken literally, whole values; fields that exist
/// keep their places, new ones are appended in the patch's order. `None` where nothing changes.
///
/// # Errors
/// `ImmutableField` (66) where the patch would change `_id`; `BSONObjectTooLarge` (10334) beyond 16 MiB.
pub fn merge(doc: Doc<'_>, patch: Doc<'_>) -> Result<Option<Vec<u8>>> {
    let _ = (doc, patch);
    Err(Error::new(Code::INTERNAL_ERROR, "updates are being built"))
}
