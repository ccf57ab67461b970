use std::{fs::File, sync::Arc};

use super::{
    arena::Arena,
    file::{RowReader, buffer_size},
    memory::{Memory, ParkedCharge},
    runs::Runs,
};
use crate::{Result, metrics::Spilled};

/// A list of rows that is written first and read later in the same order.
pub(crate) struct Spool {
    memory: Memory,
    arena: Arena,
    runs: Option<Runs>,
}

impl Spool {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { arena: memory.take_buffers(), memory, runs: None }
    }

    /// Creates a list of few rows that may wait for long. It leaves the pooled buffers, of up to 64 MiB, to others.
    pub(crate) fn unpooled(memory: Memory) -> Self {
        Self { arena: Arena::default(), memory, runs: None }
    }

    pub(crate) fn push(&mut self, row: &[u8]) -> Result<()> {
        self.arena.push(&[], &[], row, self.memory.limit())?;
        if self.arena.size() > self.memory.limit() {
            Runs::get_or_create(&mut self.runs, &self.memory)?.write(self.arena.iter())?;
            self.arena.clear();
        }
        Ok(())
    }

    /// Returns the amount of data written to temporary files.
    pub(crate) fn spilled(&self) -> Spilled {
        self.runs.as_ref().map(Runs::spilled).unwrap_or_default()
    }

    /// Ends writing and returns the rows for reading, once.
    pub(crate) fn into_rows(self) -> Result<SpoolRows> {
        Ok(SpoolRows::of(&Arc::new(self.finish()?)))
    }

    /// Ends writing.
    pub(crate) fn finish(mut self) -> Result<Spooled> {
        // The rows are either all in memory or all in the file.
        if let Some(runs) = &mut self.runs {
            runs.write(self.arena.iter())?;
            self.memory.return_buffers(std::mem::take(&mut self.arena));
        }
        let written = self.runs.map(Runs::into_file).transpose()?;
        Ok(Spooled { memory: self.memory, arena: self.arena, written })
    }
}

/// The rows of a [`Spool`] for any number of [readers](SpoolRows), which take turns.
pub(crate) struct Spooled {
    memory: Memory,
    arena: Arena,
    /// The rows if they were spilled, and their size in bytes.
    written: Option<(Arc<File>, u64)>,
}

impl Spooled {
    /// Writes the rows in memory from the current one on, and returns a reader at that row.
    fn write_rest(&mut self, at: Option<usize>) -> Result<RowReader> {
        let mut runs = Runs::create(&self.memory)?;
        runs.write(self.arena.iter_from(at.unwrap_or_default()))?;
        let (file, size) = runs.into_file()?;
        let mut written = RowReader::new(file, 0..size, buffer_size(&self.memory, 1));
        if at.is_some() {
            written.advance()?;
        }
        written.park();
        self.memory.return_buffers(std::mem::take(&mut self.arena));
        Ok(written)
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        self.memory.return_buffers(std::mem::take(&mut self.arena));
    }
}

/// Reads the rows of a [`Spool`]. A row is lent until the next [`advance`](Self::advance).
pub(crate) struct SpoolRows {
    rows: Arc<Spooled>,
    written: Option<RowReader>,
    /// Position in the arena of the row after the current one.
    next: usize,
    /// The memory of rows that have been parked.
    parked: Option<ParkedCharge>,
}

impl SpoolRows {
    /// Starts before the first row.
    pub(crate) fn of(rows: &Arc<Spooled>) -> Self {
        let buffer = buffer_size(&rows.memory, 1);
        let written = rows.written.as_ref().map(|(file, size)| RowReader::new(Arc::clone(file), 0..*size, buffer));
        Self { rows: Arc::clone(rows), written, next: 0, parked: None }
    }

