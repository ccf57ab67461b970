//! Names what a key of the store belongs to, for errors.

use std::fmt;

use bson::{Bson, Document, doc};
use slate_query::{
    collation::show_sort_key,
    key::{self, Decoded, Direction, TypeReader},
    path::Path,
    pattern::Keys,
    raw::{Doc, OwnedValue},
    wildcard::{PATH_FIELD, WildcardPattern},
};
use slate_store::Keyspace;

use crate::{
    catalog::{CATALOG, Catalog, CollectionInfo, IndexInfo, collection_of_key},
    entry::unique_key,
    error::ErrorPlace,
};

/// Returns the document, the index entry, the collection or the list of collections to which a key belongs; `None` if the
/// keyspace is unknown.
pub(crate) fn key_place(catalog: &Catalog, keyspace: Keyspace, key: &[u8]) -> Option<ErrorPlace> {
    if keyspace == CATALOG {
        let collection = collection_of_key(key).map(String::from);
        return Some(ErrorPlace { collection, ..ErrorPlace::default() });
    }
    place_in(catalog.owner(keyspace)?, keyspace, key)
}

fn place_in(collection: &CollectionInfo, keyspace: Keyspace, key: &[u8]) -> Option<ErrorPlace> {
    let name = Some(collection.name.to_string());
    if collection.records == keyspace {
        let key = decode(&mut &*key, Direction::Ascending).flatten().map(|id| doc! { "_id": id });
        return Some(ErrorPlace { collection: name, index: None, key, key_pattern: None });
    }
    let index = collection.maintained().find(|index| index.keyspace == keyspace)?;
    let key = KeyFields::decode(index, key).document();
    Some(ErrorPlace { collection: name, index: Some(index.name.to_string()), key: Some(key), key_pattern: None })
}

/// The fields of an index key and their values. Types that the key does not distinguish are decoded as one.
pub(crate) struct KeyFields<'p>(Vec<(&'p str, Option<Bson>)>);

impl<'p> KeyFields<'p> {
    /// Decodes as many fields as the key contains completely. The sort keys of a collation are shown in hexadecimal digits, as in
    /// MongoDB; [`of_document`](Self::of_document) shows the strings.
    pub(crate) fn decode(index: &'p IndexInfo, key: &[u8]) -> Self {
        let decode = if index.collation.is_some() { decode_collated } else { decode };
        Self::decode_with(index, key, decode)
    }

    /// Like [`decode`](Self::decode), with the strings of `document`, which has this key, instead of their sort keys. `None` if
    /// the index has no collation, or the document no such key.
    pub(crate) fn of_document(index: &'p IndexInfo, key: &[u8], document: Doc<'_>) -> Option<Self> {
        let collation = index.collation.as_ref()?;
        let mut keys = Keys::new();
        index.pattern.keys(document, &mut keys).ok()?;
        let is_original = |(values, bits): &(&[u8], &[u8])| {
            let (mut values, mut bits, mut collated) = (*values, TypeReader::new(bits), Vec::new());
            let whole = index.pattern.fields().iter().try_for_each(|(_, direction)| {
                let value = match key::decode(&mut values, *direction, &mut bits)? {
                    Decoded::Value(value) => Some(collation.apply(value.as_value())),
                    Decoded::Missing => None,
                };
                key::encode_directed(value.as_ref().map(OwnedValue::as_value), *direction, &mut collated);
                Some(())
            });
            whole.is_some() && unique_key(&collated) == key
        };
        let (values, _) = keys.iter().find(is_original)?;
        Some(Self::decode_with(index, values, decode))
    }

    fn decode_with(index: &'p IndexInfo, mut key: &[u8], decode: DecodeComponent) -> Self {
        let pattern = match &index.wildcard {
            Some(wildcard) => fields_of_entry(&wildcard.pattern, key),
            None => index.pattern.fields().iter().map(|(path, direction)| (path.as_str(), *direction)).collect(),
        };
        let mut fields = Vec::new();
        let mut is_complete = true;
        for (path, direction) in pattern {
            let value = if is_complete { decode(&mut key, direction) } else { None };
            is_complete = value.is_some();
            fields.push((path, value.map(|value| value.unwrap_or(Bson::Null))));
        }
        Self(fields)
    }

    pub(crate) fn document(&self) -> Document {
        self.0.iter().filter_map(|(path, value)| Some(((*path).to_owned(), value.clone()?))).collect()
    }
}

impl fmt::Display for KeyFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (path, value)) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "{ " } else { ", " })?;
            match value {
                Some(value) => write!(f, "{path}: {value}")?,
                None => write!(f, "{path}: …")?,
            }
        }
        f.write_str(" }")
    }
}

/// Decodes a component of a key, see [`decode`].
type DecodeComponent = fn(&mut &[u8], Direction) -> Option<Option<Bson>>;

/// Returns the fields of a wildcard index's entry: the path, the value and the other fields. An entry without a path has no value.
fn fields_of_entry<'p>(pattern: &'p WildcardPattern, key: &[u8]) -> Vec<(&'p str, Direction)> {
    let of_path = [(PATH_FIELD, Direction::Ascending)].into_iter();
    let has_path = !matches!(decode(&mut &*key, Direction::Ascending), Some(None | Some(Bson::Null)));
    let value = has_path.then_some(("value", pattern.direction()));
    let others = |others: &'p [(Path, Direction)]| others.iter().map(|(path, direction)| (path.as_str(), *direction));
    let (before, after) = pattern.others().split_at(pattern.before());
    of_path.chain(others(before)).chain(value).chain(others(after)).collect()
}

/// Like [`decode`], for an index with a collation.
fn decode_collated(key: &mut &[u8], direction: Direction) -> Option<Option<Bson>> {
    match key::decode(key, direction, &mut TypeReader::new(&[]))? {
        Decoded::Value(value) => match value.as_value().string() {
            Some(sort_key) => Some(Some(Bson::String(show_sort_key(sort_key)))),
            None => value.as_value().to_bson().map(Some),
        },
        Decoded::Missing => Some(None),
    }
}

/// Decodes a component: `None` if it is incomplete, `Some(None)` if the field was missing.
fn decode(key: &mut &[u8], direction: Direction) -> Option<Option<Bson>> {
    match key::decode(key, direction, &mut TypeReader::new(&[]))? {
        Decoded::Value(value) => value.as_value().to_bson().map(Some),
        Decoded::Missing => Some(None),
    }
}
