use std::{mem, sync::Arc};

use quick_cache::Weighter;

use crate::{Keyspace, Version};

/// A cached value with its key, because two keys may have the same hash.
#[derive(Clone)]
pub(super) struct CachedValue {
    /// The number of the keyspace, the key and the value, end to end.
    bytes: Arc<[u8]>,
    /// The offset of the value in `bytes`.
    value: usize,
    /// The version of the view that read it.
    pub(super) version: Version,
}

impl CachedValue {
    pub(super) fn new(keyspace: Keyspace, key: &[u8], value: &[u8], version: Version) -> Self {
        let keyspace = keyspace.0.to_be_bytes();
        let bytes = [&keyspace[..], key, value].concat();
        Self { bytes: bytes.into(), value: keyspace.len() + key.len(), version }
    }

    pub(super) fn is_of(&self, keyspace: Keyspace, key: &[u8]) -> bool {
        let full_key = self.bytes.get(..self.value).unwrap_or_default();
        full_key.split_first_chunk().is_some_and(|(number, own)| *number == keyspace.0.to_be_bytes() && own == key)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.value..).unwrap_or_default()
    }
}

/// The memory that a cached value takes, in bytes.
#[derive(Clone)]
pub(super) struct ValueWeight;

/// The memory that a value takes in addition to its bytes: its entry in a hash table that is at least half full, and one allocation.
const OVERHEAD: usize = mem::size_of::<CachedValue>() + 128;

impl Weighter<u64, CachedValue> for ValueWeight {
    fn weight(&self, _: &u64, value: &CachedValue) -> u64 {
        u64::try_from(value.bytes.len() + OVERHEAD).unwrap_or(u64::MAX)
    }
}
