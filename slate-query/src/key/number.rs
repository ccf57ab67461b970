//! The encoding of numbers in keys; see "Numbers" in `docs/format.md`.

use std::cmp::Ordering;

use super::{
    bits::{Losses, code},
    input::KeyInput,
    tag,
};
use crate::{
    number::{Decimal, Exact, MAX_COEFFICIENT, Number, Sign, TWO_63, bracket_double},
    raw::{Kind, Value, big_endian},
};

/// The bias of a decimal's adjusted exponent (the power of ten of its first digit), which makes it unsigned.
const BIAS: i32 = 7000;
/// The number of fraction bits in a key before its decimal digits.
const FRACTION: u32 = 55;
/// 2^55.
const FRACTION_SCALE: f64 = 36_028_797_018_963_968.0;

pub(super) fn encode(value: Value<'_>, out: &mut Vec<u8>, losses: &mut impl Losses) {
    match Number::of(value) {
        Some(Number::Int32(int)) => {
            whole(i64::from(int), out);
            losses.keep();
        }
        Some(Number::Int64(int)) => {
            whole(int, out);
            match i32::try_from(int) {
                Err(_) if int != i64::MIN => losses.keep(),
                _ => losses.except(code::INT64, &[]),
            }
        }
        Some(Number::Double(double)) => double_typed(value, double, out, losses),
        Some(Number::Decimal(decimal)) => decimal_typed(value, decimal, out, losses),
        // Damaged bytes.
        None => {
            out.push(tag::NAN);
            losses.raw(value);
        }
    }
}

fn double_typed(value: Value<'_>, double: f64, out: &mut Vec<u8>, losses: &mut impl Losses) {
    if double.is_nan() {
        out.push(tag::NAN);
        return if double.to_bits() == f64::NAN.to_bits() { losses.keep() } else { losses.raw(value) };
    }
    signed(double < 0.0, out, |out| magnitude_double(double.abs(), out));
    if double == 0.0 {
        losses.except(if double.is_sign_negative() { code::NEGATIVE_ZERO } else { code::DOUBLE }, &[]);
    } else if double.abs() < TWO_63 && double.fract() == 0.0 {
        losses.except(code::DOUBLE, &[]);
    } else {
        losses.keep();
    }
}

fn decimal_typed<L: Losses>(value: Value<'_>, decimal: Decimal, out: &mut Vec<u8>, losses: &mut L) {
    let likeliest = match decimal {
        Decimal::Nan => {
            out.push(tag::NAN);
            None
        }
        Decimal::Infinite(sign) => {
            signed(sign == Sign::Negative, out, |out| out.push(tag::ZERO + tag::INFINITE));
            None
        }
        Decimal::Finite { sign, coefficient, exponent } => {
            let exact = Exact::new(coefficient, exponent);
            let mut likeliest = Likeliest::Other;
            signed(sign == Sign::Negative, out, |out| likeliest = magnitude_decimal(exact, out));
            Some((likeliest, exact.exponent - exponent))
        }
    };
    if !L::RECORDS {
        return;
    }
    if value.as_decimal() != Some(decimal.to_bits()) {
        return losses.raw(value);
    }
    match (likeliest, decimal) {
        (_, Decimal::Finite { sign, coefficient: 0, exponent }) => {
            let sign = if sign == Sign::Negative { 0x8000 } else { 0 };
            let biased = u16::try_from(exponent - crate::number::MIN_EXPONENT).unwrap_or_default();
            losses.except(code::DECIMAL_ZERO, &(sign | biased).to_be_bytes());
        }
        (Some((Likeliest::Decimal, 0)), _) => losses.keep(),
        (Some((_, zeros)), _) => losses.except(code::DECIMAL, &[u8::try_from(zeros).unwrap_or_default()]),
        (None, _) => losses.except(code::DECIMAL, &[0]),
    }
}

/// The most likely type of a decoded number, without an exception in the type bits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Likeliest {
    Decimal,
    Other,
}

