use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::ThreadId,
};

use slate_query::Code;

use crate::{
    CollectionStats, Database, Error, ErrorKind, Explain, Result,
    api::explain::Verbosity,
    catalog::CollectionInfo,
    engine::{Reader, Writer},
    exec::Rows,
    interrupt::Interrupt,
    maintenance::VerifyRun,
    plan::Query,
};

/// What a collection's calls go through.
#[derive(Clone)]
pub(crate) enum Scope {
    /// Each read sees the last commit, each write is a transaction of its own.
    Database(Database),
    /// Reads see one commit.
    Snapshot(Arc<dyn Reader>),
    /// Reads and writes belong to one transaction.
    Transaction(OpenTransaction),
}

/// A transaction's writer, until it is committed or rolled back.
#[derive(Clone)]
pub(crate) struct OpenTransaction(Arc<Shared>);

struct Shared {
    writer: Mutex<Option<Box<dyn Writer>>>,
    /// The thread whose call is under way: what the caller's own code is given to do within one (a progress callback, a
    /// `Deserialize`) may not call again.
    caller: Mutex<Option<ThreadId>>,
}

impl OpenTransaction {
    pub(crate) fn new(writer: Box<dyn Writer>) -> Self {
        Self(Arc::new(Shared { writer: Mutex::new(Some(writer)), caller: Mutex::new(None) }))
    }

    /// The writer, for good.
    pub(crate) fn take(&self) -> Result<Box<dyn Writer>> {
        self.lock()?.take().ok_or_else(ended)
    }

    /// Rolls back what was not committed.
    pub(crate) fn end(&self) {
        if let Ok(mut writer) = self.lock() {
            drop(writer.take());
        }
    }

    fn with<R>(&self, work: impl FnOnce(&mut dyn Writer) -> Result<R>) -> Result<R> {
        let mut writer = self.lock()?;
        let _calling = Calling::note(&self.0.caller);
        work(&mut **writer.as_mut().ok_or_else(ended)?)
    }

    /// Waits for another thread's call; this thread's own would never end.
    fn lock(&self) -> Result<MutexGuard<'_, Option<Box<dyn Writer>>>> {
        if *unpoisoned(&self.0.caller) == Some(std::thread::current().id()) {
            let message = "a call within a call of the same transaction would wait for itself";
            return Err(Error::new(ErrorKind::Reentrant, Code::ILLEGAL_OPERATION, message));
        }
        Ok(self.0.writer.lock().unwrap_or_else(|poisoned| {
            // A panic within a call: what the call had applied of itself is unknown, so nothing of the transaction is kept.
            let mut writer = poisoned.into_inner();
            *writer = None;
            writer
        }))
    }
}

/// Notes, for as long as it lives, that this thread's call is under way.
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

/// A thread's id is whole whenever it is there.
fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ended() -> Error {
    Error::transaction_over("it was committed or rolled back")
}

impl Scope {
    pub(crate) fn find(&self, collection: &str, query: &Query, interrupt: &Interrupt) -> Result<Box<dyn Rows + Send>> {
        match self {
            Self::Database(database) => database.engine()?.snapshot()?.find(collection, query, interrupt),
            Self::Snapshot(reader) => reader.find(collection, query, interrupt),
            Self::Transaction(transaction) => transaction.with(|writer| writer.find(collection, query, interrupt)),
        }
    }

    pub(crate) fn get(&self, collection: &str, key: &[u8], see: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match self {
            Self::Database(database) => database.engine()?.snapshot()?.get(collection, key, see),
            Self::Snapshot(reader) => reader.get(collection, key, see),
            Self::Transaction(transaction) => transaction.with(|writer| writer.get(collection, key, see)),
        }
    }

    /// The plan of a query, and what it did where it is to be run.
    pub(crate) fn explain(
        &self,
        collection: &str,
        query: &Query,
        verbosity: Verbosity,
        interrupt: &Interrupt,
    ) -> Result<Explain> {
        let of_reader = |reader: &dyn Reader| match verbosity {
            Verbosity::QueryPlanner => reader.plan(collection, query),
            Verbosity::ExecutionStats => reader.analyze(collection, query, interrupt),
        };
        let explained = match self {
            Self::Database(database) => of_reader(&*database.engine()?.snapshot()?),
            Self::Snapshot(reader) => of_reader(&**reader),
            Self::Transaction(transaction) => transaction.with(|writer| match verbosity {
                Verbosity::QueryPlanner => writer.plan(collection, query),
                Verbosity::ExecutionStats => writer.analyze(collection, query, interrupt),
            }),
        };
        Ok(Explain::new(collection, explained?))
    }

    pub(crate) fn stats(&self, collection: &str) -> Result<CollectionStats> {
        match self {
            Self::Database(database) => database.engine()?.snapshot()?.stats(collection),
            Self::Snapshot(reader) => reader.stats(collection),
            Self::Transaction(transaction) => transaction.with(|writer| writer.stats(collection)),
        }
    }

    pub(crate) fn verify(&self, collection: &str, run: &mut VerifyRun<'_>) -> Result<()> {
        match self {
            Self::Database(database) => database.engine()?.snapshot()?.verify(collection, run),
            Self::Snapshot(reader) => reader.verify(collection, run),
            Self::Transaction(transaction) => transaction.with(|writer| writer.verify(collection, run)),
        }
    }

    /// Gathers a collection's statistics; they are no transaction's own.
    pub(crate) fn analyze(&self, collection: &str) -> Result<()> {
        match self {
            Self::Database(database) => database.analyze(collection),
            Self::Snapshot(_) | Self::Transaction(_) => {
                let message = "statistics are gathered outside of transactions and snapshots";
                Err(Error::new(ErrorKind::ReadOnly, Code::ILLEGAL_OPERATION, message))
            }
        }
    }

    /// What the catalog says of a collection, seen as reads of this scope see it.
    pub(crate) fn definition(&self, collection: &str) -> Result<Option<Arc<CollectionInfo>>> {
        match self {
            Self::Database(database) => Ok(database.engine()?.snapshot()?.catalog().collection(collection).cloned()),
            Self::Snapshot(reader) => Ok(reader.catalog().collection(collection).cloned()),
            Self::Transaction(transaction) => transaction.with(|writer| {
                writer.reads_definition(collection)?;
                Ok(writer.catalog().collection(collection).cloned())
            }),
        }
    }

    pub(crate) fn write<R>(&self, mut work: impl FnMut(&mut dyn Writer) -> Result<R>) -> Result<R> {
        match self {
            Self::Database(database) => database.write(work),
            Self::Snapshot(_) => {
                Err(Error::new(ErrorKind::ReadOnly, Code::ILLEGAL_OPERATION, "a snapshot is for reading only"))
            }
            Self::Transaction(transaction) => transaction.with(|writer| work(writer)),
        }
    }
}
