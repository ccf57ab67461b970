use std::sync::Arc;

use slate_query::{interval::IntervalSet, pattern::Direction, raw::Doc};
use slate_store::View;

use super::{
    Resources,
    meter::Meter,
    rows::{Record, RecordRows, Rows},
    walk::RangeWalk,
};
use crate::{Result, catalog::CollectionInfo, interrupt::Interrupt, plan::record_ranges};

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
