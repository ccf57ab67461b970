//! The trait of all operators, [`Rows`]; its boxed form, for an operator that is not known at compile time; and the operators that hold no
//! rows: the scan of records, and filter and slice, which take any rows and pass on records if their input has records.

use std::sync::Arc;

use slate_query::{filter::Filter, interval::IntervalSet, pattern::Direction, raw::Doc};
use slate_store::View;

use super::{Resources, meter::Meter};
use crate::{
    Result,
    catalog::CollectionInfo,
    interrupt::Interrupt,
    key_range::RangeWalk,
    metrics::Spilled,
    plan::{Window, record_ranges},
};

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
    /// Returns the current record: its key and its stored document.
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

/// Scans the records of a collection in the order of `_id`.
pub(crate) struct ScanRows<V: View> {
    walk: RangeWalk<V>,
    interrupt: Interrupt,
    meter: Meter,
}

impl<V: View> ScanRows<V> {
    pub(super) fn open(
        view: &V,
        collection: &CollectionInfo,
        bounds: Option<&IntervalSet>,
        direction: Direction,
        resources: &Resources,
        meter: Meter,
    ) -> Self {
        let walk = RangeWalk::new(view.clone(), collection.records, record_ranges(bounds), direction);
        Self { walk, interrupt: resources.interrupt.clone(), meter }
    }
}

impl<V: View> Rows for ScanRows<V> {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        let more = self.walk.advance()?;
        if more {
            // Reads the record's bytes only for execution statistics, because it costs time on some stores.
            let document = if self.meter.is_read() { self.walk.current() } else { None };
            self.meter.document_read(document.map_or(&[], |(_, document)| document));
        }
        Ok(more)
    }

    #[inline]
    fn current(&self) -> Option<Doc<'_>> {
        self.walk.current().map(|(_, stored)| Doc::stored(stored))
    }

    #[inline]
    fn shared(&self) -> Option<Arc<[u8]>> {
        self.walk.shared()
    }

    #[cfg(feature = "async")]
    fn reads_one_record(&self) -> bool {
        true
    }
}

impl<V: View> RecordRows for ScanRows<V> {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        self.walk.current().map(|(key, stored)| Record { key, stored })
    }
}

/// Passes on the rows that match. A rejected row is neither copied nor decoded.
pub(crate) struct FilterRows<I> {
    input: I,
    filter: Filter,
    /// Whether evaluating the filter can fail.
    can_fail: bool,
}

impl<I: Rows> FilterRows<I> {
    pub(super) fn new(input: I, filter: Filter) -> Self {
        let can_fail = filter.can_fail();
        Self { input, filter, can_fail }
    }

    #[inline(never)]
    fn advance_fallible(&mut self, most: u64) -> Result<u64> {
        loop {
            let times = self.input.advance_run(most)?;
            let Some(document) = self.input.current().filter(|_| times > 0) else { return Ok(0) };
            if self.filter.evaluate(document)? {
                return Ok(times);
            }
        }
    }
}

impl<I: Rows> Rows for FilterRows<I> {
    fn park(&mut self) {
        self.input.park();
    }

    #[inline]
    fn advance(&mut self) -> Result<bool> {
        if self.can_fail {
            return Ok(self.advance_fallible(1)? > 0);
        }
        while self.input.advance()? {
            if self.input.current().is_some_and(|document| self.filter.matches(document)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn advance_run(&mut self, most: u64) -> Result<u64> {
        if self.can_fail {
            return self.advance_fallible(most);
        }
        loop {
            let times = self.input.advance_run(most)?;
            if times == 0 || self.input.current().is_some_and(|document| self.filter.matches(document)) {
                return Ok(times);
            }
        }
    }

    #[inline]
    fn current(&self) -> Option<Doc<'_>> {
        self.input.current()
    }

    #[inline]
    fn want(&mut self, rows: u64) {
        self.input.want(rows);
    }

    #[inline]
    fn shared(&self) -> Option<Arc<[u8]>> {
        self.input.shared()
    }
}

impl<I: RecordRows> RecordRows for FilterRows<I> {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        self.input.record()
    }
}

/// Skip and limit: skips the first `skip` rows and returns at most `left` of the others.
pub(crate) struct SliceRows<I> {
    input: I,
    skip: u64,
    left: u64,
    has_row: bool,
}

impl<I: Rows> SliceRows<I> {
    pub(super) fn new(input: I, window: Window) -> Self {
        Self { input, skip: window.skip, left: window.limit.unwrap_or(u64::MAX), has_row: false }
    }

    /// Skips the rows before the window. Returns `false` if the input has no more rows.
    #[inline(never)]
    fn skip_rows(&mut self) -> Result<bool> {
        self.skip = self.input.skip(self.skip)?;
        while self.skip > 0 {
            self.input.want(self.left.saturating_add(self.skip));
            self.skip -= 1;
            if !self.input.advance()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[inline]
    fn advance_with(&mut self, advance: impl FnOnce(&mut I, u64) -> Result<u64>) -> Result<u64> {
        // After the last row the input must not be moved, because it could search without end for another row.
        let mut rows = 0;
        if self.left > 0 && (self.skip == 0 || self.skip_rows()?) {
            self.input.want(self.left);
            rows = advance(&mut self.input, self.left)?;
        }
        self.has_row = rows > 0;
        self.left = if self.has_row { self.left.saturating_sub(rows) } else { 0 };
        Ok(rows)
    }
}

impl<I: Rows> Rows for SliceRows<I> {
    fn park(&mut self) {
        self.input.park();
    }

    #[inline]
    fn advance(&mut self) -> Result<bool> {
        Ok(self.advance_with(|input, _| input.advance().map(u64::from))? > 0)
    }

    fn advance_run(&mut self, most: u64) -> Result<u64> {
        self.advance_with(|input, left| input.advance_run(left.min(most)))
    }

    #[inline]
    fn current(&self) -> Option<Doc<'_>> {
        if self.has_row { self.input.current() } else { None }
    }

    #[inline]
    fn shared(&self) -> Option<Arc<[u8]>> {
        if self.has_row { self.input.shared() } else { None }
    }

    #[cfg(feature = "async")]
    fn reads_one_record(&self) -> bool {
        self.skip == 0 && self.input.reads_one_record()
    }

    fn spilled(&self) -> Spilled {
        self.input.spilled()
    }
}

impl<I: RecordRows> RecordRows for SliceRows<I> {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        if self.has_row { self.input.record() } else { None }
    }
}
