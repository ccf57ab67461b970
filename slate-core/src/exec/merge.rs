use slate_store::View;

use super::{
    Resources,
    ids::{IdBatch, IdRows, Promise, Repeats},
    meter::Meter,
};
use crate::{
    Result,
    interrupt::Interrupt,
    plan::{Combine, IdPlan},
    spill::Sorter,
};

/// The ids that any input, or every input, names: in order, each once.
pub(super) struct MergedIds {
    /// By id, and then by the number of the input that named it.
    sorter: Sorter,
    /// So many different inputs must name an id.
    wanted: usize,
    /// The id looked at, and how many inputs have named it so far; and the last of them.
    id: Vec<u8>,
    named: usize,
    by: Vec<u8>,
    promise: Promise,
    interrupt: Interrupt,
}

/// So many ids are taken at once from an input.
const BATCH: usize = 1_024;

impl MergedIds {
    /// Reads the inputs to their ends, one after another.
    pub(super) fn gather<V: View>(
        view: &V,
        how: Combine,
        inputs: Vec<IdPlan>,
        resources: &Resources,
        mut meter: Meter,
    ) -> Result<Self> {
        // A point among the inputs may name no record.
        let points = inputs.iter().any(|input| matches!(input, IdPlan::Points(_)));
        let promise = if points { Promise::Nothing } else { Promise::Record };
        let wanted = match how {
            Combine::Union => 1,
            Combine::Intersection => inputs.len(),
        };
        let mut sorter = Sorter::new(resources.memory.clone(), u64::MAX);
        for (number, input) in (0_u32..).zip(inputs) {
            let number = number.to_be_bytes();
            let mut rows = IdRows::open(view, input, resources, Repeats::AsMet)?;
            let mut batch = IdBatch::default();
            loop {
                rows.next_batch(BATCH, &mut batch)?;
                if batch.len() == 0 {
                    break;
                }
                for id in batch.iter() {
                    sorter.push(id, &number, &[])?;
                }
            }
        }
        let mut interrupt = resources.interrupt.clone();
        sorter.finish(&mut interrupt)?;
        meter.spilled(sorter.spilled());
        Ok(Self { sorter, wanted, id: Vec::new(), named: 0, by: Vec::new(), promise, interrupt })
    }

    pub(super) fn promise(&self) -> Promise {
        self.promise
    }

    pub(super) fn next(&mut self) -> Result<Option<&[u8]>> {
        while self.sorter.advance()? {
            self.interrupt.tick()?;
            let Some(row) = self.sorter.current() else { break };
            let (id, by) = (row.sort_key(), row.tie_key());
            if self.named == 0 || self.id != id {
                self.id.clear();
                self.id.extend_from_slice(id);
                self.named = 0;
            } else if self.by == by {
                continue;
            }
            self.by.clear();
            self.by.extend_from_slice(by);
            self.named += 1;
            if self.named == self.wanted {
                return Ok(Some(&self.id));
            }
        }
        Ok(None)
    }
}
