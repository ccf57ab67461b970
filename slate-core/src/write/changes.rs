use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap};

use slate_query::{
    key::{self, Decoded, TypeReader},
    raw::{Doc, OwnedValue, store},
};
use slate_store::{Keyspace, Points, Transaction, View};

use super::{
    Session,
    entries::{Entries, EntryMap},
};
use crate::{
    Error, Result,
    catalog::{CollectionInfo, IndexInfo},
    entry::Entry,
};

/// A document's bytes: the caller's own where the document stays as it is.
type Document<'d> = Cow<'d, [u8]>;

/// What a call is about to change, gathered so that uniqueness can be checked as it will be at the call's end.
#[derive(Debug, Default)]
pub(super) struct Changes<'d> {
    /// Record key to its new document, or none. No key stands here twice.
    records: Vec<(Vec<u8>, Option<Document<'d>>)>,
    /// Per index, by its place in the collection.
    indexes: BTreeMap<usize, IndexChanges>,
    /// Keys that were relied on and are not written: whoever writes one of them meanwhile conflicts.
    guards: Vec<(Keyspace, Vec<u8>)>,
}

/// Gathered in the order in which they come, and sorted once.
#[derive(Debug, Default)]
struct IndexChanges {
    deletes: Vec<Vec<u8>>,
    puts: Vec<(Vec<u8>, Vec<u8>)>,
    /// Entries of new records, whose keys are known to be new.
    fresh: Entries,
}

impl<'d> Changes<'d> {
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn put_record(&mut self, key: Vec<u8>, document: Document<'d>) {
        self.records.push((key, Some(document)));
    }

    pub(super) fn delete_record(&mut self, key: Vec<u8>) {
        self.records.push((key, None));
    }

    /// The entries of a new record in one index, each of which is known to be free.
    pub(super) fn fresh_entries(&mut self, at: usize, entries: &mut Entries) {
        self.indexes.entry(at).or_default().fresh.append(entries);
    }

    /// A record's entries of one index change from `old` to `new`: only those that differ are touched.
    pub(super) fn entries(&mut self, at: usize, old: EntryMap, new: EntryMap) {
        let changes = self.indexes.entry(at).or_default();
        let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            let before = old.next_if(|_| order.is_le());
            let after = new.next_if(|_| order.is_ge());
            match (before, after) {
                (Some((_, before)), Some((_, after))) if before == after => {}
                (before, after) => {
                    // The record's own entry whose value changes is deleted too: its key is not taken by another.
                    changes.deletes.extend(before.map(|(key, _)| key));
                    changes.puts.extend(after);
                }
            }
        }
    }

    /// Of the entries that a record should have in the index at that place, those it has.
    ///
    /// In an index that is being built, the build may not have come to the record yet; and if the index is unique, a
    /// record that came later may hold the key, whose entry must not be taken for this record's. What is left out is
    /// guarded: the build may be about to put it.
    pub(super) fn held(
        &mut self,
        view: &impl View,
        collection: &CollectionInfo,
        at: usize,
        record_key: &[u8],
        mut entries: EntryMap,
    ) -> Result<EntryMap> {
        let Some(index) = collection.maintained_at(at).filter(|index| index.unique && collection.is_building(at))
        else {
            return Ok(entries);
        };
        let mut points = view.points(index.keyspace)?;
        let mut absent = Vec::new();
        for key in entries.keys() {
            let there = points.get(key)?;
            let owner = there.map(|value| Entry::parse(index, key, value)).transpose()?;
            if owner.is_none_or(|entry| entry.record_key != record_key) {
                absent.push(key.clone());
            }
        }
        entries.retain(|key| !absent.contains(key));
        self.guards.extend(absent.into_iter().map(|key| (index.keyspace, key)));
        Ok(entries)
    }

    /// The unique keys that the call still has to claim, taken out: they are put at its end.
    pub(super) fn take_claims(&mut self, collection: &CollectionInfo, claims: &mut Claims) {
        for (at, changes) in &mut self.indexes {
            if collection.maintained_at(*at).is_some_and(|index| index.unique) {
                claims.indexes.entry(*at).or_default().puts.append(&mut changes.puts);
            }
        }
    }

    /// Whether every unique key that is put is free, or freed by this very change.
    pub(super) fn check_unique(&mut self, view: &impl View, collection: &CollectionInfo) -> Result<()> {
        for (at, changes) in &mut self.indexes {
            if let Some(index) = collection.maintained_at(*at).filter(|index| index.unique) {
                changes.check(view, collection, index)?;
            }
        }
        Ok(())
    }

    /// Applies everything, in the order of keys, which stores like best. An error leaves part of it applied.
    pub(super) fn apply<T: Transaction>(mut self, session: &mut Session<T>, collection: &CollectionInfo) -> Result<()> {
        if !self.records.is_empty() {
            session.wrote(collection);
        }
        let transaction = &mut session.transaction;
        for (keyspace, key) in &self.guards {
            transaction.guard(*keyspace, key)?;
        }
        self.records.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut batch = Batch::default();
        for (key, document) in &self.records {
            match document {
                Some(document) => batch.put(transaction, collection.records, key, Doc::new(document))?,
                None => transaction.delete(collection.records, key)?,
            }
        }
        batch.write(transaction, collection.records)?;
        for (at, changes) in &mut self.indexes {
            let Some(index) = collection.maintained_at(*at) else { continue };
            changes.apply(transaction, index.keyspace)?;
        }
        Ok(())
    }
}

