use std::{
    collections::BTreeMap,
    mem,
    sync::{Mutex, OnceLock, PoisonError},
};

use ::rocksdb::WriteBatch;

use super::{
    key::Prefixed,
    written::{Run, Written},
};
use crate::Keyspace;

/// The write buffer of a transaction.
#[derive(Default)]
pub(super) struct WriteBuffer {
    keyspaces: BTreeMap<Keyspace, KeyspaceWrites>,
    /// Approximate size of RocksDB's write batch in bytes.
    bytes: usize,
}

/// The writes to one keyspace. They are sorted at once, by the commit or by the first reader.
#[derive(Default)]
struct KeyspaceWrites {
    /// Locked only while the writes are sorted.
    unordered: Mutex<Run>,
    ordered: OnceLock<Written>,
}

/// Approximate bytes that RocksDB adds to a key and a value.
const OVERHEAD: usize = 16;

impl WriteBuffer {
    /// Puts `value`, or deletes the key if there is none.
    pub(super) fn write(&mut self, keyspace: Keyspace, key: &[u8], value: Option<&[u8]>) {
        self.bytes += key.len() + value.map_or(0, <[u8]>::len) + OVERHEAD;
        self.keyspaces.entry(keyspace).or_default().write(key, value);
    }

    /// Returns the writes to a keyspace, if there are any.
    pub(super) fn of(&self, keyspace: Keyspace) -> Option<&Written> {
        self.keyspaces.get(&keyspace).map(KeyspaceWrites::ordered)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keyspaces.is_empty()
    }

    pub(super) fn keyspaces(&self) -> impl Iterator<Item = Keyspace> {
        self.keyspaces.keys().copied()
    }

    /// Converts everything to one write batch in key order, which RocksDB inserts fastest. `visit` is called with each
    /// key.
    pub(super) fn into_batch(self, mut visit: impl FnMut(Keyspace, &[u8])) -> WriteBatch {
        let mut batch = WriteBatch::with_capacity_bytes(self.bytes);
        for (keyspace, writes) in self.keyspaces {
            let mut prefixed = Prefixed::new(keyspace);
            writes.each_in_order(|key, value| {
                visit(keyspace, key);
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

impl KeyspaceWrites {
    fn write(&mut self, key: &[u8], value: Option<&[u8]>) {
        match self.ordered.get_mut() {
            Some(written) => written.write(key, value),
            None => self.unordered.get_mut().unwrap_or_else(PoisonError::into_inner).push(key, value),
        }
    }

    fn ordered(&self) -> &Written {
        self.ordered.get_or_init(|| {
            let run = mem::take(&mut *self.unordered.lock().unwrap_or_else(PoisonError::into_inner));
            Written::Run(run.put_in_order())
        })
    }

    fn each_in_order(self, mut visitor: impl FnMut(&[u8], Option<&[u8]>)) {
        self.ordered();
        let written = self.ordered.into_inner();
        written.iter().flat_map(Written::iter).for_each(|(key, value)| visitor(key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::{super::written::Write, *};

    type Owned = Vec<(Vec<u8>, Option<Vec<u8>>)>;

    fn owned<'w>(writes: impl Iterator<Item = Write<'w>>) -> Owned {
        writes.map(|(key, value)| (key.into(), value.map(<[u8]>::to_vec))).collect()
    }

    fn committed(writes: KeyspaceWrites) -> Owned {
        let mut found = Owned::new();
        writes.each_in_order(|key, value| found.extend(owned([(key, value)].into_iter())));
        found
    }

    #[test]
    fn writes_are_sorted_by_key_and_the_last_write_to_a_key_remains() {
        let [a, b, c] = [&b"a"[..], b"b", b""];
        let writes =
            [(b, Some(&b"1"[..])), (a, Some(b"1")), (b, None), (c, Some(b"")), (a, Some(b"2")), (a, Some(b"3"))];
        for part in (0..=writes.len()).map(|length| &writes[..length]) {
            let expected = owned(BTreeMap::from_iter(part.iter().copied()).into_iter());
            // A read sorts the writes before the one at `read_at`; in the last round nothing is read.
            for read_at in 0..=part.len() {
                let mut writes = KeyspaceWrites::default();
                for (at, (key, value)) in part.iter().enumerate() {
                    if at == read_at {
                        writes.ordered();
                    }
                    writes.write(key, *value);
                }
                if read_at < part.len() {
                    assert_eq!(owned(writes.ordered().iter()), expected);
                }
                assert_eq!(committed(writes), expected);
            }
        }
    }
}
