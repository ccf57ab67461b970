use std::{fmt, sync::Arc};

use bson::{RawDocumentBuf, rawdoc};
use slate_query::{
    Code,
    collation::{self, Collation},
    filter::Filter,
    number::Number,
    order,
    pattern::KeyPattern,
    raw::{Doc, Kind, Value, Writer},
};
use slate_store::Keyspace;

use super::{ArrayPaths, Wildcard};
use crate::{Error, ErrorKind, Result, metrics::Uses};

/// For each field of an index except a wildcard, a bit set: bit i is set if some document has an array at the i-th name
/// of the field's path.
pub(crate) type MultikeyPaths = Vec<u64>;

/// An index: its definition, the keyspace of its entries, and properties of the indexed values.
#[derive(Clone, Debug)]
pub(crate) struct IndexInfo {
    pub(crate) name: Box<str>,
    pub(crate) keyspace: Keyspace,
    pub(crate) pattern: KeyPattern,
    /// The pattern as it was declared.
    pub(crate) keys: RawDocumentBuf,
    pub(crate) unique: bool,
    pub(crate) sparse: bool,
    /// Whether no query uses it.
    pub(crate) hidden: bool,
    /// For a TTL index, the seconds after its date when a document expires.
    pub(crate) expire_after: Option<u32>,
    pub(crate) partial: Option<Partial>,
    /// Entries contain the sort keys of strings. `None`: the strings themselves.
    pub(crate) collation: Option<Collation>,
    /// The additional properties of a wildcard index, whose `pattern` is empty. `None` for other indexes.
    pub(crate) wildcard: Option<Box<Wildcard>>,
    pub(crate) multikey: MultikeyPaths,
    /// The number of leading fields that have the same value in all entries. Bounds on them exclude no document.
    pub(crate) constant_fields: usize,
    /// Whether the values of some entry were truncated: bounds on the index are then never exact.
    pub(crate) truncated: bool,
    /// How often operations of this process used the index. Not stored.
    pub(crate) uses: Arc<Uses>,
}

/// The condition of a partial index.
#[derive(Clone, Debug)]
pub(crate) struct Partial {
    pub(crate) document: RawDocumentBuf,
    pub(crate) filter: Filter,
}

impl Partial {
    /// Parses the condition of an index with this collation.
    pub(crate) fn parse(document: RawDocumentBuf, collation: Option<&Collation>) -> Result<Self> {
        let filter = Filter::parse_part(Doc::from(&document), collation)?;
        Ok(Self { document, filter })
    }

    /// Returns whether the conditions provably select the same documents. Both have the same collation.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.document == other.document || (self.filter.implies(&other.filter) && other.filter.implies(&self.filter))
    }
}

/// Whether entries contain their values completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Whole,
    /// The values were truncated to the maximum length in an entry.
    Truncated,
}

/// Returns whether these are the keys of the index on `_id`.
pub(crate) fn is_key_of_id(keys: Doc<'_>) -> bool {
    order::compare_documents(keys, Doc::from(&rawdoc! { "_id": 1 })).is_eq()
}

/// The key pattern: `{ a: 1, b: -1 }`.
impl fmt::Display for IndexInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "{ ";
        for field in Doc::from(&self.keys).elements() {
            write!(f, "{separator}{}: ", field.display_name())?;
            match Number::of(field.value) {
                Some(direction) => write!(f, "{}", direction.to_f64())?,
                None => write!(f, "\"{}\"", field.value.as_str().unwrap_or_default())?,
            }
            separator = ", ";
        }
        f.write_str(" }")
    }
}

impl IndexInfo {
    /// Returns whether the index was declared with these keys. As in MongoDB, `1` and `1.0` are the same direction.
    pub(crate) fn has_keys(&self, keys: Doc<'_>) -> bool {
        order::compare_documents(Doc::from(&self.keys), keys).is_eq()
    }

    /// Returns whether some document has an array on the path of a field.
    pub(crate) fn is_multikey(&self) -> bool {
        let arrays = self.wildcard.as_ref().map(|wildcard| &wildcard.arrays);
        arrays.is_some_and(|arrays| *arrays != ArrayPaths::default()) || self.multikey.iter().any(|&paths| paths != 0)
    }

    /// Returns whether some document has an array on the path of this field.
    pub(crate) fn is_multikey_at(&self, field: usize) -> bool {
        self.multikey.get(field).is_some_and(|&paths| paths != 0)
    }

    /// Returns whether all entries contain their values completely, or some were truncated.
    pub(crate) fn held(&self) -> Held {
        if self.truncated { Held::Truncated } else { Held::Whole }
    }

    /// Returns whether each document in the index has a single entry, from which its values can be decoded completely.
    pub(crate) fn holds_values(&self) -> bool {
        !self.is_multikey() && !self.truncated && self.collation.is_none()
    }

    /// Returns whether the value of a field can be decoded completely from each entry of a document.
    pub(crate) fn holds_values_at(&self, field: usize) -> bool {
        !self.is_multikey_at(field) && !self.truncated && self.collation.is_none()
    }

    /// Returns whether every document has an entry, also one without the fields. Not valid for a wildcard index.
    pub(crate) fn has_all_documents(&self) -> bool {
        !self.sparse && self.partial.is_none()
    }

    /// Adds the paths at which a document has arrays.
    pub(crate) fn add_multikey(&mut self, met: &[u64]) {
        for (known, met) in self.multikey.iter_mut().zip(met) {
            *known |= met;
        }
    }

