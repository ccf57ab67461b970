use std::{fmt, str::FromStr};

use super::{Decimal, Rounding, Sign, decimal::digits};

/// A text that is not a decimal128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no decimal128")]
pub struct NotDecimal;

impl FromStr for Decimal {
    type Err = NotDecimal;

    /// Parses `-12.50E+3`, `Infinity`, `NaN`. Digits beyond 34 are rounded half to even.
    fn from_str(text: &str) -> Result<Self, NotDecimal> {
        Self::parse(text, Rounding::HalfEven)
    }
}

impl Decimal {
    /// Parses like [`FromStr`], but drops digits beyond 34.
    ///
    /// # Errors
    /// Fails if the text is no decimal.
    pub fn truncated_from_str(text: &str) -> Result<Self, NotDecimal> {
        Self::parse(text, Rounding::TowardZero)
    }

    fn parse(text: &str, mode: Rounding) -> Result<Self, NotDecimal> {
        let (sign, text) = match text.strip_prefix('-') {
            Some(rest) => (Sign::Negative, rest),
            None => (Sign::Positive, text.strip_prefix('+').unwrap_or(text)),
        };
        if text.eq_ignore_ascii_case("nan") {
            return Ok(Self::Nan);
        }
        if text.eq_ignore_ascii_case("inf") || text.eq_ignore_ascii_case("infinity") {
            return Ok(Self::Infinite(sign));
        }
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| NotDecimal)?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return Err(NotDecimal);
        }
        let fraction_digits = i32::try_from(fraction.len()).map_err(|_| NotDecimal)?;
        let mut exponent = exponent.saturating_sub(fraction_digits);
        let (mut coefficient, mut sticky) = (0_u128, 0_u128);
        for byte in whole.bytes().chain(fraction.bytes()) {
            if !byte.is_ascii_digit() {
                return Err(NotDecimal);
            }
            let digit = u128::from(byte - b'0');
            // Beyond 36 digits, rounding depends only on whether a digit is nonzero.
            if digits(coefficient) < if mode == Rounding::TowardZero { 34 } else { 36 } {
                coefficient = coefficient * 10 + digit;
            } else {
                sticky |= digit;
                exponent = exponent.saturating_add(1);
            }
        }
        if sticky != 0 && mode != Rounding::TowardZero {
            coefficient = coefficient * 10 + 1;
            exponent = exponent.saturating_sub(1);
        }
        Ok(Self::rounded(sign, coefficient, exponent))
    }
}

/// Formats as MongoDB does: scientific notation if the exponent is positive or the number is small.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nan => f.write_str("NaN"),
            Self::Infinite(Sign::Positive) => f.write_str("Infinity"),
            Self::Infinite(Sign::Negative) => f.write_str("-Infinity"),
            Self::Finite { sign, coefficient, exponent } => {
                if *sign == Sign::Negative {
                    f.write_str("-")?;
                }
                finite(f, &coefficient.to_string(), *exponent)
            }
        }
    }
}

fn finite(f: &mut fmt::Formatter<'_>, text: &str, exponent: i32) -> fmt::Result {
    let length = i32::try_from(text.len()).unwrap_or(i32::MAX);
    let scientific = exponent + (length - 1);
    if exponent > 0 || scientific < -6 {
        let (first, rest) = text.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return write!(f, "{first}{point}{rest}E{scientific:+}");
    }
    let point = usize::try_from(length + exponent).unwrap_or(0);
    match text.split_at_checked(point) {
        Some((whole, "")) => f.write_str(whole),
        Some(("", _)) | None => {
            let zeros = usize::try_from(-exponent - length).unwrap_or(0);
            write!(f, "0.{}{text}", "0".repeat(zeros))
        }
        Some((whole, fraction)) => write!(f, "{whole}.{fraction}"),
    }
}

/// Returns how a double that is not finite is written: `nan`, `inf` or `-inf`. `None` for a number.
pub fn non_finite_name(double: f64) -> Option<&'static str> {
    match double {
        _ if double.is_finite() => None,
        _ if double.is_nan() => Some("nan"),
        f64::INFINITY => Some("inf"),
        _ => Some("-inf"),
    }
}
