//! Converts numbers as MongoDB's commands do: every numeric type is accepted as an integer.

use slate_query::{Code, number::Number, raw::Value};

use crate::{Error, Result};

/// Converts a number to an integer, see [`Number::to_i64_saturating`]. Returns `None` for other types.
pub(super) fn to_i64(value: Value<'_>) -> Option<i64> {
    Number::of(value).map(Number::to_i64_saturating)
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
