use ahash::RandomState;
use slate_query::{raw::Doc, sort::Sort};
use slate_store::View;

use super::DocumentRows;
use crate::{
    Result,
    exec::{Resources, meter::Meter},
    interrupt::Interrupt,
    spill::Sorter,
};

/// Sorts documents. Documents with equal keys stay in the order of the input.
pub(crate) struct SortRows<V: View> {
    /// `None` once all of it was read.
    input: Option<DocumentRows<V>>,
    key: SortKey,
    sorter: Sorter,
    interrupt: Interrupt,
    meter: Meter,
}

/// The key by which documents are sorted.
enum SortKey {
    Sort(Sort),
    /// A keyed hash of the document's position. Each execution has another key, so the hash is as good as a random number.
    Random(RandomState),
}

impl<V: View> SortRows<V> {
    /// Sorts by the documents' sort keys. With a limit, holds at most twice as many rows as the limit.
    pub(super) fn by_sort(
        input: DocumentRows<V>,
        sort: Sort,
        limit: Option<u64>,
        resources: &Resources,
        meter: Meter,
    ) -> Self {
        Self::new(input, SortKey::Sort(sort), limit.unwrap_or(u64::MAX), resources, meter)
    }

    /// Chooses `size` documents at random: sorts by random numbers, and returns the first documents.
    pub(super) fn sample(input: DocumentRows<V>, size: u64, resources: &Resources, meter: Meter) -> Self {
        Self::new(input, SortKey::Random(RandomState::new()), size, resources, meter)
    }

    fn new(input: DocumentRows<V>, key: SortKey, limit: u64, resources: &Resources, meter: Meter) -> Self {
        let sorter = Sorter::new(resources.memory.clone(), limit);
        Self { input: Some(input), key, sorter, interrupt: resources.interrupt.clone(), meter }
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
            match &self.key {
                SortKey::Sort(sort) => sort.key(document, &mut key)?,
                SortKey::Random(random) => key.extend_from_slice(&random.hash_one(number).to_be_bytes()),
            }
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
