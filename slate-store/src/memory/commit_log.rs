use std::{
    collections::{BTreeMap, HashMap, hash_map::RandomState},
    hash::BuildHasher,
};

use super::key::Key;
use crate::Keyspace;

/// The most keys in the log, which take about 64 MiB. When it is full the log is emptied, and transactions that are open then
/// fail to commit.
const MAX_KEYS: usize = if cfg!(test) { 100 } else { 1 << 20 };

/// The fewest keys at which the log removes those that no open transaction needs.
const MIN_TRIM: usize = if cfg!(test) { 10 } else { 1 << 10 };

/// How a transaction accessed a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// A put or a delete.
    Write,
    /// An exclusive guard.
    Exclusive,
    /// A shared guard.
    Shared,
}

/// Why a transaction conflicts.
pub(super) enum Conflict<'k> {
    /// The transaction was open for so long that the record of concurrent commits was emptied.
    Forgotten,
    /// A keyspace that the transaction accessed was dropped.
    Dropped,
    /// Another transaction accessed the same key.
    Key(&'k Key),
}

/// The last commits that accessed a key: the version of the last write or exclusive guard and that of the
/// last shared guard, or 0.
#[derive(Clone, Copy, Default)]
struct Stamps {
    exclusive: u64,
    shared: u64,
}

/// The recent commits, as far as an open transaction may conflict with them.
///
/// First committer wins: a transaction over version *v* fails to commit if a commit after *v*
/// - wrote a key, or guarded it exclusively, that the transaction wrote or guarded, or
/// - guarded a key that the transaction guarded exclusively.
///
/// Dropping a keyspace counts as a write of every key in it.
///
/// Invariants, all under the store's commit lock:
/// - `open` has the number of open transactions per version that they read.
/// - For each key that was accessed after the oldest of these versions, `stamps` has the versions of the last accesses, or these
///   versions are at most `forgotten`.
///
/// Keys are identified by their hashes. A collision can make a transaction fail without need, and never makes one succeed that
/// must fail.
#[derive(Default)]
pub(super) struct CommitLog {
    open: BTreeMap<u64, usize>,
    stamps: HashMap<u64, Stamps>,
    forgotten: u64,
    /// The size at which stamps that no open transaction needs are removed.
    trim_at: usize,
    hasher: RandomState,
}

impl CommitLog {
    /// Adds a transaction that reads version `base`.
    pub(super) fn open(&mut self, base: u64) {
        *self.open.entry(base).or_default() += 1;
    }

    /// Removes a transaction that reads version `base`.
    pub(super) fn close(&mut self, base: u64) {
        let Some(count) = self.open.get_mut(&base) else { return };
        *count -= 1;
        if *count == 0 {
            self.open.remove(&base);
        }
        if self.open.is_empty() && !self.stamps.is_empty() {
            self.stamps = HashMap::new();
            self.trim_at = 0;
        }
    }

