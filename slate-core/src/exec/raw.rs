//! The raw tier: records as the store lends them, scanned in the order of `_id` or fetched by their ids; and filter and slice, which
//! take any rows and pass on records if their input has records. Fetches and sorts are files of their own.

use std::sync::Arc;

use slate_query::{filter::Filter, interval::IntervalSet, pattern::Direction, raw::Doc};
use slate_store::View;

use super::{
    Resources,
    fetch::FetchRows,
    measured::MeasuredRows,
    meter::Meter,
    rows::{BoxedRecords, NoRows, Record, RecordRows, Rows},
    sort::SortRows,
};
use crate::{
    Result,
    catalog::CollectionInfo,
    interrupt::Interrupt,
    key_range::RangeWalk,
    metrics::Spilled,
    plan::{RawPlan, Window, record_ranges},
};

pub(super) fn open_records<'v, V: View + 'v>(
    plan: RawPlan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<BoxedRecords<'v>> {
    // A node is numbered before its input.
    let mut meters = resources.meters(&plan);
    if resources.measures_nodes() {
        let measured =
            MeasuredRows::open(meters.collect(), |meter| open_node(plan, view, collection, resources, meter))?;
        return Ok(Box::new(measured));
    }
    let meter = meters.next().unwrap_or_default();
    open_node(plan, view, collection, resources, &meter)
}

/// Opens a node with this meter.
fn open_node<'v, V: View + 'v>(
    plan: RawPlan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
    meter: &Meter,
) -> Result<BoxedRecords<'v>> {
    let scan =
        |bounds: Option<&_>, direction| ScanRows::open(view, collection, bounds, direction, resources, meter.same());
    let open = |input: Box<RawPlan>| open_records(*input, view, collection, resources);
    Ok(match plan {
        RawPlan::Eof { .. } => Box::new(NoRows),
        RawPlan::Scan { bounds, direction } => Box::new(scan(bounds.as_ref(), direction)),
        RawPlan::Fetch { ids } => Box::new(FetchRows::open(view, collection, ids, resources, meter.same())?),
        RawPlan::Filter { input, filter } => match *input {
            // The most common input is compiled into the filter's loop, without a call per record.
            RawPlan::Scan { bounds, direction } if !resources.measures_nodes() => {
                Box::new(FilterRows::new(scan(bounds.as_ref(), direction), filter))
            }
            _ => Box::new(FilterRows::new(open(input)?, filter)),
        },
        RawPlan::Sort { input, sort, presorted, limit, kept } => {
            Box::new(SortRows::of_records(open(input)?, sort, presorted, limit, kept, resources, meter.same()))
        }
        RawPlan::Slice { input, window } => Box::new(SliceRows::new(open(input)?, window)),
    })
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
