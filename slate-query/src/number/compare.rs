//! Exact comparison across the four numeric types.

use std::cmp::Ordering;

use dashu_int::UBig;

use super::{Decimal, Number, Sign, any::TWO_63, decimal::digits};

/// Compares two numbers by mathematical value. NaN is lowest and equals NaN.
#[inline]
pub(super) fn numbers(a: Number, b: Number) -> Ordering {
    match (a, b) {
        (Number::Int32(a), Number::Int32(b)) => a.cmp(&b),
        (Number::Int32(a), Number::Int64(b)) => i64::from(a).cmp(&b),
        (Number::Int64(a), Number::Int32(b)) => a.cmp(&i64::from(b)),
        (Number::Int64(a), Number::Int64(b)) => a.cmp(&b),
        (Number::Double(a), Number::Double(b)) => doubles(a, b),
        (Number::Int32(a), Number::Double(b)) => doubles(f64::from(a), b),
        (Number::Double(a), Number::Int32(b)) => doubles(a, f64::from(b)),
        (Number::Int64(a), Number::Double(b)) => int_double(a, b),
        (Number::Double(a), Number::Int64(b)) => int_double(b, a).reverse(),
        (Number::Decimal(a), Number::Decimal(b)) => decimals(a, b),
        (Number::Decimal(a), Number::Int32(b)) => decimals(a, Decimal::from(i64::from(b))),
        (Number::Int32(a), Number::Decimal(b)) => decimals(Decimal::from(i64::from(a)), b),
        (Number::Decimal(a), Number::Int64(b)) => decimals(a, Decimal::from(b)),
        (Number::Int64(a), Number::Decimal(b)) => decimals(Decimal::from(a), b),
        (Number::Decimal(a), Number::Double(b)) => decimal_double(a, b),
        (Number::Double(a), Number::Decimal(b)) => decimal_double(b, a).reverse(),
    }
}

#[inline]
fn doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

fn int_double(int: i64, double: f64) -> Ordering {
    if double.is_nan() || double < -TWO_63 {
        return Ordering::Greater;
    }
    if double >= TWO_63 {
        return Ordering::Less;
    }
    let whole = double.trunc();
    #[expect(clippy::cast_possible_truncation, reason = "whole, and checked to be within i64")]
    int.cmp(&(whole as i64)).then_with(|| doubles(whole, double))
}

pub(super) fn decimals(a: Decimal, b: Decimal) -> Ordering {
    rank(a).cmp(&rank(b)).then_with(|| match (a, b) {
        // Zeros with different exponents are equal.
        (Decimal::Finite { coefficient: 0, .. }, _) => Ordering::Equal,
        (
            Decimal::Finite { sign, coefficient: a, exponent: x },
            Decimal::Finite { coefficient: b, exponent: y, .. },
        ) => signed(sign, magnitudes(a, x, b, y)),
        (_, _) => Ordering::Equal,
    })
}

/// Orders by rank, without looking at digits: NaN, -infinity, negatives, zeros, positives, infinity.
fn rank(decimal: Decimal) -> u8 {
    match decimal {
        Decimal::Nan => 0,
        Decimal::Infinite(Sign::Negative) => 1,
        Decimal::Finite { coefficient: 0, .. } => 3,
        Decimal::Finite { sign: Sign::Negative, .. } => 2,
        Decimal::Finite { sign: Sign::Positive, .. } => 4,
        Decimal::Infinite(Sign::Positive) => 5,
    }
}

fn signed(sign: Sign, order: Ordering) -> Ordering {
    match sign {
        Sign::Positive => order,
        Sign::Negative => order.reverse(),
    }
}

