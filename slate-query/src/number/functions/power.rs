//! Powers.

use dashu_float::{Context, FBig, Repr, round::mode::HalfEven};

use super::{Decimal, SMALLEST_ZERO, Sign, exponential, positive};

const ONE: Decimal = positive(1, 0);

/// The decimal digits of a logarithm from which a power is computed: 47 after the point, and those before it.
const LOGARITHM: Context<HalfEven> = Context::new(60);
/// The digits after the point in the first part of a logarithm, and in both parts.
const PARTS: [i32; 2] = [28, 47];
/// Below this magnitude, a logarithm is computed as a series.
const SMALL_LOGARITHM: f64 = 3.689_348_814_741_910_4e-9;

/// Returns a power with 34 digits; NaN of a negative number and an exponent that is not whole. A zero raised to a negative
/// exponent is infinite.
#[must_use]
pub fn power(base: Decimal, exponent: Decimal) -> Decimal {
    let power = if base == positive(10, 0) && !matches!(exponent, Decimal::Infinite(_)) {
        finite(exponent).and_then(exponential::exp10)
    } else if base == positive(2, 0) && !matches!(exponent, Decimal::Infinite(_)) {
        finite(exponent).and_then(exponential::exp2)
    } else {
        of_any(base, exponent)
    };
    // The sum with this zero has as many digits as possible.
    power.unwrap_or(Decimal::Nan).add(SMALLEST_ZERO)
}

fn finite(decimal: Decimal) -> Option<Decimal> {
    matches!(decimal, Decimal::Finite { .. }).then_some(decimal)
}

fn of_any(base: Decimal, exponent: Decimal) -> Option<Decimal> {
    if exponent.is_zero() || base == ONE {
        return Some(ONE);
    }
    let is_falling = exponent.is_negative();
    let (zero, infinity) = (Decimal::ZERO, Decimal::Infinite(Sign::Positive));
    match (base, exponent) {
        (Decimal::Nan, _) | (_, Decimal::Nan) => return None,
        (_, Decimal::Infinite(_)) if base.abs() == ONE => return Some(ONE),
        (_, Decimal::Infinite(_)) => return Some(if (base.abs() < ONE) == is_falling { infinity } else { zero }),
        _ => {}
    }
    let whole = exponent.to_whole();
    let is_whole = whole == exponent;
    let is_odd = is_whole && matches!(whole, Decimal::Finite { coefficient, exponent: 0, .. } if coefficient % 2 == 1);
    let sign = if is_odd { base.sign() } else { Sign::Positive };
    if matches!(base, Decimal::Infinite(_)) {
        return Some(if is_falling { zero } else { infinity }.with_sign(sign));
    }
    if base.is_zero() {
        return Some(if is_falling { infinity } else { zero }.with_sign(sign));
    }
    if base.is_negative() && !is_whole {
        return None;
    }
    let [high, low] = logarithm(base.abs())?;
    let product = exponent.multiply(high);
    let power = match product {
        Decimal::Finite { .. } => exponential::exp(product)?,
        Decimal::Infinite(Sign::Positive) => infinity,
        _ => SMALLEST_ZERO,
    };
    if power.is_zero() {
        return Some(SMALLEST_ZERO);
    }
    if matches!(power, Decimal::Infinite(_)) {
        return Some(power);
    }
    let rest = exponent.multiply_add(low, exponent.multiply_add(high, product.negated())?)?;
    Some(power.multiply_add(rest, power)?.with_sign(sign))
}

/// Returns the natural logarithm of a positive number in two parts.
fn logarithm(x: Decimal) -> Option<[Decimal; 2]> {
    let distance = x.minus(ONE);
    if distance.abs().to_f64() < SMALL_LOGARITHM {
        let square = distance.multiply(distance);
        let cube = distance.multiply(square);
        let series = positive(5, -1)
            .negated()
            .multiply(square)
            .add(positive(10_u128.pow(34) / 3, -34).multiply(cube))
            .add(positive(25, -2).negated().multiply(distance.multiply(cube)));
        let high = distance.add(series);
        return Some([high, high.minus(distance).minus(series)]);
    }
    let Decimal::Finite { coefficient, exponent, .. } = x else { return None };
    let coefficient = i128::try_from(coefficient).ok()?;
    let repr = Repr::<10>::new(coefficient.into(), isize::try_from(exponent).ok()?);
    let ln: FBig<HalfEven, 10> = LOGARITHM.ln(&repr, None).ok()?.value();
    let truncated = |number: &FBig<HalfEven, 10>, digits: i32| -> Option<(FBig<HalfEven, 10>, Decimal)> {
        let places = isize::try_from(digits).ok()?;
        let whole = (number.clone() << places).trunc();
        let coefficient = i128::try_from(whole.to_int().value()).ok()?;
        let sign = if coefficient < 0 { Sign::Negative } else { Sign::Positive };
        Some((whole >> places, Decimal::rounded(sign, coefficient.unsigned_abs(), -digits)))
    };
    let [first, both] = PARTS;
    let (whole, high) = truncated(&ln, first)?;
    let (_, low) = truncated(&(ln - whole), both)?;
    Some([high, low])
}
