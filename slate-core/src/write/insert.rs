use std::sync::Arc;

use ahash::AHashSet;
use bson::{Bson, RawDocument};
use slate_query::raw::{Doc, OwnedValue};
use slate_store::{Bounds, Cursor, Edge, Transaction, View};

use super::{
    Session,
    batch::{self, Batch},
    changes::{Changes, duplicate, duplicate_id},
    entries::{Entries, EntryMaker},
    prepare::id,
};
use crate::{
    Error, Result,
    catalog::CollectionInfo,
    entry::{USUAL_RECORD_KEY, write_record_key},
    interrupt::Interrupt,
    lookup::lookup,
};

/// The result of an insert.
#[derive(Debug, Default)]
pub(crate) struct InsertOutcome {
    /// The `_id`s of the inserted documents with their positions, in order.
    pub(crate) ids: Vec<(usize, OwnedValue)>,
    /// The rejected documents with their positions, and the errors.
    pub(crate) refused: Vec<(usize, Error)>,
}

impl InsertOutcome {
    /// Returns the `_id`s of the inserted documents in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Bson> {
        self.ids.iter().filter_map(|(_, id)| id.as_value().to_bson())
    }
}

/// What a rejected document means for the other documents of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InsertMode {
    /// No document is inserted. If an earlier batch was applied already, the transaction ends.
    AllOrNone,
    /// Earlier documents are inserted, later ones are not tried.
    Ordered,
    /// All other documents are inserted.
    Unordered,
}

impl<T: Transaction> Session<T> {
    /// Inserts documents in their order. A rejected document changes nothing.
    ///
    /// # Errors
    /// Fails if the storage fails or the operation is interrupted. Rejected documents are returned in the outcome.
    pub(crate) fn insert(
        &mut self,
        name: &str,
        documents: &[impl AsRef<RawDocument>],
        mode: InsertMode,
        interrupt: &Interrupt,
    ) -> Result<InsertOutcome> {
        self.check_open()?;
        let interrupt = &self.limited(interrupt);
        let collection = self.written_or_created(name)?;
        let mut outcome = InsertOutcome { ids: Vec::with_capacity(documents.len()), refused: Vec::new() };
        let (mut next, mut changes) = (0, Changes::default());
        while let Some(batch) = Batch::at(documents, next, batch::MOST) {
            let refused = outcome.refused.len();
            let inserted = self.insert_batch(&collection, &batch, mode, &mut changes, &mut outcome, interrupt);
            if batch.first > 0 {
                self.end_on_error(inserted)?
            } else {
                inserted?
            }
            if mode != InsertMode::Unordered && outcome.refused.len() > refused {
                if mode == InsertMode::AllOrNone && batch.first > 0 {
                    self.end("an insertion of many documents was refused after some had been inserted");
                }
                break;
            }
            next = batch.end();
        }
        if !outcome.refused.is_empty() {
            // The reason of a rejection is part of the transaction's reads.
            self.read_all(&collection);
        }
        Ok(outcome)
    }

    /// Fails if a call of several rounds must end. If a round was applied already, the transaction ends.
    pub(super) fn interrupted_in_round(&mut self, applied: u64, interrupt: &Interrupt) -> Result<()> {
        let checked = interrupt.check();
        if applied > 0 { self.end_on_error(checked) } else { checked }
    }

