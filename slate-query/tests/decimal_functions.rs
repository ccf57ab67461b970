//! Functions of decimals against values that Intel's library computed: `decimal_functions.py` writes them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use slate_query::number::{Decimal, Function, arc_tangent, power};

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn function(name: &str) -> Function {
    match name {
        "exp" => Function::Exp,
        "log" => Function::Ln,
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

/// Returns how far apart two decimals of equal form are, in units of the last place.
fn distance(a: Decimal, b: Decimal) -> u128 {
    match (a, b) {
        (
            Decimal::Finite { sign, coefficient: x, exponent },
            Decimal::Finite { sign: other_sign, coefficient: y, exponent: other_exponent },
        ) if sign == other_sign && exponent == other_exponent => x.abs_diff(y),
        // The units of 0.99…9 are ten times smaller than those of 1.00…0.
        (Decimal::Finite { exponent, .. }, Decimal::Finite { exponent: other_exponent, .. })
            if exponent.abs_diff(other_exponent) == 1 && (a.divide(b).add(decimal("-1"))).abs() < decimal("1E-32") =>
        {
            1
        }
        _ if a.to_bits() == b.to_bits() => 0,
        _ => u128::MAX,
    }
}

#[test]
fn results_have_the_digits_and_exponents_of_intels_library() {
    let vectors = include_str!("decimal_functions.txt");
    let (mut wrong, mut near, mut powers) = (Vec::new(), Vec::new(), 0);
    for line in vectors.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        // Powers are off by more than a unit in the library, and Debian's release of it computes them in another way than
        // MongoDB's.
        let (result, expected, tolerance) = match words.as_slice() {
            ["pow", base, exponent, expected] => (Some(power(decimal(base), decimal(exponent))), expected, 10),
            ["atan2", y, x, expected] => (Some(arc_tangent(decimal(y), decimal(x))), expected, 0),
            [name, x, expected] => (function(name).of(decimal(x)), expected, 1),
            _ => panic!("{line}"),
        };
        match result.map(|result| distance(result, decimal(expected))) {
            Some(0) => {}
            Some(apart) if apart <= tolerance && words[0] == "pow" => powers += 1,
            Some(apart) if apart <= tolerance => near.push(line),
            _ => wrong.push(format!("{line}: {result:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(near.len() <= 8, "{}", near.join("\n"));
    assert!(powers <= 40, "{powers} powers differ");
}

#[test]
fn limits_and_domains() {
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
        ("2", "3", "8.000000000000000000000000000000000"),
        ("-2", "3", "-8.000000000000000000000000000000000"),
        ("-2", "0.5", "NaN"),
        ("10", "7000", "Infinity"),
        // MongoDB's release of the library overflows here, and loses the sign of an overflow.
        ("9.999999999999999999999999999999999E+6144", "1", "Infinity"),
        ("-10", "7001", "Infinity"),
        ("-10", "-7001", "0E-6176"),
        ("0", "2", "0E-6176"),
        ("0", "-1", "Infinity"),
        ("Infinity", "2", "Infinity"),
        ("NaN", "0", "1.000000000000000000000000000000000"),
        ("2", "NaN", "NaN"),
        ("1.000000000000000000000000000000001", "1E+6000", "Infinity"),
    ] {
        assert_eq!(power(decimal(base), decimal(exponent)).to_string(), expected, "{base} {exponent}");
    }
    for (y, x, expected) in [
        ("0", "-1", "3.141592653589793238462643383279503"),
        ("-1E-6000", "0", "-1.570796326794896619231321691639751"),
        ("Infinity", "-Infinity", "2.356194490192344928846982537459627"),
        ("-0", "1E-6000", "-0E-6176"),
        ("1", "NaN", "NaN"),
    ] {
        assert_eq!(arc_tangent(decimal(y), decimal(x)).to_string(), expected, "{y} {x}");
    }
}
