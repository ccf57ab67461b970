use std::ops::Range;

use super::{
    file::{RowReader, RowWriter, buffer_size},
    memory::{Memory, Spilled},
    merge::Merge,
    row::Row,
};
use crate::{Result, interrupt::Interrupt};

/// Sorted runs of rows, one after another in one temporary file.
pub(super) struct Runs {
    memory: Memory,
    writer: RowWriter,
    runs: Vec<Range<u64>>,
    /// The size of the largest row: a merge holds one row of each run.
    largest: usize,
    spilled: Spilled,
}

/// So many runs are merged at once at most: beyond it, a comparison more per row costs less than smaller buffers do.
const LARGEST_FAN_IN: usize = 128;
/// And at least so many, however small the memory: otherwise there is no end to the passes.
const LEAST_FAN_IN: usize = 8;
/// What each run of a merge is given to read ahead, where there are many.
const BUFFER_PER_RUN: usize = 64 << 10;

impl Runs {
    pub(super) fn create(memory: &Memory) -> Result<Self> {
        let writer = RowWriter::create(memory)?;
        Ok(Self { memory: memory.clone(), writer, runs: Vec::new(), largest: 0, spilled: Spilled::default() })
    }

    /// Writes a run. Its rows come in the order of their keys.
    pub(super) fn write<'r>(&mut self, rows: impl Iterator<Item = Row<'r>>) -> Result<()> {
        let start = self.start_run();
        for row in rows {
            self.add(row)?;
        }
        self.end_run(start);
        Ok(())
    }

    /// Where the run begins whose rows are [added](Self::add) next.
    pub(super) fn start_run(&self) -> u64 {
        self.writer.written()
    }

    pub(super) fn add(&mut self, row: Row<'_>) -> Result<()> {
        self.largest = self.largest.max(row.written_len());
        self.writer.write(row)
    }

    pub(super) fn end_run(&mut self, start: u64) {
        let end = self.writer.written();
        if start < end {
            self.runs.push(start..end);
            self.spilled += Spilled { runs: 1, bytes: end - start };
        }
    }

    pub(super) fn spilled(&self) -> Spilled {
        self.spilled
    }

    /// All rows in the order in which they were written.
    pub(super) fn into_rows(self) -> Result<RowReader> {
        let all = 0..self.writer.written();
        Ok(RowReader::new(self.writer.finish()?, all, buffer_size(&self.memory, 1)))
    }

    /// All rows in the order of their keys, or the `most` least of them, and what has been written for it by now. Where
    /// there are too many runs to be merged at once, some passes merge them to fewer.
    pub(super) fn merge(mut self, most: u64, interrupt: &mut Interrupt) -> Result<(Merge, Spilled)> {
        let fan_in = self.fan_in();
        while self.runs.len() > fan_in {
            self = self.merge_pass(fan_in, most, interrupt)?;
        }
        let spilled = self.spilled;
        let (file, readers) = (self.writer.finish()?, self.runs.len());
        let buffer = buffer_size(&self.memory, readers);
        let runs = self.runs.into_iter().map(|run| RowReader::new(file.clone(), run, buffer));
        Ok((Merge::new(runs)?, spilled))
    }

    fn fan_in(&self) -> usize {
        (self.memory.limit() / self.largest.max(BUFFER_PER_RUN)).clamp(LEAST_FAN_IN, LARGEST_FAN_IN)
    }

    /// Merges `fan_in` runs at a time, into another file: the one before is gone afterwards.
    fn merge_pass(self, fan_in: usize, most: u64, interrupt: &mut Interrupt) -> Result<Self> {
        let mut merged = Self::create(&self.memory)?;
        merged.spilled = self.spilled;
        let file = self.writer.finish()?;
        let buffer = buffer_size(&self.memory, fan_in);
        for runs in self.runs.chunks(fan_in) {
            let readers = runs.iter().map(|run| RowReader::new(file.clone(), run.clone(), buffer));
            let mut merge = Merge::new(readers)?;
            let start = merged.start_run();
            let mut left = most;
            while left > 0 && merge.advance()? {
                interrupt.tick()?;
                if let Some(row) = merge.current() {
                    merged.add(row)?;
                }
                left -= 1;
            }
            let end = merged.writer.written();
            merged.runs.push(start..end);
            // A pass writes again what memory had no room for once: bytes, but no run more.
            merged.spilled += Spilled { runs: 0, bytes: end - start };
        }
        Ok(merged)
    }
}
