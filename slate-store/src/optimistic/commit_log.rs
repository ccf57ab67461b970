use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, BuildHasherDefault, Hasher},
};

use ahash::RandomState;

use crate::{Bounds, Guard, Keyspace, OwnedBounds, Version};

/// Maximum number of keys, and of ranges, in the log; keys take about 64 MiB. A full log forgets the older half of its commits, and transactions
/// that do not see all of these fail to commit.
const MAX_KEYS: usize = if cfg!(test) { 100 } else { 1 << 20 };
const MAX_RANGES: usize = 1 << 10;

/// Minimum number of keys at which the log removes those that no open transaction needs.
const MIN_TRIM: usize = if cfg!(test) { 10 } else { 1 << 10 };

/// How a transaction accessed a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// A put or a delete.
    Exclusive,
    /// An exclusive guard: unlike a write, it also conflicts with earlier shared guards.
    Guarded,
    /// A shared guard.
    Shared,
}

impl From<Guard> for Access {
    fn from(guard: Guard) -> Self {
        match guard {
            Guard::Shared => Self::Shared,
            Guard::Exclusive => Self::Guarded,
        }
    }
}

/// Whether other transactions are open at a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    Open,
    None,
}

/// Why a transaction conflicts.
#[derive(Debug)]
pub(super) enum Conflict<'k> {
    /// The transaction was open for so long that the log has forgotten concurrent commits.
    Forgotten,
    /// Another transaction accessed the same key.
    Key(&'k [u8]),
    /// The key is in a range, or a whole keyspace, that another transaction deleted or rewrote.
    Range(&'k [u8]),
}

/// The versions of the last commit that wrote a key or guarded it exclusively, and of the last one with a shared guard of it; 0 for none.
#[derive(Clone, Copy, Default)]
struct Stamps {
    exclusive: Version,
    shared: Version,
}

/// A range of keys that a commit deleted, or in which it may have written any key.
struct Range {
    keyspace: Keyspace,
    bounds: OwnedBounds,
    version: Version,
}

/// The recent commits that an open transaction may conflict with.
///
/// First committer wins: a transaction over version *v* fails to commit if a commit after *v*
/// - wrote a key, or guarded it exclusively, that the transaction wrote or guarded, or
/// - guarded a key that the transaction guarded exclusively.
///
/// Deleting a range, and dropping a keyspace, counts as a write of every key in it.
///
/// Invariants:
/// - `open` has the number of open transactions per version that they read.
/// - For each key that a commit accessed after the oldest of these versions, `stamps` has the versions of the last accesses, unless they are at
///   most `forgotten`; `ranges` likewise.
///
/// Keys are identified by their hashes. A collision can make a transaction fail without need, and never makes one succeed that
/// must fail.
///
/// The stamps of the point cache (`cached/stamps.rs`) do not serve for this: they are a fixed table in which keys share places. That costs the
/// cache a miss, and would cost a transaction a conflict.
#[derive(Default)]
pub(super) struct CommitLog {
    open: BTreeMap<Version, usize>,
    stamps: HashMap<u64, Stamps, BuildHasherDefault<Hashed>>,
    ranges: Vec<Range>,
    /// The version of the last commit.
    last: Version,
    forgotten: Version,
    /// The number of stamps at which those that no open transaction needs are removed.
    trim_at: usize,
    hasher: RandomState,
}

impl CommitLog {
    /// Adds a transaction that reads version `base`.
    pub(super) fn open(&mut self, base: Version) {
        *self.open.entry(base).or_default() += 1;
    }

    /// Removes a transaction that reads version `base`.
    pub(super) fn close(&mut self, base: Version) {
        let Some(count) = self.open.get_mut(&base) else { return };
        *count -= 1;
        if *count == 0 {
            self.open.remove(&base);
        }
        if self.open.is_empty() && !(self.stamps.is_empty() && self.ranges.is_empty()) {
            (self.stamps, self.ranges, self.trim_at) = Default::default();
        }
    }

    /// Returns whether no commit was made after version `base`.
    pub(super) fn is_latest(&self, base: Version) -> bool {
        self.last <= base
    }

    /// Returns the first of these accesses that conflicts with a commit after version `base`; `Forgotten` if the log no longer has all of those
    /// commits.
    pub(super) fn conflict<'k>(
        &self,
        base: Version,
        keyspace: Keyspace,
        accesses: impl IntoIterator<Item = (&'k [u8], Access)>,
    ) -> Option<Conflict<'k>> {
        if base < self.forgotten {
            return Some(Conflict::Forgotten);
        }
        let later: Vec<&Range> =
            self.ranges.iter().filter(|range| range.keyspace == keyspace && range.version > base).collect();
        accesses.into_iter().find_map(|(key, access)| {
            if later.iter().any(|range| range.bounds.bounds().contains(key)) {
                return Some(Conflict::Range(key));
            }
            let stamps = self.stamps.get(&self.hash(keyspace, key))?;
            let conflicts = stamps.exclusive > base || (access == Access::Guarded && stamps.shared > base);
            conflicts.then_some(Conflict::Key(key))
        })
    }

    /// Records a commit. Returns whether transactions are open, for which its accesses have to be recorded.
    pub(super) fn committed(&mut self, version: Version) -> Others {
        self.last = version;
        if self.open.is_empty() { Others::None } else { Others::Open }
    }

    /// Records accesses of the commit `version`. Does nothing without open transactions: nothing can conflict.
    pub(super) fn record<'k>(
        &mut self,
        version: Version,
        keyspace: Keyspace,
        accesses: impl IntoIterator<Item = (&'k [u8], Access)>,
    ) {
        if self.open.is_empty() {
            return;
        }
        for (key, access) in accesses {
            self.record_hash(version, self.hash(keyspace, key), access);
        }
    }

    /// Records an access of a key with this hash.
    pub(super) fn record_hash(&mut self, version: Version, hash: u64, access: Access) {
        if self.open.is_empty() {
            return;
        }
        let stamps = self.stamps.entry(hash).or_default();
        match access {
            Access::Exclusive | Access::Guarded => stamps.exclusive = version,
            Access::Shared => stamps.shared = version,
        }
        if self.stamps.len() >= self.trim_at.max(MIN_TRIM) {
            self.trim(version);
        }
    }

    /// Records that the commit `version` deleted a range, or may have written any key in it.
    pub(super) fn record_range(&mut self, version: Version, keyspace: Keyspace, bounds: Bounds<'_>) {
        if self.open.is_empty() {
            return;
        }
        if self.ranges.len() >= MAX_RANGES {
            self.trim(version);
        }
        self.ranges.push(Range { keyspace, bounds: OwnedBounds::of(bounds), version });
    }

    /// Removes what no open transaction needs. If too much is left, forgets the older half of the commits, or all of them.
    fn trim(&mut self, version: Version) {
        let oldest = self.open.keys().next().copied().unwrap_or(version);
        let half = Version(oldest.0.midpoint(version.0));
        for keep in [oldest, half, version] {
            self.stamps.retain(|_, stamps| stamps.exclusive.max(stamps.shared) > keep);
            self.ranges.retain(|range| range.version > keep);
            if keep > oldest {
                self.forgotten = self.forgotten.max(keep);
            }
            // The limits are well below the maximum, so that this happens seldom.
            if self.stamps.len() <= MAX_KEYS / 4 * 3 && self.ranges.len() <= MAX_RANGES / 4 * 3 {
                break;
            }
        }
        self.trim_at = MAX_KEYS.min(2 * self.stamps.len());
        self.stamps.shrink_to(self.trim_at);
    }

    pub(super) fn hash(&self, keyspace: Keyspace, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u32(keyspace.0);
        hasher.write(key);
        hasher.finish()
    }
}

