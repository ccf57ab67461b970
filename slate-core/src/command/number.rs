//! Converts numbers as MongoDB's commands do: every numeric type is accepted as an integer.

use std::cmp::Ordering;

use slate_query::{
    Code,
    number::{Decimal, Number, Sign},
    raw::Value,
};

use crate::{Error, Result};

/// Converts a number to an integer: truncates doubles, rounds decimals half to even, returns 0 for NaN, and saturates
/// beyond int64. Returns `None` for other types.
pub(super) fn to_i64(value: Value<'_>) -> Option<i64> {
    let number = Number::of(value)?;
    let bound = if number.signum() == Ordering::Less { i64::MIN } else { i64::MAX };
    Some(match number {
        _ if number.is_nan() => 0,
        Number::Decimal(decimal) => round(decimal).unwrap_or(bound),
        _ => number.to_i64_truncating().unwrap_or(bound),
    })
}

/// Rounds half to even. Returns `None` beyond int64.
fn round(decimal: Decimal) -> Option<i64> {
    let Decimal::Finite { sign, coefficient, exponent } = decimal else { return None };
    if exponent >= 0 {
        return decimal.to_i64();
    }
    // A divisor beyond u128 is much more than twice the largest coefficient.
    let Some(divisor) = 10_u128.checked_pow(exponent.unsigned_abs()) else { return Some(0) };
    let (whole, rest) = (coefficient / divisor, coefficient % divisor);
    let up = match (rest * 2).cmp(&divisor) {
        Ordering::Less => 0,
        Ordering::Equal => whole % 2,
        Ordering::Greater => 1,
    };
    let magnitude = i128::try_from(whole + up).ok()?;
    i64::try_from(if sign == Sign::Negative { -magnitude } else { magnitude }).ok()
}

/// Converts a whole number of any numeric type.
///
/// # Errors
/// Fails with `FailedToParse` (9) for NaN, infinities, fractions and numbers beyond int64.
pub(super) fn exact_i64(name: &str, number: Number) -> Result<i64> {
    number.to_i64().ok_or_else(|| {
        let message = format!("Expected an integer that fits in 64 bits: {name}");
        Error::invalid(Code::FAILED_TO_PARSE, message).at(name)
    })
}

/// Returns whether a number is not zero. `None` for other types.
pub(super) fn is_nonzero(value: Value<'_>) -> Option<bool> {
    Number::of(value).map(|number| number != Number::Int32(0))
}
