use slate_store::Keyspace;

use super::{Access, Query};
use crate::{Result, catalog::CollectionInfo, key_range::KeyRange};

/// The data that rules use besides the plan.
pub(crate) struct Context<'a> {
    pub(crate) collection: &'a CollectionInfo,
    pub(crate) query: &'a Query,
    pub(crate) probe: &'a dyn Probe,
    /// The access path, if it is known without a choice.
    pub(crate) access: Option<&'a Access>,
}

/// Counts keys up to a cap.
pub(crate) trait Probe {
    /// Counts the keys within the ranges, up to `cap`. The result is the same on every backend.
    fn count(&self, keyspace: Keyspace, ranges: &[KeyRange], cap: u64) -> Result<u64>;
}
