//! Sums, products, quotients, remainders and roots of numbers of all types.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use slate_query::number::{Decimal, Number, Sum};

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[track_caller]
fn check(result: Decimal, expected: &str) {
    assert_eq!(result.to_bits(), decimal(expected).to_bits(), "{result:?} is not {expected}");
}

#[test]
fn sums_take_the_lesser_exponent_and_round_half_to_even() {
    for (a, b, expected) in [
        ("1", "2", "3"),
        ("1.10", "2.2", "3.30"),
        ("1.000", "0", "1.000"),
        ("0", "-0", "0"),
        ("-0", "-0", "-0"),
        ("1.5", "-1.5", "0.0"),
        ("-3", "1.25", "-1.75"),
        ("0E+3", "5", "5"),
        ("5", "0E-3", "5.000"),
        ("1E+6000", "1", "1.000000000000000000000000000000000E+6000"),
        ("9999999999999999999999999999999999", "1", "1.000000000000000000000000000000000E+34"),
        ("9999999999999999999999999999999999", "0.5", "1.000000000000000000000000000000000E+34"),
        ("9999999999999999999999999999999998", "0.5", "9999999999999999999999999999999998"),
        ("9999999999999999999999999999999998", "0.50000001", "9999999999999999999999999999999999"),
        ("1000000000000000000000000000000000", "-0.05", "1000000000000000000000000000000000"),
        ("1000000000000000000000000000000000", "-0.06", "999999999999999999999999999999999.9"),
        ("1000000000000000000000000000000000", "-1E-40", "1000000000000000000000000000000000"),
        ("9.999999999999999999999999999999999E+6144", "9.999999999999999999999999999999999E+6144", "Infinity"),
        ("Infinity", "-Infinity", "NaN"),
        ("Infinity", "1", "Infinity"),
        ("NaN", "Infinity", "NaN"),
    ] {
        check(decimal(a).add(decimal(b)), expected);
        check(decimal(b).add(decimal(a)), expected);
    }
}

#[test]
fn products_add_exponents_and_round_half_to_even() {
    for (a, b, expected) in [
        ("2", "3", "6"),
        ("1.10", "2.0", "2.200"),
        ("-1.5", "0", "-0.0"),
        ("0E+6000", "0E+6000", "0E+6111"),
        (
            "9999999999999999999999999999999999",
            "9999999999999999999999999999999999",
            "9.999999999999999999999999999999998E+67",
        ),
        (
            "1234567890123456789012345678901234",
            "1000000000000000000000000000000001",
            "1.234567890123456789012345678901235E+66",
        ),
        ("5000000000000000000000000000000000", "2", "1.000000000000000000000000000000000E+34"),
        ("1E-6176", "0.5", "0E-6176"),
        ("1E-6176", "0.51", "1E-6176"),
        ("1E+6000", "1E+6000", "Infinity"),
        ("Infinity", "0", "NaN"),
        ("Infinity", "-2", "-Infinity"),
        ("NaN", "0", "NaN"),
    ] {
        check(decimal(a).multiply(decimal(b)), expected);
        check(decimal(b).multiply(decimal(a)), expected);
    }
}

#[test]
fn types_are_promoted_and_int64_overflow_is_refused() {
    let kind = |number: Option<Number>| number.map(|number| (number.kind(), number));
    let int = Number::Int32(i32::MAX).checked_add(Number::Int32(1));
    assert_eq!(kind(int), kind(Some(Number::Int64(1 << 31))));
    assert_eq!(kind(Number::Int64(1).checked_add(Number::Int32(1))), kind(Some(Number::Int64(2))));
    assert_eq!(kind(Number::Int64(1).checked_mul(Number::Double(1.5))), kind(Some(Number::Double(1.5))));
    assert!(Number::Int64(i64::MAX).checked_add(Number::Int32(1)).is_none());
    assert!(Number::Int64(i64::MIN).checked_mul(Number::Int32(-1)).is_none());
    let Some(Number::Decimal(sum)) = Number::Double(10.5).checked_add(Number::Decimal(decimal("2.5"))) else {
        panic!("a decimal wins");
    };
    check(sum, "13.0000000000000");
}

#[test]
fn quotients_are_rounded_half_to_even() {
    for (a, b, expected) in [
        ("10", "4", "2.5"),
        ("1", "3", "0.3333333333333333333333333333333333"),
        ("2", "3", "0.6666666666666666666666666666666667"),
        ("-6", "2", "-3"),
        ("0", "5", "0"),
        ("1", "0", "Infinity"),
        ("0", "0", "NaN"),
        ("1E+6000", "1E-6000", "Infinity"),
        ("9999999999999999999999999999999999", "3", "3333333333333333333333333333333333"),
    ] {
        assert_eq!(decimal(a).divide(decimal(b)).to_bits(), decimal(expected).to_bits(), "{a} / {b}");
    }
}

#[test]
fn remainders_are_exact() {
    for (a, b, expected) in [
        ("7", "3", "1"),
        ("-7", "3", "-1"),
        ("7.5", "2", "1.5"),
        ("1E+30", "7", "1"),
        ("5", "1E+40", "5"),
        ("1", "Infinity", "1"),
    ] {
        assert_eq!(decimal(a).remainder(decimal(b)), decimal(expected), "{a} % {b}");
    }
}

#[test]
fn roots_have_all_digits() {
    for (a, expected) in [
        ("4", "2"),
        ("2", "1.414213562373095048801688724209698"),
        ("1E-6176", "1E-3088"),
        ("0.25", "0.5"),
        ("1E+6111", "3.162277660168379331998893544432719E+3055"),
    ] {
        assert_eq!(decimal(a).sqrt(), decimal(expected), "{a}");
    }
}

fn total(numbers: &[Number]) -> Number {
    let mut sum = Sum::default();
    numbers.iter().for_each(|number| sum.add(*number));
    sum.total()
}

#[test]
fn integers_are_exact_beyond_int64() {
    let (most, least) = (Number::Int64(i64::MAX), Number::Int64(i64::MIN));
    assert!(total(&[most, most, least, least, Number::Int32(7)]).is_identical(Number::Int64(5)));
    assert!(total(&[most, Number::Int32(1)]).is_identical(Number::Double(TWO_63)));
    let mut many = Sum::default();
    many.add_times(most, 3);
    many.add_times(least, 3);
    assert!(many.total().is_identical(Number::Int64(-3)));
}

#[test]
fn merged_sums_equal_the_sum_of_all() {
    let decimal = |text: &str| Number::Decimal(text.parse().unwrap());
    let numbers = [Number::Int64(i64::MAX), decimal("1.25"), Number::Int64(5), Number::Double(0.5), decimal("2")];
    for split in 0..numbers.len() {
        let (mut a, mut b) = (Sum::default(), Sum::default());
        numbers[..split].iter().for_each(|number| a.add(*number));
        numbers[split..].iter().for_each(|number| b.add(*number));
        a.merge(&b);
        assert!(a.total().is_identical(total(&numbers)), "{split}");
    }
}

const TWO_63: f64 = 9_223_372_036_854_775_808.0;
