//! The encoding of index entries: values, the record's key and type bits.
//!
//! | index | key | value |
//! |---|---|---|
//! | plain | values ‖ record key ‖ trailer | bits |
//! | unique | values | length of the record key ‖ record key ‖ bits |
//!
//! The trailer contains the length of the values and is read from the end of the key. `docs/format.md` specifies the
//! bytes.

use sha2::{Digest, Sha256};
use slate_query::{
    Code, key,
    raw::{Doc, Kind, Value, validate_depth},
};

use crate::{
    Error, ErrorKind, Result,
    catalog::{Held, IndexInfo},
};

/// Maximum length of the values in an entry, in bytes. Longer values are truncated, and the index is marked as truncated.
pub(crate) const MAX_VALUES: usize = 2_000;

/// Length of truncated values in a unique index, in bytes. Their digest follows.
pub(crate) const MAX_UNIQUE_PREFIX: usize = MAX_VALUES - 32;

/// Longest record key in bytes.
pub(crate) const MAX_RECORD_KEY: usize = 2_000;

/// Maximum length of an entry's key in bytes: values, record key and trailer.
pub(crate) const MAX_ENTRY_KEY: usize = MAX_VALUES + MAX_RECORD_KEY + 8;

/// Initial capacity for a record key, which is enough for most and avoids reallocations.
pub(crate) const USUAL_RECORD_KEY: usize = 32;

/// Returns the key of the record with this `_id`.
///
/// # Errors
/// Fails if the type of `_id` is not allowed, if it nests too deeply, or if the key is longer than [`MAX_RECORD_KEY`].
pub(crate) fn record_key(id: Value<'_>) -> Result<Vec<u8>> {
    let mut key = Vec::with_capacity(USUAL_RECORD_KEY);
    append_record_key(id, &mut key)?;
    Ok(key)
}

/// Returns the value of a filter `{_id: value}` that matches at most one document; `None` for any other filter.
pub(crate) fn only_id(filter: Doc<'_>) -> Option<Value<'_>> {
    let id = filter.first("_id").filter(|id| has_plain_equality(id.kind()))?;
    filter.elements().nth(1).is_none().then_some(id)
}

/// Whether `{_id: value}` matches only the document with that key, for values of this type. Others can be operators or match several values.
fn has_plain_equality(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::String
            | Kind::ObjectId
            | Kind::Int32
            | Kind::Int64
            | Kind::Double
            | Kind::Decimal128
            | Kind::DateTime
            | Kind::Boolean
            | Kind::Binary
            | Kind::Timestamp
    )
}

pub(crate) fn append_record_key(id: Value<'_>, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    if matches!(id.kind(), Kind::Array | Kind::Regex | Kind::Undefined) {
        let message = format!("The '_id' value cannot be of type {}", id.kind().alias());
        return Err(Error::invalid(Code::INVALID_ID_FIELD, message).at("_id"));
    }
    // The depth must be checked here: the document is validated later, while it is stored after its key.
    validate_depth(id).map_err(|error| error.at("_id"))?;
    key::encode(id, out);
    let length = out.len() - start;
    if length > MAX_RECORD_KEY {
        let message = format!("the key of the '_id' has {length} bytes; the limit is {MAX_RECORD_KEY}");
        return Err(Error::new(ErrorKind::TooLarge, Code::BAD_VALUE, message).at("_id"));
    }
    Ok(())
}

/// Appends an entry for the record: its key and then its value. Returns the length of the key, and whether the values
/// were truncated.
pub(crate) fn write_entry(
    index: &IndexInfo,
    (values, bits): (&[u8], &[u8]),
    record: RecordKey<'_>,
    order: &FieldOrder,
    out: &mut Vec<u8>,
) -> (usize, Held) {
    let held = if values.len() > MAX_VALUES { Held::Truncated } else { Held::Whole };
    let start = out.len();
    let key;
    if index.unique {
        push_unique_values(values, out);
        key = out.len() - start;
        push_length(record.key.len(), out);
        out.extend_from_slice(record.key);
    } else {
        let kept = values.get(..MAX_VALUES).unwrap_or(values);
        out.extend_from_slice(kept);
        out.extend_from_slice(record.key);
        push_trailer(kept.len(), out);
        key = out.len() - start;
    }
    if held == Held::Whole {
        order.write(out);
        key::join(bits, record.bits, out);
    }
    (key, held)
}

/// The order of an index's fields in the document, in which a covered projection must return them. Stored only if it
/// differs from the order in the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldOrder(Vec<u8>);

/// Marks entry extras that start with a field order. The head of a type bit exception never has these low bits.
const ORDERED: u8 = 0x09;

