//! Durations: `#[serde(with = "units::duration")]` on an `Option<Duration>`.

use std::{fmt, time::Duration};

use serde::{Deserializer, Serializer, de};

use super::parse::{self, ParseError};

/// Units in nanoseconds. The longest duration is 584 years.
const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Accepts `"5s"`. Rejects a number without a unit.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    deserializer.deserialize_any(Time).map(Some)
}

pub(crate) fn serialize<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match time.map(|time| u64::try_from(time.as_nanos())) {
        Some(Ok(nanoseconds)) => serializer.serialize_str(&parse::format(nanoseconds, UNITS)),
        Some(Err(error)) => Err(serde::ser::Error::custom(error)),
        None => serializer.serialize_none(),
    }
}

struct Time;

impl de::Visitor<'_> for Time {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"5s\" or \"250ms\" (ns, us, ms, s, m, h)")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        match parse::parse(text, UNITS) {
            Ok(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
            Err(ParseError::Malformed) => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
            Err(ParseError::TooLarge) => Err(E::custom(format_args!("{text:?} is too long"))),
        }
    }
}
