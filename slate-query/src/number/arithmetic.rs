//! Addition and multiplication across the four numeric types, with MongoDB's promotion.
//!
//! Decimals follow IEEE 754-2008: 34 digits, rounding half to even, and the preferred exponents (the lesser for a sum,
//! the sum for a product).

use dashu_int::UBig;

use super::{Decimal, Number, Sign, quad::rounded};

/// The number of working digits before rounding; more than a decimal has.
const WORKING_DIGITS: u32 = 37;

impl Number {
    /// Returns the sum in the wider type: int32 overflows into int64, a double is wider than integers, a decimal is the
    /// widest. `None` if int64 overflows.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.combine(other, i64::checked_add, |a, b| a + b, Decimal::add)
    }

    /// Returns the sum; a double if int64 overflows.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.checked_add(other).unwrap_or_else(|| Self::Double(self.to_f64() + other.to_f64()))
    }

    /// Returns the product, in the same type as the sum. `None` if int64 overflows.
    #[must_use]
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        self.combine(other, i64::checked_mul, |a, b| a * b, Decimal::multiply)
    }

    /// Returns the difference, in the same type as the sum; a double if int64 overflows.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.combine(other, i64::checked_sub, |a, b| a - b, |a, b| a.add(b.negated()))
            .unwrap_or_else(|| Self::Double(self.to_f64() - other.to_f64()))
    }

    /// Returns the product, in the same type as the sum; a double if int64 overflows.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        self.checked_mul(other).unwrap_or_else(|| Self::Double(self.to_f64() * other.to_f64()))
    }

    /// Returns whether both have the same type and value. NaN is not identical to itself. The sign of a zero and the
    /// exponent of a decimal do not count.
    pub fn is_identical(self, other: Self) -> bool {
        self.kind() == other.kind() && !self.is_nan() && self == other
    }

    fn combine(
        self,
        other: Self,
        integers: fn(i64, i64) -> Option<i64>,
        doubles: fn(f64, f64) -> f64,
        decimals: fn(Decimal, Decimal) -> Decimal,
    ) -> Option<Self> {
        Some(match (self, other) {
            (Self::Int32(a), Self::Int32(b)) => {
                let result = integers(i64::from(a), i64::from(b))?;
                i32::try_from(result).map_or(Self::Int64(result), Self::Int32)
            }
            (Self::Decimal(_), _) | (_, Self::Decimal(_)) => {
                Self::Decimal(decimals(self.to_decimal(), other.to_decimal()))
            }
            (Self::Double(_), _) | (_, Self::Double(_)) => {
                let result = doubles(self.to_f64(), other.to_f64());
                // A canonical NaN, independent of the processor's sign and payload.
                Self::Double(if result.is_nan() { f64::NAN } else { result })
            }
            (Self::Int64(a), Self::Int64(b)) => Self::Int64(integers(a, b)?),
            (Self::Int64(a), Self::Int32(b)) => Self::Int64(integers(a, i64::from(b))?),
            (Self::Int32(a), Self::Int64(b)) => Self::Int64(integers(i64::from(a), b)?),
        })
    }
}

impl Decimal {
    /// Returns the sum, rounded half to even to 34 digits.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "an operator would hide that this rounds")]
    pub fn add(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nan, _) | (_, Self::Nan) => Self::Nan,
            (Self::Infinite(a), Self::Infinite(b)) if a != b => Self::Nan,
            (Self::Infinite(sign), _) | (_, Self::Infinite(sign)) => Self::Infinite(sign),
            (
                Self::Finite { sign: a, coefficient: x, exponent: high },
                Self::Finite { sign: b, coefficient: y, exponent: low },
            ) if high >= low => sum(Term { sign: a, coefficient: x, exponent: high }, b, y, low),
            (
                Self::Finite { sign: a, coefficient: x, exponent: low },
                Self::Finite { sign: b, coefficient: y, exponent: high },
            ) => sum(Term { sign: b, coefficient: y, exponent: high }, a, x, low),
        }
    }

    /// Returns the product, rounded half to even to 34 digits.
    #[must_use]
    pub fn multiply(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nan, _) | (_, Self::Nan) => Self::Nan,
            (Self::Infinite(_), Self::Finite { coefficient: 0, .. })
            | (Self::Finite { coefficient: 0, .. }, Self::Infinite(_)) => Self::Nan,
            (Self::Infinite(a) | Self::Finite { sign: a, .. }, Self::Infinite(b))
            | (Self::Infinite(a), Self::Finite { sign: b, .. }) => Self::Infinite(product_sign(a, b)),
            (
                Self::Finite { sign: a, coefficient: x, exponent: p },
                Self::Finite { sign: b, coefficient: y, exponent: q },
            ) => rounded(product_sign(a, b), &(UBig::from(x) * UBig::from(y)), p + q),
        }
    }
}

struct Term {
    sign: Sign,
    coefficient: u128,
    exponent: i32,
}

/// Adds the term of the lower exponent to that of the higher.
fn sum(high: Term, sign: Sign, coefficient: u128, exponent: i32) -> Decimal {
    let apart = high.exponent.abs_diff(exponent);
    let lift = apart.min(WORKING_DIGITS - super::decimal::digits(high.coefficient).min(WORKING_DIGITS));
    let (lift, sink) = if high.coefficient == 0 { (apart, 0) } else { (lift, apart - lift) };
    let lifted = if high.coefficient == 0 { 0 } else { high.coefficient * 10_u128.pow(lift) };
    // Digits below the working digits affect rounding only by being zero or not.
    let (sunk, rest) = match 10_u128.checked_pow(sink) {
        Some(power) => (coefficient / power, !coefficient.is_multiple_of(power)),
        None => (0, coefficient != 0),
    };
    let (a, shift) = if rest { (lifted * 10, 1) } else { (lifted, 0) };
    let (b, _) = sticky(sunk, rest);
    let exponent = exponent + i32::try_from(sink).unwrap_or(i32::MAX / 2) - shift;
    if high.sign == sign {
        return Decimal::rounded(sign, a + b, exponent);
    }
    let zero_or = |sign| if a == b { Sign::Positive } else { sign };
    Decimal::rounded(zero_or(if a > b { high.sign } else { sign }), a.abs_diff(b), exponent)
}

/// Appends a digit to the coefficient if the remainder is not zero. Returns the coefficient, and by how much that
/// lowers the exponent.
fn sticky(coefficient: u128, rest: bool) -> (u128, i32) {
    if rest { (coefficient * 10 + 1, 1) } else { (coefficient, 0) }
}

pub(super) fn product_sign(a: Sign, b: Sign) -> Sign {
    if a == b { Sign::Positive } else { Sign::Negative }
}
