use std::sync::Arc;

use slate_store::Keyspace;

use super::collection_state::CollectionStates;
use crate::{
    catalog::{Catalog, CollectionInfo, StatisticsStaleness},
    commit::Announced,
};

/// Work that remains after a commit, outside its transaction.
#[derive(Debug, Default)]
pub(crate) struct AfterCommit {
    /// The keyspaces that the commit has unlinked, to be dropped.
    pub(crate) dropped: Vec<Keyspace>,
    pub(crate) stale: Vec<StaleCollection>,
    /// Whether the log of changes exceeds its limits.
    pub(crate) trims_log: bool,
    /// Announcements of changes that their processes no longer make.
    pub(crate) abandoned: Vec<Announced>,
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
        self.dropped.is_empty() && self.stale.is_empty() && !self.trims_log && self.abandoned.is_empty()
    }
}

/// Adds the growth of collections by a commit. Returns the collections whose statistics should be gathered now.
pub(super) fn stale(
    states: &CollectionStates,
    catalog: &Catalog,
    staleness: &StatisticsStaleness,
) -> Vec<StaleCollection> {
    let grown = grown(states, catalog)
        .filter(|(collection, growth)| staleness.add(collection.records, collection.known_records(), *growth));
    let changed = states.changed().filter_map(|(name, _)| catalog.collection(name));
    let incomplete = changed.filter(|collection| collection.lacks_statistics()).map(|collection| (collection, 0));
    grown
        .chain(incomplete)
        .map(|(collection, growth)| StaleCollection { records: collection.records, growth })
        .collect()
}

/// Returns whether the growth by a commit makes statistics stale.
pub(super) fn makes_stale(states: &CollectionStates, catalog: &Catalog, staleness: &StatisticsStaleness) -> bool {
    grown(states, catalog)
        .any(|(collection, growth)| staleness.would_be_stale(collection.records, collection.known_records(), growth))
}

/// Returns the collections whose size a commit changes, and by how many records.
fn grown<'c>(
    states: &'c CollectionStates,
    catalog: &'c Catalog,
) -> impl Iterator<Item = (&'c Arc<CollectionInfo>, i64)> {
    states.grown().filter_map(|(name, growth)| Some((catalog.collection(name)?, growth)))
}
