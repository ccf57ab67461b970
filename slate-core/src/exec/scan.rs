use std::sync::Arc;

use slate_query::{interval::IntervalSet, pattern::Direction};
use slate_store::View;

use super::{Resources, meter::Meter, rows::Record, walk::RangeWalk};
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
    ) -> Result<Self> {
        let walk = RangeWalk::new(view.clone(), collection.records, record_ranges(bounds), direction);
        Ok(Self { walk, interrupt: resources.interrupt.clone(), meter })
    }

    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        let more = self.walk.advance()?;
        if more {
            // Reads the record's bytes only for execution statistics, because it costs time on some stores.
            let document = if self.meter.is_read() { self.walk.current() } else { None };
            self.meter.document_read(document.map_or(&[], |(_, document)| document));
        }
        Ok(more)
    }

    /// Moves to the next matching record.
    #[inline]
    pub(super) fn advance_to(&mut self, matches: impl Fn(Record<'_>) -> bool) -> Result<bool> {
        while self.advance()? {
            if self.current().is_some_and(&matches) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    pub(super) fn current(&self) -> Option<Record<'_>> {
        self.walk.current().map(|(key, stored)| Record { key, stored })
    }

    #[inline]
    pub(super) fn stored(&self) -> Option<&[u8]> {
        self.walk.current().map(|(_, stored)| stored)
    }

    #[inline]
    pub(super) fn shared(&self) -> Option<Arc<[u8]>> {
        self.walk.shared()
    }
}
