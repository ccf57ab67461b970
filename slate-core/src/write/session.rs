use std::{sync::Arc, time::Duration};

use slate_query::{Code, filter::Filter};
use slate_store::{Capabilities, Durability, Guard, Keyspace, Transaction, TransactionExt, View};

use crate::{
    Error, ErrorKind, Isolation, Result,
    api::options::RenameTarget,
    catalog::{self, CATALOG, Catalog, CatalogCache, Change, CollectionInfo, IndexInfo, StatisticsStaleness},
    commit::Validation,
    entry::record_key,
    interrupt::Interrupt,
    namespace,
    spill::Memory,
};

use super::{
    after_commit::{self, AfterCommit},
    change_set::ChangeSet,
    collection_state::CollectionStates,
};

/// An open transaction: the store's transaction, and the catalog with its own changes.
pub(crate) struct Session<T> {
    pub(super) transaction: T,
    catalog: Arc<Catalog>,
    collections: CollectionStates,
    /// Whether it wrote something other than documents and the catalog: entries of an index that is being built.
    wrote_entries: bool,
    /// Bytes of documents and entries written so far, where the store limits them.
    pub(super) bytes_written: usize,
    isolation: Isolation,
    validation: Validation,
    pending_drops: Vec<Keyspace>,
    /// The deadline and cancel token of the whole transaction.
    limits: Interrupt,
    /// Why the transaction has ended.
    ended: Option<String>,
    shared: Arc<Shared>,
}

/// How a transaction begins.
#[derive(Clone, Debug)]
pub(crate) struct BeginOptions {
    /// The longest time in the writer queue, on stores with one writer at a time.
    pub(crate) wait: Duration,
    pub(crate) isolation: Isolation,
    /// The deadline and cancellation token of the whole transaction.
    pub(crate) limits: Interrupt,
}

/// State that the transactions of a database share.
pub(crate) struct Shared {
    pub(crate) catalogs: CatalogCache,
    pub(crate) staleness: StatisticsStaleness,
    pub(crate) memory: Memory,
    pub(crate) capabilities: Capabilities,
}

impl<T: Transaction> Session<T> {
    /// `catalog` is the catalog that the transaction sees.
    pub(crate) fn new(
        transaction: T,
        catalog: Arc<Catalog>,
        shared: Arc<Shared>,
        validation: Validation,
        options: &BeginOptions,
    ) -> Self {
        Self {
            transaction,
            catalog,
            collections: CollectionStates::default(),
            wrote_entries: false,
            bytes_written: 0,
            isolation: options.isolation,
            validation,
            pending_drops: Vec::new(),
            limits: options.limits.clone(),
            ended: None,
            shared,
        }
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Returns the transaction's view: the last commit when it began, and its own writes.
    pub(crate) fn view(&self) -> T::View<'_> {
        self.transaction.view()
    }

    /// The database's memory limit and folder for temporary files.
    pub(crate) fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    pub(super) fn capabilities(&self) -> Capabilities {
        self.shared.capabilities
    }

    /// Fails if an earlier error has ended the transaction or its time is up.
    pub(crate) fn check_open(&self) -> Result<()> {
        self.ended.as_ref().map_or(Ok(()), |why| Err(Error::transaction_over(why)))?;
        self.limits.check()
    }

    /// Combines a call's limits with those of the transaction.
    pub(crate) fn limited(&self, interrupt: &Interrupt) -> Interrupt {
        interrupt.or(&self.limits)
    }

    /// Records that documents of the collection are written.
    pub(super) fn wrote(&mut self, collection: &CollectionInfo) {
        self.collections.of(&collection.name).written = true;
    }

    /// Records that only index entries are written.
    pub(super) fn wrote_entries(&mut self) {
        self.wrote_entries = true;
    }

    /// Returns whether reads must be validated: other transactions can commit, and this one is serializable.
    fn validates_reads(&self) -> bool {
        self.isolation == Isolation::Serializable && !matches!(self.validation, Validation::None)
    }

    /// Records that any document of the collection may have been read.
    pub(super) fn read_all(&mut self, collection: &CollectionInfo) {
        if self.validates_reads() {
            self.read_whole(&collection.name);
        }
    }

    /// Makes every later write of the collection by others a conflict, at every isolation level.
    pub(super) fn read_whole(&mut self, collection: &str) {
        self.collections.of(collection).read_whole = true;
    }

    /// Records that one record was read, or that it does not exist.
    pub(super) fn read_key(&mut self, collection: &CollectionInfo, key: &[u8]) -> Result<()> {
        if self.validates_reads() {
            self.transaction.guard(collection.records, key, Guard::Shared)?;
        }
        Ok(())
    }

