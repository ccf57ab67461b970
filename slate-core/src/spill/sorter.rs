use std::sync::Arc;

use super::{
    arena::Arena,
    memory::{Memory, Spilled},
    merge::Merge,
    row::Row,
    runs::Runs,
};
use crate::{Result, interrupt::Interrupt};

/// Orders rows by their keys: all of them, or the least so many.
///
/// Rows are pushed, [`finish`](Self::finish) sorts them, and [`advance`](Self::advance) lends them one by one;
/// [`clear`](Self::clear) begins anew with the same buffers. Where memory is full, what is held is sorted and written as
/// a run; the runs are merged when they are read.
///
/// For the least so many, up to twice as many rows are held before the greater half is dropped: the greatest that
/// is kept then turns rows away before they are copied. In all that costs less than a heap, whose rows move one by one.
pub(crate) struct Sorter {
    memory: Memory,
    most: u64,
    arena: Arena,
    bound: Option<Bound>,
    runs: Option<Runs>,
    output: Output,
    spilled: Spilled,
}

/// Keys from this one on are not among the least.
#[derive(Default)]
struct Bound {
    sort_key: Vec<u8>,
    tie_key: Vec<u8>,
    /// Whether nobody was told of it yet.
    is_new: bool,
}

/// Takes the rows of one run.
pub(crate) struct RunWriter<'s> {
    runs: &'s mut Runs,
    key: Vec<u8>,
}

impl RunWriter<'_> {
    /// Adds a row: as [`Sorter::push`] has it, and not before the row added last.
    pub(crate) fn add(&mut self, sort_key: &[u8], tie_key: &[u8], payload: &[u8]) -> Result<()> {
        self.key.clear();
        self.key.extend_from_slice(sort_key);
        self.key.extend_from_slice(tie_key);
        self.runs.add(Row { key: &self.key, split: sort_key.len(), payload })
    }
}

enum Output {
    /// Nothing yet: rows are pushed.
    None,
    /// The arena's rows; the number of the one lent last.
    Arena(Option<usize>),
    /// The runs' rows, and how many may still be lent.
    Merge(Box<Merge>, u64),
}

/// However few rows are wanted, the rows held are not looked through for fewer than this many.
const LEAST_HELD: usize = 32;

/// So many rows before it is lent, a row is asked for: sorted, they lie all over memory.
const AHEAD: usize = 16;

impl Sorter {
    /// Of the rows to be pushed, `most` are wanted.
    pub(crate) fn new(memory: Memory, most: u64) -> Self {
        let (arena, spilled) = (memory.take_spare(), Spilled::default());
        Self { memory, most, arena, bound: None, runs: None, output: Output::None, spilled }
    }

    /// Forgets the rows, for others of which `most` are wanted.
    pub(crate) fn clear(&mut self, most: u64) {
        self.most = most;
        self.arena.clear();
        self.bound = None;
        self.runs = None;
        self.output = Output::None;
    }

    /// Adds a row, ordered by `sort_key` and then by `tie_key`. No sort key is a proper prefix of another.
    pub(crate) fn push(&mut self, sort_key: &[u8], tie_key: &[u8], payload: &[u8]) -> Result<()> {
        if !self.wants(sort_key, tie_key) {
            return Ok(());
        }
        self.arena.push(sort_key, tie_key, payload, self.memory.limit())?;
        self.make_room()
    }

    /// Adds a row, as [`push`](Self::push) does, whose payload is held and not copied.
    pub(crate) fn push_shared(&mut self, sort_key: &[u8], tie_key: &[u8], payload: Arc<[u8]>) -> Result<()> {
        if !self.wants(sort_key, tie_key) {
            return Ok(());
        }
        self.arena.push_shared(sort_key, tie_key, payload, self.memory.limit())?;
        self.make_room()
    }

    /// Rows with a greater sort key than this are not wanted: told once, when that has become known.
    #[inline]
    pub(crate) fn new_bound(&mut self) -> Option<&[u8]> {
        let bound = self.bound.as_mut()?;
        std::mem::take(&mut bound.is_new).then_some(&bound.sort_key)
    }

    /// Whether a row may still be among those that are wanted.
    #[inline]
    pub(crate) fn wants(&self, sort_key: &[u8], tie_key: &[u8]) -> bool {
        match &self.bound {
            Some(bound) => (sort_key, tie_key) < (&bound.sort_key, &bound.tie_key),
            None => true,
        }
    }

