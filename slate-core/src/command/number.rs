//! Numbers as MongoDB's commands take them: any numeric type where an integer is wanted.

use std::cmp::Ordering;

use slate_query::{
    Code,
    number::{Decimal, Number, Sign},
    raw::Value,
};

use crate::{Error, Result};

/// A number as an integer: doubles are truncated, decimals rounded (half to even), NaN is 0, and what lies beyond int64
/// is its nearest end. `None` for what is no number.
pub(super) fn to_i64(value: Value<'_>) -> Option<i64> {
    let number = Number::of(value)?;
    let bound = if number.signum() == Ordering::Less { i64::MIN } else { i64::MAX };
    Some(match number {
        _ if number.is_nan() => 0,
        Number::Decimal(decimal) => round(decimal).unwrap_or(bound),
        _ => number.to_i64_truncating().unwrap_or(bound),
    })
}

/// Half to even; `None` beyond int64.
fn round(decimal: Decimal) -> Option<i64> {
    let Decimal::Finite { sign, coefficient, exponent } = decimal else { return None };
    if exponent >= 0 {
        return decimal.to_i64();
    }
    // A divisor beyond u128 is far more than twice any coefficient.
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

/// An integer and nothing else, in any numeric type.
///
/// # Errors
/// `FailedToParse` (9) for NaN, infinities, fractions, and what lies beyond int64.
pub(super) fn exact_i64(name: &str, number: Number) -> Result<i64> {
    number.to_i64().ok_or_else(|| {
        let message = format!("Expected an integer that fits in 64 bits: {name}");
        Error::invalid(Code::FAILED_TO_PARSE, message).at(name)
    })
}

/// Whether a number is anything but zero; `None` for what is no number.
pub(super) fn is_nonzero(value: Value<'_>) -> Option<bool> {
    Number::of(value).map(|number| number != Number::Int32(0))
}
