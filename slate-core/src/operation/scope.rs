//! Where operations are executed: [`Scope`] dispatches those of a collection to a snapshot, to an open transaction, or to the
//! [`DatabaseHandle`], which executes each write in a transaction of its own.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use slate_query::Code;
use slate_store::{Capabilities, SizeDetail};

use crate::{
    CollectionStats, DatabaseStats, Durability, Error, ErrorKind, Isolation, Result, TransactionOptions,
    api::transaction_options::Started,
    catalog::{Catalog, Namespace},
    engine::{Engine, Reader, Writer},
    exec::Rows,
    interrupt::{CallLimits, Interrupt, ShortCall, past_deadline, would_wait},
    metrics::{Metrics, Observer},
    operation::{
        open_transactions::{OpenTransaction, OpenTransactions},
        read_op::{ReadOp, ReadOutput},
        retry,
    },
    plan::Query,
    write::BeginOptions,
};

/// Where a collection's operations are executed.
#[derive(Clone)]
pub(crate) enum Scope {
    /// Each read sees the latest commit; each write is its own transaction.
    Database(DatabaseHandle),
    /// All reads see one commit; writes fail.
    Snapshot(Arc<dyn Reader>),
    /// Reads and writes belong to one transaction.
    Transaction(OpenTransaction),
}

impl Scope {
    /// Executes `op` and converts its output to the result type of the operation.
    pub(crate) fn read<R>(&self, collection: &str, op: ReadOp<'_, '_>) -> Result<R>
    where
        ReadOutput: TryInto<R, Error = Error>,
    {
        match self {
            Self::Database(database) => database.read(collection, op)?,
            Self::Snapshot(reader) => reader.read(collection, op)?,
            Self::Transaction(transaction) => transaction.with(|writer| writer.read(collection, op))?,
        }
        .try_into()
    }

    pub(crate) fn find(&self, collection: &str, query: &Query, interrupt: &Interrupt) -> Result<Box<dyn Rows + Send>> {
        let interrupt = match self {
            Self::Database(database) => &*database.limited(interrupt),
            Self::Snapshot(_) | Self::Transaction(_) => interrupt,
        };
        self.read(collection, ReadOp::Find { query, interrupt })
    }

    /// Returns the same scope for calls that must not wait; `None` if its calls always wait.
    #[cfg(feature = "async")]
    pub(crate) fn without_waiting(&self) -> Option<Self> {
        match self {
            Self::Database(database) => Some(Self::Database(database.without_waiting())),
            Self::Snapshot(_) | Self::Transaction(_) => None,
        }
    }

    /// Like [`without_waiting`](Self::without_waiting), for queries and writes; `None` also if the store always has to
    /// wait for queries.
    #[cfg(feature = "async")]
    pub(crate) fn queries_without_waiting(&self) -> Option<Self> {
        match self {
            Self::Database(database) if !database.tries_queries() => None,
            scope => scope.without_waiting(),
        }
    }

    /// Returns the limit of calls that must not wait, if the scope has one.
    #[cfg(feature = "async")]
    pub(crate) fn short(&self) -> Option<crate::interrupt::ShortCall> {
        match self {
            Self::Database(database) => database.short().cloned(),
            Self::Snapshot(_) | Self::Transaction(_) => None,
        }
    }

    /// Returns the definition of the collection or view; `None` if it does not exist.
    pub(crate) fn definition(&self, collection: &str) -> Result<Option<Namespace>> {
        self.read(collection, ReadOp::Definition)
    }

    /// Gathers a collection's statistics, outside any transaction.
    pub(crate) fn analyze(&self, collection: &str, interrupt: &Interrupt) -> Result<()> {
        match self {
            Self::Database(database) => database.analyze(collection, interrupt),
            Self::Snapshot(_) | Self::Transaction(_) => {
                let message = "statistics are gathered outside of transactions and snapshots";
                Err(Error::new(ErrorKind::ReadOnly, Code::ILLEGAL_OPERATION, message))
            }
        }
    }

