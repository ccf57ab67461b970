use std::borrow::Cow;

use bson::oid::ObjectId;
use slate_query::{
    Code,
    raw::{Doc, Kind, Value, Writer, validate},
};

use crate::{Error, ErrorKind, Result, clock, entry::record_key};

/// The largest document, in bytes: MongoDB's own limit.
pub(crate) const MAX_DOCUMENT: usize = 16 << 20;

/// A document as it will be kept: valid, with `_id` in front, and no empty timestamp at the top level.
#[derive(Debug)]
pub(super) struct Prepared<'d> {
    pub(super) record_key: Vec<u8>,
    pub(super) bytes: Cow<'d, [u8]>,
}

impl Prepared<'_> {
    pub(super) fn id(&self) -> Value<'_> {
        Doc::new(&self.bytes).get("_id").unwrap_or(Value::NULL)
    }
}

/// Checks a document and puts it in the form in which it is kept. A document that is in it already is not copied.
pub(super) fn prepare(bytes: &[u8]) -> Result<Prepared<'_>> {
    prepare_valid(validate(bytes)?)
}

/// The same for a document that was checked before.
pub(super) fn prepare_valid(document: Doc<'_>) -> Result<Prepared<'_>> {
    let kept = match document.elements().next() {
        Some(first) if first.name == b"_id" && !has_empty_timestamp(document) => Cow::Borrowed(document.bytes()),
        _ => Cow::Owned(rebuild(document)),
    };
    check_size(&kept)?;
    let id = Doc::new(&kept).get("_id").unwrap_or(Value::NULL);
    check_id(id)?;
    Ok(Prepared { record_key: record_key(id)?, bytes: kept })
}

/// Refuses an `_id` whose own fields look like operators.
pub(super) fn check_id(id: Value<'_>) -> Result<()> {
    match id.as_document().and_then(|id| id.elements().find(|field| field.name.starts_with(b"$"))) {
        Some(field) => {
            let message = format!("_id fields may not begin with '$': {}", field.display_name());
            Err(Error::invalid(Code::DOLLAR_PREFIXED_FIELD_NAME, message).at("_id"))
        }
        None => Ok(()),
    }
}

/// Refuses a document over the limit.
pub(super) fn check_size(bytes: &[u8]) -> Result<()> {
    if bytes.len() <= MAX_DOCUMENT {
        return Ok(());
    }
    let message = format!("the document has {} bytes, and the most is {MAX_DOCUMENT}", bytes.len());
    Err(Error::new(ErrorKind::TooLarge, Code::BSON_OBJECT_TOO_LARGE, message))
}

/// MongoDB puts the current time where an inserted document has Timestamp(0, 0) at its top level, but for `_id`.
fn has_empty_timestamp(document: Doc<'_>) -> bool {
    // A document without a byte that could be the type's is known at a glance.
    document.bytes().contains(&Kind::Timestamp.byte())
        && document.elements().any(|field| is_empty_timestamp(field.name, field.value))
}

fn is_empty_timestamp(name: &[u8], value: Value<'_>) -> bool {
    value.kind() == Kind::Timestamp && value.bytes() == [0; 8] && name != b"_id"
}

fn rebuild(document: Doc<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    match document.get("_id") {
        Some(id) => writer.append(b"_id", id),
        None => writer.append(b"_id", Value::new(Kind::ObjectId, &ObjectId::new().bytes())),
    }
    let mut id_seen = false;
    for field in document.elements() {
        // Of several `_id`s the first was moved; the others are copied like any duplicate.
        if field.name == b"_id" && !std::mem::replace(&mut id_seen, true) {
            continue;
        }
        if is_empty_timestamp(field.name, field.value) {
            writer.append(field.name, Value::new(Kind::Timestamp, &clock::timestamp().to_le_bytes()));
        } else {
            writer.append(field.name, field.value);
        }
    }
    writer.finish()
}
