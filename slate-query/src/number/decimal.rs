use std::cmp::Ordering;

use super::compare;

/// The largest coefficient of a decimal128: 34 nines.
pub const MAX_COEFFICIENT: u128 = 10_u128.pow(34) - 1;
/// The least exponent of a decimal128.
pub const MIN_EXPONENT: i32 = -6176;
/// The greatest exponent of a decimal128.
pub const MAX_EXPONENT: i32 = 6111;

/// The bias of a stored exponent.
const BIAS: i32 = 6176;
/// The position of the lowest bit of the exponent, unless the two bits below the sign are both set.
const COEFFICIENT_BITS: u32 = 113;

/// A sign. Zeros have one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Sign {
    Positive,
    Negative,
}

/// A decoded decimal128. Equality and order are those of values: 1.0 equals 1.00; NaN is lowest and equals itself.
#[derive(Clone, Copy, Debug)]
pub enum Decimal {
    /// NaN with any payload.
    Nan,
    /// An infinity.
    Infinite(Sign),
    /// sign · coefficient · 10^exponent.
    Finite {
        /// The sign, also of zero.
        sign: Sign,
        /// At most [`MAX_COEFFICIENT`].
        coefficient: u128,
        /// From [`MIN_EXPONENT`] to [`MAX_EXPONENT`].
        exponent: i32,
    },
}

impl Decimal {
    /// Zero, with exponent 0.
    pub const ZERO: Self = Self::Finite { sign: Sign::Positive, coefficient: 0, exponent: 0 };

    /// Decodes a stored decimal (the binary-integer encoding, little-endian). As in IEEE 754, a coefficient of more
    /// than 34 digits counts as zero.
    #[inline]
    pub fn from_bits(bits: [u8; 16]) -> Self {
        let bits = u128::from_le_bytes(bits);
        let sign = if bits >> 127 == 1 { Sign::Negative } else { Sign::Positive };
        let combination = (bits >> 122) & 0x1f;
        match combination {
            0x1f => Self::Nan,
            0x1e => Self::Infinite(sign),
            // With these two bits the coefficient is at least 2^113, which has more than 34 digits.
            0x18..=0x1d => Self::Finite { sign, coefficient: 0, exponent: exponent(bits >> (COEFFICIENT_BITS - 2)) },
            _ => {
                let coefficient = bits & ((1 << COEFFICIENT_BITS) - 1);
                let coefficient = if coefficient > MAX_COEFFICIENT { 0 } else { coefficient };
                Self::Finite { sign, coefficient, exponent: exponent(bits >> COEFFICIENT_BITS) }
            }
        }
    }

    /// Encodes the decimal. Digits beyond 34 are rounded half to even, overflow becomes an infinity, underflow becomes
    /// zero.
    pub fn to_bits(self) -> [u8; 16] {
        let bits = match self {
            Self::Nan => 0x1f << 122,
            Self::Infinite(sign) => sign.bit() | (0x1e << 122),
            Self::Finite { sign, coefficient, exponent } => {
                if coefficient > MAX_COEFFICIENT || !(MIN_EXPONENT..=MAX_EXPONENT).contains(&exponent) {
                    return Self::rounded(sign, coefficient, exponent).to_bits();
                }
                let biased = u128::try_from(exponent + BIAS).unwrap_or_default();
                sign.bit() | (biased << COEFFICIENT_BITS) | coefficient
            }
        };
        bits.to_le_bytes()
    }

    /// Returns sign · coefficient · 10^exponent, rounded half to even into the range of a decimal128.
    pub fn rounded(sign: Sign, coefficient: u128, exponent: i32) -> Self {
        let (mut coefficient, mut exponent) = (coefficient, exponent);
        let excess = digits(coefficient).saturating_sub(34);
        let below = u32::try_from(MIN_EXPONENT.saturating_sub(exponent)).unwrap_or(0);
        let drop = excess.max(below);
        if drop > 0 {
            coefficient = divide_half_even(coefficient, drop);
            exponent = exponent.saturating_add(i32::try_from(drop).unwrap_or(i32::MAX));
            if coefficient > MAX_COEFFICIENT {
                coefficient /= 10;
                exponent = exponent.saturating_add(1);
            }
        }
        if exponent > MAX_EXPONENT {
            let excess = u32::try_from(exponent - MAX_EXPONENT).unwrap_or(u32::MAX);
            if coefficient == 0 {
                exponent = MAX_EXPONENT;
            } else if digits(coefficient).saturating_add(excess) <= 34 {
                coefficient *= 10_u128.pow(excess);
                exponent = MAX_EXPONENT;
            } else {
                return Self::Infinite(sign);
            }
        }
        Self::Finite { sign, coefficient, exponent }
    }

