use std::cmp::Ordering;

use super::{Decimal, compare};
use crate::raw::{Kind, Value};

/// A decoded number with its stored type.
///
/// Equality and order are mathematically exact across types: `Int32(1) == Double(1.0)`, double 0.1 is not decimal 0.1,
/// -0.0 equals 0, and NaN is equal to itself and lower than all other numbers.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each variant is BSON's own name for the type")]
pub enum Number {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Decimal(Decimal),
}

/// Returns the truth of a boolean or a number: numbers other than zero are true, NaN as well. `None` for other types.
pub fn truth(value: Value<'_>) -> Option<bool> {
    value.as_bool().or_else(|| Number::of(value).map(|number| number != Number::Int32(0)))
}

impl Number {
    /// Returns the number in a value; `None` if it is not a number.
    #[inline]
    pub fn of(value: Value<'_>) -> Option<Self> {
        match value.kind() {
            Kind::Int32 => value.as_i32().map(Self::Int32),
            Kind::Int64 => value.as_i64().map(Self::Int64),
            Kind::Double => value.as_f64().map(Self::Double),
            Kind::Decimal128 => value.as_decimal().map(|bits| Self::Decimal(Decimal::from_bits(bits))),
            _ => None,
        }
    }

    /// Returns the stored type.
    pub fn kind(self) -> Kind {
        match self {
            Self::Int32(_) => Kind::Int32,
            Self::Int64(_) => Kind::Int64,
            Self::Double(_) => Kind::Double,
            Self::Decimal(_) => Kind::Decimal128,
        }
    }

    /// Returns whether this is NaN.
    #[inline]
    pub fn is_nan(self) -> bool {
        match self {
            Self::Double(double) => double.is_nan(),
            Self::Decimal(decimal) => decimal.is_nan(),
            Self::Int32(_) | Self::Int64(_) => false,
        }
    }

    /// Returns whether this is an infinity.
    pub fn is_infinite(self) -> bool {
        match self {
            Self::Double(double) => double.is_infinite(),
            Self::Decimal(decimal) => matches!(decimal, Decimal::Infinite(_)),
            Self::Int32(_) | Self::Int64(_) => false,
        }
    }

    /// Returns whether this is neither NaN nor an infinity.
    pub fn is_finite(self) -> bool {
        !self.is_nan() && !self.is_infinite()
    }

    /// Compares with zero. NaN is lower.
    pub fn signum(self) -> Ordering {
        self.cmp(&Self::Int32(0))
    }

    /// Returns the number as an integer; `None` if it is not whole or is outside the range of int64.
    #[inline]
    pub fn to_i64(self) -> Option<i64> {
        match self {
            Self::Int32(int) => Some(i64::from(int)),
            Self::Int64(int) => Some(int),
            Self::Double(double) => truncate(double).filter(|&int| int_equals(int, double)),
            Self::Decimal(decimal) => decimal.to_i64(),
        }
    }

    /// Returns the integer part, truncated toward zero; `None` for NaN, infinities and numbers outside the range of
    /// int64.
    pub fn to_i64_truncating(self) -> Option<i64> {
        match self {
            Self::Int32(int) => Some(i64::from(int)),
            Self::Int64(int) => Some(int),
            Self::Double(double) => truncate(double),
            Self::Decimal(decimal) => decimal.to_i64_truncating(),
        }
    }

    /// Returns the number as an integer, as MongoDB's commands convert it: doubles are truncated, decimals rounded
    /// (ties to even), NaN is 0, and a number outside the range of int64 becomes the end of the range.
    pub fn to_i64_saturating(self) -> i64 {
        let bound = if self.signum() == Ordering::Less { i64::MIN } else { i64::MAX };
        match self {
            _ if self.is_nan() => 0,
            Self::Decimal(decimal) => decimal.to_i64_rounding().unwrap_or(bound),
            _ => self.to_i64_truncating().unwrap_or(bound),
        }
    }

    /// Returns the nearest double (ties to even). A decimal beyond the range of doubles becomes an infinity.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int32(int) => f64::from(int),
            Self::Int64(int) => nearest(int),
            Self::Double(double) => double,
            Self::Decimal(decimal) => decimal.to_f64(),
        }
    }

    /// Returns the number as a decimal. Integers are exact, doubles are rounded to 15 significant digits as in
    /// MongoDB's arithmetic.
    pub fn to_decimal(self) -> Decimal {
        match self {
            Self::Int32(int) => Decimal::from(i64::from(int)),
            Self::Int64(int) => Decimal::from(int),
            Self::Double(double) => Decimal::from_f64(double),
            Self::Decimal(decimal) => decimal,
        }
    }
}

impl Ord for Number {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        compare::numbers(*self, *other)
    }
}

impl PartialOrd for Number {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

/// 2^63 as a double.
pub(crate) const TWO_63: f64 = 9_223_372_036_854_775_808.0;

#[expect(clippy::cast_possible_truncation, reason = "checked to be within i64, and truncation is intended")]
fn truncate(double: f64) -> Option<i64> {
    (-TWO_63..TWO_63).contains(&double).then_some(double as i64)
}

#[expect(clippy::cast_precision_loss, reason = "the int was truncated from a double, so it is one exactly")]
fn int_equals(int: i64, double: f64) -> bool {
    int as f64 == double
}

#[expect(clippy::cast_precision_loss, reason = "rounds to the nearest double")]
fn nearest(int: i64) -> f64 {
    int as f64
}
