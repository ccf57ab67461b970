use std::sync::Arc;

use bson::{RawDocument, RawDocumentBuf, oid::ObjectId};
use slate_query::Code;
use slate_store::Damage;

use crate::{
    Collection, CollectionDescription, CollectionOptions, Database, Durability, Error, ErrorKind, Index, RenameTarget,
    Result, Snapshot, TransactionOptions, VerifyProgress, VerifyReport, api::setters::setters,
    call_context::CallContext, document::as_raw, verify::VerifyRun,
};

/// A copy of a database into another one, on any store; see [`Database::copy_to`].
#[must_use = "nothing is copied until `run`"]
pub struct CopyTo<'p> {
    source: Database,
    target: CopyTarget,
    existing: ExistingCollections,
    call: CallContext,
    progress: Option<Progress<'p>>,
}

type Progress<'p> = Box<dyn FnMut(&CopyProgress<'_>) + Send + 'p>;

/// The database that a copy is written to: a URL, or an open database.
#[derive(Clone, Debug)]
pub struct CopyTarget(CopyPlace);

#[derive(Clone, Debug)]
enum CopyPlace {
    Url(String),
    Open(Database),
}

impl From<&str> for CopyTarget {
    fn from(url: &str) -> Self {
        Self(CopyPlace::Url(url.into()))
    }
}

impl From<String> for CopyTarget {
    fn from(url: String) -> Self {
        Self(CopyPlace::Url(url))
    }
}

impl From<&Database> for CopyTarget {
    fn from(database: &Database) -> Self {
        Self(CopyPlace::Open(database.clone()))
    }
}

/// What a copy does if its target has collections or views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExistingCollections {
    /// Fails, whatever their names.
    #[default]
    Refuse,
    /// Leaves them unchanged, and fails if one has the name of a copied collection.
    Keep,
    /// Replaces those that have the name of a copied collection; leaves the others unchanged.
    Replace,
}

/// The progress of a copy; see [`CopyTo::progress`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CopyProgress<'r> {
    /// The collection that is being copied.
    pub collection: &'r str,
    /// The index that is being built in the copy; `None` while documents are copied.
    pub index: Option<&'r str>,
    /// Number of the collection's documents that were copied, or that were read for the index.
    pub documents: u64,
    /// Number of the collection's documents.
    pub total: u64,
}

/// The result of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyResult {
    /// Number of collections, without views.
    pub collections: u64,
    /// Number of views.
    pub views: u64,
    /// Number of documents in all collections.
    pub documents: u64,
    /// Number of indexes, without those on `_id`.
    pub indexes: u64,
}

/// A batch ends once it has this many documents or bytes. It is one transaction.
const BATCH_DOCUMENTS: usize = 1_000;
const BATCH_BYTES: usize = 4 << 20;

/// The prefix of the names of the copied collections in the target until the copy is complete.
const UNFINISHED: &str = "slate.copy.";

impl<'p> CopyTo<'p> {
    pub(crate) fn new(source: Database, target: CopyTarget) -> Self {
        let (existing, call) = (ExistingCollections::default(), CallContext::begin(source.handle().limits()));
        Self { source, target, existing, call, progress: None }
    }

    /// Sets what happens if the target has collections. By default the copy then fails.
    pub fn existing(mut self, existing: ExistingCollections) -> Self {
        self.existing = existing;
        self
    }

