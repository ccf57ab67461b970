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
    /// Locked only while it is put in order.
    unordered: Mutex<Run>,
    ordered: OnceLock<Written>,
}

/// Writes in the order in which they were made: end to end, since most transactions only gather and commit them.
#[derive(Default)]
struct Run {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// Where a key lies, and the value behind it.
struct Entry {
    start: usize,
    key: usize,
    /// `None` where the key was deleted.
    value: Option<usize>,
}

/// What RocksDB adds to a key and a value, and a little more.
const OVERHEAD: usize = 16;

impl Writes {
    /// Puts `value`, or deletes the key where there is none.
    pub(super) fn write(&mut self, keyspace: Keyspace, key: &[u8], value: Option<&[u8]>) {
        self.bytes += key.len() + value.map_or(0, <[u8]>::len) + OVERHEAD;
        self.keyspaces.entry(keyspace).or_default().write(key, value);
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
            noted.each_in_order(|key, value| {
                note(keyspace, key);
                let whole = prefixed.with(key);
                match value {
                    Some(value) => batch.put(whole, value),
                    None => batch.delete(whole),
                }
            });
        }
        batch
    }
}

impl Noted {
    fn write(&mut self, key: &[u8], value: Option<&[u8]>) {
        match self.ordered.get_mut() {
            Some(ordered) => drop(ordered.insert(key.into(), value.map(Box::from))),
            None => self.unordered.get_mut().unwrap_or_else(PoisonError::into_inner).push(key, value),
        }
    }

    fn ordered(&self) -> &Written {
        self.ordered.get_or_init(|| {
            let mut run = mem::take(&mut *self.unordered.lock().unwrap_or_else(PoisonError::into_inner));
            run.put_in_order();
            run.iter().map(|(key, value)| (key.into(), value.map(Box::from))).collect()
        })
    }

    fn each_in_order(self, mut see: impl FnMut(&[u8], Option<&[u8]>)) {
        match self.ordered.into_inner() {
            Some(ordered) => ordered.iter().for_each(|(key, value)| see(key, value.as_deref())),
            None => {
                let mut run = self.unordered.into_inner().unwrap_or_else(PoisonError::into_inner);
                run.put_in_order();
                run.iter().for_each(|(key, value)| see(key, value));
            }
        }
    }
}

impl Run {
    fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.entries.push(Entry { start: self.bytes.len(), key: key.len(), value: value.map(<[u8]>::len) });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
    }

    /// In the order of keys; of those with one key the last.
    fn put_in_order(&mut self) {
        let Self { bytes, entries } = self;
        let key = |entry: &Entry| entry.of(bytes).0;
        if entries.is_sorted_by(|a, b| key(a) < key(b)) {
            return;
        }
        // Stable, and of keys that are alike the last comes first.
        entries.reverse();
        entries.sort_by(|a, b| key(a).cmp(key(b)));
        entries.dedup_by(|entry, before| key(entry) == key(before));
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.entries.iter().map(|entry| entry.of(&self.bytes))
    }
}

impl Entry {
    fn of<'b>(&self, bytes: &'b [u8]) -> (&'b [u8], Option<&'b [u8]>) {
        let (key, rest) = bytes.get(self.start..).and_then(|from| from.split_at_checked(self.key)).unwrap_or_default();
        (key, self.value.and_then(|length| rest.get(..length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Owned = Vec<(Vec<u8>, Option<Vec<u8>>)>;

    fn owned<'w>(writes: impl Iterator<Item = (&'w [u8], Option<&'w [u8]>)>) -> Owned {
        writes.map(|(key, value)| (key.into(), value.map(<[u8]>::to_vec))).collect()
    }

    fn committed(noted: Noted) -> Owned {
        let mut found = Owned::new();
        noted.each_in_order(|key, value| found.extend(owned([(key, value)].into_iter())));
        found
    }

    #[test]
    fn writes_come_in_the_order_of_keys_and_the_last_of_a_key_stays() {
        let [a, b, c] = [&b"a"[..], b"b", b""];
        let writes =
            [(b, Some(&b"1"[..])), (a, Some(b"1")), (b, None), (c, Some(b"")), (a, Some(b"2")), (a, Some(b"3"))];
        for part in (0..=writes.len()).map(|length| &writes[..length]) {
            let expected = owned(BTreeMap::from_iter(part.iter().copied()).into_iter());
            // Put in order by a reader before any of them, too, or by none.
            for read_at in 0..=part.len() {
                let mut noted = Noted::default();
                for (at, (key, value)) in part.iter().enumerate() {
                    if at == read_at {
                        noted.ordered();
                    }
                    noted.write(key, *value);
                }
                if read_at < part.len() {
                    let read = noted.ordered().iter().map(|(key, value)| (&**key, value.as_deref()));
                    assert_eq!(owned(read), expected);
                }
                assert_eq!(committed(noted), expected);
            }
        }
    }
}
