use ahash::RandomState;
use hashbrown::HashTable;
use slate_query::work;

use super::{counted_sort::SORTED_AT_ONCE, memory::Memory, sorter::Sorter};
use crate::{Result, interrupt::Interrupt};

/// A set of keys in memory: a hash table over keys stored in one buffer. Keys are compared by their bytes, never by
/// their hash alone.
///
/// Callers must check [`is_full`](Self::is_full) before each key. When the set is full, [`overflow`](Self::overflow) turns
/// it into a [`KeyOverflow`] for all remaining keys.
pub(crate) struct KeySet {
    memory: Memory,
    bytes: Vec<u8>,
    /// Offset of each key in `bytes`, where its length precedes it.
    offsets: HashTable<usize>,
    hasher: RandomState,
}

impl KeySet {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { memory, bytes: Vec::new(), offsets: HashTable::new(), hasher: RandomState::new() }
    }

    /// Adds a key; returns whether it is new.
    pub(crate) fn insert(&mut self, key: &[u8]) -> Result<bool> {
        let Self { bytes, offsets, hasher, .. } = self;
        let hash = hasher.hash_one(key);
        if offsets.find(hash, |&offset| key_at(bytes, offset) == key).is_some() {
            return Ok(false);
        }
        let offset = bytes.len();
        // Record keys have at most 2,000 bytes.
        bytes.extend_from_slice(&u32::try_from(key.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(key);
        offsets.insert_unique(hash, offset, |&offset| hasher.hash_one(key_at(bytes, offset)));
        Ok(true)
    }

    /// Returns whether the set has reached its memory limit.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() + self.offsets.allocation_size() > self.memory.limit()
    }

    /// Writes the keys to a file as sorted runs. They count as seen: equal keys that follow are repetitions.
    pub(crate) fn overflow(self) -> Result<KeyOverflow> {
        // `KeyOverflow::finish` uses two sorters at the same time, after this set has been freed.
        let memory = self.memory.shared_by(2);
        let mut sorter = Sorter::new(memory.clone(), u64::MAX);
        let (mut offsets, mut keys) = (self.offsets.iter(), Vec::new());
        loop {
            keys.clear();
            keys.extend(offsets.by_ref().take(SORTED_AT_ONCE).map(|&offset| key_at(&self.bytes, offset)));
            if keys.is_empty() {
                break;
            }
            work::take(keys.len())?;
            keys.sort_unstable();
            sorter.push_run(&keys, &SEEN)?;
        }
        Ok(KeyOverflow { memory, sorter, pushed: 0 })
    }
}

/// The tie key of all keys that were in the set when it overflowed. It is below the numbers, from one, of the keys that
/// are pushed later, so that among equal keys it comes first and the later ones are known as repetitions.
const SEEN: [u8; 8] = 0_u64.to_be_bytes();

fn key_at(bytes: &[u8], offset: usize) -> &[u8] {
    let Some((length, rest)) = bytes.get(offset..).and_then(<[u8]>::split_first_chunk::<4>) else { return &[] };
    usize::try_from(u32::from_le_bytes(*length)).ok().and_then(|length| rest.get(..length)).unwrap_or_default()
}

/// Removes repeated keys from more keys than fit in memory. Sorts the keys by key and number, which brings the first
/// occurrence of each key to the front, and sorts the first occurrences by number to restore their order.
pub(crate) struct KeyOverflow {
    memory: Memory,
    /// Sorts by key, then by number.
    sorter: Sorter,
    pushed: u64,
}

impl KeyOverflow {
    /// Adds a key. No key may be a proper prefix of another.
    pub(crate) fn push(&mut self, key: &[u8]) -> Result<()> {
        self.pushed += 1;
        self.sorter.push(key, &self.pushed.to_be_bytes(), &[])
    }

    /// Returns the pushed keys that were not seen before, each once, in the order of their first push, as the payloads of a
    /// sorter. Its spill counts include the first sort.
    pub(crate) fn finish(mut self, interrupt: &mut Interrupt) -> Result<Sorter> {
        self.sorter.finish(interrupt)?;
        let mut ordered = Sorter::new(self.memory, u64::MAX);
        let mut last: Option<Vec<u8>> = None;
        while self.sorter.advance()? {
            interrupt.tick()?;
            let Some(row) = self.sorter.current() else { break };
            if last.as_deref() == Some(row.sort_key()) {
                continue;
            }
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(row.sort_key());
            if row.tie_key() != SEEN {
                ordered.push(row.tie_key(), &[], row.sort_key())?;
            }
        }
        ordered.finish(interrupt)?;
        ordered.add_spilled(self.sorter.spilled());
        Ok(ordered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_beyond_memory_are_returned_once_in_the_order_of_their_first_occurrence() {
        // Some keys repeat keys in memory, some repeat each other.
        let keys: Vec<[u8; 4]> =
            (0..5_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) % 1_777).to_be_bytes()).collect();
        let mut right: Vec<[u8; 4]> = Vec::new();
        for key in &keys {
            if !right.contains(key) {
                right.push(*key);
            }
        }
        for limit in [0, 1_000, 20_000] {
            let mut set = KeySet::new(Memory::default().limited(Some(limit)));
            let mut read = Vec::new();
            let mut left = keys.iter();
            while !set.is_full() {
                let key = left.next().unwrap();
                if set.insert(key).unwrap() {
                    read.push(*key);
                }
            }
            let mut overflow = set.overflow().unwrap();
            for key in left {
                overflow.push(key).unwrap();
            }
            let mut rest = overflow.finish(&mut Interrupt::default()).unwrap();
            while rest.advance().unwrap() {
                read.push(rest.current().unwrap().payload.try_into().unwrap());
            }
            assert!(read == right, "limit {limit}");
            assert!(rest.spilled().runs > 0);
        }
    }

    #[test]
    fn keys_that_are_prefixes_of_each_other_are_different() {
        let mut set = KeySet::new(Memory::default());
        assert!(set.insert(b"a").unwrap());
        assert!(set.insert(b"").unwrap());
        assert!(set.insert(b"a\0").unwrap());
        assert!(!set.insert(b"a").unwrap());
        assert!(!set.insert(b"").unwrap());
    }
}
