//! The functions: their operands, and what they compute for a window.

use std::ops::Range;

use super::{
    Partition,
    accumulate::Accumulate,
    rate::Rate,
    series::{self, Fill, Filling, MovingAverage},
};
use crate::{
    Code, Error, Result,
    expression::{
        DateUnit, Env, Evaluated, Expression,
        accumulator::{AccumulatorSpec, Input},
    },
    number::Number,
    raw::{Kind, OwnedValue, Value},
};

/// A parsed function.
#[derive(Clone, Debug)]
pub(super) enum Function {
    /// An accumulator over the window.
    Accumulate(AccumulatorSpec),
    Rank(Rank),
    /// The value of another document, at a distance from the current one.
    Shift {
        output: Expression,
        by: i64,
        default: Option<OwnedValue>,
    },
    /// The values, with others in place of null.
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
    /// Of pairs of numbers.
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

/// What a function reads of one document.
#[derive(Clone, Debug, Default)]
pub(super) struct Operand {
    pub(super) value: Option<OwnedValue>,
    /// Of an accumulator only.
    pub(super) input: Option<Box<Input>>,
}

impl Operand {
    pub(super) fn value(&self) -> Option<Value<'_>> {
        self.value.as_ref().map(OwnedValue::as_value)
    }

    /// The value unless it is missing or null.
    pub(super) fn present(&self) -> Option<Value<'_>> {
        self.value().filter(|value| !matches!(value.kind(), Kind::Null | Kind::Undefined))
    }

    pub(super) fn bytes(&self) -> usize {
        let input = self.input.as_ref().map_or(0, |input| size_of::<Input>() + input.key.len());
        self.value().map_or(0, |value| value.bytes().len()) + input
    }
}

impl Function {
    /// What the function reads of a document.
    pub(super) fn operand(&self, env: &Env<'_>) -> Result<Operand> {
        let value_of = |expression: &Expression| expression.visit(env, |value| value.map(Value::to_owned));
        let value = match self {
            Self::Accumulate(spec) => {
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
            Self::Accumulate(spec) => spec.visit_fields(visit),
            Self::Rank(_) => {}
            Self::Shift { output: input, .. }
            | Self::Fill { input, .. }
            | Self::MovingAverage { input, .. }
            | Self::Rate { input, .. }
            | Self::Covariance { pair: input, .. } => input.visit_fields(visit),
        }
    }

    /// Whether it depends on which documents are equal under the sort.
    pub(super) fn compares_peers(&self) -> bool {
        match self {
            Self::Rank(rank) => *rank != Rank::Number,
            Self::Fill { how, .. } => *how == Filling::Linear,
            _ => false,
        }
    }

    /// Whether it computes with the values of the sort field.
    pub(super) fn reads_places(&self) -> bool {
        matches!(self, Self::Rate { .. } | Self::Fill { how: Filling::Linear, .. })
    }

    pub(super) fn start(&self) -> Running {
        match self {
            Self::Accumulate(_) => Running::Accumulate(Accumulate::default()),
            Self::MovingAverage { .. } => Running::MovingAverage(MovingAverage::default()),
            Self::Fill { .. } => Running::Fill(Fill::default()),
            _ => Running::Rank(0),
        }
    }
}

/// A function in the course of a partition.
#[derive(Debug)]
pub(super) enum Running {
    Accumulate(Accumulate),
    MovingAverage(MovingAverage),
    Fill(Fill),
    /// The rank of the document before; unused by functions that remember nothing.
    Rank(i64),
}

impl Running {
    /// The value for the document at `row`, whose window is `range`. Called for each row in order.
    pub(super) fn value(
        &mut self,
        function: &Function,
        partition: &Partition,
        column: &[Operand],
        row: usize,
        range: Range<usize>,
        slides: bool,
    ) -> Result<Evaluated<'static>> {
        let window = column.get(range.clone()).unwrap_or_default();
        Ok(match (self, function) {
            (Self::Accumulate(running), Function::Accumulate(spec)) => {
                let deviation = spec.deviation().filter(|_| slides);
                match deviation.and_then(|name| series::sliding_deviation(name, window)) {
                    Some(value) => value,
                    None => running.value(spec, column, range)?,
                }
            }
            (_, Function::Covariance { .. }) if slides && !series::are_finite(window) => Evaluated::NULL,
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
            (_, Function::Covariance { divisor, .. }) => series::covariance(*divisor, window),
            _ => Evaluated::NULL,
        })
    }
}

pub(super) fn refused(name: &str, what: &str) -> Error {
    Error::new(Code::FAILED_TO_PARSE, format!("{name} {what}"))
}