/// Writes a magnitude with its sign. A negative number has the inverted bytes of the positive one, and the mirrored
/// tag.
#[inline]
fn signed(negative: bool, out: &mut Vec<u8>, magnitude: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    magnitude(out);
    if let (true, Some([tag, body @ ..])) = (negative, out.get_mut(start..)) {
        *tag = 2 * tag::ZERO - *tag;
        body.iter_mut().for_each(|byte| *byte = !*byte);
    }
}

#[inline]
fn whole(int: i64, out: &mut Vec<u8>) {
    signed(int < 0, out, |out| match int.unsigned_abs() {
        0 => out.push(tag::ZERO),
        magnitude if magnitude >> 63 == 1 => big(TWO_63.to_bits() << 1, out),
        magnitude => whole_part(magnitude, 0, out),
    });
}

/// Writes the integer part of a magnitude between 1 and 2^63 (exclusive), shifted left by one. The lowest bit says
/// whether a fraction follows.
#[inline]
fn whole_part(whole: u64, fraction: u64, out: &mut Vec<u8>) {
    let word = whole << 1 | fraction;
    let zeros = (word.leading_zeros() / u8::BITS).min(7);
    out.push(tag::ZERO + tag::WHOLE + 8 - u8::try_from(zeros).unwrap_or_default());
    // Writes all eight bytes and truncates, which is faster than copying a variable number.
    let end = out.len() + 8 - usize::try_from(zeros).unwrap_or_default();
    out.extend_from_slice(&(word << (zeros * u8::BITS)).to_be_bytes());
    out.truncate(end);
}

/// Writes the 55 bits of a fraction. The lowest bit says whether decimal digits follow.
fn fraction_part(bits: u64, more: u64, out: &mut Vec<u8>) {
    let bytes = (bits << 1 | more).to_be_bytes();
    out.extend_from_slice(bytes.get(1..).unwrap_or_default());
}

fn small(bits: u64, out: &mut Vec<u8>) {
    out.push(tag::ZERO + tag::SMALL);
    out.extend_from_slice(&bits.to_be_bytes());
}

fn big(bits: u64, out: &mut Vec<u8>) {
    out.push(tag::ZERO + tag::BIG);
    out.extend_from_slice(&bits.to_be_bytes());
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole part and fraction were brought into range, and are whole numbers"
)]
fn magnitude_double(double: f64, out: &mut Vec<u8>) {
    if double == 0.0 {
        out.push(tag::ZERO);
    } else if double < 1.0 {
        small(double.to_bits() << 1, out);
    } else if double < TWO_63 {
        let (whole, fraction) = (double.trunc(), double.fract());
        // At least one of the 53 bits of a double is in the integer part, so 52 bits hold the fraction.
        let bits = (fraction * FRACTION_SCALE) as u64;
        whole_part(whole as u64, u64::from(bits != 0), out);
        if bits != 0 {
            fraction_part(bits, 0, out);
        }
    } else if double.is_infinite() {
        out.push(tag::ZERO + tag::INFINITE);
    } else {
        big(double.to_bits() << 1, out);
    }
}

fn magnitude_decimal(exact: Exact, out: &mut Vec<u8>) -> Likeliest {
    let Exact { coefficient, exponent } = exact;
    if coefficient == 0 {
        out.push(tag::ZERO);
        return Likeliest::Other;
    }
    let places = exponent.min(0).unsigned_abs();
    if exact.adjusted() >= 0 {
        let scale = 10_u128.pow(places.min(38));
        let power = 10_u128.checked_pow(exponent.max(0).unsigned_abs());
        let whole = power.and_then(|power| (coefficient / scale).checked_mul(power));
        if let Some(whole) = whole.and_then(|whole| i64::try_from(whole).ok()) {
            let rest = coefficient % scale;
            whole_part(whole.unsigned_abs(), u64::from(rest != 0), out);
            return if rest == 0 { Likeliest::Other } else { fraction(whole.unsigned_abs(), rest, places, out) };
        }
    }
    let (below, order) = bracket_double(coefficient, exponent);
    let more = u64::from(order == Ordering::Greater);
    let bits = below.to_bits() << 1 | more;
    if exact.adjusted() < 0 {
        small(bits, out)
    } else {
        big(bits, out)
    }
    if more == 0 {
        return Likeliest::Other;
    }
    out.extend_from_slice(&u16::try_from(exact.adjusted() + BIAS).unwrap_or_default().to_be_bytes());
    digits(coefficient, crate::number::digits(coefficient), out);
    Likeliest::Decimal
}

