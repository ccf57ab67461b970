//! Where calls are executed. A [`Scope`] directs the calls of a collection to the database, to a snapshot, or to an open transaction. The
//! [`DatabaseHandle`] executes each write in a transaction of its own, which it retries after a conflict.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use slate_query::{Code, held, raw::Value};
use slate_store::Capabilities;

use super::{
    announcement::Announcement,
    definitions::Definitions,
    engine::{Engine, IdMatch, ReadSet, Reader, RecordVisitor, SharedReader, Writer},
    open_transactions::{OpenTransaction, OpenTransactions},
    request::Request,
    retry::{self, Failure},
};
use crate::{
    Durability, Error, ErrorKind, Isolation, Result, TransactionOptions,
    call::transaction_options::Started,
    call_context::CallContext,
    catalog::{Catalog, CollectionInfo, Namespace},
    changes::OtherWriters,
    commit::Turns,
    entry::record_key,
    interrupt::{CallLimits, Interrupt, WaitBudget, past_deadline},
    metrics::{Metrics, Observer, PointRead},
    namespace,
    plan::Query,
    spill::Memory,
    verify::VerifyRun,
    write::{AfterCommit, BeginOptions, Confirmed},
};

/// Where a collection's calls are executed.
#[derive(Clone)]
pub(crate) enum Scope {
    /// Each read sees the latest commit; each write is its own transaction.
    Database(DatabaseHandle),
    /// All reads see one commit; writes fail.
    Snapshot(SharedReader),
    /// Reads and writes belong to one transaction.
    Transaction(OpenTransaction),
}

impl Scope {
    /// Calls `work` with the reader of a read that depends on `reads`.
    pub(crate) fn read<R>(
        &self,
        reads: ReadSet<'_>,
        call: &CallContext,
        work: impl FnOnce(&dyn Reader) -> Result<R>,
    ) -> Result<R> {
        match self {
            Self::Database(database) => work(&*database.reader(call)?),
            Self::Snapshot(reader) => work(&**reader),
            Self::Transaction(transaction) => transaction.with(|writer| work(writer.reading(reads)?)),
        }
    }

    /// Calls `visitor` with the record of this `_id`, if it exists. Returns whether it does; `None` if a query must answer: in a snapshot or a
    /// transaction, for a view, a collation or an invalid name or `_id`, and if slow queries are reported. Spends the budget, if any, instead of
    /// waiting.
    pub(crate) fn look_up(
        &self,
        collection: &str,
        id: Value<'_>,
        visitor: RecordVisitor<'_>,
        budget: Option<&WaitBudget>,
    ) -> Result<Option<bool>> {
        let Self::Database(database) = self else { return Ok(None) };
        if database.observer().reports_slow_queries() {
            return Ok(None);
        }
        let Ok(key) = record_key(id) else { return Ok(None) };
        Ok(match database.get(collection, &key, IdMatch::Filter, visitor, budget)? {
            PointRead::Found(_) => Some(true),
            // A query fails for an invalid collection name.
            PointRead::Missing if namespace::check(collection).is_ok() => Some(false),
            PointRead::Missing | PointRead::NeedsQuery | PointRead::Postponed => None,
        })
    }

