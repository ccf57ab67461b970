use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::ThreadId,
};

use slate_query::Code;

use crate::{
    Error, ErrorKind, Explain, ExplainVerbosity, Result,
    catalog::Namespace,
    engine::{Reader, Writer},
    exec::Rows,
    interrupt::Interrupt,
    operation::handle::DatabaseHandle,
    operation::open_transactions::Registration,
    operation::read_op::{ReadOp, ReadOutput},
    plan::Query,
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

/// A transaction's writer, until it is committed or rolled back.
#[derive(Clone)]
pub(crate) struct OpenTransaction(Arc<Shared>);

struct Shared {
    writer: Mutex<Option<Box<dyn Writer>>>,
    /// The thread that runs an operation. The caller's code that runs within it (a progress callback, a `Deserialize`)
    /// must not start another operation of the same transaction.
    caller: Mutex<Option<ThreadId>>,
    /// Whether an operation has failed with a conflict. The caller may have turned its error into another type.
    has_conflict: AtomicBool,
    /// The thread and the task that have begun the transaction, until it ends or is given up.
    registrations: Mutex<Vec<Registration>>,
}

impl OpenTransaction {
    pub(crate) fn new(writer: Box<dyn Writer>, registration: Registration) -> Self {
        Self(Arc::new(Shared {
            writer: Mutex::new(Some(writer)),
            caller: Mutex::new(None),
            has_conflict: AtomicBool::new(false),
            registrations: Mutex::new(vec![registration]),
        }))
    }

    /// Adds the registration of the task that has begun it.
    #[cfg(feature = "async")]
    pub(crate) fn add_registration(&self, registration: Registration) {
        unpoisoned(&self.0.registrations).push(registration);
    }

    /// Allows the thread and the task that have begun the transaction to write outside of it again.
    pub(crate) fn release(&self) {
        unpoisoned(&self.0.registrations).clear();
    }

    /// Returns whether an operation has failed with an error after which the whole transaction can be retried.
    pub(crate) fn has_conflict(&self) -> bool {
        self.0.has_conflict.load(Ordering::Relaxed)
    }

    /// Takes the writer out, so that later operations fail.
    pub(crate) fn take(&self) -> Result<Box<dyn Writer>> {
        self.lock()?.take().ok_or_else(ended)
    }

    /// Rolls the transaction back if it has not been committed.
    pub(crate) fn end(&self) {
        self.release();
        if let Ok(mut writer) = self.lock() {
            drop(writer.take());
        }
    }

    fn with<R>(&self, work: impl FnOnce(&mut dyn Writer) -> Result<R>) -> Result<R> {
        let mut writer = self.lock()?;
        let _calling = Calling::note(&self.0.caller);
        let result = work(&mut **writer.as_mut().ok_or_else(ended)?);
        if result.as_ref().is_err_and(Error::is_retryable) {
            self.0.has_conflict.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Waits for an operation of another thread. Fails for a nested operation of this thread, which would deadlock.
    fn lock(&self) -> Result<MutexGuard<'_, Option<Box<dyn Writer>>>> {
        if *unpoisoned(&self.0.caller) == Some(std::thread::current().id()) {
            let message = "a nested call on the same transaction would wait for itself";
            return Err(Error::new(ErrorKind::Reentrant, Code::ILLEGAL_OPERATION, message));
        }
        Ok(self.0.writer.lock().unwrap_or_else(|poisoned| {
            // An operation panicked and may be partially applied, so the transaction is rolled back.
            let mut writer = poisoned.into_inner();
            *writer = None;
            writer
        }))
    }
}

/// Marks this thread's operation as running until it is dropped.
struct Calling<'c>(&'c Mutex<Option<ThreadId>>);

impl<'c> Calling<'c> {
    fn note(caller: &'c Mutex<Option<ThreadId>>) -> Self {
        *unpoisoned(caller) = Some(std::thread::current().id());
        Self(caller)
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        *unpoisoned(self.0) = None;
    }
}

/// Ignores poisoning: what these locks protect is valid after a panic.
fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ended() -> Error {
    Error::transaction_over("it was committed or rolled back")
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

    /// As [`without_waiting`](Self::without_waiting), for queries and writes; `None` also if the store always has to wait for
    /// queries.
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

    pub(crate) fn explain(
        &self,
        collection: &str,
        query: &Query,
        verbosity: ExplainVerbosity,
        interrupt: &Interrupt,
    ) -> Result<Explain> {
        Ok(Explain::new(self.read(collection, ReadOp::Explain { query, verbosity, interrupt })?))
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
