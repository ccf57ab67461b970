use std::sync::Arc;

use super::{cache::PointCache, value::CachedValue};
use crate::{Keyspace, PointReader, Result, Version};

/// Reads single keys from the cache, and those that it does not have from the store in one load.
pub struct CachedPointReader<R> {
    inner: R,
    cache: Arc<PointCache>,
    version: Version,
    /// Where the loaded values are; `None` if the last load bypassed the cache.
    slots: Option<Vec<Slot>>,
    /// The number of further misses before this reader bypasses the cache: a reader that walks a whole index would have
    /// few hits and would evict the values that others need.
    misses_left: u16,
}

/// Where a loaded value is.
enum Slot {
    Cached(CachedValue),
    /// In the store's point reader, at this position of its last load.
    Inner(usize),
}

/// The initial and maximum `misses_left`. Each hit adds one.
const MAX_MISSES: u16 = 512;

impl<R: PointReader> CachedPointReader<R> {
    pub(super) fn new(inner: R, cache: &Arc<PointCache>, version: Version) -> Self {
        let misses_left = if cache.is_enabled() { MAX_MISSES } else { 0 };
        Self { inner, cache: Arc::clone(cache), version, slots: None, misses_left }
    }

    fn find(&mut self, keyspace: Keyspace, key: &[u8], hash: u64) -> Option<CachedValue> {
        let found = self.cache.get(keyspace, key, hash, self.version);
        self.misses_left = match found {
            Some(_) => MAX_MISSES.min(self.misses_left + 1),
            None => self.misses_left.saturating_sub(1),
        };
        found
    }
}

impl<R: PointReader> PointReader for CachedPointReader<R> {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        self.slots = None;
        if self.misses_left == 0 {
            return self.inner.load(keys);
        }
        let (mut missing, mut hashes) = (Vec::new(), Vec::new());
        let mut slots = Vec::with_capacity(keys.len());
        for &(keyspace, key) in keys {
            let hash = self.cache.hash(keyspace, key);
            let cached = if self.misses_left > 0 { self.find(keyspace, key, hash) } else { None };
            slots.push(match cached {
                Some(value) => Slot::Cached(value),
                None => {
                    missing.push((keyspace, key));
                    hashes.push(hash);
                    Slot::Inner(missing.len() - 1)
                }
            });
        }
        if !missing.is_empty() {
            self.inner.load(&missing)?;
        }
        for (index, (&(keyspace, key), hash)) in missing.iter().zip(hashes).enumerate() {
            if let Some(value) = self.inner.loaded(index) {
                self.cache.insert(keyspace, key, hash, self.version, value);
            }
        }
        self.slots = Some(slots);
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        let Some(slots) = &self.slots else { return self.inner.loaded(index) };
        match slots.get(index)? {
            Slot::Cached(value) => Some(value.bytes()),
            Slot::Inner(index) => self.inner.loaded(*index),
        }
    }
}
