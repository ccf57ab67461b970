//! The raw tier, and the nodes of it that lend the records of their input: filter, slice, and the wrapper that measures.

use std::sync::Arc;

use slate_query::{filter::Filter, raw::Doc};
use slate_store::View;

use super::{Resources, fetch::FetchRows, meter::Meter, scan::ScanRows, sort::SortRows};
use crate::{
    Result,
    catalog::CollectionInfo,
    plan::{RawPlan, Window},
};

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

/// The raw tier: returns one record at a time, lent until the next move.
pub(crate) enum RawRows<V: View> {
    Eof,
    Scan(ScanRows<V>),
    Fetch(Box<FetchRows<V>>),
    Filter(Box<FilterRows<V>>),
    Sort(Box<SortRows<V>>),
    Slice(Box<SliceRows<V>>),
    Measured(Box<MeasuredRows<V>>),
}

impl<V: View> RawRows<V> {
    pub(crate) fn open(plan: RawPlan, view: &V, collection: &CollectionInfo, resources: &Resources) -> Result<Self> {
        if resources.recorder.is_none() {
            return Self::open_node(plan, view, collection, resources, &resources.unmeasured());
        }
        Ok(Self::Measured(Box::new(MeasuredRows::open(plan, view, collection, resources)?)))
    }

    /// Opens a node with this meter.
    pub(super) fn open_node(
        plan: RawPlan,
        view: &V,
        collection: &CollectionInfo,
        resources: &Resources,
        meter: &Meter,
    ) -> Result<Self> {
        let open = |input: RawPlan| Self::open(input, view, collection, resources);
        Ok(match plan {
            RawPlan::Eof { .. } => Self::Eof,
            RawPlan::Scan { bounds, direction } => {
                Self::Scan(ScanRows::open(view, collection, bounds.as_ref(), direction, resources, meter.same())?)
            }
            RawPlan::Fetch { ids } => {
                Self::Fetch(Box::new(FetchRows::open(view, collection, ids, resources, meter.same())?))
            }
            RawPlan::Filter { input, filter } => Self::Filter(Box::new(FilterRows::new(open(*input)?, filter))),
            RawPlan::Sort { input, sort, presorted, limit, kept } => {
                let rows = SortRows::new(open(*input)?, sort, presorted, limit, kept, resources, meter.same());
                Self::Sort(Box::new(rows))
            }
            RawPlan::Slice { input, window } => Self::Slice(Box::new(SliceRows::new(open(*input)?, window))),
        })
    }

    /// Moves to the next record. Returns `false` after the last.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool> {
        match self {
            Self::Eof => Ok(false),
            Self::Scan(rows) => rows.advance(),
            Self::Fetch(rows) => rows.advance(),
            Self::Filter(rows) => rows.advance(),
            Self::Sort(rows) => rows.advance(),
            Self::Slice(rows) => rows.advance(),
            Self::Measured(rows) => rows.advance(),
        }
    }

    /// Skips up to `rows` records before the first move, if that costs less than moving over them. Returns the number left
    /// to skip.
    pub(super) fn skip(&mut self, rows: u64) -> Result<u64> {
        match self {
            Self::Fetch(input) => input.skip(rows),
            Self::Measured(input) => input.skip(rows),
            _ => Ok(rows),
        }
    }

    /// Tells a fetch below how many further rows the caller takes.
    #[inline]
    fn want(&mut self, rows: u64) {
        match self {
            Self::Fetch(input) => input.want(rows),
            Self::Filter(filter) => filter.input.want(rows),
            Self::Measured(input) => input.rows.want(rows),
            // A sort reads all rows, or those of a group.
            Self::Eof | Self::Scan(_) | Self::Sort(_) | Self::Slice(_) => {}
        }
    }

    /// Returns the current record. `None` before the first move and after the last record.
    #[inline]
    pub(crate) fn current(&self) -> Option<Record<'_>> {
        match self {
            Self::Eof => None,
            Self::Scan(rows) => rows.current(),
            Self::Fetch(rows) => rows.current(),
            Self::Filter(rows) => rows.input.current(),
            Self::Sort(rows) => rows.current(),
            Self::Slice(rows) => {
                if rows.is_over {
                    None
                } else {
                    rows.input.current()
                }
            }
            Self::Measured(rows) => rows.rows.current(),
        }
    }

    /// Returns the stored document of the current record, which is cheaper than the whole record on some stores.
    #[inline]
    pub(super) fn stored(&self) -> Option<&[u8]> {
        match self {
            Self::Eof => None,
            Self::Scan(rows) => rows.stored(),
            Self::Fetch(rows) => rows.current().map(|record| record.stored),
            Self::Filter(rows) => rows.input.stored(),
            Self::Sort(rows) => rows.stored(),
            Self::Slice(rows) => {
                if rows.is_over {
                    None
                } else {
                    rows.input.stored()
                }
            }
            Self::Measured(rows) => rows.rows.stored(),
        }
    }

    /// Returns whether each further move reads at most one record, so that it takes a short and known time.
    #[cfg(feature = "async")]
    pub(super) fn reads_one_record(&self) -> bool {
        match self {
            Self::Eof | Self::Scan(_) => true,
            Self::Slice(rows) => rows.skip == 0 && rows.input.reads_one_record(),
            Self::Fetch(_) | Self::Filter(_) | Self::Sort(_) | Self::Measured(_) => false,
        }
    }

    /// Returns the stored document of the current record as a shared buffer. `None` if it has to be copied.
    #[inline]
    pub(super) fn shared(&self) -> Option<Arc<[u8]>> {
        match self {
            Self::Scan(rows) => rows.shared(),
            Self::Fetch(rows) => rows.shared(),
            Self::Filter(rows) => rows.input.shared(),
            Self::Slice(rows) => rows.input.shared(),
            Self::Measured(rows) => rows.rows.shared(),
            // A sort lends rows from its own memory.
            Self::Eof | Self::Sort(_) => None,
        }
    }
}

