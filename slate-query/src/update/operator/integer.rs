//! Integer arguments of any numeric type.

use crate::{number::Number, raw::Value};

/// Returns the value as an integer; `None` if it is not a whole number within int64.
pub(super) fn integer(value: Value<'_>) -> Option<i64> {
    Number::of(value)?.to_i64()
}
