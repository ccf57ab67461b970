//! The form in which a document is stored: `_id` in front, empty timestamps stamped, and what is refused.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use bson::{RawBson, RawDocument, RawDocumentBuf, Timestamp, doc, rawdoc};
use slate_core::{Collection, Database, ErrorKind, Result};
use slate_query::{
    Code,
    raw::{MAX_DEPTH, validate},
};

const MAX_DOCUMENT: usize = 16 << 20;

/// The size of an `_id` field with an ObjectId.
const NEW_ID: usize = 17;

/// An empty collection.
struct Store(Collection<RawDocumentBuf>);

impl Store {
    fn open() -> Self {
        Self(Database::open("memory:").unwrap().collection("c"))
    }

    /// Returns the document as it is stored. The collection is empty afterwards, and after an error.
    fn prepared(&self, document: &RawDocumentBuf) -> Result<RawDocumentBuf> {
        let inserted = self.0.insert_one(document);
        let kept = self.0.find_one(doc! {}).run().unwrap();
        assert_eq!(kept.is_some(), inserted.is_ok());
        self.0.delete_many(doc! {}).run().unwrap();
        inserted.map(|_| kept.unwrap())
    }
}

fn names(document: &RawDocument) -> Vec<String> {
    document.iter().map(|field| field.unwrap().0.as_str().into()).collect()
}

#[test]
fn an_id_is_in_front_wherever_it_was_and_given_where_it_was_not() {
    let store = Store::open();
    for (document, expected) in [
        (rawdoc! { "_id": 1, "a": 2 }, vec!["_id", "a"]),
        (rawdoc! { "a": 2, "_id": 1, "b": 3 }, vec!["_id", "a", "b"]),
        (rawdoc! { "a": 2 }, vec!["_id", "a"]),
        (rawdoc! {}, vec!["_id"]),
    ] {
        assert_eq!(names(&store.prepared(&document).unwrap()), expected, "{document:?}");
    }
    let mut twice = rawdoc! { "a": 2, "_id": 1 };
    twice.append(bson::cstr!("_id"), 5);
    let mut in_front = rawdoc! { "_id": 1 };
    in_front.append(bson::cstr!("_id"), 1);
    for twice in [twice, in_front] {
        assert_eq!(store.prepared(&twice).unwrap_err().code(), 2, "{twice:?}");
    }
}

#[test]
fn an_empty_timestamp_is_stamped_but_for_the_id() {
    let store = Store::open();
    let empty = RawBson::Timestamp(Timestamp { time: 0, increment: 0 });
    for document in [
        rawdoc! { "_id": 1, "a": 2, "t": empty.clone() },
        rawdoc! { "a": 2, "t": empty.clone() },
        rawdoc! { "t": empty.clone(), "_id": 1, "a": 2 },
    ] {
        let kept = store.prepared(&document).unwrap();
        assert!(kept.get_timestamp("t").unwrap().time > 0 && kept.get_i32("a").unwrap() == 2, "{document:?}");
    }
    let kept = store.prepared(&rawdoc! { "a": 2, "_id": empty.clone(), "d": { "t": empty } }).unwrap();
    assert_eq!(names(&kept), ["_id", "a", "d"]);
    assert_eq!(kept.get_timestamp("_id").unwrap().time, 0);
    assert_eq!(kept.get_document("d").unwrap().get_timestamp("t").unwrap().time, 0);
}

#[test]
fn what_no_check_of_the_whole_would_pass_is_refused_with_an_id_in_front_too() {
    let store = Store::open();
    let (with_id, without) = (rawdoc! { "_id": 1, "a": 2, "s": "text" }, rawdoc! { "a": 2, "s": "text" });
    let late = rawdoc! { "a": 2, "_id": 1, "s": "text", "d": { "e": [true] } };
    for document in [with_id, without, late] {
        let bytes = document.as_bytes();
        // Replaces each byte between the length and the terminator by several others.
        for at in 4..bytes.len() - 1 {
            for byte in [0, 1, 2, 3, 0x10, 0x55, 0x7f, 0x80, 0xff] {
                let mut bytes = bytes.to_vec();
                bytes[at] = byte;
                let Ok(document) = RawDocumentBuf::from_bytes(bytes) else { continue };
                let valid = validate(document.as_bytes()).is_ok();
                let kept = store.prepared(&document);
                // A valid mutation can still have an invalid `_id`.
                assert!(valid || kept.is_err(), "{:?}", document.as_bytes());
                assert!(kept.is_err() || validate(kept.unwrap().as_bytes()).is_ok());
            }
        }
    }
}

#[test]
fn depth_and_size_are_those_of_the_document_that_is_kept() {
    let store = Store::open();
    let nested = |depth: usize| (1..depth).fold(rawdoc! {}, |inner, _| rawdoc! { "a": inner });
    assert!(store.prepared(&nested(MAX_DEPTH)).is_ok() && store.prepared(&nested(MAX_DEPTH + 1)).is_err());
    let sized = |bytes: usize| {
        let empty = rawdoc! { "a": "" }.as_bytes().len();
        rawdoc! { "a": "x".repeat(bytes - empty) }
    };
    assert!(store.prepared(&sized(MAX_DOCUMENT - NEW_ID)).is_ok());
    let error = store.prepared(&sized(MAX_DOCUMENT - NEW_ID + 1)).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::TooLarge, Code::BAD_VALUE.0));
}
