use std::{cell::OnceCell, sync::Arc, time::Duration};

use bson::RawDocumentBuf;
use slate_query::{Code, filter::Filter};
use slate_store::{Bounds, Capabilities, Durability, Guard, Keyspace, Transaction, View, crash_point};

use super::{
    apply::{LastStage, Unapplied},
    change_set::ChangeSet,
    collection_state::{self, AfterCommit, CollectionStates, StatisticsStaleness},
};
use crate::{
    ChangeLog, Error, ErrorKind, Isolation, Result,
    call_context::CallContext,
    catalog::{self, CATALOG, Catalog, CatalogCache, CatalogCheck, Change, ChangeLogInfo, CollectionInfo, not_on_view},
    changes::{self, EventBuffer, EventKind, EventSource, Images, LogTail, Wakers, is_logged},
    clock,
    commit::{Announced, Announcements, Leases, Validation},
    entry::record_key,
    interrupt::{Interrupt, WaitBudget},
    metrics::Tally,
    namespace,
    spill::Memory,
};

/// Whether a transaction may continue with the catalog that it has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an outdated transaction must not commit"]
pub(crate) enum Confirmed {
    Yes,
    /// Another process had changed the catalog before the transaction began.
    Outdated,
    /// Another transaction has announced a change of a definition that this one relies on, and this one makes way.
    InTheWay,
}

/// An open transaction: the store's transaction, and the catalog with its own changes.
pub(crate) struct Session<T> {
    pub(super) transaction: T,
    pub(super) catalog: Arc<Catalog>,
    /// Finds out whether the transaction sees this catalog; `None` once that is known.
    check: Option<CatalogCheck>,
    /// The id of the announcement of this transaction's change of a definition, if it was announced (`commit/announcements.rs`).
    announced: Option<u64>,
    /// Announcements that other transactions have made way for long enough: their processes have probably ended.
    abandoned: Vec<Announced>,
    pub(super) collections: CollectionStates,
    /// Whether it wrote something other than documents and the catalog, such as entries of an index that is being built.
    wrote_entries: bool,
    /// Bytes of records, entries and logged events written so far, if the store limits them.
    pub(super) bytes_written: usize,
    /// Number of the keys that were written and guarded, where the store limits it.
    pub(super) keys_written: usize,
    isolation: Isolation,
    validation: Validation,
    pub(super) pending_drops: Vec<Keyspace>,
    /// The changes of the last call, if they are large: the commit writes them, or the next call.
    pub(super) unapplied: Option<Unapplied>,
    /// What is logged of the calls so far.
    pub(super) events: EventBuffer,
    /// Set if the log of changes was begun, ended, or given other limits.
    log_change: Option<Change>,
    /// The deadline and cancel token of the whole transaction.
    limits: Interrupt,
    /// Why the transaction has ended; `None` while it is open.
    ended: Option<String>,
    /// Counts what the plans of the current operation examine.
    tally: OnceCell<Arc<Tally>>,
    pub(super) shared: Arc<Shared>,
}

/// The name that stands for a database as a whole. No collection can have it.
const DATABASE_ITSELF: &str = "$cmd";

/// How a transaction begins.
#[derive(Clone, Debug)]
pub(crate) struct BeginOptions {
    /// The longest time to wait for a store on a network.
    pub(crate) wait: Duration,
    pub(crate) isolation: Isolation,
    /// The deadline and cancellation token of the whole transaction.
    pub(crate) limits: Interrupt,
    /// The announcement of the change of a definition that the transaction is to make.
    pub(crate) announced: Option<u64>,
}

/// State that the transactions of a database share.
pub(crate) struct Shared {
    pub(crate) catalogs: CatalogCache,
    pub(crate) staleness: StatisticsStaleness,
    pub(crate) announcements: Announcements,
    pub(crate) leases: Leases,
    pub(crate) memory: Memory,
    pub(crate) capabilities: Capabilities,
    /// The end of the log of changes.
    pub(crate) tail: LogTail,
    pub(crate) wakers: Arc<Wakers>,
}

