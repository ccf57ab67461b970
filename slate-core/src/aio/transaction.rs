use std::fmt;

use super::{Collection, Operation, runner::Runner, thread::TransactionThread};
use crate::{CancelToken, Durability, Result, TransactionOptions, operation::scope::Scope};

/// An open transaction over any number of collections, as [`slate_core::Transaction`](crate::Transaction) is, on its
/// own thread. Its calls are executed one after the other, in the order of their first polls.
///
/// Dropping it cancels its running call and rolls it back, without waiting; [`Transaction::rollback`] waits.
///
/// On a store with one writer at a time, a write outside the transaction waits for it, even in the same task, and fails with
/// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) after the lock timeout. (Blocking code fails at once.)
#[must_use = "a transaction that is dropped is rolled back"]
pub struct Transaction {
    open: Open,
    runner: Runner,
    scope: Scope,
}

/// Rolls back when it is dropped, unless the transaction has ended.
struct Open(Option<(TransactionThread, CancelToken)>);

impl Drop for Open {
    fn drop(&mut self) {
        if let Some((thread, token)) = self.0.take() {
            token.cancel();
            thread.abandon();
        }
    }
}

impl Transaction {
    pub(super) async fn begin(
        options: &TransactionOptions,
        begin: impl FnOnce(&TransactionOptions) -> Result<crate::Transaction> + Send + 'static,
    ) -> Result<Self> {
        let (options, token) = options.cancellable();
        let (thread, scope) = TransactionThread::begin(move || begin(&options)).await?;
        let runner = Runner::Thread(thread.clone());
        Ok(Self { open: Open(Some((thread, token))), runner, scope })
    }

    /// A collection whose reads and writes belong to this transaction. Once the transaction has ended, its calls fail
    /// with [`ErrorKind::TransactionOver`](crate::ErrorKind::TransactionOver).
    ///
    /// A read gathers its rows when it begins: it sees what was written before, and writing while going through the
    /// rows is fine.
    pub fn collection<T: 'static>(&self, name: &str) -> Collection<T> {
        Collection::new(crate::Collection::new(self.scope.clone(), name), self.runner.clone())
    }

    /// Commits everything, or fails and commits nothing. Once polled, the commit is executed even if the operation is
    /// dropped.
    ///
    /// # Errors
    /// As [`slate_core::Transaction::commit`](crate::Transaction::commit).
    pub fn commit(self) -> Operation<()> {
        self.end(crate::Transaction::commit)
    }

    /// Commits with this durability.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_with(self, durability: Durability) -> Operation<()> {
        self.end(move |transaction| transaction.commit_with(durability))
    }

    /// Rolls back all changes and waits for that; dropping the transaction does not wait.
    ///
    /// # Errors
    /// None.
    pub fn rollback(self) -> Operation<()> {
        if let Some((_, token)) = &self.open.0 {
            token.cancel();
        }
        self.end(|transaction| {
            transaction.rollback();
            Ok(())
        })
    }

    fn end(mut self, end: impl FnOnce(crate::Transaction) -> Result<()> + Send + 'static) -> Operation<()> {
        Operation::new(async move {
            match self.open.0.take() {
                Some((thread, _)) => thread.end(end).await,
                None => Ok(()),
            }
        })
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}
