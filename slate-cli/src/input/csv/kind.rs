//! The types that the header of a table can name: those of `mongoimport`, and Slate's `date()`, `json()` and
//! `objectId()`.

use bson::{Binary, Bson, DateTime, Decimal128, spec::BinarySubtype};

use super::date_layout::{DateLayout, Dialect};
use crate::{
    input::infer,
    json::{self, Dialect as Json},
    similar,
};

/// A type with its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Auto,
    Base32,
    Base64,
    Boolean,
    /// ISO 8601.
    Date,
    DateIn(DateLayout),
    Decimal,
    Double,
    Hex,
    Int32,
    Int64,
    Json,
    ObjectId,
    String,
}

/// The types as messages list them.
const NAMES: &[&str] = &[
    "auto",
    "binary",
    "boolean",
    "date",
    "date_go",
    "date_ms",
    "date_oracle",
    "decimal",
    "double",
    "int32",
    "int64",
    "json",
    "objectId",
    "string",
];

impl Kind {
    /// Returns the type with this name and argument.
    ///
    /// # Errors
    /// Fails if the name is unknown or the argument wrong.
    pub(super) fn of(name: &str, argument: &str) -> Result<Self, String> {
        let date = |dialect| {
            DateLayout::new(dialect, argument).map(Self::DateIn).map_err(|why| format!("{name}({argument}): {why}"))
        };
        let kind = match name {
            "binary" => {
                return match argument {
                    "base32" => Ok(Self::Base32),
                    "base64" => Ok(Self::Base64),
                    "hex" => Ok(Self::Hex),
                    _ => Err(format!("{name}({argument}): write binary(base64), binary(base32) or binary(hex)")),
                };
            }
            "date" if argument.is_empty() => Self::Date,
            "date" | "date_go" => return date(Dialect::Go),
            "date_ms" => return date(Dialect::Ms),
            "date_oracle" => return date(Dialect::Oracle),
            "auto" => Self::Auto,
            "boolean" => Self::Boolean,
            "decimal" => Self::Decimal,
            "double" => Self::Double,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "json" => Self::Json,
            "objectId" => Self::ObjectId,
            "string" => Self::String,
            _ => {
                let meant = similar::name(NAMES.iter().copied(), name);
                let meant = meant.map_or_else(
                    || format!("the types are {}", NAMES.join(", ")),
                    |known| format!("a similar type exists: {known}"),
                );
                return Err(format!("{name} is not a type; {meant}"));
            }
        };
        if argument.is_empty() { Ok(kind) } else { Err(format!("{name}({argument}): this type has no argument")) }
    }

    /// Converts the text of a cell that is not empty.
    ///
    /// # Errors
    /// Fails if the text is not of this type.
    pub(super) fn value(&self, text: &str) -> Result<Bson, String> {
        let parsed = match self {
            Self::Auto => Some(infer(text)),
            Self::Base32 => base32(text).map(binary),
            Self::Base64 => Binary::from_base64(text, None).ok().map(Bson::Binary),
            Self::Boolean => boolean(text).map(Bson::Boolean),
            Self::Date => date(text, json::nanos(text).map(json::whole_millis))?,
            Self::DateIn(layout) => date(text, layout.millis(text))?,
            Self::Decimal => text.parse::<Decimal128>().ok().map(Bson::Decimal128),
            Self::Double => text.parse().ok().map(Bson::Double),
            Self::Hex => hex(text).map(binary),
            Self::Int32 => text.parse().ok().map(Bson::Int32),
            Self::Int64 => text.parse().ok().map(Bson::Int64),
            Self::Json => return json::value(text, Json::DATA),
            Self::ObjectId => text.parse().ok().map(Bson::ObjectId),
            Self::String => Some(Bson::String(text.to_owned())),
        };
        parsed.ok_or_else(|| format!("{} is not of type {}", shortened(text), self.name()))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Base32 => "binary(base32)",
            Self::Base64 => "binary(base64)",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::DateIn(_) => "date in the layout of its column",
            Self::Decimal => "decimal",
            Self::Double => "double",
            Self::Hex => "binary(hex)",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Json => "json",
            Self::ObjectId => "objectId",
            Self::String => "string",
        }
    }
}

/// Returns a text in quotes for a message, long ones shortened.
pub(super) fn shortened(text: &str) -> String {
    /// Longest text that is shown, in characters.
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or(text)),
        None => format!("{text:?}"),
    }
}

/// Returns the date of the milliseconds that were read from a text, if any. Fails on digits that a date does not store.
fn date(text: &str, millis: Option<Result<i64, &str>>) -> Result<Option<Bson>, String> {
    let millis = millis.transpose().map_err(|why| {
        let text = shortened(text);
        format!("{text} {why}: a layout that names them, as in date_go(2006-01-02T15:04:05.000000), cuts them off")
    })?;
    Ok(millis.map(|millis| Bson::DateTime(DateTime::from_millis(millis))))
}

