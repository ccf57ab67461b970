use bson::{RawDocument, oid::ObjectId};
use slate_query::{
    Code,
    raw::{Doc, Element, Kind, Value, Writer, store, validate, validate_and_store, with_id},
    update::{EmptyTimestamps, check_id},
};

use crate::{Error, ErrorKind, Result, clock, entry::append_record_key};

/// Size limit of a document in bytes, which is MongoDB's.
pub(crate) const MAX_DOCUMENT: usize = 16 << 20;

/// Validates a document and appends its record: the record key, whose length is returned, and the stored form. The
/// stored form has a field table and begins with `_id`. After an error `out` is unchanged.
pub(super) fn prepare(document: &RawDocument, empty: EmptyTimestamps, out: &mut Vec<u8>) -> Result<usize> {
    let start = out.len();
    let prepared = append_record(document.as_bytes(), empty, out);
    if prepared.is_err() {
        out.truncate(start);
    }
    prepared
}

fn append_record(bytes: &[u8], empty: EmptyTimestamps, out: &mut Vec<u8>) -> Result<usize> {
    let start = out.len();
    // The length and the terminator are valid; the rest is validated while it is stored.
    let document = Doc::new(bytes);
    let first = document.elements().next().filter(|first| first.name == b"_id");
    let (identified, id) = match first {
        Some(first) => (None, first.value),
        // Most documents that must be changed have no `_id`. The document is stored with a new `_id` in front, and the
        // walk over its fields shows whether it has an `_id` that is not its first field.
        None => (Some(identified(document)), Value::NULL),
    };
    let (bytes, id) = match &identified {
        Some(identified) => (identified.as_slice(), self::id(Doc::new(identified))),
        None => (bytes, id),
    };
    if let Err(error) = append_record_key(id, out) {
        validate(bytes)?;
        return Err(error);
    }
    let key = out.len() - start;
    let (mut form, mut ids) = (StoredForm::default(), 0);
    validate_and_store(bytes, out, |field| {
        form.see(field, empty);
        ids += usize::from(field.name == b"_id");
    })?;
    if form != StoredForm::Kept || (identified.is_some() && ids > 1) {
        return append_rebuilt(document, empty, start, out);
    }
    check(Doc::stored(out.get(start + key..).unwrap_or_default()))?;
    Ok(key)
}

/// Appends the record of a valid document that must be changed.
fn append_rebuilt(document: Doc<'_>, empty: EmptyTimestamps, start: usize, out: &mut Vec<u8>) -> Result<usize> {
    out.truncate(start);
    let rebuilt = rebuild(document, empty);
    let rebuilt = Doc::new(&rebuilt);
    check(rebuilt)?;
    append_record_key(id(rebuilt), out)?;
    let key = out.len() - start;
    store(rebuilt, out);
    Ok(key)
}

/// Checks whether a document, given field by field, can be stored unchanged.
#[derive(Default, PartialEq, Eq)]
enum StoredForm {
    #[default]
    NothingSeen,
    Kept,
    Other,
}

impl StoredForm {
    #[inline]
    fn see(&mut self, field: Element<'_>, empty: EmptyTimestamps) {
        let is_right = match self {
            Self::NothingSeen => field.name == b"_id",
            Self::Kept => !is_replaced(field, empty),
            Self::Other => false,
        };
        *self = if is_right { Self::Kept } else { Self::Other };
    }
}

fn check(stored: Doc<'_>) -> Result<()> {
    let size = stored.bytes().len();
    if size > MAX_DOCUMENT {
        let message = format!("object to insert too large. size in bytes: {size}, max size: {MAX_DOCUMENT}");
        return Err(Error::new(ErrorKind::TooLarge, Code::BAD_VALUE, message));
    }
    Ok(check_id(id(stored))?)
}

