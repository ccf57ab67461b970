use std::{borrow::Cow, cmp::Ordering, ops::Range, sync::Arc};

use bson::RawDocument;
use slate_query::{
    order,
    raw::{Doc, OwnedValue, SmallBytes, Value, Writer, store},
    update,
};
use slate_store::{PointReader, Transaction, View};

use super::{
    Session,
    batch::{self, Batch},
    changes::Changes,
    entries::EntryMaker,
    prepare::{check_id, check_size, id, kept, tabulate},
};
use crate::{
    Result,
    catalog::{CollectionInfo, IndexInfo},
    entry::{record_key, write_record_key},
    interrupt::Interrupt,
};

/// Most documents of the first round of a call.
const ROUND: usize = 256;

/// Most documents of later rounds, if their records are small.
const LARGEST_ROUND: usize = 1_024;

/// What a document does to the existing record with its `_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutKind {
    /// Replaces it.
    Replace,
    /// Overwrites its fields.
    Merge,
}

/// The result of putting documents by their `_id`s.
#[derive(Debug, Default)]
pub(crate) struct PutOutcome {
    /// Number of documents whose `_id` existed.
    pub(crate) matched: u64,
    /// Number of existing documents that changed.
    pub(crate) modified: u64,
    /// Number of inserted documents.
    pub(crate) inserted: u64,
    /// The `_id` of each given document, as stored.
    pub(crate) ids: Vec<OwnedValue>,
}

/// A record that the round changes: its old document, and the position of its current new document.
struct Touched<'d> {
    old: Option<Doc<'d>>,
    new: Option<Range<usize>>,
}

impl<'d> Touched<'d> {
    fn current<'l>(&self, laid: &'l [u8]) -> Option<Doc<'l>>
    where
        'd: 'l,
    {
        let new = self.new.as_ref().and_then(|new| laid.get(new.clone())).map(Doc::stored);
        new.or(self.old)
    }
}

/// The validated documents of a call.
struct Given<'d, D> {
    documents: &'d [D],
    /// Their total size in bytes.
    length: usize,
    /// The keys of their records. `None` for a document without `_id`.
    keys: Vec<Option<SmallBytes>>,
    /// Positions of their field tables in one buffer. `None` for a document that is changed before it is stored.
    tables: Vec<Option<Range<usize>>>,
    bytes: Vec<u8>,
    /// Reused buffer for a key.
    key: Vec<u8>,
}

impl<'d, D: AsRef<RawDocument>> Given<'d, D> {
    /// Validates the documents of a call.
    fn of(documents: &'d [D], interrupt: &Interrupt) -> Result<Self> {
        let (keys, tables) = (Vec::with_capacity(documents.len()), Vec::with_capacity(documents.len()));
        let mut given = Self { documents, length: 0, keys, tables, bytes: Vec::new(), key: Vec::new() };
        let mut interrupt = interrupt.clone();
        for document in batch::iter(documents) {
            interrupt.tick()?;
            given.check(document.as_bytes())?;
        }
        Ok(given)
    }

    fn check(&mut self, document: &[u8]) -> Result<()> {
        self.length = self.length.saturating_add(document.len());
        let table = tabulate(document, &mut self.bytes)?;
        check_size(document)?;
        // Rejects it here, before anything was changed.
        let key = match Doc::new(document).get("_id") {
            Some(id) => {
                check_id(id)?;
                write_record_key(id, &mut self.key)?;
                Some(self.key.as_slice().into())
            }
            None => None,
        };
        self.keys.push(key);
        self.tables.push(table);
        Ok(())
    }

    /// Returns the documents at these positions as a round.
    fn round(&self, places: Range<usize>) -> Round<'_, D> {
        Round {
            documents: self.documents.get(places.clone()).unwrap_or_default(),
            keys: self.keys.get(places.clone()).unwrap_or_default(),
            tables: self.tables.get(places).unwrap_or_default(),
            bytes: &self.bytes,
        }
    }

    /// Returns empty changes with memory for the changes of one round.
    fn changes(&self) -> Changes {
        let mut changes = Changes::default();
        changes.reserve(self.documents.len().min(batch::MOST), self.length.min(batch::BYTES));
        changes
    }
}

/// The documents of one round of a call.
struct Round<'g, D> {
    documents: &'g [D],
    keys: &'g [Option<SmallBytes>],
    tables: &'g [Option<Range<usize>>],
    bytes: &'g [u8],
}

impl<'g, D> Round<'g, D> {
    /// Returns the field table of the document at this position, if it is stored unchanged.
    fn table(&self, at: usize) -> Option<&'g [u8]> {
        self.bytes.get(self.tables.get(at)?.clone()?)
    }
}

