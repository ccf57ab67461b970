use std::sync::atomic::{AtomicU64, Ordering};

use crate::Version;

/// Last-write stamps, found by the hashes of keys. Keys whose hashes have the same low bits share a stamp.
pub(super) struct Stamps {
    stamps: Box<[Stamp]>,
    /// The stamp of every key, for writes whose keys are not known: dropped keyspaces and very large commits.
    all: Stamp,
}

/// Low bits: the version of the last commit that wrote a key of this stamp. High bits: the number of pending commits.
#[derive(Default)]
struct Stamp(AtomicU64);

const VERSION_BITS: u32 = 48;
const VERSION: u64 = (1 << VERSION_BITS) - 1;
const ONE_PENDING: u64 = 1 << VERSION_BITS;

/// The keys that a commit writes.
#[derive(Debug)]
pub(super) enum WrittenKeys {
    /// Keys with these hashes.
    Hashed(Vec<u64>),
    /// Any key.
    All,
}

/// Maximum number of hashes that a transaction records, which take 2 MiB. A larger transaction stamps all keys.
const MAX_HASHES: usize = 1 << 18;

/// Maximum number of stamps, which take 32 MiB.
const MAX_STAMPS: usize = 1 << 22;

impl WrittenKeys {
    pub(super) fn none() -> Self {
        Self::Hashed(Vec::new())
    }

    pub(super) fn record(&mut self, hash: u64) {
        match self {
            Self::Hashed(hashes) if hashes.len() == MAX_HASHES => *self = Self::All,
            Self::Hashed(hashes) => hashes.push(hash),
            Self::All => {}
        }
    }
}

impl Stamps {
    /// Creates about `count` stamps.
    pub(super) fn new(count: usize) -> Self {
        let count = count.clamp(1, MAX_STAMPS).next_power_of_two();
        Self { stamps: (0..count).map(|_| Stamp::default()).collect(), all: Stamp::default() }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.stamps)
    }

    /// Returns whether no commit after `version` wrote, or may be writing, a key with this hash.
    pub(super) fn is_unwritten_since(&self, hash: u64, version: Version) -> bool {
        let is_unwritten = |stamp: &Stamp| stamp.is_unwritten_since(version);
        self.stamp(hash).is_some_and(is_unwritten) && is_unwritten(&self.all)
    }

    /// Marks the keys as pending. Must be called before the commit can become visible.
    pub(super) fn begin(&self, keys: &mut WrittenKeys) {
        // Deduplicated, because a stamp can count only 65,535 pending commits.
        if let WrittenKeys::Hashed(hashes) = keys {
            hashes.sort_unstable_by_key(|hash| self.index(*hash));
            hashes.dedup_by_key(|hash| self.index(*hash));
        }
        self.each(keys, Stamp::begin);
    }

    /// Ends the pending state: the commit is visible with version `committed`, or failed if that is `None`.
    pub(super) fn end(&self, keys: &WrittenKeys, committed: Option<Version>) {
        self.each(keys, |stamp| stamp.end(committed));
    }

    fn each(&self, keys: &WrittenKeys, change: impl Fn(&Stamp)) {
        match keys {
            WrittenKeys::Hashed(hashes) => hashes.iter().filter_map(|hash| self.stamp(*hash)).for_each(change),
            WrittenKeys::All => change(&self.all),
        }
    }

    fn stamp(&self, hash: u64) -> Option<&Stamp> {
        self.stamps.get(self.index(hash)?)
    }

    pub(super) fn index(&self, hash: u64) -> Option<usize> {
        let mask = u64::try_from(self.stamps.len() - 1).ok()?;
        usize::try_from(hash & mask).ok()
    }
}

impl Stamp {
    fn is_unwritten_since(&self, version: Version) -> bool {
        let stamp = self.0.load(Ordering::Acquire);
        stamp <= VERSION && stamp <= version.0
    }

    fn begin(&self) {
        self.update(|stamp| stamp.checked_add(ONE_PENDING).unwrap_or(stamp));
    }

    fn end(&self, committed: Option<Version>) {
        self.update(|stamp| {
            let version = committed.map_or(0, |version| version.0.min(VERSION));
            (stamp & !VERSION).saturating_sub(ONE_PENDING) | version.max(stamp & VERSION)
        });
    }

    fn update(&self, change: impl Fn(u64) -> u64) {
        // The closure always returns a value, so the update cannot fail.
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |stamp| Some(change(stamp)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_counts_as_written_while_a_commit_is_pending_and_from_its_version_on() {
        let stamps = Stamps::new(16);
        let mut keys = WrittenKeys::Hashed(vec![3]);
        let unwritten = |version| stamps.is_unwritten_since(3, Version(version));
        assert!(unwritten(0));
        stamps.begin(&mut keys);
        assert!(!unwritten(9));
        stamps.end(&keys, Some(Version(7)));
        assert_eq!([6, 7, 8].map(unwritten), [false, true, true]);
        assert!(stamps.is_unwritten_since(4, Version(0)));
    }

    #[test]
    fn commits_that_overlap_are_pending_until_the_last_ends_and_leave_the_greatest_version() {
        let stamps = Stamps::new(16);
        let mut keys = WrittenKeys::Hashed(vec![3]);
        stamps.begin(&mut keys);
        stamps.begin(&mut keys);
        stamps.end(&keys, Some(Version(9)));
        assert!(!stamps.is_unwritten_since(3, Version(20)));
        stamps.end(&keys, Some(Version(8)));
        assert!(stamps.is_unwritten_since(3, Version(9)) && !stamps.is_unwritten_since(3, Version(8)));
        stamps.begin(&mut keys);
        stamps.end(&keys, None);
        assert!(stamps.is_unwritten_since(3, Version(9)), "a commit that failed wrote nothing");
    }

    #[test]
    fn a_key_written_often_by_one_commit_does_not_end_the_pending_state_of_another() {
        let stamps = Stamps::new(16);
        let mut often = WrittenKeys::Hashed(vec![3; 70_000]);
        // Both hashes have the same stamp: they are equal modulo 16.
        let mut other = WrittenKeys::Hashed(vec![19]);
        stamps.begin(&mut other);
        stamps.begin(&mut often);
        stamps.end(&often, Some(Version(7)));
        assert!(!stamps.is_unwritten_since(3, Version(7)), "the other commit is still under way");
    }

    #[test]
    fn a_write_of_unknown_keys_stamps_all() {
        let stamps = Stamps::new(16);
        let mut keys = WrittenKeys::none();
        (0..=MAX_HASHES).for_each(|_| keys.record(1));
        assert!(matches!(keys, WrittenKeys::All));
        stamps.begin(&mut keys);
        assert!(!stamps.is_unwritten_since(5, Version(9)));
        stamps.end(&keys, Some(Version(2)));
        assert!(stamps.is_unwritten_since(5, Version(2)) && !stamps.is_unwritten_since(5, Version(1)));
    }
}
