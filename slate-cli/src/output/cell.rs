//! Values as text in tables.

use std::borrow::Cow;

use bson::Bson;

use super::text::{iso_date, relaxed};
use crate::input::oid_text;

/// Returns a value as other programs and people read it: strings as they are, dates in ISO 8601, documents and arrays
/// as JSON. A null is empty.
pub(crate) fn plain(value: &Bson) -> String {
    match value {
        Bson::Null | Bson::Undefined => String::new(),
        Bson::String(text) | Bson::Symbol(text) => text.clone(),
        Bson::Boolean(boolean) => boolean.to_string(),
        Bson::Int32(number) => number.to_string(),
        Bson::Int64(number) => number.to_string(),
        // `Infinity`, as in MongoDB's shell.
        Bson::Double(number) if number.is_infinite() => format!("{number:?}").replace("inf", "Infinity"),
        Bson::Double(number) => format!("{number:?}"),
        Bson::Decimal128(number) => number.to_string(),
        Bson::ObjectId(oid) => oid_text(*oid),
        Bson::DateTime(date) => iso_date(*date).unwrap_or_else(|| relaxed(value.clone())),
        _ => relaxed(value.clone()),
    }
}

/// Returns a value for a table on a terminal: as [`plain`], on one line, ObjectIds as their digits, a null as `null`.
pub(super) fn shown(value: &Bson) -> String {
    let text = match value {
        Bson::Null => "null".into(),
        Bson::ObjectId(oid) => oid.to_hex(),
        Bson::DateTime(_) => plain(value).replacen('T', " ", 1).replace("Z", ""),
        _ => plain(value),
    };
    one_line(&text).into_owned()
}

/// Replaces control characters by spaces: they would break a line, or control the terminal.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    let control = |character: char| character.is_control();
    if text.contains(control) { text.replace(control, " ").into() } else { text.into() }
}

/// Returns whether a table aligns a value to the right.
pub(super) fn is_number(value: &Bson) -> bool {
    matches!(value, Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) | Bson::Decimal128(_))
}
