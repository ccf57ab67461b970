use dashu_float::{Context, FBig, FpResult, Repr, round::mode::HalfEven};
use dashu_int::{
    IBig, Sign as IntSign, UBig,
    ops::{Abs, BitTest, RemEuclid, UnsignedAbs},
};

use super::{Decimal, MIN_EXPONENT, Rounding, Sign, arithmetic::product_sign};

/// The bits of a mantissa of IEEE 754's binary128.
const BITS: usize = 113;

/// The bits that a function is computed with before its result is rounded to [`BITS`]. The functions of Intel's library have
/// 128 bits inside, so that their results are the nearest numbers in all but one of some 10,000 cases.
const WORKING_BITS: usize = 192;

type Binary = FBig<HalfEven, 2>;

const CONTEXT: Context<HalfEven> = Context::new(BITS);
const WORKING: Context<HalfEven> = Context::new(WORKING_BITS);

/// A binary floating-point number with the precision of binary128, and without its limits on exponents.
///
/// Intel's decimal library, which MongoDB uses, converts decimals to binary128, computes there, and converts back. Binary128
/// has fewer digits than a decimal has in the worst case, so that its results often differ from the nearest decimal in the
/// last digit. To return the same digits, the functions of decimals take the same steps.
#[derive(Clone, Debug)]
pub(super) struct Quad(Binary);

/// A function of `dashu_float`, such as `Context::exp`.
type Compute = fn(&Context<HalfEven>, &Repr<2>) -> FpResult<Binary>;

/// A function of `dashu_float` with two operands, such as `Context::powf`.
type ComputeTwo = fn(&Context<HalfEven>, &Repr<2>, &Repr<2>, Option<&mut dashu_float::ConstCache>) -> FpResult<Binary>;

impl Quad {
    /// Returns the number nearest to a finite decimal; `None` for infinities and NaN.
    pub(super) fn of(decimal: Decimal) -> Option<Self> {
        let (numerator, denominator) = fraction(decimal)?;
        Self::quotient(numerator, denominator)
    }

    /// Returns the number nearest to a finite decimal, and the number nearest to the remaining difference.
    pub(super) fn in_two_parts(decimal: Decimal) -> Option<(Self, Self)> {
        let (numerator, denominator) = fraction(decimal)?;
        let high = Self::quotient(numerator.clone(), denominator.clone())?;
        let (mantissa, power) = (high.0.repr().significand().clone(), high.0.repr().exponent());
        let shift = power.unsigned_abs();
        let low = if power >= 0 {
            Self::quotient(numerator - (mantissa << shift) * IBig::from(denominator.clone()), denominator)
        } else {
            Self::quotient((numerator << shift) - mantissa * IBig::from(denominator.clone()), denominator << shift)
        };
        Some((high, low?))
    }

    fn quotient(numerator: IBig, denominator: UBig) -> Option<Self> {
        let quotient = CONTEXT.div(&Repr::<2>::new(numerator, 0), &Repr::<2>::new(denominator.into(), 0));
        Some(Self(quotient.ok()?.value()))
    }

    pub(super) fn from_i32(int: i32) -> Self {
        Self(Binary::from_parts(int.into(), 0).with_precision(BITS).value())
    }

    /// Returns 1 / 2.
    pub(super) fn half() -> Self {
        Self(Binary::from_parts(1.into(), -1).with_precision(BITS).value())
    }

    /// Returns π.
    pub(super) fn pi() -> Self {
        Self(CONTEXT.pi::<2>(None).value())
    }

    /// Computes a function. `None` outside its domain.
    pub(super) fn apply(&self, compute: Compute) -> Option<Self> {
        Some(Self(compute(&WORKING, self.0.repr()).ok()?.value().with_precision(BITS).value()))
    }

