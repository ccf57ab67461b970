use std::sync::Arc;

use super::{
    arena::Arena,
    memory::{Memory, ParkedCharge},
    merge::Merge,
    row::Row,
    runs::{Runs, SortedRuns},
};
use crate::{Result, interrupt::Interrupt, metrics::Spilled};

/// Sorts rows by their keys, all of them or the `max_rows` least.
///
/// Usage: [`push`](Self::push) rows, [`finish`](Self::finish), then [`advance`](Self::advance) through them.
/// [`clear`](Self::clear) starts over with the same buffers. When memory is full, the rows in it are sorted and written as
/// a run. Runs are merged when they are read.
///
/// With `max_rows`, memory holds up to twice as many rows before the greater half is dropped. The greatest remaining row is
/// then a bound that rejects rows before they are copied. This needs fewer moves than a heap.
pub(crate) struct Sorter {
    memory: Memory,
    max_rows: u64,
    arena: Arena,
    bound: Option<RowBound>,
    runs: Option<Runs>,
    output: SorterOutput,
    spilled: Spilled,
    /// The memory of rows that have been parked.
    parked: Option<ParkedCharge>,
}

/// Rows with this key or a greater one are rejected.
#[derive(Default)]
struct RowBound {
    sort_key: Vec<u8>,
    tie_key: Vec<u8>,
    /// Whether [`Sorter::new_bound`] has not returned it yet.
    is_new: bool,
}

enum SorterOutput {
    /// The sorter is not finished.
    None,
    /// The rows are in memory. Contains the position of the current one.
    Arena(Option<usize>),
    /// The rows are in runs that are merged while they are read. Contains how many remain to be returned.
    Merge(Box<Merge>, u64, SortedRuns),
}

/// The greater half is dropped as if `max_rows` were at least this, so that a small limit does not search memory after every few rows.
const MIN_RETAINED: usize = 32;

/// Prefetch distance: a payload is prefetched this many rows before it is read, because sorted rows are scattered in
/// memory.
const PREFETCH_DISTANCE: usize = 16;

impl Sorter {
    /// Creates a sorter that returns the `max_rows` least rows.
    pub(crate) fn new(memory: Memory, max_rows: u64) -> Self {
        let (arena, spilled) = (memory.take_buffers(), Spilled::default());
        Self { memory, max_rows, arena, bound: None, runs: None, output: SorterOutput::None, spilled, parked: None }
    }

    /// Removes all rows, and sets how many of the next rows are returned.
    pub(crate) fn clear(&mut self, max_rows: u64) {
        self.max_rows = max_rows;
        self.arena.clear();
        self.bound = None;
        self.runs = None;
        self.output = SorterOutput::None;
        self.parked = None;
    }

    /// Adds a row, unless it cannot be among the `max_rows` least. Rows are ordered by `sort_key`, then by `tie_key`.
    /// No sort key may be a proper prefix of another.
    pub(crate) fn push(&mut self, sort_key: &[u8], tie_key: &[u8], payload: &[u8]) -> Result<()> {
        if !self.wants(sort_key, tie_key) {
            return Ok(());
        }
        self.arena.push(sort_key, tie_key, payload, self.memory.limit())?;
        self.enforce_limits()
    }

    /// Adds a row like [`push`](Self::push), with a shared payload that is not copied.
    pub(crate) fn push_shared(&mut self, sort_key: &[u8], tie_key: &[u8], payload: Arc<[u8]>) -> Result<()> {
        if !self.wants(sort_key, tie_key) {
            return Ok(());
        }
        self.arena.push_shared(sort_key, tie_key, payload, self.memory.limit())?;
        self.enforce_limits()
    }

    /// Returns the sort key above which rows are rejected; `None` if it has not changed since the last call.
    #[inline]
    pub(crate) fn new_bound(&mut self) -> Option<&[u8]> {
        let bound = self.bound.as_mut()?;
        std::mem::take(&mut bound.is_new).then_some(&bound.sort_key)
    }

    /// Returns whether a row with this key can still be among the rows that a sort with a limit returns. If not, the
    /// caller need not copy it.
    #[inline]
    pub(crate) fn wants(&self, sort_key: &[u8], tie_key: &[u8]) -> bool {
        match &self.bound {
            Some(bound) => (sort_key, tie_key) < (&bound.sort_key, &bound.tie_key),
            None => true,
        }
    }

    /// Drops the greater half of the rows, or spills, where the row or memory limit requires it.
    fn enforce_limits(&mut self) -> Result<()> {
        let max_rows = usize::try_from(self.max_rows).unwrap_or(usize::MAX);
        if self.arena.len() >= max_rows.max(MIN_RETAINED).saturating_mul(2) {
            self.retain_least(max_rows)?;
        }
        if self.arena.size() > self.memory.limit() {
            self.retain_least(max_rows)?;
            // Rows that fit in half of the memory leave enough space for more.
            if self.arena.size() > self.memory.limit() / 2 {
                self.spill()?;
            }
        }
        Ok(())
    }

