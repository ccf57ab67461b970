use std::collections::BTreeMap;

use ::rocksdb::WriteBatch;

use super::key::Prefixed;
use crate::Keyspace;

/// The keys that a transaction wrote in one keyspace, and their values; none where it deleted the key.
pub(super) type Written = BTreeMap<Box<[u8]>, Option<Box<[u8]>>>;

/// What a transaction wrote, until it commits.
#[derive(Default)]
pub(super) struct Writes {
    keyspaces: BTreeMap<Keyspace, Written>,
    /// About how many bytes RocksDB needs to be told of it.
    bytes: usize,
}

/// What RocksDB adds to a key and a value, and a little more.
const OVERHEAD: usize = 16;

impl Writes {
    /// Puts `value`, or deletes the key where there is none.
    pub(super) fn write(&mut self, keyspace: Keyspace, key: &[u8], value: Option<&[u8]>) {
        self.bytes += key.len() + value.map_or(0, <[u8]>::len) + OVERHEAD;
        self.keyspaces.entry(keyspace).or_default().insert(key.into(), value.map(Box::from));
    }

    /// What was written to a keyspace; `None` where nothing was.
    pub(super) fn of(&self, keyspace: Keyspace) -> Option<&Written> {
        self.keyspaces.get(&keyspace)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keyspaces.is_empty()
    }

    pub(super) fn keyspaces(&self) -> impl Iterator<Item = Keyspace> {
        self.keyspaces.keys().copied()
    }

    /// Everything as one write of RocksDB's, in the order of keys, which its buffers take in quickest. `note` is told of
    /// each whole key.
    pub(super) fn into_batch(self, mut note: impl FnMut(&[u8])) -> WriteBatch {
        let mut batch = WriteBatch::with_capacity_bytes(self.bytes);
        for (keyspace, written) in self.keyspaces {
            let mut prefixed = Prefixed::new(keyspace);
            for (key, value) in written {
                let whole = prefixed.with(&key);
                note(whole);
                match value {
                    Some(value) => batch.put(whole, value),
                    None => batch.delete(whole),
                }
            }
        }
        batch
    }
}