    /// Returns the first of these accesses that conflicts with a commit after version `base`. There must be at least one access.
    pub(super) fn conflict<'k>(
        &self,
        base: u64,
        keyspace: Keyspace,
        mut accesses: impl Iterator<Item = (&'k Key, Access)>,
    ) -> Option<Conflict<'k>> {
        let conflicts = |hash: u64, access: Access| {
            self.stamps
                .get(&hash)
                .is_some_and(|stamps| stamps.exclusive > base || (access == Access::Exclusive && stamps.shared > base))
        };
        if base < self.forgotten {
            return Some(Conflict::Forgotten);
        }
        if conflicts(self.hash_of_drop(keyspace), Access::Shared) {
            return Some(Conflict::Dropped);
        }
        let conflicting = |(key, access): &(&Key, Access)| conflicts(self.hash(keyspace, key), *access);
        accesses.find(conflicting).map(|(key, _)| Conflict::Key(key))
    }

    /// Records the accesses of the commit that makes `version`.
    pub(super) fn record<'k>(
        &mut self,
        version: u64,
        keyspace: Keyspace,
        accesses: impl Iterator<Item = (&'k Key, Access)>,
    ) {
        // Without open transactions nothing can conflict.
        if !self.open.is_empty() {
            accesses.for_each(|(key, access)| self.stamp(version, self.hash(keyspace, key), access));
        }
    }

    /// Records that the commit that makes `version` drops a keyspace.
    pub(super) fn record_drop(&mut self, version: u64, keyspace: Keyspace) {
        if !self.open.is_empty() {
            self.stamp(version, self.hash_of_drop(keyspace), Access::Write);
        }
    }

    fn stamp(&mut self, version: u64, hash: u64, access: Access) {
        let stamps = self.stamps.entry(hash).or_default();
        match access {
            Access::Write | Access::Exclusive => stamps.exclusive = version,
            Access::Shared => stamps.shared = version,
        }
        if self.stamps.len() >= self.trim_at.max(MIN_TRIM) {
            let oldest = self.open.keys().next().copied().unwrap_or(version);
            self.stamps.retain(|_, stamps| stamps.exclusive.max(stamps.shared) > oldest);
            if self.stamps.len() >= MAX_KEYS {
                self.stamps = HashMap::new();
                self.forgotten = version;
            }
            self.trim_at = 2 * self.stamps.len();
        }
    }

    fn hash(&self, keyspace: Keyspace, key: &Key) -> u64 {
        self.hasher.hash_one((keyspace.0, key.as_slice()))
    }

    /// Returns the hash that represents all keys of a keyspace.
    fn hash_of_drop(&self, keyspace: Keyspace) -> u64 {
        self.hasher.hash_one(keyspace.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Keyspace = Keyspace(1);

    fn conflicts(log: &CommitLog, base: u64, key: &[u8], access: Access) -> bool {
        log.conflict(base, A, [(&Key::new(key), access)].into_iter()).is_some()
    }

    fn record(log: &mut CommitLog, version: u64, key: &[u8], access: Access) {
        log.record(version, A, [(&Key::new(key), access)].into_iter());
    }

    #[test]
    fn exclusive_accesses_conflict_with_all_later_ones_and_shared_ones_with_exclusive_guards() {
        let mut log = CommitLog::default();
        log.open(3);
        log.open(5);
        record(&mut log, 4, b"written", Access::Exclusive);
        record(&mut log, 4, b"guarded", Access::Shared);
        for access in [Access::Exclusive, Access::Shared] {
            assert!(conflicts(&log, 3, b"written", access) && !conflicts(&log, 4, b"written", access));
            assert!(!conflicts(&log, 3, b"other", access));
        }
        assert!(conflicts(&log, 3, b"guarded", Access::Exclusive) && !conflicts(&log, 3, b"guarded", Access::Shared));
        log.record_drop(6, A);
        assert!(conflicts(&log, 5, b"other", Access::Shared) && !conflicts(&log, 6, b"other", Access::Shared));
    }

    #[test]
    fn stamps_are_removed_once_no_open_transaction_needs_them() {
        let mut log = CommitLog::default();
        record(&mut log, 1, b"nobody is open", Access::Exclusive);
        assert!(log.stamps.is_empty());
        for version in 0..1_000_u64 {
            log.open(version);
            record(&mut log, version + 1, &version.to_be_bytes(), Access::Exclusive);
            if let Some(before) = version.checked_sub(1) {
                log.close(before);
            }
        }
        assert!(log.stamps.len() <= MIN_TRIM && log.forgotten == 0);
        log.close(999);
        assert!(log.stamps.is_empty() && log.open.is_empty());
    }

    #[test]
    fn a_full_log_conflicts_with_all_transactions_from_before() {
        let mut log = CommitLog::default();
        log.open(0);
        for version in 1..=200_u64 {
            record(&mut log, version, &version.to_be_bytes(), Access::Exclusive);
        }
        assert!(log.stamps.len() <= MAX_KEYS && log.forgotten > 0);
        assert!(conflicts(&log, 0, b"untouched", Access::Shared));
        assert!(!conflicts(&log, log.forgotten, b"untouched", Access::Shared));
    }
}
