//! The types of cells in tables.

use bson::{Bson, DateTime, oid::ObjectId};

use crate::json::{self, Dialect};

/// Returns the value that the text of a cell represents: `true`, `false`, `null`, a number, an ISO 8601 date, an
/// `ObjectId(…)`, extended JSON in braces, brackets or quotes; otherwise a string. Numbers with leading zeros, such as
/// `007`, and integers beyond 64 bits are strings.
pub(crate) fn infer(text: &str) -> Bson {
    special(text).unwrap_or_else(|| Bson::String(text.to_owned()))
}

fn special(text: &str) -> Option<Bson> {
    match text.as_bytes() {
        b"true" => Some(Bson::Boolean(true)),
        b"false" => Some(Bson::Boolean(false)),
        b"null" => Some(Bson::Null),
        [b'{', .., b'}'] | [b'[', .., b']'] | [b'"', .., b'"'] => json::value(text, Dialect::DATA).ok(),
        [b'-' | b'0'..=b'9', ..] => number(text).or_else(|| date(text)),
        _ => oid(text),
    }
}

fn number(text: &str) -> Option<Bson> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (integer, rest) = unsigned.split_at(unsigned.bytes().take_while(u8::is_ascii_digit).count());
    if integer.is_empty() || (integer.len() > 1 && integer.starts_with('0')) {
        return None;
    }
    if rest.is_empty() && text != "-0" {
        let integer = text.parse::<i64>().ok()?;
        return Some(i32::try_from(integer).map_or(Bson::Int64(integer), Bson::Int32));
    }
    let plain = rest.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    let number = text.parse::<f64>().ok().filter(|number| plain && number.is_finite())?;
    Some(Bson::Double(number))
}

fn date(text: &str) -> Option<Bson> {
    json::millis(text).map(|millis| Bson::DateTime(DateTime::from_millis(millis)))
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
            ("-1.50", bson!(-1.5)),
            ("1e3", bson!(1000.0)),
            ("true", bson!(true)),
            ("null", Bson::Null),
            ("2024-02-29", Bson::DateTime(DateTime::from_millis(1_709_164_800_000))),
            ("2024-02-29T00:00:00+01:00", Bson::DateTime(DateTime::from_millis(1_709_161_200_000))),
            ("ObjectId(507f1f77bcf86cd799439011)", Bson::ObjectId("507f1f77bcf86cd799439011".parse().unwrap())),
            ("[1, {a: 2}]", bson!([1, { "a": 2 }])),
            ("\"1\"", bson!("1")),
            ("{\"$numberLong\":\"1\"}", bson!(1_i64)),
        ] {
            assert_eq!(infer(text), value, "{text}");
        }
        for text in [
            "007",
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