    fn retain_least(&mut self, max_rows: usize) -> Result<()> {
        if self.arena.len() <= max_rows {
            return Ok(());
        }
        self.arena.retain_least(max_rows)?;
        if let Some(greatest) = max_rows.checked_sub(1).and_then(|last| self.arena.get(last)) {
            let RowBound { sort_key, tie_key, is_new } = self.bound.get_or_insert_default();
            sort_key.clear();
            sort_key.extend_from_slice(greatest.sort_key());
            tie_key.clear();
            tie_key.extend_from_slice(greatest.tie_key());
            *is_new = true;
        }
        Ok(())
    }

    /// Returns the number of rows in memory.
    pub(super) fn rows_in_memory(&self) -> usize {
        self.arena.len()
    }

    /// Returns the bytes that the rows in memory use.
    pub(super) fn memory_used(&self) -> usize {
        self.arena.size()
    }

    /// Returns a row in memory by its number in push order. Valid before [`finish`](Self::finish), without `max_rows`.
    #[inline]
    pub(super) fn pushed_row(&self, number: usize) -> Option<Row<'_>> {
        self.arena.row(number)
    }

    /// Sorts the rows in memory and writes them as a run.
    pub(super) fn spill(&mut self) -> Result<()> {
        self.arena.sort()?;
        Runs::get_or_create(&mut self.runs, &self.memory)?.write(self.arena.iter())?;
        self.arena.clear();
        Ok(())
    }

    /// Writes rows without payload directly as a run. The sort keys must be sorted.
    pub(super) fn push_run(&mut self, sort_keys: &[&[u8]], tie_key: &[u8]) -> Result<()> {
        let runs = Runs::get_or_create(&mut self.runs, &self.memory)?;
        let start = runs.start_run();
        let mut key = Vec::new();
        for sort_key in sort_keys {
            key.clear();
            key.extend_from_slice(sort_key);
            key.extend_from_slice(tie_key);
            runs.add(Row { key: &key, split: sort_key.len(), payload: &[] })?;
        }
        runs.end_run(start);
        Ok(())
    }

    /// Ends pushing and sorts the rows.
    pub(crate) fn finish(&mut self, interrupt: &mut Interrupt) -> Result<()> {
        if self.runs.is_some() && !self.arena.is_empty() {
            self.spill()?;
        }
        self.output = match self.runs.take() {
            Some(runs) => {
                let (runs, spilled) = runs.merge(self.max_rows, interrupt)?;
                self.spilled += spilled;
                SorterOutput::Merge(Box::new(runs.read()?), self.max_rows, runs)
            }
            None => {
                self.retain_least(usize::try_from(self.max_rows).unwrap_or(usize::MAX))?;
                self.arena.sort()?;
                SorterOutput::Arena(None)
            }
        };
        Ok(())
    }

    /// Moves a finished sorter back before its first row. Payloads must not be shared, because reading releases them.
    pub(crate) fn rewind(&mut self) -> Result<()> {
        match &mut self.output {
            SorterOutput::None => {}
            SorterOutput::Arena(at) => *at = None,
            SorterOutput::Merge(merge, left, runs) => {
                **merge = runs.read()?;
                *left = self.max_rows;
            }
        }
        Ok(())
    }

    /// Ends a batch of a finished sorter, after which none may be requested for long. The remaining rows are written to a file if the cursors of the
    /// database hold too much memory; rows that were read ahead from a file are then read again. The sorter cannot be [rewound](Self::rewind)
    /// afterwards.
    pub(crate) fn park(&mut self) {
        match &mut self.output {
            SorterOutput::None => {}
            SorterOutput::Merge(merge, ..) => {
                self.memory.return_buffers(std::mem::take(&mut self.arena));
                if !self.memory.park_again(&mut self.parked, merge.held()) {
                    merge.park();
                }
            }
            SorterOutput::Arena(at) => {
                let at = *at;
                if self.parked.is_some() {
                    return;
                }
                self.parked = self.memory.park(self.arena.held());
                // Rows that cannot be written stay where they are.
                if self.parked.is_none()
                    && let Ok(output) = self.write_rest(at)
                {
                    self.output = output;
                    self.memory.return_buffers(std::mem::take(&mut self.arena));
                }
            }
        }
    }

    /// Writes the rows in memory from the current one on, and returns a reader of them at the same position.
    fn write_rest(&mut self, at: Option<usize>) -> Result<SorterOutput> {
        let mut runs = Runs::create(&self.memory)?;
        runs.write(self.arena.iter_from(at.unwrap_or_default()))?;
        let (runs, spilled) = runs.merge(u64::MAX, &mut Interrupt::default())?;
        self.spilled += spilled;
        let (mut merge, mut left) = (Box::new(runs.read()?), u64::try_from(self.arena.len()).unwrap_or(u64::MAX));
        if let Some(at) = at {
            merge.advance()?;
            left = left.saturating_sub(u64::try_from(at).unwrap_or(u64::MAX).saturating_add(1));
        }
        merge.park();
        Ok(SorterOutput::Merge(merge, left, runs))
    }

    /// Moves to the next row. Returns `false` after the last row and before [`finish`](Self::finish).
    pub(crate) fn advance(&mut self) -> Result<bool> {
        match &mut self.output {
            SorterOutput::None => Ok(false),
            SorterOutput::Arena(at) => {
                let next = at.map_or(0, |at| at + 1);
                if let Some(before) = at.replace(next) {
                    self.arena.release(before);
                }
                // The first move prefetches all rows up to the distance.
                let ahead =
                    if next == 0 { 0..=PREFETCH_DISTANCE } else { next + PREFETCH_DISTANCE..=next + PREFETCH_DISTANCE };
                ahead.for_each(|at| self.arena.prefetch(at));
                Ok(next < self.arena.len())
            }
            SorterOutput::Merge(_, 0, _) => {
                self.output = SorterOutput::None;
                Ok(false)
            }
            SorterOutput::Merge(merge, left, _) => {
                *left -= 1;
                merge.advance()
            }
        }
    }

    /// Returns the payload of the current row.
    #[inline]
    pub(crate) fn payload(&self) -> Option<&[u8]> {
        match &self.output {
            SorterOutput::Arena(at) => self.arena.payload((*at)?),
            SorterOutput::None | SorterOutput::Merge(..) => self.current().map(|row| row.payload),
        }
    }

    /// Returns the current row.
    #[inline]
    pub(crate) fn current(&self) -> Option<Row<'_>> {
        match &self.output {
            SorterOutput::None => None,
            SorterOutput::Arena(at) => self.arena.get((*at)?),
            SorterOutput::Merge(merge, ..) => merge.current(),
        }
    }

    /// Adds to the spill counts of this sorter.
    pub(super) fn add_spilled(&mut self, spilled: Spilled) {
        self.spilled += spilled;
    }

    /// Returns the amount of data written to temporary files.
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
        self.memory.return_buffers(std::mem::take(&mut self.arena));
    }
}

