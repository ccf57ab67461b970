//! Constants in the notation of MongoDB's shell, so that what plans and messages show can be pasted into a query.

use std::fmt::{Formatter, Result};

use base64::{display::Base64Display, engine::general_purpose::STANDARD};

use super::{Kind, Value, json::string};

/// The milliseconds of the years that `ISODate` takes, 1 to 9999.
const ISO_DATES: std::ops::Range<i64> = -62_135_596_800_000..253_402_300_800_000;

/// Larger integers lose digits in a shell that reads numbers as doubles, unless they are in quotes. Smaller ones are written
/// alike for both integer types, which compare equal.
const MAX_SAFE_INTEGER: u64 = 1 << 53;

/// The subtype of a UUID's bytes.
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
                    // The obsolete subtype 2 repeats the length.
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

#[cfg(test)]
mod tests {
    use bson::{Binary, Bson, DateTime, Regex, Timestamp, doc, oid::ObjectId, spec::BinarySubtype};

    use crate::raw::OwnedValue;

    fn shown(value: impl Into<Bson>) -> String {
        format!("{:?}", OwnedValue::from(value.into()))
    }

    fn regex(pattern: &str, options: &str) -> Regex {
        Regex { pattern: pattern.try_into().unwrap(), options: options.try_into().unwrap() }
    }

    fn binary(subtype: BinarySubtype, bytes: Vec<u8>) -> Binary {
        Binary { subtype, bytes }
    }

    #[test]
    fn numbers_are_read_as_the_same_number() {
        let shown: Vec<String> = [
            Bson::Int32(5),
            Bson::Int64(5),
            Bson::Int64(-(1 << 53)),
            Bson::Int64(i64::MAX),
            Bson::Double(5.0),
            Bson::Double(-0.0),
            Bson::Double(5e-324),
            Bson::Double(f64::NEG_INFINITY),
            Bson::Double(f64::NAN),
            Bson::Decimal128("1.50".parse().unwrap()),
        ]
        .map(shown)
        .into();
        let right = [
            "5",
            "5",
            "-9007199254740992",
            "NumberLong(\"9223372036854775807\")",
            "5.0",
            "-0.0",
            "5e-324",
            "-Infinity",
            "NaN",
            "NumberDecimal(\"1.50\")",
        ];
        assert_eq!(shown, right);
    }

    #[test]
    fn dates_and_ids_are_calls_of_their_constructors() {
        assert_eq!(shown(DateTime::from_millis(1_790_812_800_000)), "ISODate(\"2026-10-01T00:00:00Z\")");
        assert_eq!(shown(DateTime::from_millis(-1)), "ISODate(\"1969-12-31T23:59:59.999Z\")");
        assert_eq!(shown(DateTime::from_millis(-62_135_596_800_000)), "ISODate(\"0001-01-01T00:00:00Z\")");
        assert_eq!(shown(DateTime::from_millis(253_402_300_800_000)), "new Date(253402300800000)");
        assert_eq!(shown(DateTime::MIN), "new Date(-9223372036854775808)");
        let id: ObjectId = "507f1f77bcf86cd799439011".parse().unwrap();
        assert_eq!(shown(id), "ObjectId(\"507f1f77bcf86cd799439011\")");
        assert_eq!(shown(Timestamp { time: 7, increment: 2 }), "Timestamp({ t: 7, i: 2 })");
        assert_eq!(shown(binary(BinarySubtype::Generic, vec![1, 2])), "BinData(0, \"AQI=\")");
        assert_eq!(
            shown(binary(BinarySubtype::Uuid, (0..16).collect())),
            "UUID(\"00010203-0405-0607-0809-0a0b0c0d0e0f\")"
        );
        assert_eq!(shown(binary(BinarySubtype::Uuid, vec![1, 2])), "BinData(4, \"AQI=\")");
        assert_eq!(shown(Bson::MinKey), "MinKey()");
        assert_eq!(shown(Bson::Undefined), "undefined");
    }

    #[test]
    fn patterns_are_between_slashes_unless_they_would_be_read_otherwise() {
        let right = [
            ("^a", "i", "/^a/i"),
            ("[a-c]\\d", "", "/[a-c]\\d/"),
            ("a/b", "", "BSONRegExp(\"a/b\", \"\")"),
            ("a\nb", "m", "BSONRegExp(\"a\\nb\", \"m\")"),
            ("[a", "", "BSONRegExp(\"[a\", \"\")"),
            ("", "", "BSONRegExp(\"\", \"\")"),
        ];
        for (pattern, options, right) in right {
            assert_eq!(shown(regex(pattern, options)), right);
        }
    }

    #[test]
    fn texts_are_escaped_wherever_they_are() {
        let document = doc! { "a\"b": ["x\ny", { "c": 1_i64 }], "e": {} };
        assert_eq!(shown(document), r#"{ "a\"b": ["x\ny", { "c": 1 }], "e": {} }"#);
    }
}