    /// Makes room, where that is needed.
    fn make_room(&mut self) -> Result<()> {
        let most = usize::try_from(self.most).unwrap_or(usize::MAX);
        if self.arena.len() >= most.max(LEAST_HELD).saturating_mul(2) {
            self.drop_greatest(most);
        }
        if self.arena.size() > self.memory.limit() {
            self.drop_greatest(most);
            // What is left in less than half of the memory need not leave it.
            if self.arena.size() > self.memory.limit() / 2 {
                self.spill()?;
            }
        }
        Ok(())
    }

    fn drop_greatest(&mut self, most: usize) {
        if self.arena.len() <= most {
            return;
        }
        self.arena.keep_least(most);
        if let Some(greatest) = most.checked_sub(1).and_then(|last| self.arena.get(last)) {
            let Bound { sort_key, tie_key, is_new } = self.bound.get_or_insert_default();
            sort_key.clear();
            sort_key.extend_from_slice(greatest.sort_key());
            tie_key.clear();
            tie_key.extend_from_slice(greatest.tie_key());
            *is_new = true;
        }
    }

    /// How many rows memory holds.
    pub(super) fn held(&self) -> usize {
        self.arena.len()
    }

    /// What those take.
    pub(super) fn held_bytes(&self) -> usize {
        self.arena.size()
    }

