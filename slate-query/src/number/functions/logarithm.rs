//! Logarithms.

use dashu_float::Repr;

use super::{super::Quad, Decimal, Sign, positive};

/// Decimals above 10 to this exponent, or below 10 to its negative, are scaled by it before they are converted.
const SCALE: i32 = 4464;

/// Returns the natural logarithm: -infinity for zero, `None` for a negative number.
pub(super) fn ln(x: Decimal) -> Option<Decimal> {
    logarithm(x, Some, || Quad::from_i32(SCALE).mul(&ln_ten()?))
}

/// Returns the decimal logarithm: -infinity for zero, `None` for a negative number.
pub(super) fn log10(x: Decimal) -> Option<Decimal> {
    let inverse = Quad::from_i32(10).apply(|context, x| {
        let ln = context.ln(x, None)?.value();
        context.div(&Repr::one(), ln.repr())
    })?;
    logarithm(x, |ln| ln.mul(&inverse), || Some(Quad::from_i32(SCALE)))
}

pub(super) fn ln_ten() -> Option<Quad> {
    natural(&Quad::from_i32(10))
}

/// Returns the natural logarithm.
pub(super) fn natural(x: &Quad) -> Option<Quad> {
    x.apply(|context, x| context.ln(x, None))
}

/// Computes the logarithm to a base. `convert` converts a natural logarithm to it, `of_scale` is the logarithm of
/// 10^[`SCALE`].
fn logarithm(
    x: Decimal,
    convert: impl FnOnce(Quad) -> Option<Quad>,
    of_scale: impl FnOnce() -> Option<Quad>,
) -> Option<Decimal> {
    if x.is_zero() {
        return Some(Decimal::Infinite(Sign::Negative));
    }
    if x.is_negative() {
        return None;
    }
    let (great, small) = (positive(1, SCALE), positive(1, -SCALE));
    let result = if x > great {
        convert(natural(&Quad::of(x.multiply(small))?)?)?.add(&of_scale()?)
    } else if x < small {
        convert(natural(&Quad::of(x.multiply(great))?)?)?.sub(&of_scale()?)
    } else {
        let binary = Quad::of(x)?;
        let mut ln = natural(&binary)?;
        let distance = binary.sub(&Quad::from_i32(1))?;
        // Near 1, the conversion to binary loses many digits of the distance from 1, which determines the logarithm.
        if Quad::half().is_above(&distance.abs()) {
            let exact = Quad::of(x.minus(Decimal::from(1)))?;
            ln = ln.sub(&distance.sub(&exact)?.div(&binary)?)?;
        }
        convert(ln)
    };
    Some(result?.to_decimal())
}
