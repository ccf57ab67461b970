use std::{cmp::Ordering, collections::BTreeMap, ops::Range};

use bson::RawDocument;
use slate_query::{
    key::{self, Decoded, TypeReader},
    raw::{Doc, OwnedValue, store},
};
use slate_store::{Guard, Keyspace, Transaction, TransactionExt, View};

use super::{
    Session, batch,
    entries::{Entries, EntryMaker},
    prepare::prepare,
};
use crate::{
    Error, Result,
    catalog::{CollectionInfo, IndexInfo},
    entry::Entry,
    lookup::lookup,
};

/// The changes of a call, collected before they are applied so that uniqueness can be checked for their final state.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Keys of the records and their new documents as stored.
    bytes: Vec<u8>,
    /// Contains each key at most once.
    records: Vec<RecordChange>,
    /// Per index, by its position in the collection.
    indexes: BTreeMap<usize, IndexChanges>,
    /// Keys that were read and are not written: a transaction that writes one of them conflicts.
    guards: Vec<(Keyspace, Vec<u8>)>,
    /// Reused buffers: the entries of the current record before and after its change.
    difference: (Entries, Entries),
}

/// Position of a record's key and of its new document. No document if the record is deleted.
#[derive(Clone, Debug)]
struct RecordChange {
    key: Range<usize>,
    document: Option<Range<usize>>,
}

/// Collected in any order and sorted once.
#[derive(Debug, Default)]
struct IndexChanges {
    /// Keys only.
    deletes: Entries,
    puts: Entries,
    /// Entries of new records, whose keys are known to be free.
    fresh: Entries,
}

impl Changes {
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether this many documents of this many bytes can be added before the changes must be applied.
    pub(super) fn have_room_for(&self, documents: usize, bytes: usize) -> bool {
        let fits = self.records.len() + documents <= batch::MOST && self.bytes.len() + bytes <= batch::BYTES;
        fits || self.records.is_empty()
    }

    /// Reserves memory for this many documents of this many bytes. Field tables add about an eighth; keys and generated
    /// `_id`s a few bytes each.
    pub(super) fn reserve(&mut self, documents: usize, bytes: usize) {
        const KEY_AND_ID: usize = 48;
        self.records.reserve(documents);
        self.bytes.reserve(bytes.saturating_add(bytes / 8).saturating_add(documents.saturating_mul(KEY_AND_ID)));
    }

    pub(super) fn put_record(&mut self, key: &[u8], document: Doc<'_>) {
        // The document precedes its key, because its reservation includes some spare bytes.
        let start = self.bytes.len();
        store(document, &mut self.bytes);
        self.put_prepared(key, start..self.bytes.len());
    }

    /// The same for a document that is already in its stored form.
    pub(super) fn put_stored(&mut self, key: &[u8], document: &[u8]) {
        let document = self.push(document);
        self.put_prepared(key, document);
    }

    /// Encodes a document for storage, see [`prepare`].
    pub(super) fn prepare(&mut self, document: &RawDocument) -> Result<Range<usize>> {
        let start = self.bytes.len();
        prepare(document, &mut self.bytes)?;
        Ok(start..self.bytes.len())
    }

