//! The arithmetic of decimal128 against libmpdec, the library behind Python's `decimal` module. `decimal/generate.py` writes the
//! vectors.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{cmp::Ordering, collections::BTreeMap, fs::File, io::Read};

use flate2::read::GzDecoder;
use slate_query::number::{Decimal, Number, Rounding, Sign};

/// Parses `-125E-2`, without the parser that is tested.
fn operand(text: &str) -> Decimal {
    match text {
        "NaN" => return Decimal::Nan,
        "Infinity" => return Decimal::Infinite(Sign::Positive),
        "-Infinity" => return Decimal::Infinite(Sign::Negative),
        _ => {}
    }
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (Sign::Negative, rest),
        None => (Sign::Positive, text),
    };
    let (coefficient, exponent) = magnitude.split_once('E').unwrap();
    Decimal::Finite { sign, coefficient: coefficient.parse().unwrap(), exponent: exponent.parse().unwrap() }
}

fn show(decimal: Decimal) -> String {
    let sign = |sign| if sign == Sign::Negative { "-" } else { "" };
    match decimal {
        Decimal::Nan => "NaN".into(),
        Decimal::Infinite(of) => format!("{}Infinity", sign(of)),
        Decimal::Finite { sign: of, coefficient, exponent } => format!("{}{coefficient}E{exponent}", sign(of)),
    }
}

fn double_bits(double: f64) -> String {
    if double.is_nan() { "nan".into() } else { format!("{:016x}", double.to_bits()) }
}

fn or_none(integer: Option<i64>) -> String {
    integer.map_or("none".into(), |integer| integer.to_string())
}

/// Evaluates one line but for its result.
fn evaluate(operation: &str, operands: &[&str]) -> String {
    let a = || operand(operands[0]);
    let b = || operand(operands[1]);
    match operation {
        "add" => show(a().add(b())),
        "subtract" => match Number::Decimal(a()).minus(Number::Decimal(b())) {
            Number::Decimal(difference) => show(difference),
            other => panic!("{other:?}"),
        },
        "multiply" => show(a().multiply(b())),
        "divide" => show(a().divide(b())),
        "remainder" => show(a().remainder(b())),
        "sqrt" => show(a().sqrt()),
        "compare" => match a().cmp(&b()) {
            Ordering::Less => "-1".into(),
            Ordering::Equal => "0".into(),
            Ordering::Greater => "1".into(),
        },
        "double" => double_bits(a().to_f64()),
        "format" => a().to_string(),
        "truncate" => or_none(a().to_i64_truncating()),
        "integer" => or_none(a().to_i64()),
        "places" => {
            let mode = match operands[2] {
                "HalfEven" => Rounding::HalfEven,
                "TowardZero" => Rounding::TowardZero,
                "Up" => Rounding::Up,
                "Down" => Rounding::Down,
                other => panic!("{other}"),
            };
            show(a().to_places(operands[1].parse().unwrap(), mode))
        }
        "parse" => show(operands[0].parse().unwrap()),
        "from_double" => show(Decimal::from_f64(f64::from_bits(u64::from_str_radix(operands[0], 16).unwrap()))),
        other => panic!("unknown operation: {other}"),
    }
}

#[test]
fn results_are_those_of_libmpdec() {
    let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/decimal/vectors.txt.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();

    let (mut checked, mut wrong) = (BTreeMap::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (operation, operands, expected) = (words[0], &words[1..words.len() - 1], words[words.len() - 1]);
        let found = evaluate(operation, operands);
        if found != expected {
            wrong.push(format!("{line}, and not {found}"));
        }
        *checked.entry(operation).or_insert(0) += 1;
    }
    assert!(wrong.is_empty(), "{} results differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked.len() == 14 && checked.values().all(|&count| count >= 300), "{checked:?}");
}

#[test]
fn every_operand_has_a_stored_form() {
    for text in
        ["NaN", "Infinity", "-Infinity", "0E0", "-0E-6176", "9999999999999999999999999999999999E6111", "-1E-6176"]
    {
        assert_eq!(show(Decimal::from_bits(operand(text).to_bits())), text);
    }
}