impl<T: Transaction> Session<T> {
    /// `catalog` is the catalog that the transaction sees, unless the `check` finds otherwise.
    pub(crate) fn new(
        transaction: T,
        (catalog, check): (Arc<Catalog>, Option<CatalogCheck>),
        shared: Arc<Shared>,
        validation: Validation,
        options: &BeginOptions,
    ) -> Self {
        Self {
            transaction,
            catalog,
            check,
            announced: options.announced,
            abandoned: Vec::new(),
            collections: CollectionStates::default(),
            wrote_entries: false,
            bytes_written: 0,
            keys_written: 0,
            isolation: options.isolation,
            validation,
            pending_drops: Vec::new(),
            unapplied: None,
            events: EventBuffer::default(),
            log_change: None,
            limits: options.limits.clone(),
            ended: None,
            tally: OnceCell::new(),
            shared,
        }
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Returns whether the transaction sees the catalog that its calls have used, and whether it is in the way of an announced change of a
    /// definition that it relies on. Until this is [`Confirmed::Yes`], the results of its calls, errors included, may be wrong, and it must
    /// not be committed.
    pub(crate) fn confirm(&mut self) -> Result<Confirmed> {
        self.confirm_for(|session, collection| session.collections.relies_on(collection))
    }

    /// Like [`confirm`](Self::confirm), for a transaction whose calls are not known yet.
    pub(crate) fn confirm_for_all(&mut self) -> Result<Confirmed> {
        self.confirm_for(|_, _| true)
    }

    fn confirm_for(&mut self, relies_on: impl Fn(&Self, &str) -> bool) -> Result<Confirmed> {
        let Some(check) = self.check.take() else { return Ok(Confirmed::Yes) };
        let Some(announced) = self.shared.catalogs.confirm(check)? else { return Ok(Confirmed::Outdated) };
        for change in announced {
            if self.announced == Some(change.id) || !relies_on(self, &change.collection) {
                continue;
            }
            if self.shared.announcements.is_standing(change.id) {
                return Ok(Confirmed::InTheWay);
            }
            self.abandoned.push(change);
        }
        Ok(Confirmed::Yes)
    }

    /// Returns the collections whose definitions the transaction changes, or that it must see unchanged as a whole.
    pub(crate) fn redefines(&self) -> Vec<Box<str>> {
        self.collections.redefined().map(Box::from).collect()
    }

    /// Returns the transaction's view: the last commit when it began, and its own writes. Large changes of the last call are missing until
    /// [`begin_call`](Self::begin_call).
    pub(crate) fn view(&self) -> T::View<'_> {
        self.transaction.view()
    }

    /// Returns the database's memory limit and folder for temporary files.
    pub(crate) fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// Returns the counts of what the plans of the current operation examine.
    pub(super) fn tally(&self) -> &Arc<Tally> {
        self.tally.get_or_init(|| Tally::new(self.memory().observer()))
    }

    /// Removes and returns the counts of an operation; `None` if it had no plan.
    pub(crate) fn take_tally(&mut self) -> Option<Arc<Tally>> {
        self.tally.take()
    }

    pub(super) fn capabilities(&self) -> Capabilities {
        self.shared.capabilities
    }

    /// Returns after how many keys a round of a long write ends: half of what a transaction may write, if the store limits it. The other half is room
    /// for the entries of one more document.
    pub(super) fn most_keys_of_round(&self) -> usize {
        self.capabilities().max_transaction_keys.map_or(usize::MAX, |limit| limit / 2)
    }

    /// Fails if an earlier error has ended the transaction or its time is up.
    pub(crate) fn check_open(&self) -> Result<()> {
        self.ended.as_ref().map_or(Ok(()), |why| Err(Error::transaction_over(why)))?;
        self.limits.check()
    }

    /// Returns the budget of a transaction that must not wait; `None` if it may wait.
    pub(crate) fn budget(&self) -> Option<&WaitBudget> {
        self.limits.budget()
    }

