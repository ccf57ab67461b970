//! Constants in the notation of MongoDB's shell, so that what plans and messages show can be pasted into a query.

use std::fmt::{Formatter, Result};

use base64::{display::Base64Display, engine::general_purpose::STANDARD};

use super::{Kind, Value, json::string};

/// The dates that `ISODate` accepts, those of the years 1 to 9999, in milliseconds since 1970.
const ISO_DATES: std::ops::Range<i64> = -62_135_596_800_000..253_402_300_800_000;

/// Larger integers lose digits in a shell that reads numbers as doubles, unless they are in quotes. Smaller ones are written
/// alike for both integer types, which compare equal.
const MAX_SAFE_INTEGER: u64 = 1 << 53;

/// BSON binary subtype: UUID.
const UUID: u8 = 4;

/// Writes a value that the shell has its own notation for. Returns `None`, with nothing written, for any other value.
pub(super) fn write_constant(f: &mut Formatter<'_>, value: Value<'_>) -> Option<Result> {
    Some(match value.kind() {
        Kind::Double => match value.as_f64()? {
            number if number.is_nan() => f.write_str("NaN"),
            f64::INFINITY => f.write_str("Infinity"),
            f64::NEG_INFINITY => f.write_str("-Infinity"),
            number => write!(f, "{number:?}"),
        },
        Kind::Int64 => match value.as_i64()? {
            number if number.unsigned_abs() <= MAX_SAFE_INTEGER => write!(f, "{number}"),
            number => write!(f, "NumberLong(\"{number}\")"),
        },
        Kind::Decimal128 => {
            write!(f, "NumberDecimal(\"{}\")", bson::Decimal128::from_bytes(value.as_decimal()?))
        }
        Kind::DateTime => {
            let millis = value.as_millis()?;
            let date = ISO_DATES.contains(&millis).then(|| bson::DateTime::from_millis(millis));
            match date.and_then(|date| date.try_to_rfc3339_string().ok()) {
                Some(text) => write!(f, "ISODate(\"{text}\")"),
                None => write!(f, "new Date({millis})"),
            }
        }
        Kind::ObjectId => write!(f, "ObjectId(\"{}\")", hex::encode(value.as_object_id()?)),
        Kind::Timestamp => {
            let timestamp = value.as_timestamp()?;
            write!(f, "Timestamp({{ t: {}, i: {} }})", timestamp >> 32, timestamp & u64::from(u32::MAX))
        }
        Kind::Binary => {
            let (subtype, payload) = value.as_binary()?;
            match <[u8; 16]>::try_from(payload) {
                Ok(bytes) if subtype == UUID => write!(f, "UUID(\"{}\")", bson::Uuid::from_bytes(bytes)),
                _ => {
                    // The payload of the obsolete binary subtype 2 repeats its length.
                    let payload = if subtype == 2 { payload.get(4..)? } else { payload };
                    write!(f, "BinData({subtype}, \"{}\")", Base64Display::new(payload, &STANDARD))
                }
            }
        }
        Kind::Regex => {
            let (pattern, options) = value.as_regex()?;
            if ends_at_slash(pattern) {
                write!(f, "/{}/{}", String::from_utf8_lossy(pattern), String::from_utf8_lossy(options))
            } else {
                regex(f, pattern, options)
            }
        }
        Kind::Code => call(f, "Code", value.text()?),
        Kind::Symbol => call(f, "Symbol", value.text()?),
        Kind::Undefined => f.write_str("undefined"),
        Kind::MinKey => f.write_str("MinKey()"),
        Kind::MaxKey => f.write_str("MaxKey()"),
        Kind::Boolean
        | Kind::Null
        | Kind::Int32
        | Kind::String
        | Kind::Document
        | Kind::Array
        | Kind::CodeWithScope
        | Kind::DbPointer => return None,
    })
}

/// Returns whether a pattern between slashes is read as it is: it contains no slash, and it does not hide the closing one by
/// an open class or a backslash.
fn ends_at_slash(pattern: &[u8]) -> bool {
    let (mut is_escaped, mut is_in_class) = (false, false);
    for byte in pattern {
        match byte {
            b'/' | b'\n' | b'\r' => return false,
            _ if is_escaped => is_escaped = false,
            byte => {
                is_escaped = *byte == b'\\';
                is_in_class = *byte == b'[' || is_in_class && *byte != b']';
            }
        }
    }
    // Two slashes, and a slash with a star, begin a comment.
    !is_escaped && !is_in_class && !matches!(pattern.first(), None | Some(b'*'))
}

fn call(f: &mut Formatter<'_>, name: &str, argument: &[u8]) -> Result {
    write!(f, "{name}(")?;
    string(f, argument)?;
    f.write_str(")")
}

fn regex(f: &mut Formatter<'_>, pattern: &[u8], options: &[u8]) -> Result {
    f.write_str("BSONRegExp(")?;
    string(f, pattern)?;
    f.write_str(", ")?;
    string(f, options)?;
    f.write_str(")")
}