    fn insert_batch(
        &mut self,
        collection: &Arc<CollectionInfo>,
        batch: &Batch<'_, impl AsRef<RawDocument>>,
        mode: InsertMode,
        changes: &mut Changes,
        outcome: &mut InsertOutcome,
        interrupt: &Interrupt,
    ) -> Result<()> {
        interrupt.check()?;
        let (mut maker, mut interrupt) = (EntryMaker::default(), interrupt.clone());
        changes.reserve(batch.documents.len(), batch.bytes);
        {
            let view = self.transaction.view();
            let mut check = Check::open(&view, collection, changes)?;
            for (place, document) in (batch.first..).zip(batch.iter()) {
                interrupt.tick()?;
                match check.document(document, &mut maker, changes) {
                    Ok(id) => outcome.ids.push((place, id)),
                    Err(error) if error.is_refusal() => {
                        outcome.refused.push((place, error));
                        match mode {
                            InsertMode::AllOrNone => return Ok(()),
                            InsertMode::Ordered => break,
                            InsertMode::Unordered => {}
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            check.give_entries(changes);
        }
        self.note(&collection.name, maker.take_notes());
        self.added(&collection.name, i64::try_from(changes.len()).unwrap_or(i64::MAX));
        let applied = changes.apply(self, collection);
        self.end_on_error(applied)
    }
}

/// Checks documents one after the other against the collection and the documents before.
struct Check<'c, V: View> {
    collection: &'c CollectionInfo,
    reader: V::PointReader,
    /// The greatest key that is there or that this batch adds: none above it needs to be looked for.
    greatest: Option<Vec<u8>>,
    /// The keys of this batch, as soon as one of them is not above all others.
    taken: Option<AHashSet<Vec<u8>>>,
    /// By the place of the index.
    indexes: Vec<IndexCheck>,
    /// The key of the document that is being checked.
    record_key: Vec<u8>,
}

struct IndexCheck {
    /// The entries of the batch's documents.
    entries: Entries,
    /// Number of entries that do not belong to the current document.
    settled: usize,
    /// The keys that this batch adds, if the index is unique.
    unique: Option<AHashSet<Vec<u8>>>,
}

impl<'c, V: View> Check<'c, V> {
    fn open(view: &V, collection: &'c CollectionInfo, changes: &mut Changes) -> Result<Self> {
        let indexes = collection.maintained().enumerate().map(|(at, index)| {
            let unique = index.unique.then(AHashSet::new);
            // The buffer of the batch before.
            let entries = std::mem::take(changes.fresh(at));
            IndexCheck { settled: entries.len(), entries, unique }
        });
        let mut cursor = view.cursor(collection.records, Bounds::ALL)?;
        cursor.seek(Edge::Last)?;
        Ok(Self {
            collection,
            reader: view.point_reader()?,
            greatest: cursor.current().map(|(key, _)| key.to_vec()),
            taken: None,
            indexes: indexes.collect(),
            record_key: Vec::with_capacity(USUAL_RECORD_KEY),
        })
    }

    /// Checks a document and adds it to `changes`. Returns its `_id`.
    fn document(
        &mut self,
        document: &RawDocument,
        maker: &mut EntryMaker,
        changes: &mut Changes,
    ) -> Result<OwnedValue> {
        let document = changes.prepare(document)?;
        let id = match self.admit(changes.prepared(&document), maker, changes) {
            Ok(id) => id,
            Err(error) => {
                // Removes what the rejected document has added.
                self.indexes.iter_mut().for_each(|check| check.entries.truncate(check.settled));
                changes.refuse(&document);
                return Err(error);
            }
        };
        for check in &mut self.indexes {
            if let Some(unique) = &mut check.unique {
                unique.extend(check.entries.iter_from(check.settled).map(|(key, _)| key.to_vec()));
            }
            check.settled = check.entries.len();
        }
        changes.put_prepared(&self.record_key, document);
        if let Some(taken) = &mut self.taken {
            taken.insert(self.record_key.clone());
        }
        let greatest = self.greatest.get_or_insert_default();
        if *greatest < self.record_key {
            greatest.clone_from(&self.record_key);
        }
        Ok(id)
    }

    /// Validates a document, encodes it for storage, and creates its entries. Returns its `_id`.
    fn admit(&mut self, document: Doc<'_>, maker: &mut EntryMaker, changes: &Changes) -> Result<OwnedValue> {
        let id = id(document).to_owned();
        write_record_key(id.as_value(), &mut self.record_key)?;
        if self.is_taken(changes)? {
            return Err(duplicate_id(self.collection, &id));
        }
        self.make_entries(document, maker)?;
        Ok(id)
    }

    /// Creates the entries of the document. In a unique index each key must be free.
    fn make_entries(&mut self, document: Doc<'_>, maker: &mut EntryMaker) -> Result<()> {
        if self.indexes.is_empty() {
            return Ok(());
        }
        let mut document = maker.document(&self.record_key, document);
        for (at, (index, check)) in self.collection.maintained().zip(&mut self.indexes).enumerate() {
            document.append(at, index, &mut check.entries)?;
            let Some(unique) = &mut check.unique else { continue };
            for (key, _) in check.entries.iter_from(check.settled) {
                if unique.contains(key) || lookup(&mut self.reader, index.keyspace, key)?.is_some() {
                    return Err(duplicate(self.collection, index, key));
                }
            }
        }
        Ok(())
    }

    /// Moves the entries of the accepted documents to the changes.
    fn give_entries(&mut self, changes: &mut Changes) {
        for (at, check) in self.indexes.iter_mut().enumerate() {
            *changes.fresh(at) = std::mem::take(&mut check.entries);
        }
    }

    /// Returns whether a record or a document of this batch has the key.
    fn is_taken(&mut self, changes: &Changes) -> Result<bool> {
        let key = &self.record_key;
        if self.greatest.as_ref().is_none_or(|greatest| greatest < key) {
            return Ok(false);
        }
        let taken = self.taken.get_or_insert_with(|| changes.keys().map(<[u8]>::to_vec).collect());
        Ok(taken.contains(key) || lookup(&mut self.reader, self.collection.records, key)?.is_some())
    }
}