    /// Runs `work` in the open transaction, or else in its own transaction, which is retried after a conflict until `interrupt` ends it.
    pub(crate) fn write<R>(
        &self,
        interrupt: &Interrupt,
        mut work: impl FnMut(&mut dyn Writer) -> Result<R>,
    ) -> Result<R> {
        match self {
            Self::Database(database) => database.write(interrupt, work),
            Self::Snapshot(_) => {
                Err(Error::new(ErrorKind::ReadOnly, Code::ILLEGAL_OPERATION, "a snapshot cannot be written to"))
            }
            Self::Transaction(transaction) => {
                interrupt.check()?;
                transaction.with(|writer| work(writer))
            }
        }
    }
}

/// An open database as used by operations, without the public API.
#[derive(Clone)]
pub(crate) struct DatabaseHandle {
    inner: Arc<Inner>,
    /// If set, a call that would have to wait fails with [`would_wait`].
    short: Option<ShortCall>,
    limits: CallLimits,
    rights: Rights,
}

/// What the calls through a handle may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    ReadAndWrite,
    Read,
}

struct Inner {
    /// `None` once the database is closed.
    engine: RwLock<Option<Arc<dyn Engine>>>,
    store: &'static str,
    concurrent_writers: bool,
    durability: Durability,
    lock_timeout: Duration,
    open_transactions: Arc<OpenTransactions>,
    observer: Arc<Observer>,
}

impl DatabaseHandle {
    pub(crate) fn new(engine: Arc<dyn Engine>, durability: Durability, lock_timeout: Duration) -> Self {
        let Capabilities { name: store, concurrent_writers, .. } = engine.capabilities();
        let (observer, open_transactions) = (Arc::clone(engine.observer()), Arc::default());
        let engine = RwLock::new(Some(engine));
        let inner = Inner { engine, store, concurrent_writers, durability, lock_timeout, open_transactions, observer };
        Self { inner: Arc::new(inner), short: None, limits: CallLimits::default(), rights: Rights::ReadAndWrite }
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

    /// Returns whether several transactions can be open at once.
    pub(crate) fn has_concurrent_writers(&self) -> bool {
        self.inner.concurrent_writers
    }

    /// Returns the transactions that callers have open.
    pub(crate) fn open_transactions(&self) -> &Arc<OpenTransactions> {
        &self.inner.open_transactions
    }

    /// Returns the database's metrics; after it was closed, without the state of its caches.
    pub(crate) fn metrics(&self) -> Metrics {
        self.engine().map_or_else(|_| self.inner.observer.metrics(), |engine| engine.metrics())
    }

    /// Counts the work of the database.
    pub(crate) fn observer(&self) -> &Observer {
        &self.inner.observer
    }

    /// Makes every later operation fail with [`ErrorKind::Closed`].
    pub(crate) fn close(&self) {
        drop(self.inner.engine.write().unwrap_or_else(PoisonError::into_inner).take());
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

    /// Returns a handle of the same database for calls that must not wait.
    #[cfg(feature = "async")]
    pub(crate) fn without_waiting(&self) -> Self {
        Self { short: Some(ShortCall::default()), ..self.clone() }
    }

    /// Returns whether queries can be executed without waiting.
    #[cfg(feature = "async")]
    pub(crate) fn tries_queries(&self) -> bool {
        self.engine().is_ok_and(|engine| engine.tries_queries())
    }

    #[cfg(feature = "async")]
    pub(crate) fn short(&self) -> Option<&ShortCall> {
        self.short.as_ref()
    }

    /// Executes `op` on the latest commit.
    pub(crate) fn read(&self, collection: &str, op: ReadOp<'_, '_>) -> Result<ReadOutput> {
        let engine = self.engine()?;
        match self.short {
            Some(_) => engine.try_read(collection, op)?.ok_or_else(would_wait),
            None => engine.read(collection, op),
        }
    }

    /// Returns the interrupt of a read, see [`Interrupt::short`].
    pub(crate) fn limited<'i>(&self, interrupt: &'i Interrupt) -> Cow<'i, Interrupt> {
        self.short.as_ref().map_or(Cow::Borrowed(interrupt), |short| Cow::Owned(interrupt.short(short)))
    }

