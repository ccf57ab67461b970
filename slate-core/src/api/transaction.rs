use std::fmt;

use crate::{
    Collection, Database, Durability, Result,
    engine::Writer,
    operation::scope::{OpenTransaction, Scope},
};

/// An open transaction over any number of collections. It reads one commit and its own writes over it; whether it may
/// be overtaken in what it only read is its [isolation](crate::TransactionOptions::isolation).
///
/// Dropping it rolls it back. A write that fails half-way (an update of many documents that breaks a unique index, say)
/// ends it: every later call says so, and nothing of it is kept.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct Transaction {
    database: Database,
    open: OpenTransaction,
    durability: Durability,
}

impl Transaction {
    pub(crate) fn new(database: Database, writer: Box<dyn Writer>, durability: Durability) -> Self {
        Self { database, open: OpenTransaction::new(writer), durability }
    }

    /// A collection whose reads and writes belong to this transaction. Once the transaction has ended, its calls fail
    /// with [`ErrorKind::TransactionOver`](crate::ErrorKind::TransactionOver).
    ///
    /// A read gathers its rows when it begins: it sees what was written before, and writing while going through the
    /// rows is fine.
    pub fn collection<T>(&self, name: &str) -> Collection<T> {
        Collection::new(Scope::Transaction(self.open.clone()), name)
    }

    /// What the calls of its collections go through.
    #[cfg(feature = "async")]
    pub(crate) fn scope(&self) -> Scope {
        Scope::Transaction(self.open.clone())
    }

    /// Commits: all of it at once, or none and an error. Waits for the device as its options say, else as the database
    /// was told to.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where another transaction committed first what this one wrote,
    /// or, if this one is serializable, what it read;
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) past its deadline;
    /// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) where the device failed.
    pub fn commit(self) -> Result<()> {
        let durability = self.durability;
        self.commit_with(durability)
    }

    /// Commits with a durability of its own.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_with(self, durability: Durability) -> Result<()> {
        let writer = self.open.take()?;
        self.database.finish(writer, durability)
    }

    /// Rolls back: as if it had never begun.
    pub fn rollback(self) {
        self.open.end();
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // Collections opened through it may outlive it; the store's transaction must not.
        self.open.end();
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("database", &self.database).finish_non_exhaustive()
    }
}
