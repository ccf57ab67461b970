//! The functions: their operands, and what they compute for a window.

use std::ops::Range;

use super::{
    Partition,
    accumulate::Accumulate,
    column::Column,
    parse::WindowOutput,
    rate::Rate,
    scale::{Scale, Scaling},
    series::{self, Covariance, Fill, Filling, MovingAverage},
};
use crate::{
    Code, Error, Result,
    expression::{
        DateUnit, Env, Evaluated, Expression,
        accumulator::{AccumulatorInput, AccumulatorSpec, Gathered},
    },
    number::Number,
    raw::{OwnedValue, Value},
};

/// A parsed function.
#[derive(Clone, Debug)]
pub(super) enum Function {
    /// An accumulator over the window.
    Accumulate(AccumulatorSpec),
    Rank(Rank),
    /// `$shift`: the value of the document that is `by` documents after the current one, or before it if negative.
    Shift {
        output: Expression,
        by: i64,
        default: Option<OwnedValue>,
    },
    /// The values, with nulls replaced.
    Fill {
        input: Expression,
        how: Filling,
    },
    MovingAverage {
        input: Expression,
        alpha: Number,
    },
    Rate {
        input: Expression,
        unit: Option<DateUnit>,
        rate: Rate,
    },
    /// The current value, scaled linearly so that the least value of the window becomes the first of `bounds` and the
    /// greatest value the second.
    Scale(Scaling),
    /// The covariance of pairs of numbers.
    Covariance {
        pair: Expression,
        divisor: Divisor,
    },
}

/// The position of a document in its partition, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// Each document has a number of its own.
    Number,
    /// Equal documents have the same rank; those after them continue with their number.
    Sparse,
    /// Equal documents have the same rank; those after them have the next one.
    Dense,
}

/// The divisor of a covariance of n pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Divisor {
    /// n.
    Population,
    /// n − 1.
    Sample,
}

/// The values that a function reads from one document.
#[derive(Clone, Debug, Default)]
pub(super) struct Operand {
    pub(super) value: Option<OwnedValue>,
    /// The other parameters of an accumulator; `None` for other functions.
    pub(super) input: Option<Box<AccumulatorInput>>,
}

impl Operand {
    pub(super) fn value(&self) -> Option<Value<'_>> {
        self.value.as_ref().map(OwnedValue::as_value)
    }

    /// Returns the value unless it is missing or null.
    pub(super) fn present(&self) -> Option<Value<'_>> {
        self.value().filter(|value| !value.is_nullish())
    }

    /// Returns the bytes by which the accumulator orders documents; none if it does not.
    pub(super) fn key(&self) -> &[u8] {
        self.input.as_ref().map_or(&[], |input| &input.key)
    }

    pub(super) fn bytes(&self) -> usize {
        let input = self.input.as_ref().map_or(0, |input| size_of::<AccumulatorInput>() + input.key.len());
        self.value().map_or(0, |value| value.bytes().len()) + input
    }
}

impl Function {
    /// Evaluates the values that the function reads from a document.
    pub(super) fn operand(&self, env: &Env<'_>) -> Result<Operand> {
        let value_of = |expression: &Expression| expression.visit(env, |value| value.map(Value::to_owned));
        let value = match self {
            Self::Scale(Scaling { least: spec, .. }) | Self::Accumulate(spec) => {
                let (value, input) = spec.read(env)?;
                return Ok(Operand { value, input: input.map(Box::new) });
            }
            Self::Rank(_) => None,
            Self::Shift { output: input, .. }
            | Self::Fill { input, .. }
            | Self::MovingAverage { input, .. }
            | Self::Rate { input, .. }
            | Self::Covariance { pair: input, .. } => value_of(input)?,
        };
        Ok(Operand { value, input: None })
    }

    /// Calls `visit` with each field that the function reads; see [`Expression::visit_fields`].
    pub(super) fn visit_fields(&self, visit: &mut dyn FnMut(Option<&crate::raw::FieldName>)) {
        match self {
            Self::Scale(Scaling { least: spec, .. }) | Self::Accumulate(spec) => spec.visit_fields(visit),
            Self::Rank(_) => {}
            Self::Shift { output: input, .. }
            | Self::Fill { input, .. }
            | Self::MovingAverage { input, .. }
            | Self::Rate { input, .. }
            | Self::Covariance { pair: input, .. } => input.visit_fields(visit),
        }
    }

    /// Returns whether the function depends on which documents are equal under the sort.
    pub(super) fn compares_peers(&self) -> bool {
        match self {
            Self::Rank(rank) => *rank != Rank::Number,
            Self::Fill { how, .. } => *how == Filling::Linear,
            _ => false,
        }
    }

    /// Returns whether the function computes with the values of the sort field, as `$derivative` does, and not only
    /// with their order.
    pub(super) fn reads_places(&self) -> bool {
        matches!(self, Self::Rate { .. } | Self::Fill { how: Filling::Linear, .. })
    }
}

/// The state of a function after the documents of a partition that it has read.
#[derive(Debug)]
pub(super) enum Running {
    /// An accumulator over the whole partition, and its result once it was read.
    Whole(Gathered, Option<Evaluated<'static>>),
    Accumulate(Accumulate),
    Scale(Box<Scale>),
    Covariance(Covariance),
    MovingAverage(MovingAverage),
    Fill(Fill),
    /// The rank of the previous document. Unused by functions without a state.
    Rank(i64),
}

impl Running {
    pub(super) fn of(output: &WindowOutput) -> Self {
        match &output.function {
            Function::Accumulate(_) if output.is_whole() => Self::Whole(Gathered::default(), None),
            Function::Accumulate(_) => Self::Accumulate(Accumulate::default()),
            Function::Scale(_) => Self::Scale(Box::default()),
            Function::Covariance { .. } => Self::Covariance(Covariance::default()),
            Function::MovingAverage { .. } => Self::MovingAverage(MovingAverage::default()),
            Function::Fill { .. } => Self::Fill(Fill::default()),
            _ => Self::Rank(0),
        }
    }