    pub(crate) fn advance(&mut self) -> Result<bool> {
        if let Some(written) = &mut self.written {
            if written.advance()? {
                return Ok(true);
            }
            self.written = None;
        }
        self.next = self.next.saturating_add(1);
        Ok(self.next <= self.rows.arena.len())
    }

    /// Ends a batch, after which none may be requested for long. The remaining rows are written to a file if the cursors of the database
    /// hold too much memory and no other reader shares the rows; rows that were read ahead from a file are then read again.
    pub(crate) fn park(&mut self) {
        if let Some(written) = &mut self.written {
            if !self.rows.memory.park_again(&mut self.parked, written.held()) {
                written.park();
            }
            return;
        }
        let at = self.next.checked_sub(1);
        let Some(rows) = Arc::get_mut(&mut self.rows).filter(|_| self.parked.is_none()) else { return };
        self.parked = rows.memory.park(rows.arena.held());
        // Rows that cannot be written stay where they are.
        if self.parked.is_none()
            && let Ok(written) = rows.write_rest(at)
        {
            (self.written, self.next) = (Some(written), 0);
        }
    }

    pub(crate) fn current(&self) -> Option<&[u8]> {
        let row = match &self.written {
            Some(written) => written.current(),
            None => self.rows.arena.get(self.next.checked_sub(1)?),
        };
        row.map(|row| row.payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_on_where_they_were_parked() {
        let memory = Memory::default();
        // Nothing more may be held in memory.
        let full = memory.park(64 << 20).unwrap();
        for limit in [1_000, 1 << 30] {
            for read in [0, 1, 50, 100, 101] {
                let mut spool = Spool::new(memory.limited(Some(limit)));
                (0..100_u8).for_each(|n| spool.push(&[n; 1_000]).unwrap());
                let mut rows = spool.into_rows().unwrap();
                let mut seen: Vec<u8> = Vec::new();
                for _ in 0..read {
                    if rows.advance().unwrap() {
                        seen.push(rows.current().unwrap()[0]);
                    }
                }
                rows.park();
                assert_eq!(rows.rows.arena.capacity(), 0);
                if (1..=100).contains(&read) {
                    assert_eq!(rows.current(), Some(&[seen[read - 1]; 1_000][..]));
                }
                while rows.advance().unwrap() {
                    seen.push(rows.current().unwrap()[0]);
                    rows.park();
                }
                assert!(seen == Vec::from_iter(0..100), "{read} of {limit}: {seen:?}");
            }
        }
        drop(full);
    }

    #[test]
    fn a_list_of_few_rows_leaves_the_pooled_buffers_to_others() {
        let memory = Memory::default();
        let mut large = Spool::new(memory.clone());
        large.push(&[0; 1 << 20]).unwrap();
        drop(large.into_rows().unwrap());
        let mut small = Spool::unpooled(memory.clone());
        small.push(b"a definition").unwrap();
        assert!(small.arena.capacity() < 1 << 16, "{} bytes", small.arena.capacity());
        assert!(Spool::new(memory).arena.capacity() >= 1 << 20);
    }

    #[test]
    fn rows_are_read_in_the_order_in_which_they_were_pushed() {
        for limit in [0, 100, 1_000, 1 << 20] {
            let mut spool = Spool::new(Memory::default().limited(Some(limit)));
            let rows: Vec<Vec<u8>> = (0..200_u8).rev().map(|n| vec![n; usize::from(n)]).collect();
            for row in &rows {
                spool.push(row).unwrap();
            }
            assert_eq!(spool.runs.is_none(), limit == 1 << 20);
            let spooled = Arc::new(spool.finish().unwrap());
            for _ in 0..2 {
                let mut read = SpoolRows::of(&spooled);
                let mut all: Vec<Vec<u8>> = Vec::new();
                while read.advance().unwrap() {
                    all.push(read.current().unwrap().to_vec());
                }
                assert!(all == rows, "limit {limit}");
                assert!(read.current().is_none() && !read.advance().unwrap());
            }
        }
    }
}
