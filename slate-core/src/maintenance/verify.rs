use std::{fmt, time::Duration};

use slate_query::raw::{Doc, store, validate};
use slate_store::{Bounds, Cursor, Edge, Estimate, Points, View};

use crate::{
    CancelToken, Result,
    catalog::{CollectionInfo, IndexInfo},
    entry::{Entry, record_key},
    interrupt::Interrupt,
    operation::scope::Scope,
    write::{Entries, EntryMaker},
};

/// A look through a collection for damage; see [`ReadCollection::verify`](crate::ReadCollection::verify) and
/// [`Database::verify`](crate::Database::verify).
#[must_use = "nothing is verified until `run`"]
pub struct Verify<'p> {
    scope: Scope,
    collections: Vec<String>,
    interrupt: Interrupt,
    progress: Box<dyn FnMut(&VerifyProgress<'_>) + 'p>,
}

/// How far a [`Verify`] has come.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyProgress<'r> {
    /// The collection that is being looked through.
    pub collection: &'r str,
    /// How many of its documents have been.
    pub documents: u64,
    /// How many faults have been found, in all collections.
    pub faults: u64,
}

/// What a [`Verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "faults may have been found"]
pub struct VerifyReport {
    /// How many documents were looked at.
    pub documents: u64,
    /// How many index entries were found where they belong.
    pub entries: u64,
    /// The first faults found, up to 10,000.
    pub faults: Vec<Fault>,
    /// How many faults there are in all.
    pub fault_count: u64,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.fault_count == 0
    }
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The collection it is in.
    pub collection: String,
    /// The index at fault, where it is one.
    pub index: Option<String>,
    /// The record or the entry, and what is wrong with it, in words.
    pub message: String,
}

/// What may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// A record is no valid document, or the table of its fields is not the document's.
    InvalidDocument,
    /// A document does not lie under the key of its `_id`.
    MisplacedDocument,
    /// A document cannot be indexed as the index says.
    NotIndexable,
    /// An index lacks an entry of a document: questions that it serves miss the document.
    MissingEntry,
    /// An entry does not hold what it should: covered questions may be answered wrongly.
    WrongEntry,
    /// An index has an entry that no document asks for.
    StrayEntry,
    /// The catalog does not say of an index what its entries show (arrays, cut values), and questions rely on it.
    WrongCatalog,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in {}", self.kind, self.collection)?;
        if let Some(index) = &self.index {
            write!(f, ", index {index}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// So many faults are told.
const TOLD: usize = 10_000;

/// So many documents pass between two reports of progress.
const STRIDE: u64 = 1_024;

impl<'p> Verify<'p> {
    pub(crate) fn new(scope: Scope, collections: Vec<String>) -> Self {
        Self { scope, collections, interrupt: Interrupt::default(), progress: Box::new(|_| {}) }
    }

    /// Tells, every thousand or so documents, how far it has come.
    pub fn progress<'q>(self, progress: impl FnMut(&VerifyProgress<'_>) + 'q) -> Verify<'q> {
        let Self { scope, collections, interrupt, .. } = self;
        Verify { scope, collections, interrupt, progress: Box::new(progress) }
    }

    /// Ends with an error when it is not done within this time from now.
    pub fn deadline(mut self, within: Duration) -> Self {
        self.interrupt.within(within);
        self
    }

    /// Ends with an error when the token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.interrupt.by(token);
        self
    }

    /// Looks through all of it, as of one commit, while others go on writing. A fault is told in the report, which is no
    /// error of the call.
    ///
    /// Cost: reads every document once and looks up every index entry; an index with strays is read as a whole.
    ///
    /// # Errors
    /// Where the storage itself fails or finds damage of its own; when interrupted.
    pub fn run(mut self) -> Result<VerifyReport> {
        let mut run =
            VerifyRun { interrupt: self.interrupt, progress: &mut *self.progress, report: VerifyReport::default() };
        for collection in &self.collections {
            self.scope.verify(collection, &mut run)?;
        }
        Ok(run.report)
    }
}

impl fmt::Debug for Verify<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verify").field("collections", &self.collections).finish_non_exhaustive()
    }
}

/// A look through collections, on its way.
pub(crate) struct VerifyRun<'p> {
    interrupt: Interrupt,
    progress: &'p mut dyn FnMut(&VerifyProgress<'_>),
    report: VerifyReport,
}

impl VerifyRun<'_> {
    fn fault(&mut self, kind: FaultKind, collection: &CollectionInfo, index: Option<&IndexInfo>, message: String) {
        self.report.fault_count += 1;
        if self.report.faults.len() < TOLD {
            let index = index.map(|index| index.name.to_string());
            self.report.faults.push(Fault { kind, collection: collection.name.to_string(), index, message });
        }
    }

    fn pass(&mut self, collection: &CollectionInfo, documents: u64) {
        if documents.is_multiple_of(STRIDE) {
            let faults = self.report.fault_count;
            (self.progress)(&VerifyProgress { collection: &collection.name, documents, faults });
        }
    }
}

