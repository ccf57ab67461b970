use std::sync::Arc;

use slate_query::{Code, filter::Filter};
use slate_store::{Durability, Isolation, Keyspace, Transaction};

use crate::{
    Error, ErrorKind, Existing, Result,
    catalog::{self, CATALOG, Catalog, CatalogCache, CollectionInfo, IndexInfo, StatisticsStaleness},
    engine::BeginOptions,
    entry::record_key,
    exec::Resources,
    interrupt::Interrupt,
    namespace,
    plan::Query,
    spill::Memory,
};

use super::{
    after_commit::{self, AfterCommit},
    gate::{Began, Gate},
    involved::Involved,
};

/// An open transaction: the store's own, and the catalog as it has it so far.
pub(crate) struct Session<T> {
    pub(super) transaction: T,
    catalog: Arc<Catalog>,
    involved: Involved,
    /// Whether it wrote what is neither a document nor the catalog: entries of an index that is being built.
    wrote_entries: bool,
    isolation: Isolation,
    /// Where several transactions may be open: what tells them of each other.
    gate: Option<(Arc<Gate>, Began)>,
    doomed: Vec<Keyspace>,
    /// When the transaction as a whole must end.
    limits: Interrupt,
    over: Option<String>,
    shared: Arc<Shared>,
}

/// What the transactions of a database share.
pub(crate) struct Shared {
    pub(crate) catalogs: CatalogCache,
    pub(crate) staleness: StatisticsStaleness,
    pub(crate) memory: Memory,
}

impl<T: Transaction> Session<T> {
    /// `catalog` is what the transaction sees of it.
    pub(crate) fn new(
        transaction: T,
        catalog: Arc<Catalog>,
        shared: Arc<Shared>,
        gate: Option<(Arc<Gate>, Began)>,
        options: &BeginOptions,
    ) -> Self {
        Self {
            transaction,
            catalog,
            involved: Involved::default(),
            wrote_entries: false,
            isolation: options.isolation,
            gate,
            doomed: Vec::new(),
            limits: options.limits.clone(),
            over: None,
            shared,
        }
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// What it reads: the last commit when it began, and its own writes.
    pub(crate) fn view(&self) -> T::View<'_> {
        self.transaction.view()
    }

    /// What the nodes of a query share.
    pub(crate) fn resources(&self, query: &Query, interrupt: &Interrupt) -> Resources {
        Resources::new(interrupt, self.shared.memory.limited(query.memory_limit))
    }

    /// An error where an earlier one has ended the transaction, or its time is up.
    pub(crate) fn check_open(&self) -> Result<()> {
        self.over.as_ref().map_or(Ok(()), |why| Err(Error::transaction_over(why)))?;
        self.limits.check()
    }

    /// When a call must end: by its own limits or the transaction's.
    pub(crate) fn limited(&self, interrupt: &Interrupt) -> Interrupt {
        interrupt.or(&self.limits)
    }

    /// Notes that documents of the collection are written.
    pub(super) fn wrote(&mut self, collection: &CollectionInfo) {
        self.involved.of(&collection.name).written = true;
    }

    /// Notes that entries of an index are written, and no document.
    pub(super) fn wrote_entries(&mut self) {
        self.wrote_entries = true;
    }

    /// Whether others may commit meanwhile, and must not overtake this transaction in what it reads.
    fn is_watchful(&self) -> bool {
        self.isolation == Isolation::Serializable && self.gate.is_some()
    }

    /// Notes that any of the collection's documents may have been read by a question.
    pub(super) fn read_all(&mut self, collection: &CollectionInfo) {
        if self.is_watchful() {
            self.watch(&collection.name);
        }
    }

    /// Whatever the isolation: nobody may write to the collection's documents until this transaction commits.
    pub(super) fn watch(&mut self, collection: &str) {
        self.involved.of(collection).watched = true;
    }

    /// Notes that one record was read, or found not to be there.
    pub(super) fn read_key(&mut self, collection: &CollectionInfo, key: &[u8]) -> Result<()> {
        if self.is_watchful() {
            self.transaction.guard(collection.records, key)?;
        }
        Ok(())
    }

