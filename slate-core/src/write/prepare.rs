use std::{borrow::Cow, ops::Range};

use bson::oid::ObjectId;
use slate_query::{
    Code,
    raw::{Doc, Element, Kind, Value, Writer, store, validate_and_store, validate_and_tabulate},
};

use crate::{Error, ErrorKind, Result, clock};

/// The largest document, in bytes: MongoDB's own limit.
pub(crate) const MAX_DOCUMENT: usize = 16 << 20;

/// Checks a document, puts it in the form in which it is kept, `_id` in front and without an empty timestamp at the top
/// level, and appends that to `out` as it is stored. Where there is an error, `out` stays as it was.
pub(super) fn prepare(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let document = Doc::new(bytes);
    // Most that are not in that form have no `_id`. That none comes later shows as they are walked through with one in front.
    let has_id = document.elements().next().is_some_and(|first| first.name == b"_id");
    let identified = (!has_id).then(|| identified(document));
    let (mut form, mut ids) = (Form::default(), 0);
    validate_and_store(identified.as_deref().unwrap_or(bytes), out, |field| {
        form.see(field);
        ids += usize::from(field.name == b"_id");
    })?;
    if form != Form::Kept || (!has_id && ids > 1) {
        out.truncate(start);
        store(Doc::new(&rebuild(document)), out);
    }
    let checked = check(Doc::stored(out.get(start..).unwrap_or_default()));
    if checked.is_err() {
        out.truncate(start);
    }
    checked
}

/// Checks a document, and appends to `tables` what stands in front of it as it is stored; tells where that lies. `None`
/// where the document is not in the form in which it is kept.
pub(super) fn tabulate(bytes: &[u8], tables: &mut Vec<u8>) -> Result<Option<Range<usize>>> {
    let (start, mut form) = (tables.len(), Form::default());
    validate_and_tabulate(bytes, tables, |field| form.see(field))?;
    if form == Form::Kept {
        return Ok(Some(start..tables.len()));
    }
    tables.truncate(start);
    Ok(None)
}

/// Whether a document, whose fields it is shown one after the other, is in the form in which it is kept.
#[derive(Default, PartialEq, Eq)]
enum Form {
    #[default]
    NothingSeen,
    Kept,
    Other,
}

impl Form {
    #[inline]
    fn see(&mut self, field: Element<'_>) {
        let is_right = match self {
            Self::NothingSeen => field.name == b"_id",
            Self::Kept => !is_empty_timestamp(field.name, field.value),
            Self::Other => false,
        };
        *self = if is_right { Self::Kept } else { Self::Other };
    }
}

/// Puts a document that is valid in the form in which it is kept. One that is in it already is not copied.
pub(super) fn kept(document: Doc<'_>) -> Result<Cow<'_, [u8]>> {
    let kept = match document.elements().next() {
        Some(first) if first.name == b"_id" && !has_empty_timestamp(document) => Cow::Borrowed(document.bytes()),
        _ => Cow::Owned(rebuild(document)),
    };
    check(Doc::new(&kept))?;
    Ok(kept)
}

fn check(kept: Doc<'_>) -> Result<()> {
    check_size(kept.bytes())?;
    check_id(id(kept))
}

/// A kept document's `_id`, which is its first field.
pub(super) fn id(document: Doc<'_>) -> Value<'_> {
    document.first("_id").unwrap_or(Value::NULL)
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

/// How many bytes an `_id` takes that is given to a document without one.
const NEW_ID: usize = 17;

/// The document with a new `_id` in front. No field is looked at.
fn identified(document: Doc<'_>) -> Vec<u8> {
    let mut writer = Writer::with_capacity(document.bytes().len() + NEW_ID);
    append_new_id(&mut writer);
    writer.extend(document);
    writer.finish()
}

fn append_new_id(writer: &mut Writer) {
    writer.append(b"_id", Value::new(Kind::ObjectId, &ObjectId::new().bytes()));
}

fn rebuild(document: Doc<'_>) -> Vec<u8> {
    let id = document.get("_id");
    if id.is_none() && !has_empty_timestamp(document) {
        return identified(document);
    }
    let mut writer = Writer::with_capacity(document.bytes().len() + NEW_ID);
    match id {
        Some(id) => writer.append(b"_id", id),
        None => append_new_id(&mut writer),
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
