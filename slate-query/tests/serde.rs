//! Types convert as with the `bson` crate: the same value, or an error from both.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod random;
mod serde_types;

use std::{
    any::Any,
    collections::{BTreeMap, HashMap},
    fmt::Debug,
};

use bson::{Bson, DateTime, Document, RawBson, RawDocument, RawDocumentBuf, doc, oid::ObjectId, rawdoc};
use proptest::prelude::*;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_types::*;
use slate_query::{
    raw::{Doc, Kind, OwnedValue, store},
    serde::{Error, deserialize, deserialize_document, deserialize_value, serialize},
};

fn stored(document: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    store(Doc::new(document), &mut bytes);
    bytes
}

/// Deserializes with and without a field table, and with the `bson` crate, and compares. `Debug` text is equal for equal NaNs.
fn agrees<T: DeserializeOwned + Debug + Any>(document: &[u8]) -> Result<(), TestCaseError> {
    let (plain, record) = (Doc::new(document), stored(document));
    let theirs = bson::deserialize_from_slice::<T>(document);
    if let Some(theirs) = (&theirs as &dyn Any).downcast_ref::<Result<Document, bson::error::Error>>() {
        let direct = deserialize_document(plain);
        prop_assert_eq!(direct.is_ok(), theirs.is_ok());
        prop_assert_eq!(
            direct.ok().map(|document| format!("{document:?}")),
            theirs.as_ref().ok().map(|document| format!("{document:?}"))
        );
    }
    for (ours, table) in [(deserialize::<T>(plain), false), (deserialize::<T>(Doc::stored(&record)), true)] {
        let name = std::any::type_name::<T>();
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{}", name),
            (Err(_), Err(_)) => {}
            _ => prop_assert!(false, "{name}, table: {table}, {plain:?}: {ours:?}, bson: {theirs:?}"),
        }
    }
    Ok(())
}

/// Returns a value of every type.
fn every_type() -> Document {
    doc! {
        "null": null, "boolean": true, "int32": -7, "int64": 1_i64 << 40, "double": 2.5, "string": "Tromsø",
        "oid": ObjectId::from_bytes(*b"twelve bytes"), "date": DateTime::from_millis(-1),
        "timestamp": bson::Timestamp { time: u32::MAX, increment: 3 }, "undefined": Bson::Undefined,
        "min": Bson::MinKey, "max": Bson::MaxKey, "array": [1, "a", { "b": [] }], "document": { "a": 1, "b": { "c": 2 } },
        "symbol": Bson::Symbol("s".into()), "code": Bson::JavaScriptCode("f()".into()),
        "scope": bson::JavaScriptCodeWithScope { code: "f()".into(), scope: doc! { "a": { "b": 1 } } },
        "regex": bson::Regex { pattern: bson::cstr!("a").into(), options: bson::cstr!("i").into() },
        "binary": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2] },
        "old": bson::Binary { subtype: bson::spec::BinarySubtype::BinaryOld, bytes: vec![1, 2, 3] },
        "user": bson::Binary { subtype: bson::spec::BinarySubtype::UserDefined(0x80), bytes: vec![1, 2, 3, 4] },
        "uuid": bson::Uuid::from_bytes([7; 16]),
        "decimal": bson::Decimal128::from_bytes([7; 16]),
    }
}

#[test]
fn every_type_of_the_bson_crate_is_read() {
    let document = every_type();
    let bytes = document.to_vec().unwrap();
    assert_eq!(deserialize::<Document>(Doc::new(&bytes)).unwrap(), document);
    assert_eq!(
        deserialize::<EveryType>(Doc::stored(&stored(&bytes))).unwrap(),
        bson::deserialize_from_slice(&bytes).unwrap()
    );
    agrees::<Document>(&bytes).unwrap();
    agrees::<Bson>(&bytes).unwrap();
    agrees::<RawDocumentBuf>(&bytes).unwrap();
    agrees::<RawBson>(&bytes).unwrap();
    agrees::<serde_json::Value>(&bytes).unwrap();
    agrees::<HashMap<String, Bson>>(&bytes).map(drop).unwrap_or_default();
    agrees::<BTreeMap<String, RawBson>>(&bytes).unwrap();
    agrees::<BTreeMap<String, serde_json::Value>>(&bytes).unwrap();
    agrees::<EveryType>(&bytes).unwrap();
    agrees::<bson::serde_helpers::HumanReadable<EveryType>>(&bytes).unwrap();
    agrees::<bson::Utf8Lossy<EveryType>>(&bytes).unwrap();
}

