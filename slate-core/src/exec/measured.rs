use std::sync::Arc;

use slate_store::View;

use super::{RawRows, Resources, meter::Meter, record::Record};
use crate::{Result, catalog::CollectionInfo, plan::RawPlan};

/// Measures the time and the rows of a node of the raw tier. Nodes are wrapped in it only for execution statistics.
pub(crate) struct MeasuredRows<V: View> {
    rows: RawRows<V>,
    /// One number per drawn node; a slice can be drawn as two nodes.
    meters: Vec<Meter>,
}

impl<V: View> MeasuredRows<V> {
    pub(super) fn open(plan: RawPlan, view: &V, collection: &CollectionInfo, resources: &Resources) -> Result<Self> {
        let mut meters: Vec<Meter> = plan.stages().map(|stage| resources.meter(stage)).collect();
        let unread = Meter::default();
        let meter = meters.first().unwrap_or(&unread);
        let start = meter.start();
        let rows = RawRows::open_node(plan, view, collection, resources, meter)?;
        meters.iter_mut().for_each(|meter| meter.stop(start));
        Ok(Self { rows, meters })
    }

    pub(super) fn skip(&mut self, rows: u64) -> Result<u64> {
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

    pub(super) fn advance(&mut self) -> Result<bool> {
        let start = self.meters.first().map(Meter::start);
        let more = self.rows.advance()?;
        if let Some(start) = start {
            self.meters.iter_mut().for_each(|meter| meter.moved(start, more));
        }
        Ok(more)
    }

    #[inline]
    pub(super) fn stored(&self) -> Option<&[u8]> {
        self.rows.stored()
    }

    #[inline]
    pub(super) fn current(&self) -> Option<Record<'_>> {
        self.rows.current()
    }

    #[inline]
    pub(super) fn shared(&self) -> Option<Arc<[u8]>> {
        self.rows.shared()
    }
}