    /// Combines a call's limits with those of the transaction and of the database.
    pub(crate) fn limited(&self, call: &CallContext) -> CallContext {
        call.with_interrupt(call.interrupt.or(&self.limits)).of(self.memory())
    }

    /// Records that documents of the collection are written.
    pub(super) fn wrote(&mut self, collection: &CollectionInfo) {
        self.collections.of(&collection.name).written = true;
    }

    /// Records that something other than documents and the catalog is written.
    pub(super) fn wrote_entries(&mut self) {
        self.wrote_entries = true;
    }

    /// Returns whether reads must be recorded, to be validated at the commit: this transaction is serializable.
    fn validates_reads(&self) -> bool {
        self.isolation == Isolation::Serializable
    }

    /// Records that any document of the collection may have been read, if the transaction is serializable.
    pub(super) fn read_all(&mut self, collection: &CollectionInfo) {
        if self.validates_reads() {
            self.read_whole(&collection.name);
        }
    }

    /// Makes every later write of the collection by others a conflict, at every isolation level.
    pub(super) fn read_whole(&mut self, collection: &str) {
        self.collections.of(collection).read_whole = true;
    }

    /// Records that one record was read, or that it does not exist, if the transaction is serializable.
    pub(super) fn read_key(&mut self, collection: &CollectionInfo, key: &[u8]) -> Result<()> {
        if self.validates_reads() {
            self.transaction.guard(collection.records, key, Guard::Shared)?;
        }
        Ok(())
    }

    /// Records a read of the collection, if the transaction is serializable: the records that it can return, and whether the collection exists.
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

    /// Marks the transaction as ended: every later call fails with the reason `why`.
    pub(crate) fn end(&mut self, why: &str) {
        self.ended = Some(why.into());
    }

    /// Returns the collection for writing; `None` if it does not exist. A concurrent change of its definition conflicts with this transaction.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView` (166) for a view.
    pub(super) fn written(&mut self, name: &str) -> Result<Option<Arc<CollectionInfo>>> {
        if self.catalog.view(name).is_some() {
            return Err(not_on_view(name));
        }
        let collection = self.catalog.collection(name).cloned();
        if collection.is_some() {
            self.guard(name)?;
        }
        Ok(collection)
    }

    /// Returns the collection for writing. One that does not exist is created when changes are applied to it.
    pub(super) fn written_or_new(&mut self, name: &str) -> Result<Arc<CollectionInfo>> {
        if let Some(collection) = self.written(name)? {
            return Ok(collection);
        }
        self.catalog.check_new(name)?;
        let records = self.allocate()?;
        Ok(Arc::new(CollectionInfo::new(name, records)))
    }

    pub(super) fn guard(&mut self, name: &str) -> Result<()> {
        let state = self.collections.of(name);
        if !state.guarded {
            self.transaction.guard(CATALOG, &catalog::definition_key(name), Guard::Shared)?;
            state.guarded = true;
        }
        Ok(())
    }

    /// Whether changes of the collection are logged.
    pub(super) fn logs(&self, collection: &str) -> bool {
        self.catalog.change_log().is_some() && is_logged(collection)
    }

    /// Logs a change of a definition. `records` is the keyspace of the collection's records; `None` for a view or a database. `describe`
    /// is called only if changes are logged.
    pub(super) fn log_definition(
        &mut self,
        kind: EventKind,
        name: &str,
        records: Option<Keyspace>,
        describe: impl FnOnce() -> RawDocumentBuf,
    ) {
        if self.logs(name) {
            let source = EventSource { name, records, images: Images::None };
            self.events.push(kind, source, &[describe().as_bytes()]);
        }
    }

    /// Logs that the database was dropped, after its collections.
    pub(crate) fn dropped_database(&mut self, database: &str) -> Result<()> {
        self.begin_call()?;
        let name = namespace::stored(database, DATABASE_ITSELF);
        self.log_definition(EventKind::DropDatabase, &name, None, RawDocumentBuf::new);
        Ok(())
    }