    /// Binds and parses the request, and calls `work` with the reader, the collection that the query reads, and the
    /// query. Both closures may be called twice.
    pub(crate) fn query<R>(
        &self,
        collection: &str,
        request: &Request,
        parse: impl Fn(&Request, &Definitions<'_>) -> Result<Query>,
        work: impl Fn(&dyn Reader, &CollectionInfo, &Query) -> Result<R>,
    ) -> Result<R> {
        request.call.interrupt.during(|| self.query_limited(collection, request, parse, work))
    }

    fn query_limited<R>(
        &self,
        collection: &str,
        request: &Request,
        parse: impl Fn(&Request, &Definitions<'_>) -> Result<Query>,
        work: impl Fn(&dyn Reader, &CollectionInfo, &Query) -> Result<R>,
    ) -> Result<R> {
        let read = |reader: &SharedReader| {
            held::within(request.call.limit_in(reader.memory()), || {
                let defined = request.bind(reader.catalog(), collection)?;
                work(&**reader, defined.source(), &parse(request, &defined)?)
            })
        };
        match self {
            Self::Database(database) => database.read(&request.call, read),
            Self::Snapshot(reader) => read(reader),
            Self::Transaction(transaction) => transaction.with(|writer| {
                let catalog = Arc::clone(writer.catalog());
                held::within(request.call.limit_in(writer.memory()), || {
                    let defined = request.bind(&catalog, collection)?;
                    let query = parse(request, &defined)?;
                    work(writer.reading(ReadSet::Query(collection, &query))?, defined.source(), &query)
                })
            }),
        }
    }

    /// Calls `visitor` with the document stored under `key`, if it exists.
    pub(crate) fn get(
        &self,
        collection: &str,
        key: &[u8],
        visitor: RecordVisitor<'_>,
        limits: &CallLimits,
    ) -> Result<PointRead> {
        match self {
            Self::Database(database) => database.get(collection, key, IdMatch::Key, visitor, limits.budget()),
            Self::Snapshot(reader) => reader.get(collection, key, visitor),
            Self::Transaction(transaction) => {
                transaction.with(|writer| writer.reading(ReadSet::Key(collection, key))?.get(collection, key, visitor))
            }
        }
    }

    /// Returns the memory limit of the database's calls, and their folder for temporary files.
    pub(crate) fn memory(&self) -> Result<Memory> {
        match self {
            Self::Database(database) => Ok(database.engine()?.memory().clone()),
            Self::Snapshot(reader) => Ok(reader.memory().clone()),
            Self::Transaction(transaction) => transaction.with(|writer| Ok(writer.memory().clone())),
        }
    }

    /// Adds the damage that the store finds in a collection to a report. Does nothing on a snapshot or in a transaction, which have no access to the
    /// store.
    pub(crate) fn verify_storage(&self, collection: &str, call: &CallContext, run: &mut VerifyRun<'_>) -> Result<()> {
        match self {
            Self::Database(database) => database.verify_storage(Some(collection), call, run).map(drop),
            Self::Snapshot(_) | Self::Transaction(_) => Ok(()),
        }
    }

    /// Returns whether calls can be tried without waiting.
    #[cfg(feature = "async")]
    pub(crate) fn tries_calls(&self) -> bool {
        matches!(self, Self::Database(_))
    }

    /// Returns whether queries and writes can be tried without waiting.
    #[cfg(feature = "async")]
    pub(crate) fn tries_queries(&self) -> bool {
        matches!(self, Self::Database(database) if database.tries_queries())
    }

    /// Returns the definition of the collection or view; `None` if it does not exist.
    pub(crate) fn definition(&self, name: &str, call: &CallContext) -> Result<Option<Namespace>> {
        self.read(ReadSet::Definition(name), call, |reader| Ok(reader.catalog().namespace(name)))
    }

    /// Returns the catalog, with the definitions of all collections and views.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` (263) in a transaction, whose reads do not include all definitions.
    pub(crate) fn catalog(&self, call: &CallContext) -> Result<Arc<Catalog>> {
        match self {
            Self::Database(database) => Ok(Arc::clone(database.reader(call)?.catalog())),
            Self::Snapshot(reader) => Ok(Arc::clone(reader.catalog())),
            Self::Transaction(_) => Err(only_on_database("listing all collections")),
        }
    }

    /// Returns the database, for an operation that needs it as a whole.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` (263) in a snapshot or a transaction.
    pub(crate) fn database(&self, operation: &str) -> Result<&DatabaseHandle> {
        match self {
            Self::Database(database) => Ok(database),
            Self::Snapshot(_) | Self::Transaction(_) => Err(only_on_database(operation)),
        }
    }

    /// Gathers a collection's statistics. Fails in a snapshot or a transaction.
    pub(crate) fn analyze(&self, collection: &str, call: &CallContext) -> Result<()> {
        match self {
            Self::Database(database) => database.analyze(collection, call),
            Self::Snapshot(_) | Self::Transaction(_) => {
                let message = "statistics are gathered outside of transactions and snapshots";
                Err(Error::new(ErrorKind::ReadOnly, Code::ILLEGAL_OPERATION, message))
            }
        }
    }

    /// Runs `work` in the open transaction, or on the database in its own transaction, which is retried after a conflict until the limits of `call`
    /// end it. Fails on a snapshot.
    pub(crate) fn write<R>(&self, call: &CallContext, mut work: impl FnMut(&mut dyn Writer) -> Result<R>) -> Result<R> {
        let mut work = |writer: &mut dyn Writer| {
            held::within(call.limit_in(writer.memory()), || call.interrupt.during(|| work(writer)))
        };
        match self {
            Self::Database(database) => database.write(call, work),
            Self::Snapshot(_) => {
                Err(Error::new(ErrorKind::ReadOnly, Code::ILLEGAL_OPERATION, "a snapshot cannot be written to"))
            }
            Self::Transaction(transaction) => {
                call.check()?;
                transaction.with(|writer| work(writer))
            }
        }
    }
}

fn only_on_database(operation: &str) -> Error {
    let message = format!("{operation} is not supported in a transaction or a snapshot");
    Error::invalid(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message)
}

/// An open database as used by operations, without the public API.
#[derive(Clone)]
pub(crate) struct DatabaseHandle {
    inner: Arc<DatabaseInner>,
    limits: CallLimits,
    rights: Rights,
}

/// The rights of the calls through a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    ReadAndWrite,
    Read,
}

struct DatabaseInner {
    /// `None` once the database is closed.
    engine: RwLock<Option<Arc<dyn Engine>>>,
    store: &'static str,
    /// Whether the store is on a network.
    is_remote: bool,
    durability: Durability,
    lock_timeout: Duration,
    open_transactions: Arc<OpenTransactions>,
    turns: Turns,
    observer: Arc<Observer>,
}

impl DatabaseHandle {
    pub(crate) fn new(engine: Arc<dyn Engine>, durability: Durability, lock_timeout: Duration) -> Self {
        let Capabilities { name: store, remote: is_remote, .. } = engine.capabilities();
        let (observer, open_transactions) = (Arc::clone(engine.observer()), Arc::default());
        let engine = RwLock::new(Some(engine));
        let turns = Turns::default();
        let inner =
            DatabaseInner { engine, store, is_remote, durability, lock_timeout, open_transactions, turns, observer };
        Self { inner: Arc::new(inner), limits: CallLimits::default(), rights: Rights::ReadAndWrite }
    }

