//! Compares results with expected results.

use bson::{Bson, Document};

use super::case::{Order, Precision, Rules};

/// Compares values as a sequence or as a multiset.
pub(crate) fn values(found: &[Bson], expected: &[Bson], rules: &Rules) -> bool {
    sequence(found, expected, rules.values, &|a, b| top_level(a, b, rules))
}

fn sequence(found: &[Bson], expected: &[Bson], order: Order, same: &impl Fn(&Bson, &Bson) -> bool) -> bool {
    if found.len() != expected.len() {
        return false;
    }
    if order == Order::Matters {
        return found.iter().zip(expected).all(|(a, b)| same(a, b));
    }
    let mut left: Vec<&Bson> = expected.iter().collect();
    found.iter().all(|value| {
        let place = left.iter().position(|expected| same(value, expected));
        place.map(|place| left.swap_remove(place)).is_some()
    })
}

/// Compares documents, some of whose arrays may be in any order.
fn top_level(found: &Bson, expected: &Bson, rules: &Rules) -> bool {
    match (found, expected) {
        (Bson::Document(found), Bson::Document(expected)) => {
            documents(found, expected, rules, &|name, a, b| match (a, b) {
                (Bson::Array(a), Bson::Array(b)) if rules.unordered.iter().any(|field| field == name) => {
                    sequence(a, b, Order::Free, &|a, b| same(a, b, rules))
                }
                _ => same(a, b, rules),
            })
        }
        _ => same(found, expected, rules),
    }
}

/// Compares two values by type and value, including the type of numbers and the sign of zero. NaN equals NaN.
pub(crate) fn same(found: &Bson, expected: &Bson, rules: &Rules) -> bool {
    match (found, expected) {
        (Bson::Document(a), Bson::Document(b)) => documents(a, b, rules, &|_, a, b| same(a, b, rules)),
        (Bson::Array(a), Bson::Array(b)) => sequence(a, b, Order::Matters, &|a, b| same(a, b, rules)),
        (Bson::JavaScriptCodeWithScope(a), Bson::JavaScriptCodeWithScope(b)) => {
            a.code == b.code && documents(&a.scope, &b.scope, rules, &|_, a, b| same(a, b, rules))
        }
        (Bson::Double(a), Bson::Double(b)) => a.to_bits() == b.to_bits() || close(*a, *b, rules.numbers),
        (Bson::Decimal128(a), Bson::Decimal128(b)) => {
            let number = |decimal: &bson::Decimal128| decimal.to_string().parse().unwrap_or(f64::NAN);
            a.bytes() == b.bytes() || close(number(a), number(b), rules.numbers)
        }
        _ => found == expected,
    }
}

/// Compares numbers with a tolerance. NaN equals NaN.
fn close(a: f64, b: f64, precision: Precision) -> bool {
    let near = (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    (a.is_nan() && b.is_nan()) || (precision == Precision::Approximate && near)
}

fn documents(found: &Document, expected: &Document, rules: &Rules, same: &impl Fn(&str, &Bson, &Bson) -> bool) -> bool {
    found.len() == expected.len()
        && match rules.fields {
            Order::Matters => {
                found.iter().zip(expected).all(|((a, found), (b, expected))| a == b && same(a, found, expected))
            }
            Order::Free => {
                expected.iter().all(|(name, expected)| found.get(name).is_some_and(|found| same(name, found, expected)))
            }
        }
}

/// Checks the expected fields of a reply: `value` exactly, other numbers by value alone.
pub(crate) fn reply(found: &Document, expected: &Document, rules: &Rules) -> bool {
    expected.iter().all(|(name, expected)| match (found.get(name), name.as_str()) {
        (None, _) => false,
        (Some(found), "value") => same(found, expected, rules),
        (Some(found), _) => loosely(found, expected, rules),
    })
}

fn loosely(found: &Bson, expected: &Bson, rules: &Rules) -> bool {
    match (found, expected) {
        (Bson::Document(found), Bson::Document(expected)) => reply(found, expected, rules),
        (Bson::Array(found), Bson::Array(expected)) => {
            sequence(found, expected, Order::Matters, &|a, b| loosely(a, b, rules))
        }
        _ => number(found).is_some_and(|found| number(expected) == Some(found)) || same(found, expected, rules),
    }
}

/// Returns the value of a number of any type.
fn number(value: &Bson) -> Option<f64> {
    match value {
        Bson::Int32(int) => Some(f64::from(*int)),
        Bson::Int64(int) => int.to_string().parse().ok(),
        Bson::Double(double) => Some(*double),
        _ => None,
    }
}

/// Returns a count of any numeric type.
pub(crate) fn count(value: &Bson) -> Option<i32> {
    let number = number(value)?;
    format!("{number:.0}").parse().ok().filter(|count| f64::from(*count) == number)
}
