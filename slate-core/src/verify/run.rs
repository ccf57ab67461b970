use std::fmt;

use slate_query::raw::{Doc, store, validate};
use slate_store::{Bounds, Cursor, Edge, Keyspace, PointReader, View};

use crate::{
    Result,
    catalog::{CollectionInfo, IndexInfo},
    entry::{IndexEntry, record_key},
    interrupt::Interrupt,
    write::{Entries, EntryMaker},
};

/// The progress of a [`Verify`](crate::Verify).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyProgress<'r> {
    /// The collection being checked.
    pub collection: &'r str,
    /// Number of its documents checked so far.
    pub documents: u64,
    /// Number of faults found so far, in all collections.
    pub findings: u64,
}

/// The result of a [`Verify`](crate::Verify).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "the report may contain faults"]
pub struct VerifyReport {
    /// Number of documents checked.
    pub documents: u64,
    /// Number of index entries that belong to a document.
    pub entries: u64,
    /// The first 10,000 faults.
    pub findings: Vec<VerifyFinding>,
    /// Number of all faults.
    pub finding_count: u64,
}

impl VerifyReport {
    /// Returns whether there are no faults.
    pub fn is_sound(&self) -> bool {
        self.finding_count == 0
    }
}

/// One inconsistency found by a [`Verify`](crate::Verify).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyFinding {
    /// The kind of inconsistency.
    pub kind: VerifyFindingKind,
    /// The collection that contains it.
    pub collection: String,
    /// The affected index, if any.
    pub index: Option<String>,
    /// Describes the record or entry and what is wrong with it.
    pub message: String,
}

/// The kinds of [`VerifyFinding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VerifyFindingKind {
    /// A record is not a valid document, or its field table does not match the document.
    InvalidDocument,
    /// A document is not stored under the key of its `_id`.
    MisplacedDocument,
    /// A document cannot be indexed by the index's definition.
    NotIndexable,
    /// An index lacks an entry of a document. Queries that use the index miss the document.
    MissingEntry,
    /// An entry has the wrong value. Covered queries may return wrong results.
    WrongEntry,
    /// An index has an entry that belongs to no document.
    StrayEntry,
    /// A part of the store does not have its checksum, or cannot be read. The finding names the documents or entries that may be wrong or
    /// missing; its collection is empty if the part belongs to none.
    DamagedStorage,
    /// The catalog lacks a flag that an index's entries require (multikey, truncated). Queries rely on these flags.
    WrongCatalog,
}

impl fmt::Display for VerifyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)?;
        if !self.collection.is_empty() {
            write!(f, " in {}", self.collection)?;
        }
        if let Some(index) = &self.index {
            write!(f, ", index {index}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Maximum number of faults in a report, which bounds its memory.
const MAX_REPORTED: usize = 10_000;

/// Number of documents between two calls of the progress callback.
const PROGRESS_INTERVAL: u64 = 1_024;

/// A running verification and its report.
pub(crate) struct VerifyRun<'p> {
    pub(crate) interrupt: Interrupt,
    pub(crate) progress: &'p mut dyn FnMut(&VerifyProgress<'_>),
    pub(crate) report: VerifyReport,
}

impl VerifyRun<'_> {
    pub(super) fn fault(
        &mut self,
        kind: VerifyFindingKind,
        collection: &CollectionInfo,
        index: Option<&IndexInfo>,
        message: String,
    ) {
        let index = index.map(|index| index.name.to_string());
        self.found(VerifyFinding { kind, collection: collection.name.to_string(), index, message });
    }

    pub(crate) fn found(&mut self, finding: VerifyFinding) {
        self.report.finding_count += 1;
        if self.report.findings.len() < MAX_REPORTED {
            self.report.findings.push(finding);
        }
    }

    fn report_progress(&mut self, collection: &CollectionInfo, documents: u64) {
        if documents.is_multiple_of(PROGRESS_INTERVAL) {
            let findings = self.report.finding_count;
            (self.progress)(&VerifyProgress { collection: &collection.name, documents, findings });
        }
    }
}

/// Checks every record of a collection, every index entry that its document requires, and that the indexes have no other
/// entries. Skips indexes that are being built.
pub(crate) fn verify<V: View>(view: &V, collection: &CollectionInfo, run: &mut VerifyRun<'_>) -> Result<()> {
    let mut maker = EntryMaker::default();
    let mut reader = view.point_reader()?;
    let mut found = vec![0_u64; collection.indexes.len()];
    let mut cursor = view.cursor(collection.records, Bounds::ALL)?;
    let mut more = cursor.seek(Edge::First)?;
    let mut documents = 0;
    let mut expected = Vec::new();
    while more {
        run.interrupt.tick()?;
        if let Some((key, stored)) = cursor.current() {
            if let Some(document) = check_record(collection, key, stored, &mut expected, run) {
                for (at, found) in found.iter_mut().enumerate() {
                    *found += check_entries(collection, at, key, document, &mut reader, &mut maker, run)?;
                }
            }
            documents += 1;
            run.report.documents += 1;
            run.report_progress(collection, documents);
        }
        more = cursor.step_forward()?;
    }
    for (at, _) in maker.take_properties() {
        let index = collection.indexes.get(at).map(|index| &**index);
        let message = "its entries contain arrays or truncated values, but the catalog lacks the flag".into();
        run.fault(VerifyFindingKind::WrongCatalog, collection, index, message);
    }
    for (index, found) in collection.indexes.iter().zip(found) {
        run.report.entries += found;
        let count = view.count(index.keyspace, Bounds::ALL, |_| true)?;
        // The index contains all found entries, so equal counts mean that there is no surplus entry.
        if count != Some(found) {
            find_stray_entries(view, collection, index, &mut maker, run)?;
        }
    }
    Ok(())
}

