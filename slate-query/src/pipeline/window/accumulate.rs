//! Accumulators over windows.

use std::ops::Range;

use super::{column::Column, decided::Decided, function::Operand};
use crate::{
    Result,
    expression::{
        Evaluated,
        accumulator::{AccumulatorSpec, Gathered},
    },
    work,
};

/// An accumulator over the windows of a partition, one after the other.
///
/// If the accumulator [merges](AccumulatorSpec::merges), the window is split at one of its documents. Each document before
/// the split has a result: that of the documents from it to the split. All documents after the split have one result. A
/// window then merges two results, so each value is added a bounded number of times even if windows overlap. An accumulator
/// whose result [few documents decide](AccumulatorSpec::deciding) reads these. Of the others, standard deviations continue
/// while the window only grows; the rest read each window from its start.
#[derive(Debug, Default)]
pub(super) struct Accumulate {
    window: Range<usize>,
    split: usize,
    /// For each document from `window.start` to the split, the result of the documents from it to the split. The result for
    /// `window.start`, which covers the most documents, is last.
    before: Vec<Gathered>,
    after: Gathered,
    decided: Decided,
    /// The result of the window, if it is the same for following documents.
    value: Option<Evaluated<'static>>,
}

impl Accumulate {
    pub(super) fn value(
        &mut self,
        spec: &AccumulatorSpec,
        column: &Column<Operand>,
        window: Range<usize>,
    ) -> Result<Evaluated<'static>> {
        if let Some(value) = self.value.as_ref().filter(|_| window == self.window) {
            return Ok(value.clone());
        }
        let value = if let Some(deciding) = spec.deciding() {
            self.decided.value(spec, deciding, column, window.clone())?
        } else if spec.merges() {
            // The windows of a partition only move forward.
            for operand in column.range(self.window.end..window.end) {
                add(spec, &mut self.after, operand)?;
            }
            self.window.end = window.end;
            while self.window.start < window.start {
                if self.before.is_empty() {
                    let mut gathered = Gathered::default();
                    for operand in column.range(self.window.start..window.end).iter().rev() {
                        add(spec, &mut gathered, operand)?;
                        self.before.push(gathered.merged(&Gathered::default()));
                    }
                    (self.split, self.after) = (window.end, Gathered::default());
                }
                self.before.pop();
                self.window.start += 1;
            }
            match self.before.last() {
                Some(before) => spec.finish(&mut before.merged(&self.after)),
                None => spec.finish(&mut self.after.merged(&Gathered::default())),
            }
        } else {
            if window.start != self.window.start || spec.deviation().is_none() {
                (self.window, self.after) = (window.start..window.start, Gathered::default());
            }
            for operand in column.range(self.window.end..window.end) {
                add(spec, &mut self.after, operand)?;
            }
            let value = spec.finish(&mut self.after);
            if spec.deviation().is_none() {
                self.after = Gathered::default();
            }
            value
        };
        self.window = window;
        self.value = Some(value.clone());
        Ok(value)
    }

    /// Returns the memory that the results use, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.before.len() * size_of::<Gathered>() + self.decided.memory()
    }
}

fn add(spec: &AccumulatorSpec, gathered: &mut Gathered, operand: &Operand) -> Result<()> {
    work::take(1)?;
    spec.add_value(gathered, operand.value(), operand.input.as_deref())
}
