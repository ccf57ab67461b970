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
    number::{Number, Sum},
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
    unit.length()
        .map(|_| unit)
        .ok_or_else(|| Error::new(Code(5_490_710), format!("{name} takes a unit of at most a week")))
}

impl Rate {
    /// Returns the code for a sort value that is not a date, with a unit.
    fn not_a_date(self) -> Code {
        match self {
            Self::Derivative => Code(5_624_900),
            Self::Integral => Code(5_423_901),
        }
    }

    /// Returns the code for a sort value that is not a number, without a unit.
    fn not_a_number(self) -> Code {
        match self {
            Self::Derivative => Code(5_624_901),
            Self::Integral => Code(5_423_902),
        }
    }

    /// Returns the input of a document as a number. A derivative can be that of a date, in milliseconds.
    fn input(self, value: Value<'_>) -> Result<Number> {
        match self {
            Self::Derivative => {
                let date = value.as_millis().filter(|_| value.kind() == Kind::DateTime).map(Number::Int64);
                let message = || format!("$derivative takes numbers and dates, not {}", value.kind().alias());
                date.or(Number::of(value)).ok_or_else(|| Error::new(Code::TYPE_MISMATCH, message()))
            }
            Self::Integral => {
                let message = || format!("$integral takes numbers, not {}", value.kind().alias());
                Number::of(value).ok_or_else(|| Error::new(Code(5_423_900), message()))
            }
        }
    }

    pub(super) fn of(
        self,
        unit: Option<DateUnit>,
        partition: &Partition,
        column: &Column<Operand>,
        range: Range<usize>,
    ) -> Result<Evaluated<'static>> {
        // The milliseconds of the unit; without a unit, the sort values are plain numbers and the scale is 1.
        let scale = Number::Int64(unit.and_then(DateUnit::length).unwrap_or(1));
        let point = |row: usize| -> Result<Option<(Number, Number)>> {
            let kind = partition.sort_value(row).map(Value::kind);
            match unit {
                Some(_) if kind != Some(Kind::DateTime) => {
                    return Err(Error::new(self.not_a_date(), "'unit' needs a sortBy field with dates"));
                }
                None if !kind.is_some_and(Kind::is_number) => {
                    return Err(Error::new(self.not_a_number(), "without a 'unit' the sortBy field must be a number"));
                }
                _ => {}
            }
            let Some(y) = column.get(row).and_then(Operand::present) else { return Ok(None) };
            Ok(Some((place(partition, row)?, self.input(y)?)))
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
                if range.is_empty() {
                    return Ok(Evaluated::NULL);
                }
                let (mut area, mut before, mut has_nan) = (Sum::default(), None, false);
                for row in range {
                    let Some((x, y)) = point(row)? else { return Ok(Evaluated::NULL) };
                    has_nan |= x.is_nan() || y.is_nan();
                    if let Some((x0, y0)) = before.replace((x, y)) {
                        area.add(x.minus(x0).times(y.plus(y0)).over(Number::Int32(2)));
                    }
                }
                let area = area.total();
                Ok(match unit {
                    // As in MongoDB, a double also among decimals.
                    _ if has_nan => Number::Double(f64::NAN),
                    Some(_) => area.over(scale),
                    None => area,
                }
                .into())
            }
        }
    }
}