/// Looks through a collection: every record, every entry that it asks for, and whether an index holds any other. Indexes
/// that are being built are left out.
pub(crate) fn verify<V: View>(view: &V, collection: &CollectionInfo, run: &mut VerifyRun<'_>) -> Result<()> {
    let mut maker = EntryMaker::default();
    let mut indexes = Vec::with_capacity(collection.indexes.len());
    for index in &collection.indexes {
        indexes.push((view.points(index.keyspace)?, 0_u64));
    }
    let mut cursor = view.cursor(collection.records, Bounds::ALL)?;
    let mut more = cursor.seek(Edge::First)?;
    let mut documents = 0;
    let mut again = Vec::new();
    while more {
        run.interrupt.tick()?;
        if let Some((key, stored)) = cursor.current() {
            if let Some(document) = sound(collection, key, stored, &mut again, run) {
                for (at, (points, found)) in indexes.iter_mut().enumerate() {
                    *found += entries(collection, at, key, document, points, &mut maker, run)?;
                }
            }
            documents += 1;
            run.report.documents += 1;
            run.pass(collection, documents);
        }
        more = cursor.step_forward()?;
    }
    for (at, _) in maker.take_notes() {
        let index = collection.indexes.get(at).map(|index| &**index);
        let message = "its entries hold arrays or cut values of which the catalog does not know".into();
        run.fault(FaultKind::WrongCatalog, collection, index, message);
    }
    for (index, (_, found)) in collection.indexes.iter().zip(indexes) {
        run.report.entries += found;
        let (Estimate::Exact(there) | Estimate::AtLeast(there)) =
            view.estimate(index.keyspace, Bounds::ALL, u64::MAX)?;
        // Every entry that was found is one of these: where there are no more, there is no other.
        if there != found {
            strays(view, collection, index, &mut maker, run)?;
        }
    }
    Ok(())
}

/// The document of a record, where it is valid and lies under its own key. It goes without its table: were that wrong, it
/// would look as if sound entries were wrong too.
fn sound<'r>(
    collection: &CollectionInfo,
    key: &[u8],
    stored: &'r [u8],
    again: &mut Vec<u8>,
    run: &mut VerifyRun<'_>,
) -> Option<Doc<'r>> {
    let document = match validate(Doc::stored(stored).bytes()) {
        Ok(document) => document,
        Err(error) => {
            let message = format!("the record of key {} is no document: {error}", hex(key));
            run.fault(FaultKind::InvalidDocument, collection, None, message);
            return None;
        }
    };
    again.clear();
    store(document, again);
    if again != stored {
        let message = format!("the record of key {} has a wrong table of its fields", hex(key));
        run.fault(FaultKind::InvalidDocument, collection, None, message);
    }
    let own = document.get("_id").and_then(|id| record_key(id).ok());
    if own.as_deref() == Some(key) {
        return Some(document);
    }
    let message = match document.get("_id") {
        Some(id) => format!("the document of _id {id:?} lies under the key {}", hex(key)),
        None => format!("the document under the key {} has no _id", hex(key)),
    };
    run.fault(FaultKind::MisplacedDocument, collection, None, message);
    None
}

/// Looks up each entry that a document asks for; gives back how many are there, right or wrong.
fn entries(
    collection: &CollectionInfo,
    at: usize,
    key: &[u8],
    document: Doc<'_>,
    points: &mut impl Points,
    maker: &mut EntryMaker,
    run: &mut VerifyRun<'_>,
) -> Result<u64> {
    let Some(index) = collection.indexes.get(at) else { return Ok(0) };
    let mut wanted = Entries::default();
    if let Err(error) = maker.document(key, document).of_index(collection, at, &mut wanted) {
        let message = format!("the document of {}: {error}", id(document));
        run.fault(FaultKind::NotIndexable, collection, Some(index), message);
        return Ok(0);
    }
    let mut found = 0;
    for (entry, value) in wanted.iter() {
        match points.get(entry)? {
            Some(there) if there == value => found += 1,
            Some(there) => {
                let owner = Entry::parse(index, entry, there).ok().map(|entry| entry.record_key == key);
                // An entry that is another record's is not this one's, and that one counts it.
                found += u64::from(owner != Some(false));
                let message =
                    format!("the entry {} of the document of {} holds something else", hex(entry), id(document));
                run.fault(FaultKind::WrongEntry, collection, Some(index), message);
            }
            None => {
                let message = format!("the entry {} of the document of {} is not there", hex(entry), id(document));
                run.fault(FaultKind::MissingEntry, collection, Some(index), message);
            }
        }
    }
    Ok(found)
}

/// Looks at each entry of an index that holds others than documents ask for.
fn strays<V: View>(
    view: &V,
    collection: &CollectionInfo,
    index: &IndexInfo,
    maker: &mut EntryMaker,
    run: &mut VerifyRun<'_>,
) -> Result<()> {
    let at = collection.indexes.iter().position(|held| held.name == index.name).unwrap_or(usize::MAX);
    let mut records = view.points(collection.records)?;
    let mut wanted = Entries::default();
    let mut cursor = view.cursor(index.keyspace, Bounds::ALL)?;
    let mut more = cursor.seek(Edge::First)?;
    while more {
        run.interrupt.tick()?;
        if let Some((key, value)) = cursor.current() {
            let stray = match Entry::parse(index, key, value) {
                Err(error) => Some(error.to_string()),
                Ok(entry) => match records.get(entry.record_key)? {
                    None => Some("it names a document that is not there".into()),
                    Some(stored) => {
                        let document = Doc::new(Doc::stored(stored).bytes());
                        let made = maker.document(entry.record_key, document).of_index(collection, at, &mut wanted);
                        let message = || format!("the document of {} does not ask for it", id(document));
                        (made.is_err() || !wanted.contains_key(key)).then(message)
                    }
                },
            };
            if let Some(why) = stray {
                run.fault(FaultKind::StrayEntry, collection, Some(index), format!("the entry {}: {why}", hex(key)));
            }
        }
        more = cursor.step_forward()?;
    }
    Ok(())
}

fn id(document: Doc<'_>) -> String {
    document.get("_id").map_or_else(|| "no _id".into(), |id| format!("_id {id:?}"))
}

/// The bytes of a key, as a message shows them: the first 32 of them.
fn hex(key: &[u8]) -> String {
    let mut shown: String = key.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
    if key.len() > 32 {
        shown.push('…');
    }
    shown
}
