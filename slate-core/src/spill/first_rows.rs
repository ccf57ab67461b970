use ahash::RandomState;
use hashbrown::HashTable;

use super::{memory::Memory, sorter::Sorter};
use crate::Result;

/// Finds the row with the least tie key of each sort key.
///
/// A hash table over the rows in memory rejects most other rows when they are pushed. The accepted rows are sorted. A key's
/// first row comes first in the result; other rows of the key may follow it.
pub(crate) struct FirstRows {
    memory: Memory,
    sorter: Sorter,
    /// The least row so far of each sort key in memory.
    least: HashTable<LeastRow>,
    hasher: RandomState,
}

/// A row in the sorter's memory.
struct LeastRow {
    /// Hash of its sort key.
    hash: u64,
    /// Number of the row in the sorter.
    number: usize,
}

impl FirstRows {
    pub(crate) fn new(memory: Memory) -> Self {
        let sorter = Sorter::new(memory.clone(), u64::MAX);
        Self { memory, sorter, least: HashTable::new(), hasher: RandomState::new() }
    }

    /// Adds a row if it may be the first of its key, and returns whether it was added. `payload` is called only then.
    pub(crate) fn push<'p>(
        &mut self,
        sort_key: &[u8],
        tie_key: &[u8],
        payload: impl FnOnce() -> &'p [u8],
    ) -> Result<bool> {
        let Self { sorter, least, hasher, .. } = self;
        let hash = hasher.hash_one(sort_key);
        let number = sorter.rows_in_memory();
        let mut comes_first = true;
        let is_of_key = |row: &LeastRow| {
            if row.hash != hash {
                return false;
            }
            let first = sorter.pushed_row(row.number).filter(|first| first.sort_key() == sort_key);
            comes_first = first.is_none_or(|first| tie_key < first.tie_key());
            first.is_some()
        };
        match least.find_mut(hash, is_of_key) {
            Some(_) if !comes_first => return Ok(false),
            Some(first) => first.number = number,
            None => {
                least.insert_unique(hash, LeastRow { hash, number }, |row| row.hash);
            }
        }
        self.sorter.push(sort_key, tie_key, payload())?;
        if self.sorter.memory_used() + self.least.allocation_size() > self.memory.limit() {
            self.sorter.spill()?;
        }
        if self.sorter.rows_in_memory() == 0 {
            self.least = HashTable::new();
        }
        Ok(true)
    }

    /// Returns the sorter with the rows, not yet [finished](Sorter::finish).
    pub(crate) fn into_sorter(self) -> Sorter {
        self.sorter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;

    #[test]
    fn the_least_row_of_each_key_comes_first_at_every_memory_limit() {
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