/// Returns the `_id` of a stored document, which is its first field.
pub(super) fn id(document: Doc<'_>) -> Value<'_> {
    document.first("_id").unwrap_or(Value::NULL)
}

/// Rejects the new version of a document above the size limit. MongoDB has a different code for a new document.
pub(super) fn check_size(bytes: &[u8]) -> Result<()> {
    if bytes.len() <= MAX_DOCUMENT {
        return Ok(());
    }
    let message = format!("the document has {} bytes, and the most is {MAX_DOCUMENT}", bytes.len());
    Err(Error::new(ErrorKind::TooLarge, Code::BSON_OBJECT_TOO_LARGE, message))
}

/// Returns whether a field at the top level gets the current time.
#[inline]
fn is_replaced(field: Element<'_>, empty: EmptyTimestamps) -> bool {
    field.value.kind() == Kind::Timestamp
        && field.value.bytes() == [0; 8]
        && field.name != b"_id"
        && empty == EmptyTimestamps::Current
}

/// Bytes of a generated `_id` field.
const NEW_ID: usize = 17;

/// Returns the document with a new `_id` in front, without reading its fields.
fn identified(document: Doc<'_>) -> Vec<u8> {
    with_id(Value::new(Kind::ObjectId, &ObjectId::new().bytes()), document)
}

fn rebuild(document: Doc<'_>, empty: EmptyTimestamps) -> Vec<u8> {
    let id = document.get("_id");
    let is_replaced = |field| is_replaced(field, empty);
    if id.is_none() && !(document.may_hold(Kind::Timestamp) && document.elements().any(is_replaced)) {
        return identified(document);
    }
    let mut writer = Writer::with_capacity(document.bytes().len() + NEW_ID);
    match id {
        Some(id) => writer.append(b"_id", id),
        None => writer.append(b"_id", Value::new(Kind::ObjectId, &ObjectId::new().bytes())),
    }
    let mut id_seen = false;
    for field in document.elements() {
        // If there are several `_id`s, the first was moved to the front; the others are copied like any duplicate.
        if field.name == b"_id" && !std::mem::replace(&mut id_seen, true) {
            continue;
        }
        if is_replaced(field) {
            writer
                .append(field.name, Value::new(Kind::Timestamp, &clock::timestamp(clock::now_millis()).to_le_bytes()));
        } else {
            writer.append(field.name, field.value);
        }
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use bson::{RawBson, RawDocumentBuf, Timestamp, rawdoc};
    use slate_query::raw::{MAX_DEPTH, validate};

    use super::*;
    use crate::entry::record_key;

    /// Returns the stored form of the document, which was appended to `out`.
    fn prepared(document: &RawDocument) -> Result<RawDocumentBuf> {
        let mut out = b"before".to_vec();
        let result = prepare(document, EmptyTimestamps::Current, &mut out);
        let record = out.strip_prefix(b"before").unwrap();
        assert!(result.is_ok() || record.is_empty(), "an error leaves nothing");
        result.map(|key| {
            let (key, stored) = record.split_at(key);
            let stored = Doc::stored(stored);
            assert_eq!(key, record_key(id(stored)).unwrap());
            RawDocumentBuf::from_bytes(stored.bytes().to_vec()).unwrap()
        })
    }

    fn names(document: &RawDocument) -> Vec<String> {
        document.iter().map(|field| field.unwrap().0.as_str().into()).collect()
    }

    #[test]
    fn an_id_is_in_front_wherever_it_was_and_given_where_it_was_not() {
        for (document, expected) in [
            (rawdoc! { "_id": 1, "a": 2 }, vec!["_id", "a"]),
            (rawdoc! { "a": 2, "_id": 1, "b": 3 }, vec!["_id", "a", "b"]),
            (rawdoc! { "a": 2 }, vec!["_id", "a"]),
            (rawdoc! {}, vec!["_id"]),
        ] {
            assert_eq!(names(&prepared(&document).unwrap()), expected, "{document:?}");
        }
        let mut twice = rawdoc! { "a": 2, "_id": 1 };
        twice.append(bson::cstr!("_id"), 5);
        let kept = prepared(&twice).unwrap();
        assert_eq!((names(&kept), kept.get_i32("_id").unwrap()), (vec!["_id".into(), "a".into(), "_id".into()], 1));
    }

    #[test]
    fn an_empty_timestamp_is_stamped_but_for_the_id() {
        let empty = RawBson::Timestamp(Timestamp { time: 0, increment: 0 });
        for document in [
            rawdoc! { "_id": 1, "a": 2, "t": empty.clone() },
            rawdoc! { "a": 2, "t": empty.clone() },
            rawdoc! { "t": empty.clone(), "_id": 1, "a": 2 },
        ] {
            let kept = prepared(&document).unwrap();
            assert!(kept.get_timestamp("t").unwrap().time > 0 && kept.get_i32("a").unwrap() == 2, "{document:?}");
        }
        let kept = prepared(&rawdoc! { "a": 2, "_id": empty.clone(), "d": { "t": empty } }).unwrap();
        assert_eq!(names(&kept), ["_id", "a", "d"]);
        assert_eq!(kept.get_timestamp("_id").unwrap().time, 0);
        assert_eq!(kept.get_document("d").unwrap().get_timestamp("t").unwrap().time, 0);
    }

    #[test]
    fn what_no_check_of_the_whole_would_pass_is_refused_with_an_id_in_front_too() {
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
                    let kept = prepared(&document);
                    // A valid mutation can still have an invalid `_id`.
                    assert!(valid || kept.is_err(), "{:?}", document.as_bytes());
                    assert!(kept.is_err() || validate(kept.unwrap().as_bytes()).is_ok());
                }
            }
        }
    }

    #[test]
    fn depth_and_size_are_those_of_the_document_that_is_kept() {
        let nested = |depth: usize| (1..depth).fold(rawdoc! {}, |inner, _| rawdoc! { "a": inner });
        assert!(prepared(&nested(MAX_DEPTH)).is_ok() && prepared(&nested(MAX_DEPTH + 1)).is_err());
        let sized = |bytes: usize| {
            let empty = rawdoc! { "a": "" }.as_bytes().len();
            rawdoc! { "a": "x".repeat(bytes - empty) }
        };
        assert!(prepared(&sized(MAX_DOCUMENT - NEW_ID)).is_ok());
        let error = prepared(&sized(MAX_DOCUMENT - NEW_ID + 1)).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::TooLarge, Code::BAD_VALUE.0));
    }
}
