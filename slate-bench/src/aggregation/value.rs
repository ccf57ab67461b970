use bson::RawBsonRef;
use serde::{Deserialize, Serialize};
use slate_bench_harness::{Result, number::float};

/// A value in the result of an aggregation.
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// Null.
    Null,
    /// Any number; a date as milliseconds since 1970.
    Number(f64),
    /// A string.
    Text(String),
}

/// The rows of a result, in any order.
pub type Rows = Vec<Vec<Cell>>;

impl Cell {
    /// Converts a value of a document.
    ///
    /// # Errors
    /// Fails on types that no result has.
    pub fn of(value: RawBsonRef<'_>) -> Result<Self> {
        Ok(match value {
            RawBsonRef::Null => Self::Null,
            RawBsonRef::Int32(number) => Self::Number(number.into()),
            RawBsonRef::Int64(number) => number.into(),
            RawBsonRef::Double(number) => Self::Number(number),
            RawBsonRef::DateTime(date) => date.timestamp_millis().into(),
            RawBsonRef::String(string) => string.into(),
            other => return Err(format!("a result must not contain {other:?}").into()),
        })
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        let size = float(number.unsigned_abs());
        Self::Number(if number < 0 { -size } else { size })
    }
}

impl From<&str> for Cell {
    fn from(string: &str) -> Self {
        Self::Text(string.into())
    }
}

/// Sorts a result and compares it with the expected one, which must be sorted. Numbers may differ in the last digits, because
/// databases add them in different orders.
///
/// # Errors
/// Fails with a description of the first difference.
pub fn check(mut found: Rows, expected: &Rows) -> std::result::Result<(), String> {
    found.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    if found.len() != expected.len() {
        return Err(format!("{} rows instead of {}", found.len(), expected.len()));
    }
    let equal = |a: &Cell, b: &Cell| match (a, b) {
        (Cell::Number(a), Cell::Number(b)) => (a - b).abs() <= 1e-9 * b.abs(),
        (a, b) => a == b,
    };
    let same = |a: &[Cell], b: &[Cell]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b));
    match found.iter().zip(expected).find(|(found, expected)| !same(found, expected)) {
        Some((found, expected)) => Err(format!("{found:?} instead of {expected:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found_whatever_the_order_of_the_rows() {
        let rows = |rows: &[(&str, f64)]| -> Rows {
            rows.iter().map(|(name, number)| vec![(*name).into(), Cell::Number(*number)]).collect()
        };
        let expected = rows(&[("a", 1.0), ("b", 2.0)]);
        assert_eq!(check(rows(&[("b", 2.0 + 1e-12), ("a", 1.0)]), &expected), Ok(()));
        assert!(check(rows(&[("b", 2.1), ("a", 1.0)]), &expected).is_err());
        assert!(check(rows(&[("a", 1.0)]), &expected).is_err());
        assert!(check(rows(&[("a", 1.0), ("c", 2.0)]), &expected).is_err());
    }
}