    /// Parses an index. `None` if the document does not describe one.
    pub(crate) fn read(doc: Doc<'_>) -> Result<Option<Self>> {
        read(doc)
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        writer.append_string(b"name", self.name.as_bytes());
        put_keyspace(writer, "keyspace", self.keyspace);
        append_document(writer, "key", &self.keys);
        let flags =
            [("unique", self.unique), ("sparse", self.sparse), ("truncated", self.truncated), ("hidden", self.hidden)];
        for (name, flag) in flags {
            writer.append(name.as_bytes(), Value::new(Kind::Boolean, &[u8::from(flag)]));
        }
        if let Some(seconds) = self.expire_after {
            writer.append(b"expireAfterSeconds", Value::new(Kind::Int64, &i64::from(seconds).to_le_bytes()));
        }
        if let Some(partial) = &self.partial {
            append_document(writer, "partialFilterExpression", &partial.document);
        }
        write_collation(writer, self.collation.as_ref());
        self.wildcard.iter().for_each(|wildcard| wildcard.write(writer));
        writer.open_array(b"multikey");
        for (field, paths) in self.multikey.iter().enumerate() {
            writer.append(field.to_string().as_bytes(), Value::new(Kind::Int64, &paths.to_le_bytes()));
        }
        writer.close();
    }
}

fn read(doc: Doc<'_>) -> Result<Option<IndexInfo>> {
    let flag = |name: &str| doc.get(name).and_then(Value::as_bool);
    let document = |name: &str| {
        doc.get(name).and_then(Value::as_document).map(|found| RawDocumentBuf::from_bytes(found.bytes().to_vec()))
    };
    let (Some(name), Some(keyspace), Some(Ok(keys))) =
        (doc.get("name").and_then(Value::as_str), keyspace(doc, "keyspace"), document("key"))
    else {
        return Ok(None);
    };
    let projection = document("wildcardProjection").and_then(Result::ok);
    let mut wildcard = Wildcard::parse(&keys, projection)?.map(Box::new);
    wildcard.iter_mut().for_each(|wildcard| wildcard.read(doc));
    let pattern = match &wildcard {
        Some(_) => KeyPattern::of_no_field(),
        None => KeyPattern::parse(Doc::from(&keys)).map_err(Error::from)?,
    };
    let (collation, version) = read_versioned_collation(doc, &format!("index {name}"))?;
    let collation = match collation {
        None => None,
        Some(collation) => {
            let readable = collation.of_version(&version)?;
            Some(readable.ok_or_else(|| unknown_version(&format!("index {name}"), &version))?)
        }
    };
    let partial = match document("partialFilterExpression") {
        Some(Ok(document)) => Some(Partial::parse(document, collation.as_ref())?),
        Some(Err(_)) => return Ok(None),
        None => None,
    };
    let multikey = doc.get("multikey").and_then(Value::as_array).map_or_else(Vec::new, |paths| {
        paths.values().filter_map(|value| value.bytes().try_into().ok().map(u64::from_le_bytes)).collect()
    });
    Ok(Some(IndexInfo {
        name: name.into(),
        keyspace,
        pattern,
        keys,
        unique: flag("unique").unwrap_or_default(),
        sparse: flag("sparse").unwrap_or_default(),
        hidden: flag("hidden").unwrap_or_default(),
        expire_after: doc
            .get("expireAfterSeconds")
            .and_then(Value::as_i64)
            .and_then(|seconds| u32::try_from(seconds).ok()),
        partial,
        collation,
        wildcard,
        multikey,
        constant_fields: 0,
        truncated: flag("truncated").unwrap_or_default(),
        uses: Arc::default(),
    }))
}

/// Reads the collation of a definition.
///
/// # Errors
/// Fails if this build makes no sort keys, or makes other sort keys than the database contains.
pub(super) fn read_collation(definition: Doc<'_>, of: &str) -> Result<Option<Collation>> {
    read_versioned_collation(definition, of).map(|(collation, _)| collation)
}

/// Like [`read_collation`], with the version of the sort keys that entries have.
fn read_versioned_collation(definition: Doc<'_>, of: &str) -> Result<(Option<Collation>, String)> {
    let none = || Ok((None, String::new()));
    let Some(document) = definition.get("collation").and_then(Value::as_document) else { return none() };
    let version = document.get("version").and_then(Value::as_str).unwrap_or_default();
    if !matches!(version, collation::VERSION | collation::CODE_AS_STRINGS) {
        return Err(unknown_version(of, version));
    }
    Ok((Collation::parse(document)?, version.to_owned()))
}

fn unknown_version(of: &str, version: &str) -> Error {
    let message = format!(
        "the {of} was made with version {version} of collations, and this version of Slate has {}",
        collation::VERSION
    );
    Error::new(ErrorKind::WrongFormat, Code::BAD_VALUE, message)
}

pub(super) fn write_collation(writer: &mut Writer, collation: Option<&Collation>) {
    if let Some(collation) = collation {
        append_document(writer, "collation", &collation.to_document());
    }
}

/// Reads a keyspace number, stored as int64: BSON has no unsigned integers.
pub(super) fn keyspace(doc: Doc<'_>, name: &str) -> Option<Keyspace> {
    doc.get(name).and_then(Value::as_i64).and_then(|number| u32::try_from(number).ok()).map(Keyspace)
}

pub(super) fn put_keyspace(writer: &mut Writer, name: &str, keyspace: Keyspace) {
    writer.append(name.as_bytes(), Value::new(Kind::Int64, &i64::from(keyspace.0).to_le_bytes()));
}

pub(super) fn append_document(writer: &mut Writer, name: &str, document: &RawDocumentBuf) {
    writer.append(name.as_bytes(), Value::new(Kind::Document, document.as_bytes()));
}
