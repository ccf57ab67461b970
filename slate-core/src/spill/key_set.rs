use ahash::RandomState;
use hashbrown::HashTable;

use super::{memory::Memory, sorter::Sorter};
use crate::{Result, interrupt::Interrupt};

/// Keys already seen: a hash table over keys that lie end to end in one buffer. They are compared as bytes, never by
/// their hash alone.
///
/// It is asked before each key whether it [is full](Self::is_full). Once it is, [`overflow`](Self::overflow) takes what
/// it holds and all keys that are still to come, and hands those back that are new, each once and in the order in which
/// they first came.
pub(crate) struct KeySet {
    memory: Memory,
    bytes: Vec<u8>,
    /// Where in `bytes` each key begins, its length in front.
    places: HashTable<usize>,
    hasher: RandomState,
}

impl KeySet {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { memory, bytes: Vec::new(), places: HashTable::new(), hasher: RandomState::new() }
    }

    /// Adds a key; whether it was not there.
    pub(crate) fn insert(&mut self, key: &[u8]) -> Result<bool> {
        let Self { bytes, places, hasher, .. } = self;
        let hash = hasher.hash_one(key);
        if places.find(hash, |&place| key_at(bytes, place) == key).is_some() {
            return Ok(false);
        }
        let place = bytes.len();
        // No key of a record is longer than 2,000 bytes.
        bytes.extend_from_slice(&u32::try_from(key.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(key);
        places.insert_unique(hash, place, |&place| hasher.hash_one(key_at(bytes, place)));
        Ok(true)
    }

    /// Whether it holds as much as it may.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() + self.places.allocation_size() > self.memory.limit()
    }

    /// Hands over to an external set. All keys that are here count as seen.
    pub(crate) fn overflow(self) -> Result<KeyOverflow> {
        // Two sorters work at once at the end, and none of them before the table is gone.
        let memory = self.memory.shared_by(2);
        let mut sorter = Sorter::new(memory.clone(), u64::MAX);
        let mut keys: Vec<&[u8]> = self.places.iter().map(|&place| key_at(&self.bytes, place)).collect();
        keys.sort_unstable();
        sorter.push_run(|run| keys.iter().try_for_each(|key| run.add(key, &SEEN, &[])))?;
        Ok(KeyOverflow { memory, sorter, pushed: 0 })
    }
}

/// The number of the keys that were seen before any was pushed.
const SEEN: [u8; 8] = 0_u64.to_be_bytes();

fn key_at(bytes: &[u8], place: usize) -> &[u8] {
    let Some((length, rest)) = bytes.get(place..).and_then(<[u8]>::split_first_chunk::<4>) else { return &[] };
    usize::try_from(u32::from_le_bytes(*length)).ok().and_then(|length| rest.get(..length)).unwrap_or_default()
}

/// Finds, of more keys than memory holds, each one's first: sorted by key and number, the first of a key is known; sorted
/// by number again, those come in their order.
pub(crate) struct KeyOverflow {
    memory: Memory,
    /// By key, then by number.
    sorter: Sorter,
    pushed: u64,
}

impl KeyOverflow {
    /// Adds a key. Keys are self-delimiting: none is a proper prefix of another.
    pub(crate) fn push(&mut self, key: &[u8]) -> Result<()> {
        self.pushed += 1;
        self.sorter.push(key, &self.pushed.to_be_bytes(), &[])
    }

    /// The keys that were pushed and not seen before, in the order of their first push: the payloads of the sorter's
    /// rows. What was written on the way counts as the sorter's.
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
            let held = last.get_or_insert_default();
            held.clear();
            held.extend_from_slice(row.sort_key());
            if row.tie_key() != SEEN {
                ordered.push(row.tie_key(), &[], row.sort_key())?;
            }
        }
        ordered.finish(interrupt)?;
        ordered.count(self.sorter.spilled());
        Ok(ordered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_outgrow_memory_come_once_each_and_in_the_order_of_their_first() {
        // Some repeat what was seen in memory, some repeat each other.
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
    fn a_key_is_told_from_another_by_its_bytes() {
        let mut set = KeySet::new(Memory::default());
        assert!(set.insert(b"a").unwrap());
        assert!(set.insert(b"").unwrap());
        assert!(set.insert(b"a\0").unwrap());
        assert!(!set.insert(b"a").unwrap());
        assert!(!set.insert(b"").unwrap());
    }
}