    /// Begins the log of changes, or changes its limits; `None` ends it. Unless nothing changes, conflicts with every open writer, so that no change
    /// after this is missing in the log.
    pub(crate) fn set_change_log(&mut self, limits: Option<ChangeLog>) -> Result<()> {
        self.begin_call()?;
        if limits.is_some() && !self.capabilities().commit_versions {
            // The log is in the order of commits, by their versions.
            let message = format!(
                "the log of changes is not supported on {}, where a commit learns its version only when it is made",
                self.capabilities().name
            );
            return Err(Error::new(ErrorKind::Unsupported, Code::NOT_IMPLEMENTED, message));
        }
        let there = self.catalog.change_log().copied();
        let log = match (there, limits) {
            (None, None) => return Ok(()),
            (Some(there), Some(limits)) if there.limits == limits => return Ok(()),
            (Some(there), Some(limits)) => Some(ChangeLogInfo { limits, ..there }),
            (Some(there), None) => {
                self.unlink(there.keyspace)?;
                self.events = EventBuffer::default();
                None
            }
            (None, Some(limits)) => {
                let since = clock::timestamp(clock::now_millis());
                // The seconds, combined with the lowest bits of the counter: together they differ between two logs.
                let id = u32::try_from((since >> 32 ^ since << 20) & u64::from(u32::MAX)).unwrap_or_default();
                Some(ChangeLogInfo { keyspace: self.allocate()?, id, since, limits })
            }
        };
        let names: Vec<Arc<str>> = self.catalog.collections().map(|collection| Arc::clone(&collection.name)).collect();
        names.iter().try_for_each(|name| self.redefined(name))?;
        Arc::make_mut(&mut self.catalog).set_change_log(log);
        self.log_change = Some(Change::Definition);
        Ok(())
    }

    /// Deletes the oldest part of what exceeds the limits of the log of changes. Returns whether anything was deleted.
    pub(crate) fn trim_change_log(&mut self, now_millis: i64) -> Result<bool> {
        self.begin_call()?;
        let Some(log) = self.catalog.change_log().copied() else { return Ok(false) };
        let Some(trim) = changes::trim(&self.view(), &log, now_millis)? else { return Ok(false) };
        self.transaction.delete_range(log.keyspace, Bounds { start: None, end: Some(&trim.end) })?;
        let position = (trim.position.version, trim.position.event);
        catalog::set_trimmed_changes(&mut self.transaction, &log, position)?;
        self.wrote_entries();
        Ok(true)
    }

    /// Returns an empty change set, with half of the memory of the call.
    pub(super) fn change_set(&self, collection: &CollectionInfo, call: &CallContext) -> ChangeSet {
        let memory = self.memory().of(call.memory).shared_by(2);
        let is_logged = self.logs(&collection.name);
        ChangeSet::new(collection, memory, self.capabilities(), call.document_validation).logged(collection, is_logged)
    }

    /// Fails, and spends the budget, if the transaction must not wait and its commit may have to: other operations wait for changes of the catalog,
    /// and gathering statistics may take long.
    pub(crate) fn check_budget(&self) -> Result<()> {
        let commit_may_wait = || {
            self.collections.changed().next().is_some()
                || self.log_change.is_some()
                || self.is_log_due()
                || !self.pending_drops.is_empty()
                || collection_state::makes_stale(&self.collections, &self.catalog, &self.shared.staleness)
        };
        match self.limits.budget() {
            Some(budget) if commit_may_wait() => Err(budget.spend()),
            _ => Ok(()),
        }
    }