impl FieldOrder {
    /// Stores the order in which `document` has the index's fields, without missing ones; nothing if that is the
    /// index's own order.
    pub(crate) fn note(&mut self, index: &IndexInfo, document: Doc<'_>) {
        self.0.clear();
        let fields = index.pattern.fields();
        if fields.len() < 2 {
            return;
        }
        for element in document.elements() {
            let field = fields.iter().position(|(path, _)| path.as_str().as_bytes() == element.name);
            // An index has at most 32 fields.
            if let Some(field) =
                field.and_then(|field| u8::try_from(field).ok()).filter(|field| !self.0.contains(field))
            {
                self.0.push(field);
            }
        }
        if self.0.is_sorted() {
            self.0.clear();
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        if let Ok(length) = u8::try_from(self.0.len())
            && length > 0
        {
            out.extend_from_slice(&[ORDERED, length]);
            out.extend_from_slice(&self.0);
        }
    }

    /// Splits an entry's extras into the field order (empty for the index's own order) and the type bits.
    pub(crate) fn split(extras: &[u8]) -> Option<(&[u8], &[u8])> {
        match extras {
            [ORDERED, length, rest @ ..] => rest.split_at_checked(usize::from(*length)),
            bits => Some((&[], bits)),
        }
    }
}

/// A record key, and the type bits of its `_id`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordKey<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) bits: &'a [u8],
}

/// Appends the values to the key of a unique index's entry. Values longer than [`MAX_VALUES`] are truncated and followed by
/// the digest of all of them.
fn push_unique_values(values: &[u8], out: &mut Vec<u8>) {
    match values.get(..MAX_UNIQUE_PREFIX) {
        Some(kept) if values.len() > MAX_VALUES => {
            out.extend_from_slice(kept);
            out.extend_from_slice(&Sha256::digest(values));
        }
        _ => out.extend_from_slice(values),
    }
}

/// Returns the key of a unique index's entry for these values.
pub(crate) fn unique_key(values: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    push_unique_values(values, &mut key);
    key
}

/// A stored entry, split into its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexEntry<'a> {
    /// The encoded values, possibly truncated.
    pub(crate) values: &'a [u8],
    /// The order of the fields, and type bits, which the values do not contain.
    pub(crate) extras: &'a [u8],
    pub(crate) record_key: &'a [u8],
}

impl<'a> IndexEntry<'a> {
    /// Parses an entry.
    ///
    /// # Errors
    /// Fails with `Corrupt` if the bytes are not a valid entry of this index.
    #[inline]
    pub(crate) fn parse(index: &IndexInfo, key: &'a [u8], value: &'a [u8]) -> Result<Self> {
        let parsed = if index.unique { Self::parse_unique(key, value) } else { Self::parse_plain(key, value) };
        parsed.ok_or_else(|| Self::damaged(&index.name))
    }

    /// Returns the error for an invalid entry. A separate function, so that parsing stays small enough to be inlined.
    #[cold]
    pub(crate) fn damaged(index: &str) -> Error {
        Error::corrupt(format!("an entry of index {index} is damaged"))
    }

    #[inline]
    fn parse_plain(key: &'a [u8], value: &'a [u8]) -> Option<Self> {
        let (rest, values) = match key {
            [rest @ .., high, low, 0xff] => (rest, usize::from(u16::from_be_bytes([*high, *low]))),
            [rest @ .., length] => (rest, usize::from(*length)),
            [] => return None,
        };
        let (values, record_key) = rest.split_at_checked(values)?;
        Some(Self { values, extras: value, record_key })
    }

    #[inline]
    fn parse_unique(key: &'a [u8], value: &'a [u8]) -> Option<Self> {
        let (length, rest) = read_length(value)?;
        let (record_key, extras) = rest.split_at_checked(length)?;
        Some(Self { values: key, extras, record_key })
    }
}

/// Appends a length that is read from the end of a key: one byte below 0xff, otherwise two bytes and 0xff.
fn push_trailer(length: usize, out: &mut Vec<u8>) {
    match u8::try_from(length) {
        Ok(length) if length < 0xff => out.push(length),
        // Values are truncated at `MAX_VALUES`, which fits in two bytes.
        _ => {
            out.extend_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
            out.push(0xff);
        }
    }
}

/// Appends a length of at most 15 bits: one byte below 0x80, otherwise two bytes with the highest bit set.
fn push_length(length: usize, out: &mut Vec<u8>) {
    match u8::try_from(length) {
        Ok(length) if length < 0x80 => out.push(length),
        // Type bits and record keys are shorter than the values that they describe, which have at most 2,000 bytes.
        _ => out.extend_from_slice(&(u16::try_from(length).unwrap_or(0x7fff) | 0x8000).to_be_bytes()),
    }
}

fn read_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [length, rest @ ..] if *length < 0x80 => Some((usize::from(*length), rest)),
        [high, low, rest @ ..] => Some((usize::from(u16::from_be_bytes([*high & 0x7f, *low])), rest)),
        _ => None,
    }
}