    /// Sets a callback that is called at the start of each collection, after each batch of at most 1,000 documents, and during index builds.
    ///
    /// Cost: each collection is counted before it is copied, which on disk is a scan of its keys.
    pub fn progress<'q>(self, progress: impl FnMut(&CopyProgress<'_>) + Send + 'q) -> CopyTo<'q> {
        let Self { source, target, existing, call, .. } = self;
        CopyTo { source, target, existing, call, progress: Some(Box::new(progress)) }
    }

    setters! { call: deadline, cancel }

    /// Copies the database, and returns the numbers of copied objects. The copy is synced to the device when this returns.
    ///
    /// The source is read as of one commit, while its writers continue. The target's readers see the copied collections all at once, when they are
    /// complete. After an error the target is unchanged, except that a database which did not exist was created, and is empty. After a crash the
    /// target may have unfinished collections, named `slate.copy.…`, which the next copy removes. So two copies must not be written to one target at
    /// the same time: the first copy then fails. On a store that several processes write to, another process may be copying: there a copy removes
    /// only its own unfinished collections, and the caller must drop those that a crash has left.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] if the target has collections, as [`CopyTo::existing`] says; [`ErrorKind::Invalid`] if the
    /// target is the URL of a database in memory, which would end with the copy; [`ErrorKind::TooLarge`] if a document
    /// is too large for the target's store; [`ErrorKind::Interrupted`]; [`ErrorKind::Reentrant`] if this thread has a
    /// transaction open in the target; the errors of [`Database::open`], of reads and of writes.
    pub fn run(self) -> Result<CopyResult> {
        self.copy(None).map(|(copied, _)| copied)
    }

    /// Copies the readable documents of a damaged database. Returns the numbers of copied objects, and a report on the
    /// damage like that of [`Verify`](crate::Verify), but only on documents, because the copy gets new indexes.
    ///
    /// The store first verifies its checksums. Documents in a damaged part are skipped, because they may be wrong, and so are records that are not
    /// valid documents.
    ///
    /// # Errors
    /// As [`run`](Self::run); [`ErrorKind::Corrupt`] if the list of collections cannot be read.
    pub fn salvage(self) -> Result<(CopyResult, VerifyReport)> {
        let mut progress = |_: &VerifyProgress<'_>| {};
        let interrupt = self.call.interrupt.clone();
        let mut run = VerifyRun { interrupt, progress: &mut progress, report: VerifyReport::default() };
        let damages = self.source.handle().verify_storage(None, &self.call, &mut run)?;
        self.copy(Some(Salvage { run, damages }))
            .map(|(copied, salvage)| (copied, salvage.map(|salvage| salvage.run.report).unwrap_or_default()))
    }

    fn copy<'s>(self, salvage: Option<Salvage<'s>>) -> Result<(CopyResult, Option<Salvage<'s>>)> {
        let Self { source, target, existing, call, progress } = self;
        let snapshot = source.snapshot()?;
        let (target, is_own) = match target.0 {
            CopyPlace::Open(database) => (database, false),
            CopyPlace::Url(url) if url.starts_with("memory:") => {
                let message = "a database in memory ends with its last handle: open it and copy to the handle";
                return Err(Error::invalid(Code::BAD_VALUE, message));
            }
            CopyPlace::Url(url) => (Database::open(&url)?, true),
        };
        let prefix = format!("{UNFINISHED}{}.", ObjectId::new());
        let mut run = CopyRun { snapshot, target, prefix, call, progress, salvage };
        let copied = run.collections(existing);
        let CopyRun { target, salvage, .. } = run;
        let copied = if is_own { copied.and_then(|copied| target.close().map(|()| copied)) } else { copied };
        Ok((copied?, salvage))
    }
}

/// The damage found in the source so far, for a copy that skips damaged parts.
struct Salvage<'s> {
    run: VerifyRun<'s>,
    damages: Vec<Damage>,
}

/// A batch of documents, which one transaction copies.
struct Batch<'b> {
    source: &'b str,
    target: &'b Collection<RawDocumentBuf>,
    /// The number of the collection's documents; 0 without a progress callback.
    total: u64,
    rows: Vec<RawDocumentBuf>,
    bytes: usize,
    /// The number of documents in earlier batches.
    documents: u64,
}

/// The state of a running copy.
struct CopyRun<'p, 's> {
    snapshot: Snapshot,
    target: Database,
    /// The prefix of the names of this copy's unfinished collections.
    prefix: String,
    call: CallContext,
    progress: Option<Progress<'p>>,
    salvage: Option<Salvage<'s>>,
}

impl CopyRun<'_, '_> {
    fn collections(&mut self, existing: ExistingCollections) -> Result<CopyResult> {
        let mut collections = self.snapshot.list_collections();
        collections.retain(|collection| !collection.name.starts_with(UNFINISHED));
        // Removes what earlier copies have left, unless another process may be copying.
        if self.target.handle().engine()?.capabilities().exclusive {
            self.remove(UNFINISHED)?;
        }
        self.check_target(&collections, existing)?;
        let copied = self.copy_unfinished(&collections).and_then(|copied| {
            self.publish(&collections, existing)?;
            Ok(copied)
        });
        if copied.is_err() {
            // Returns the error of the copy, not that of the cleanup.
            let _ = self.remove(&self.prefix);
        }
        copied
    }

    /// Fails if the target has collections that prevent the copy.
    fn check_target(&self, collections: &[CollectionDescription], existing: ExistingCollections) -> Result<()> {
        let mut present = self.target.list_collection_names()?;
        present.retain(|name| !name.starts_with(UNFINISHED));
        let fault = match existing {
            ExistingCollections::Refuse => present.first(),
            ExistingCollections::Keep => present.iter().find(|name| collections.iter().any(|copy| copy.name == **name)),
            ExistingCollections::Replace => None,
        };
        let Some(name) = fault else { return Ok(()) };
        let message = format!("the target of the copy has a collection {name:?} already");
        Err(Error::new(ErrorKind::Exists, Code::NAMESPACE_EXISTS, message))
    }

    /// Drops the collections whose names begin with `prefix`: unfinished ones of this copy, or of all copies.
    fn remove(&self, prefix: &str) -> Result<()> {
        let names = self.target.list_collection_names()?;
        let mut unfinished = names.iter().filter(|name| name.starts_with(prefix));
        unfinished.try_for_each(|name| self.target.collection::<RawDocumentBuf>(name).drop().map(drop))
    }

    /// Returns the name that the copied collection at position `number` has until the copy is complete.
    fn unfinished_name(&self, number: usize) -> String {
        format!("{}{number}", self.prefix)
    }