/// The new state of a record.
enum New<'n> {
    /// The document itself, with its field table.
    AsGiven(&'n [u8]),
    Built(Cow<'n, [u8]>),
}

/// Returns the distinct keys in order, and for each given key its position among them.
fn in_order(keys: &[Option<SmallBytes>]) -> (Vec<&[u8]>, Vec<Option<usize>>) {
    let mut order: Vec<(&[u8], usize)> =
        keys.iter().enumerate().filter_map(|(at, key)| Some((key.as_deref()?, at))).collect();
    order.sort_unstable();
    let (mut ordered, mut places) = (Vec::with_capacity(order.len()), vec![None; keys.len()]);
    for (key, at) in order {
        if ordered.last() != Some(&key) {
            ordered.push(key);
        }
        if let Some(place) = places.get_mut(at) {
            *place = ordered.len().checked_sub(1);
        }
    }
    (ordered, places)
}

/// Returns whether two of the keys are equal.
fn has_repeats(keys: &[Option<SmallBytes>]) -> bool {
    let mut sorted: Vec<&[u8]> = keys.iter().flatten().map(SmallBytes::as_slice).collect();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair.first() == pair.last())
}

impl<T: Transaction> Session<T> {
    /// Puts documents by their `_id`s in order: of two with the same `_id`, the second is applied to the result of the
    /// first. The call is atomic, and uniqueness is checked at its end.
    pub(crate) fn put(
        &mut self,
        name: &str,
        documents: &[impl AsRef<RawDocument>],
        kind: PutKind,
        interrupt: &Interrupt,
    ) -> Result<PutOutcome> {
        self.check_open()?;
        let interrupt = &self.limited(interrupt);
        // Validates before anything is changed, so that an invalid document leaves the transaction unchanged.
        let given = Given::of(documents, interrupt)?;
        let collection = self.written_or_created(name)?;
        let mut outcome = PutOutcome::default();
        let mut changes = given.changes();
        // Documents with the same `_id` must be in the same round.
        let is_one_round = Batch::at(documents, 0, ROUND).is_none_or(|batch| batch.end() == documents.len());
        if is_one_round || has_repeats(&given.keys) {
            let whole = given.round(0..documents.len());
            self.put_round(&collection, &whole, kind, &mut changes, &mut outcome, interrupt)?;
            self.apply_whole(&collection, changes)?;
        } else {
            self.put_in_rounds(&collection, &given, kind, changes, &mut outcome, interrupt)?;
        }
        Ok(outcome)
    }

    /// Collects and applies rounds as long as memory permits. If one round contains all documents, uniqueness is
    /// checked before anything is applied.
    fn put_in_rounds(
        &mut self,
        collection: &Arc<CollectionInfo>,
        given: &Given<'_, impl AsRef<RawDocument>>,
        kind: PutKind,
        mut changes: Changes,
        outcome: &mut PutOutcome,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let mut claims = None;
        let (mut next, mut most) = (0, ROUND);
        while let Some(batch) = Batch::at(given.documents, next, most) {
            if !changes.have_room_for(batch.documents.len(), batch.bytes) {
                changes.take_claims(collection, claims.get_or_insert_default());
                let applied = changes.apply(self, collection);
                self.end_on_error(applied)?;
            }
            next = batch.end();
            let round = given.round(batch.first..next);
            let put = self.put_round(collection, &round, kind, &mut changes, outcome, interrupt);
            let bytes = if claims.is_some() { self.end_on_error(put)? } else { put? };
            most = batch::fitting(batch.documents.len(), bytes).clamp(ROUND, LARGEST_ROUND);
        }
        let Some(mut claims) = claims else { return self.apply_whole(collection, changes) };
        changes.take_claims(collection, &mut claims);
        let settled = changes.apply(self, collection).and_then(|()| claims.settle(self, collection));
        self.end_on_error(settled)
    }

