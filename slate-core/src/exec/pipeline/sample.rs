use ahash::RandomState;
use slate_query::raw::Doc;
use slate_store::View;

use super::DocumentRows;
use crate::{
    Result,
    exec::{Resources, meter::Meter},
    interrupt::Interrupt,
    spill::Sorter,
};

/// Chooses documents at random: gives each a random number, and returns those with the least, in that order.
pub(crate) struct SampleRows<V: View> {
    /// `None` once it was read.
    input: Option<DocumentRows<V>>,
    sorter: Sorter,
    interrupt: Interrupt,
    meter: Meter,
}

impl<V: View> SampleRows<V> {
    pub(super) fn new(input: DocumentRows<V>, size: u64, resources: &Resources, meter: Meter) -> Self {
        let sorter = Sorter::new(resources.memory.clone(), size);
        Self { input: Some(input), sorter, interrupt: resources.interrupt.clone(), meter }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        if let Some(input) = self.input.take() {
            self.read(input)?;
        }
        self.sorter.advance()
    }

    fn read(&mut self, mut input: DocumentRows<V>) -> Result<()> {
        // A keyed hash of the position is as good as a random number here, and its keys are random.
        let (random, mut number) = (RandomState::new(), 0_u64);
        while input.advance()? {
            self.interrupt.tick()?;
            let Some(document) = input.current() else { break };
            let key = random.hash_one(number).to_be_bytes();
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