/// Documents laid out as they are stored, a number of them at a time.
#[derive(Default)]
struct Batch<'k> {
    stored: Vec<u8>,
    /// Of each its key, and where it ends.
    ends: Vec<(&'k [u8], usize)>,
}

/// How many bytes are laid out before they are handed to the store.
const BATCH_BYTES: usize = 1 << 20;

impl<'k> Batch<'k> {
    fn put(
        &mut self,
        transaction: &mut impl Transaction,
        keyspace: Keyspace,
        key: &'k [u8],
        document: Doc<'_>,
    ) -> Result<()> {
        store(document, &mut self.stored);
        self.ends.push((key, self.stored.len()));
        if self.stored.len() < BATCH_BYTES { Ok(()) } else { self.write(transaction, keyspace) }
    }

    fn write(&mut self, transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
        let mut start = 0;
        let stored = &self.stored;
        let entry = |(key, end): &(&'k [u8], usize)| {
            (*key, stored.get(std::mem::replace(&mut start, *end)..*end).unwrap_or_default())
        };
        let entries: Vec<_> = self.ends.iter().map(entry).collect();
        put_many(transaction, keyspace, &entries)?;
        self.stored.clear();
        self.ends.clear();
        Ok(())
    }
}

fn put_many(transaction: &mut impl Transaction, keyspace: Keyspace, entries: &[(&[u8], &[u8])]) -> Result<()> {
    match entries {
        [] => Ok(()),
        [(key, value)] => Ok(transaction.put(keyspace, key, value)?),
        _ => Ok(transaction.put_many(keyspace, entries)?),
    }
}

impl IndexChanges {
    fn sort(&mut self) {
        self.deletes.sort_unstable();
        self.puts.sort_unstable();
    }

    /// The key of a unique index that two records of this call claim. In a plain index a key names its record.
    fn clash(&self) -> Option<&[u8]> {
        let mut neighbours = self.puts.iter().zip(self.puts.iter().skip(1));
        neighbours.find(|((key, _), (next, _))| key == next).map(|((key, _), _)| key.as_slice())
    }

    fn check(&mut self, view: &impl View, collection: &CollectionInfo, index: &IndexInfo) -> Result<()> {
        self.sort();
        if let Some(key) = self.clash() {
            return Err(duplicate(collection, index, key));
        }
        let mut points = view.points(index.keyspace)?;
        for (key, _) in &self.puts {
            if self.deletes.binary_search(key).is_err() && points.get(key)?.is_some() {
                return Err(duplicate(collection, index, key));
            }
        }
        Ok(())
    }

    fn apply(&mut self, transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
        self.sort();
        for key in &self.deletes {
            if self.puts.binary_search_by(|(put, _)| put.cmp(key)).is_err() {
                transaction.delete(keyspace, key)?;
            }
        }
        let puts: Vec<(&[u8], &[u8])> =
            self.puts.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
        put_many(transaction, keyspace, &puts)?;
        put_many(transaction, keyspace, &self.fresh.sorted())
    }
}

/// Unique keys claimed by the parts of a call that was too large to be checked before it was applied.
#[derive(Debug, Default)]
pub(super) struct Claims {
    indexes: BTreeMap<usize, IndexChanges>,
}

impl Claims {
    /// Checks the claims against what the call has made of the index, and puts them.
    pub(super) fn settle<T: Transaction>(self, session: &mut Session<T>, collection: &CollectionInfo) -> Result<()> {
        for (at, mut claimed) in self.indexes {
            let Some(index) = collection.maintained_at(at) else { continue };
            claimed.check(&session.view(), collection, index)?;
            claimed.apply(&mut session.transaction, index.keyspace)?;
        }
        Ok(())
    }
}

/// The error for a unique key that is taken. `key` is the entry's.
pub(super) fn duplicate(collection: &CollectionInfo, index: &IndexInfo, key: &[u8]) -> Error {
    Error::duplicate_key(&collection.name, &index.name, &describe(index, key))
}

/// The error for an `_id` that is taken.
pub(super) fn duplicate_id(collection: &CollectionInfo, id: &OwnedValue) -> Error {
    Error::duplicate_key(&collection.name, "_id_", &format!("{{ _id: {id:?} }}")).at("_id")
}

/// The values of a unique key, as a message shows them: types that the key does not tell apart are shown as one.
fn describe(index: &IndexInfo, key: &[u8]) -> String {
    let mut rest = key;
    let mut likeliest = TypeReader::new(&[]);
    let mut shown = Vec::new();
    for (path, direction) in index.pattern.fields() {
        let value = match key::decode(&mut rest, *direction, &mut likeliest) {
            Some(Decoded::Value(value)) => format!("{value:?}"),
            Some(Decoded::Missing) => "null".into(),
            None => "…".into(),
        };
        shown.push(format!("{path}: {value}"));
    }
    format!("{{ {} }}", shown.join(", "))
}