    /// Computes the changes of these documents without writing them. Returns the size of the old and new records in
    /// bytes.
    fn put_round(
        &mut self,
        collection: &Arc<CollectionInfo>,
        round: &Round<'_, impl AsRef<RawDocument>>,
        kind: PutKind,
        changes: &mut Changes,
        outcome: &mut PutOutcome,
        interrupt: &Interrupt,
    ) -> Result<usize> {
        interrupt.check()?;
        let mut interrupt = interrupt.clone();
        let documents = round.documents;
        let mut maker = EntryMaker::default();
        let mut unchanged = Vec::new();
        let (mut inserted, mut bytes) = (0_usize, 0);
        let (wanted, places) = in_order(round.keys);
        {
            let view = self.transaction.view();
            let mut records = view.point_reader()?;
            records.load(&wanted.iter().map(|key| (collection.records, *key)).collect::<Vec<_>>())?;
            let as_it_was = |at| Touched { old: records.loaded(at).map(Doc::stored), new: None };
            let mut touched: Vec<Touched<'_>> = (0..wanted.len()).map(as_it_was).collect();
            let given_bytes = documents.iter().map(|document| document.as_ref().as_bytes().len()).sum();
            let mut laid = Vec::with_capacity(given_bytes);
            for (at, (document, place)) in documents.iter().zip(&places).enumerate() {
                interrupt.tick()?;
                let document = Doc::new(document.as_ref().as_bytes());
                match place.and_then(|place| touched.get_mut(place)) {
                    Some(record) => put_one(record, (document, round.table(at)), kind, &mut laid, outcome)?,
                    // A document without `_id` gets a new one, which no record has.
                    None => {
                        let new = kept(document)?;
                        let key = record_key(id(Doc::new(&new)))?;
                        outcome.ids.push(id(Doc::new(&new)).to_owned());
                        outcome.inserted += 1;
                        inserted += 1;
                        let documents = (None, Some(Doc::new(&new)));
                        changes.entries(&view, collection, &mut maker, &key, documents, |_| true)?;
                        changes.put_record(&key, Doc::new(&new));
                    }
                }
            }
            for (key, record) in wanted.into_iter().zip(touched) {
                let (old, new) = (record.old, record.new.and_then(|new| laid.get(new)));
                bytes += old.map_or(0, |old| old.bytes().len()) + new.map_or(0, <[u8]>::len);
                let Some(new) = new else {
                    unchanged.push(key);
                    continue;
                };
                inserted += usize::from(old.is_none());
                let document = Doc::stored(new);
                let differs = |index: &IndexInfo| old.is_none_or(|old| differs(index, old, document));
                changes.entries(&view, collection, &mut maker, key, (old, Some(document)), differs)?;
                changes.put_stored(key, new);
            }
        }
        for key in unchanged {
            self.read_key(collection, key)?;
        }
        self.note(&collection.name, maker.take_notes());
        self.added(&collection.name, i64::try_from(inserted).unwrap_or(i64::MAX));
        Ok(bytes)
    }
}

/// Returns whether the entries of two documents with the same `_id` can differ. Entries depend on the first fields of
/// the index's paths and on their order; the condition of a partial index can depend on any field.
fn differs(index: &IndexInfo, old: Doc<'_>, new: Doc<'_>) -> bool {
    index.partial.is_some()
        || id(old) != id(new)
        || !index.pattern.first_values(old).eq(index.pattern.first_values(new))
}

/// Applies a document of the call, with its field table if it is stored unchanged, to a record.
fn put_one(
    record: &mut Touched<'_>,
    (document, table): (Doc<'_>, Option<&[u8]>),
    kind: PutKind,
    laid: &mut Vec<u8>,
    outcome: &mut PutOutcome,
) -> Result<()> {
    let kept = || match table {
        Some(table) => Ok(New::AsGiven(table)),
        None => kept(document).map(New::Built),
    };
    let new = match (record.current(laid), kind) {
        (None, _) => {
            outcome.inserted += 1;
            Some(kept()?)
        }
        (Some(there), PutKind::Replace) => {
            outcome.matched += 1;
            let new = kept()?;
            let bytes = if let New::Built(built) = &new { built } else { document.bytes() };
            (there.bytes() != bytes).then_some(new)
        }
        (Some(there), PutKind::Merge) => {
            outcome.matched += 1;
            merged(there, document)?.map(Cow::Owned).map(New::Built)
        }
    };
    if let Some(new) = new {
        outcome.modified += u64::from(record.current(laid).is_some());
        let start = laid.len();
        match new {
            New::AsGiven(table) => {
                laid.extend_from_slice(table);
                laid.extend_from_slice(document.bytes());
            }
            New::Built(new) => store(Doc::new(&new), laid),
        }
        record.new = Some(start..laid.len());
    }
    outcome.ids.push(record.current(laid).map_or(Value::NULL, id).to_owned());
    Ok(())
}

/// Returns the document with the fields of the patch. An equal `_id` of another type keeps its type.
fn merged(there: Doc<'_>, patch: Doc<'_>) -> Result<Option<Vec<u8>>> {
    let (Some(old), Some(new)) = (there.get("_id"), patch.get("_id")) else {
        return Ok(update::merge(there, patch)?);
    };
    if old == new || order::compare(old, new) != Ordering::Equal {
        return Ok(update::merge(there, patch)?);
    }
    let mut same = Writer::new();
    same.append(b"_id", old);
    patch.elements().filter(|field| field.name != b"_id").for_each(|field| same.append(field.name, field.value));
    Ok(update::merge(there, Doc::new(&same.finish()))?)
}
