use super::{Collection, Operation, runner::Runner, transaction_calls::TransactionCalls};
use crate::{
    CancelToken, Durability, Result, TransactionOptions,
    call::{Scope, open_transactions::OpenTransaction},
    interrupt::CallLimits,
    namespace::DatabaseName,
};

/// An open transaction over any number of collections, as [`slate_core::Transaction`](crate::Transaction) is. It takes no
/// thread between its calls. They are executed one after the other, in the order of their first polls.
///
/// Dropping it cancels its running call and rolls it back, without waiting; [`Transaction::rollback`] waits.
///
/// The transaction belongs to the task that began it. Until it ends, a write of that task outside of it fails at once
/// with [`ErrorKind::Reentrant`](crate::ErrorKind::Reentrant), on every store. Futures that one task polls together
/// (`join!`, `FuturesUnordered`) are one task: spawn those that write meanwhile. Writes outside of the transaction by a
/// task to which it was moved do not fail: they are committed separately.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct Transaction {
    open: Open,
    /// The database of [`Transaction::collection`].
    name: DatabaseName,
    runner: Runner,
}

/// Rolls back when it is dropped, unless the transaction has ended.
struct Open {
    running: Option<(TransactionCalls, CancelToken)>,
    transaction: OpenTransaction,
}

impl Drop for Open {
    fn drop(&mut self) {
        // The task can write again before the rollback, or a commit that it no longer awaits, has ended.
        self.transaction.release();
        if let Some((calls, token)) = self.running.take() {
            token.cancel();
            calls.abandon();
        }
    }
}

impl Transaction {
    pub(super) async fn begin(
        options: &TransactionOptions,
        name: DatabaseName,
        begin: impl FnOnce(&TransactionOptions) -> Result<crate::Transaction> + Send + 'static,
    ) -> Result<Self> {
        let (options, token) = options.cancellable();
        let (calls, transaction) = TransactionCalls::begin(move || begin(&options)).await?;
        let runner = Runner::Transaction(calls.clone());
        Ok(Self { open: Open { running: Some((calls, token)), transaction }, name, runner })
    }

    /// Returns a collection whose reads and writes belong to this transaction. Once the transaction has ended, its
    /// calls fail with [`ErrorKind::TransactionOver`](crate::ErrorKind::TransactionOver).
    ///
    /// A read gathers all its rows when it begins: it sees earlier writes, and the caller may write while iterating
    /// over the rows.
    pub fn collection<T: 'static>(&self, name: &str) -> Collection<T> {
        self.collection_of(&self.name, name)
    }

    /// Returns a collection of another database in the store whose reads and writes belong to this transaction; see
    /// [`slate_core::Transaction::collection_in`](crate::Transaction::collection_in).
    pub fn collection_in<T: 'static>(&self, database: &str, name: &str) -> Collection<T> {
        self.collection_of(&DatabaseName::new(database), name)
    }

    fn collection_of<T: 'static>(&self, database: &DatabaseName, name: &str) -> Collection<T> {
        let collection = crate::Collection::new(self.scope(), database.stored(name), CallLimits::default());
        Collection::new(collection, self.runner.clone())
    }

    pub(super) fn scope(&self) -> Scope {
        Scope::Transaction(self.open.transaction.clone())
    }

    pub(super) fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Returns whether a call has failed with an error after which the whole transaction can be retried.
    pub(super) fn has_conflict(&self) -> bool {
        self.open.transaction.has_conflict()
    }

    /// Commits all changes, or fails and commits none. Once polled, the commit is executed even if the operation is
    /// dropped.
    ///
    /// # Errors
    /// Fails as [`slate_core::Transaction::commit`](crate::Transaction::commit) does.
    pub fn commit(self) -> Operation<()> {
        self.end(crate::Transaction::commit)
    }

    /// Commits with this durability.
    ///
    /// # Errors
    /// Fails as [`Transaction::commit`] does.
    pub fn commit_with(self, durability: Durability) -> Operation<()> {
        self.end(move |transaction| transaction.commit_with(durability))
    }

    /// Rolls back all changes and waits for that; dropping the transaction does not wait.
    ///
    /// # Errors
    /// Fails outside of a tokio runtime, and if the runtime shuts down.
    pub fn rollback(self) -> Operation<()> {
        if let Some((_, token)) = &self.open.running {
            token.cancel();
        }
        self.end(|transaction| {
            transaction.rollback();
            Ok(())
        })
    }

    fn end(mut self, end: impl FnOnce(crate::Transaction) -> Result<()> + Send + 'static) -> Operation<()> {
        Operation::new(async move {
            match self.open.running.take() {
                Some((calls, _)) => calls.end(end).await,
                None => Ok(()),
            }
        })
    }
}

crate::debug::shown! { self: Transaction {} }