#[test]
fn strings_bytes_and_documents_are_borrowed() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Borrowed<'a> {
        name: &'a str,
        #[serde(borrow)]
        rest: &'a RawDocument,
        #[serde(with = "bytes")]
        bytes: &'a [u8],
        #[serde(borrow)]
        any: bson::RawBsonRef<'a>,
    }
    mod bytes {
        pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<&'de [u8], D::Error> {
            serde::Deserialize::deserialize(deserializer)
        }
    }
    let document = rawdoc! {
        "unknown": 1, "name": "Ada", "rest": { "a": 1 }, "more": 2, "any": ["x"],
        "bytes": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2] },
    };
    for doc in [Doc::from(&document), Doc::stored(&stored(document.as_bytes()))] {
        let borrowed: Borrowed<'_> = deserialize(doc).unwrap();
        assert_eq!(borrowed.name, "Ada");
        assert_eq!(borrowed.bytes, [1, 2]);
        assert_eq!(borrowed.rest, &*rawdoc! { "a": 1 });
        let range = doc.bytes().as_ptr_range();
        assert!(range.contains(&borrowed.name.as_ptr()) && range.contains(&borrowed.rest.as_bytes().as_ptr()));
        assert_eq!(borrowed.any.as_array().unwrap().into_iter().count(), 1);
    }
}

#[test]
fn aliases_unknown_fields_and_repeated_fields_are_treated_as_by_the_bson_crate() {
    for document in [
        rawdoc! { "x": 1, "y": 2, "old": 3, "z": 4 },
        rawdoc! { "x": 1, "old": 3, "second": "2" },
        rawdoc! { "second": "2", "first": 1 },
        rawdoc! { "first": 1, "first": 2, "second": "" },
        rawdoc! { "first": 1, "old": 2, "second": "" },
        rawdoc! { "x": 1, "x": 2, "first": 3, "second": "" },
        rawdoc! { "_id": 1, "first": 3, "second": "", "third": 1 },
        rawdoc! { "first": 3, "second": "" },
    ] {
        agrees::<Aliased>(document.as_bytes()).unwrap();
        agrees::<Denying>(document.as_bytes()).unwrap();
        agrees::<Flattened>(document.as_bytes()).unwrap();
    }
}

#[test]
fn errors_contain_the_path_of_the_field() {
    #[derive(Debug, Deserialize)]
    struct Person {
        #[serde(rename = "address")]
        _address: Address,
    }
    #[derive(Debug, Deserialize)]
    struct Address {
        #[serde(rename = "lines")]
        _lines: Vec<String>,
        #[serde(rename = "kind")]
        _kind: External,
    }
    let path = |document: RawDocumentBuf| {
        let record = stored(document.as_bytes());
        let plain = deserialize::<Person>(Doc::from(&document)).unwrap_err();
        assert_eq!(deserialize::<Person>(Doc::stored(&record)).unwrap_err(), plain);
        (plain.path().map(str::to_owned), plain.message().to_owned())
    };
    let expect = |path: Option<&str>, message: &str| (path.map(str::to_owned), message.to_owned());
    assert_eq!(
        path(rawdoc! { "x": 1, "address": { "y": 2, "lines": ["a", "b", 3] } }),
        expect(Some("address.lines.2"), "invalid type: integer `3`, expected a string")
    );
    assert_eq!(path(rawdoc! { "address": { "kind": "Unit" } }), expect(Some("address"), "missing field `lines`"));
    assert_eq!(path(rawdoc! {}), expect(None, "missing field `address`"));
    assert_eq!(
        path(rawdoc! { "address": { "kind": { "Struct": { "a": "x" } } } }),
        expect(Some("address.kind.Struct.a"), "invalid type: string \"x\", expected i32")
    );
    let error = deserialize::<Person>(Doc::from(&rawdoc! { "address": 1 })).unwrap_err();
    assert_eq!(error.to_string(), "invalid type: integer `1`, expected struct Address (at 'address')");
}

/// The stack size of a test in bytes: unoptimized code needs more than a test thread has by default.
const STACK: usize = 64 << 20;

#[test]
fn documents_may_nest_as_deep_as_stored_ones() {
    #[derive(Debug, Deserialize)]
    struct Chain {
        #[serde(rename = "a")]
        _a: Option<Box<Chain>>,
    }
    let chain = |depth: usize| (1..depth).fold(rawdoc! {}, |inner, _| rawdoc! { "a": inner });
    let read = move || {
        for (depth, is_read) in [(180, true), (181, false), (10_000, false)] {
            let document = chain(depth);
            let errors: [Option<Error>; 2] =
                [deserialize::<Chain>(Doc::from(&document)).err(), deserialize::<Document>(Doc::from(&document)).err()];
            for error in errors {
                assert_eq!(error.is_none(), is_read, "{depth}");
                assert!(error.is_none_or(|error| error.message() == "documents may nest at most 180 deep"));
            }
        }
    };
    std::thread::Builder::new().stack_size(STACK).spawn(read).unwrap().join().unwrap();
}

