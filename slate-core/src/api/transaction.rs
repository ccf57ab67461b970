use crate::{
    Collection, Durability, Result,
    call::{
        DatabaseHandle, Scope, Writer,
        open_transactions::{OpenTransaction, Registration},
    },
    interrupt::CallLimits,
    namespace::DatabaseName,
};

/// An open transaction over any number of collections. It reads one commit and its own writes; whether it conflicts with
/// changes to what it only read depends on its [isolation](crate::TransactionOptions::isolation).
///
/// Dropping it rolls it back. A write that is rejected or interrupted leaves it unchanged and usable; the operations of a bulk write before the
/// rejected one remain. If the storage fails during a write, or a pipeline with `$out` or `$merge` fails after it has written documents, the
/// transaction ends: later calls fail and nothing is committed.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct Transaction {
    database: DatabaseHandle,
    open: OpenTransaction,
    /// The database of [`Transaction::collection`].
    name: DatabaseName,
    durability: Durability,
}

impl Transaction {
    /// Creates an open transaction. `owner` is the thread or the task that begins it; `None` for a detached one.
    pub(crate) fn new(
        database: DatabaseHandle,
        writer: Box<dyn Writer>,
        owner: Option<Registration>,
        name: DatabaseName,
        durability: Durability,
    ) -> Self {
        Self { database, name, open: OpenTransaction::new(writer, owner), durability }
    }

    /// Returns a collection whose reads and writes belong to this transaction. After the transaction has ended, its calls
    /// fail with [`ErrorKind::TransactionOver`](crate::ErrorKind::TransactionOver).
    ///
    /// A query reads all its rows when it starts: it sees earlier writes, and the caller may write while iterating over the rows.
    pub fn collection<T>(&self, name: &str) -> Collection<T> {
        self.collection_of(&self.name, name)
    }

    /// Returns a collection of another database of the store whose reads and writes belong to this transaction; see
    /// [`Database::database`](crate::Database::database).
    pub fn collection_in<T>(&self, database: &str, name: &str) -> Collection<T> {
        self.collection_of(&DatabaseName::new(database), name)
    }

    fn collection_of<T>(&self, database: &DatabaseName, name: &str) -> Collection<T> {
        Collection::new(self.scope(), database.stored(name), CallLimits::default())
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope::Transaction(self.open.clone())
    }

    /// Returns whether an operation has failed with an error after which the whole transaction can be retried.
    pub(crate) fn has_conflict(&self) -> bool {
        self.open.has_conflict()
    }

    /// Returns the open transaction, which the handles of its collections share.
    #[cfg(feature = "async")]
    pub(crate) fn open(&self) -> &OpenTransaction {
        &self.open
    }

    /// Commits all changes, or fails and commits none. The durability is that of the options, by default the database's.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if another transaction has committed a change to what this one
    /// wrote or, if it is serializable, read; [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) after its deadline;
    /// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) if the device failed.
    pub fn commit(self) -> Result<()> {
        let durability = self.durability;
        self.commit_with(durability)
    }

    /// Commits with this durability.
    ///
    /// # Errors
    /// Fails as [`Transaction::commit`] does.
    pub fn commit_with(self, durability: Durability) -> Result<()> {
        let writer = self.open.take()?;
        self.database.finish(writer, durability)
    }

    /// Rolls back all its changes.
    pub fn rollback(self) {
        self.open.end();
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // Handles of collections can outlive this value, so the store's transaction must be ended here.
        self.open.end();
    }
}

crate::debug::shown! { self: Transaction { store: self.database.store() } }