/// Compares a·10^x with b·10^y, both positive.
fn magnitudes(a: u128, x: i32, b: u128, y: i32) -> Ordering {
    let adjusted = |coefficient: u128, exponent: i32| i64::from(digits(coefficient)) + i64::from(exponent);
    adjusted(a, x).cmp(&adjusted(b, y)).then_with(|| {
        // The magnitudes are equal, so the exponents differ by less than the number of digits. Scaled to the lower
        // exponent, both have at most 39 digits.
        let scale = |coefficient: u128, by: i32| coefficient.saturating_mul(10_u128.saturating_pow(by.unsigned_abs()));
        if x >= y { scale(a, x - y).cmp(&b) } else { a.cmp(&scale(b, y - x)) }
    })
}

fn decimal_double(decimal: Decimal, double: f64) -> Ordering {
    let double_rank = match double {
        _ if double.is_nan() => 0,
        f64::NEG_INFINITY => 1,
        f64::INFINITY => 5,
        _ if double < 0.0 => 2,
        _ if double > 0.0 => 4,
        _ => 3,
    };
    rank(decimal).cmp(&double_rank).then_with(|| match decimal {
        Decimal::Finite { coefficient: 0, .. } | Decimal::Nan | Decimal::Infinite(_) => Ordering::Equal,
        Decimal::Finite { sign, coefficient, exponent } => {
            signed(sign, magnitude_double(coefficient, exponent, double.abs()))
        }
    })
}

/// Compares coefficient·10^exponent with a double, both positive and finite.
pub(super) fn magnitude_double(coefficient: u128, exponent: i32, double: f64) -> Ordering {
    // A double's decimal digits begin no higher than 10^308 and no lower than 10^-324.
    let adjusted = i64::from(digits(coefficient)) + i64::from(exponent);
    if adjusted > 310 || double == 0.0 {
        return Ordering::Greater;
    }
    if adjusted < -325 {
        return Ordering::Less;
    }
    // Rounding preserves the order, so the digits decide only if the nearest double is this one.
    match quick(coefficient, exponent).and_then(|nearest| nearest.partial_cmp(&double)) {
        Some(order @ (Ordering::Less | Ordering::Greater)) => return order,
        Some(Ordering::Equal) | None => {}
    }
    let (mantissa, power) = parts(double);
    let (mut decimal, mut double) = (UBig::from(coefficient), UBig::from(mantissa));
    // 10^exponent = 5^exponent · 2^exponent. Negative powers move to the other side.
    let size = |power: i32| usize::try_from(power.unsigned_abs()).unwrap_or(usize::MAX);
    let fives = UBig::from(5_u8).pow(size(exponent));
    *(if exponent >= 0 { &mut decimal } else { &mut double }) *= fives;
    let twos = power - exponent;
    *(if twos >= 0 { &mut double } else { &mut decimal }) <<= size(twos);
    decimal.cmp(&double)
}

/// Returns a positive finite double as mantissa · 2^power.
pub(crate) fn parts(double: f64) -> (u64, i32) {
    let bits = double.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let exponent = i32::try_from((bits >> 52) & 0x7ff).unwrap_or_default();
    if exponent == 0 { (fraction, -1074) } else { (fraction | (1 << 52), exponent - 1075) }
}

/// Powers of ten that doubles hold exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Returns the double nearest to coefficient · 10^exponent, if one operation on exact doubles computes it (W. D.
/// Clinger, "How to read floating point numbers accurately", 1990).
#[expect(clippy::cast_precision_loss, reason = "at most 53 bits")]
fn quick(coefficient: u128, exponent: i32) -> Option<f64> {
    if coefficient > 1 << 53 {
        return None;
    }
    let power = POWERS.get(usize::try_from(exponent.unsigned_abs()).ok()?)?;
    Some(if exponent < 0 { coefficient as f64 / power } else { coefficient as f64 * power })
}

/// Returns the double nearest to coefficient · 10^exponent.
pub(super) fn nearest(coefficient: u128, exponent: i32) -> f64 {
    if let Some(nearest) = quick(coefficient, exponent) {
        return nearest;
    }
    // The standard library's parser is correctly rounded.
    format!("{coefficient}e{exponent}").parse().unwrap_or(f64::INFINITY)
}