#[test]
fn damaged_bytes_do_not_panic() {
    let whole = every_type().to_vec().unwrap();
    let record = stored(&whole);
    let read = |doc: Doc<'_>| {
        let _ = (deserialize::<Document>(doc), deserialize::<EveryType>(doc), deserialize::<RawDocumentBuf>(doc));
        let _ = (deserialize::<serde_json::Value>(doc), deserialize::<Flattened>(doc));
    };
    for end in 0..whole.len() {
        read(Doc::new(&whole[..end]));
        read(Doc::stored(&record[..end]));
    }
    for at in 0..record.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut damaged = record.clone();
            damaged[at] = byte;
            read(Doc::stored(&damaged));
            if at < whole.len() {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                read(Doc::new(&damaged));
            }
        }
    }
}

/// Returns a document that is similar to those that the types of the tests expect.
fn likely() -> impl Strategy<Value = Vec<u8>> {
    let names = proptest::sample::select(NAMES.to_vec());
    let tree = leaf().prop_recursive(3, 24, 6, |inner| {
        let names = proptest::sample::select(NAMES.to_vec());
        let fields = proptest::collection::vec((names.prop_map(str::to_owned), inner.clone()), 0..4);
        prop_oneof![
            fields.prop_map(|fields| nested(Kind::Document, &random::document_of(&fields))),
            proptest::collection::vec(inner, 0..4).prop_map(|items| {
                let items: Vec<_> = items.into_iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect();
                nested(Kind::Array, &random::document_of(&items))
            }),
        ]
    });
    proptest::collection::vec((names.prop_map(str::to_owned), tree), 0..8)
        .prop_map(|fields| random::document_of(&fields))
}

fn nested(kind: Kind, bytes: &[u8]) -> OwnedValue {
    slate_query::raw::Value::new(kind, bytes).to_owned()
}

fn leaf() -> impl Strategy<Value = OwnedValue> {
    let texts = ["a", "Unit", "7", "0123456789abcdef01234567", "2020-01-01T00:00:00Z", "é"];
    prop_oneof![
        2 => random::scalar(),
        1 => proptest::sample::select(texts.to_vec()).prop_map(|text| OwnedValue::from(Bson::String(text.into()))),
        1 => (-2_i32..300).prop_map(|int| OwnedValue::from(Bson::Int32(int))),
        1 => (0_u8..2).prop_map(|_| OwnedValue::from(Bson::ObjectId(ObjectId::from_bytes([9; 12])))),
        1 => (0_i64..4).prop_map(|millis| OwnedValue::from(Bson::DateTime(DateTime::from_millis(millis * 1000)))),
        1 => Just(OwnedValue::from(Bson::from(bson::Uuid::from_bytes([3; 16])))),
    ]
}

fn agree_all(document: &[u8]) -> Result<(), TestCaseError> {
    agrees::<Document>(document)?;
    agrees::<Bson>(document)?;
    agrees::<RawDocumentBuf>(document)?;
    agrees::<RawBson>(document)?;
    agrees::<serde_json::Value>(document)?;
    for_each_type!(agrees, document);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn documents_of_any_shape_are_read_as_by_the_bson_crate(fields in proptest::collection::vec(random::value(), 0..5)) {
        let fields: Vec<_> = NAMES.iter().map(|name| (*name).to_owned()).zip(fields).collect();
        agree_all(&random::document_of(&fields))?;
    }

    #[test]
    fn documents_that_nearly_fit_are_read_as_by_the_bson_crate(document in likely()) {
        agree_all(&document)?;
    }

    #[test]
    fn values_are_read_as_fields_of_a_document_are(value in random::value()) {
        #[derive(Debug, Deserialize)]
        struct Field<T> {
            v: T,
        }
        fn both<T: DeserializeOwned + Debug>(value: &OwnedValue) -> Result<(), TestCaseError> {
            let document = random::document_of(&[("v".to_owned(), value.clone())]);
            let theirs = bson::deserialize_from_slice::<Field<T>>(&document).ok().map(|field| format!("{:?}", field.v));
            let ours = deserialize_value::<T>(value.as_value()).ok().map(|value| format!("{value:?}"));
            prop_assert_eq!(ours, theirs, "{} {:?}", std::any::type_name::<T>(), value);
            Ok(())
        }
        both::<Bson>(&value)?;
        both::<RawBson>(&value)?;
        for_each_value_type!(both, &value);
    }

    #[test]
    fn values_are_written_as_by_the_bson_crate(document in likely()) {
        let fields: Document = match bson::deserialize_from_slice(&document) {
            Ok(fields) => fields,
            Err(_) => return Ok(()),
        };
        writes_alike(&fields)?;
        writes_alike(&RawDocumentBuf::from_bytes(document.clone()).unwrap())?;
        writes_alike(&A { a: RawDocumentBuf::from_bytes(document.clone()).unwrap(), b: None })?;
        for_each_type!(written_back, &document);
    }

    #[test]
    fn fields_of_every_type_are_written_as_by_the_bson_crate(value in random::value()) {
        let document = random::document_of(&[("a".to_owned(), value.clone())]);
        let as_field = |error: TestCaseError| error;
        fn written<T: DeserializeOwned + Serialize + Debug>(document: &[u8]) -> Result<(), TestCaseError> {
            written_back::<A<T>>(document)
        }
        written::<Bson>(&document).map_err(as_field)?;
        written::<RawBson>(&document)?;
        for_each_written_type!(written, &document);
    }
}

