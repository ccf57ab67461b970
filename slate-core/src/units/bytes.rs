//! Byte sizes: `#[serde(with = "units::bytes")]` on an `Option<usize>`.

use std::fmt;

use serde::{Deserializer, Serializer, de};

use super::parse::{self, ParseError};

const UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// Accepts `"256MiB"` or a number of bytes.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    deserializer.deserialize_any(Bytes).map(Some)
}

pub(crate) fn serialize<S: Serializer>(bytes: &Option<usize>, serializer: S) -> Result<S::Ok, S::Error> {
    match bytes.map(u64::try_from) {
        Some(Ok(bytes)) => serializer.serialize_str(&parse::format(bytes, UNITS)),
        Some(Err(error)) => Err(serde::ser::Error::custom(error)),
        None => serializer.serialize_none(),
    }
}

struct Bytes;

impl de::Visitor<'_> for Bytes {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as \"256MiB\" (B, KiB, MiB, GiB, TiB, kB, MB, GB, TB), or a number of bytes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<usize, E> {
        match parse::parse(text, UNITS) {
            Ok(bytes) => self.visit_u64(bytes),
            Err(ParseError::Malformed) => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
            Err(ParseError::TooLarge) => Err(E::custom(format_args!("{text:?} exceeds the address space"))),
        }
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<usize, E> {
        usize::try_from(bytes).map_err(|_| E::custom(format_args!("{bytes} bytes exceed the address space")))
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<usize, E> {
        usize::try_from(bytes).map_err(|_| E::invalid_value(de::Unexpected::Signed(bytes), &self))
    }
}