#[cfg(test)]
mod tests {
    use super::{super::file::BYTES_READ, *};

    /// Pseudo-random keys with only five distinct sort keys.
    fn keys(count: u32) -> Vec<([u8; 2], [u8; 4])> {
        let scrambled = |n: u32| n.wrapping_mul(2_654_435_761).rotate_left(7);
        (0..count).map(|n| ([b'k', (scrambled(n) % 5).to_le_bytes()[0]], scrambled(n).to_be_bytes())).collect()
    }

    fn sorted(limit: usize, max_rows: u64, keys: &[([u8; 2], [u8; 4])], payload: &[u8]) -> (Vec<Vec<u8>>, Spilled) {
        let mut sorter = Sorter::new(Memory::default().limited(Some(limit)), max_rows);
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
    fn rows_are_sorted_at_every_memory_limit_and_row_limit() {
        let keys = keys(3_000);
        let mut right: Vec<Vec<u8>> =
            keys.iter().map(|(sort_key, tie_key)| [&sort_key[..], tie_key].concat()).collect();
        right.sort();
        for limit in [0, 100, 5_000, 50_000, 1 << 20] {
            for max_rows in [0, 1, 2, 31, 1_000, 3_000, u64::MAX] {
                let (rows, _) = sorted(limit, max_rows, &keys, b"payload");
                let wanted = usize::try_from(max_rows).map_or(right.len(), |rows| rows.min(right.len()));
                assert!(rows == right[..wanted], "limit {limit}, max_rows {max_rows}");
            }
        }
    }

    #[test]
    fn spilled_runs_and_bytes_are_counted() {
        let keys = keys(1_000);
        assert_eq!(sorted(1 << 20, u64::MAX, &keys, b"").1, Spilled::default());
        let (_, spilled) = sorted(10_000, u64::MAX, &keys, b"");
        // A row takes 12 bytes of header, 6 of key, and in memory twice 24 bytes for its offset and sort entry.
        let rows_per_run = 10_000 / 66 + 1;
        assert_eq!(spilled, Spilled { runs: 1_000_u64.div_ceil(rows_per_run), bytes: 18_000 });
    }

    #[test]
    fn more_runs_than_the_fan_in_are_merged_in_passes() {
        let keys = keys(1_000);
        let (rows, spilled) = sorted(0, u64::MAX, &keys, b"");
        assert_eq!(rows.len(), 1_000);
        assert_eq!(spilled.runs, 1_000);
        // 1,000 runs of one row each become 125, 16 and 2.
        assert_eq!(spilled.bytes, 4 * 18_000);
    }

    #[test]
    fn a_small_row_limit_needs_little_memory() {
        let keys = keys(100_000);
        let (rows, spilled) = sorted(10_000, 20, &keys, b"");
        assert_eq!(rows.len(), 20);
        assert_eq!(spilled, Spilled::default());
    }

    #[test]
    fn rows_larger_than_a_buffer_are_read_back_whole() {
        let keys = keys(20);
        let (rows, spilled) = sorted(1_000, u64::MAX, &keys, &vec![7; 100_000]);
        assert_eq!((rows.len(), spilled.runs), (20, 20));
    }

    /// Moves to the next row, and returns its key.
    fn next(sorter: &mut Sorter) -> Option<Vec<u8>> {
        sorter.advance().unwrap().then(|| {
            let row = sorter.current().unwrap();
            [row.sort_key(), row.tie_key()].concat()
        })
    }

    #[test]
    fn rows_go_on_where_they_were_parked_and_all_together_hold_a_limited_memory() {
        let keys = keys(2_000);
        let mut right: Vec<Vec<u8>> = keys.iter().map(|(key, tie_key)| [&key[..], tie_key].concat()).collect();
        right.sort();
        let memory = Memory::default();
        // 80 sorters of a mebibyte and more do not fit, and the last ones are spilled anyway.
        let mut sorters = Vec::new();
        for number in 0..90 {
            let limit = if number < 85 { 64 << 20 } else { 100_000 };
            let mut sorter = Sorter::new(memory.limited(Some(limit)), u64::MAX);
            for (key, tie_key) in &keys {
                if number % 2 == 0 {
                    sorter.push(key, tie_key, &[7; 500]).unwrap();
                } else {
                    sorter.push_shared(key, tie_key, Arc::from([7; 500])).unwrap();
                }
            }
            sorter.finish(&mut Interrupt::default()).unwrap();
            // Before the first row, at a row, at the last row, and behind it.
            let read = [0, 1, 700, 2_000, 2_001][number % 5];
            let before: Vec<_> = (0..read).filter_map(|_| next(&mut sorter)).collect();
            sorter.park();
            sorters.push((sorter, before));
        }
        let in_memory = |(sorter, _): &&(Sorter, Vec<Vec<u8>>)| sorter.arena.capacity() > 0;
        let held: usize = sorters.iter().filter(in_memory).map(|(sorter, _)| sorter.arena.capacity()).sum();
        assert!(held > 0 && held <= 64 << 20, "{held}");
        assert!(sorters.iter().filter(|(sorter, _)| matches!(sorter.output, SorterOutput::Merge(..))).count() > 20);
        for (mut sorter, mut rows) in sorters {
            // Before the first move there may be a current row.
            if let Some(row) = sorter.current().filter(|_| !rows.is_empty()) {
                assert_eq!(Some([row.sort_key(), row.tie_key()].concat()), rows.last().cloned());
                assert_eq!(row.payload, [7; 500]);
            }
            for place in 0.. {
                let Some(row) = next(&mut sorter) else { break };
                rows.push(row);
                if place % 300 == 0 {
                    sorter.park();
                }
            }
            assert!(rows == right, "{} rows", rows.len());
        }
        assert!(memory.park(64 << 20).is_some(), "all was given back");
    }

    #[test]
    fn a_spilled_sort_that_is_parked_reads_its_rows_again_only_if_it_may_not_hold_them() {
        let (keys, memory) = (keys(2_000), Memory::default());
        let written = 2_000 * (12 + 6 + 500);
        // Returns the bytes read, and the most that are held while the sorter is parked.
        let read = || {
            let before = BYTES_READ.get();
            let mut sorter = Sorter::new(memory.limited(Some(200_000)), u64::MAX);
            keys.iter().for_each(|(key, tie_key)| sorter.push(key, tie_key, &[7; 500]).unwrap());
            sorter.finish(&mut Interrupt::default()).unwrap();
            let mut most = 0;
            while next(&mut sorter).is_some() {
                sorter.park();
                let SorterOutput::Merge(merge, ..) = &sorter.output else { panic!("nothing was spilled") };
                most = most.max(merge.held());
            }
            (BYTES_READ.get() - before, most)
        };
        let (bytes, most) = read();
        assert_eq!(bytes, written, "each row is read once");
        assert!(most > 100_000, "{most}");
        let left = most / 2;
        let other = memory.park((64 << 20) - left).unwrap();
        let (bytes, most) = read();
        assert!(bytes > 10 * written && most <= left, "{bytes} read, {most} held");
        drop(other);
        assert!(memory.park(64 << 20).is_some(), "all was given back");
    }

    #[test]
    fn a_cleared_sorter_returns_only_new_rows() {
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
