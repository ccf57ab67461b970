//! The values of random documents and queries.

use bson::{Binary, Bson, DateTime, Regex, Timestamp, doc, oid::ObjectId, spec::BinarySubtype};
use proptest::{prelude::*, sample::select};

pub fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse().unwrap())
}

pub fn regex(pattern: &str, options: &str) -> Bson {
    Bson::RegularExpression(Regex {
        pattern: pattern.to_owned().try_into().unwrap(),
        options: options.to_owned().try_into().unwrap(),
    })
}

pub fn binary(subtype: BinarySubtype, bytes: &[u8]) -> Bson {
    Bson::Binary(Binary { subtype, bytes: bytes.to_vec() })
}

/// Numbers that are equal or almost equal across the four types.
pub fn numbers() -> Vec<Bson> {
    vec![
        Bson::Int32(0),
        Bson::Int32(1),
        Bson::Int32(1),
        Bson::Int32(2),
        Bson::Int32(-1),
        Bson::Int64(0),
        Bson::Int64(1),
        Bson::Int64(2),
        Bson::Int64((1 << 53) + 1),
        Bson::Int64(i64::MAX),
        Bson::Double(0.0),
        Bson::Double(-0.0),
        Bson::Double(1.0),
        Bson::Double(2.0),
        Bson::Double(1.5),
        Bson::Double(0.1),
        Bson::Double(f64::NAN),
        Bson::Double(f64::INFINITY),
        Bson::Double(f64::NEG_INFINITY),
        Bson::Double(9_007_199_254_740_992.0),
        decimal("1"),
        decimal("1.0"),
        decimal("0.1"),
        decimal("-0"),
        decimal("NaN"),
        decimal("9007199254740993"),
        decimal("Infinity"),
    ]
}

pub fn texts() -> Vec<Bson> {
    ["", "a", "ab", "abc", "a\0", "a\0b", "b", "A", "a.b", "é"].into_iter().map(Bson::from).collect()
}

pub fn others() -> Vec<Bson> {
    vec![
        Bson::Null,
        Bson::Null,
        Bson::Undefined,
        Bson::MinKey,
        Bson::MaxKey,
        Bson::Boolean(false),
        Bson::Boolean(true),
        Bson::DateTime(DateTime::from_millis(0)),
        Bson::DateTime(DateTime::from_millis(-1)),
        Bson::Timestamp(Timestamp { time: 1, increment: 0 }),
        Bson::Timestamp(Timestamp { time: 0, increment: 1 }),
        Bson::ObjectId(ObjectId::from_bytes([0; 12])),
        Bson::ObjectId(ObjectId::from_bytes([255; 12])),
        binary(BinarySubtype::Generic, &[]),
        binary(BinarySubtype::Generic, &[0]),
        binary(BinarySubtype::Generic, &[0, 255]),
        binary(BinarySubtype::Uuid, &[0]),
        regex("^a", ""),
        regex("^a", "i"),
        Bson::Symbol("a".into()),
        Bson::JavaScriptCode("a".into()),
        Bson::JavaScriptCodeWithScope(bson::JavaScriptCodeWithScope { code: "a".into(), scope: doc! { "a": 1 } }),
    ]
}

/// Texts around and beyond the length that an index entry stores, which differ only at their ends.
pub fn long_texts() -> Vec<Bson> {
    let lengths = [1_960, 1_967, 1_995, 1_999, 2_100];
    lengths.into_iter().flat_map(|length| ["a", "b"].map(|end| Bson::from("x".repeat(length) + end))).collect()
}

pub fn scalar() -> BoxedStrategy<Bson> {
    prop_oneof![6 => select(numbers()), 3 => select(texts()), 3 => select(others())].boxed()
}

/// `_id`s of every permitted type, all different.
pub fn ids() -> Vec<Bson> {
    vec![
        Bson::Int32(3),
        Bson::Double(1.5),
        Bson::String("a".into()),
        Bson::String("a\0b".into()),
        Bson::Int64(255),
        Bson::Document(doc! { "a": 1, "b": "x" }),
        Bson::Boolean(true),
        Bson::Null,
        Bson::ObjectId(ObjectId::from_bytes([255; 12])),
        Bson::MinKey,
        Bson::DateTime(DateTime::from_millis(-1)),
        binary(BinarySubtype::Generic, &[0, 255, 0]),
        Bson::Int32(-7),
        Bson::String(String::new()),
        decimal("2.50"),
        Bson::Timestamp(Timestamp { time: 1, increment: 255 }),
        Bson::MaxKey,
        Bson::String("y".repeat(300)),
        Bson::Document(doc! {}),
        Bson::Double(f64::NAN),
        Bson::Int32(0),
        Bson::Boolean(false),
        Bson::String("ab".into()),
        Bson::Document(doc! { "a": { "b": [1, 2] } }),
    ]
}
