//! Hyperbolic functions and their inverses.

use super::{super::Quad, Decimal, SMALLEST_ZERO, Sign, TINY, binary, exponential, logarithm, positive, slightly_more};

/// Above this, e^-x does not contribute to the hyperbolic sine and cosine of x.
const NEGLIGIBLE_INVERSE: Decimal = positive(64, 0);
/// Above this, the hyperbolic sine and cosine are infinite.
const MOST: Decimal = positive(15_000, 0);
/// Above this, the hyperbolic tangent is 1.
const ALMOST_ONE: Decimal = positive(100, 0);
/// Below this, the inverse hyperbolic cosine of x is computed as the inverse hyperbolic sine of √(x² - 1).
const NEAR_ONE: Decimal = positive(103_125, -5);
const ONE: Decimal = positive(1, 0);
const HALF: Decimal = positive(5, -1);

pub(super) fn sinh(x: Decimal) -> Option<Decimal> {
    if x.abs() <= TINY {
        return slightly_more(x);
    }
    if x.abs() <= ONE {
        return binary(x, |x| x.apply(|context, x| context.sinh(x, None)));
    }
    Some(half_of_exp(x, HALF.negated())?.with_sign(x.sign()))
}

pub(super) fn cosh(x: Decimal) -> Option<Decimal> {
    if x.abs() <= TINY {
        return Some(ONE.lengthened());
    }
    if x.abs() <= ONE {
        return binary(x, |x| x.apply(|context, x| context.cosh(x, None)));
    }
    half_of_exp(x, HALF)
}

/// Returns e^|x| / 2 + `factor` · e^-|x|.
fn half_of_exp(x: Decimal, factor: Decimal) -> Option<Decimal> {
    let x = x.abs();
    if x > MOST {
        return Some(Decimal::Infinite(Sign::Positive));
    }
    if x <= NEGLIGIBLE_INVERSE {
        let power = exponential::exp(x)?;
        return power.multiply_add(HALF, factor.multiply(ONE.divide(power)));
    }
    exponential::half_of_great(x)
}

pub(super) fn tanh(x: Decimal) -> Option<Decimal> {
    if x.abs() < TINY {
        return if x.is_zero() { Some(x) } else { slightly_more(x) };
    }
    if x.abs() > ALMOST_ONE {
        return Some(ONE.with_sign(x.sign()));
    }
    binary(x, |x| x.apply(|context, x| context.tanh(x, None)))
}

pub(super) fn asinh(x: Decimal) -> Option<Decimal> {
    if x.is_zero() {
        return Some(SMALLEST_ZERO.with_sign(x.sign()));
    }
    match of_great(x)? {
        Some(great) => Some(great.with_sign(x.sign())),
        None => binary(x, |x| x.apply(|context, x| context.asinh(x, None))),
    }
}

pub(super) fn acosh(x: Decimal) -> Option<Decimal> {
    if x < ONE {
        return None;
    }
    if x < NEAR_ONE {
        let root = x.multiply_add(x, ONE.negated())?.sqrt();
        return binary(root, |x| x.apply(|context, x| context.asinh(x, None)));
    }
    match of_great(x)? {
        Some(great) => Some(great),
        None => binary(x, |x| x.apply(|context, x| context.acosh(x, None))),
    }
}

/// Returns ln(2|x|), which is the inverse hyperbolic sine and cosine of |x|, if the exponent is above 34; otherwise `Some(None)`.
fn of_great(x: Decimal) -> Option<Option<Decimal>> {
    let Decimal::Finite { coefficient, exponent: exponent @ 35.., .. } = x else { return Some(None) };
    let coefficient = Quad::of(positive(coefficient, 0))?;
    let ln = logarithm::natural(&coefficient.add(&coefficient)?)?;
    let scale = Quad::from_i32(exponent).mul(&logarithm::ln_ten()?)?;
    Some(Some(ln.add(&scale)?.to_decimal()))
}

pub(super) fn atanh(x: Decimal) -> Option<Decimal> {
    let Decimal::Finite { sign, coefficient, exponent } = x else { return None };
    if coefficient == 0 {
        return Some(SMALLEST_ZERO.with_sign(sign));
    }
    if exponent <= -51 {
        return Some(x);
    }
    let rest = ONE.minus(x.abs());
    if rest.is_negative() {
        return None;
    }
    if rest.is_zero() {
        return Some(Decimal::Infinite(sign));
    }
    let quotient = x.abs().divide(rest);
    let ln = binary(quotient.add(quotient), |y| y.apply(|context, y| context.ln_1p(y, None))?.mul(&Quad::half()))?;
    Some(ln.with_sign(sign))
}