    /// Returns the limits of each call through this handle.
    pub(crate) fn limits(&self) -> &CallLimits {
        &self.limits
    }

    /// Returns a handle of the same database with other limits.
    pub(crate) fn with_limits(&self, limits: CallLimits) -> Self {
        Self { limits, ..self.clone() }
    }

    /// Returns a handle of the same database whose calls cannot write.
    pub(crate) fn read_only(&self) -> Self {
        Self { rights: Rights::Read, ..self.clone() }
    }

    pub(crate) fn store(&self) -> &'static str {
        self.inner.store
    }

    /// Returns whether the store is on a network.
    pub(crate) fn is_remote(&self) -> bool {
        self.inner.is_remote
    }

    /// Returns the transactions that callers have open.
    pub(crate) fn open_transactions(&self) -> &Arc<OpenTransactions> {
        &self.inner.open_transactions
    }

    /// Returns the database's metrics; after it was closed, without the state of its caches.
    pub(crate) fn metrics(&self) -> Metrics {
        self.engine().map_or_else(|_| self.inner.observer.metrics(), |engine| engine.metrics())
    }

    /// Returns the counters of the database's work.
    pub(crate) fn observer(&self) -> &Observer {
        &self.inner.observer
    }

    /// Makes every later operation fail with [`ErrorKind::Closed`].
    pub(crate) fn close(&self) {
        let closed = self.inner.engine.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(engine) = closed {
            engine.wakers().wake_all();
        }
    }

    /// Returns the catalog of the latest commit.
    pub(crate) fn catalog(&self) -> Result<Arc<Catalog>> {
        Ok(Arc::clone(self.engine()?.snapshot()?.catalog()))
    }

    pub(crate) fn engine(&self) -> Result<Arc<dyn Engine>> {
        let engine = self.inner.engine.read().unwrap_or_else(PoisonError::into_inner);
        engine.clone().ok_or_else(|| {
            Error::new(ErrorKind::Closed, Code::ILLEGAL_OPERATION, "the database was closed through one of its handles")
        })
    }

    /// Returns whether other processes may commit, so that streams must look for their commits.
    pub(crate) fn other_writers(&self) -> Result<OtherWriters> {
        let is_exclusive = self.engine()?.capabilities().exclusive;
        Ok(if is_exclusive { OtherWriters::None } else { OtherWriters::Expected })
    }

