use std::sync::{Mutex, PoisonError};

use ahash::AHashMap;
use slate_store::Keyspace;

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

/// The growth, in records, below which statistics are not gathered again. Small collections are counted by probes (`plan/candidate.rs`),
/// and frequent gathering would cost more than it saves.
const MIN_GROWTH: u64 = 1_000;

impl StatisticsStaleness {
    /// Adds the growth of a commit. Returns whether statistics over `known` records should be gathered now: if the
    /// collection has grown or shrunk by half, and has changed by [`MIN_GROWTH`] since the last attempt.
    pub(crate) fn add(&self, records: Keyspace, known: u64, growth: i64) -> bool {
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
    pub(crate) fn would_be_stale(&self, records: Keyspace, known: u64, growth: i64) -> bool {
        let collections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        collections.get(&records).copied().unwrap_or_default().grown(growth).is_due(known)
    }

    /// Returns whether a collection has grown or shrunk by half since statistics over `known` records were gathered, which another process
    /// may have done meanwhile.
    pub(crate) fn is_stale(&self, records: Keyspace, known: u64) -> bool {
        let collections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        collections.get(&records).is_some_and(|changed| changed.is_stale(known))
    }

    /// Returns the growth since the collection's statistics were gathered.
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
}
