use bson::{Document, doc};
use slate_query::raw::{Doc, Element, OwnedValue};
use slate_store::{Keyspace, PointReader, View};

use super::{
    change_set::{BlockPlace, ChangeSet},
    entries::{Entries, KeyWrites},
    key_place::KeyFields,
    prepare::id,
};
use crate::{
    Error, Result,
    catalog::{CollectionInfo, IndexInfo},
    entry::IndexEntry,
};

impl ChangeSet {
    /// Checks that after these changes no key of a unique index belongs to two records. Reads keys in batches.
    ///
    /// # Errors
    /// `DuplicateKey`.
    pub(super) fn check_unique(&mut self, view: &impl View, collection: &CollectionInfo) -> Result<()> {
        let unique = |place| match place {
            BlockPlace::Index(at) => collection.maintained_at(at).filter(|index| index.unique),
            BlockPlace::Log | BlockPlace::Records => None,
        };
        let mut found: Option<(&IndexInfo, Vec<u8>, Vec<u8>)> = None;
        self.for_each_block(
            |place| unique(place).is_some(),
            |place, block| {
                if let (None, Some(index)) = (&found, unique(place)) {
                    let conflict = check(view, index, block)?;
                    found = conflict.map(|(key, record)| (&**index, key.to_vec(), record.to_vec()));
                }
                Ok::<_, Error>(())
            },
        )?;
        let Some((index, key, record)) = found else { return Ok(()) };
        let stored = match &index.collation {
            Some(_) => self.record(view, collection, &record)?,
            None => None,
        };
        Err(duplicate(collection, index, &key, stored.as_deref().map(Doc::stored)))
    }

    /// Checks that these changes put no record twice.
    ///
    /// # Errors
    /// `DuplicateKey`.
    pub(super) fn check_ids(&mut self, collection: &CollectionInfo) -> Result<()> {
        self.for_each_block(
            |place| place == BlockPlace::Records,
            |_, block| {
                let mut twice = block.by_key().filter(|writes| writes.puts().nth(1).is_some());
                match twice.next().and_then(|writes| writes.puts().next()) {
                    Some(stored) => Err(duplicate_id(collection, &id(Doc::stored(stored)).to_owned())),
                    None => Ok(()),
                }
            },
        )
    }

    /// Returns the stored form of a record that these changes put, or do not change; `None` if it does not exist.
    fn record(&mut self, view: &impl View, collection: &CollectionInfo, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut changed = None;
        self.for_each_block(
            |place| place == BlockPlace::Records,
            |_, block| {
                let mut puts = block.by_key().filter(|writes| writes.key() == key).flat_map(KeyWrites::puts);
                changed = changed.take().or_else(|| puts.next().map(<[u8]>::to_vec));
                Ok::<_, Error>(())
            },
        )?;
        // A build of an index changes no records.
        if changed.is_some() { Ok(changed) } else { Ok(view.get(collection.records, key, <[u8]>::to_vec)?) }
    }
}

/// Returns a key of the block that belongs to two records, and the key of the record that is changed; `None` without a conflict.
fn check<'b>(view: &impl View, index: &IndexInfo, block: &'b Entries) -> Result<Option<(&'b [u8], &'b [u8])>> {
    let mut put = Vec::new();
    for writes in block.by_key() {
        let mut values = writes.puts();
        let Some(value) = values.next() else { continue };
        let owner = record_key(index, writes.key(), value)?;
        for other in values {
            let other = record_key(index, writes.key(), other)?;
            if other != owner {
                return Ok(Some((writes.key(), other)));
            }
        }
        // The stored entry with this key is deleted, so it cannot conflict.
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
            return Ok(Some((writes.key(), *owner)));
        }
    }
    Ok(None)
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
    Ok(IndexEntry::parse(index, key, value)?.record_key)
}

/// Returns the error for a duplicate unique key. `key` is the key of the entry. `document` has this key; its strings are
/// shown if the index has a collation.
pub(super) fn duplicate(
    collection: &CollectionInfo,
    index: &IndexInfo,
    key: &[u8],
    document: Option<Doc<'_>>,
) -> Error {
    let original = document.and_then(|document| KeyFields::of_document(index, key, document));
    let key = original.unwrap_or_else(|| KeyFields::decode(index, key));
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

pub(super) fn duplicate_id(collection: &CollectionInfo, id: &OwnedValue) -> Error {
    let key = id.as_value().to_bson().map(|id| doc! { "_id": id }).unwrap_or_default();
    Error::duplicate_key(&collection.name, "_id_", doc! { "_id": 1 }, key, &format!("dup key: {{ _id: {id:?} }}"))
        .at("_id")
}