    /// Returns the engine for a call that writes. Every write of every kind gets the engine here.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`] if the handle may only read; [`ErrorKind::Closed`].
    pub(crate) fn engine_to_write(&self) -> Result<Arc<dyn Engine>> {
        match self.rights {
            Rights::ReadAndWrite => self.engine(),
            Rights::Read => {
                let message = "this handle of the database is read-only";
                Err(Error::new(ErrorKind::ReadOnly, Code::ILLEGAL_OPERATION, message))
            }
        }
    }

    /// Returns whether queries can be tried without waiting; false once the database is closed.
    #[cfg(feature = "async")]
    pub(crate) fn tries_queries(&self) -> bool {
        self.engine().is_ok_and(|engine| engine.tries_queries())
    }

    /// Returns a reader of the latest commit. Spends the budget of the call, if any, instead of waiting.
    pub(crate) fn reader(&self, call: &CallContext) -> Result<SharedReader> {
        let engine = self.engine()?;
        match call.interrupt.budget() {
            Some(budget) => engine.try_snapshot()?.ok_or_else(|| budget.spend()),
            None => engine.snapshot(),
        }
    }

    /// Calls `read` with a reader of the latest commit. `read` may be called twice; its first result is dropped then.
    pub(crate) fn read<R>(&self, call: &CallContext, read: impl Fn(&SharedReader) -> Result<R>) -> Result<R> {
        if call.interrupt.budget().is_none() {
            let engine = self.engine()?;
            let (reader, check) = engine.snapshot_ahead()?;
            let result = read(&reader);
            if check.map_or(Ok(true), |check| engine.confirm(check))? {
                return result;
            }
        }
        read(&self.reader(call)?)
    }

    /// Calls `visitor` with the record under `key` in the latest commit, if it exists. Spends the budget, if any, instead of waiting.
    pub(crate) fn get(
        &self,
        collection: &str,
        key: &[u8],
        id: IdMatch,
        visitor: RecordVisitor<'_>,
        budget: Option<&WaitBudget>,
    ) -> Result<PointRead> {
        let engine = self.engine()?;
        let Some(budget) = budget else { return engine.get(collection, key, id, visitor) };
        match engine.try_get(collection, key, id, visitor)? {
            PointRead::Postponed => Err(budget.spend()),
            read => Ok(read),
        }
    }

    /// Runs one write in its own transaction and retries it after a conflict. Waiting for other writers ends at the deadline of the call. Spends the
    /// budget of the call, if any, instead of waiting or retrying.
    pub(crate) fn write<R>(&self, call: &CallContext, mut work: impl FnMut(&mut dyn Writer) -> Result<R>) -> Result<R> {
        self.inner.open_transactions.check_outside()?;
        call.check()?;
        if let Some(budget) = call.interrupt.budget() {
            return self.write_within(budget, call, work);
        }
        let started = self.started(call);
        let mut announcement: Option<Announcement> = None;
        let written = retry::on_conflict(&started.retry, Some(&self.inner.turns), &self.inner.observer, || {
            // The writer gets no limits: `work` checks them, and a commit that has begun is completed.
            let (limits, announced) = (Interrupt::default(), announcement.as_ref().map(Announcement::id));
            let options = BeginOptions { limits, announced, ..started.begin_options() };
            let engine = self.engine_to_write()?;
            let mut writer = engine.begin_ahead(&options)?;
            let mut result = work(&mut *writer);
            if writer.confirm()? != Confirmed::Yes {
                // Not a conflict between writes: the catalog was outdated, or the write makes way. `begin` checks both before the work.
                call.check()?;
                drop(writer);
                let limits = call.interrupt.clone();
                writer = engine.begin(&BeginOptions { limits, announced, ..started.begin_options() })?;
                result = work(&mut *writer);
            }
            let (result, redefined) = (result?, writer.redefines());
            match writer.commit(self.inner.durability) {
                Ok(work) => {
                    // Other writers make way until the announcement is withdrawn.
                    drop(announcement.take());
                    self.work_after_commit(&work);
                    Ok(result)
                }
                Err(error) if error.is_retryable() => {
                    match &mut announcement {
                        Some(announcement) => announcement.repeat(),
                        None => announcement = Announcement::make(engine, redefined, options.wait),
                    }
                    // With an announcement it takes no turn: the writer that has the turn makes way for it.
                    Err(Failure { takes_turn: announcement.is_none(), ..Failure::from(error) })
                }
                Err(error) => Err(error.into()),
            }
        });
        written.map_err(|error: Error| if error.is_retryable() && started.is_over() { past_deadline() } else { error })
    }

