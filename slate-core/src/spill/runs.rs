use std::{fs::File, ops::Range, sync::Arc};

use slate_query::work;

use super::{
    file::{RowReader, RowWriter, buffer_size},
    memory::Memory,
    merge::Merge,
    row::Row,
};
use crate::{Result, interrupt::Interrupt, metrics::Spilled};

/// Sorted runs of rows in one temporary file.
pub(super) struct Runs {
    memory: Memory,
    writer: RowWriter,
    runs: Vec<Range<u64>>,
    /// Size of the largest row in bytes; a merge holds one row of each run.
    largest_row: usize,
    spilled: Spilled,
}

/// Runs that can be read together.
pub(super) struct SortedRuns {
    file: Arc<File>,
    runs: Vec<Range<u64>>,
    /// Size of the buffer of each run, in bytes.
    buffer: usize,
}

impl SortedRuns {
    /// Reads all rows in key order, from the first.
    pub(super) fn read(&self) -> Result<Merge> {
        let runs = self.runs.iter().map(|run| RowReader::new(Arc::clone(&self.file), run.clone(), self.buffer));
        Merge::new(runs)
    }
}

/// Maximum number of runs that are merged at once: with more, smaller buffers would cost more than another merge pass saves.
const MAX_FAN_IN: usize = 128;
/// Minimum number of runs that are merged at once, even if that exceeds the memory limit: it bounds the number of passes.
const MIN_FAN_IN: usize = 8;
/// Read-ahead buffer per run, in bytes, from which the number of runs per merge is computed.
const BUFFER_PER_RUN: usize = 64 << 10;

impl Runs {
    /// Returns the runs in `runs`. Creates the file if necessary.
    pub(super) fn get_or_create<'r>(runs: &'r mut Option<Self>, memory: &Memory) -> Result<&'r mut Self> {
        Ok(match runs {
            Some(runs) => runs,
            none => none.insert(Self::create(memory)?),
        })
    }

    pub(super) fn create(memory: &Memory) -> Result<Self> {
        let writer = RowWriter::create(memory)?;
        Ok(Self { memory: memory.clone(), writer, runs: Vec::new(), largest_row: 0, spilled: Spilled::default() })
    }

    /// Writes a run. The rows must be sorted by their keys.
    pub(super) fn write<'r>(&mut self, rows: impl Iterator<Item = Row<'r>>) -> Result<()> {
        let start = self.start_run();
        for row in rows {
            self.add(row)?;
        }
        self.end_run(start);
        Ok(())
    }

    /// Starts a run and returns its position in the file. The rows follow with [`add`](Self::add).
    pub(super) fn start_run(&self) -> u64 {
        self.writer.written()
    }

    pub(super) fn add(&mut self, row: Row<'_>) -> Result<()> {
        work::take(1)?;
        self.largest_row = self.largest_row.max(row.written_len());
        self.writer.write(row)
    }

    pub(super) fn end_run(&mut self, start: u64) {
        let end = self.writer.written();
        if start < end {
            self.runs.push(start..end);
            self.count(Spilled { runs: 1, bytes: end - start });
        }
    }

    fn count(&mut self, spilled: Spilled) {
        self.spilled += spilled;
        self.memory.observer().spilled(spilled);
    }

    pub(super) fn spilled(&self) -> Spilled {
        self.spilled
    }

    /// Returns the file with all rows in the order in which they were written, and its size in bytes.
    pub(super) fn into_file(self) -> Result<(Arc<File>, u64)> {
        let size = self.writer.written();
        Ok((self.writer.finish()?, size))
    }

    /// Merges until the remaining runs can be read together. Returns the amount of data written in total. With more
    /// runs than the fan-in, merges in several passes, each of which writes only the `max_rows` least rows of a group.
    pub(super) fn merge(mut self, max_rows: u64, interrupt: &mut Interrupt) -> Result<(SortedRuns, Spilled)> {
        let fan_in = self.fan_in();
        while self.runs.len() > fan_in {
            self = self.merge_pass(fan_in, max_rows, interrupt)?;
        }
        let (spilled, buffer) = (self.spilled, buffer_size(&self.memory, self.runs.len()));
        Ok((SortedRuns { file: self.writer.finish()?, runs: self.runs, buffer }, spilled))
    }

    fn fan_in(&self) -> usize {
        (self.memory.limit() / self.largest_row.max(BUFFER_PER_RUN)).clamp(MIN_FAN_IN, MAX_FAN_IN)
    }

    /// Merges groups of `fan_in` runs into runs of a new file, and drops the old file.
    fn merge_pass(self, fan_in: usize, max_rows: u64, interrupt: &mut Interrupt) -> Result<Self> {
        let mut merged = Self::create(&self.memory)?;
        merged.spilled = self.spilled;
        let file = self.writer.finish()?;
        let buffer = buffer_size(&self.memory, fan_in);
        for runs in self.runs.chunks(fan_in) {
            let readers = runs.iter().map(|run| RowReader::new(file.clone(), run.clone(), buffer));
            let mut merge = Merge::new(readers)?;
            let start = merged.start_run();
            let mut left = max_rows;
            while left > 0 && merge.advance()? {
                interrupt.tick()?;
                if let Some(row) = merge.current() {
                    merged.add(row)?;
                }
                left -= 1;
            }
            let end = merged.writer.written();
            merged.runs.push(start..end);
            // A pass rewrites runs that were counted when they were first written.
            merged.count(Spilled { runs: 0, bytes: end - start });
        }
        Ok(merged)
    }
}
