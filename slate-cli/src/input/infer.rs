//! The types of cells in tables.

use bson::{Bson, DateTime, oid::ObjectId};

use crate::{
    json::{self, Dialect},
    output::cell,
};

/// Returns the value that the text of a cell represents: `true`, `false`, `null`, a number, an ISO 8601 date, an
/// `ObjectId(…)`, extended JSON in braces, brackets or quotes; otherwise a string. Numbers that Slate would write
/// differently, such as `007`, `1.50` and integers beyond 64 bits, are strings, and so are dates with digits beyond
/// milliseconds.
pub(crate) fn infer(text: &str) -> Bson {
    special(text).unwrap_or_else(|| Bson::String(text.to_owned()))
}

fn special(text: &str) -> Option<Bson> {
    match text.as_bytes() {
        b"true" => Some(Bson::Boolean(true)),
        b"false" => Some(Bson::Boolean(false)),
        b"null" => Some(Bson::Null),
        [b'{', .., b'}'] | [b'[', .., b']'] | [b'"', .., b'"'] => json::value(text, Dialect::DATA).ok(),
        [b'-' | b'0'..=b'9' | b'I' | b'N', ..] => number(text).or_else(|| date(text)),
        _ => oid(text),
    }
}

/// Returns a number if Slate writes it in the same way.
fn number(text: &str) -> Option<Bson> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let starts_with_zero = unsigned.starts_with('0') && text != "0";
        let integer = text.parse::<i64>().ok().filter(|_| !starts_with_zero)?;
        return Some(i32::try_from(integer).map_or(Bson::Int64(integer), Bson::Int32));
    }
    let number = Bson::Double(text.parse().ok()?);
    (cell::plain(&number) == text).then_some(number)
}

fn date(text: &str) -> Option<Bson> {
    let millis = json::whole_millis(json::nanos(text)?).ok()?;
    Some(Bson::DateTime(DateTime::from_millis(millis)))
}

fn oid(text: &str) -> Option<Bson> {
    let hex = text.strip_prefix("ObjectId(")?.strip_suffix(')')?.trim_matches('"');
    hex.parse().ok().map(Bson::ObjectId)
}

/// Writes an ObjectId as [`infer`] reads it.
pub(crate) fn oid_text(oid: ObjectId) -> String {
    format!("ObjectId({oid})")
}

#[cfg(test)]
mod tests {
    use bson::bson;

    use super::*;

    #[test]
    fn cells_have_the_type_that_they_look_like() {
        for (text, value) in [
            ("1", bson!(1)),
            ("5000000000", bson!(5_000_000_000_i64)),
            ("-1.5", bson!(-1.5)),
            ("0", bson!(0)),
            ("-0.0", bson!(-0.0)),
            ("300.0", bson!(300.0)),
            ("1e22", bson!(1e22)),
            ("5e-324", bson!(5e-324)),
            ("Infinity", bson!(f64::INFINITY)),
            ("-Infinity", bson!(f64::NEG_INFINITY)),
            ("-9223372036854775808", bson!(i64::MIN)),
            ("true", bson!(true)),
            ("null", Bson::Null),
            ("2024-02-29", Bson::DateTime(DateTime::from_millis(1_709_164_800_000))),
            ("2024-02-29T00:00:00+01:00", Bson::DateTime(DateTime::from_millis(1_709_161_200_000))),
            ("2024-02-29 00:00:00.120000", Bson::DateTime(DateTime::from_millis(1_709_164_800_120))),
            ("ObjectId(507f1f77bcf86cd799439011)", Bson::ObjectId("507f1f77bcf86cd799439011".parse().unwrap())),
            ("[1, {a: 2}]", bson!([1, { "a": 2 }])),
            ("\"1\"", bson!("1")),
            ("{\"$numberLong\":\"1\"}", bson!(1_i64)),
        ] {
            assert_eq!(infer(text), value, "{text}");
        }
        for text in [
            "007",
            "-007",
            "-0",
            "+1",
            "1.50",
            "-1.50",
            "1.",
            ".5",
            "1e3",
            "1E22",
            "1e+22",
            "0.10000000000000001",
            "inf",
            "nan",
            "infinity",
            "Inf",
            "Nancy",
            "9223372036854775808",
            "123456789012345678901234567890",
            "+49 30 123",
            "1,5",
            "1.2.3",
            "-",
            "True",
            "a",
            "{x",
            "[draft]",
            "2024-13-01",
            "2024-02-29 00:00:00.1201",
            "2024-02-29T00:00:00.000000001Z",
            "12:30",
            "1_000",
            "0x10",
            "1e999",
            "\"a\" and \"b\"",
        ] {
            assert_eq!(infer(text), bson!(text), "{text}");
        }
    }
}