/// Writes rest / 10^places, which is between 0 and 1, both exclusive.
fn fraction(whole: u64, rest: u128, places: u32, out: &mut Vec<u8>) -> Likeliest {
    let scale = 10_u128.pow(places.min(38));
    let (mut bits, mut rest_bits) = (0_u64, rest);
    // 10^33 has 110 bits, which leaves room for eleven more.
    for _ in 0..FRACTION / 11 {
        let shifted = rest_bits << 11;
        bits = bits << 11 | u64::try_from(shifted / scale).unwrap_or_default();
        rest_bits = shifted % scale;
    }
    fraction_part(bits, u64::from(rest_bits != 0), out);
    if rest_bits != 0 {
        digits(rest, places, out);
        return Likeliest::Decimal;
    }
    if to_double(whole, bits).is_some() { Likeliest::Other } else { Likeliest::Decimal }
}

/// Writes a nonzero number of `length` digits as pairs, the most significant first, without trailing zeros. Each pair
/// is doubled, plus one if another follows.
fn digits(number: u128, length: u32, out: &mut Vec<u8>) {
    // Aligned to 38 digits, so that the first two are the most significant pair.
    let mut rest = number * 10_u128.pow(38_u32.saturating_sub(length));
    let top = 10_u128.pow(36);
    while rest != 0 {
        let pair = u8::try_from(rest / top).unwrap_or_default();
        rest = rest % top * 100;
        out.push(pair << 1 | u8::from(rest != 0));
    }
}

/// The value of a number according to its key, without the type that its type bits contain.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decoded {
    Nan,
    Infinite(Sign),
    Zero,
    /// A magnitude from 1 to 2^63, exclusive.
    Whole(Sign, u64),
    /// A double within that range that is not an integer.
    Double(f64),
    /// A finite number that is none of the others.
    Decimal(Sign, Exact),
}

/// Reads a number after its tag.
pub(super) fn decode(tag: u8, input: &mut KeyInput<'_>) -> Option<Decoded> {
    let sign = if tag < tag::ZERO { Sign::Negative } else { Sign::Positive };
    let mut body = if sign == Sign::Negative { input.inverted() } else { *input };
    let decoded = match tag.abs_diff(tag::ZERO) {
        _ if tag == tag::NAN => Decoded::Nan,
        0 => Decoded::Zero,
        tag::INFINITE => Decoded::Infinite(sign),
        tag::SMALL | tag::BIG => {
            let bits = u64::from_be_bytes(body.array()?);
            let double = f64::from_bits(bits >> 1);
            if bits & 1 == 0 {
                Decoded::Double(if sign == Sign::Negative { -double } else { double })
            } else {
                let adjusted = i32::from(u16::from_be_bytes(body.array()?)) - BIAS;
                let (coefficient, length) = read_digits(&mut body)?;
                Decoded::Decimal(sign, Exact::new(coefficient, adjusted + 1 - i32::try_from(length).ok()?))
            }
        }
        length @ 2..=9 => decode_whole(sign, usize::from(length - tag::WHOLE), &mut body)?,
        _ => return None,
    };
    input.follow(body);
    Some(decoded)
}

/// Returns the integer above -2^63 that a complete key encodes; `None` for other numbers and damaged keys. Inlined,
/// because a call takes as long as the work.
#[inline(always)]
pub(super) fn decode_integer(tag: u8, body: &[u8]) -> Option<i64> {
    let length = tag.abs_diff(tag::ZERO);
    if length != 0 && !(2..=9).contains(&length) || body.len() != usize::from(length.saturating_sub(tag::WHOLE)) {
        return None;
    }
    let sign = if tag < tag::ZERO { Sign::Negative } else { Sign::Positive };
    let word = match sign {
        Sign::Positive => big_endian(body),
        // The bytes of a negative number are inverted. There is at least one.
        Sign::Negative => {
            !(big_endian(body) | u64::MAX.checked_shl(u8::BITS * u32::from(length - tag::WHOLE)).unwrap_or(0))
        }
    };
    if word & 1 == 0 { integer(sign, word >> 1) } else { None }
}

