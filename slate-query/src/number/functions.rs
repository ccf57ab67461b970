//! Real functions of decimals, with the digits of Intel's decimal library, which MongoDB uses: see [`Quad`].

mod exponential;
mod hyperbolic;
mod logarithm;
mod power;
mod trigonometric;

pub use power::power;
pub use trigonometric::arc_tangent;

use super::{Decimal, MIN_EXPONENT, Sign, quad::Quad};

/// A function of a real number.
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
    pub fn of(self, x: Decimal) -> Option<Decimal> {
        match x {
            Decimal::Nan => Some(Decimal::Nan),
            Decimal::Infinite(sign) => self.of_infinity(sign),
            Decimal::Finite { .. } => match self {
                Self::Exp => exponential::exp(x),
                Self::Ln => logarithm::ln(x),
                Self::Log10 => logarithm::log10(x),
                Self::Sin => trigonometric::sin(x),
                Self::Cos => trigonometric::cos(x),
                Self::Tan => trigonometric::tan(x),
                Self::Asin => trigonometric::asin(x),
                Self::Acos => trigonometric::acos(x),
                Self::Atan => trigonometric::atan(x),
                Self::Sinh => hyperbolic::sinh(x),
                Self::Cosh => hyperbolic::cosh(x),
                Self::Tanh => hyperbolic::tanh(x),
                Self::Asinh => hyperbolic::asinh(x),
                Self::Acosh => hyperbolic::acosh(x),
                Self::Atanh => hyperbolic::atanh(x),
            },
        }
    }

    fn of_infinity(self, sign: Sign) -> Option<Decimal> {
        match (self, sign) {
            (Self::Exp, Sign::Negative) => Some(Decimal::ZERO),
            (Self::Exp | Self::Ln | Self::Log10 | Self::Acosh, Sign::Positive) | (Self::Sinh | Self::Asinh, _) => {
                Some(Decimal::Infinite(sign))
            }
            (Self::Cosh, _) => Some(Decimal::Infinite(Sign::Positive)),
            (Self::Tanh, _) => Some(Decimal::from(1).with_sign(sign)),
            (Self::Atan, _) => Some(trigonometric::HALF_PI.with_sign(sign)),
            _ => None,
        }
    }
}

/// The zero with the least exponent: the result of an underflow.
const SMALLEST_ZERO: Decimal = positive(0, MIN_EXPONENT);

/// Below this magnitude a number is its own sine, tangent and so on in 34 digits.
const TINY: Decimal = positive(1, -40);

const fn positive(coefficient: u128, exponent: i32) -> Decimal {
    Decimal::Finite { sign: Sign::Positive, coefficient, exponent }
}

/// Returns x · (1 + 10^-40), which is x with 34 digits. A zero gets an exponent that is lower by 40.
fn slightly_more(x: Decimal) -> Option<Decimal> {
    x.multiply_add(TINY, x)
}

/// Computes a function with binary128.
fn binary(x: Decimal, compute: impl FnOnce(Quad) -> Option<Quad>) -> Option<Decimal> {
    Some(compute(Quad::of(x)?)?.to_decimal())
}
