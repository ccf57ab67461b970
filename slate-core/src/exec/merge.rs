use slate_store::View;

use super::{
    Resources,
    ids::{IdRows, Promise, Repeats},
    meter::Meter,
    packed::Packed,
};
use crate::{
    Result,
    interrupt::Interrupt,
    plan::{Combine, IdPlan},
    spill::Sorter,
};

/// The ids that any input or every input yields, in order, each once.
pub(super) struct MergedIds {
    /// The ids, each with the number of its input.
    sorter: Sorter,
    /// How many inputs must yield an id for it to be returned: one for a union, all for an intersection.
    wanted: usize,
    /// The current id, the number of inputs that have yielded it, and the last of these inputs.
    id: Vec<u8>,
    inputs: usize,
    last_input: Vec<u8>,
    promise: Promise,
    interrupt: Interrupt,
}

/// Ids read from an input at a time, so that the work per batch is negligible.
const BATCH: usize = 1_024;

impl MergedIds {
    /// Reads all inputs to their ends.
    pub(super) fn gather<V: View>(
        view: &V,
        how: Combine,
        inputs: Vec<IdPlan>,
        resources: &Resources,
        mut meter: Meter,
    ) -> Result<Self> {
        // Points may name missing records.
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
            let mut batch = Packed::default();
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
        Ok(Self { sorter, wanted, id: Vec::new(), inputs: 0, last_input: Vec::new(), promise, interrupt })
    }

    pub(super) fn promise(&self) -> Promise {
        self.promise
    }

    pub(super) fn next(&mut self) -> Result<Option<&[u8]>> {
        while self.sorter.advance()? {
            self.interrupt.tick()?;
            let Some(row) = self.sorter.current() else { break };
            let (id, input) = (row.sort_key(), row.tie_key());
            if self.inputs == 0 || self.id != id {
                self.id.clear();
                self.id.extend_from_slice(id);
                self.inputs = 0;
            } else if self.last_input == input {
                continue;
            }
            self.last_input.clear();
            self.last_input.extend_from_slice(input);
            self.inputs += 1;
            if self.inputs == self.wanted {
                return Ok(Some(&self.id));
            }
        }
        Ok(None)
    }
}
