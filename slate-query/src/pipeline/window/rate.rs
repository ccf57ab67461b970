//! `$derivative` and `$integral` of a value over the sort field.

use std::ops::Range;

use super::{
    Partition,
    column::Column,
    function::{Operand, refused},
    series::place,
};
use crate::{
    Code, Error, Result,
    expression::{DateUnit, Evaluated},
    number::Number,
    raw::{Kind, Value},
};

/// What is computed over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rate {
    /// The change from the first to the last document per unit of the sort field.
    Derivative,
    /// The area under the line through the values, by the trapezoidal rule.
    Integral,
}

/// Parses a unit, which must have a fixed length.
pub(super) fn unit(name: &str, unit: Value<'_>) -> Result<DateUnit> {
    let unit = DateUnit::named(unit.as_str().ok_or_else(|| refused(name, "takes a string as 'unit'"))?)?;
    unit.length().map(|_| unit).ok_or_else(|| refused(name, "takes a unit of at most a week"))
}

impl Rate {
    pub(super) fn of(
        self,
        unit: Option<DateUnit>,
        partition: &Partition,
        column: &Column<Operand>,
        range: Range<usize>,
    ) -> Result<Evaluated<'static>> {
        // Milliseconds per unit; plain numbers are in units of one.
        let scale = Number::Int64(unit.and_then(DateUnit::length).unwrap_or(1));
        let point = |row: usize| -> Result<Option<(Number, Number)>> {
            let is_date = partition.sort_value(row).is_some_and(|value| value.kind() == Kind::DateTime);
            if is_date != unit.is_some() {
                let message = if is_date { "a sortBy field with dates needs a 'unit'" } else { "'unit' needs dates" };
                return Err(Error::new(Code(5_624_901), message));
            }
            let Some(y) = column.get(row).and_then(Operand::present) else { return Ok(None) };
            let y = Number::of(y).ok_or_else(|| Error::new(Code(5_624_900), "the input must be a number"))?;
            Ok(Some((place(partition, row)?, y)))
        };
        match self {
            Self::Derivative => {
                if range.len() < 2 {
                    return Ok(Evaluated::NULL);
                }
                let (Some((x0, y0)), Some((x1, y1))) = (point(range.start)?, point(range.end - 1)?) else {
                    return Ok(Evaluated::NULL);
                };
                let (run, rise) = (x1.minus(x0), y1.minus(y0));
                if run.to_f64() == 0.0 {
                    return Ok(Evaluated::NULL);
                }
                Ok(if unit.is_some() { rise.over(run.over(scale)) } else { rise.over(run) }.into())
            }
            Self::Integral => {
                let (mut area, mut before) = (Number::Int32(0), None);
                for row in range {
                    let Some((x, y)) = point(row)? else { return Ok(Evaluated::NULL) };
                    if let Some((x0, y0)) = before.replace((x, y)) {
                        let trapezoid = x.minus(x0).times(y.plus(y0)).over(Number::Int32(2));
                        area = area.plus(if unit.is_some() { trapezoid.over(scale) } else { trapezoid });
                    }
                }
                Ok(area.into())
            }
        }
    }
}