    /// Records a read of the collection: the records that it can return, and whether the collection exists.
    pub(crate) fn reads(&mut self, name: &str, what: Reads<'_>) -> Result<()> {
        if !self.validates_reads() {
            return Ok(());
        }
        self.guard(name)?;
        let Some(collection) = self.catalog.collection(name).cloned() else { return Ok(()) };
        match (what, what.key()) {
            (Reads::Nothing, _) => {}
            (_, Some(key)) => self.read_key(&collection, &key)?,
            (_, None) => self.read_all(&collection),
        }
        Ok(())
    }

    /// Ends the transaction if `result` is an error, because part of the call may have been applied.
    pub(super) fn end_on_error<R>(&mut self, result: Result<R>) -> Result<R> {
        if let Err(error) = &result {
            self.ended = Some(format!("an earlier write failed half-way: {error}"));
        }
        result
    }

    /// Ends the transaction.
    pub(crate) fn end(&mut self, why: &str) {
        self.ended = Some(why.into());
    }

    /// Returns the collection for writing. A concurrent change of its definition conflicts with this transaction.
    pub(super) fn written(&mut self, name: &str) -> Result<Option<Arc<CollectionInfo>>> {
        let collection = self.catalog.collection(name).cloned();
        if collection.is_some() {
            self.guard(name)?;
        }
        Ok(collection)
    }

    fn guard(&mut self, name: &str) -> Result<()> {
        let state = self.collections.of(name);
        if !state.guarded {
            self.transaction.guard(CATALOG, &catalog::definition_key(name), Guard::Shared)?;
            state.guarded = true;
        }
        Ok(())
    }

    /// Returns the collection for writing. One that does not exist is created when changes are applied to it.
    pub(super) fn written_or_new(&mut self, name: &str) -> Result<Arc<CollectionInfo>> {
        if let Some(collection) = self.written(name)? {
            return Ok(collection);
        }
        namespace::check(name)?;
        let records = self.allocate()?;
        Ok(Arc::new(CollectionInfo::new(name, records)))
    }

    /// Returns an empty change set, with half of the memory of the call.
    pub(super) fn change_set(&self, collection: &CollectionInfo, memory_limit: Option<usize>) -> ChangeSet {
        ChangeSet::new(collection, self.memory().limited(memory_limit).shared_by(2), self.capabilities())
    }

    /// Creates the collection. Returns whether it did not exist.
    pub(crate) fn create_collection(&mut self, name: &str) -> Result<Created> {
        self.check_open()?;
        if self.catalog.collection(name).is_some() {
            return Ok(Created::AlreadyThere);
        }
        let collection = self.written_or_new(name)?;
        self.define(&collection)?;
        Ok(Created::New)
    }

    /// Drops the collection and its indexes. Returns whether it existed.
    pub(crate) fn drop_collection(&mut self, name: &str) -> Result<bool> {
        self.check_open()?;
        let Some(collection) = self.catalog.collection(name).cloned() else { return Ok(false) };
        self.unlink(collection.records)?;
        for index in collection.maintained() {
            self.unlink(index.keyspace)?;
        }
        for unfinished in &collection.building {
            catalog::BuildPosition::forget(&mut self.transaction, unfinished.keyspace)?;
        }
        self.redefined(name)?;
        Arc::make_mut(&mut self.catalog).remove(name);
        Ok(true)
    }

    /// Renames a collection.
    pub(crate) fn rename_collection(&mut self, from: &str, to: &str, target: RenameTarget) -> Result<()> {
        self.check_open()?;
        namespace::check(to)?;
        let Some(collection) = self.catalog.collection(from).cloned() else {
            let message = format!("there is no collection of the name {from}");
            return Err(Error::new(ErrorKind::NotFound, Code::NAMESPACE_NOT_FOUND, message));
        };
        if from == to {
            return Err(Error::invalid(Code::ILLEGAL_OPERATION, "a collection cannot be renamed to its own name"));
        }
        if self.catalog.collection(to).is_some() {
            if target == RenameTarget::MustNotExist {
                let message = format!("a collection of the name {to} exists already");
                return Err(Error::new(ErrorKind::Exists, Code::NAMESPACE_EXISTS, message));
            }
            self.drop_collection(to)?;
        }
        self.redefined(from)?;
        Arc::make_mut(&mut self.catalog).remove(from);
        self.define(&CollectionInfo { name: to.into(), ..CollectionInfo::clone(&collection) })
    }

