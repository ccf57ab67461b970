//! Values as text: MongoDB's relaxed extended JSON, version 2, or the notation of its shell. Written from the bytes, without decoding a document first.

use std::fmt::{Debug, Display, Formatter, Result, Write};

use base64::{display::Base64Display, engine::general_purpose::STANDARD};

use super::{Doc, Kind, MAX_DEPTH, Value, shell};

/// Formats the value as relaxed extended JSON on one line, as `{ "a": 1 }`. Damaged bytes are shown as `<damaged …>`.
impl Display for Value<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write_value(f, *self, 0, Notation::ExtendedJson)
    }
}

/// Formats the value in the notation of MongoDB's shell, for plans and messages: `{ "at": ISODate("2026-10-01T00:00:00Z") }`.
/// Slate's command-line tool reads it as the same value.
impl Debug for Value<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write_value(f, *self, 0, Notation::Shell)
    }
}

/// The notation of values that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    ExtendedJson,
    Shell,
}

/// Dates from this one on, the beginning of the year 10000, are written as numbers.
const YEAR_10000: i64 = 253_402_300_800_000;

fn write_value(f: &mut Formatter<'_>, value: Value<'_>, depth: usize, notation: Notation) -> Result {
    if depth > MAX_DEPTH {
        return damaged(f, value);
    }
    write_parts(f, value, depth, notation).unwrap_or_else(|| damaged(f, value))
}

fn damaged(f: &mut Formatter<'_>, value: Value<'_>) -> Result {
    write!(f, "<damaged {}>", value.kind().alias())
}

/// Returns `None`, with nothing written, if the bytes are not a value of their type.
fn write_parts(f: &mut Formatter<'_>, value: Value<'_>, depth: usize, notation: Notation) -> Option<Result> {
    if notation == Notation::Shell
        && let Some(written) = shell::write_constant(f, value)
    {
        return Some(written);
    }
    Some(match value.kind() {
        Kind::Double => match value.as_f64()? {
            number if number.is_nan() => f.write_str(r#"{ "$numberDouble": "NaN" }"#),
            f64::INFINITY => f.write_str(r#"{ "$numberDouble": "Infinity" }"#),
            f64::NEG_INFINITY => f.write_str(r#"{ "$numberDouble": "-Infinity" }"#),
            number => write!(f, "{number:?}"),
        },
        Kind::String => string(f, value.text()?),
        Kind::Document => document(f, value.as_document()?, depth, notation),
        Kind::Array => {
            let elements = value.as_array()?.elements();
            list(f, ["[", "", "]"], elements, |f, element| write_value(f, element.value, depth + 1, notation))
        }
        Kind::Binary => {
            let (subtype, payload) = value.as_binary()?;
            // The payload of the obsolete binary subtype 2 repeats its length.
            let payload = if subtype == 2 { payload.get(4..)? } else { payload };
            let payload = Base64Display::new(payload, &STANDARD);
            write!(f, r#"{{ "$binary": {{ "base64": "{payload}", "subType": "{subtype:02x}" }} }}"#)
        }
        Kind::Undefined => f.write_str(r#"{ "$undefined": true }"#),
        Kind::ObjectId => write!(f, r#"{{ "$oid": "{}" }}"#, hex::encode(value.as_object_id()?)),
        Kind::Boolean => write!(f, "{}", value.as_bool()?),
        Kind::DateTime => {
            let millis = value.as_millis()?;
            let usual = (0..YEAR_10000).contains(&millis).then(|| bson::DateTime::from_millis(millis));
            match usual.and_then(|date| date.try_to_rfc3339_string().ok()) {
                Some(text) => write!(f, r#"{{ "$date": "{text}" }}"#),
                None => write!(f, r#"{{ "$date": {{ "$numberLong": "{millis}" }} }}"#),
            }
        }
        Kind::Null => f.write_str("null"),
        Kind::Regex => {
            let (pattern, options) = value.as_regex()?;
            wrapped(f, "$regularExpression", |f| {
                f.write_str(r#"{ "pattern": "#)?;
                string(f, pattern)?;
                f.write_str(r#", "options": "#)?;
                string(f, options)?;
                f.write_str(" }")
            })
        }
        Kind::DbPointer => {
            let (namespace, id) = value.as_db_pointer()?;
            wrapped(f, "$dbPointer", |f| {
                f.write_str(r#"{ "$ref": "#)?;
                string(f, namespace)?;
                write!(f, r#", "$id": {{ "$oid": "{}" }} }}"#, hex::encode(id))
            })
        }
        Kind::Code => {
            let code = value.text()?;
            wrapped(f, "$code", |f| string(f, code))
        }
        Kind::Symbol => {
            let symbol = value.text()?;
            wrapped(f, "$symbol", |f| string(f, symbol))
        }
        Kind::CodeWithScope => {
            let (code, scope) = value.as_code_with_scope()?;
            wrapped(f, "$code", |f| {
                string(f, code)?;
                f.write_str(r#", "$scope": "#)?;
                document(f, scope, depth + 1, notation)
            })
        }
        Kind::Int32 => write!(f, "{}", value.as_i32()?),
        Kind::Timestamp => {
            let timestamp = value.as_timestamp()?;
            let (seconds, increment) = (timestamp >> 32, timestamp & u64::from(u32::MAX));
            write!(f, r#"{{ "$timestamp": {{ "t": {seconds}, "i": {increment} }} }}"#)
        }
        Kind::Int64 => write!(f, "{}", value.as_i64()?),
        Kind::Decimal128 => {
            let decimal = bson::Decimal128::from_bytes(value.as_decimal()?);
            write!(f, r#"{{ "$numberDecimal": "{decimal}" }}"#)
        }
        Kind::MaxKey => f.write_str(r#"{ "$maxKey": 1 }"#),
        Kind::MinKey => f.write_str(r#"{ "$minKey": 1 }"#),
    })
}

fn document(f: &mut Formatter<'_>, document: Doc<'_>, depth: usize, notation: Notation) -> Result {
    list(f, ["{", " ", "}"], document.elements(), |f, element| {
        string(f, element.name)?;
        f.write_str(": ")?;
        write_value(f, element.value, depth + 1, notation)
    })
}

/// Writes items between brackets, with padding after the opening and before the closing bracket if there are items.
fn list<T>(
    f: &mut Formatter<'_>,
    [open, padding, close]: [&str; 3],
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(&mut Formatter<'_>, T) -> Result,
) -> Result {
    f.write_str(open)?;
    let mut separator = padding;
    for item in items {
        f.write_str(separator)?;
        separator = ", ";
        write(f, item)?;
    }
    if separator == ", " {
        f.write_str(padding)?;
    }
    f.write_str(close)
}

/// Writes a document of one field.
fn wrapped(f: &mut Formatter<'_>, name: &str, content: impl FnOnce(&mut Formatter<'_>) -> Result) -> Result {
    write!(f, r#"{{ "{name}": "#)?;
    content(f)?;
    f.write_str(" }")
}

pub(super) fn string(f: &mut Formatter<'_>, text: &[u8]) -> Result {
    f.write_char('"')?;
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            control if control < ' ' => write!(f, "\\u{:04x}", u32::from(control))?,
            other => f.write_char(other)?,
        }
    }
    f.write_char('"')
}