/// A hasher for keys that are hashes already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Keyspace = Keyspace(1);

    fn conflicts(log: &CommitLog, base: u64, key: &[u8], access: Access) -> bool {
        log.conflict(Version(base), A, [(key, access)]).is_some()
    }

    fn record(log: &mut CommitLog, version: u64, key: &[u8], access: Access) {
        log.record(Version(version), A, [(key, access)]);
    }

    #[test]
    fn exclusive_accesses_conflict_with_all_later_ones_and_shared_ones_with_exclusive_guards() {
        let mut log = CommitLog::default();
        log.open(Version(3));
        log.open(Version(5));
        record(&mut log, 4, b"written", Access::Exclusive);
        record(&mut log, 4, b"guarded", Access::Shared);
        for access in [Access::Exclusive, Access::Guarded, Access::Shared] {
            assert!(conflicts(&log, 3, b"written", access) && !conflicts(&log, 4, b"written", access));
            assert!(!conflicts(&log, 3, b"other", access));
            assert_eq!(conflicts(&log, 3, b"guarded", access), access == Access::Guarded);
        }
    }

    #[test]
    fn a_range_conflicts_with_later_accesses_within_it() {
        let mut log = CommitLog::default();
        log.open(Version(5));
        log.record_range(Version(6), A, Bounds { start: Some(b"b"), end: Some(b"d") });
        let within = |key| conflicts(&log, 5, key, Access::Shared);
        assert_eq!([&b"a"[..], b"b", b"cc", b"d"].map(within), [false, true, true, false]);
        assert!(!conflicts(&log, 6, b"c", Access::Shared));
        assert!(log.conflict(Version(5), Keyspace(2), [(&b"c"[..], Access::Exclusive)]).is_none());
    }

    #[test]
    fn stamps_are_removed_once_no_open_transaction_needs_them() {
        let mut log = CommitLog::default();
        record(&mut log, 1, b"nobody is open", Access::Exclusive);
        assert!(log.stamps.is_empty());
        for version in 0..1_000_u64 {
            log.open(Version(version));
            record(&mut log, version + 1, &version.to_be_bytes(), Access::Exclusive);
            if let Some(before) = version.checked_sub(1) {
                log.close(Version(before));
            }
        }
        assert!(log.stamps.len() <= MIN_TRIM && log.forgotten == Version(0));
        log.close(Version(999));
        assert!(log.stamps.is_empty() && log.open.is_empty());
    }

    #[test]
    fn a_full_log_forgets_its_older_half_and_conflicts_with_transactions_from_before() {
        let mut log = CommitLog::default();
        log.open(Version(0));
        for version in 1..=1_000_u64 {
            record(&mut log, version, &version.to_be_bytes(), Access::Exclusive);
        }
        assert!(log.stamps.len() <= MAX_KEYS && log.forgotten > Version(0));
        assert!(conflicts(&log, 0, b"untouched", Access::Shared));
        assert!(!conflicts(&log, log.forgotten.0, b"untouched", Access::Shared));
        assert!(conflicts(&log, 999, &1_000_u64.to_be_bytes(), Access::Shared));
        (0..3_000).for_each(|version| log.record_range(Version(1_000 + version), A, Bounds::ALL));
        assert!(log.ranges.len() <= MAX_RANGES);
    }
}
