use slate_query::{interval::IntervalSet, pattern::Direction};
use slate_store::View;

use super::{probe::RangeWalk, rows::Record};
use crate::{Result, catalog::CollectionInfo, interrupt::Interrupt, plan::record_ranges};

/// The records of a collection in the order of `_id`, straight from the store's cursor.
pub(crate) struct ScanRows<V: View> {
    walk: RangeWalk<V>,
    interrupt: Interrupt,
}

impl<V: View> ScanRows<V> {
    pub(super) fn open(
        view: &V,
        collection: &CollectionInfo,
        bounds: Option<&IntervalSet>,
        direction: Direction,
        interrupt: Interrupt,
    ) -> Result<Self> {
        let walk = RangeWalk::new(view.clone(), collection.records, record_ranges(bounds), direction);
        Ok(Self { walk, interrupt })
    }

    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        self.walk.advance()
    }

    #[inline]
    pub(super) fn current(&self) -> Option<Record<'_>> {
        self.walk.current().map(|(key, document)| Record { key, document })
    }
}
