//! Trigonometric functions and their inverses.

use super::{
    super::{
        Quad,
        quad::{QuarterTurns, quarter_turns},
    },
    Decimal, SMALLEST_ZERO, Sign, TINY, binary, positive, slightly_more,
};

const ONE: Decimal = positive(1, 0);
const PI: Decimal = positive(3_141_592_653_589_793_238_462_643_383_279_503, -33);
pub(super) const HALF_PI: Decimal = positive(1_570_796_326_794_896_619_231_321_691_639_751, -33);
const QUARTER_OF_PI: Decimal = positive(785_398_163_397_448_309_615_660_845_819_876, -33);
const THREE_QUARTERS_OF_PI: Decimal = positive(2_356_194_490_192_344_928_846_982_537_459_627, -33);

/// Numbers whose exponent is below this are at most 0.1, and are not reduced to a quarter turn.
const LEAST_REDUCED: i32 = -35;
/// Numbers whose exponent is below this are their own sines and tangents.
const LEAST_COMPUTED: i32 = -52;
/// Above this magnitude of x, `asin` computes the arc cosine of √(1 - x²), and `acos` the arc sine of it.
const STEEP: Decimal = positive(7, -1);
/// Above this magnitude the arc tangent is π / 2.
const VERTICAL: Decimal = positive(1, 40);
/// Beyond this quotient of its coordinates, a point is on an axis.
const ON_AXIS: i32 = 36;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wave {
    Sine,
    Cosine,
}

pub(super) fn sin(x: Decimal) -> Option<Decimal> {
    if x.is_zero() { Some(x) } else { wave(x, Wave::Sine) }
}

pub(super) fn cos(x: Decimal) -> Option<Decimal> {
    if x.is_zero() { Some(ONE.lengthened()) } else { wave(x, Wave::Cosine) }
}

fn sine(x: &Quad) -> Option<Quad> {
    x.apply(|context, x| context.sin(x, None))
}

fn cosine(x: &Quad) -> Option<Quad> {
    x.apply(|context, x| context.cos(x, None))
}

fn wave(x: Decimal, wave: Wave) -> Option<Decimal> {
    let Decimal::Finite { exponent, .. } = x else { return None };
    if exponent < LEAST_COMPUTED {
        return match wave {
            Wave::Sine => slightly_more(x),
            Wave::Cosine => Some(ONE.lengthened()),
        };
    }
    if exponent < LEAST_REDUCED {
        return binary(x, |x| if wave == Wave::Sine { sine(&x) } else { cosine(&x) });
    }
    let QuarterTurns { whole, rest } = quarter_turns(x)?;
    let shift = if wave == Wave::Cosine { 1 } else { 0 };
    let result = match (whole + shift) % 4 {
        0 => sine(&rest)?,
        1 => cosine(&rest)?,
        2 => sine(&rest)?.negated(),
        _ => cosine(&rest)?.negated(),
    };
    Some(result.to_decimal())
}

pub(super) fn tan(x: Decimal) -> Option<Decimal> {
    let Decimal::Finite { exponent, .. } = x else { return None };
    let tangent = |x: &Quad| x.apply(|context, x| context.tan(x, None));
    if exponent < LEAST_COMPUTED || x.is_zero() {
        return slightly_more(x);
    }
    if exponent < LEAST_REDUCED {
        return binary(x, |x| tangent(&x));
    }
    let QuarterTurns { whole, rest } = quarter_turns(x)?;
    let tangent = tangent(&rest)?;
    let result = if whole % 2 == 0 { tangent } else { Quad::from_i32(-1).div(&tangent)? };
    Some(result.to_decimal())
}

fn arc_sine(x: &Quad) -> Option<Quad> {
    x.apply(|context, x| context.asin(x, None))
}

fn arc_cosine(x: &Quad) -> Option<Quad> {
    x.apply(|context, x| context.acos(x, None))
}

/// Returns the cosine of the angle whose sine is x.
fn complement(x: Decimal) -> Option<Quad> {
    let square = Quad::of(x.multiply_add(x, ONE.negated())?)?;
    square.negated().apply(|context, x| context.sqrt(x))
}

pub(super) fn asin(x: Decimal) -> Option<Decimal> {
    if x.abs() < TINY {
        return slightly_more(x);
    }
    if x.abs() <= STEEP {
        return binary(x, |x| arc_sine(&x));
    }
    if x.abs() > ONE {
        return None;
    }
    Some(arc_cosine(&complement(x)?)?.to_decimal().with_sign(x.sign()))
}

pub(super) fn acos(x: Decimal) -> Option<Decimal> {
    if x.abs() < TINY {
        return Some(HALF_PI);
    }
    if x.abs() <= STEEP {
        return binary(x, |x| arc_cosine(&x));
    }
    if x.abs() > ONE {
        return None;
    }
    if x == ONE {
        return Some(SMALLEST_ZERO);
    }
    let angle = arc_sine(&complement(x)?)?;
    Some(if x.is_negative() { Quad::pi().sub(&angle)? } else { angle }.to_decimal())
}

pub(super) fn atan(x: Decimal) -> Option<Decimal> {
    if x.is_zero() {
        return Some(x);
    }
    if x.abs() < TINY {
        return slightly_more(x);
    }
    if x.abs() > VERTICAL {
        return Some(HALF_PI.with_sign(x.sign()));
    }
    binary(x, |x| x.apply(|context, x| context.atan(x, None)))
}

/// Returns the angle of the point (x, y), from -π to π.
pub fn arc_tangent(y: Decimal, x: Decimal) -> Decimal {
    if y.is_nan() || x.is_nan() {
        return Decimal::Nan;
    }
    let (is_left, is_infinite) = (x.is_negative(), matches!(x, Decimal::Infinite(_)));
    let angle = match y {
        Decimal::Infinite(_) if is_infinite => {
            if is_left {
                THREE_QUARTERS_OF_PI
            } else {
                QUARTER_OF_PI
            }
        }
        Decimal::Infinite(_) => HALF_PI,
        _ if y.is_zero() || is_infinite => {
            if is_left {
                PI
            } else {
                SMALLEST_ZERO
            }
        }
        _ if x.is_zero() => HALF_PI,
        _ => {
            let quotient = y.divide(x).abs();
            if quotient > positive(1, ON_AXIS) {
                HALF_PI
            } else if quotient < positive(1, -ON_AXIS) {
                if is_left { PI } else { quotient }
            } else {
                let angle = binary(quotient, |x| x.apply(|context, x| context.atan(x, None))).unwrap_or(Decimal::Nan);
                if is_left { PI.minus(angle) } else { angle }
            }
        }
    };
    angle.with_sign(if y.is_negative() { Sign::Negative } else { Sign::Positive })
}
