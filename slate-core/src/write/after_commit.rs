use slate_store::Keyspace;

use super::collection_state::CollectionStates;
use crate::catalog::{Catalog, StatisticsStaleness};

/// Work that remains after a commit, outside its transaction.
#[derive(Debug, Default)]
pub(crate) struct AfterCommit {
    /// The keyspaces that the commit has unlinked, to be dropped.
    pub(crate) dropped: Vec<Keyspace>,
    pub(crate) stale: Vec<StaleCollection>,
}

/// A collection whose statistics should be gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaleCollection {
    pub(crate) records: Keyspace,
    /// The growth by the commit, in records.
    pub(crate) growth: i64,
}

impl AfterCommit {
    pub(crate) fn is_empty(&self) -> bool {
        self.dropped.is_empty() && self.stale.is_empty()
    }
}

/// Adds the growth of collections by a commit. Returns the collections whose statistics should be gathered now.
pub(super) fn stale(
    states: &CollectionStates,
    catalog: &Catalog,
    staleness: &StatisticsStaleness,
) -> Vec<StaleCollection> {
    let grown = states.grown().filter_map(|(name, growth)| Some((catalog.collection(name)?, growth)));
    let grown = grown.filter(|(collection, growth)| {
        let known = collection.record_statistics().map_or(0, |statistics| statistics.keys);
        staleness.add(collection.records, known, *growth)
    });
    let changed = states.changed().filter_map(|(name, _)| catalog.collection(name));
    let incomplete = changed.filter(|collection| collection.lacks_statistics()).map(|collection| (collection, 0));
    grown
        .chain(incomplete)
        .map(|(collection, growth)| StaleCollection { records: collection.records, growth })
        .collect()
}
