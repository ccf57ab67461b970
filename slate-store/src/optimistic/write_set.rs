use std::{
    collections::BTreeMap,
    mem,
    sync::{Mutex, OnceLock, PoisonError},
};

use super::written::{Run, Written};
use crate::{Bounds, Change, Keyspace, OwnedBounds, Result, Write};

/// The uncommitted writes of a transaction.
#[derive(Default)]
pub(crate) struct WriteSet {
    keyspaces: BTreeMap<Keyspace, KeyspaceWrites>,
    /// Bytes of all keys and values that were written, including those that later writes replaced.
    bytes: usize,
}

/// The writes to one keyspace. They are sorted once, by the commit or by the first read.
#[derive(Default)]
pub(super) struct KeyspaceWrites {
    /// Locked only while the writes are sorted.
    unordered: Mutex<Run>,
    ordered: OnceLock<Written>,
    /// Deleted ranges. Deleting a range removes the writes in it, so those that are in it now were made later.
    deleted: Vec<OwnedBounds>,
}

/// Maximum number of writes that are passed to a store together: a few hundred kilobytes of pointers.
const MAX_TOGETHER: usize = 4096;

impl WriteSet {
    pub(crate) fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) {
        self.bytes = self.bytes.saturating_add(bytes(writes));
        self.keyspaces.entry(keyspace).or_default().write(writes);
    }

    pub(crate) fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) {
        if !bounds.is_empty() {
            self.keyspaces.entry(keyspace).or_default().delete_range(bounds);
        }
    }

    /// Returns the writes to a keyspace, if there are any.
    pub(super) fn of(&self, keyspace: Keyspace) -> Option<&KeyspaceWrites> {
        self.keyspaces.get(&keyspace)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keyspaces.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of written keys and deleted ranges.
    pub(super) fn len(&self) -> usize {
        self.keyspaces.values().map(|writes| writes.written().len() + writes.deleted.len()).sum()
    }

    /// Calls `apply` with all writes: keyspace by keyspace, the last keyspace first, in ascending order of keys.
    ///
    /// The order of keyspaces matters to redb, which writes the pages of a commit to the lowest free places of its file. Indexes have higher
    /// numbers than their records. So they fill the places of their replaced pages, and the records, which are most of the new pages, follow one
    /// another. Scans then read longer parts of the file at once.
    pub(crate) fn each(&self, mut apply: impl FnMut(Keyspace, Change<'_>) -> Result<()>) -> Result<()> {
        let mut together = Vec::new();
        for (keyspace, writes) in self.keyspaces.iter().rev() {
            for range in &writes.deleted {
                apply(*keyspace, Change::DeleteRange(range.bounds()))?;
            }
            let mut all = writes.written().iter();
            loop {
                together.clear();
                together.extend(all.by_ref().take(MAX_TOGETHER));
                if together.is_empty() {
                    break;
                }
                apply(*keyspace, Change::Writes(&together))?;
            }
        }
        Ok(())
    }
}

pub(super) fn bytes(writes: &[Write<'_>]) -> usize {
    writes.iter().map(|(key, value)| key.len() + value.map_or(0, <[u8]>::len)).sum()
}

impl KeyspaceWrites {
    fn write(&mut self, writes: &[Write<'_>]) {
        match self.ordered.get_mut() {
            Some(written) => writes.iter().for_each(|(key, value)| written.write(key, *value)),
            None => {
                let run = self.unordered.get_mut().unwrap_or_else(PoisonError::into_inner);
                run.reserve(writes);
                writes.iter().for_each(|(key, value)| run.push(key, *value));
            }
        }
    }

    fn delete_range(&mut self, bounds: Bounds<'_>) {
        let mut written = self.take();
        written.remove(bounds);
        self.ordered = OnceLock::from(written);
        self.deleted.push(OwnedBounds::of(bounds));
    }

    /// Returns the writes in key order, each key once. Sorts them if necessary.
    pub(super) fn written(&self) -> &Written {
        self.ordered.get_or_init(|| {
            let run = mem::take(&mut *self.unordered.lock().unwrap_or_else(PoisonError::into_inner));
            Written::Run(run.put_in_order())
        })
    }

    fn take(&mut self) -> Written {
        self.written();
        self.ordered.take().unwrap_or_default()
    }

    pub(super) fn deleted(&self) -> &[OwnedBounds] {
        &self.deleted
    }

    /// Returns a range that contains the key and within which the transaction deleted every key of its snapshot; `None` if there is none.
    pub(super) fn deletes(&self, key: &[u8]) -> Option<Bounds<'_>> {
        self.deleted.iter().map(OwnedBounds::bounds).find(|bounds| bounds.contains(key))
    }

    /// Returns the value that the transaction wrote; the inner `None` if it deleted the key, the outer one if it did not write it.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.written().get(key).or_else(|| self.deletes(key).map(|_| None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Owned = Vec<(Vec<u8>, Option<Vec<u8>>)>;

    fn owned<'w>(writes: impl Iterator<Item = Write<'w>>) -> Owned {
        writes.map(|(key, value)| (key.into(), value.map(<[u8]>::to_vec))).collect()
    }

    #[test]
    fn writes_are_sorted_by_key_and_the_last_write_to_a_key_remains() {
        const A: Keyspace = Keyspace(1);
        let [a, b, c] = [&b"a"[..], b"b", b""];
        let writes =
            [(b, Some(&b"1"[..])), (a, Some(b"1")), (b, None), (c, Some(b"")), (a, Some(b"2")), (a, Some(b"3"))];
        for part in (0..=writes.len()).map(|length| &writes[..length]) {
            let expected = owned(BTreeMap::from_iter(part.iter().copied()).into_iter());
            // A read sorts the writes before the one at `read_at`; in the last round nothing is read.
            for read_at in 0..=part.len() {
                let mut set = WriteSet::default();
                for (at, write) in part.iter().enumerate() {
                    if at == read_at {
                        set.of(A).map(KeyspaceWrites::written);
                    }
                    set.write(A, &[*write]);
                }
                let mut found = Owned::new();
                set.each(|_, change| {
                    if let Change::Writes(writes) = change {
                        found.extend(owned(writes.iter().copied()));
                    }
                    Ok(())
                })
                .unwrap();
                assert_eq!(found, expected);
            }
        }
    }
}
