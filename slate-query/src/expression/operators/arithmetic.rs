//! `$add`, `$subtract`, `$multiply`, `$divide`, `$mod`, `$abs`, `$ceil`, `$floor`, `$round` and `$trunc`.

use super::super::{Evaluated, arguments::Arguments};
use crate::{
    Code, Error, Result,
    number::{Decimal, Number, Rounding},
    raw::{Kind, Value},
};

/// The message of the error of `$divide`, which `$group` gives another code.
pub(crate) const DIVISION_BY_ZERO: &str = "$divide cannot divide by zero";

const OVERFLOW: &str = "the date is out of range";

/// Returns the milliseconds of a date.
fn date(value: Value<'_>) -> Option<i64> {
    value.as_millis()
}

fn overflow(name: &str) -> Error {
    Error::new(Code::OVERFLOW, format!("{name}: {OVERFLOW}"))
}

/// Returns the sum of numbers and at most one date.
pub(super) fn add<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let (mut sum, mut day) = (Number::Int32(0), None);
    for operand in &*arguments.values {
        // As in MongoDB, the first operand that is null or no number decides whether the result is null or an error.
        let Some(value) = operand.present() else { return Ok(Evaluated::NULL) };
        match (Number::of(value), date(value)) {
            // As in MongoDB, the numbers after a date are rounded one by one.
            (Some(number), _) => match day {
                Some(millis) => day = Some(moved(millis, number, i64::checked_add).ok_or_else(|| overflow("$add"))?),
                None => sum = sum.plus(number),
            },
            (None, Some(_)) if day.is_some() => {
                return Err(Error::new(Code(16612), "$add takes only one date"));
            }
            (None, Some(millis)) => {
                day = Some(moved(millis, sum, i64::checked_add).ok_or_else(|| overflow("$add"))?);
            }
            (None, None) => return Err(arguments.wrong_type(14, "numbers and dates", operand)),
        }
    }
    Ok(match day {
        None => narrowed(sum, &arguments).into(),
        Some(day) => Evaluated::date(day),
    })
}

/// Returns a sum or product of int32 operands as int32 if it fits, even if an intermediate result did not.
fn narrowed(number: Number, arguments: &Arguments<'_, '_>) -> Number {
    match number {
        Number::Int64(int) if arguments.values.iter().all(|value| value.or_null().kind() == Kind::Int32) => {
            i32::try_from(int).map_or(number, Number::Int32)
        }
        number => number,
    }
}

/// Returns a date moved by a number of milliseconds, rounded; `None` if it is out of range.
fn moved(day: i64, by: Number, combine: fn(i64, i64) -> Option<i64>) -> Option<i64> {
    let by = match by {
        Number::Double(double) => Number::Double(double.round()),
        Number::Decimal(decimal) => Number::Decimal(decimal.to_places(0, Rounding::HalfEven)),
        whole => whole,
    };
    combine(day, by.to_i64()?)
}

pub(super) fn subtract<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    if arguments.has_null() {
        return Ok(Evaluated::NULL);
    }
    let (left, right) = (arguments.get(0), arguments.get(1));
    let (a, b) = (left.or_null(), right.or_null());
    Ok(match (Number::of(a), Number::of(b), date(a), date(b)) {
        (Some(a), Some(b), ..) => a.minus(b).into(),
        (_, _, Some(a), Some(b)) => Evaluated::int64(a.checked_sub(b).ok_or_else(|| overflow("$subtract"))?),
        (_, Some(by), Some(day), _) => {
            Evaluated::date(moved(day, by, i64::checked_sub).ok_or_else(|| overflow("$subtract"))?)
        }
        _ => {
            let wrong = if Number::of(a).is_none() && date(a).is_none() { left } else { right };
            return Err(arguments.wrong_type(14, "two numbers, two dates, or a date and a number", wrong));
        }
    })
}

pub(super) fn multiply<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let mut product = Number::Int32(1);
    for operand in &*arguments.values {
        if operand.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let number = Number::of(operand.or_null()).ok_or_else(|| arguments.wrong_type(14, "numbers", operand))?;
        product = product.times(number);
    }
    Ok(narrowed(product, &arguments).into())
}

pub(super) fn divide<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let Some([a, b]) = two_numbers(&arguments, [14, 14])? else { return Ok(Evaluated::NULL) };
    if b == Number::Int32(0) {
        return Err(Error::new(Code::BAD_VALUE, DIVISION_BY_ZERO));
    }
    Ok(a.over(b).into())
}

pub(super) fn modulo<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let Some([a, b]) = two_numbers(&arguments, [16611, 16611])? else { return Ok(Evaluated::NULL) };
    if b == Number::Int32(0) {
        let is_decimal = [a, b].iter().any(|number| matches!(number, Number::Decimal(_)));
        let code = if is_decimal { 5_733_415 } else { 16610 };
        return Err(Error::new(Code(code), "$mod cannot divide by zero"));
    }
    Ok(a.modulo(b).into())
}