    /// Runs one write in its own transaction and retries it after a conflict. Waiting for other writers ends at the deadline
    /// of the call.
    pub(crate) fn write<R>(&self, limits: &Interrupt, mut work: impl FnMut(&mut dyn Writer) -> Result<R>) -> Result<R> {
        self.inner.open_transactions.check_outside()?;
        limits.check()?;
        if let Some(short) = &self.short {
            return self.write_short(short, work);
        }
        let started = self.started(limits);
        let written = retry::on_conflict(&started.retry, &self.inner.observer, || {
            // `work` checks the limits. A commit that has begun is completed.
            let options = BeginOptions { limits: Interrupt::default(), ..started.begin_options() };
            let mut writer = self.engine_to_write()?.begin(&options)?;
            let result = work(&mut *writer)?;
            self.finish(writer, self.inner.durability)?;
            Ok(result)
        });
        // No further attempt is made if it would begin after the deadline.
        let soon = Instant::now() + 2 * started.retry.longest_pause;
        let is_over = limits.end().is_some_and(|end| end <= soon);
        written.map_err(|error: Error| if error.is_retryable() && is_over { past_deadline() } else { error })
    }

    /// Runs one write in its own transaction, which fails with [`would_wait`] instead of waiting or being retried.
    fn write_short<R>(&self, short: &ShortCall, work: impl FnOnce(&mut dyn Writer) -> Result<R>) -> Result<R> {
        let limits = Interrupt::default().short(short);
        let options = BeginOptions { wait: Duration::ZERO, isolation: Isolation::default(), limits };
        let mut writer = self.engine_to_write()?.try_begin(&options)?.ok_or_else(would_wait)?;
        let written = work(&mut *writer).and_then(|result| {
            // There is no work to do after a short commit.
            writer.commit(self.inner.durability).map(|_| result)
        });
        written.map_err(|error| if error.is_retryable() { would_wait() } else { error })
    }

    /// Measures all collections and indexes of the latest commit, and the files.
    pub(crate) fn stats(&self, interrupt: &Interrupt, detail: SizeDetail) -> Result<DatabaseStats> {
        let engine = self.engine()?;
        let snapshot = engine.snapshot()?;
        let mut collections = BTreeMap::new();
        for collection in snapshot.catalog().collections() {
            let stats: CollectionStats = snapshot.read(&collection.name, ReadOp::Stats { interrupt })?.try_into()?;
            collections.insert(collection.name.to_string(), stats);
        }
        let views = snapshot.catalog().views().count();
        drop(snapshot);
        Ok(DatabaseStats { collections, views, storage: engine.size(detail)? })
    }

    /// Gathers a collection's statistics and retries after a conflict.
    pub(crate) fn analyze(&self, collection: &str, interrupt: &Interrupt) -> Result<()> {
        self.inner.open_transactions.check_outside()?;
        interrupt.check()?;
        let started = self.started(interrupt);
        retry::on_conflict(&started.retry, &self.inner.observer, || {
            Ok(self.engine_to_write()?.analyze(collection, started.begin_options().wait)?)
        })
    }

    /// Begins a transaction without retries. Waiting for other writers ends at the deadline of the call.
    pub(crate) fn begin_write(&self, limits: &Interrupt) -> Result<Box<dyn Writer>> {
        self.inner.open_transactions.check_outside()?;
        self.engine_to_write()?.begin(&self.started(limits).begin_options())
    }

    /// Starts the clock of a write within the limits of a call.
    fn started(&self, limits: &Interrupt) -> Started {
        let mut started = TransactionOptions::default().start(self.inner.lock_timeout);
        started.retry.limits = limits.clone();
        started
    }

    pub(crate) fn durability(&self) -> Durability {
        self.inner.durability
    }

    pub(crate) fn lock_timeout(&self) -> Duration {
        self.inner.lock_timeout
    }

    /// Commits, then drops unlinked keyspaces and refreshes statistics that the commit made stale.
    pub(crate) fn finish(&self, writer: Box<dyn Writer>, durability: Durability) -> Result<()> {
        let work = writer.commit(durability)?;
        if !work.is_empty()
            && let Ok(engine) = self.engine()
        {
            engine.after_commit(&work, self.inner.lock_timeout);
        }
        Ok(())
    }
}
