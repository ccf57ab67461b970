use bson::{Document, doc};
use slate_query::raw::{Doc, Element, OwnedValue};
use slate_store::{Keyspace, PointReader, View};

use super::{
    change_set::{ChangeSet, Place},
    entries::{Entries, KeyWrites},
};
use crate::{
    Error, Result,
    catalog::{CollectionInfo, IndexInfo, KeyFields},
    entry::Entry,
};

impl ChangeSet {
    /// Checks that after these changes no key of a unique index belongs to two records. Reads keys in batches.
    ///
    /// # Errors
    /// `DuplicateKey`.
    pub(super) fn check_unique(&mut self, view: &impl View, collection: &CollectionInfo) -> Result<()> {
        let unique = |place| match place {
            Place::Index(at) => collection.maintained_at(at).filter(|index| index.unique),
            Place::Records => None,
        };
        self.for_each_block(
            |place| unique(place).is_some(),
            |place, block| unique(place).map_or(Ok(()), |index| check(view, collection, index, block)),
        )
    }
}

fn check(view: &impl View, collection: &CollectionInfo, index: &IndexInfo, block: &Entries) -> Result<()> {
    let mut put = Vec::new();
    for writes in block.by_key() {
        let mut values = writes.puts();
        let Some(value) = values.next() else { continue };
        let owner = record_key(index, writes.key(), value)?;
        for other in values {
            if record_key(index, writes.key(), other)? != owner {
                return Err(duplicate(collection, index, writes.key()));
            }
        }
        // An entry that is certain to be deleted needs no check.
        if writes.deletes().all(<[u8]>::is_empty) && writes.deletes().next().is_some() {
            continue;
        }
        put.push((writes, owner));
    }
    let existing = Existing::load(view, index.keyspace, put.iter().map(|(writes, _)| *writes))?;
    for (at, (writes, owner)) in put.iter().enumerate() {
        let Some(value) = existing.value(at) else { continue };
        let held_by = record_key(index, writes.key(), value)?;
        if held_by != *owner && writes.deletes().all(|deleted_from| deleted_from != held_by) {
            return Err(duplicate(collection, index, writes.key()));
        }
    }
    Ok(())
}

/// The stored values of keys that are written.
pub(super) struct Existing<R>(Option<R>);

impl<R: PointReader> Existing<R> {
    pub(super) fn load<'e, V: View<PointReader = R>>(
        view: &V,
        keyspace: Keyspace,
        writes: impl Iterator<Item = KeyWrites<'e>>,
    ) -> Result<Self> {
        let keys: Vec<_> = writes.map(|writes| (keyspace, writes.key())).collect();
        if keys.is_empty() {
            return Ok(Self(None));
        }
        let mut reader = view.point_reader()?;
        reader.load(&keys)?;
        Ok(Self(Some(reader)))
    }

    pub(super) fn value(&self, at: usize) -> Option<&[u8]> {
        self.0.as_ref()?.loaded(at)
    }
}

/// Returns the key of the record to which an entry belongs.
pub(super) fn record_key<'e>(index: &IndexInfo, key: &'e [u8], value: &'e [u8]) -> Result<&'e [u8]> {
    Ok(Entry::parse(index, key, value)?.record_key)
}

/// Returns the error for a duplicate unique key. `key` is the key of the entry.
pub(super) fn duplicate(collection: &CollectionInfo, index: &IndexInfo, key: &[u8]) -> Error {
    let key = KeyFields::decode(index, key);
    let shown = match &index.collation {
        Some(collation) => {
            let options = collation.to_document();
            let option = |option: Element<'_>| format!("{}: {:?}", option.display_name(), option.value);
            let options: Vec<String> = Doc::from(&options).elements().map(option).collect();
            format!("collation: {{ {} }} dup key: {key}", options.join(", "))
        }
        None => format!("dup key: {key}"),
    };
    let keys = Document::try_from(index.keys.as_ref()).unwrap_or_default();
    Error::duplicate_key(&collection.name, &index.name, keys, key.document(), &shown)
}

/// Returns the error for a duplicate `_id`.
pub(super) fn duplicate_id(collection: &CollectionInfo, id: &OwnedValue) -> Error {
    let key = id.as_value().to_bson().map(|id| doc! { "_id": id }).unwrap_or_default();
    Error::duplicate_key(&collection.name, "_id_", doc! { "_id": 1 }, key, &format!("dup key: {{ _id: {id:?} }}"))
        .at("_id")
}