fn binary(bytes: Vec<u8>) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })
}

/// Reads a boolean in the forms that `mongoimport` accepts, in any case.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ => match &*text.to_ascii_lowercase() {
            "true" | "t" => Some(true),
            "false" | "f" => Some(false),
            _ => None,
        },
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs.collect()
}

/// Decodes base32 (RFC 4648) with its padding.
fn base32(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    // Eight digits are five bytes. The last group has as many digits as its bytes need.
    let rest = digits.len() % 8;
    if !text.len().is_multiple_of(8) || text.len() - digits.len() > 6 || matches!(rest, 1 | 3 | 6) {
        return None;
    }
    let (mut bytes, mut bits, mut pending) = (Vec::with_capacity(digits.len() * 5 / 8), 0_u32, 0_u32);
    for byte in digits.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'2'..=b'7' => byte - b'2' + 26,
            _ => return None,
        };
        pending = (pending << 5 | u32::from(digit)) & 0xfff;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(pending >> bits & 0xff).ok()?);
        }
    }
    // The padding bits must be zero.
    (pending & ((1 << bits) - 1) == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use bson::bson;

    use super::*;

    #[test]
    fn cells_are_of_the_type_of_their_column() {
        let bytes = |bytes: &[u8]| binary(bytes.to_vec());
        for (name, argument, text, expected) in [
            ("boolean", "", "TRUE", bson!(true)),
            ("boolean", "", "0", bson!(false)),
            ("int32", "", "+7", bson!(7)),
            ("int64", "", "007", bson!(7_i64)),
            ("double", "", "1e3", bson!(1000.0)),
            ("double", "", "inf", bson!(f64::INFINITY)),
            ("decimal", "", "1.50", Bson::Decimal128("1.50".parse().unwrap())),
            ("binary", "hex", "00fF", bytes(&[0, 255])),
            ("binary", "base64", "AP8=", bytes(&[0, 255])),
            ("binary", "base32", "MZXW6YTBOI======", bytes(b"foobar")),
            ("binary", "base32", "MZXW6YTB", bytes(b"fooba")),
            ("date", "02.01.2006", "29.02.2024", Bson::DateTime(DateTime::from_millis(1_709_164_800_000))),
            ("date_ms", "yyyy-MM-dd", "2024-02-29", Bson::DateTime(DateTime::from_millis(1_709_164_800_000))),
            ("date", "", "2024-02-29T00:00:00.000000Z", Bson::DateTime(DateTime::from_millis(1_709_164_800_000))),
            ("string", "", "1", bson!("1")),
            ("auto", "", "1", bson!(1)),
        ] {
            assert_eq!(Kind::of(name, argument).unwrap().value(text), Ok(expected), "{name} {text}");
        }
        for (name, argument, text) in [
            ("boolean", "", "yes"),
            ("int32", "", "2147483648"),
            ("decimal", "", "x"),
            ("binary", "hex", "0"),
            ("binary", "hex", "0g"),
            ("binary", "hex", "+1"),
            ("binary", "base64", "*"),
            ("binary", "base32", "MZXW6YT"),
            ("binary", "base32", "MZ======MZXW6YTB"),
            ("binary", "base32", "MB======1"),
            ("binary", "base32", "MZ======"),
            ("objectId", "", "5"),
            ("date", "", "29.02.2024"),
            ("date", "", "2024-02-29T00:00:00.0001Z"),
            ("date", "2006-01-02 15:04:05", "2024-02-29 00:00:00.0001"),
        ] {
            assert!(Kind::of(name, argument).unwrap().value(text).is_err(), "{name} {text}");
        }
        let digits = Kind::Date.value("1969-12-31 23:59:59.9999").unwrap_err();
        assert!(digits.contains("has digits beyond milliseconds"), "{digits}");
        let long = Kind::Int32.value(&"x".repeat(1_000_000)).unwrap_err();
        assert!(long.len() < 200, "{long}");
    }

    #[test]
    fn an_unknown_type_or_argument_is_refused() {
        assert!(Kind::of("decmal", "").unwrap_err().ends_with("a similar type exists: decimal"));
        assert!(Kind::of("objectid", "").unwrap_err().ends_with("a similar type exists: objectId"));
        assert!(Kind::of("money", "").unwrap_err().contains("the types are auto, binary"));
        for (name, argument) in [("binary", ""), ("binary", "x"), ("int32", "5"), ("date_go", ""), ("date", "x")] {
            assert!(Kind::of(name, argument).is_err(), "{name}({argument})");
        }
        for name in NAMES {
            let argument = match *name {
                "binary" => "hex",
                "date_go" => "2006-01-02",
                "date_ms" => "yyyy-MM",
                "date_oracle" => "YYYY-MM",
                _ => "",
            };
            assert!(Kind::of(name, argument).is_ok(), "{name}");
        }
    }
}