    /// Commits. Returns the work that remains after the commit.
    pub(crate) fn commit(mut self, durability: Durability) -> Result<AfterCommit> {
        self.check_open()?;
        debug_assert!(self.check.is_none(), "a transaction is committed before its catalog is confirmed");
        if let Some(budget) = self.budget().filter(|budget| budget.is_spent()) {
            // The call is repeated: what it has written must not be committed twice.
            return Err(budget.spend());
        }
        let collections = &self.collections;
        let changes_catalog = collections.changed().next().is_some() || self.log_change.is_some();
        if changes_catalog {
            self.catalog.write(&mut self.transaction, collections.changed(), self.log_change)?;
        }
        let wrote = self.wrote_entries
            || changes_catalog
            || !self.pending_drops.is_empty()
            || !self.events.is_empty()
            || collections.written().next().is_some();
        if let Validation::InStore = self.validation {
            // Every writer of these collections guards the same key, shared.
            for name in collections.read_whole() {
                self.transaction.guard(CATALOG, &catalog::definition_key(name), Guard::Exclusive)?;
            }
        }
        let log = self.catalog.change_log().copied();
        let logs = log.is_some() && (!self.events.is_empty() || self.unapplied.is_some());
        let log = log.filter(|_| logs);
        if log.is_some() {
            check_logged(&self.events, self.capabilities().max_value)?;
        }
        if let Some(log) = &log {
            self.shared.tail.load(&self.transaction.view(), log)?;
        }
        let (shared, base) = (&self.shared, self.transaction.view().version());
        let last = LastStage {
            log: log.map(|log| (log, &shared.tail, self.events)),
            max_value: shared.capabilities.max_value,
            unapplied: self.unapplied,
        };
        let transaction = self.transaction;
        let commit = || last.commit(transaction, durability);
        let commit = || match changes_catalog {
            true => {
                // No collection has an empty name: it stands for the log.
                let log = self.log_change.map(|_| "");
                shared.catalogs.change(collections.changed().map(|(name, _)| name).chain(log), commit)
            }
            false => commit(),
        };
        match &self.validation {
            // A transaction that changed nothing is valid at the commit that it read.
            Validation::InProcess(_) | Validation::InStore if !wrote => {}
            Validation::InProcess(validator) => {
                let read_set = collections.read_whole();
                validator.commit(base, read_set, collections.written(), &self.limits, commit)?;
            }
            Validation::InStore => drop(commit()?),
        }
        crash_point("after-commit");
        if log.is_some() {
            let names = collections.written().chain(collections.changed().map(|(name, _)| name));
            shared.wakers.committed(names);
        }
        if self.log_change.is_some() {
            // If the log has ended, streams have to report it.
            shared.wakers.wake_all();
        }
        let stale = collection_state::stale(collections, &self.catalog, &self.shared.staleness);
        let trims_log = log.is_some_and(|log| shared.tail.is_due(&log));
        Ok(AfterCommit { dropped: self.pending_drops, stale, trims_log, abandoned: self.abandoned })
    }

    /// Whether the log exceeds its limits, so that it is trimmed after the commit.
    fn is_log_due(&self) -> bool {
        self.catalog.change_log().is_some_and(|log| self.shared.tail.is_due(log))
    }

    /// Records that a collection grew (or shrank) by this many records.
    pub(super) fn added(&mut self, collection: &str, records: i64) {
        let growth = &mut self.collections.of(collection).growth;
        *growth = growth.saturating_add(records);
    }
}

/// Fails if the store cannot hold an entry of the log with one of the events. Those of documents were checked with their changes.
fn check_logged(events: &EventBuffer, max_value: usize) -> Result<()> {
    let bytes = changes::entry_size(events.largest());
    if bytes <= max_value {
        return Ok(());
    }
    let message = format!("an entry of the log of changes has {bytes} bytes; the store's limit is {max_value}");
    Err(Error::too_large(message))
}

/// The records that a query can read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reads<'a> {
    /// No record.
    Nothing,
    /// One record.
    Key(&'a [u8]),
    /// The record with this `_id` if the filter has an equality on `_id`; otherwise any record.
    Matches(&'a Filter),
    /// Any record.
    All,
}

impl Reads<'_> {
    fn key(self) -> Option<Vec<u8>> {
        match self {
            Self::Key(key) => Some(key.to_vec()),
            Self::Matches(filter) => record_key(filter.equality_at("_id")?).ok(),
            Self::Nothing | Self::All => None,
        }
    }
}