    /// Makes a keyspace that nothing refers to any more a pending drop.
    pub(super) fn unlink(&mut self, keyspace: Keyspace) -> Result<()> {
        catalog::add_pending_drop(&mut self.transaction, keyspace)?;
        self.pending_drops.push(keyspace);
        Ok(())
    }

    pub(super) fn allocate(&mut self) -> Result<Keyspace> {
        Arc::make_mut(&mut self.catalog).allocate()
    }

    /// Replaces the definition. Every open writer of the collection conflicts with it.
    pub(super) fn define(&mut self, collection: &CollectionInfo) -> Result<()> {
        self.redefined(&collection.name)?;
        Arc::make_mut(&mut self.catalog).put(collection.clone());
        Ok(())
    }

    /// Replaces properties of the collection. Neither open writers nor other changes of the catalog conflict.
    pub(super) fn set_properties(&mut self, collection: CollectionInfo) {
        self.collections.of(&collection.name).change(Change::Properties);
        Arc::make_mut(&mut self.catalog).put(collection);
    }

    fn redefined(&mut self, name: &str) -> Result<()> {
        self.transaction.put(CATALOG, &catalog::definition_key(name), &[])?;
        self.collections.of(name).change(Change::Definition);
        Ok(())
    }

    /// Stores new properties of an index (multikey, truncated). Only writers that add more properties conflict.
    pub(super) fn note(&mut self, collection: &str, notes: Vec<(usize, IndexInfo)>) {
        let Some(known) = self.catalog.collection(collection) else { return };
        if notes.is_empty() {
            return;
        }
        let mut noted = CollectionInfo::clone(known);
        for (at, index) in notes {
            if let Some(place) = noted.maintained_at_mut(at) {
                // The index may have got other properties since these were collected; the union is stored.
                let place = Arc::make_mut(place);
                place.note_multikey(&index.multikey);
                place.truncated |= index.truncated;
            }
        }
        self.set_properties(noted);
    }

    /// Commits. Returns the work that remains after the commit.
    pub(crate) fn commit(mut self, durability: Durability) -> Result<AfterCommit> {
        self.check_open()?;
        let collections = &self.collections;
        let changes_catalog = collections.changed().next().is_some();
        if changes_catalog {
            self.catalog.write(&mut self.transaction, collections.changed())?;
        }
        let wrote = self.wrote_entries
            || changes_catalog
            || !self.pending_drops.is_empty()
            || collections.written().next().is_some();
        if let Validation::InStore = self.validation {
            // Every writer of these collections guards the same key, shared.
            for name in collections.read_whole() {
                self.transaction.guard(CATALOG, &catalog::definition_key(name), Guard::Exclusive)?;
            }
        }
        let (shared, base) = (&self.shared, self.transaction.view().version());
        let transaction = self.transaction;
        let commit = || Ok(transaction.commit(durability)?);
        let commit = || if changes_catalog { shared.catalogs.change(commit) } else { commit() };
        match &self.validation {
            // A transaction that changed nothing is valid at the commit that it read.
            Validation::InProcess(_) | Validation::InStore if !wrote => {}
            Validation::InProcess(validator) => {
                validator.commit(base, collections.read_whole(), collections.written(), commit)?;
            }
            Validation::None | Validation::InStore => drop(commit()?),
        }
        let stale = after_commit::stale(collections, &self.catalog, &self.shared.staleness);
        Ok(AfterCommit { dropped: self.pending_drops, stale })
    }

    /// Records that a collection grew (or shrank) by this many records.
    pub(super) fn added(&mut self, collection: &str, records: i64) {
        let growth = &mut self.collections.of(collection).growth;
        *growth = growth.saturating_add(records);
    }
}

/// Whether the collection or index was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Created {
    New,
    AlreadyThere,
}

/// The records that a query can read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reads<'a> {
    /// No record.
    Nothing,
    /// One record.
    Key(&'a [u8]),
    /// The records that match; one record for an equality on `_id`.
    Matches(&'a Filter),
    /// Any record.
    All,
}

impl Reads<'_> {
    fn key(self) -> Option<Vec<u8>> {
        match self {
            Self::Key(key) => Some(key.to_vec()),
            Self::Matches(filter) => {
                let equalities = filter.equalities().ok()?;
                let (_, id) = equalities.iter().find(|(path, _)| path.as_str() == "_id")?;
                record_key(id.as_value()).ok()
            }
            Self::Nothing | Self::All => None,
        }
    }
}