    /// Returns the encoded document.
    pub(super) fn prepared(&self, document: &Range<usize>) -> Doc<'_> {
        Doc::stored(self.bytes.get(document.clone()).unwrap_or_default())
    }

    /// Puts the document that was encoded last.
    pub(super) fn put_prepared(&mut self, key: &[u8], document: Range<usize>) {
        let key = self.push(key);
        self.records.push(RecordChange { key, document: Some(document) });
    }

    /// Discards the document that was encoded last.
    pub(super) fn refuse(&mut self, document: &Range<usize>) {
        self.bytes.truncate(document.start);
    }

    pub(super) fn delete_record(&mut self, key: &[u8]) {
        let key = self.push(key);
        self.records.push(RecordChange { key, document: None });
    }

    fn push(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Returns the keys of the records in the order in which they were added.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().filter_map(|record| self.bytes.get(record.key.clone()))
    }

    /// Adds the entries of new records in one index, whose keys are known to be free.
    pub(super) fn fresh(&mut self, at: usize) -> &mut Entries {
        &mut self.indexes.entry(at).or_default().fresh
    }

    /// Adds the change of a record's entries from one document to another in the given indexes. Only entries that
    /// differ are written.
    pub(super) fn entries(
        &mut self,
        view: &impl View,
        collection: &CollectionInfo,
        maker: &mut EntryMaker,
        key: &[u8],
        (old, new): (Option<Doc<'_>>, Option<Doc<'_>>),
        wanted: impl Fn(&IndexInfo) -> bool,
    ) -> Result<()> {
        let (mut before, mut after) = std::mem::take(&mut self.difference);
        for (at, _) in collection.maintained().enumerate().filter(|(_, index)| wanted(index)) {
            before.clear();
            after.clear();
            if let Some(new) = new {
                maker.document(key, new).of_index(collection, at, &mut after)?;
            }
            let Some(old) = old else {
                self.indexes.entry(at).or_default().puts.append(&mut after);
                continue;
            };
            maker.document(key, old).of_index(collection, at, &mut before)?;
            self.keep_held(view, collection, at, key, &mut before)?;
            self.indexes.entry(at).or_default().differ(&before, &after);
        }
        self.difference = (before, after);
        Ok(())
    }

    /// Retains those of a record's old entries that exist in the index at this position.
    ///
    /// In an index that is being built, the build may not have reached the record yet. In a unique index another record
    /// may then have the key, and its entry must not be deleted. Entries that are left out are guarded, because the
    /// build may be about to put them.
    fn keep_held(
        &mut self,
        view: &impl View,
        collection: &CollectionInfo,
        at: usize,
        record_key: &[u8],
        entries: &mut Entries,
    ) -> Result<()> {
        let Some(index) = collection.maintained_at(at).filter(|index| index.unique && collection.is_building(at))
        else {
            return Ok(());
        };
        let mut reader = view.point_reader()?;
        let mut absent = Vec::new();
        for (key, _) in entries.iter() {
            let there = lookup(&mut reader, index.keyspace, key)?;
            let owner = there.map(|value| Entry::parse(index, key, value)).transpose()?;
            if owner.is_none_or(|entry| entry.record_key != record_key) {
                absent.push(key.to_vec());
            }
        }
        entries.retain(|key| !absent.iter().any(|absent| absent == key));
        self.guards.extend(absent.into_iter().map(|key| (index.keyspace, key)));
        Ok(())
    }

    /// Removes and returns the unique keys that still have to be checked; they are put at the end of the call.
    pub(super) fn take_claims(&mut self, collection: &CollectionInfo, claims: &mut Claims) {
        for (at, changes) in &mut self.indexes {
            if collection.maintained_at(*at).is_some_and(|index| index.unique) {
                claims.indexes.entry(*at).or_default().puts.append(&mut changes.puts);
            }
        }
    }

    /// Returns whether every unique key that is put is free or freed by this change set.
    pub(super) fn check_unique(&mut self, view: &impl View, collection: &CollectionInfo) -> Result<()> {
        for (at, changes) in &mut self.indexes {
            if let Some(index) = collection.maintained_at(*at).filter(|index| index.unique) {
                changes.check(view, collection, index)?;
            }
        }
        Ok(())
    }

    /// Applies all changes in key order, which is fastest for stores, and clears the buffers. After an error, part of
    /// the changes has been applied.
    pub(super) fn apply<T: Transaction>(
        &mut self,
        session: &mut Session<T>,
        collection: &CollectionInfo,
    ) -> Result<()> {
        if !self.records.is_empty() {
            session.wrote(collection);
        }
        let transaction = &mut session.transaction;
        for (keyspace, key) in &self.guards {
            transaction.guard(*keyspace, key, Guard::Shared)?;
        }
        let bytes = &self.bytes;
        let at = |range: &Range<usize>| bytes.get(range.clone()).unwrap_or_default();
        self.records.sort_unstable_by(|a, b| at(&a.key).cmp(at(&b.key)));
        let mut puts = Vec::with_capacity(self.records.len());
        for RecordChange { key, document } in &self.records {
            match document {
                Some(document) => puts.push((at(key), at(document))),
                None => transaction.delete(collection.records, at(key))?,
            }
        }
        put_many(transaction, collection.records, &puts)?;
        for (at, changes) in &mut self.indexes {
            let Some(index) = collection.maintained_at(*at) else { continue };
            changes.apply(transaction, index.keyspace)?;
        }
        self.clear();
        Ok(())
    }

    /// Removes all changes and retains the buffers.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
        self.guards.clear();
        for IndexChanges { deletes, puts, fresh } in self.indexes.values_mut() {
            [deletes, puts, fresh].into_iter().for_each(Entries::clear);
        }
    }
}

