//! Replaces the collator in builds without the feature `collation`.

use super::CollationOptions;
use crate::{Error, Result};

/// Has no values: no collation can be created.
pub(super) enum Collator {}

impl Collator {
    pub(super) fn new(_: &CollationOptions) -> Result<Self> {
        Err(Error::unsupported("a collation in a build without the feature 'collation'"))
    }

    pub(super) fn ignores_spaces_only(&self) -> bool {
        match *self {}
    }

    pub(super) fn sort_key(&self, _: &[u8]) -> Vec<u8> {
        match *self {}
    }
}
