use std::sync::Arc;

use ahash::AHashSet;
use bson::{Bson, RawDocument};
use slate_query::raw::{Doc, OwnedValue, SmallBytes};
use slate_store::{Bounds, Cursor, Edge, Keyspace, PointReader, Transaction, View};

use super::{
    Session,
    change_set::ChangeSet,
    prepare::id,
    unique::{duplicate, duplicate_id},
};
use crate::{
    Error, Result,
    call_context::CallContext,
    catalog::{CollectionInfo, IndexInfo},
    entry::record_key,
    interrupt::Interrupt,
};

/// The result of an insert.
#[derive(Debug, Default)]
pub(crate) struct InsertOutcome {
    /// The `_id`s of the accepted documents with their positions, in order. None is inserted if [`InsertMode::AllOrNone`]
    /// rejects one.
    pub(crate) ids: Vec<(usize, OwnedValue)>,
    /// The rejected documents with their positions, and the errors.
    pub(crate) refused: Vec<(usize, Error)>,
}

impl InsertOutcome {
    /// Returns the `_id`s of the accepted documents in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Bson> {
        self.ids.iter().filter_map(|(_, id)| id.as_value().to_bson())
    }

    fn refuse(&mut self, place: usize, error: Error) {
        let error = error.refused_after(self.refused.len());
        self.refused.push((place, error));
    }
}

/// How a call continues after a document was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InsertMode {
    /// No document is inserted.
    AllOrNone,
    /// Earlier documents are inserted, later ones are not tried.
    Ordered,
    /// All other documents are inserted.
    Unordered,
}

impl InsertMode {
    pub(crate) fn ordered(&mut self, ordered: bool) {
        *self = if ordered { Self::Ordered } else { Self::Unordered };
    }

    pub(crate) fn all_or_nothing(&mut self) {
        *self = Self::AllOrNone;
    }
}

/// Maximum number of documents whose keys are looked up together.
const BATCH: usize = 4_096;

/// Maximum size of changes that are looked up together, in bytes; the last document may exceed it.
const BATCH_BYTES: usize = 16 << 20;

impl<T: Transaction> Session<T> {
    /// Inserts documents in their order. A rejected document changes nothing.
    ///
    /// # Errors
    /// Fails if the store fails, the operation is interrupted, the name is that of a view or is invalid, or the documents
    /// exceed the store's limit of a transaction. Rejected documents are returned in the outcome.
    pub(crate) fn insert(
        &mut self,
        name: &str,
        documents: &[impl AsRef<RawDocument>],
        mode: InsertMode,
        call: &CallContext,
    ) -> Result<InsertOutcome> {
        let call = &self.limited(call);
        call.during(|| self.insert_limited(name, documents, mode, call))
    }

    fn insert_limited(
        &mut self,
        name: &str,
        documents: &[impl AsRef<RawDocument>],
        mode: InsertMode,
        call: &CallContext,
    ) -> Result<InsertOutcome> {
        self.begin_call()?;
        call.check()?;
        let collection = self.written_or_new(name)?;
        let mut changes = self.change_set(&collection, call);
        changes.empty_timestamps = call.empty_timestamps;
        let (changes, outcome) = {
            let view = self.transaction.view();
            let mut insert = Insert::open(&view, &collection, changes, documents.len())?;
            insert.add(documents, mode, &mut call.interrupt.clone())?;
            insert.changes.growth = i64::try_from(insert.outcome.ids.len()).unwrap_or(i64::MAX);
            (insert.changes, insert.outcome)
        };
        if !outcome.refused.is_empty() {
            // A rejection can depend on another document, so a serializable transaction has read the collection.
            self.read_all(&collection);
            if mode == InsertMode::AllOrNone {
                return Ok(outcome);
            }
        }
        self.apply(&collection, changes, call)?;
        Ok(outcome)
    }
}

/// An insert whose documents are accepted one after the other: each is checked against the collection and the documents
/// accepted before.
struct Insert<'c, V: View> {
    /// Number of documents of the call.
    documents: usize,
    collection: &'c CollectionInfo,
    reader: V::PointReader,
    greatest_stored: GreatestKey,
    accepted: Accepted,
    changes: ChangeSet,
    outcome: InsertOutcome,
}

/// The greatest stored key of a collection's records. Greater keys need not be looked up.
enum GreatestKey {
    NoKeys,
    Key(Box<[u8]>),
    /// On a store on a network, where finding it out takes as long as looking the keys up.
    Unknown,
}

/// The keys of the documents accepted so far, with which later ones of the same call are compared.
#[derive(Default)]
struct Accepted {
    greatest: Option<Vec<u8>>,
    /// All record keys. `None` as long as each of them was greater than all before it.
    records: Option<AHashSet<SmallBytes>>,
    /// For each index, by its position in the collection, the keys that the accepted documents have in it; only filled
    /// for unique ones.
    unique: Vec<AHashSet<SmallBytes>>,
}