impl<T: Transaction> Session<T> {
    /// Applies all changes of a call after checking uniqueness.
    pub(super) fn apply_whole(&mut self, collection: &CollectionInfo, mut changes: Changes) -> Result<()> {
        let unique = changes.check_unique(&self.transaction.view(), collection);
        if unique.is_err() {
            // The reason of the error is part of the transaction's reads.
            self.read_all(collection);
        }
        unique?;
        let applied = changes.apply(self, collection);
        self.end_on_error(applied)
    }
}

pub(super) fn put_many(
    transaction: &mut impl Transaction,
    keyspace: Keyspace,
    entries: &[(&[u8], &[u8])],
) -> Result<()> {
    match entries {
        [] => Ok(()),
        [(key, value)] => Ok(transaction.put(keyspace, key, value)?),
        _ => {
            let writes: Vec<_> = entries.iter().map(|(key, value)| (*key, Some(*value))).collect();
            Ok(transaction.write(keyspace, &writes)?)
        }
    }
}

impl IndexChanges {
    /// Adds the difference between a record's entries before and after.
    fn differ(&mut self, before: &Entries, after: &Entries) {
        let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            match (before.next_if(|_| order.is_le()), after.next_if(|_| order.is_ge())) {
                (Some((_, old)), Some((_, new))) if old == new => {}
                (old, new) => {
                    // If only the value of the record's own entry changes, the key is not taken by another record.
                    if let Some((key, _)) = old {
                        self.deletes.push(key, &[]);
                    }
                    if let Some((key, value)) = new {
                        self.puts.push(key, value);
                    }
                }
            }
        }
    }

    fn sort(&mut self) {
        self.deletes.sort();
        self.puts.sort();
    }

    /// Returns the key of a unique index that two records of this call share. In other indexes a key contains its
    /// record.
    fn clash(&self) -> Option<&[u8]> {
        let mut neighbours = self.puts.iter().zip(self.puts.iter().skip(1));
        neighbours.find(|((key, _), (next, _))| key == next).map(|((key, _), _)| key)
    }

    fn check(&mut self, view: &impl View, collection: &CollectionInfo, index: &IndexInfo) -> Result<()> {
        self.sort();
        if let Some(key) = self.clash() {
            return Err(duplicate(collection, index, key));
        }
        let mut reader = view.point_reader()?;
        for key in self.puts.keys_without(&self.deletes) {
            if lookup(&mut reader, index.keyspace, key)?.is_some() {
                return Err(duplicate(collection, index, key));
            }
        }
        Ok(())
    }

    fn apply(&mut self, transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
        self.sort();
        for key in self.deletes.keys_without(&self.puts) {
            transaction.delete(keyspace, key)?;
        }
        self.fresh.sort();
        for puts in [&self.puts, &self.fresh] {
            put_many(transaction, keyspace, &puts.iter().collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// Unique keys of the parts of a call that is too large to be checked before it is applied.
#[derive(Debug, Default)]
pub(super) struct Claims {
    indexes: BTreeMap<usize, IndexChanges>,
}

impl Claims {
    /// Checks the keys against the index after the call, and puts them.
    pub(super) fn settle<T: Transaction>(self, session: &mut Session<T>, collection: &CollectionInfo) -> Result<()> {
        for (at, mut claimed) in self.indexes {
            let Some(index) = collection.maintained_at(at) else { continue };
            claimed.check(&session.view(), collection, index)?;
            claimed.apply(&mut session.transaction, index.keyspace)?;
        }
        Ok(())
    }
}

/// Returns the error for a duplicate unique key. `key` is the key of the entry.
pub(super) fn duplicate(collection: &CollectionInfo, index: &IndexInfo, key: &[u8]) -> Error {
    Error::duplicate_key(&collection.name, &index.name, &describe(index, key))
}

/// Returns the error for a duplicate `_id`.
pub(super) fn duplicate_id(collection: &CollectionInfo, id: &OwnedValue) -> Error {
    Error::duplicate_key(&collection.name, "_id_", &format!("{{ _id: {id:?} }}")).at("_id")
}

/// Formats the values of a unique key for a message. Types that the key does not distinguish are shown as one.
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