    /// Copies all collections with their indexes, under unfinished names. Views are only counted.
    fn copy_unfinished(&mut self, collections: &[CollectionDescription]) -> Result<CopyResult> {
        let mut copied = CopyResult::default();
        for (number, collection) in collections.iter().enumerate() {
            // Names every field, so that a new option of collections is not forgotten here.
            let CollectionDescription { name, indexes, collation: _, validator: _, keeps_images: _, view } = collection;
            if view.is_some() {
                // A view has no documents to copy; it is created later, directly under its name.
                copied.views += 1;
                continue;
            }
            let target = self.target.collection::<RawDocumentBuf>(&self.unfinished_name(number));
            target.create_with(&CollectionOptions::from(collection))?;
            let total = match self.progress {
                Some(_) => self.snapshot.collection::<RawDocumentBuf>(name).estimated_document_count()?,
                None => 0,
            };
            self.report(name, 0, total);
            copied.documents += self.documents(name, &target, total)?;
            for index in indexes {
                let build = target.create_index(Index::from(index)).within(&self.call);
                let progress = &mut self.progress;
                build
                    .progress(|documents| {
                        if let Some(progress) = progress {
                            progress(&CopyProgress { collection: name, index: Some(&index.name), documents, total });
                        }
                    })
                    .run()?;
                copied.indexes += 1;
            }
            copied.collections += 1;
        }
        Ok(copied)
    }

    /// Copies the documents of a collection; returns how many.
    fn documents(&mut self, name: &str, target: &Collection<RawDocumentBuf>, total: u64) -> Result<u64> {
        let mut batch = Batch { source: name, target, total, rows: Vec::new(), bytes: 0, documents: 0 };
        match self.salvage.take() {
            None => {
                let mut rows = self.snapshot.collection::<RawDocumentBuf>(name).find(RawDocumentBuf::new());
                rows.scoped.request.call = self.call.clone();
                let mut rows = rows.cursor()?;
                while rows.advance()? {
                    if let Some(row) = rows.current() {
                        self.add(&mut batch, &row)?;
                    }
                }
            }
            Some(mut salvage) => {
                let reader = Arc::clone(self.snapshot.reader());
                let read = reader.salvage(name, &salvage.damages, &mut salvage.run, &mut |document| {
                    self.add(&mut batch, as_raw(document.bytes())?)
                });
                self.salvage = Some(salvage);
                read?;
            }
        }
        self.end(&mut batch)?;
        Ok(batch.documents)
    }

    /// Adds a document to a batch, and writes the batch when it is large enough.
    fn add(&mut self, batch: &mut Batch<'_>, row: &RawDocument) -> Result<()> {
        batch.bytes += row.as_bytes().len();
        batch.rows.push(row.to_owned());
        if batch.rows.len() >= BATCH_DOCUMENTS || batch.bytes >= BATCH_BYTES { self.end(batch) } else { Ok(()) }
    }

    fn end(&mut self, batch: &mut Batch<'_>) -> Result<()> {
        self.write(batch.target, &batch.rows)?;
        batch.documents += batch.rows.len() as u64;
        (batch.rows, batch.bytes) = (Vec::new(), 0);
        self.report(batch.source, batch.documents, batch.total);
        Ok(())
    }

    /// Writes a batch. It is not synced: the last transaction syncs all of them.
    fn write(&self, target: &Collection<RawDocumentBuf>, batch: &[RawDocumentBuf]) -> Result<()> {
        self.call.check()?;
        let unsynced = TransactionOptions::new().durability(Durability::Deferred);
        self.target.transact_with(&unsynced, |transaction| {
            let target = transaction.collection::<RawDocumentBuf>(target.name());
            // Documents that were stored before the validator was set may violate it.
            let copies = target.insert_many(batch).bypass_document_validation(true).bypass_empty_ts_replacement(true);
            copies.run().map(drop)
        })
    }

    /// Renames all copied collections to their final names and creates the views, in one transaction. Drops the collections and views to replace
    /// first.
    fn publish(&self, collections: &[CollectionDescription], existing: ExistingCollections) -> Result<()> {
        self.call.check()?;
        let synced = TransactionOptions::new().durability(Durability::Sync);
        self.target.transact_with(&synced, |transaction| {
            if existing == ExistingCollections::Replace {
                // A rename cannot replace a view, and a new view cannot replace a collection, so both are dropped first.
                let replaced = |name: &str| transaction.collection::<RawDocumentBuf>(name).drop().map(drop);
                collections.iter().try_for_each(|collection| replaced(&collection.name))?;
            }
            collections.iter().enumerate().try_for_each(|(number, collection)| match collection.view {
                None => {
                    let copy = transaction.collection::<RawDocumentBuf>(&self.unfinished_name(number));
                    copy.rename(&collection.name, RenameTarget::MustNotExist).map(drop)
                }
                Some(_) => {
                    let view = transaction.collection::<RawDocumentBuf>(&collection.name);
                    view.create_with(&CollectionOptions::from(collection))
                }
            })
        })
    }

    fn report(&mut self, collection: &str, documents: u64, total: u64) {
        if let Some(progress) = &mut self.progress {
            progress(&CopyProgress { collection, index: None, documents, total });
        }
    }
}

crate::debug::shown! { self: CopyTo<'p> { target: self.target, existing: self.existing } }