/// Filters records. A rejected record is neither copied nor decoded.
pub(crate) struct FilterRows<V: View> {
    input: RawRows<V>,
    filter: Filter,
    can_fail: bool,
}

impl<V: View> FilterRows<V> {
    fn new(input: RawRows<V>, filter: Filter) -> Self {
        let can_fail = filter.can_fail();
        Self { input, filter, can_fail }
    }

    #[inline]
    fn advance(&mut self) -> Result<bool> {
        if self.can_fail {
            return self.advance_fallible();
        }
        let filter = &self.filter;
        let matches = |record: Record<'_>| filter.matches(record.document());
        // The most common input has its own loop without a call per record.
        if let RawRows::Scan(rows) = &mut self.input {
            return rows.advance_to(matches);
        }
        while self.input.advance()? {
            if self.input.current().is_some_and(matches) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline(never)]
    fn advance_fallible(&mut self) -> Result<bool> {
        while self.input.advance()? {
            let Some(record) = self.input.current() else { break };
            if self.filter.evaluate(record.document())? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Skips the first `skip` records and returns at most `left` of the others.
pub(crate) struct SliceRows<V: View> {
    input: RawRows<V>,
    skip: u64,
    left: u64,
    is_over: bool,
}

impl<V: View> SliceRows<V> {
    fn new(input: RawRows<V>, window: Window) -> Self {
        Self { input, skip: window.skip, left: window.limit.unwrap_or(u64::MAX), is_over: false }
    }

    fn advance(&mut self) -> Result<bool> {
        if self.left == 0 {
            // The input may still have a current row.
            self.is_over = true;
            return Ok(false);
        }
        if self.skip > 0 {
            self.skip = self.input.skip(self.skip)?;
        }
        while self.skip > 0 {
            self.input.want(self.left.saturating_add(self.skip));
            self.skip -= 1;
            if !self.input.advance()? {
                self.left = 0;
                return Ok(false);
            }
        }
        self.input.want(self.left);
        self.left -= 1;
        self.input.advance()
    }
}

/// Measures the time and the rows of a node of the raw tier. Nodes are wrapped in it only for execution statistics.
pub(crate) struct MeasuredRows<V: View> {
    rows: RawRows<V>,
    /// One meter per drawn node; a slice can be drawn as two nodes.
    meters: Vec<Meter>,
}

impl<V: View> MeasuredRows<V> {
    fn open(plan: RawPlan, view: &V, collection: &CollectionInfo, resources: &Resources) -> Result<Self> {
        let mut meters: Vec<Meter> = plan.stages().map(|stage| resources.meter(stage)).collect();
        let unread = Meter::default();
        let meter = meters.first().unwrap_or(&unread);
        let start = meter.start();
        let rows = RawRows::open_node(plan, view, collection, resources, meter)?;
        meters.iter_mut().for_each(|meter| meter.stop(start));
        Ok(Self { rows, meters })
    }

    fn skip(&mut self, rows: u64) -> Result<u64> {
        let start = self.meters.first().map(Meter::start);
        let left = self.rows.skip(rows)?;
        if let Some(start) = start {
            self.meters.iter_mut().for_each(|meter| {
                meter.counted.rows += rows - left;
                meter.stop(start);
            });
        }
        Ok(left)
    }

    fn advance(&mut self) -> Result<bool> {
        let start = self.meters.first().map(Meter::start);
        let more = self.rows.advance()?;
        if let Some(start) = start {
            self.meters.iter_mut().for_each(|meter| meter.moved(start, more));
        }
        Ok(more)
    }
}
