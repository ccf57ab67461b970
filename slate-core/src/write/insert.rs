use std::{collections::BTreeSet, sync::Arc};

use bson::RawDocumentBuf;
use slate_query::raw::{Doc, OwnedValue};
use slate_store::{Points, Transaction, View};

use super::{
    Session,
    changes::{Changes, duplicate_id},
    entries::{EntryMaker, EntryMap},
    prepare::{Prepared, prepare},
};
use crate::{Error, Result, catalog::CollectionInfo, interrupt::Interrupt};

/// What came of an insertion.
#[derive(Debug, Default)]
pub(crate) struct InsertOutcome {
    /// The `_id`s of the documents inserted, in their order.
    pub(crate) ids: Vec<OwnedValue>,
    /// The documents refused, by their places, and why.
    pub(crate) refused: Vec<(usize, Error)>,
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

/// So many documents are checked together and then applied together.
const BATCH: usize = 1_024;

impl<T: Transaction> Session<T> {
    /// Inserts documents in their order. A refused document leaves nothing behind.
    ///
    /// # Errors
    /// Where the storage fails or the operation is interrupted; a refused document is told in the outcome.
    pub(crate) fn insert(
        &mut self,
        name: &str,
        documents: &[RawDocumentBuf],
        mode: InsertMode,
        interrupt: &Interrupt,
    ) -> Result<InsertOutcome> {
        self.check_open()?;
        let collection = self.written_or_created(name)?;
        let mut outcome = InsertOutcome::default();
        for (round, batch) in documents.chunks(BATCH).enumerate() {
            interrupt.check()?;
            let refused = self.insert_batch(&collection, batch, mode, &mut outcome.ids)?;
            let stop = mode != InsertMode::Unordered && !refused.is_empty();
            outcome.refused.extend(refused.into_iter().map(|(at, error)| (round * BATCH + at, error)));
            if stop {
                if mode == InsertMode::AllOrNone && round > 0 {
                    self.end("an insertion of many documents was refused after some had been inserted");
                }
                break;
            }
        }
        Ok(outcome)
    }

    /// Inserts one batch; gives back the documents refused.
    fn insert_batch(
        &mut self,
        collection: &Arc<CollectionInfo>,
        documents: &[RawDocumentBuf],
        mode: InsertMode,
        ids: &mut Vec<OwnedValue>,
    ) -> Result<Vec<(usize, Error)>> {
        let mut maker = EntryMaker::default();
        let mut changes = Changes::default();
        let mut refused = Vec::new();
        {
            let view = self.transaction.view();
            let mut check = Check::open(&view, collection)?;
            for (at, document) in documents.iter().enumerate() {
                match check.document(document.as_bytes(), &mut maker) {
                    Ok((prepared, entries)) => {
                        ids.push(prepared.id().to_owned());
                        for (at, entries) in entries {
                            changes.entries(at, EntryMap::new(), entries);
                        }
                        changes.put_record(prepared.record_key, prepared.bytes.into_owned());
                    }
                    Err(error) if is_refusal(&error) => {
                        refused.push((at, error));
                        match mode {
                            InsertMode::AllOrNone => return Ok(refused),
                            InsertMode::Ordered => break,
                            InsertMode::Unordered => {}
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        self.note(&collection.name, maker.take_notes());
        self.added(&collection.name, i64::try_from(changes.len()).unwrap_or(i64::MAX));
        let applied = changes.apply(self, collection);
        self.end_on_error(applied)?;
        Ok(refused)
    }
}

/// Whether the document is at fault and not the storage.
fn is_refusal(error: &Error) -> bool {
    use crate::ErrorKind;
    matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported | ErrorKind::DuplicateKey | ErrorKind::TooLarge)
}

/// Checks documents one after the other, each against the collection and those before it.
struct Check<'c, V: View> {
    collection: &'c CollectionInfo,
    records: V::Points,
    /// By the place of the index: the keys of the unique ones.
    unique: Vec<Option<UniqueKeys<V>>>,
    taken: BTreeSet<Vec<u8>>,
}

/// The keys of a unique index: those that are there, and those that this batch adds.
struct UniqueKeys<V: View> {
    there: V::Points,
    taken: BTreeSet<Vec<u8>>,
}

impl<'c, V: View> Check<'c, V> {
    fn open(view: &V, collection: &'c CollectionInfo) -> Result<Self> {
        let unique = collection.indexes.iter().map(|index| {
            let there = if index.unique { Some(view.points(index.keyspace)?) } else { None };
            Ok(there.map(|there| UniqueKeys { there, taken: BTreeSet::new() }))
        });
        Ok(Self {
            collection,
            records: view.points(collection.records)?,
            unique: unique.collect::<Result<_>>()?,
            taken: BTreeSet::new(),
        })
    }

    fn document<'d>(
        &mut self,
        bytes: &'d [u8],
        maker: &mut EntryMaker,
    ) -> Result<(Prepared<'d>, Vec<(usize, EntryMap)>)> {
        let prepared = prepare(bytes)?;
        if self.taken.contains(&prepared.record_key) || self.records.get(&prepared.record_key)?.is_some() {
            return Err(duplicate_id(self.collection, &prepared.id().to_owned()));
        }
        let document = Doc::new(&prepared.bytes);
        let entries = maker.of_document(self.collection, &prepared.record_key, document, |_| true)?;
        for (at, entries) in &entries {
            let (Some(Some(unique)), Some(index)) = (self.unique.get_mut(*at), self.collection.indexes.get(*at)) else {
                continue;
            };
            for key in entries.keys() {
                if unique.taken.contains(key) || unique.there.get(key)?.is_some() {
                    return Err(super::changes::duplicate(self.collection, index, key));
                }
            }
        }
        for (at, entries) in &entries {
            if let Some(Some(unique)) = self.unique.get_mut(*at) {
                unique.taken.extend(entries.keys().cloned());
            }
        }
        self.taken.insert(prepared.record_key.clone());
        Ok((prepared, entries))
    }
}
