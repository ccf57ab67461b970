use std::sync::Arc;

use ahash::AHashSet;
use bson::{Bson, RawDocument};
use slate_query::raw::{Doc, OwnedValue};
use slate_store::{Bounds, Cursor, Edge, Points, Transaction, View};

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
};

/// What came of an insertion.
#[derive(Debug, Default)]
pub(crate) struct InsertOutcome {
    /// The `_id`s of the documents inserted, by their places, in order.
    pub(crate) ids: Vec<(usize, OwnedValue)>,
    /// The documents refused, by their places, and why.
    pub(crate) refused: Vec<(usize, Error)>,
}

impl InsertOutcome {
    /// The `_id`s of the documents inserted, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Bson> {
        self.ids.iter().filter_map(|(_, id)| id.as_value().to_bson())
    }
}

/// What a refused document means for the others of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InsertMode {
    /// None is inserted. Where some were already, in an earlier batch, the transaction is over.
    AllOrNone,
    /// Those before it stay, those after it are not tried.
    Ordered,
    /// All others are inserted.
    Unordered,
}

impl<T: Transaction> Session<T> {
    /// Inserts documents in their order. A refused document leaves nothing behind.
    ///
    /// # Errors
    /// Where the storage fails or the operation is interrupted; a refused document is told in the outcome.
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
            // Why a document was refused is something that the transaction has read.
            self.read_all(&collection);
        }
        Ok(outcome)
    }

    /// Looks whether a call of several rounds must end; where some were applied already, so does the transaction.
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

/// Checks documents one after the other, each against the collection and those before it.
struct Check<'c, V: View> {
    collection: &'c CollectionInfo,
    records: V::Points,
    /// The greatest key that is there or that this batch adds: none above it needs to be looked for.
    greatest: Option<Vec<u8>>,
    /// The keys that this batch adds, once one of them is not above all others.
    taken: Option<AHashSet<Vec<u8>>>,
    /// By the place of the index.
    indexes: Vec<IndexCheck<V>>,
    /// The key of the document that is being checked.
    record_key: Vec<u8>,
}

struct IndexCheck<V: View> {
    /// The entries of the batch's documents.
    entries: Entries,
    /// How many of them are not of the document that is being checked.
    settled: usize,
    unique: Option<UniqueKeys<V>>,
}

/// The keys of a unique index: those that are there, and those that this batch adds.
struct UniqueKeys<V: View> {
    there: V::Points,
    taken: AHashSet<Vec<u8>>,
}

impl<'c, V: View> Check<'c, V> {
    fn open(view: &V, collection: &'c CollectionInfo, changes: &mut Changes) -> Result<Self> {
        let indexes = collection.maintained().enumerate().map(|(at, index)| {
            let there = if index.unique { Some(view.points(index.keyspace)?) } else { None };
            let unique = there.map(|there| UniqueKeys { there, taken: AHashSet::new() });
            // The buffer of the batch before.
            let entries = std::mem::take(changes.fresh(at));
            Ok(IndexCheck { settled: entries.len(), entries, unique })
        });
        let mut cursor = view.cursor(collection.records, Bounds::ALL)?;
        cursor.seek(Edge::Last)?;
        Ok(Self {
            collection,
            records: view.points(collection.records)?,
            greatest: cursor.current().map(|(key, _)| key.to_vec()),
            taken: None,
            indexes: indexes.collect::<Result<_>>()?,
            record_key: Vec::with_capacity(USUAL_RECORD_KEY),
        })
    }

    /// Checks a document; where nothing is wrong with it, it goes to `changes`. Gives back its `_id`.
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
                // It leaves nothing behind.
                self.indexes.iter_mut().for_each(|check| check.entries.truncate(check.settled));
                changes.refuse(&document);
                return Err(error);
            }
        };
        for check in &mut self.indexes {
            if let Some(unique) = &mut check.unique {
                unique.taken.extend(check.entries.iter_from(check.settled).map(|(key, _)| key.to_vec()));
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

    /// Checks a document as it will be stored, and makes its entries. Gives back its `_id`.
    fn admit(&mut self, document: Doc<'_>, maker: &mut EntryMaker, changes: &Changes) -> Result<OwnedValue> {
        let id = id(document).to_owned();
        write_record_key(id.as_value(), &mut self.record_key)?;
        if self.is_taken(changes)? {
            return Err(duplicate_id(self.collection, &id));
        }
        self.make_entries(document, maker)?;
        Ok(id)
    }

    /// The entries of the document, each of which must be free where an index is unique.
    fn make_entries(&mut self, document: Doc<'_>, maker: &mut EntryMaker) -> Result<()> {
        if self.indexes.is_empty() {
            return Ok(());
        }
        let mut document = maker.document(&self.record_key, document);
        for (at, (index, check)) in self.collection.maintained().zip(&mut self.indexes).enumerate() {
            document.append(at, index, &mut check.entries)?;
            let Some(unique) = &mut check.unique else { continue };
            for (key, _) in check.entries.iter_from(check.settled) {
                if unique.taken.contains(key) || unique.there.get(key)?.is_some() {
                    return Err(duplicate(self.collection, index, key));
                }
            }
        }
        Ok(())
    }

    /// Hands over the entries of the documents in which nothing was wrong.
    fn give_entries(&mut self, changes: &mut Changes) {
        for (at, check) in self.indexes.iter_mut().enumerate() {
            *changes.fresh(at) = std::mem::take(&mut check.entries);
        }
    }

    /// Whether a record has the key already, or a document of this batch.
    fn is_taken(&mut self, changes: &Changes) -> Result<bool> {
        let key = &self.record_key;
        if self.greatest.as_ref().is_none_or(|greatest| greatest < key) {
            return Ok(false);
        }
        let taken = self.taken.get_or_insert_with(|| changes.keys().map(<[u8]>::to_vec).collect());
        Ok(taken.contains(key) || self.records.get(key)?.is_some())
    }
}