    /// Returns whether new writes must wait for a write that conflicts in its turn.
    pub(crate) fn has_exclusive_turn(&self) -> bool {
        self.inner.turns.is_exclusive()
    }

    /// Runs one write in its own transaction, which spends the budget instead of waiting or being retried.
    fn write_within<R>(
        &self,
        budget: &WaitBudget,
        call: &CallContext,
        work: impl FnOnce(&mut dyn Writer) -> Result<R>,
    ) -> Result<R> {
        if self.has_exclusive_turn() {
            return Err(budget.spend());
        }
        let limits = call.interrupt.only_budget();
        let isolation = Isolation::default();
        let options = BeginOptions { wait: Duration::ZERO, isolation, limits, announced: None };
        let mut writer = self.engine_to_write()?.try_begin(&options)?.ok_or_else(|| budget.spend())?;
        let written = work(&mut *writer).and_then(|result| {
            // A short commit leaves no work.
            writer.commit(self.inner.durability).map(|_| result)
        });
        written.map_err(|error| if error.is_retryable() { budget.spend() } else { error })
    }

    /// Repeats a transaction after conflicts, takes turns with other writes, and ends at the limits of the call.
    #[cfg(feature = "async")]
    pub(crate) fn in_turns<R, E: From<Error>>(
        &self,
        call: &CallContext,
        is_conflict: fn(&E) -> bool,
        mut attempt: impl FnMut() -> Result<R, E>,
    ) -> Result<R, E> {
        let started = self.started(call);
        let written = retry::on_conflict(&started.retry, Some(&self.inner.turns), &self.inner.observer, || {
            attempt().map_err(|error| Failure { is_retryable: is_conflict(&error), error, takes_turn: true })
        });
        written.map_err(|error| if is_conflict(&error) && started.is_over() { past_deadline().into() } else { error })
    }

    /// Gathers a collection's statistics and retries after a conflict.
    pub(crate) fn analyze(&self, collection: &str, call: &CallContext) -> Result<()> {
        self.inner.open_transactions.check_outside()?;
        call.check()?;
        let started = self.started(call);
        retry::on_conflict(&started.retry, Some(&self.inner.turns), &self.inner.observer, || {
            Ok(self.engine_to_write()?.analyze(collection, started.begin_options().wait)?)
        })
    }

    /// Begins a transaction without retries. A wait for a store on a network ends at the lock timeout or the deadline of the call.
    pub(crate) fn begin_write(&self, call: &CallContext) -> Result<Box<dyn Writer>> {
        self.inner.open_transactions.check_outside()?;
        self.engine_to_write()?.begin(&self.started(call).begin_options())
    }

    /// Returns the options with which a transaction of a call begins.
    #[cfg(feature = "async")]
    pub(super) fn begin_options(&self, call: &CallContext) -> BeginOptions {
        self.started(call).begin_options()
    }

    /// Starts the clock of a write, which ends at the limits of the call.
    fn started(&self, call: &CallContext) -> Started {
        let mut started = TransactionOptions::default().start(self.inner.lock_timeout);
        started.retry.limits = call.interrupt.clone();
        started
    }

    pub(crate) fn durability(&self) -> Durability {
        self.inner.durability
    }

    pub(crate) fn lock_timeout(&self) -> Duration {
        self.inner.lock_timeout
    }

    /// Commits, then does the work that the commit leaves: drops keyspaces, trims the log, gathers statistics.
    pub(crate) fn finish(&self, writer: Box<dyn Writer>, durability: Durability) -> Result<()> {
        self.work_after_commit(&writer.commit(durability)?);
        Ok(())
    }

    fn work_after_commit(&self, work: &AfterCommit) {
        if !work.is_empty()
            && let Ok(engine) = self.engine()
        {
            engine.after_commit(work, self.inner.lock_timeout);
        }
    }
}
