//! Erases the store's type: [`Engine`], [`Reader`] and [`Writer`] have no type parameters; [`Backend`](backend::Backend) implements them for
//! any store.

mod backend;
mod open;
mod read;
mod statistics;
mod transaction;

use std::{path::Path, sync::Arc, time::Duration};

use slate_store::{Capabilities, Durability, Size, SizeDetail};

pub use open::{Access, Recovery, Sharing};
pub(crate) use open::{OpenOptions, open_within, with_store};

use crate::{
    Error, Result,
    catalog::{Catalog, CollectionInfo, Namespace},
    metrics::{Metrics, Observer},
    operation::{
        read_op::{ReadOp, ReadOutput},
        write_op::{WriteOp, WriteOutput},
    },
    write::{AfterCommit, BeginOptions},
};

/// An open store.
pub(crate) trait Engine: Send + Sync {
    /// Counts the work of the database.
    fn observer(&self) -> &Arc<Observer>;
    /// Returns the database's metrics.
    fn metrics(&self) -> Metrics;
    fn capabilities(&self) -> Capabilities;
    /// Returns whether [`try_read`](Self::try_read) can execute queries. It may still refuse one.
    #[cfg(feature = "async")]
    fn tries_queries(&self) -> bool;
    fn snapshot(&self) -> Result<Arc<dyn Reader>>;
    /// Executes `op` on the latest commit.
    fn read(&self, collection: &str, op: ReadOp<'_, '_>) -> Result<ReadOutput>;
    /// Executes `op` on the latest commit. Returns `None` if that might take long, or wait for a device, a network or another
    /// thread.
    fn try_read(&self, collection: &str, op: ReadOp<'_, '_>) -> Result<Option<ReadOutput>>;
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Writer>>;
    /// Begins a transaction, unless it or its commit would have to wait for a device, a network or another thread.
    fn try_begin(&self, options: &BeginOptions) -> Result<Option<Box<dyn Writer>>>;
    /// Executes the work after a commit. The commit has succeeded; a failure here postpones the work.
    fn after_commit(&self, work: &AfterCommit, wait: Duration);
    /// Gathers a collection's statistics from all its keys.
    fn analyze(&self, collection: &str, wait: Duration) -> Result<()>;
    fn flush(&self) -> Result<()>;
    fn backup(&self, to: &Path) -> Result<()>;
    /// `wait` bounds the time in the writer queue.
    fn compact(&self, wait: Duration) -> Result<()>;
    fn size(&self, detail: SizeDetail) -> Result<Size>;
}

/// A reader of one commit.
pub(crate) trait Reader: Send + Sync {
    fn catalog(&self) -> &Arc<Catalog>;
    /// Executes `op`. A collection that does not exist is read as empty.
    fn read(&self, collection: &str, op: ReadOp<'_, '_>) -> Result<ReadOutput>;
}

/// An open write transaction.
pub(crate) trait Writer: Send {
    /// Executes `op` and adds its reads to the transaction's read set.
    fn read(&mut self, collection: &str, op: ReadOp<'_, '_>) -> Result<ReadOutput>;
    fn write(&mut self, op: WriteOp<'_>) -> Result<WriteOutput>;
    /// Ends the transaction: every later call fails with `reason`.
    fn end(&mut self, reason: &str);
    /// Commits; returns the work to do after the commit.
    fn commit(self: Box<Self>, durability: Durability) -> Result<AfterCommit>;
}

impl dyn Writer + '_ {
    /// Executes `op` and converts its output to the result type of the operation.
    pub(crate) fn run<R>(&mut self, op: WriteOp<'_>) -> Result<R>
    where
        WriteOutput: TryInto<R, Error = Error>,
    {
        self.write(op)?.try_into()
    }

    /// Returns the definition of a collection; `None` if it does not exist.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView` (166) for a view.
    pub(crate) fn collection(&mut self, name: &str) -> Result<Option<Arc<CollectionInfo>>> {
        Option::try_from(self.read(name, ReadOp::Definition)?)?.map(Namespace::into_collection).transpose()
    }
}