    /// Notes that a question about the collection is answered: what it may find is read, and that the collection is
    /// there, or is not.
    pub(crate) fn reads(&mut self, name: &str, what: Reads<'_>) -> Result<()> {
        if !self.is_watchful() {
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

    /// Ends the transaction where `result` is an error and part of the call had been applied.
    pub(super) fn end_on_error<R>(&mut self, result: Result<R>) -> Result<R> {
        if let Err(error) = &result {
            self.over = Some(format!("an earlier write failed half-way: {error}"));
        }
        result
    }

    /// Ends the transaction.
    pub(crate) fn end(&mut self, why: &str) {
        self.over = Some(why.into());
    }

    /// The collection, about to be written to. Whoever changes its definition meanwhile conflicts with this transaction.
    pub(super) fn written(&mut self, name: &str) -> Result<Option<Arc<CollectionInfo>>> {
        let collection = self.catalog.collection(name).cloned();
        if collection.is_some() {
            self.guard(name)?;
        }
        Ok(collection)
    }

    fn guard(&mut self, name: &str) -> Result<()> {
        let involvement = self.involved.of(name);
        if !involvement.guarded {
            self.transaction.guard(CATALOG, &catalog::definition_key(name))?;
            involvement.guarded = true;
        }
        Ok(())
    }

    /// The collection, about to be written to, and created where it is not there.
    pub(super) fn written_or_created(&mut self, name: &str) -> Result<Arc<CollectionInfo>> {
        if let Some(collection) = self.written(name)? {
            return Ok(collection);
        }
        namespace::check(name)?;
        let records = Arc::make_mut(&mut self.catalog).allocate()?;
        self.define(CollectionInfo::new(name, records))?;
        self.written(name)?.ok_or_else(|| Error::corrupt("a collection just created is not there"))
    }

    /// Creates the collection; whether it was not there before.
    pub(crate) fn create_collection(&mut self, name: &str) -> Result<Created> {
        self.check_open()?;
        if self.catalog.collection(name).is_some() {
            return Ok(Created::AlreadyThere);
        }
        self.written_or_created(name)?;
        Ok(Created::New)
    }

    /// Drops the collection and its indexes; whether it was there.
    pub(crate) fn drop_collection(&mut self, name: &str) -> Result<bool> {
        self.check_open()?;
        let Some(collection) = self.catalog.collection(name).cloned() else { return Ok(false) };
        self.doom(collection.records)?;
        for index in collection.maintained() {
            self.doom(index.keyspace)?;
        }
        for unfinished in &collection.building {
            catalog::BuildPosition::forget(&mut self.transaction, unfinished.keyspace)?;
        }
        self.redefined(name)?;
        Arc::make_mut(&mut self.catalog).remove(name);
        Ok(true)
    }

    /// Renames a collection.
    pub(crate) fn rename_collection(&mut self, from: &str, to: &str, existing: Existing) -> Result<()> {
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
            if existing == Existing::Keep {
                let message = format!("a collection of the name {to} exists already");
                return Err(Error::new(ErrorKind::Exists, Code::NAMESPACE_EXISTS, message));
            }
            self.drop_collection(to)?;
        }
        self.redefined(from)?;
        Arc::make_mut(&mut self.catalog).remove(from);
        self.define(CollectionInfo { name: to.into(), ..CollectionInfo::clone(&collection) })
    }

    pub(super) fn doom(&mut self, keyspace: Keyspace) -> Result<()> {
        catalog::doom(&mut self.transaction, keyspace)?;
        self.doomed.push(keyspace);
        Ok(())
    }

    pub(super) fn allocate(&mut self) -> Result<Keyspace> {
        Arc::make_mut(&mut self.catalog).allocate()
    }

    /// Puts a new definition in place: every open writer of the collection conflicts with it.
    pub(super) fn define(&mut self, collection: CollectionInfo) -> Result<()> {
        self.redefined(&collection.name)?;
        Arc::make_mut(&mut self.catalog).put(collection);
        Ok(())
    }

    /// Puts a description in place that writers by the one before may go on with.
    pub(super) fn redescribe(&mut self, collection: CollectionInfo) {
        self.involved.of(&collection.name).changed = true;
        Arc::make_mut(&mut self.catalog).put(collection);
    }

    fn redefined(&mut self, name: &str) -> Result<()> {
        self.transaction.put(CATALOG, &catalog::definition_key(name), &[])?;
        self.involved.of(name).changed = true;
        Ok(())
    }

    /// Puts what an index's entries were seen to hold in place. No writer conflicts with that but one who sees more.
    pub(super) fn note(&mut self, collection: &str, notes: Vec<(usize, IndexInfo)>) {
        let Some(known) = self.catalog.collection(collection) else { return };
        if notes.is_empty() {
            return;
        }
        let mut noted = CollectionInfo::clone(known);
        for (at, index) in notes {
            if let Some(place) = noted.maintained_at_mut(at) {
                // The news may have been gathered before other news was noted: both hold.
                let place = Arc::make_mut(place);
                place.note_multikey(&index.multikey);
                place.truncated |= index.truncated;
            }
        }
        Arc::make_mut(&mut self.catalog).put(noted);
        self.involved.of(collection).changed = true;
    }

    /// Commits; gives back what is to be done now.
    pub(crate) fn commit(mut self, durability: Durability) -> Result<AfterCommit> {
        self.check_open()?;
        let involved = &self.involved;
        let changes_catalog = involved.changed().next().is_some();
        if changes_catalog {
            self.catalog.write(&mut self.transaction, involved.changed())?;
        }
        let wrote =
            self.wrote_entries || changes_catalog || !self.doomed.is_empty() || involved.written().next().is_some();
        let _change = changes_catalog.then(|| self.shared.catalogs.change());
        let commit = || Ok(self.transaction.commit(durability)?);
        match &self.gate {
            // It has read one commit and changed nothing: its place in the order is right behind that commit.
            Some(_) if !wrote => {}
            Some((gate, began)) => gate.commit(*began, involved, commit)?,
            None => commit()?,
        }
        let stale = after_commit::stale(involved, &self.catalog, &self.shared.staleness);
        Ok(AfterCommit { dropped: self.doomed, stale })
    }

    /// Notes that a collection grew by so many records, or shrank.
    pub(super) fn added(&mut self, collection: &str, records: i64) {
        let added = &mut self.involved.of(collection).added;
        *added = added.saturating_add(records);
    }
}

/// Whether something had to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Created {
    New,
    AlreadyThere,
}

/// What a question may find.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reads<'a> {
    /// No record.
    Nothing,
    /// One record.
    Key(&'a [u8]),
    /// The records that match; by an equality on `_id`, one.
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
