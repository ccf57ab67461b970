use std::sync::Arc;

use slate_store::View;

use super::{
    Resources, fetch::FetchRows, filter::FilterRows, measured::MeasuredRows, meter::Meter, record::Record,
    scan::ScanRows, slice::SliceRows, sort::SortRows,
};
use crate::{Result, catalog::CollectionInfo, plan::RawPlan};

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

    /// Returns the current record. `None` before the first move and after the last record.
    #[inline]
    pub(crate) fn current(&self) -> Option<Record<'_>> {
        match self {
            Self::Eof => None,
            Self::Scan(rows) => rows.current(),
            Self::Fetch(rows) => rows.current(),
            Self::Filter(rows) => rows.current(),
            Self::Sort(rows) => rows.current(),
            Self::Slice(rows) => rows.current(),
            Self::Measured(rows) => rows.current(),
        }
    }

    /// Returns the stored document of the current record, which is cheaper than the whole record on some stores.
    #[inline]
    pub(super) fn stored(&self) -> Option<&[u8]> {
        match self {
            Self::Eof => None,
            Self::Sort(rows) => rows.stored(),
            Self::Slice(rows) => rows.stored(),
            Self::Measured(rows) => rows.stored(),
            Self::Scan(rows) => rows.stored(),
            Self::Filter(rows) => rows.stored(),
            Self::Fetch(rows) => rows.current().map(|record| record.stored),
        }
    }

    /// Returns whether each further move reads at most one record.
    #[cfg(feature = "async")]
    pub(super) fn reads_one_record(&self) -> bool {
        match self {
            Self::Eof | Self::Scan(_) => true,
            Self::Slice(rows) => rows.reads_one_record(),
            Self::Fetch(_) | Self::Filter(_) | Self::Sort(_) | Self::Measured(_) => false,
        }
    }

    /// Returns the stored document of the current record as a shared buffer. `None` if it has to be copied.
    #[inline]
    pub(super) fn shared(&self) -> Option<Arc<[u8]>> {
        match self {
            Self::Scan(rows) => rows.shared(),
            Self::Fetch(rows) => rows.shared(),
            Self::Filter(rows) => rows.shared(),
            Self::Slice(rows) => rows.shared(),
            Self::Measured(rows) => rows.shared(),
            // A sort lends rows from its own memory.
            Self::Eof | Self::Sort(_) => None,
        }
    }
}