    /// A row that memory holds, by its number in the order of pushes: to be asked for before [`finish`](Self::finish), and
    /// where all rows are wanted.
    #[inline]
    pub(super) fn pushed(&self, number: usize) -> Option<Row<'_>> {
        self.arena.numbered(number)
    }

    /// Writes what is held as a run.
    pub(super) fn spill(&mut self) -> Result<()> {
        self.arena.sort();
        let runs = match &mut self.runs {
            Some(runs) => runs,
            none => none.insert(Runs::create(&self.memory)?),
        };
        runs.write(self.arena.iter())?;
        self.arena.clear();
        Ok(())
    }

    /// Has a run of rows written that come in the order of their keys: they go past the memory.
    pub(crate) fn push_run(&mut self, write: impl FnOnce(&mut RunWriter<'_>) -> Result<()>) -> Result<()> {
        let runs = self.runs()?;
        let start = runs.start_run();
        let mut run = RunWriter { runs, key: Vec::new() };
        write(&mut run)?;
        run.runs.end_run(start);
        Ok(())
    }

    fn runs(&mut self) -> Result<&mut Runs> {
        Ok(match &mut self.runs {
            Some(runs) => runs,
            none => none.insert(Runs::create(&self.memory)?),
        })
    }

    /// No row comes any more: sorts those there are.
    pub(crate) fn finish(&mut self, interrupt: &mut Interrupt) -> Result<()> {
        if self.runs.is_some() && !self.arena.is_empty() {
            self.spill()?;
        }
        self.output = match self.runs.take() {
            Some(runs) => {
                let (merge, spilled) = runs.merge(self.most, interrupt)?;
                self.spilled += spilled;
                Output::Merge(Box::new(merge), self.most)
            }
            None => {
                self.drop_greatest(usize::try_from(self.most).unwrap_or(usize::MAX));
                self.arena.sort();
                Output::Arena(None)
            }
        };
        Ok(())
    }

    /// Moves to the next row in order; `false` after the last, and before [`finish`](Self::finish).
    pub(crate) fn advance(&mut self) -> Result<bool> {
        match &mut self.output {
            Output::None => Ok(false),
            Output::Arena(at) => {
                let next = at.map_or(0, |at| at + 1);
                if let Some(before) = at.replace(next) {
                    self.arena.let_go(before);
                }
                // Of the first rows none has been asked for yet.
                let ahead = if next == 0 { 0..=AHEAD } else { next + AHEAD..=next + AHEAD };
                ahead.for_each(|at| self.arena.prefetch(at));
                Ok(next < self.arena.len())
            }
            Output::Merge(_, 0) => {
                self.output = Output::None;
                Ok(false)
            }
            Output::Merge(merge, left) => {
                *left -= 1;
                merge.advance()
            }
        }
    }

    /// The payload of the row last moved to.
    #[inline]
    pub(crate) fn payload(&self) -> Option<&[u8]> {
        match &self.output {
            Output::Arena(at) => self.arena.payload((*at)?),
            Output::None | Output::Merge(..) => self.current().map(|row| row.payload),
        }
    }

    /// The row last moved to.
    #[inline]
    pub(crate) fn current(&self) -> Option<Row<'_>> {
        match &self.output {
            Output::None => None,
            Output::Arena(at) => self.arena.get((*at)?),
            Output::Merge(merge, _) => merge.current(),
        }
    }

    /// Counts what was written on the way to this sorter as its own.
    pub(super) fn count(&mut self, spilled: Spilled) {
        self.spilled += spilled;
    }

    /// What was written so far.
    pub(crate) fn spilled(&self) -> Spilled {
        let mut spilled = self.spilled;
        if let Some(runs) = &self.runs {
            spilled += runs.spilled();
        }
        spilled
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        self.memory.leave_spare(std::mem::take(&mut self.arena));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two bytes and a number, as they come out of a generator: many rows are equal in the first.
    fn keys(count: u32) -> Vec<([u8; 2], [u8; 4])> {
        let scrambled = |n: u32| n.wrapping_mul(2_654_435_761).rotate_left(7);
        (0..count).map(|n| ([b'k', (scrambled(n) % 5).to_le_bytes()[0]], scrambled(n).to_be_bytes())).collect()
    }

    fn sorted(limit: usize, most: u64, keys: &[([u8; 2], [u8; 4])], payload: &[u8]) -> (Vec<Vec<u8>>, Spilled) {
        let mut sorter = Sorter::new(Memory::default().limited(Some(limit)), most);
        for (sort_key, tie_key) in keys {
            sorter.push(sort_key, tie_key, payload).unwrap();
        }
        sorter.finish(&mut Interrupt::default()).unwrap();
        let mut rows = Vec::new();
        while sorter.advance().unwrap() {
            let row = sorter.current().unwrap();
            assert_eq!(row.payload, payload);
            rows.push([row.sort_key(), row.tie_key()].concat());
        }
        assert!(sorter.current().is_none());
        (rows, sorter.spilled())
    }

    #[test]
    fn rows_come_in_order_whatever_the_memory_and_however_many_are_wanted() {
        let keys = keys(3_000);
        let mut right: Vec<Vec<u8>> =
            keys.iter().map(|(sort_key, tie_key)| [&sort_key[..], tie_key].concat()).collect();
        right.sort();
        for limit in [0, 100, 5_000, 50_000, 1 << 20] {
            for most in [0, 1, 2, 31, 1_000, 3_000, u64::MAX] {
                let (rows, _) = sorted(limit, most, &keys, b"payload");
                let wanted = usize::try_from(most).map_or(right.len(), |most| most.min(right.len()));
                assert!(rows == right[..wanted], "limit {limit}, most {most}");
            }
        }
    }

    #[test]
    fn memory_that_is_enough_writes_nothing_and_memory_that_is_not_is_counted() {
        let keys = keys(1_000);
        assert_eq!(sorted(1 << 20, u64::MAX, &keys, b"").1, Spilled::default());
        let (_, spilled) = sorted(10_000, u64::MAX, &keys, b"");
        // Each row takes 12 bytes for its lengths, 6 for its key, and 24 in memory only, twice while it is put in order.
        let rows_per_run = 10_000 / 66 + 1;
        assert_eq!(spilled, Spilled { runs: 1_000_u64.div_ceil(rows_per_run), bytes: 18_000 });
    }

    #[test]
    fn more_runs_than_are_merged_at_once_are_merged_in_passes() {
        let keys = keys(1_000);
        let (rows, spilled) = sorted(0, u64::MAX, &keys, b"");
        assert_eq!(rows.len(), 1_000);
        assert_eq!(spilled.runs, 1_000);
        // 1,000 runs of one row each become 125, 16 and 2.
        assert_eq!(spilled.bytes, 4 * 18_000);
    }

    #[test]
    fn a_few_rows_of_many_are_found_in_little_memory() {
        let keys = keys(100_000);
        let (rows, spilled) = sorted(10_000, 20, &keys, b"");
        assert_eq!(rows.len(), 20);
        assert_eq!(spilled, Spilled::default());
    }

    #[test]
    fn rows_larger_than_every_buffer_come_back_whole() {
        let keys = keys(20);
        let (rows, spilled) = sorted(1_000, u64::MAX, &keys, &vec![7; 100_000]);
        assert_eq!((rows.len(), spilled.runs), (20, 20));
    }

    #[test]
    fn a_sorter_that_was_cleared_knows_nothing_of_before() {
        let mut sorter = Sorter::new(Memory::default().limited(Some(100)), 3);
        for round in 0..3_u8 {
            sorter.clear(u64::from(round) + 1);
            for n in 0..50_u8 {
                sorter.push(&[n ^ 21], &[round], &[]).unwrap();
            }
            sorter.finish(&mut Interrupt::default()).unwrap();
            let mut read = 0;
            while sorter.advance().unwrap() {
                assert_eq!(sorter.current().unwrap().sort_key(), [read]);
                assert_eq!(sorter.current().unwrap().tie_key(), [round]);
                read += 1;
            }
            assert_eq!(read, round + 1);
        }
    }
}
