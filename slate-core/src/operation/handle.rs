use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use slate_query::Code;

use crate::{
    Durability, Error, ErrorKind, Result, TransactionOptions,
    catalog::Catalog,
    engine::{Engine, Writer},
    operation::retry,
};

/// An open database as operations use it, without the public API.
#[derive(Clone)]
pub(crate) struct DatabaseHandle(Arc<Inner>);

struct Inner {
    /// `None` after the database was closed.
    engine: RwLock<Option<Arc<dyn Engine>>>,
    store: &'static str,
    durability: Durability,
    lock_timeout: Duration,
}

impl DatabaseHandle {
    pub(crate) fn new(engine: Arc<dyn Engine>, durability: Durability, lock_timeout: Duration) -> Self {
        let store = engine.name();
        Self(Arc::new(Inner { engine: RwLock::new(Some(engine)), store, durability, lock_timeout }))
    }

    pub(crate) fn store(&self) -> &'static str {
        self.0.store
    }

    /// Makes every later operation fail with [`ErrorKind::Closed`].
    pub(crate) fn close(&self) {
        drop(self.0.engine.write().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The catalog as of the latest commit.
    pub(crate) fn catalog(&self) -> Result<Arc<Catalog>> {
        Ok(Arc::clone(self.engine()?.snapshot()?.catalog()))
    }

    pub(crate) fn engine(&self) -> Result<Arc<dyn Engine>> {
        let engine = self.0.engine.read().unwrap_or_else(PoisonError::into_inner);
        engine.clone().ok_or_else(|| {
            Error::new(ErrorKind::Closed, Code::ILLEGAL_OPERATION, "the database was closed through one of its handles")
        })
    }

    /// Runs one write in its own transaction and retries it after a conflict.
    pub(crate) fn write<R>(&self, mut work: impl FnMut(&mut dyn Writer) -> Result<R>) -> Result<R> {
        let started = TransactionOptions::default().start(self.0.lock_timeout);
        retry::on_conflict(&started.retry, || {
            let mut writer = self.engine()?.begin(&started.begin_options())?;
            let result = work(&mut *writer)?;
            self.finish(writer, self.0.durability)?;
            Ok(result)
        })
    }

    /// Gathers a collection's statistics and retries after a conflict.
    pub(crate) fn analyze(&self, collection: &str) -> Result<()> {
        let started = TransactionOptions::default().start(self.0.lock_timeout);
        retry::on_conflict(&started.retry, || self.engine()?.analyze(collection, self.0.lock_timeout))
    }

    /// Begins a transaction without retries.
    pub(crate) fn begin_write(&self) -> Result<Box<dyn Writer>> {
        let started = TransactionOptions::default().start(self.0.lock_timeout);
        self.engine()?.begin(&started.begin_options())
    }

    pub(crate) fn durability(&self) -> Durability {
        self.0.durability
    }

    pub(crate) fn lock_timeout(&self) -> Duration {
        self.0.lock_timeout
    }

    /// Commits, then drops unlinked keyspaces and refreshes statistics that the commit made stale.
    pub(crate) fn finish(&self, writer: Box<dyn Writer>, durability: Durability) -> Result<()> {
        let work = writer.commit(durability)?;
        if !work.is_empty()
            && let Ok(engine) = self.engine()
        {
            engine.after_commit(&work, self.0.lock_timeout);
        }
        Ok(())
    }
}
