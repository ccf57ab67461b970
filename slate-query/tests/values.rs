//! Values as MongoDB's shell writes them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Instant};

use bson::{Binary, Bson, DateTime, Regex, Timestamp, doc, oid::ObjectId, spec::BinarySubtype};
use slate_query::{
    Code, Error, Result,
    raw::{Kind, OwnedValue, Value, validate_depth},
    work,
};

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
    assert_eq!(shown(binary(BinarySubtype::Uuid, (0..16).collect())), "UUID(\"00010203-0405-0607-0809-0a0b0c0d0e0f\")");
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

/// The end of every call.
struct Over;

impl work::Limit for Over {
    fn check(&self) -> Result<()> {
        Err(Error::new(Code::INTERRUPTED, "over"))
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// What follows the check recurses over the value, whose depth a call that has ended does not count.
#[test]
fn a_deep_value_is_refused_after_the_end_of_its_call() {
    const LEVELS: u16 = 10_000;
    let heads =
        (0..LEVELS).rev().flat_map(|level| [&(5 + 8 * i32::from(level)).to_le_bytes()[..], b"\x03a\0"].concat());
    let mut bytes: Vec<u8> = heads.collect();
    bytes.truncate(bytes.len() - 3);
    bytes.extend(vec![0; usize::from(LEVELS)]);
    let deep = Value::new(Kind::Document, &bytes);
    assert_eq!(validate_depth(deep).unwrap_err().code(), Code::OVERFLOW);
    let mut is_refused = false;
    let ended = work::during(Arc::new(Over), || {
        while work::take(1).is_ok() {}
        is_refused = validate_depth(deep).is_err();
    });
    assert!(is_refused && ended.is_err());
}
