//! Real functions of decimals, rounded to 34 digits.

use dashu_float::{Context, FBig, FpError, FpResult, Repr, round::mode::HalfEven};

use super::{Decimal, MIN_EXPONENT, Rounding, Sign};

/// `$exp` of a number above this is infinite, and `$exp` of a number below its negative is zero: e^14220 exceeds 10^6176.
const MOST_EXPONENT: f64 = 14_300.0;

/// For an x of a smaller magnitude, e^x and 1 + x are 1 in 34 digits.
const NEGLIGIBLE: f64 = 1e-36;

/// A power above 10 to this exponent is infinite, and a power below 10 to the negative exponent is zero.
const MOST_POWER: f64 = 6_300.0;

type Real = FBig<HalfEven, 10>;

const CONTEXT: Context<HalfEven> = Context::new(34);

/// A function of a real number. `None` as its result: the number is outside its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Function {
    Exp,
    Ln,
    Log10,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
}

impl Function {
    /// Computes the function. `None`: the number is outside its domain.
    pub fn of(self, decimal: Decimal) -> Option<Decimal> {
        let sign = match decimal {
            Decimal::Nan => return Some(Decimal::Nan),
            Decimal::Infinite(sign) => return self.of_infinity(sign),
            Decimal::Finite { sign, .. } => sign,
        };
        let size = decimal.abs().to_f64();
        match self {
            Self::Exp if size > MOST_EXPONENT => {
                return Some(if sign == Sign::Positive { Decimal::Infinite(sign) } else { SMALLEST_ZERO });
            }
            Self::Exp if size < NEGLIGIBLE => return Some(Decimal::from(1)),
            Self::Sinh if size > MOST_EXPONENT => return Some(Decimal::Infinite(sign)),
            Self::Cosh if size > MOST_EXPONENT => return Some(Decimal::Infinite(Sign::Positive)),
            Self::Tanh if size > MOST_EXPONENT => return self.of_infinity(sign),
            Self::Sin | Self::Tan | Self::Asin | Self::Atan | Self::Sinh | Self::Tanh | Self::Asinh | Self::Atanh
                if decimal == Decimal::ZERO =>
            {
                return Some(decimal);
            }
            _ => {}
        }
        let x = &real(decimal)?;
        rounded(match self {
            Self::Exp => CONTEXT.exp(x, None),
            Self::Ln => CONTEXT.ln(x, None),
            Self::Log10 => CONTEXT.log10(x, None),
            Self::Sin => CONTEXT.sin(x, None),
            Self::Cos => CONTEXT.cos(x, None),
            Self::Tan => CONTEXT.tan(x, None),
            Self::Asin => CONTEXT.asin(x, None),
            Self::Acos => CONTEXT.acos(x, None),
            Self::Atan => CONTEXT.atan(x, None),
            Self::Sinh => CONTEXT.sinh(x, None),
            Self::Cosh => CONTEXT.cosh(x, None),
            Self::Tanh => CONTEXT.tanh(x, None),
            Self::Asinh => CONTEXT.asinh(x, None),
            Self::Acosh => CONTEXT.acosh(x, None),
            Self::Atanh => CONTEXT.atanh(x, None),
        })
    }

    fn of_infinity(self, sign: Sign) -> Option<Decimal> {
        let one = Decimal::from(if sign == Sign::Positive { 1 } else { -1 });
        match (self, sign) {
            (Self::Exp, Sign::Negative) => Some(SMALLEST_ZERO),
            (Self::Exp | Self::Ln | Self::Log10 | Self::Acosh, Sign::Positive) | (Self::Sinh | Self::Asinh, _) => {
                Some(Decimal::Infinite(sign))
            }
            (Self::Cosh, _) => Some(Decimal::Infinite(Sign::Positive)),
            (Self::Tanh, _) => Some(one),
            (Self::Atan, _) => Some(arc_tangent(one, Decimal::ZERO)),
            _ => None,
        }
    }
}

/// The zero with the least exponent: the result of an underflow.
const SMALLEST_ZERO: Decimal = Decimal::Finite { sign: Sign::Positive, coefficient: 0, exponent: MIN_EXPONENT };

/// π / 4.
const QUARTER_OF_PI: Decimal =
    Decimal::Finite { sign: Sign::Positive, coefficient: 7_853_981_633_974_483_096_156_608_458_198_757, exponent: -34 };