/// Serializes with both and compares the bytes, or that both fail.
fn writes_alike<T: Serialize + Debug>(value: &T) -> Result<(), TestCaseError> {
    let mut ours = vec![1, 2, 3];
    let written = serialize(value, &mut ours);
    match bson::serialize_to_vec(value) {
        Ok(theirs) => {
            prop_assert!(written.is_ok(), "{value:?}: {written:?}");
            prop_assert_eq!(&ours[3..], &theirs[..], "{:?}", value);
        }
        Err(theirs) => prop_assert!(written.is_err(), "{value:?}, bson: {theirs}"),
    }
    prop_assert!(written.is_ok() || ours == [1, 2, 3]);
    Ok(())
}

/// Reads a value, if the document is one, and writes it.
fn written_back<T: DeserializeOwned + Serialize + Debug>(document: &[u8]) -> Result<(), TestCaseError> {
    deserialize::<T>(Doc::new(document)).map_or(Ok(()), |value| writes_alike(&value))
}

#[test]
fn every_type_of_the_bson_crate_is_written() {
    let document = every_type();
    writes_alike(&document).unwrap();
    writes_alike(&rawdoc! { "a": RawDocumentBuf::try_from(&document).unwrap() }).unwrap();
    let typed: EveryType = bson::deserialize_from_document(document).unwrap();
    writes_alike(&typed).unwrap();
    writes_alike(&A { a: Bytes(vec![1, 2]), b: Some(1) }).unwrap();
    writes_alike(&A { a: 'é', b: Some(1) }).unwrap();
    writes_alike(&A { a: (u32::MAX, u64::MAX >> 1, 1.5_f32, [(); 11]), b: None }).unwrap();
    for key in [External::Unit, External::Newtype(1)] {
        writes_alike(&BTreeMap::from([(key, 1)])).unwrap();
    }
    writes_alike(&bson::serde_helpers::HumanReadable(A { a: bson::Uuid::from_bytes([1; 16]), b: None })).unwrap();
}

#[test]
fn what_bson_cannot_represent_fails_with_the_path_of_the_field() {
    let error = |value: &dyn Fn(&mut Vec<u8>) -> Result<(), Error>| {
        let error = value(&mut Vec::new()).unwrap_err();
        (error.path().map(str::to_owned), error.message().to_owned())
    };
    let expect = |path: Option<&str>, message: &str| (path.map(str::to_owned), message.to_owned());
    let large = A { a: vec![BTreeMap::from([("x", 1), ("y", u64::MAX)])], b: None };
    assert_eq!(
        error(&|buffer| serialize(&large, buffer)),
        expect(Some("a.0.y"), "the integer 18446744073709551615 exceeds an int64")
    );
    assert_eq!(
        error(&|buffer| serialize(&A { a: BTreeMap::from([(1, 1)]), b: None }, buffer)),
        expect(Some("a"), "the key of a map must be a string, found an integer")
    );
    assert_eq!(
        error(&|buffer| serialize(&A { a: doc! { "x\0": 1 }, b: None }, buffer)),
        expect(Some("a"), "a field's name and a regular expression must not contain a NUL: \"x\\0\"")
    );
    assert_eq!(
        error(&|buffer| serialize(&[1], buffer)),
        expect(None, "expected a document, found a value of type array")
    );
    writes_alike(&large).unwrap();
    writes_alike(&1).unwrap();
    writes_alike(&A { a: 1_i128, b: None }).unwrap();
}
