use std::{cmp::Ordering, sync::Arc};

use bson::RawDocument;
use slate_query::{
    order,
    raw::{Doc, OwnedValue, SmallBytes, Value, Writer, validate},
    update::{self, EmptyTimestamps},
};
use slate_store::{PointReader, Transaction, View};

use super::{
    Session,
    change_set::ChangeSet,
    prepare::{id, prepare},
};
use crate::{
    Result,
    call_context::CallContext,
    catalog::{CollectionInfo, IndexInfo},
    entry::record_key,
    interrupt::Interrupt,
};

/// What a document does to the stored record with its `_id`.
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
    /// Number of documents whose `_id` was stored, or was in an earlier document of the call.
    pub(crate) matched: u64,
    /// Number of the matched documents that changed the record.
    pub(crate) modified: u64,
    /// Number of inserted documents.
    pub(crate) inserted: u64,
    /// The `_id` of each given document, as stored; empty for rows.
    pub(crate) ids: Vec<OwnedValue>,
}

/// Number of records that are loaded together at first.
const FIRST_LOAD: usize = 256;

/// Maximum number of records that are loaded together.
pub(super) const LARGEST_LOAD: usize = 1_024;

/// Approximate maximum size of the records of a load, in bytes. The size is estimated from the previous load.
pub(super) const LOAD_BYTES: usize = 16 << 20;

impl<T: Transaction> Session<T> {
    /// Puts documents by their `_id`s in order: of two with the same `_id`, the second is applied to the result of the
    /// first. The call is atomic, and uniqueness is checked at its end.
    pub(crate) fn put(
        &mut self,
        name: &str,
        documents: &[impl AsRef<RawDocument>],
        kind: PutKind,
        call: &CallContext,
    ) -> Result<PutOutcome> {
        let call = &self.limited(call);
        call.during(|| self.put_limited(name, documents, kind, call))
    }

    fn put_limited(
        &mut self,
        name: &str,
        documents: &[impl AsRef<RawDocument>],
        kind: PutKind,
        call: &CallContext,
    ) -> Result<PutOutcome> {
        self.begin_call()?;
        call.check()?;
        let collection = self.written_or_new(name)?;
        let changes = self.change_set(&collection, call);
        let mut put = Put::new(kind, &collection, changes, documents.len());
        put.add(&self.transaction.view(), documents, &mut call.interrupt.clone())?;
        self.finish_put(put, call)
    }

    /// Records that unchanged records were read; checks and applies the changes.
    pub(super) fn finish_put(&mut self, put: Put<'_>, call: &CallContext) -> Result<PutOutcome> {
        let Put { collection, mut changes, outcome, unchanged, .. } = put;
        changes.growth = i64::try_from(outcome.inserted).unwrap_or(i64::MAX);
        for key in unchanged {
            self.read_key(collection, &key)?;
        }
        self.check_and_apply(collection, changes, call)?;
        Ok(outcome)
    }
}

/// The changes and the result of a call that puts documents, so far.
pub(super) struct Put<'c> {
    kind: PutKind,
    collection: &'c Arc<CollectionInfo>,
    changes: ChangeSet,
    outcome: PutOutcome,
    /// Keys of records that were read and stay as they are.
    unchanged: Vec<SmallBytes>,
}

/// A document of a call, with its position and the record key of its `_id`.
pub(super) struct Given<'d> {
    pub(super) key: SmallBytes,
    pub(super) place: usize,
    pub(super) document: &'d RawDocument,
}

impl<'c> Put<'c> {
    /// Begins a call that returns this number of `_id`s.
    pub(super) fn new(
        kind: PutKind,
        collection: &'c Arc<CollectionInfo>,
        mut changes: ChangeSet,
        documents: usize,
    ) -> Self {
        if kind == PutKind::Replace {
            changes.log_replacements();
        }
        let outcome = PutOutcome { ids: vec![Value::NULL.to_owned(); documents], ..PutOutcome::default() };
        Self { kind, collection, changes, outcome, unchanged: Vec::new() }
    }

