use std::{borrow::Cow, cmp::Ordering, ops::Range, sync::Arc};

use bson::RawDocument;
use slate_query::{
    order,
    raw::{Doc, OwnedValue, Value, Writer, store, validate},
    update,
};
use slate_store::{Points, Transaction, View};

use super::{
    Session,
    changes::{Changes, Claims},
    entries::EntryMaker,
    prepare::{check_size, id, kept},
    update::ROUND,
};
use crate::{
    Result,
    catalog::{CollectionInfo, IndexInfo},
    entry::record_key,
    interrupt::Interrupt,
};

/// What a document means to the one that has its `_id` already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutKind {
    /// It takes its place.
    Replace,
    /// Its fields are written over the other's.
    Merge,
}

/// What came of putting documents by their `_id`s.
#[derive(Debug, Default)]
pub(crate) struct PutOutcome {
    /// How many were there already.
    pub(crate) matched: u64,
    /// How many of those changed.
    pub(crate) modified: u64,
    /// How many were inserted.
    pub(crate) inserted: u64,
    /// The `_id` of each document given, as it is stored.
    pub(crate) ids: Vec<OwnedValue>,
}

/// A record that the round touches: as it was, and where the documents of the round have laid out what it is so far.
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

/// Lays a document out as it is stored.
fn lay(document: &[u8], laid: &mut Vec<u8>) -> Range<usize> {
    let start = laid.len();
    store(Doc::new(document), laid);
    start..laid.len()
}

/// The different keys in their order, and for each key given its place among them.
fn in_order(keys: &[Option<Vec<u8>>]) -> (Vec<&[u8]>, Vec<Option<usize>>) {
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

/// Whether two of the keys are the same.
fn has_repeats(keys: &[Option<Vec<u8>>]) -> bool {
    let mut sorted: Vec<&[u8]> = keys.iter().flatten().map(Vec::as_slice).collect();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair.first() == pair.last())
}

impl<T: Transaction> Session<T> {
    /// Puts documents by their `_id`s, in their order: of two with one `_id` the second meets the first. The call is
    /// atomic, and what is unique must be so at its end.
    pub(crate) fn put(
        &mut self,
        name: &str,
        documents: &[impl AsRef<RawDocument>],
        kind: PutKind,
        interrupt: &Interrupt,
    ) -> Result<PutOutcome> {
        self.check_open()?;
        let interrupt = &self.limited(interrupt);
        // Before anything is changed: a document that is not valid leaves the transaction as it was.
        let keys = documents.iter().map(|document| key(document.as_ref().as_bytes())).collect::<Result<Vec<_>>>()?;
        let collection = self.written_or_created(name)?;
        let mut outcome = PutOutcome::default();
        // Of one `_id` given twice the second meets the first: the two are settled together, in one round.
        if documents.len() <= ROUND || has_repeats(&keys) {
            interrupt.check()?;
            let mut changes = self.put_round(&collection, documents, &keys, kind, &mut outcome)?;
            let unique = changes.check_unique(&self.transaction.view(), &collection);
            if unique.is_err() {
                // What it was refused for is something that the transaction has read.
                self.read_all(&collection);
            }
            unique?;
            let applied = changes.apply(self, &collection);
            self.end_on_error(applied)?;
        } else {
            let put = self.put_in_rounds(&collection, documents, &keys, kind, &mut outcome, interrupt);
            self.end_on_error(put)?;
        }
        Ok(outcome)
    }

    fn put_in_rounds(
        &mut self,
        collection: &Arc<CollectionInfo>,
        documents: &[impl AsRef<RawDocument>],
        keys: &[Option<Vec<u8>>],
        kind: PutKind,
        outcome: &mut PutOutcome,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let mut claims = Claims::default();
        for (documents, keys) in documents.chunks(ROUND).zip(keys.chunks(ROUND)) {
            interrupt.check()?;
            let mut changes = self.put_round(collection, documents, keys, kind, outcome)?;
            changes.take_claims(collection, &mut claims);
            changes.apply(self, collection)?;
        }
        claims.settle(self, collection)
    }

    /// What these documents make of the collection. Nothing is written yet.
    fn put_round(
        &mut self,
        collection: &Arc<CollectionInfo>,
        documents: &[impl AsRef<RawDocument>],
        keys: &[Option<Vec<u8>>],
        kind: PutKind,
        outcome: &mut PutOutcome,
    ) -> Result<Changes> {
        let mut changes = Changes::default();
        let mut maker = EntryMaker::default();
        let mut unchanged = Vec::new();
        let mut inserted = 0_usize;
        let (wanted, places) = in_order(keys);
        {
            let view = self.transaction.view();
            let mut records = view.points(collection.records)?;
            records.load(&wanted)?;
            let as_it_was = |at| Touched { old: records.loaded(at).map(Doc::stored), new: None };
            let mut touched: Vec<Touched<'_>> = (0..wanted.len()).map(as_it_was).collect();
            let mut laid = Vec::new();
            for (document, place) in documents.iter().zip(places) {
                let document = Doc::new(document.as_ref().as_bytes());
                match place.and_then(|place| touched.get_mut(place)) {
                    Some(record) => put_one(record, document, kind, &mut laid, outcome)?,
                    // It has no `_id` and is given one, which nothing has.
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
        Ok(changes)
    }
}

/// Whether a document's entries may differ from those of another of the same `_id`. They come of the fields that the
/// index's paths begin with, and of their order; a partial index may be about any field.
fn differs(index: &IndexInfo, old: Doc<'_>, new: Doc<'_>) -> bool {
    index.partial.is_some()
        || old.get("_id") != new.get("_id")
        || !index.pattern.first_values(old).eq(index.pattern.first_values(new))
}

/// The key of a document's record; none where it has no `_id` yet.
fn key(document: &[u8]) -> Result<Option<Vec<u8>>> {
    let document = validate(document)?;
    check_size(document.bytes())?;
    // Refused here, so that nothing has been changed yet: what only `prepare` looks at.
    let Some(id) = document.get("_id") else { return Ok(None) };
    super::prepare::check_id(id)?;
    record_key(id).map(Some)
}

/// What a document of the call, which is valid, makes of a record.
fn put_one(
    record: &mut Touched<'_>,
    document: Doc<'_>,
    kind: PutKind,
    laid: &mut Vec<u8>,
    outcome: &mut PutOutcome,
) -> Result<()> {
    let new = match (record.current(laid), kind) {
        (None, _) => {
            outcome.inserted += 1;
            Some(kept(document)?)
        }
        (Some(there), PutKind::Replace) => {
            outcome.matched += 1;
            let new = kept(document)?;
            (there.bytes() != &*new).then_some(new)
        }
        (Some(there), PutKind::Merge) => {
            outcome.matched += 1;
            merged(there, document)?.map(Cow::Owned)
        }
    };
    if let Some(new) = new {
        outcome.modified += u64::from(record.current(laid).is_some());
        record.new = Some(lay(&new, laid));
    }
    outcome.ids.push(record.current(laid).map_or(Value::NULL, id).to_owned());
    Ok(())
}

/// The document with the patch's fields written over it. An `_id` that is equal and of another type stays as it was.
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