fn decode_whole(sign: Sign, length: usize, body: &mut KeyInput<'_>) -> Option<Decoded> {
    let mut bytes = 0_u64;
    for _ in 0..length {
        bytes = bytes << 8 | u64::from(body.byte()?);
    }
    let whole = bytes >> 1;
    if bytes & 1 == 0 {
        return Some(Decoded::Whole(sign, whole));
    }
    let [a, b, c, d, e, f, g] = body.array()?;
    let fraction = u64::from_be_bytes([0, a, b, c, d, e, f, g]);
    let bits = fraction >> 1;
    if fraction & 1 == 0 {
        if let Some(double) = to_double(whole, bits) {
            return Some(Decoded::Double(if sign == Sign::Negative { -double } else { double }));
        }
        return Some(Decoded::Decimal(sign, binary(u128::from(whole) << FRACTION | u128::from(bits), FRACTION)?));
    }
    let (digits, places) = read_digits(body)?;
    let coefficient = u128::from(whole).checked_mul(10_u128.checked_pow(places)?)?.checked_add(digits)?;
    Some(Decoded::Decimal(sign, Exact::new(coefficient, -i32::try_from(places).ok()?)))
}

/// Reads digits in pairs. Returns the number that they form, and how many digits it has. `None` if the number exceeds
/// 128 bits, or the key ends early.
fn read_digits(body: &mut KeyInput<'_>) -> Option<(u128, u32)> {
    let (mut number, mut length) = (0_u128, 0);
    loop {
        let pair = body.byte()?;
        number = number.checked_mul(100)?.checked_add(u128::from(pair >> 1))?;
        length += 2;
        if pair & 1 == 0 {
            return Some((number, length));
        }
    }
}

/// Returns whole + bits / 2^55, if a double can represent it exactly.
#[expect(clippy::cast_precision_loss, reason = "at most 53 bits are left, which a double holds")]
fn to_double(whole: u64, bits: u64) -> Option<f64> {
    let all = u128::from(whole) << FRACTION | u128::from(bits);
    let mantissa = all >> all.trailing_zeros().min(FRACTION);
    (mantissa < 1 << 53).then(|| {
        let power = f64::from(FRACTION - all.trailing_zeros().min(FRACTION));
        mantissa as f64 / power.exp2()
    })
}

/// Returns mantissa / 2^power as a decimal; `None` if its coefficient exceeds 128 bits.
fn binary(mantissa: u128, power: u32) -> Option<Exact> {
    let twos = mantissa.trailing_zeros().min(power);
    // Zero, which only a damaged key has in this form, can have 128 of them.
    let (mantissa, power) = (mantissa.checked_shr(twos)?, power - twos);
    let coefficient = mantissa.checked_mul(5_u128.checked_pow(power)?)?;
    Some(Exact::new(coefficient, -i32::try_from(power).ok()?))
}

/// Returns a positive double as a decimal; `None` if its coefficient exceeds 128 bits.
fn from_double(double: f64) -> Option<Exact> {
    let (mantissa, power) = crate::number::parts(double);
    let mut mantissa = u128::from(mantissa);
    let Ok(mut twos) = u32::try_from(power) else { return binary(mantissa, power.unsigned_abs()) };
    // Moves factors of ten to the exponent first, because a number above 2^128 may have few significant digits.
    let mut tens = 0;
    while twos > 0 && mantissa.is_multiple_of(5) {
        (mantissa, twos, tens) = (mantissa / 5, twos - 1, tens + 1);
    }
    (twos < mantissa.leading_zeros()).then(|| Exact::new(mantissa << twos, tens))
}

