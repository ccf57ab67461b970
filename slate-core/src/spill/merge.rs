use std::{
    cmp::Ordering,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use super::{file::RowReader, row::Row};
use crate::Result;

/// Merges sorted runs: returns their rows in key order.
pub(super) struct Merge {
    /// The run with the least current row is on top. A run that ends is removed.
    runs: BinaryHeap<MergedRun>,
    started: bool,
}

struct MergedRun {
    rows: RowReader,
    number: usize,
}

impl Merge {
    pub(super) fn new(readers: impl Iterator<Item = RowReader>) -> Result<Self> {
        let mut runs = BinaryHeap::new();
        for (number, mut rows) in readers.enumerate() {
            if rows.advance()? {
                runs.push(MergedRun { rows, number });
            }
        }
        Ok(Self { runs, started: false })
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        if std::mem::replace(&mut self.started, true)
            && let Some(mut least) = self.runs.peek_mut()
            && !least.rows.advance()?
        {
            PeekMut::pop(least);
        }
        Ok(!self.runs.is_empty())
    }

    /// Returns the memory of the runs' buffers, in bytes.
    pub(super) fn held(&self) -> usize {
        self.runs.iter().map(|run| run.rows.held()).sum()
    }

    /// Frees the rows that were read ahead. They are read from the file again.
    pub(super) fn park(&mut self) {
        // The heap lends no mutable references to all its elements, so it is rebuilt. Their order stays.
        self.runs = std::mem::take(&mut self.runs)
            .into_iter()
            .map(|mut run| {
                run.rows.park();
                run
            })
            .collect();
    }

    #[inline]
    pub(super) fn current(&self) -> Option<Row<'_>> {
        self.runs.peek().and_then(|run| run.rows.current())
    }
}

/// Orders a max-heap so that the run with the least row is on top; among equal rows, the run that was written first.
impl Ord for MergedRun {
    fn cmp(&self, other: &Self) -> Ordering {
        let keys = match (self.rows.current(), other.rows.current()) {
            (Some(row), Some(other)) => other.cmp_key(&row),
            (row, other) => row.is_some().cmp(&other.is_some()),
        };
        keys.then_with(|| other.number.cmp(&self.number))
    }
}

impl PartialOrd for MergedRun {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MergedRun {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for MergedRun {}
