//! The one trait of all operators, and its objects: the rows of a node whose operator is not known at compile time.

use std::sync::Arc;

use slate_query::raw::Doc;

use crate::{Result, metrics::Spilled};

/// The rows of an operator, or of a whole query: a cursor, which lends one document at a time until the next move.
pub(crate) trait Rows {
    /// Moves to the next row. Returns `false` after the last.
    fn advance(&mut self) -> Result<bool>;

    /// Returns the current row. `None` before the first move and after the last row. A whole record has its field table.
    fn current(&self) -> Option<Doc<'_>>;

    /// Moves to the next row and returns how many consecutive rows it stands for, at most `most`: rows that are the same
    /// document are returned once where that is less work. 0 after the last row.
    #[inline]
    fn advance_run(&mut self, most: u64) -> Result<u64> {
        debug_assert!(most > 0, "a run has a row");
        self.advance().map(u64::from)
    }

    /// Skips up to `rows` rows before the first move, if that costs less than moving over them. Returns the number left to
    /// skip.
    fn skip(&mut self, rows: u64) -> Result<u64> {
        Ok(rows)
    }

    /// Sets, for a fetch below, how many further rows the caller needs.
    #[inline]
    fn want(&mut self, _rows: u64) {}

    /// Ends a batch: until the next move, the clock of the call stands still.
    fn pause(&mut self) {}

    /// Ends a batch of a cursor that may wait for long beside many others: operators release the memory of rows that exceeds the limit of
    /// all waiting cursors, and pass the call on to their input.
    fn park(&mut self) {}

    /// Returns the current row in its stored form as a shared buffer. `None` if it has to be copied.
    #[inline]
    fn shared(&self) -> Option<Arc<[u8]>> {
        None
    }

    /// Returns whether each further move reads at most one record, so that it takes a short and known time.
    #[cfg(feature = "async")]
    fn reads_one_record(&self) -> bool {
        false
    }

    /// Returns the amount that the operator itself has written to temporary files, unless its own meter counts it.
    fn spilled(&self) -> Spilled {
        Spilled::default()
    }
}

/// The raw tier: rows that are records.
pub(crate) trait RecordRows: Rows {
    /// Returns the current record. On some stores [`current`](Rows::current), without the key, is cheaper.
    fn record(&self) -> Option<Record<'_>>;
}

/// A record as lent by a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'r> {
    /// The record key: the encoded `_id`.
    pub(crate) key: &'r [u8],
    /// The stored document.
    pub(crate) stored: &'r [u8],
}

impl<'r> Record<'r> {
    #[inline]
    pub(crate) fn document(&self) -> Doc<'r> {
        Doc::stored(self.stored)
    }
}

/// The rows of any operator. They may borrow from a transaction's view for `'v`.
pub(crate) type BoxedRows<'v> = Box<dyn Rows + Send + 'v>;

/// The rows of any operator of the raw tier.
pub(crate) type BoxedRecords<'v> = Box<dyn RecordRows + Send + 'v>;

impl<R: Rows + ?Sized> Rows for Box<R> {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        (**self).advance()
    }

    #[inline]
    fn current(&self) -> Option<Doc<'_>> {
        (**self).current()
    }

    #[inline]
    fn advance_run(&mut self, most: u64) -> Result<u64> {
        (**self).advance_run(most)
    }

    fn skip(&mut self, rows: u64) -> Result<u64> {
        (**self).skip(rows)
    }

    #[inline]
    fn want(&mut self, rows: u64) {
        (**self).want(rows);
    }

    fn pause(&mut self) {
        (**self).pause();
    }

    fn park(&mut self) {
        (**self).park();
    }

    #[inline]
    fn shared(&self) -> Option<Arc<[u8]>> {
        (**self).shared()
    }

    #[cfg(feature = "async")]
    fn reads_one_record(&self) -> bool {
        (**self).reads_one_record()
    }

    fn spilled(&self) -> Spilled {
        (**self).spilled()
    }
}

impl<R: RecordRows + ?Sized> RecordRows for Box<R> {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        (**self).record()
    }
}

/// No rows: those of a plan that cannot find any, and of an aggregation that has written its documents.
pub(crate) struct NoRows;

impl Rows for NoRows {
    fn advance(&mut self) -> Result<bool> {
        Ok(false)
    }

    fn current(&self) -> Option<Doc<'_>> {
        None
    }

    #[cfg(feature = "async")]
    fn reads_one_record(&self) -> bool {
        true
    }
}

impl RecordRows for NoRows {
    fn record(&self) -> Option<Record<'_>> {
        None
    }
}
