use std::ops::Bound;

use im::{OrdMap, ordmap::RangedIter, shared_ptr::DefaultSharedPtr};

use super::{
    key::{Key, Sought},
    value::Value,
};

pub(super) type Entries<'t> = RangedIter<'t, Key, Value, DefaultSharedPtr>;

/// One keyspace: a persistent map, and the bytes of its keys and values.
#[derive(Clone, Default)]
pub(super) struct Tree {
    pub(super) entries: OrdMap<Key, Value>,
    bytes: u64,
}

impl Tree {
    /// Puts `value`, or deletes the key where there is none.
    pub(super) fn write(&mut self, key: Key, value: Option<Value>) {
        match value {
            Some(value) => self.insert(key, value),
            None => self.remove(key.as_slice()),
        }
    }

    pub(super) fn insert(&mut self, key: Key, value: Value) {
        let (key_bytes, value_bytes) = (key.as_slice().len(), value.len());
        match self.entries.insert(key, value) {
            Some(old) => self.bytes = self.bytes.saturating_sub(size(old.len())).saturating_add(size(value_bytes)),
            None => self.bytes = self.bytes.saturating_add(size(key_bytes)).saturating_add(size(value_bytes)),
        }
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(old) = self.entries.remove(&Sought::new(key)) {
            self.bytes = self.bytes.saturating_sub(size(key.len())).saturating_sub(size(old.len()));
        }
    }

    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Option<&Value> {
        self.entries.get(&Sought::new(key))
    }

    /// The entries within bounds, which are in order.
    pub(super) fn range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Entries<'_> {
        let (lower, upper) = (lower.map(Sought::new), upper.map(Sought::new));
        self.entries.range::<_, Sought<'_>>((lower.as_ref(), upper.as_ref()))
    }

    /// The bytes of all keys and values.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> u64 {
        size(self.entries.len())
    }

    /// Whether nothing was written between the two, one of which came of the other. Empty trees look alike whatever
    /// happened to them, so for those the answer is that it is not known.
    pub(super) fn is_surely_unchanged(&self, other: &Self) -> bool {
        !self.entries.is_empty() && self.entries.ptr_eq(&other.entries)
    }
}

/// A length in memory always fits.
fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
