//! Where calls are executed: [`Scope`] directs those of a collection to the [`DatabaseHandle`], which executes each write in
//! a transaction of its own, to a snapshot, or to an open transaction.

use std::sync::Arc;

use slate_query::{Code, held};

use super::{
    bound_request::BoundRequest,
    database_handle::DatabaseHandle,
    engine::{IdMatch, ReadSet, Reader, RecordVisitor, SharedReader, Writer},
    open_transactions::OpenTransaction,
    request::Request,
};
use crate::{
    Error, ErrorKind, Result,
    call_context::CallContext,
    catalog::{Catalog, CollectionInfo, Namespace},
    interrupt::CallLimits,
    metrics::PointRead,
    plan::Query,
    verify::VerifyRun,
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

    /// Binds the request to what it reads, parses it, and calls `work` with the reader, the collection that the query reads,
    /// and the query. Both closures may be called twice.
    pub(crate) fn query<R>(
        &self,
        collection: &str,
        request: &Request,
        parse: impl Fn(&BoundRequest<'_>) -> Result<Query>,
        work: impl Fn(&dyn Reader, &CollectionInfo, &Query) -> Result<R>,
    ) -> Result<R> {
        request.call.interrupt.during(|| self.query_limited(collection, request, parse, work))
    }

    fn query_limited<R>(
        &self,
        collection: &str,
        request: &Request,
        parse: impl Fn(&BoundRequest<'_>) -> Result<Query>,
        work: impl Fn(&dyn Reader, &CollectionInfo, &Query) -> Result<R>,
    ) -> Result<R> {
        let read = |reader: &SharedReader| {
            held::within(request.call.limit_in(reader.memory()), || {
                let bound = request.bind(reader.catalog(), collection)?;
                work(&**reader, bound.source(), &parse(&bound)?)
            })
        };
        match self {
            Self::Database(database) => database.read(&request.call, read),
            Self::Snapshot(reader) => read(reader),
            Self::Transaction(transaction) => transaction.with(|writer| {
                let catalog = Arc::clone(writer.catalog());
                held::within(request.call.limit_in(writer.memory()), || {
                    let bound = request.bind(&catalog, collection)?;
                    let query = parse(&bound)?;
                    work(writer.reading(ReadSet::Query(collection, &query))?, bound.source(), &query)
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

    /// Adds the damage that the store finds in a collection to a report. A snapshot and a transaction have no store to ask.
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

    /// Returns all definitions.
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

    /// Returns the database, for what concerns its files as well.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` (263) in a snapshot or a transaction.
    pub(crate) fn database(&self, operation: &str) -> Result<&DatabaseHandle> {
        match self {
            Self::Database(database) => Ok(database),
            Self::Snapshot(_) | Self::Transaction(_) => Err(only_on_database(operation)),
        }
    }

    /// Gathers a collection's statistics, outside any transaction.
    pub(crate) fn analyze(&self, collection: &str, call: &CallContext) -> Result<()> {
        match self {
            Self::Database(database) => database.analyze(collection, call),
            Self::Snapshot(_) | Self::Transaction(_) => {
                let message = "statistics are gathered outside of transactions and snapshots";
                Err(Error::new(ErrorKind::ReadOnly, Code::ILLEGAL_OPERATION, message))
            }
        }
    }

    /// Runs `work` in the open transaction, or else in its own transaction, which is retried after a conflict until the limits of
    /// `call` end it.
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
