use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use slate_store::Keyspace;
use thread_local::ThreadLocal;

use super::counters::Counter;
use crate::clock;

/// How many operations have used an index, or have scanned a collection, in this process. Each thread has a counter of its own, so
/// that threads do not wait for each other's cache lines.
#[derive(Debug)]
pub(crate) struct Uses {
    counters: ThreadLocal<Counter>,
    /// When counting began: when the database was opened, or when the index was created.
    since_millis: i64,
}

impl Default for Uses {
    fn default() -> Self {
        Self { counters: ThreadLocal::default(), since_millis: clock::now_millis() }
    }
}

impl Uses {
    #[inline]
    pub(crate) fn add(&self) {
        self.counters.get_or_default().add(1);
    }

    /// Subtracts the last addition of this thread.
    #[cold]
    pub(crate) fn take_back(&self) {
        self.counters.get_or_default().subtract(1);
    }

    pub(crate) fn count(&self) -> u64 {
        self.counters.iter().map(Counter::get).fold(0, u64::saturating_add)
    }

    pub(crate) fn since_millis(&self) -> i64 {
        self.since_millis
    }
}

/// How often operations found records of a collection by `_id` and by a scan: uses without a declared index.
#[derive(Debug, Default)]
pub(crate) struct CollectionUses {
    /// Operations that found records by their `_id`.
    pub(crate) ids: Uses,
    /// Operations that scanned all records.
    pub(crate) scans: Uses,
}

/// The counts of uses of all collections and indexes, by keyspace. A new reading of the catalog does not reset them.
#[derive(Debug, Default)]
pub(crate) struct UseTable(Mutex<UseMaps>);

#[derive(Debug, Default)]
struct UseMaps {
    collections: HashMap<Keyspace, Weak<CollectionUses>>,
    /// Keyed by the keyspace of the index and by whether the index is hidden.
    indexes: HashMap<(Keyspace, bool), Weak<Uses>>,
    /// The number of entries after the last removal of unused ones.
    kept: usize,
}

impl UseTable {
    pub(crate) fn of_collection(&self, records: Keyspace) -> Arc<CollectionUses> {
        shared(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).collections, records)
    }

    /// Returns the uses of an index. As in MongoDB, counting begins again when it is hidden or shown.
    pub(crate) fn of_index(&self, entries: Keyspace, is_hidden: bool) -> Arc<Uses> {
        shared(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).indexes, (entries, is_hidden))
    }

    /// Removes the entries that no catalog refers to, if the number of entries has more than doubled since the last removal. So removals take
    /// amortized constant time per added entry.
    pub(crate) fn forget_unused(&self) {
        let mut maps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if maps.count() > 2 * maps.kept {
            maps.forget_unused();
        }
    }
}

impl UseMaps {
    fn count(&self) -> usize {
        self.collections.len() + self.indexes.len()
    }

    fn forget_unused(&mut self) {
        self.collections.retain(|_, uses| uses.strong_count() > 0);
        self.indexes.retain(|_, uses| uses.strong_count() > 0);
        self.kept = self.count();
    }
}

fn shared<K: Eq + Hash, U: Default>(known: &mut HashMap<K, Weak<U>>, key: K) -> Arc<U> {
    known.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
        let uses = Arc::new(U::default());
        known.insert(key, Arc::downgrade(&uses));
        uses
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_counted_in_all_threads_and_shared_by_keyspace() {
        let table = UseTable::default();
        let (uses, other) = (table.of_index(Keyspace(3), false), table.of_index(Keyspace(4), false));
        std::thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| table.of_index(Keyspace(3), false).add());
            }
        });
        uses.add();
        uses.add();
        uses.take_back();
        assert_eq!((uses.count(), other.count()), (4, 0));
        assert_eq!(table.of_index(Keyspace(3), true).count(), 0, "the index is hidden");
        table.forget_unused();
        assert_eq!(table.of_index(Keyspace(3), false).count(), 4);
        drop(uses);
        table.forget_unused();
        assert_eq!(table.of_index(Keyspace(3), false).count(), 0, "an index that was dropped");
    }
}
