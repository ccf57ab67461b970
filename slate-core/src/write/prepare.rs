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
