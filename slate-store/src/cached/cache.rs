use std::{
    hash::{BuildHasher, Hasher},
    sync::atomic::{AtomicU16, Ordering},
};

use ahash::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::{
    reads::{Found, ReadCounters},
    stamps::{Stamps, WrittenKeys},
    value::{CachedValue, ValueWeight},
};
use crate::{CacheReads, Error, Keyspace, Result, Version};

/// The values of a store's keys, found by the hashes of the keys. Of two keys with one hash, at most one is cached.
pub(super) struct PointCache {
    values: Cache<u64, CachedValue, ValueWeight, RandomState>,
    stamps: Stamps,
    reads: ReadCounters,
    /// The high bits of the hash last requested, per stamp: a value is cached at the second request of its key.
    requested: Box<[AtomicU16]>,
    hasher: RandomState,
    /// Maximum length of a cached value, in bytes; 0 disables the cache.
    max_value: usize,
}

/// Maximum length of a cached value, in bytes. Copying a longer value takes as long as reading it from the store.
const MAX_VALUE: usize = 16 << 10;

/// Maximum number of key sets that one commit marks as pending. A commit with more marks all keys, as one with more than `MAX_HASHES` keys
/// does.
const MAX_PENDING: usize = 64;

/// The assumed size of a value with its key, in bytes. Decides the number of stamps.
const TYPICAL_VALUE: usize = 512;

impl PointCache {
    /// Creates a cache that takes at most about `bytes` of memory.
    pub(super) fn new(bytes: usize) -> Self {
        let count = bytes / TYPICAL_VALUE;
        let stamps = Stamps::new(count);
        let requested = (0..stamps.bytes() / size_of::<u64>()).map(|_| AtomicU16::new(0)).collect::<Box<[_]>>();
        let overhead = stamps.bytes() + size_of_val(&*requested);
        let capacity = u64::try_from(bytes.saturating_sub(overhead)).unwrap_or(u64::MAX);
        let hasher = RandomState::new();
        let values = Cache::with(count, capacity, ValueWeight, hasher.clone(), DefaultLifecycle::default());
        // A value that takes a large part of its shard would evict all others.
        let max_value = usize::try_from(values.shard_capacity() / 8).map_or(MAX_VALUE, |most| most.min(MAX_VALUE));
        Self { values, stamps, reads: ReadCounters::default(), requested, hasher, max_value }
    }

    /// Returns whether any value can be cached.
    pub(super) fn is_enabled(&self) -> bool {
        self.max_value > 0
    }

    pub(super) fn hash(&self, keyspace: Keyspace, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u32(keyspace.0);
        hasher.write(key);
        hasher.finish()
    }

    /// Returns the used memory in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let fixed = self.stamps.bytes() + size_of_val(&*self.requested);
        self.values.weight().saturating_add(u64::try_from(fixed).unwrap_or(u64::MAX))
    }

    /// Returns how many reads the cache answered, and how many the store.
    pub(super) fn reads(&self) -> CacheReads {
        self.reads.sum()
    }

    /// Returns the cached value of a key with that hash if it is current for a view of that version, and counts the read as a hit or a miss.
    pub(super) fn get(&self, keyspace: Keyspace, key: &[u8], hash: u64, version: Version) -> Option<CachedValue> {
        let found = self.find(keyspace, key, hash, version);
        self.count(hash, if found.is_some() { Found::InCache } else { Found::InStore });
        found
    }

    /// Counts a read of a key with that hash.
    pub(super) fn count(&self, hash: u64, found: Found) {
        self.reads.count(hash, found);
    }

    /// Like [`get`](Self::get), but does not count the read.
    pub(super) fn find(&self, keyspace: Keyspace, key: &[u8], hash: u64, version: Version) -> Option<CachedValue> {
        let value = self.values.get(&hash)?;
        // The stamp is read after the value: by then, every commit that this value or this view shows has stamped its keys.
        let is_current = self.stamps.is_unwritten_since(hash, value.version.min(version));
        (is_current && value.is_of(keyspace, key)).then_some(value)
    }

    /// Caches a value that a view of `version` has read. Does nothing at the first request of its key, if the value is too long, or if the key
    /// was written since.
    pub(super) fn insert(&self, keyspace: Keyspace, key: &[u8], hash: u64, version: Version, value: &[u8]) {
        let is_useful =
            value.len() <= self.max_value && self.was_requested(hash) && self.stamps.is_unwritten_since(hash, version);
        if is_useful {
            self.values.insert(hash, CachedValue::new(keyspace, key, value, version));
        }
    }

    /// Returns whether this hash was the last one requested in its slot, and records it as requested.
    fn was_requested(&self, hash: u64) -> bool {
        let place = self.stamps.index(hash).and_then(|index| self.requested.get(index));
        let Some(place) = place else { return false };
        // The low bits select the slot. Zero means that nothing was requested.
        let high = u16::try_from(hash >> (u64::BITS - u16::BITS)).unwrap_or_default().max(1);
        place.swap(high, Ordering::Relaxed) == high
    }

    /// Runs a commit that writes `keys`, and stamps them. `commit` receives the pending keys, and [adds](Self::begin) those that are known only
    /// later.
    ///
    /// # Errors
    /// The errors of `commit`.
    pub(super) fn commit(
        &self,
        keys: WrittenKeys,
        commit: impl FnOnce(&mut Vec<WrittenKeys>) -> Result<Version>,
    ) -> Result<Version> {
        let mut pending = Vec::new();
        self.begin(keys, &mut pending);
        let committed = commit(&mut pending);
        let end = |version| pending.iter().for_each(|keys| self.stamps.end(keys, version));
        match &committed {
            Ok(version) => end(Some(*version)),
            Err(Error::Conflict(_) | Error::Full(_) | Error::ReadOnly(_) | Error::TooLarge(_)) => end(None),
            // The commit may be visible, so its keys stay pending.
            Err(_) => {}
        }
        committed
    }

    /// Marks keys of a commit as pending. Must be called before they can become visible. After [`MAX_PENDING`] sets of keys marks all.
    pub(super) fn begin(&self, mut keys: WrittenKeys, pending: &mut Vec<WrittenKeys>) {
        if pending.iter().any(|keys| matches!(keys, WrittenKeys::All)) {
            return;
        }
        if pending.len() >= MAX_PENDING {
            keys = WrittenKeys::All;
        }
        self.stamps.begin(&mut keys);
        pending.push(keys);
    }
}
