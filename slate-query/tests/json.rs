//! Values as text are the relaxed extended JSON that the `bson` crate writes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod random;

use bson::{Bson, DateTime, RawDocumentBuf, doc};
use proptest::prelude::*;
use slate_query::raw::{Doc, Kind, Value};

fn shown(document: &[u8]) -> String {
    Value::new(Kind::Document, document).to_string()
}

/// Parses the text as JSON and compares it with the document that the `bson` crate makes.
fn agrees(document: &[u8]) -> Result<(), TestCaseError> {
    let text = shown(document);
    let ours: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
    let theirs = Bson::Document(bson::deserialize_from_slice(document).unwrap()).into_relaxed_extjson();
    prop_assert!(same(&ours, &theirs), "{ours} instead of {theirs}");
    Ok(())
}

fn same(ours: &serde_json::Value, theirs: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object, String};
    match (ours, theirs) {
        (Array(ours), Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| same(ours, theirs))
        }
        // The crate represents dates after the year 9999 by the last that it knows.
        (Object(ours), Object(theirs))
            if theirs.get("$date").is_some_and(|date| *date == "9999-12-31T23:59:59.999999999Z") =>
        {
            ours.get("$date").is_some_and(|date| date.get("$numberLong").is_some())
        }
        (Object(ours), Object(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|((name, ours), (known, theirs))| name == known && same(ours, theirs))
        }
        // serde_json may read the last digit of a double differently than it was written.
        (Number(ours), Number(theirs)) if theirs.is_f64() => {
            let (ours, theirs) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
            ours == theirs || ((ours - theirs) / theirs).abs() < 1e-15
        }
        // Extended JSON has one NaN.
        (String(ours), String(theirs)) if theirs == "-NaN" => ours == "NaN",
        _ => ours == theirs,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn documents_are_extended_json(document in random::document()) {
        agrees(&document)?;
    }

    #[test]
    fn damaged_bytes_are_shown(mut document in random::document(), at in any::<prop::sample::Index>(), byte: u8) {
        let at = at.index(document.len());
        document[at] = byte;
        let text = shown(&document);
        prop_assert!(text.starts_with('{') && text.ends_with('}'), "{}", text);
        for element in Doc::new(&document).elements() {
            let cut = element.value.bytes().get(1..).unwrap_or_default();
            let _ = Value::new(element.value.kind(), cut).to_string();
        }
    }
}

#[test]
fn each_type_is_extended_json() {
    let document = doc! {
        "quote\"": "line\nbreak\u{1}\\ ü 🦀", "half": 1.0, "small": 1e-9, "big": 1e300, "infinite": f64::NEG_INFINITY,
        "oid": bson::oid::ObjectId::from_bytes(*b"twelve bytes"), "date": DateTime::from_millis(1_700_000_000_123),
        "old": DateTime::from_millis(-1), "last": DateTime::from_millis(253_402_300_799_999),
        "late": DateTime::from_millis(253_402_300_800_000), "timestamp": bson::Timestamp { time: 7, increment: u32::MAX },
        "undefined": Bson::Undefined, "null": null, "min": Bson::MinKey, "max": Bson::MaxKey, "no": [], "none": {},
        "array": [1, [true, i64::MAX], { "a": { "b": 2 } }], "symbol": Bson::Symbol("s".into()),
        "code": Bson::JavaScriptCode("f()".into()), "regex": bson::Regex { pattern: "a/\"b".try_into().unwrap(), options: "im".try_into().unwrap() },
        "scope": bson::JavaScriptCodeWithScope { code: "f()".into(), scope: doc! { "a": [1] } },
        "binary": bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: vec![0, 255, 7] },
        "old_binary": bson::Binary { subtype: bson::spec::BinarySubtype::BinaryOld, bytes: vec![1, 2] },
        "decimal": "1.50E+3".parse::<bson::Decimal128>().unwrap(),
    };
    agrees(RawDocumentBuf::try_from(&document).unwrap().as_bytes()).unwrap();
}

#[test]
fn documents_stand_on_one_line() {
    let document =
        RawDocumentBuf::try_from(&doc! { "_id": 1, "a": [1.0, "x"], "b": {}, "c": [], "d": { "e": null } }).unwrap();
    let text = r#"{ "_id": 1, "a": [1.0, "x"], "b": {}, "c": [], "d": { "e": null } }"#;
    assert_eq!(shown(document.as_bytes()), text);
}

#[test]
fn damaged_values_are_named() {
    assert_eq!(Value::new(Kind::ObjectId, &[1, 2]).to_string(), "<damaged objectId>");
    assert_eq!(Value::new(Kind::String, &[]).to_string(), "<damaged string>");
    // Deeper than a document may be.
    let mut bytes = vec![5, 0, 0, 0, 0];
    for _ in 0..400 {
        let mut outer = (u32::try_from(bytes.len()).unwrap() + 8).to_le_bytes().to_vec();
        outer.extend([3, b'a', 0]);
        outer.extend(&bytes);
        outer.push(0);
        bytes = outer;
    }
    assert!(shown(&bytes).contains("<damaged object>"));
}