    /// Computes a function of two numbers. `None` outside its domain.
    pub(super) fn apply_two(&self, other: &Self, compute: ComputeTwo) -> Option<Self> {
        let result = compute(&WORKING, self.0.repr(), other.0.repr(), None).ok()?.value();
        Some(Self(result.with_precision(BITS).value()))
    }

    pub(super) fn add(&self, other: &Self) -> Option<Self> {
        Some(Self(CONTEXT.add(self.0.repr(), other.0.repr()).ok()?.value()))
    }

    pub(super) fn sub(&self, other: &Self) -> Option<Self> {
        Some(Self(CONTEXT.sub(self.0.repr(), other.0.repr()).ok()?.value()))
    }

    pub(super) fn mul(&self, other: &Self) -> Option<Self> {
        Some(Self(CONTEXT.mul(self.0.repr(), other.0.repr()).ok()?.value()))
    }

    pub(super) fn div(&self, other: &Self) -> Option<Self> {
        Some(Self(CONTEXT.div(self.0.repr(), other.0.repr()).ok()?.value()))
    }

    #[must_use]
    pub(super) fn negated(self) -> Self {
        Self(-self.0)
    }

    #[must_use]
    pub(super) fn abs(&self) -> Self {
        Self(self.0.clone().abs())
    }

    pub(super) fn is_above(&self, other: &Self) -> bool {
        self.0 > other.0
    }

    /// Returns the nearest decimal. If a decimal of 34 digits has the same value, it is the one with the exponent nearest to 0.
    pub(super) fn to_decimal(&self) -> Decimal {
        let repr = self.0.repr();
        let power = repr.exponent();
        let shift = power.unsigned_abs();
        let Ok(exponent) = i32::try_from(power) else { return Decimal::Nan };
        if power >= 0 {
            return rounded_whole(&(repr.significand() << shift), 0);
        }
        rounded_whole(&(repr.significand() * IBig::from(UBig::from(5_u8).pow(shift))), exponent)
    }
}

/// Returns a finite decimal as numerator and denominator.
fn fraction(decimal: Decimal) -> Option<(IBig, UBig)> {
    let Decimal::Finite { exponent, .. } = decimal else { return None };
    let numerator = signed(decimal)?;
    let power = ten_to(exponent.unsigned_abs());
    Some(if exponent >= 0 { (numerator * IBig::from(power), UBig::ONE) } else { (numerator, power) })
}

/// Returns the coefficient with its sign.
fn signed(decimal: Decimal) -> Option<IBig> {
    let Decimal::Finite { sign, coefficient, .. } = decimal else { return None };
    let coefficient = IBig::from(coefficient);
    Some(if sign == Sign::Negative { -coefficient } else { coefficient })
}

fn ten_to(power: u32) -> UBig {
    UBig::from(10_u8).pow(usize::try_from(power).unwrap_or(usize::MAX))
}

/// Returns `whole` · 10^`exponent`, rounded half to even to 34 digits.
fn rounded_whole(whole: &IBig, exponent: i32) -> Decimal {
    let sign = if whole.sign() == IntSign::Negative { Sign::Negative } else { Sign::Positive };
    rounded(sign, &whole.clone().unsigned_abs(), exponent)
}

/// Returns `magnitude` · 10^`exponent` with a sign, rounded half to even to 34 digits.
pub(super) fn rounded(sign: Sign, magnitude: &UBig, exponent: i32) -> Decimal {
    if let Ok(coefficient) = u128::try_from(magnitude) {
        return Decimal::rounded(sign, coefficient, exponent);
    }
    // Two digits more than a decimal has, and one that says whether others follow, are enough to round.
    let excess = digits(magnitude).saturating_sub(36);
    let divisor = UBig::from(10_u8).pow(excess);
    let (kept, rest) = (magnitude / &divisor, magnitude % &divisor);
    let sticky = u128::from(rest != UBig::ZERO);
    let coefficient = u128::try_from(&kept).unwrap_or(u128::MAX / 100) * 10 + sticky;
    let exponent = exponent.saturating_add(i32::try_from(excess).unwrap_or(i32::MAX)).saturating_sub(1);
    Decimal::rounded(sign, coefficient, exponent)
}