/// Returns the angle of the point (x, y), from -π to π.
pub fn arc_tangent(y: Decimal, x: Decimal) -> Decimal {
    let special = |decimal: Decimal| !matches!(decimal, Decimal::Finite { coefficient: 1.., .. });
    if !special(y) && !special(x) {
        let (Some(y), Some(x)) = (real(y), real(x)) else { return Decimal::Nan };
        return rounded(CONTEXT.atan2(&y, &x, None)).unwrap_or(Decimal::Nan);
    }
    // On an axis, or at infinity, it is a multiple of π / 4.
    let angle = direction(y).atan2(direction(x));
    let quarters = (angle / std::f64::consts::FRAC_PI_4).round();
    let quarters = Decimal::from_f64(quarters).shortened();
    if quarters == Decimal::ZERO { quarters } else { quarters.multiply(QUARTER_OF_PI) }
}

/// Returns a double that is zero, infinite or negative if the number is.
fn direction(decimal: Decimal) -> f64 {
    match decimal {
        Decimal::Finite { sign: Sign::Negative, coefficient: 1.., .. } => -1.0,
        Decimal::Finite { coefficient: 1.., .. } => 1.0,
        special => special.to_f64(),
    }
}

/// Returns a power. `None` if it has no real value, or if an operand is not finite or the base is zero.
pub fn power(base: Decimal, exponent: Decimal) -> Option<Decimal> {
    let (Decimal::Finite { sign, coefficient: 1.., .. }, Decimal::Finite { .. }) = (base, exponent) else {
        return None;
    };
    let is_whole = exponent.to_places(0, Rounding::TowardZero) == exponent;
    if sign == Sign::Negative && !is_whole {
        return None;
    }
    let log = base.abs().log10() * exponent.to_f64();
    if log.abs() > MOST_POWER {
        let sign = if sign == Sign::Negative && is_odd(exponent) { Sign::Negative } else { Sign::Positive };
        return Some(match log > 0.0 {
            true => Decimal::Infinite(sign),
            false => Decimal::Finite { sign, coefficient: 0, exponent: MIN_EXPONENT },
        });
    }
    rounded(CONTEXT.powf(&real(base)?, &real(exponent)?, None)).map(Decimal::lengthened)
}

impl Decimal {
    /// Returns approximately the decimal logarithm of a positive number.
    fn log10(self) -> f64 {
        match self {
            // A coefficient has at most 34 digits, which is in the range of doubles.
            Self::Finite { sign, coefficient, exponent } => {
                let coefficient = Self::Finite { sign, coefficient, exponent: 0 };
                coefficient.to_f64().log10() + f64::from(exponent)
            }
            Self::Nan | Self::Infinite(_) => f64::NAN,
        }
    }
}

fn is_odd(whole: Decimal) -> bool {
    matches!(whole.shortened(), Decimal::Finite { coefficient, exponent: 0, .. } if coefficient % 2 == 1)
}

fn real(decimal: Decimal) -> Option<Repr<10>> {
    let Decimal::Finite { sign, coefficient, exponent } = decimal else { return None };
    let coefficient = i128::try_from(coefficient).ok()?;
    let signed = if sign == Sign::Negative { -coefficient } else { coefficient };
    Some(Repr::new(signed.into(), isize::try_from(exponent).ok()?))
}

/// Returns an exact result unchanged, and a rounded result with 34 digits. `None` if there is no result.
fn rounded(result: FpResult<Real>) -> Option<Decimal> {
    let result = match result {
        Err(FpError::Overflow(_)) => return Some(Decimal::Infinite(Sign::Positive)),
        Err(FpError::Underflow(_)) => return Some(SMALLEST_ZERO),
        result => result.ok()?,
    };
    let is_exact = result.error_ref().is_none();
    let repr = result.value().into_repr();
    if repr.is_infinite() {
        let is_negative = repr == Repr::neg_infinity();
        return Some(Decimal::Infinite(if is_negative { Sign::Negative } else { Sign::Positive }));
    }
    let significand = i128::try_from(repr.significand()).ok()?;
    let sign = if significand < 0 { Sign::Negative } else { Sign::Positive };
    // Both limits are far beyond the range of decimals, so the clamp does not change the result.
    let exponent = i32::try_from(repr.exponent().clamp(-1_000_000, 1_000_000)).ok()?;
    let decimal = Decimal::rounded(sign, significand.unsigned_abs(), exponent);
    Some(if is_exact { decimal.to_units() } else { decimal.lengthened() })
}
