//! What a transaction has done to each collection, and the work that follows from it after the commit.

use std::sync::{Arc, Mutex, PoisonError};

use ahash::AHashMap;
use slate_store::Keyspace;

use crate::{
    catalog::{Catalog, Change, CollectionInfo},
    commit::Announced,
};

/// The state of a transaction per collection that it has read or written, sorted by name. Most transactions have one or
/// two.
#[derive(Debug, Default)]
pub(super) struct CollectionStates(Vec<CollectionState>);

/// The state of a transaction for one collection.
#[derive(Debug, Default)]
pub(super) struct CollectionState {
    name: Box<str>,
    /// Whether the transaction relies on the collection's definition, and therefore guards it.
    pub(super) guarded: bool,
    /// Whether the transaction wrote documents.
    pub(super) written: bool,
    /// Whether the transaction read more than single documents, so that any write by another transaction conflicts.
    pub(super) read_whole: bool,
    /// The change of the collection that must be written to the catalog.
    pub(super) change: Option<Change>,
    /// Number of records by which the transaction makes the collection grow.
    pub(super) growth: i64,
}

impl CollectionStates {
    /// Returns the state of the collection with this name, creating it if necessary.
    pub(super) fn of(&mut self, name: &str) -> &mut CollectionState {
        let place = self.0.binary_search_by(|state| (*state.name).cmp(name)).unwrap_or_else(|place| {
            self.0.insert(place, CollectionState { name: name.into(), ..CollectionState::default() });
            place
        });
        #[expect(clippy::indexing_slicing, reason = "it was found there, or put there")]
        &mut self.0[place]
    }

    pub(super) fn written(&self) -> impl Iterator<Item = &str> {
        self.names(|state| state.written)
    }

    pub(super) fn read_whole(&self) -> impl Iterator<Item = &str> {
        self.names(|state| state.read_whole)
    }

    /// Returns the collections whose catalog entries change, and how.
    pub(super) fn changed(&self) -> impl Iterator<Item = (&str, Change)> {
        self.0.iter().filter_map(|state| Some((&*state.name, state.change?)))
    }

    /// Returns the collections whose definitions change or that were read as a whole: they conflict with every writer.
    pub(super) fn redefined(&self) -> impl Iterator<Item = &str> {
        self.names(|state| state.change == Some(Change::Definition) || state.read_whole)
    }

    /// Returns whether the transaction conflicts with a change of the collection's definition.
    pub(super) fn relies_on(&self, name: &str) -> bool {
        let mut found = self.0.iter().filter(|state| *state.name == *name);
        found.any(|state| state.guarded || state.change.is_some() || state.read_whole)
    }

    /// Returns the collections that grow or shrink, and by how many records.
    pub(super) fn grown(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().filter(|state| state.growth != 0).map(|state| (&*state.name, state.growth))
    }

    fn names(&self, wanted: impl Fn(&CollectionState) -> bool) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |state| wanted(state)).map(|state| &*state.name)
    }
}

impl CollectionState {
    /// Records a change of the catalog entry. A change of the definition includes one of properties.
    pub(super) fn change(&mut self, change: Change) {
        self.change = self.change.max(Some(change));
    }
}

/// Work that remains after a commit, outside its transaction.
#[derive(Debug, Default)]
pub(crate) struct AfterCommit {
    /// The keyspaces that the commit has unlinked, to be dropped.
    pub(crate) dropped: Vec<Keyspace>,
    pub(crate) stale: Vec<StaleCollection>,
    /// Whether the log of changes exceeds its limits.
    pub(crate) trims_log: bool,
    /// Announcements to withdraw: the processes that made them have probably ended.
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

/// Adds to `staleness` by how many records a commit has grown its collections. Returns the collections whose statistics should be gathered
/// now.
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

/// The growth of each collection since its statistics were gathered, by the keyspace of its records.
///
/// Counts only commits of this process since it opened the database.
#[derive(Debug, Default)]
pub(crate) struct StatisticsStaleness(Mutex<AHashMap<Keyspace, Changed>>);

#[derive(Clone, Copy, Debug, Default)]
struct Changed {
    /// The number of records added, minus those deleted.
    growth: i64,
    /// The growth at the last attempt to gather statistics.
    attempted: i64,
}

impl Changed {
    fn grown(self, growth: i64) -> Self {
        Self { growth: self.growth.saturating_add(growth), ..self }
    }