/// Returns the number of decimal digits of a number that is not zero.
fn digits(magnitude: &UBig) -> usize {
    magnitude.ilog(&UBig::from(10_u8)) + 1
}

impl Decimal {
    pub(super) fn is_zero(self) -> bool {
        matches!(self, Self::Finite { coefficient: 0, .. })
    }

    pub(crate) fn is_negative(self) -> bool {
        matches!(self, Self::Finite { sign: Sign::Negative, .. } | Self::Infinite(Sign::Negative))
    }

    pub(super) fn sign(self) -> Sign {
        if self.is_negative() { Sign::Negative } else { Sign::Positive }
    }

    /// Returns the magnitude with a sign.
    pub(super) fn with_sign(self, sign: Sign) -> Self {
        if sign == Sign::Negative { self.abs().negated() } else { self.abs() }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.add(other.negated())
    }

    /// Returns the nearest whole number (ties to even).
    pub(super) fn to_whole(self) -> Self {
        self.to_places(0, Rounding::HalfEven)
    }

    /// Returns `self` · `factor` + `addend`, rounded once. The numbers must be finite.
    pub(super) fn multiply_add(self, factor: Self, addend: Self) -> Option<Self> {
        let (Self::Finite { exponent: p, .. }, Self::Finite { exponent: q, .. }, Self::Finite { exponent: high, .. }) =
            (self, factor, addend)
        else {
            return None;
        };
        let (product, low) = (signed(self)? * signed(factor)?, p + q);
        let (sum, exponent) = if low <= high {
            (product + signed(addend)? * IBig::from(ten_to(low.abs_diff(high))), low)
        } else {
            (product * IBig::from(ten_to(low.abs_diff(high))) + signed(addend)?, high)
        };
        if sum.is_zero() {
            let is_negative = product_sign(self.sign(), factor.sign()) == Sign::Negative && addend.is_negative();
            let sign = if is_negative { Sign::Negative } else { Sign::Positive };
            return Some(Self::Finite { sign, coefficient: 0, exponent: exponent.max(MIN_EXPONENT) });
        }
        Some(rounded_whole(&sum, exponent))
    }
}

/// An angle as a whole number of quarter turns, at most 3, and the rest in radians, which is at most an eighth of a turn.
pub(super) struct QuarterTurns {
    pub(super) whole: u8,
    pub(super) rest: Quad,
}

/// Reduces an angle in radians. The rest has all digits also of great angles.
pub(super) fn quarter_turns(angle: Decimal) -> Option<QuarterTurns> {
    let (numerator, denominator) = fraction(angle)?;
    // The bits before the point, those of a rest that may begin with many zeros, and the working bits.
    let bits = numerator.clone().unsigned_abs().bit_len() + denominator.bit_len() + 2 * WORKING_BITS;
    let context: Context<HalfEven> = Context::new(bits);
    let angle = context.div(&Repr::<2>::new(numerator, 0), &Repr::<2>::new(denominator.into(), 0)).ok()?.value();
    let half_pi = context.pi::<2>(None).value() >> 1;
    let turns = context.div(angle.repr(), half_pi.repr()).ok()?.value();
    let whole = turns.round();
    // Intel's library cuts the rest off instead of rounding it.
    let rest = (turns - &whole).with_rounding::<dashu_float::round::mode::Zero>().with_precision(BITS).value();
    let rest = rest.with_rounding::<HalfEven>();
    let quarters = whole.to_int().value().rem_euclid(IBig::from(4));
    let half_pi = CONTEXT.pi::<2>(None).value() >> 1;
    let rest = Quad(CONTEXT.mul(half_pi.repr(), rest.repr()).ok()?.value());
    Some(QuarterTurns { whole: u8::try_from(quarters).ok()?, rest })
}
