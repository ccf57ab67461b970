use std::{any::Any, borrow::Cow, marker::PhantomData};

use bson::{Bson, Document, RawDocument, RawDocumentBuf};
use serde::{Serialize, de::DeserializeOwned};
use slate_query::{
    raw::{Doc, MAX_DEPTH, too_deep},
    serde::{deserialize, deserialize_document, serialize},
};

use crate::{Error, Result};

/// An argument that is a document: `doc! {…}`, a [`RawDocumentBuf`], or a borrowed [`RawDocument`].
pub trait IntoDocument {
    /// Converts the argument to a raw document.
    ///
    /// # Errors
    /// [`ErrorKind::Conversion`](crate::ErrorKind::Conversion) if a field's name contains a NUL byte; code 15 if it is nested more than 180 levels
    /// deep.
    fn into_document(self) -> Result<RawDocumentBuf>;
}

impl IntoDocument for RawDocumentBuf {
    fn into_document(self) -> Result<RawDocumentBuf> {
        Ok(self)
    }
}

impl IntoDocument for &RawDocumentBuf {
    fn into_document(self) -> Result<RawDocumentBuf> {
        Ok(self.clone())
    }
}

impl IntoDocument for &RawDocument {
    fn into_document(self) -> Result<RawDocumentBuf> {
        Ok(self.to_owned())
    }
}

impl IntoDocument for Document {
    fn into_document(self) -> Result<RawDocumentBuf> {
        (&self).into_document()
    }
}

impl IntoDocument for &Document {
    fn into_document(self) -> Result<RawDocumentBuf> {
        if nests_deeper(self.values(), MAX_DEPTH) {
            return Err(too_deep().into());
        }
        RawDocumentBuf::try_from(self).map_err(Error::conversion)
    }
}

/// Returns a number as int32 if it fits, as int64 otherwise.
pub(crate) fn number(number: impl TryInto<i64>) -> Bson {
    let number = long(number);
    i32::try_from(number).map_or(Bson::Int64(number), Bson::Int32)
}

/// Returns a number as int64; `i64::MAX` if it is greater.
pub(crate) fn long(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Returns whether a document or an array of these values is nested more than `levels` deep. Checked before the
/// conversion to bytes, which recurses for each level.
fn nests_deeper<'v>(mut values: impl Iterator<Item = &'v Bson>, levels: usize) -> bool {
    levels == 0
        || values.any(|value| match value {
            Bson::Document(document) => nests_deeper(document.values(), levels - 1),
            Bson::Array(array) => nests_deeper(array.iter(), levels - 1),
            Bson::JavaScriptCodeWithScope(code) => nests_deeper(code.scope.values(), levels - 1),
            _ => false,
        })
}

/// The result of a conversion to a document; a builder returns its error when it is run.
pub(crate) struct Converted(pub(crate) Result<RawDocumentBuf>);

impl IntoDocument for Converted {
    fn into_document(self) -> Result<RawDocumentBuf> {
        self.0
    }
}

/// Serializes a caller's value for the collection. Raw documents are borrowed.
pub(crate) fn to_raw<'v, T: Serialize + Any>(collection: &str, value: &'v T) -> Result<Cow<'v, RawDocument>> {
    to_raw_with(USUAL, collection, value)
}

fn to_raw_with<'v, T: Serialize + Any>(
    capacity: usize,
    collection: &str,
    value: &'v T,
) -> Result<Cow<'v, RawDocument>> {
    match (value as &dyn Any).downcast_ref::<RawDocumentBuf>() {
        Some(raw) => Ok(Cow::Borrowed(raw)),
        None => serialized(capacity, collection, value).map(Cow::Owned),
    }
}

/// The initial capacity in bytes when a document is serialized: enough for most documents without growing the buffer.
const USUAL: usize = 512;

/// Serializes each value. Documents of a collection differ little in size, so the capacity of a buffer is computed from the size
/// of the previous document.
pub(crate) fn each_to_raw<'v, T: Serialize + Any>(
    collection: &str,
    values: impl IntoIterator<Item = &'v T>,
) -> impl Iterator<Item = Result<Cow<'v, RawDocument>>> {
    let mut capacity = USUAL;
    values.into_iter().map(move |value| {
        let raw = to_raw_with(capacity, collection, value)?;
        capacity = raw.as_bytes().len() / 4 * 5;
        Ok(raw)
    })
}

fn serialized(capacity: usize, collection: &str, value: &impl Serialize) -> Result<RawDocumentBuf> {
    let mut bytes = Vec::with_capacity(capacity);
    serialize(value, &mut bytes).map_err(|error| match error.is_too_deep() {
        true => too_deep().into(),
        false => Error::not_serializable(collection, error),
    })?;
    RawDocumentBuf::from_bytes(bytes).map_err(Error::conversion)
}

pub(crate) fn borrowed(documents: &[impl AsRef<RawDocument>]) -> Vec<&RawDocument> {
    documents.iter().map(AsRef::as_ref).collect()
}

/// Deserializes a document of the collection; without serde if `T` is a raw document or `Document`.
pub(crate) fn from_raw<T: DeserializeOwned + Any>(collection: &str, document: Doc<'_>) -> Result<T> {
    let failed = |error| Error::not_convertible(collection, document, error);
    let mut same = None::<T>;
    if let Some(raw) = (&mut same as &mut dyn Any).downcast_mut::<Option<RawDocumentBuf>>() {
        *raw = Some(as_raw(document.bytes())?.to_owned());
    } else if let Some(map) = (&mut same as &mut dyn Any).downcast_mut::<Option<Document>>() {
        *map = Some(deserialize_document(document).map_err(failed)?);
    }
    match same {
        Some(raw) => Ok(raw),
        None => deserialize(document).map_err(failed),
    }
}

/// Borrows the bytes of a stored or built document as `bson`'s type.
pub(crate) fn as_raw(bytes: &[u8]) -> Result<&RawDocument> {
    RawDocument::from_bytes(bytes).map_err(|error| Error::corrupt(format!("a record is not a document: {error}")))
}

/// Marks the type to which documents are deserialized, without owning a value of it.
pub(crate) type As<T> = PhantomData<fn() -> T>;