    /// Returns whether the decimal is NaN.
    #[inline]
    pub fn is_nan(self) -> bool {
        matches!(self, Self::Nan)
    }

    /// Returns the decimal as an integer; `None` if it is not whole or is outside the range of int64.
    pub fn to_i64(self) -> Option<i64> {
        self.to_integer(Remainder::Refused)
    }

    /// Returns the integer part, truncated toward zero; `None` for NaN, infinities and numbers outside the range of
    /// int64.
    pub fn to_i64_truncating(self) -> Option<i64> {
        self.to_integer(Remainder::Dropped)
    }

    /// Returns the nearest integer (ties to even); `None` for NaN, infinities and numbers outside the range of int64.
    pub fn to_i64_rounding(self) -> Option<i64> {
        self.to_integer(Remainder::Rounded)
    }

    fn to_integer(self, remainder: Remainder) -> Option<i64> {
        let Self::Finite { sign, coefficient, exponent } = self else { return None };
        let magnitude = match u32::try_from(exponent) {
            _ if coefficient == 0 => 0,
            Ok(exponent) => coefficient.checked_mul(10_u128.checked_pow(exponent)?)?,
            Err(_) => {
                let power = 10_u128.checked_pow(exponent.unsigned_abs());
                let (whole, rest) = power.map_or((0, coefficient), |power| (coefficient / power, coefficient % power));
                match remainder {
                    Remainder::Refused if rest != 0 => return None,
                    Remainder::Refused | Remainder::Dropped => whole,
                    // A divisor that overflows is more than twice the greatest coefficient.
                    Remainder::Rounded => match power.map(|power| (rest * 2).cmp(&power)) {
                        None | Some(Ordering::Less) => whole,
                        Some(Ordering::Equal) => whole + whole % 2,
                        Some(Ordering::Greater) => whole + 1,
                    },
                }
            }
        };
        let magnitude = i128::try_from(magnitude).ok()?;
        i64::try_from(if sign == Sign::Negative { -magnitude } else { magnitude }).ok()
    }

    /// Returns the nearest double (ties to even); an infinity beyond the range of doubles.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Nan => f64::NAN,
            Self::Infinite(Sign::Positive) => f64::INFINITY,
            Self::Infinite(Sign::Negative) => f64::NEG_INFINITY,
            Self::Finite { sign, coefficient, exponent } => {
                let magnitude = compare::nearest(coefficient, exponent);
                if sign == Sign::Negative { -magnitude } else { magnitude }
            }
        }
    }

    /// Returns the decimal of exactly 15 digits nearest to a double (2.5 becomes 2.50000000000000), as in MongoDB's
    /// arithmetic.
    pub fn from_f64(double: f64) -> Self {
        if double.is_nan() {
            return Self::Nan;
        }
        let sign = if double.is_sign_negative() { Sign::Negative } else { Sign::Positive };
        if double.is_infinite() {
            return Self::Infinite(sign);
        }
        if double == 0.0 {
            return Self::Finite { sign, coefficient: 0, exponent: 0 };
        }
        // The standard library prints correctly rounded digits: one before the point, fourteen after it.
        format!("{double:.14e}").parse().unwrap_or(Self::Nan)
    }
}

/// How the digits after the point are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Remainder {
    Dropped,
    Refused,
    /// Half to even.
    Rounded,
}

impl Sign {
    fn bit(self) -> u128 {
        match self {
            Self::Positive => 0,
            Self::Negative => 1 << 127,
        }
    }
}

impl From<i64> for Decimal {
    fn from(int: i64) -> Self {
        let sign = if int < 0 { Sign::Negative } else { Sign::Positive };
        Self::Finite { sign, coefficient: u128::from(int.unsigned_abs()), exponent: 0 }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        compare::decimals(*self, *other)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

/// Returns the number of digits of a coefficient; zero has none.
#[inline]
pub(crate) fn digits(coefficient: u128) -> u32 {
    coefficient.checked_ilog10().map_or(0, |log| log + 1)
}

/// Returns coefficient / 10^power, rounded half to even.
pub(crate) fn divide_half_even(coefficient: u128, power: u32) -> u128 {
    let Some(divisor) = 10_u128.checked_pow(power) else { return 0 };
    let (quotient, rest) = (coefficient / divisor, coefficient % divisor);
    // The divisor is a power of ten above 1, hence even.
    match rest.cmp(&(divisor / 2)) {
        Ordering::Less => quotient,
        Ordering::Greater => quotient + 1,
        Ordering::Equal => quotient + (quotient & 1),
    }
}

fn exponent(bits: u128) -> i32 {
    i32::try_from(bits & 0x3fff).unwrap_or_default() - BIAS
}
