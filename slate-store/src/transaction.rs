use crate::{Durability, Guard, Keyspace, Result, Version, View};

/// A key and the value it is to have; `None` deletes the key.
pub type Write<'w> = (&'w [u8], Option<&'w [u8]>);

/// An open write transaction. Dropping it rolls it back.
///
/// Reading borrows it, writing borrows it mutably: no cursor is open while a key changes, by type.
pub trait Transaction: Send + 'static {
    /// The transaction's snapshot with its own writes applied.
    type View<'t>: View
    where
        Self: 't;

    /// The transaction's snapshot with its own writes applied. Its version is the snapshot's.
    fn view(&self) -> Self::View<'_>;

    /// Puts and deletes keys, in the order given: the last write of a key stays. Deleting a key that does not exist is a
    /// write, too: it conflicts like one. Keys in ascending order are cheapest, above all keys that the keyspace holds.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](crate::Error::TooLarge) over the limits that [`Capabilities`](crate::Capabilities) state: nothing of
    /// `writes` is written then, and the transaction stays usable. As the backend's storage fails.
    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()>;

    /// Makes the commit depend on a key that is not written. [`Guard`] says what it conflicts with. A conflict is between
    /// this transaction and one that committed after this transaction's view: [`View::version`].
    ///
    /// To guard a range, guard a key that every writer of the range writes or guards.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn guard(&mut self, keyspace: Keyspace, key: &[u8], guard: Guard) -> Result<()>;

    /// Applies all writes at once, or none. Returns the version from which on they are visible; that of the view if
    /// nothing was written.
    ///
    /// If writers take turns, a [`Sync`](Durability::Sync) commit may wait for the writers that are queued at the time,
    /// to share one sync of the device. None of them may wait for this commit before it ends its own transaction.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::Error::Conflict) if another transaction committed a write of a key that this one wrote or
    /// guarded, or if guards conflict; nothing is written then. [`OutcomeUnknown`](crate::Error::OutcomeUnknown) if the
    /// device failed and only opening the database again can tell.
    fn commit(self, durability: Durability) -> Result<Version>;
}

/// Writes of single keys, for every [`Transaction`].
pub trait TransactionExt: Transaction {
    /// Sets the value of `key`.
    ///
    /// # Errors
    ///
    /// As [`write`](Transaction::write).
    fn put(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(keyspace, &[(key, Some(value))])
    }

    /// Deletes `key`.
    ///
    /// # Errors
    ///
    /// As [`write`](Transaction::write).
    fn delete(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        self.write(keyspace, &[(key, None)])
    }
}

impl<T: Transaction> TransactionExt for T {}