/// Returns the document of a record if it is valid and stored under its own key. The document is returned without its field
/// table, because a wrong table would make correct index entries look wrong.
fn check_record<'r>(
    collection: &CollectionInfo,
    key: &[u8],
    stored: &'r [u8],
    expected: &mut Vec<u8>,
    run: &mut VerifyRun<'_>,
) -> Option<Doc<'r>> {
    let document = match validate(Doc::stored(stored).bytes()) {
        Ok(document) => document,
        Err(error) => {
            let message = format!("the record under the key {} is not a valid document: {error}", hex(key));
            run.fault(VerifyFindingKind::InvalidDocument, collection, None, message);
            return None;
        }
    };
    expected.clear();
    store(document, expected);
    if expected != stored {
        let message = format!("the record under the key {} has a wrong field table", hex(key));
        run.fault(VerifyFindingKind::InvalidDocument, collection, None, message);
    }
    let own = document.get("_id").and_then(|id| record_key(id).ok());
    if own.as_deref() == Some(key) {
        return Some(document);
    }
    let message = match document.get("_id") {
        Some(id) => format!("the document with _id {id:?} is stored under the key {}", hex(key)),
        None => format!("the document under the key {} has no _id", hex(key)),
    };
    run.fault(VerifyFindingKind::MisplacedDocument, collection, None, message);
    None
}

/// Looks up each entry that a document requires. Returns the number of entries that exist, including those with a wrong value, unless another record
/// owns them.
fn check_entries(
    collection: &CollectionInfo,
    at: usize,
    key: &[u8],
    document: Doc<'_>,
    reader: &mut impl PointReader,
    maker: &mut EntryMaker,
    run: &mut VerifyRun<'_>,
) -> Result<u64> {
    let Some(index) = collection.indexes.get(at) else { return Ok(0) };
    let mut wanted = Entries::default();
    if let Err(error) = maker.document(key, document).of_index(collection, at, &mut wanted) {
        let message = format!("the document with {}: {error}", id(document));
        run.fault(VerifyFindingKind::NotIndexable, collection, Some(index), message);
        return Ok(0);
    }
    let mut found = 0;
    for (entry, value) in wanted.iter() {
        match lookup(reader, index.keyspace, entry)? {
            Some(stored) if stored == value => found += 1,
            Some(stored) => {
                let owner = IndexEntry::parse(index, entry, stored).ok().map(|entry| entry.record_key == key);
                // An entry of another record is counted with that record.
                found += u64::from(owner != Some(false));
                let message =
                    format!("the entry {} of the document with {} has a wrong value", hex(entry), id(document));
                run.fault(VerifyFindingKind::WrongEntry, collection, Some(index), message);
            }
            None => {
                let message = format!("the entry {} of the document with {} is missing", hex(entry), id(document));
                run.fault(VerifyFindingKind::MissingEntry, collection, Some(index), message);
            }
        }
    }
    Ok(found)
}

/// Reports each entry of an index that no document requires.
fn find_stray_entries<V: View>(
    view: &V,
    collection: &CollectionInfo,
    index: &IndexInfo,
    maker: &mut EntryMaker,
    run: &mut VerifyRun<'_>,
) -> Result<()> {
    let at = collection.indexes.iter().position(|other| other.name == index.name).unwrap_or(usize::MAX);
    let mut reader = view.point_reader()?;
    let mut wanted = Entries::default();
    let mut cursor = view.cursor(index.keyspace, Bounds::ALL)?;
    let mut more = cursor.seek(Edge::First)?;
    while more {
        run.interrupt.tick()?;
        if let Some((key, value)) = cursor.current() {
            let stray = match IndexEntry::parse(index, key, value) {
                Err(error) => Some(error.to_string()),
                Ok(entry) => match lookup(&mut reader, collection.records, entry.record_key)? {
                    None => Some("its document does not exist".into()),
                    Some(stored) => {
                        let document = Doc::new(Doc::stored(stored).bytes());
                        let made = maker.document(entry.record_key, document).of_index(collection, at, &mut wanted);
                        let message = || format!("the document with {} does not have it", id(document));
                        (made.is_err() || !wanted.contains_key(key)).then(message)
                    }
                },
            };
            if let Some(reason) = stray {
                run.fault(
                    VerifyFindingKind::StrayEntry,
                    collection,
                    Some(index),
                    format!("the entry {}: {reason}", hex(key)),
                );
            }
        }
        more = cursor.step_forward()?;
    }
    Ok(())
}

fn id(document: Doc<'_>) -> String {
    document.get("_id").map_or_else(|| "no _id".into(), |id| format!("_id {id:?}"))
}

/// Formats the first 32 bytes of a key for a message.
pub(super) fn hex(key: &[u8]) -> String {
    let mut shown: String = key.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
    if key.len() > 32 {
        shown.push('…');
    }
    shown
}

/// Looks up one key with a reader that is reused.
fn lookup<'r>(reader: &'r mut impl PointReader, keyspace: Keyspace, key: &[u8]) -> Result<Option<&'r [u8]>> {
    reader.load(&[(keyspace, key)])?;
    Ok(reader.loaded(0))
}
