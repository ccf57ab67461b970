use std::{
    collections::BTreeMap,
    mem,
    sync::{Mutex, OnceLock, PoisonError},
};

use ::rocksdb::WriteBatch;

use super::key::Prefixed;
use crate::Keyspace;

pub(super) type Key = Box<[u8]>;

/// None where the key was deleted.
pub(super) type Value = Option<Box<[u8]>>;

/// What a transaction wrote in one keyspace, in order.
pub(super) type Written = BTreeMap<Key, Value>;

/// What a transaction wrote, until it commits.
#[derive(Default)]
pub(super) struct Writes {
    keyspaces: BTreeMap<Keyspace, Noted>,
    /// About how many bytes RocksDB needs to be told of it.
    bytes: usize,
}

/// What was written to one keyspace. It is put in order at once, by its commit or by who reads it first, and only what comes
/// after that one by one: a tree costs several times as much for each key.
#[derive(Default)]
struct Noted {
    /// In the order in which it was written. Locked only while it is put in order.
    unordered: Mutex<Vec<(Key, Value)>>,
    ordered: OnceLock<Written>,
}

/// What RocksDB adds to a key and a value, and a little more.
const OVERHEAD: usize = 16;

impl Writes {
    /// Puts `value`, or deletes the key where there is none.
    pub(super) fn write(&mut self, keyspace: Keyspace, key: &[u8], value: Option<&[u8]>) {
        self.bytes += key.len() + value.map_or(0, <[u8]>::len) + OVERHEAD;
        self.keyspaces.entry(keyspace).or_default().write(key.into(), value.map(Box::from));
    }

    /// What was written to a keyspace; `None` where nothing was.
    pub(super) fn of(&self, keyspace: Keyspace) -> Option<&Written> {
        self.keyspaces.get(&keyspace).map(Noted::ordered)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keyspaces.is_empty()
    }

    pub(super) fn keyspaces(&self) -> impl Iterator<Item = Keyspace> {
        self.keyspaces.keys().copied()
    }

    /// Everything as one write of RocksDB's, in the order of keys, which its buffers take in quickest. `note` is told of
    /// each key.
    pub(super) fn into_batch(self, mut note: impl FnMut(Keyspace, &[u8])) -> WriteBatch {
        let mut batch = WriteBatch::with_capacity_bytes(self.bytes);
        for (keyspace, noted) in self.keyspaces {
            let mut prefixed = Prefixed::new(keyspace);
            for (key, value) in noted.into_ordered() {
                note(keyspace, &key);
                let whole = prefixed.with(&key);
                match value {
                    Some(value) => batch.put(whole, value),
                    None => batch.delete(whole),
                }
            }
        }
        batch
    }
}

impl Noted {
    fn write(&mut self, key: Key, value: Value) {
        match self.ordered.get_mut() {
            Some(ordered) => drop(ordered.insert(key, value)),
            None => self.unordered.get_mut().unwrap_or_else(PoisonError::into_inner).push((key, value)),
        }
    }

    fn ordered(&self) -> &Written {
        self.ordered.get_or_init(|| {
            // Of two with one key the later stays.
            mem::take(&mut *self.unordered.lock().unwrap_or_else(PoisonError::into_inner)).into_iter().collect()
        })
    }

    fn into_ordered(self) -> Written {
        self.ordered();
        self.ordered.into_inner().unwrap_or_default()
    }
}
