//! `$minMaxScaler`: the place of a value between the least and the greatest of its window.

use std::{cmp::Ordering, ops::Range};

use super::{
    accumulate::Accumulate,
    column::Column,
    frame::{Frame, Limit},
    function::Operand,
};
use crate::{
    Code, Error, Result,
    expression::{Evaluated, accumulator::AccumulatorSpec},
    number::Number,
    raw::Value,
};

/// The parameters of `$minMaxScaler`, and the accumulators that compute it.
#[derive(Clone, Debug)]
pub(super) struct Scaling {
    pub(super) least: AccumulatorSpec,
    pub(super) greatest: AccumulatorSpec,
    /// The results for the least and the greatest value.
    pub(super) bounds: (Number, Number),
}

/// The least and the greatest values of the windows of a partition, one after the other.
#[derive(Debug, Default)]
pub(super) struct Scale {
    least: Accumulate,
    greatest: Accumulate,
}

impl Scale {
    /// Returns the value for the document at `row`, which is in its window.
    ///
    /// # Errors
    /// MongoDB's code, which depends on the kind of window, if a value is not a number.
    pub(super) fn value(
        &mut self,
        scaling: &Scaling,
        frame: &Frame,
        column: &Column<Operand>,
        row: usize,
        window: Range<usize>,
    ) -> Result<Evaluated<'static>> {
        let least = self.least.value(&scaling.least, column, window.clone())?;
        let greatest = self.greatest.value(&scaling.greatest, column, window)?;
        let number = |value: Option<Value<'_>>| {
            let code = match frame {
                Frame::All | Frame::Documents(Limit::Unbounded, _) => Code(10_487_001),
                Frame::Range(Limit::Unbounded, ..) => Code(10_487_004),
                Frame::Documents(..) | Frame::Range(..) => Code(10_487_000),
            };
            let number = value.and_then(Number::of);
            number.ok_or_else(|| Error::new(code, "the input of $minMaxScaler must be a number"))
        };
        let value = number(column.get(row).and_then(Operand::value))?;
        let (least, greatest) = (number(least.as_value())?, number(greatest.as_value())?);
        let (min, max) = scaling.bounds;
        if least.cmp(&greatest) == Ordering::Equal {
            return Ok(min.into());
        }
        let place = value.minus(least).over(greatest.minus(least));
        Ok(place.times(max.minus(min)).plus(min).into())
    }

    /// Returns the memory that the results use, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.least.memory() + self.greatest.memory()
    }
}