    /// Collects the changes: first the documents without `_id`, then the others in the order of their record keys.
    fn add(
        &mut self,
        view: &impl View,
        documents: &[impl AsRef<RawDocument>],
        interrupt: &mut Interrupt,
    ) -> Result<()> {
        let mut given = Vec::with_capacity(documents.len());
        for (place, document) in documents.iter().map(AsRef::as_ref).enumerate() {
            match key_of(document)? {
                Some(key) => given.push(Given { key, place, document }),
                None => {
                    interrupt.tick()?;
                    self.insert_new(place, document)?;
                }
            }
        }
        given.sort_unstable_by(|a, b| a.key.as_slice().cmp(&b.key).then(a.place.cmp(&b.place)));
        let mut groups = given.chunk_by(|a, b| a.key == b.key);
        let mut reader = view.point_reader()?;
        let mut load = FIRST_LOAD;
        loop {
            let loaded: Vec<&[Given<'_>]> = groups.by_ref().take(load).collect();
            if loaded.is_empty() {
                return Ok(());
            }
            let bytes = self.put_loaded(&mut reader, &loaded, interrupt)?;
            let each = bytes.checked_div(loaded.len()).unwrap_or_default().max(1);
            load = (LOAD_BYTES / each).clamp(1, LARGEST_LOAD);
        }
    }

    /// Loads the records of these groups together, and adds the changes. A group has the documents with one `_id`. Returns the bytes that were
    /// loaded.
    pub(super) fn put_loaded(
        &mut self,
        reader: &mut impl PointReader,
        groups: &[&[Given<'_>]],
        interrupt: &mut Interrupt,
    ) -> Result<usize> {
        let keys = groups.iter().filter_map(|group| group.first());
        let keys: Vec<_> = keys.map(|first| (self.collection.records, first.key.as_slice())).collect();
        reader.load(&keys)?;
        let mut bytes = 0;
        for (at, group) in groups.iter().enumerate() {
            interrupt.tick()?;
            let old = reader.loaded(at).map(Doc::stored);
            bytes += old.map_or(0, |old| old.bytes().len());
            self.put(old, group)?;
            self.changes.spill_if_full()?;
        }
        Ok(bytes)
    }

    /// Adds a document without `_id`. It gets a new one, which no record has.
    pub(super) fn insert_new(&mut self, place: usize, document: &RawDocument) -> Result<()> {
        let row = self.changes.records.len();
        self.changes.insert(self.collection, document)?;
        self.outcome.inserted += 1;
        self.set_id(place, row);
        self.changes.spill_if_full()
    }

    /// Applies the documents with one `_id`, in order, to the record with this `_id`.
    fn put(&mut self, old: Option<Doc<'_>>, documents: &[Given<'_>]) -> Result<()> {
        let row = self.changes.records.len();
        for given in documents {
            let existed = old.is_some() || self.changes.records.len() > row;
            let has_changed = self.apply(row, old, given)?;
            self.outcome.inserted += u64::from(!existed);
            self.outcome.matched += u64::from(existed);
            self.outcome.modified += u64::from(existed && has_changed);
            match old {
                Some(old) if self.changes.records.len() == row => set(&mut self.outcome.ids, given.place, id(old)),
                _ => self.set_id(given.place, row),
            }
        }
        if self.changes.records.len() == row {
            self.unchanged.extend(documents.first().map(|first| first.key.clone()));
        }
        let differs = |index: &IndexInfo, new: Doc<'_>| old.is_none_or(|old| differs(index, old, new));
        self.changes.add_entries(self.collection, row, old, differs)
    }

    /// Replaces, or merges with, a record by a document of the call. The record is row `row` of the changes if an earlier document of the call
    /// changed it, and `old` otherwise; without either, the document is inserted. Returns whether the record changes.
    fn apply(&mut self, row: usize, old: Option<Doc<'_>>, given: &Given<'_>) -> Result<bool> {
        let Self { kind, changes, .. } = self;
        let next = changes.records.len();
        match changes.document(row).or(old).filter(|_| *kind == PutKind::Merge) {
            Some(there) => {
                let Some(merged) = merged(there, validate(given.document.as_bytes())?)? else { return Ok(false) };
                changes.write_record(&given.key, Doc::new(&merged));
            }
            None => changes.records.try_write(|out| prepare(given.document, EmptyTimestamps::Current, out))?,
        }
        let before = if next > row { changes.document(row) } else { old };
        let has_changed = before.map(|before| before.bytes()) != changes.document(next).map(|after| after.bytes());
        match (has_changed, next > row) {
            (true, true) => changes.records.remove(std::iter::once(row)),
            (true, false) => {}
            (false, _) => changes.records.truncate(next),
        }
        Ok(has_changed)
    }

    /// Sets the `_id` that the call returns for the document at position `place`: that of the record in row `row` of
    /// the changes.
    fn set_id(&mut self, place: usize, row: usize) {
        if let Some(document) = self.changes.document(row) {
            set(&mut self.outcome.ids, place, id(document));
        }
    }
}

fn set(ids: &mut [OwnedValue], place: usize, id: Value<'_>) {
    if let Some(slot) = ids.get_mut(place) {
        *slot = id.to_owned();
    }
}

/// Returns the record key of a document's `_id`, if it has one.
pub(super) fn key_of(document: &RawDocument) -> Result<Option<SmallBytes>> {
    let Some(id) = Doc::new(document.as_bytes()).get("_id") else { return Ok(None) };
    match record_key(id) {
        Ok(key) => Ok(Some(key.into())),
        Err(error) => {
            validate(document.as_bytes())?;
            Err(error)
        }
    }
}

/// Returns whether a record's entries in the index can change when `old` is replaced by `new`. False only if the values
/// that the index is over are the same, so that no entry has to be computed.
fn differs(index: &IndexInfo, old: Doc<'_>, new: Doc<'_>) -> bool {
    index.partial.is_some()
        || index.wildcard.is_some()
        || id(old) != id(new)
        || !index.pattern.first_values(old).eq(index.pattern.first_values(new))
}

/// Returns the document with the fields of the patch; `None` if it does not change. If the `_id`s are equal but of different types,
/// the stored `_id` remains.
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
