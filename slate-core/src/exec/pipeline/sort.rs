use slate_query::{raw::Doc, sort::Sort};
use slate_store::View;

use super::DocumentRows;
use crate::{
    Result,
    exec::{Resources, meter::Meter},
    interrupt::Interrupt,
    spill::Sorter,
};

/// Sorts documents by their sort keys. Documents that are equal under the sort stay in the order of the input.
pub(crate) struct SortRows<V: View> {
    /// `None` once it was read.
    input: Option<DocumentRows<V>>,
    sort: Sort,
    sorter: Sorter,
    interrupt: Interrupt,
    meter: Meter,
}

impl<V: View> SortRows<V> {
    /// With a limit, holds at most twice as many rows as the limit.
    pub(super) fn new(
        input: DocumentRows<V>,
        sort: Sort,
        limit: Option<u64>,
        resources: &Resources,
        meter: Meter,
    ) -> Self {
        let sorter = Sorter::new(resources.memory.clone(), limit.unwrap_or(u64::MAX));
        Self { input: Some(input), sort, sorter, interrupt: resources.interrupt.clone(), meter }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        if let Some(input) = self.input.take() {
            self.read(input)?;
        }
        self.sorter.advance()
    }

    fn read(&mut self, mut input: DocumentRows<V>) -> Result<()> {
        let (mut key, mut number) = (Vec::new(), 0_u64);
        while input.advance()? {
            self.interrupt.tick()?;
            let Some(document) = input.current() else { break };
            key.clear();
            self.sort.key(document, &mut key)?;
            self.sorter.push(&key, &number.to_be_bytes(), document.bytes())?;
            number = number.saturating_add(1);
        }
        self.sorter.finish(&mut self.interrupt)?;
        self.meter.spilled(self.sorter.spilled());
        Ok(())
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.sorter.payload().map(Doc::new)
    }
}
