use super::{arena::Arena, file::RowReader, memory::Memory, runs::Runs};
use crate::Result;

/// A list of rows that is written first and read later in the same order.
pub(crate) struct Spool {
    memory: Memory,
    arena: Arena,
    runs: Option<Runs>,
}

impl Spool {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { memory, arena: Arena::default(), runs: None }
    }

    pub(crate) fn push(&mut self, row: &[u8]) -> Result<()> {
        self.arena.push(&[], &[], row, self.memory.limit())?;
        if self.arena.size() > self.memory.limit() {
            Runs::get_or_create(&mut self.runs, &self.memory)?.write(self.arena.iter())?;
            self.arena.clear();
        }
        Ok(())
    }

    /// Ends writing and returns the rows for reading.
    pub(crate) fn into_rows(self) -> Result<SpoolRows> {
        let written = self.runs.map(Runs::into_rows).transpose()?;
        Ok(SpoolRows { written, arena: self.arena, next: 0 })
    }
}

/// Reads the rows of a [`Spool`]. A row is lent until the next [`advance`](Self::advance).
pub(crate) struct SpoolRows {
    /// The spilled rows, which precede those in the arena.
    written: Option<RowReader>,
    arena: Arena,
    /// Position in the arena of the row after the current one.
    next: usize,
}

impl SpoolRows {
    pub(crate) fn advance(&mut self) -> Result<bool> {
        if let Some(written) = &mut self.written {
            if written.advance()? {
                return Ok(true);
            }
            self.written = None;
        }
        self.next = self.next.saturating_add(1);
        Ok(self.next <= self.arena.len())
    }

    pub(crate) fn current(&self) -> Option<&[u8]> {
        let row = match &self.written {
            Some(written) => written.current(),
            None => self.arena.get(self.next.checked_sub(1)?),
        };
        row.map(|row| row.payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_in_the_order_in_which_they_were_pushed() {
        for limit in [0, 100, 1_000, 1 << 20] {
            let mut spool = Spool::new(Memory::default().limited(Some(limit)));
            let rows: Vec<Vec<u8>> = (0..200_u8).rev().map(|n| vec![n; usize::from(n)]).collect();
            for row in &rows {
                spool.push(row).unwrap();
            }
            assert_eq!(spool.runs.is_none(), limit == 1 << 20);
            let mut read = spool.into_rows().unwrap();
            let mut all: Vec<Vec<u8>> = Vec::new();
            while read.advance().unwrap() {
                all.push(read.current().unwrap().to_vec());
            }
            assert!(all == rows, "limit {limit}");
            assert!(read.current().is_none() && !read.advance().unwrap());
        }
    }
}
