use ahash::RandomState;
use hashbrown::HashTable;

use super::{memory::Memory, sorter::Sorter};
use crate::Result;

/// Finds, of the rows of each sort key, the one with the least tie key.
///
/// A hash table knows the rows that memory holds by their sort keys, so that most of those that are not the first are never
/// taken in. What is taken in is sorted: a key's first row comes first there, and others of the key may follow it.
pub(crate) struct FirstRows {
    memory: Memory,
    sorter: Sorter,
    /// Of each key that the sorter holds, the first row.
    known: HashTable<Known>,
    hasher: RandomState,
}

/// A row that the sorter holds.
struct Known {
    /// Of its sort key.
    hash: u64,
    number: usize,
}

impl FirstRows {
    pub(crate) fn new(memory: Memory) -> Self {
        let sorter = Sorter::new(memory.clone(), u64::MAX);
        Self { memory, sorter, known: HashTable::new(), hasher: RandomState::new() }
    }

    /// Adds a row where it may be the first of its key, and asks for what it carries only then; whether it was added.
    pub(crate) fn push<'p>(
        &mut self,
        sort_key: &[u8],
        tie_key: &[u8],
        payload: impl FnOnce() -> &'p [u8],
    ) -> Result<bool> {
        let Self { sorter, known, hasher, .. } = self;
        let hash = hasher.hash_one(sort_key);
        let number = sorter.held();
        let mut comes_first = true;
        let is_of_key = |row: &Known| {
            if row.hash != hash {
                return false;
            }
            let first = sorter.pushed(row.number).filter(|first| first.sort_key() == sort_key);
            comes_first = first.is_none_or(|first| tie_key < first.tie_key());
            first.is_some()
        };
        match known.find_mut(hash, is_of_key) {
            Some(_) if !comes_first => return Ok(false),
            Some(first) => first.number = number,
            None => {
                known.insert_unique(hash, Known { hash, number }, |row| row.hash);
            }
        }
        self.sorter.push(sort_key, tie_key, payload())?;
        if self.sorter.held_bytes() + self.known.allocation_size() > self.memory.limit() {
            self.sorter.spill()?;
        }
        if self.sorter.held() == 0 {
            self.known = HashTable::new();
        }
        Ok(true)
    }

    /// The rows, yet to be [finished](Sorter::finish).
    pub(crate) fn into_sorter(self) -> Sorter {
        self.sorter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;

    #[test]
    fn the_first_row_of_each_key_comes_first_whatever_the_memory() {
        let rows: Vec<([u8; 1], [u8; 2])> = (0..3_000_u16)
            .map(|n| n.wrapping_mul(40_503))
            .map(|n| ([n.to_le_bytes()[0] % 67], n.to_be_bytes()))
            .collect();
        let right: Vec<_> =
            (0..67).map(|key| rows.iter().filter(|(sort_key, _)| *sort_key == [key]).min().unwrap()).collect();
        for limit in [0, 2_000, 1 << 20] {
            let mut first = FirstRows::new(Memory::default().limited(Some(limit)));
            for (sort_key, tie_key) in &rows {
                first.push(sort_key, tie_key, || tie_key).unwrap();
            }
            let mut sorter = first.into_sorter();
            sorter.finish(&mut Interrupt::default()).unwrap();
            let mut firsts: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let mut read = 0;
            while sorter.advance().unwrap() {
                let row = sorter.current().unwrap();
                assert_eq!(row.payload, row.tie_key());
                read += 1;
                if firsts.last().is_none_or(|(last, _)| last != row.sort_key()) {
                    firsts.push((row.sort_key().into(), row.tie_key().into()));
                }
            }
            assert!(firsts.iter().map(|(a, b)| (&a[..], &b[..])).eq(right.iter().map(|(a, b)| (&a[..], &b[..]))));
            assert_eq!(sorter.spilled().runs > 0, limit < 1 << 20, "limit {limit}");
            assert!(limit == 0 || read < 3_000, "limit {limit}: {read}");
        }
    }
}