/// Returns the first operand as a number; `None` for null.
pub(super) fn first_number(arguments: &Arguments<'_, '_>, code: i32) -> Result<Option<Number>> {
    arguments.read_present(0, Number::of, code, "a number")
}

/// Returns the two operands as numbers; `None` if one is null.
pub(super) fn two_numbers(arguments: &Arguments<'_, '_>, codes: [i32; 2]) -> Result<Option<[Number; 2]>> {
    if arguments.has_null() {
        return Ok(None);
    }
    let [first, second] = codes;
    let read = |place, code| arguments.read(place, Number::of, code, "two numbers");
    Ok(Some([read(0, first)?, read(1, second)?]))
}

pub(super) fn abs<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let Some(number) = first_number(&arguments, 28765)? else { return Ok(Evaluated::NULL) };
    Ok(match number {
        Number::Int32(int) => match int.checked_abs() {
            Some(int) => Evaluated::int32(int),
            None => Evaluated::int64(i64::from(int).abs()),
        },
        Number::Int64(int) => Evaluated::int64(
            int.checked_abs()
                .ok_or_else(|| Error::new(Code(28680), "the absolute value of the least int64 is no int64"))?,
        ),
        Number::Double(double) => Evaluated::double(double.abs()),
        Number::Decimal(decimal) => Number::Decimal(decimal.abs()).into(),
    })
}

/// Rounds to whole numbers; integers stay as they are. A decimal becomes NaN if its whole number has more than 34
/// digits.
fn rounded<'v>(number: Number, double: fn(f64) -> f64, mode: Rounding) -> Evaluated<'v> {
    match number {
        Number::Double(value) => Evaluated::double(double(value)),
        Number::Decimal(decimal) => Number::Decimal(match decimal.to_places(0, mode).to_units() {
            units @ Decimal::Finite { exponent: ..=0, .. } => units,
            zero @ Decimal::Finite { coefficient: 0, .. } => zero,
            Decimal::Finite { .. } | Decimal::Infinite(_) | Decimal::Nan => Decimal::Nan,
        })
        .into(),
        whole => whole.into(),
    }
}

pub(super) fn ceil<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(first_number(&arguments, 28765)?.map_or(Evaluated::NULL, |number| rounded(number, f64::ceil, Rounding::Up)))
}

pub(super) fn floor<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(first_number(&arguments, 28765)?.map_or(Evaluated::NULL, |number| rounded(number, f64::floor, Rounding::Down)))
}

pub(super) fn round<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    to_places(&arguments, Rounding::HalfEven)
}

pub(super) fn trunc<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    to_places(&arguments, Rounding::TowardZero)
}

/// Rounds to a number of decimal places, from -20 to 100.
fn to_places<'v>(arguments: &Arguments<'_, 'v>, mode: Rounding) -> Result<Evaluated<'v>> {
    let Some(number) = first_number(arguments, 51081)? else { return Ok(Evaluated::NULL) };
    let places = match arguments.values.len() {
        1 => 0,
        _ => {
            let number = arguments.read_present(1, Number::of, 16004, "a whole number of places")?;
            let Some(number) = number else { return Ok(Evaluated::NULL) };
            let whole = number.to_i64().ok_or_else(|| {
                let double = number.to_f64();
                let is_outside = !double.is_finite() || double.fract() == 0.0;
                Error::new(Code(if is_outside { 31109 } else { 51082 }), "the number of places is no int64")
            })?;
            i32::try_from(whole).ok().filter(|places| (-20..=100).contains(places)).ok_or_else(|| {
                Error::new(Code(51083), format!("{} takes from -20 to 100 places, not {whole}", arguments.name))
            })?
        }
    };
    Ok(match number {
        Number::Int32(int) => match whole_to_places(i64::from(int), places, mode) {
            Some(rounded) => i32::try_from(rounded).map_or(Evaluated::int64(rounded), Evaluated::int32),
            None => return Err(Error::new(Code(51080), "the rounded number is out of range")),
        },
        Number::Int64(int) => Evaluated::int64(
            whole_to_places(int, places, mode)
                .ok_or_else(|| Error::new(Code(51080), "the rounded number is out of range"))?,
        ),
        Number::Double(double) if double.is_finite() => {
            let exact = match places {
                0 => {
                    if mode == Rounding::TowardZero {
                        double.trunc()
                    } else {
                        double.round_ties_even()
                    }
                }
                places => Decimal::exactly(double).to_places(places, mode).to_f64(),
            };
            Evaluated::double(exact)
        }
        Number::Double(double) => Evaluated::double(double),
        Number::Decimal(decimal) => Number::Decimal(decimal.with_places(places, mode)).into(),
    })
}

fn whole_to_places(int: i64, places: i32, mode: Rounding) -> Option<i64> {
    match u32::try_from(-places) {
        Err(_) => Some(int),
        Ok(0) => Some(int),
        Ok(_) => Decimal::from(int).to_places(places, mode).to_i64(),
    }
}
