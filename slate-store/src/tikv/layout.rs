//! The keys of a database in the cluster.
//!
//! ```text
//! m slate NUL database NUL │ area │ keyspace, 4 bytes │ …
//!                            d      entries:  the key
//!                            g      stripes of guarded keys:  the key, its length (4 bytes), the number of the stripe (1 byte)
//!                            v      chunks of large values:  timestamp (8), number in the transaction (4), number of the chunk (4)
//!                            s      the safepoint, only beneath the empty name: it is the cluster's
//! ```
//!
//! All keys begin with `m`, which orders them before the tables of TiDB and among its definitions; the prefix `slate` distinguishes them.

use crate::{Bounds, Keyspace};

/// The keys of one database.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    prefix: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    Entries,
    Stripes,
    Chunks,
    Safepoint,
}

impl Area {
    fn byte(self) -> u8 {
        match self {
            Self::Entries => b'd',
            Self::Stripes => b'g',
            Self::Chunks => b'v',
            Self::Safepoint => b's',
        }
    }
}

/// Where the chunks of a large value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunksAt {
    /// The timestamp at which the transaction that wrote them began.
    pub(super) began: u64,
    /// The number of the value among the large values of that transaction.
    pub(super) number: u32,
}

impl Layout {
    pub(super) fn of(database: &str) -> Self {
        let mut prefix = b"mslate\0".to_vec();
        prefix.extend_from_slice(database.as_bytes());
        prefix.push(0);
        Self { prefix }
    }

    fn area(&self, area: Area, keyspace: Keyspace, room: usize) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.prefix.len() + 5 + room);
        key.extend_from_slice(&self.prefix);
        key.push(area.byte());
        key.extend_from_slice(&keyspace.0.to_be_bytes());
        key
    }

    pub(super) fn entry(&self, keyspace: Keyspace, key: &[u8]) -> Vec<u8> {
        let mut at = self.area(Area::Entries, keyspace, key.len());
        at.extend_from_slice(key);
        at
    }

    pub(super) fn stripe(&self, keyspace: Keyspace, key: &[u8], stripe: u8) -> Vec<u8> {
        let mut at = self.area(Area::Stripes, keyspace, key.len() + 5);
        at.extend_from_slice(key);
        // Keys are far shorter than four gigabytes.
        at.extend_from_slice(&u32::try_from(key.len()).unwrap_or(u32::MAX).to_be_bytes());
        at.push(stripe);
        at
    }

    pub(super) fn chunk(&self, keyspace: Keyspace, at: ChunksAt, chunk: u32) -> Vec<u8> {
        let mut key = self.area(Area::Chunks, keyspace, 16);
        key.extend_from_slice(&at.began.to_be_bytes());
        key.extend_from_slice(&at.number.to_be_bytes());
        key.extend_from_slice(&chunk.to_be_bytes());
        key
    }

    /// Returns the key of the safepoint, which all databases of the cluster share: it is among the keys of a database with an empty name.
    pub(super) fn safepoint() -> Vec<u8> {
        Self::of("").area(Area::Safepoint, Keyspace(0), 0)
    }

    /// Returns the range of all keys of a keyspace in an area: the first key, included, and the end, excluded.
    pub(super) fn all(&self, area: Area, keyspace: Keyspace) -> (Vec<u8>, Vec<u8>) {
        let start = self.area(area, keyspace, 0);
        let end = match keyspace.0.checked_add(1) {
            Some(next) => self.area(area, Keyspace(next), 0),
            None => {
                let mut end = self.prefix.clone();
                end.push(area.byte() + 1);
                end
            }
        };
        (start, end)
    }

    /// Returns the range of stored keys for the entries within bounds; `None` if it is empty.
    pub(super) fn range(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
        if bounds.is_empty() {
            return None;
        }
        let (first, last) = self.all(Area::Entries, keyspace);
        let start = bounds.start.map_or(first, |start| self.entry(keyspace, start));
        let end = bounds.end.map_or(last, |end| self.entry(keyspace, end));
        Some((start, end))
    }

    /// Returns the keyspace and the key of a stored entry, or of the guarded key that the stripe `at` belongs to; `None` for any other
    /// stored key.
    pub(super) fn read<'k>(&self, at: &'k [u8]) -> Option<(Keyspace, &'k [u8])> {
        let (area, rest) = at.strip_prefix(&*self.prefix)?.split_first()?;
        let (keyspace, key) = rest.split_first_chunk()?;
        let keyspace = Keyspace(u32::from_be_bytes(*keyspace));
        match *area {
            b'd' => Some((keyspace, key)),
            b'g' => Some((keyspace, key.get(..key.len().checked_sub(5)?)?)),
            _ => None,
        }
    }

    /// Returns the number of the stripe at a stored key; `None` for any other stored key.
    pub(super) fn read_stripe(&self, at: &[u8]) -> Option<u8> {
        let area = at.strip_prefix(&*self.prefix)?.first()?;
        if *area == b'g' { at.last().copied() } else { None }
    }

    /// Returns the length in bytes of the prefix before an entry's key.
    pub(super) fn entry_prefix(&self) -> usize {
        self.prefix.len() + 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_keyspace_are_in_its_range_in_order_and_are_read_back() {
        let layout = Layout::of("shop");
        for keyspace in [Keyspace(0), Keyspace(7), Keyspace(u32::MAX)] {
            let (start, end) = layout.range(keyspace, Bounds::ALL).unwrap();
            let keys: Vec<Vec<u8>> =
                [&b""[..], b"\0", b"a", b"ab", b"\xff\xff"].map(|key| layout.entry(keyspace, key)).into();
            assert!(keys.is_sorted() && keys.iter().all(|key| *key >= start && *key < end));
            assert!(keys.iter().all(|key| key.starts_with(b"m")), "the test cluster rewrites keys that begin with t");
            assert_eq!(layout.read(keys.last().unwrap()), Some((keyspace, &b"\xff\xff"[..])));
            assert_eq!(layout.read(&layout.stripe(keyspace, b"ab", 3)), Some((keyspace, &b"ab"[..])));
            let (start, end) = layout.range(keyspace, Bounds { start: Some(b"a"), end: Some(b"b") }).unwrap();
            assert_eq!(keys.iter().filter(|key| (&start..&end).contains(key)).count(), 2);
        }
        assert!(layout.range(Keyspace(1), Bounds { start: Some(b"b"), end: Some(b"a") }).is_none());
        assert_ne!(layout.stripe(Keyspace(1), b"", 1), layout.stripe(Keyspace(1), b"\0\0\0\0\x01", 1));
        assert_eq!(layout.read_stripe(&layout.stripe(Keyspace(1), b"k", 9)), Some(9));
        assert_eq!(layout.read_stripe(&layout.entry(Keyspace(1), b"k")), None);
        let other = Layout::of("shop2");
        assert_eq!(other.read(&layout.entry(Keyspace(1), b"a")), None, "databases are apart");
        assert_eq!(layout.read(&Layout::safepoint()), None, "no database has it");
    }
}
