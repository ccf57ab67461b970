//! Functions of decimals against values that mpmath computed: `decimal_functions.py` writes them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use slate_query::number::{Decimal, Function, Sign, arc_tangent, power};

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn function(name: &str) -> Function {
    match name {
        "exp" => Function::Exp,
        "ln" => Function::Ln,
        "log10" => Function::Log10,
        "sin" => Function::Sin,
        "cos" => Function::Cos,
        "tan" => Function::Tan,
        "asin" => Function::Asin,
        "acos" => Function::Acos,
        "atan" => Function::Atan,
        "sinh" => Function::Sinh,
        "cosh" => Function::Cosh,
        "tanh" => Function::Tanh,
        "asinh" => Function::Asinh,
        "acosh" => Function::Acosh,
        "atanh" => Function::Atanh,
        other => panic!("{other}"),
    }
}

#[test]
fn every_digit_is_that_of_an_independent_implementation() {
    let vectors = include_str!("decimal_functions.txt");
    assert!(vectors.lines().count() > 600);
    let mut wrong = Vec::new();
    for line in vectors.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (result, expected) = match words.as_slice() {
            ["pow", base, exponent, expected] => (power(decimal(base), decimal(exponent)), expected),
            ["atan2", y, x, expected] => (Some(arc_tangent(decimal(y), decimal(x))), expected),
            [name, x, expected] => (function(name).of(decimal(x)), expected),
            _ => panic!("{line}"),
        };
        if result != Some(decimal(expected)) {
            wrong.push(format!("{line}: {result:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn limits_and_domains() {
    let infinity = Decimal::Infinite(Sign::Positive);
    let shown = |result: Option<Decimal>| result.map(|decimal| decimal.to_string());
    for (function, x, expected) in [
        (Function::Exp, "9.9E+6144", Some("Infinity")),
        (Function::Exp, "-9.9E+6144", Some("0E-6176")),
        (Function::Exp, "1E-6143", Some("1")),
        (Function::Exp, "0", Some("1")),
        (Function::Ln, "1", Some("0")),
        (Function::Log10, "1E-6143", Some("-6143")),
        (Function::Log10, "1E+100", Some("100")),
        (Function::Sin, "-0", Some("-0")),
        (Function::Sinh, "-1E+6000", Some("-Infinity")),
        (Function::Cosh, "-1E+6000", Some("Infinity")),
        (Function::Tanh, "-Infinity", Some("-1")),
        (Function::Atan, "Infinity", Some("1.570796326794896619231321691639751")),
        (Function::Atanh, "1", Some("Infinity")),
        (Function::Asin, "1.000000000000000000000000000000001", None),
        (Function::Acosh, "0.9999999999999999999999999999999999", None),
        (Function::Ln, "-1", None),
        (Function::Sin, "Infinity", None),
        (Function::Sin, "NaN", Some("NaN")),
    ] {
        assert_eq!(shown(function.of(decimal(x))).as_deref(), expected, "{function:?} {x}");
    }
    for (base, exponent, expected) in [
        ("2", "3", Some("8.000000000000000000000000000000000")),
        ("-2", "3", Some("-8.000000000000000000000000000000000")),
        ("-2", "0.5", None),
        ("10", "7000", Some("Infinity")),
        ("-10", "7001", Some("-Infinity")),
        ("-10", "-7001", Some("-0E-6176")),
        ("0", "2", None),
        ("1.000000000000000000000000000000001", "1E+6000", Some("Infinity")),
    ] {
        assert_eq!(shown(power(decimal(base), decimal(exponent))).as_deref(), expected, "{base} {exponent}");
    }
    assert_eq!(power(infinity, decimal("2")), None);
    for (y, x, expected) in [
        ("0", "-1", "3.141592653589793238462643383279503"),
        ("-1E-6000", "0", "-1.570796326794896619231321691639751"),
        ("Infinity", "-Infinity", "2.356194490192344928846982537459627"),
        ("-0", "1E-6000", "-0"),
        ("1", "NaN", "NaN"),
    ] {
        assert_eq!(arc_tangent(decimal(y), decimal(x)).to_string(), expected, "{y} {x}");
    }
}
