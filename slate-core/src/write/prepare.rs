//! The first stage of a write: a document is validated and becomes a record, and its index entries are made.

use std::collections::BTreeMap;

use bson::{RawDocument, oid::ObjectId};
use slate_query::{
    Code,
    key::{self, TypeBits},
    path::Path,
    pattern::Keys,
    raw::{Doc, Element, Kind, Value, Writer, same, store, validate, validate_and_store, with_id},
    update::{EmptyTimestamps, check_id},
};

use super::entries::Entries;
use crate::{
    Error, ErrorKind, Result,
    catalog::{CollectionInfo, Held, IndexInfo},
    clock,
    entry::{FieldOrder, RecordKey, append_record_key, write_entry},
};

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
    if ids - usize::from(identified.is_some()) > 1 {
        return Err(Error::invalid(Code::BAD_VALUE, "can't have multiple _id fields in one document").at("_id"));
    }
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

/// Returns whether a top-level field is an empty timestamp, which gets the current time.
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
    for field in document.elements().filter(|field| field.name != b"_id") {
        if is_replaced(field) {
            writer
                .append(field.name, Value::new(Kind::Timestamp, &clock::timestamp(clock::now_millis()).to_le_bytes()));
        } else {
            writer.append(field.name, field.value);
        }
    }
    writer.finish()
}

/// The cached type bits of an `_id`, which the entries of all indexes repeat.
#[derive(Debug, Default)]
struct IdBits {
    kind: Option<Kind>,
    bytes: Vec<u8>,
    bits: TypeBits,
    /// A by-product of encoding that is not used.
    key: Vec<u8>,
}

impl IdBits {
    /// Computes the type bits of this `_id`, unless it is the same as last time.
    fn find(&mut self, id: Value<'_>) {
        if self.kind != Some(id.kind()) || !same(&self.bytes, id.bytes()) {
            self.kind = Some(id.kind());
            self.bytes.clear();
            self.bytes.extend_from_slice(id.bytes());
            self.key.clear();
            self.bits.clear();
            key::encode_typed(Some(id), &mut self.key, &mut self.bits);
        }
    }
}

/// Creates the index entries of documents, and collects new properties of the indexes (multikey, truncated). Each index
/// costs one traversal of the document; buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct EntryMaker {
    keys: Keys,
    order: FieldOrder,
    id: IdBits,
    /// New properties of indexes, by position in the collection.
    properties: BTreeMap<usize, IndexInfo>,
}

pub(crate) struct DocumentEntries<'m, 'd> {
    maker: &'m mut EntryMaker,
    record_key: &'d [u8],
    document: Doc<'d>,
}

impl EntryMaker {
    /// Returns the maker of a document's entries.
    pub(crate) fn document<'m, 'd>(&'m mut self, record_key: &'d [u8], document: Doc<'d>) -> DocumentEntries<'m, 'd> {
        self.id.find(id(document));
        DocumentEntries { maker: self, record_key, document }
    }

    /// Removes and returns the collected properties.
    pub(crate) fn take_properties(&mut self) -> Vec<(usize, IndexInfo)> {
        std::mem::take(&mut self.properties).into_iter().collect()
    }
}

impl DocumentEntries<'_, '_> {
    /// Appends the entries of the document in `index`, which is at this position of the collection.
    pub(super) fn append(&mut self, at: usize, index: &IndexInfo, entries: &mut Entries) -> Result<()> {
        let Self { document, record_key, maker: EntryMaker { keys, order, id, properties } } = self;
        if let Some(partial) = &index.partial
            && !partial.filter.evaluate(*document)?
        {
            return Ok(());
        }
        match &index.collation {
            None => make(index, *document, keys)?,
            Some(collation) => {
                let fields = index.pattern.fields();
                let is_first =
                    |path: &Path, name: &[u8]| path.parts().first().is_some_and(|first| first.name_bytes() == name);
                let is_indexed =
                    |name: &[u8]| index.wildcard.is_some() || fields.iter().any(|(path, _)| is_first(path, name));
                let mut collated = Writer::new();
                collation.write_fields(*document, is_indexed, &mut collated);
                make(index, Doc::new(&collated.finish()), keys)?;
            }
        }
        if index.sparse {
            keys.drop_absent();
        }
        let record = RecordKey { key: record_key, bits: id.bits.as_bytes() };
        order.note(index, *document);
        let mut truncated = false;
        for values in keys.iter() {
            truncated |= entries.write(|out| write_entry(index, values, record, order, out)) == Held::Truncated;
        }
        let known = properties.get(&at).unwrap_or(index);
        let has_new_arrays = known.wildcard.as_ref().is_some_and(|wildcard| !wildcard.arrays.include(keys.arrays()));
        let is_new =
            has_new_arrays || keys.multikey().iter().zip(&known.multikey).any(|(met, known)| met & !known != 0);
        if is_new || (truncated && !known.truncated) {
            let changed = properties.entry(at).or_insert_with(|| index.clone());
            changed.add_multikey(keys.multikey());
            changed.wildcard.iter_mut().for_each(|wildcard| wildcard.arrays.add(keys.arrays()));
            changed.truncated |= truncated;
        }
        Ok(())
    }

    /// Writes into `entries` (cleared first) the document's entries in the index at this position, in key order. Most
    /// documents have one.
    pub(crate) fn of_index(&mut self, collection: &CollectionInfo, at: usize, entries: &mut Entries) -> Result<()> {
        entries.clear();
        let Some(index) = collection.maintained_at(at) else { return Ok(()) };
        self.append(at, index, entries)?;
        entries.sort();
        // Truncated values can give equal keys.
        entries.dedup();
        Ok(())
    }
}

/// Writes into `keys` (cleared first) the keys of a document.
fn make(index: &IndexInfo, document: Doc<'_>, keys: &mut Keys) -> Result<()> {
    match &index.wildcard {
        Some(wildcard) => wildcard.pattern.keys(document, keys)?,
        None => index.pattern.keys(document, keys)?,
    }
    Ok(())
}