    fn is_due(self, known: u64) -> bool {
        self.is_stale(known) && self.growth.abs_diff(self.attempted) > MIN_GROWTH
    }

    fn is_stale(self, known: u64) -> bool {
        self.growth.unsigned_abs() > MIN_GROWTH.max(known / 2)
    }
}

/// The growth, in records, up to which statistics are not gathered again. Small collections are counted by probes (`plan/candidate.rs`),
/// and frequent gathering would cost more than it saves.
const MIN_GROWTH: u64 = 1_000;

impl StatisticsStaleness {
    /// Adds the growth of a commit. Returns whether statistics over `known` records should be gathered now: if the collection has grown or shrunk by
    /// more than half and by more than [`MIN_GROWTH`], and its growth has changed by more than that since the last attempt.
    pub(super) fn add(&self, records: Keyspace, known: u64, growth: i64) -> bool {
        let mut collections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = collections.entry(records).or_default();
        *changed = changed.grown(growth);
        let is_due = changed.is_due(known);
        if is_due {
            changed.attempted = changed.growth;
        }
        is_due
    }

    /// Returns whether [`add`](Self::add) would return true, without adding.
    pub(super) fn would_be_stale(&self, records: Keyspace, known: u64, growth: i64) -> bool {
        let collections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        collections.get(&records).copied().unwrap_or_default().grown(growth).is_due(known)
    }

    /// Returns whether a collection has grown or shrunk by more than half of `known` records, and more than [`MIN_GROWTH`], since statistics over
    /// them were gathered, which another process may have done meanwhile.
    pub(crate) fn is_stale(&self, records: Keyspace, known: u64) -> bool {
        let collections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        collections.get(&records).is_some_and(|changed| changed.is_stale(known))
    }

    /// Returns by how many records commits of this process have grown the collection since its statistics were gathered.
    pub(crate) fn growth(&self, records: Keyspace) -> i64 {
        let collections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        collections.get(&records).map_or(0, |changed| changed.growth)
    }

    /// Subtracts the growth that new statistics include. The rest was committed while they were gathered.
    pub(crate) fn included(&self, records: Keyspace, growth: i64) {
        let mut collections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(changed) = collections.get_mut(&records) {
            *changed = Changed { growth: changed.growth.saturating_sub(growth), attempted: 0 };
        }
    }

    /// Removes a dropped collection.
    pub(crate) fn forget(&self, records: Keyspace) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&records);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_stale_after_growth_by_half_and_not_again_after_every_failed_attempt() {
        let staleness = StatisticsStaleness::default();
        let records = Keyspace(1);
        assert!(!staleness.add(records, 0, 1_000));
        assert!(staleness.would_be_stale(records, 0, 1) && !staleness.would_be_stale(records, 0, 0));
        assert!(staleness.add(records, 0, 1), "more than the minimum");
        assert!(!staleness.add(records, 0, 1), "just attempted");
        assert!(staleness.add(records, 0, 2_000), "changed again since the attempt");
        staleness.included(records, 3_000);
        assert_eq!(staleness.growth(records), 2);
        assert!(!staleness.add(records, 3_000, -1_400) && staleness.add(records, 3_000, -103), "shrunk by half");
        staleness.forget(records);
        assert_eq!(staleness.growth(records), 0);
    }

    #[test]
    fn each_collection_is_listed_once_and_in_order_with_all_that_is_known_of_it() {
        let mut states = CollectionStates::default();
        for name in ["m", "a", "z", "b"] {
            states.of(name).written = true;
        }
        states.of("a").change(Change::Definition);
        states.of("a").change(Change::Properties);
        states.of("m").read_whole = true;
        states.of("b").growth = -2;
        states.of("c").guarded = true;
        assert_eq!(states.written().collect::<Vec<_>>(), ["a", "b", "m", "z"]);
        assert_eq!(states.changed().collect::<Vec<_>>(), [("a", Change::Definition)]);
        assert_eq!(states.read_whole().collect::<Vec<_>>(), ["m"]);
        assert_eq!(states.grown().collect::<Vec<_>>(), [("b", -2)]);
        assert_eq!(states.redefined().collect::<Vec<_>>(), ["a", "m"]);
        assert_eq!(["a", "b", "c", "d"].map(|name| states.relies_on(name)), [true, false, true, false]);
        assert!(states.of("c").guarded && !states.of("a").guarded);
    }
}
