//! Powers of e, 2 and 10.

use dashu_float::Context;

use super::{super::Quad, Decimal, SMALLEST_ZERO, Sign, positive};

/// Beyond this exponent a power of e is infinite or zero.
const MOST_EXPONENT: Decimal = positive(15_000, 0);
/// Beyond this exponent a power of 2 is infinite or zero.
const MOST_EXPONENT_OF_TWO: Decimal = positive(25_000, 0);
/// Beyond this exponent a power of 10 is infinite or zero.
const MOST_EXPONENT_OF_TEN: Decimal = positive(6_400, 0);

/// From a power with an exponent beyond this, a factor with this exponent is split off, because binary128 contains no
/// power of e above e^11356.
const PART: i32 = 11_000;
const E_TO_PART: Decimal = positive(1_735_005_819_277_738_509_638_425_077_349_642, 4744);
const E_TO_MINUS_PART: Decimal = positive(5_763_669_429_168_183_696_272_822_960_961_269, -4811);
const TWO_TO_PART: Decimal = positive(2_137_727_301_617_594_663_994_741_880_109_512, 3278);
const TWO_TO_MINUS_PART: Decimal = positive(4_677_865_129_211_340_627_076_550_713_009_785, -3345);

/// Returns e^x.
pub(super) fn exp(x: Decimal) -> Option<Decimal> {
    power_of(x, MOST_EXPONENT, [E_TO_PART, E_TO_MINUS_PART], |high, low| {
        let power = exp_of(&high)?;
        power.add(&power.mul(&low)?)
    })
}

/// Returns e^x / 2 of a number above 64.
pub(super) fn half_of_great(x: Decimal) -> Option<Decimal> {
    let whole = x.to_whole();
    let (whole, rest) = (Quad::of(whole)?, Quad::of(x.minus(whole))?);
    let product = |whole: &Quad| exp_of(whole)?.mul(&exp_of(&rest)?)?.mul(&Quad::half());
    let part = Quad::from_i32(PART);
    Some(if whole.is_above(&part) {
        product(&whole.sub(&part)?)?.to_decimal().multiply(E_TO_PART)
    } else {
        product(&whole)?.to_decimal()
    })
}

fn exp_of(x: &Quad) -> Option<Quad> {
    x.apply(|context, x| context.exp(x, None))
}

/// Returns 2^x.
pub(super) fn exp2(x: Decimal) -> Option<Decimal> {
    power_of(x, MOST_EXPONENT_OF_TWO, [TWO_TO_PART, TWO_TO_MINUS_PART], |high, low| {
        let ln_two = Quad::from_i32(2).apply(|context, x| context.ln(x, None))?;
        let power = Quad::from_i32(2).to_power(&high)?;
        power.add(&power.mul(&ln_two)?.mul(&low)?)
    })
}

/// Computes a power with `compute`, whose parameters are the two parts of the exponent: a rounded one, and the rest.
fn power_of(
    x: Decimal,
    most: Decimal,
    [above, below]: [Decimal; 2],
    compute: fn(Quad, Quad) -> Option<Quad>,
) -> Option<Decimal> {
    if x.is_zero() {
        return Some(Decimal::from(1));
    }
    if x.abs() > most {
        return Some(if x.is_negative() { SMALLEST_ZERO } else { Decimal::Infinite(Sign::Positive) });
    }
    let (high, low) = Quad::in_two_parts(x)?;
    let part = Quad::from_i32(PART);
    Some(if high.is_above(&part) {
        compute(high.sub(&part)?, low)?.to_decimal().multiply(above)
    } else if part.clone().negated().is_above(&high) {
        compute(high.add(&part)?, low)?.to_decimal().multiply(below)
    } else {
        compute(high, low)?.to_decimal()
    })
}

/// Returns 10^x.
pub(super) fn exp10(x: Decimal) -> Option<Decimal> {
    if x.abs() > MOST_EXPONENT_OF_TEN {
        return Some(if x.is_negative() { SMALLEST_ZERO } else { Decimal::Infinite(Sign::Positive) });
    }
    let whole = x.to_whole();
    let fraction = super::binary(x.minus(whole), |fraction| Quad::from_i32(10).to_power(&fraction))?;
    let Decimal::Finite { sign, coefficient, exponent } = fraction else { return None };
    let shift = i32::try_from(whole.to_i64()?).ok()?;
    Some(Decimal::rounded(sign, coefficient, exponent + shift))
}

impl Quad {
    fn to_power(&self, exponent: &Self) -> Option<Self> {
        self.apply_two(exponent, Context::powf)
    }
}