/// Documents that were added to the changes, and are not accepted yet.
struct Batch {
    /// Their positions in the call.
    places: Vec<usize>,
    first_record: usize,
    /// Number of entries per index before the batch, and then after each of its documents.
    ends: Vec<usize>,
}

impl<'c, V: View> Insert<'c, V> {
    fn open(view: &V, collection: &'c CollectionInfo, changes: ChangeSet, documents: usize) -> Result<Self> {
        Ok(Self {
            documents,
            collection,
            reader: view.point_reader()?,
            greatest_stored: GreatestKey::of(view, collection.records)?,
            accepted: Accepted { unique: vec![AHashSet::new(); changes.indexes.len()], ..Accepted::default() },
            changes,
            outcome: InsertOutcome { ids: Vec::with_capacity(documents), refused: Vec::new() },
        })
    }

    /// Adds the documents; unless `mode` is [`InsertMode::Unordered`], only until one is rejected.
    fn add(
        &mut self,
        documents: &[impl AsRef<RawDocument>],
        mode: InsertMode,
        interrupt: &mut Interrupt,
    ) -> Result<()> {
        let mut documents = documents.iter().map(AsRef::as_ref).enumerate();
        while documents.len() > 0 {
            let refused_before = self.outcome.refused.len();
            let next = documents.clone().take(BATCH).map(|(_, document)| document.as_bytes().len());
            let bytes = next.fold(0, |bytes: usize, length| bytes.saturating_add(length).min(2 * BATCH_BYTES));
            self.changes.reserve(documents.len().min(BATCH), bytes);
            let mut batch = self.begin_batch(documents.len());
            let size = self.changes.size();
            while batch.places.len() < BATCH
                && self.changes.size() - size < BATCH_BYTES
                && let Some((place, document)) = documents.next()
            {
                interrupt.tick()?;
                match self.changes.insert(self.collection, document) {
                    Ok(()) => batch.end_document(place, &self.changes),
                    Err(error) if error.is_refusal() => {
                        batch.truncate(batch.places.len(), &mut self.changes);
                        self.outcome.refuse(place, error);
                        if mode != InsertMode::Unordered {
                            break;
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            self.accept(&batch, mode)?;
            if self.outcome.refused.len() > refused_before {
                if mode != InsertMode::Unordered {
                    return Ok(());
                }
                self.outcome.refused.sort_unstable_by_key(|(place, _)| *place);
            }
            self.changes.spill_if_full()?;
        }
        Ok(())
    }

    fn begin_batch(&self, documents: usize) -> Batch {
        let documents = documents.min(BATCH);
        let mut ends = Vec::with_capacity((documents + 1) * self.changes.indexes.len());
        ends.extend(self.changes.indexes.iter().map(|entries| entries.len()));
        Batch { places: Vec::with_capacity(documents), first_record: self.changes.records.len(), ends }
    }

    /// Looks up the keys of the batch together, then accepts or rejects its documents in order.
    fn accept(&mut self, batch: &Batch, mode: InsertMode) -> Result<()> {
        let mut loaded = self.load_keys(batch)?;
        let mut refused = Vec::new();
        for (document, &place) in batch.places.iter().enumerate() {
            match self.check(batch, document, &mut loaded) {
                Ok(id) => {
                    self.outcome.ids.push((place, id));
                    if place + 1 < self.documents {
                        self.accepted.add(batch, document, self.collection, &self.changes);
                    }
                }
                Err(error) => {
                    refused.push(document);
                    self.outcome.refuse(place, error);
                    if mode != InsertMode::Unordered {
                        // Only the first rejected document is reported; those after it count as not tried.
                        self.outcome.refused.retain(|(refused, _)| *refused <= place);
                        break;
                    }
                }
            }
        }
        match refused.first() {
            Some(first) if mode != InsertMode::Unordered => batch.truncate(*first, &mut self.changes),
            _ => batch.remove(&refused, &mut self.changes),
        }
        Ok(())
    }

    /// Loads the keys of the batch that may be stored: record keys that are not above all stored ones, and keys in unique
    /// indexes.
    fn load_keys(&mut self, batch: &Batch) -> Result<LoadedKeys> {
        let Self { collection, reader, greatest_stored, changes, .. } = self;
        let records = changes.records.iter_from(batch.first_record).map(|(key, _)| key);
        let records = records.filter(|key| greatest_stored.may_exist(key));
        let mut wanted: Vec<(Keyspace, &[u8])> = records.map(|key| (collection.records, key)).collect();
        let mut first_of_index = Vec::new();
        for (at, index) in unique_indexes(collection) {
            let Some(entries) = changes.indexes.get(at) else { continue };
            first_of_index.push(wanted.len());
            let first = batch.entries(at, 0).start;
            wanted.extend(entries.iter_from(first).map(|(key, _)| (index.keyspace, key)));
        }
        if !wanted.is_empty() {
            reader.load(&wanted)?;
        }
        Ok(LoadedKeys { next_record: 0, first_of_index })
    }

    /// Checks that neither the store nor an accepted document has a key of this document of the batch. Returns its `_id`.
    fn check(&mut self, batch: &Batch, document: usize, loaded: &mut LoadedKeys) -> Result<OwnedValue> {
        let Self { collection, reader, greatest_stored, accepted, changes, outcome, .. } = self;
        let (key, stored) = changes.records.get(batch.first_record + document).unwrap_or_default();
        let id = id(Doc::stored(stored)).to_owned();
        let mut exists = false;
        if greatest_stored.may_exist(key) {
            exists = reader.loaded(loaded.next_record).is_some();
            loaded.next_record += 1;
        }
        if exists || accepted.contains_record(key, outcome) {
            return Err(duplicate_id(collection, &id));
        }
        for ((at, index), first) in unique_indexes(collection).zip(&loaded.first_of_index) {
            let Some(entries) = changes.indexes.get(at) else { continue };
            let range = batch.entries(at, document);
            let loaded = first + range.start - batch.entries(at, 0).start;
            for ((key, _), loaded) in entries.iter_from(range.start).take(range.len()).zip(loaded..) {
                if reader.loaded(loaded).is_some() || accepted.contains_unique(at, key) {
                    return Err(duplicate(collection, index, key, Some(Doc::stored(stored))));
                }
            }
        }
        Ok(id)
    }
}

/// Positions among the keys that were loaded in one call for a batch: first its record keys, then its keys in each
/// unique index.
struct LoadedKeys {
    /// The next record key that was loaded.
    next_record: usize,
    /// The first key of each unique index.
    first_of_index: Vec<usize>,
}

fn unique_indexes(collection: &CollectionInfo) -> impl Iterator<Item = (usize, &Arc<IndexInfo>)> {
    collection.maintained().enumerate().filter(|(_, index)| index.unique)
}

impl GreatestKey {
    fn of(view: &impl View, records: Keyspace) -> Result<Self> {
        if view.round_trips().is_some() {
            return Ok(Self::Unknown);
        }
        let mut cursor = view.cursor(records, Bounds::ALL)?;
        cursor.seek(Edge::Last)?;
        Ok(cursor.current().map_or(Self::NoKeys, |(key, _)| Self::Key(key.into())))
    }

    fn may_exist(&self, key: &[u8]) -> bool {
        match self {
            Self::NoKeys => false,
            Self::Key(greatest) => key <= &**greatest,
            Self::Unknown => true,
        }
    }
}

impl Batch {
    fn end_document(&mut self, place: usize, changes: &ChangeSet) {
        self.places.push(place);
        self.ends.extend(changes.indexes.iter().map(|entries| entries.len()));
    }

    /// Returns the entries of a document of the batch in one index.
    fn entries(&self, index: usize, document: usize) -> std::ops::Range<usize> {
        let indexes = self.ends.len() / (self.places.len() + 1);
        let end = |documents: usize| self.ends.get(documents * indexes + index).copied().unwrap_or_default();
        end(document)..end(document + 1)
    }

    /// Removes all but the first `documents` documents of the batch from the changes.
    fn truncate(&self, documents: usize, changes: &mut ChangeSet) {
        changes.records.truncate(self.first_record + documents);
        for (at, entries) in changes.indexes.iter_mut().enumerate() {
            entries.truncate(self.entries(at, documents).start);
        }
    }

    /// Removes documents of the batch, in ascending order, from the changes.
    fn remove(&self, documents: &[usize], changes: &mut ChangeSet) {
        if documents.is_empty() {
            return;
        }
        changes.records.remove(documents.iter().map(|document| self.first_record + document));
        for (at, entries) in changes.indexes.iter_mut().enumerate() {
            entries.remove(documents.iter().flat_map(|document| self.entries(at, *document)));
        }
    }
}

impl Accepted {
    fn contains_record(&mut self, key: &[u8], outcome: &InsertOutcome) -> bool {
        if self.greatest.as_deref().is_none_or(|greatest| greatest < key) {
            return false;
        }
        let keys =
            || outcome.ids.iter().filter_map(|(_, id)| record_key(id.as_value()).ok()).map(|key| key.as_slice().into());
        self.records.get_or_insert_with(|| keys().collect()).contains(key)
    }

    fn contains_unique(&self, index: usize, key: &[u8]) -> bool {
        self.unique.get(index).is_some_and(|keys| keys.contains(key))
    }

    /// Adds the keys of a document of the batch.
    fn add(&mut self, batch: &Batch, document: usize, collection: &CollectionInfo, changes: &ChangeSet) {
        let Some((key, _)) = changes.records.get(batch.first_record + document) else { return };
        if let Some(records) = &mut self.records {
            records.insert(key.into());
        }
        let greatest = self.greatest.get_or_insert_default();
        if greatest.as_slice() < key {
            greatest.clear();
            greatest.extend_from_slice(key);
        }
        for (at, _) in unique_indexes(collection) {
            let (Some(entries), Some(keys)) = (changes.indexes.get(at), self.unique.get_mut(at)) else { continue };
            let range = batch.entries(at, document);
            keys.extend(entries.iter_from(range.start).take(range.len()).map(|(key, _)| SmallBytes::from(key)));
        }
    }
}