impl Decoded {
    /// Returns the value's type and bytes without an exception; at most sixteen bytes.
    pub(super) fn likeliest(self) -> Option<(Kind, Bytes)> {
        Some(match self {
            Self::Nan => (Kind::Double, Bytes::from(f64::NAN.to_le_bytes())),
            Self::Infinite(Sign::Positive) => (Kind::Double, Bytes::from(f64::INFINITY.to_le_bytes())),
            Self::Infinite(Sign::Negative) => (Kind::Double, Bytes::from(f64::NEG_INFINITY.to_le_bytes())),
            Self::Zero => (Kind::Int32, Bytes::from([0; 4])),
            Self::Whole(sign, whole) => {
                let int = integer(sign, whole)?;
                match i32::try_from(int) {
                    Ok(int) => (Kind::Int32, Bytes::from(int.to_le_bytes())),
                    Err(_) => (Kind::Int64, Bytes::from(int.to_le_bytes())),
                }
            }
            Self::Double(double) => (Kind::Double, Bytes::from(double.to_le_bytes())),
            Self::Decimal(..) => self.decimal(0)?,
        })
    }

    pub(super) fn int64(self) -> Option<(Kind, Bytes)> {
        let int = match self {
            Self::Zero => 0,
            Self::Whole(sign, whole) => integer(sign, whole)?,
            Self::Double(double) => Number::Double(double).to_i64()?,
            Self::Nan | Self::Infinite(_) | Self::Decimal(..) => return None,
        };
        Some((Kind::Int64, Bytes::from(int.to_le_bytes())))
    }

    pub(super) fn double(self) -> Option<(Kind, Bytes)> {
        let double = match self {
            Self::Zero => 0.0,
            Self::Whole(sign, whole) => Number::Int64(integer(sign, whole)?).to_f64(),
            Self::Nan | Self::Infinite(_) | Self::Double(_) | Self::Decimal(..) => return None,
        };
        Some((Kind::Double, Bytes::from(double.to_le_bytes())))
    }

    /// Returns the value as a decimal whose coefficient ends in `zeros` zeros; `None` for zero, and if a decimal128
    /// cannot represent it.
    pub(super) fn decimal(self, zeros: u32) -> Option<(Kind, Bytes)> {
        let finite = |sign, exact: Exact| {
            let coefficient = exact.coefficient.checked_mul(10_u128.checked_pow(zeros)?)?;
            let exponent = exact.exponent - i32::try_from(zeros).ok()?;
            (coefficient <= MAX_COEFFICIENT).then_some(Decimal::Finite { sign, coefficient, exponent })
        };
        let decimal = match self {
            Self::Nan => Decimal::Nan,
            Self::Infinite(sign) => Decimal::Infinite(sign),
            Self::Zero => return None,
            Self::Whole(sign, whole) => finite(sign, Exact::new(u128::from(whole), 0))?,
            Self::Double(double) => {
                let sign = if double < 0.0 { Sign::Negative } else { Sign::Positive };
                finite(sign, from_double(double.abs())?)?
            }
            Self::Decimal(sign, exact) => finite(sign, exact)?,
        };
        Some((Kind::Decimal128, Bytes::from(decimal.to_bits())))
    }
}

fn integer(sign: Sign, whole: u64) -> Option<i64> {
    let whole = i64::try_from(whole).ok()?;
    Some(if sign == Sign::Negative { -whole } else { whole })
}

/// The BSON encoding of a number.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    bytes: [u8; 16],
    length: usize,
}

impl Bytes {
    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl<const N: usize> From<[u8; N]> for Bytes {
    fn from(source: [u8; N]) -> Self {
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(source).for_each(|(target, byte)| *target = byte);
        Self { bytes, length: N }
    }
}

/// Returns a decimal zero with the sign and the exponent that the type bits contain.
pub(super) fn zero(bits: u16) -> [u8; 16] {
    let sign = if bits & 0x8000 == 0 { Sign::Positive } else { Sign::Negative };
    let exponent = i32::from(bits & 0x7fff) + crate::number::MIN_EXPONENT;
    Decimal::Finite { sign, coefficient: 0, exponent }.to_bits()
}
