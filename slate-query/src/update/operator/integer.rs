//! Arguments that must be integers, of whatever numeric type.

use crate::{number::Number, raw::Value};

/// The integer that a value is; `None` for what is no number, has a fraction or lies outside int64.
pub(super) fn integer(value: Value<'_>) -> Option<i64> {
    Number::of(value)?.to_i64()
}