    /// Adds the document in `env` if the accumulator covers the whole partition. Adds the accumulator's growth, in bytes, to `heap`.
    pub(super) fn gather(&mut self, function: &Function, env: &Env<'_>, heap: &mut usize) -> Result<()> {
        match (self, function) {
            (Self::Whole(gathered, _), Function::Accumulate(spec)) => {
                spec.add_and_measure(gathered, Value::NULL, env, 1, heap)
            }
            _ => Ok(()),
        }
    }

    /// Returns whether enough of the partition was read to compute the value of the document at `row`.
    pub(super) fn is_ready(
        &self,
        output: &WindowOutput,
        partition: &Partition,
        column: &Column<Operand>,
        row: usize,
    ) -> Result<bool> {
        let has = |row: usize| row < partition.len();
        Ok(match (self, &output.function) {
            (Self::Whole(..), _) => true,
            (Self::Fill(fill), Function::Fill { how, .. }) => has(row) && fill.is_ready(*how, column, row),
            (_, Function::Shift { by, .. }) => {
                has(row.saturating_add(usize::try_from((*by).max(0)).unwrap_or(usize::MAX)))
            }
            (_, Function::Rank(_) | Function::MovingAverage { .. } | Function::Fill { .. }) => has(row),
            (_, Function::Accumulate(_) | Function::Scale(_) | Function::Rate { .. } | Function::Covariance { .. }) => {
                output.frame.is_reached(partition, row)?
            }
        })
    }

    /// Returns the first document that is needed for the values of the document at `row` and of later documents, not
    /// counting the document before `row`. `window` is the window of the document before `row`.
    pub(super) fn first_needed(&self, output: &WindowOutput, window: &Range<usize>, row: usize) -> usize {
        match (self, &output.function) {
            (Self::Whole(..), _) => row,
            (Self::Fill(fill), _) => fill.first_needed().unwrap_or(row),
            (_, Function::Shift { by, .. }) => {
                row.saturating_sub(usize::try_from(by.min(&0).unsigned_abs()).unwrap_or(usize::MAX))
            }
            // A growing window reads each document once.
            (_, Function::Accumulate(spec)) if !output.frame.slides() && spec.merges() => window.end,
            (_, Function::Scale(_)) if !output.frame.slides() => window.end.min(row),
            (_, Function::Accumulate(_) | Function::Scale(_) | Function::Rate { .. } | Function::Covariance { .. }) => {
                window.start
            }
            _ => row,
        }
    }

    /// Returns the memory that the state uses, in bytes, without what [`gather`](Self::gather) measures.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Accumulate(running) => running.memory(),
            Self::Scale(running) => running.memory(),
            _ => 0,
        }
    }

    /// Returns the value for the document at `row`, whose window is `range`. Called for each row in order.
    pub(super) fn value(
        &mut self,
        output: &WindowOutput,
        partition: &Partition,
        column: &Column<Operand>,
        row: usize,
        range: Range<usize>,
    ) -> Result<Evaluated<'static>> {
        Ok(match (self, &output.function) {
            (Self::Whole(gathered, value), Function::Accumulate(spec)) => {
                value.get_or_insert_with(|| spec.finish(gathered)).clone()
            }
            (Self::Accumulate(running), Function::Accumulate(spec)) => {
                let deviation = spec.deviation().filter(|_| output.frame.slides());
                match deviation.and_then(|name| series::sliding_deviation(name, column.range(range.clone()))) {
                    Some(value) => value,
                    None => running.value(spec, column, range)?,
                }
            }
            (Self::Scale(running), Function::Scale(scaling)) => {
                running.value(scaling, &output.frame, column, row, range)?
            }
            (Self::MovingAverage(running), Function::MovingAverage { alpha, .. }) => {
                running.next(*alpha, column.get(row).and_then(Operand::value))
            }
            (Self::Rank(rank), Function::Rank(kind)) => {
                let number = i64::try_from(row).unwrap_or(i64::MAX).saturating_add(1);
                let is_peer = row > 0 && partition.are_peers(row - 1, row);
                *rank = match kind {
                    Rank::Sparse | Rank::Dense if is_peer => *rank,
                    Rank::Number | Rank::Sparse => number,
                    Rank::Dense => *rank + 1,
                };
                Evaluated::count(usize::try_from(*rank).unwrap_or_default())
            }
            (_, Function::Shift { by, default, .. }) => series::shifted(column, row, *by, default.as_ref()),
            (Self::Fill(fill), Function::Fill { how, .. }) => fill.value(*how, partition, column, row)?,
            (_, Function::Rate { unit, rate, .. }) => rate.of(*unit, partition, column, range)?,
            (Self::Covariance(running), Function::Covariance { divisor, .. }) => running.value(*divisor, column, range),
            _ => Evaluated::NULL,
        })
    }
}

pub(super) fn refused(name: &str, what: &str) -> Error {
    Error::new(Code::FAILED_TO_PARSE, format!("{name} {what}"))
}
