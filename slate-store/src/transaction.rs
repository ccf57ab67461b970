use crate::{Bounds, Durability, Guard, Keyspace, LastWrites, Result, Version, View};

/// A key and its new value; `None` deletes the key.
pub type Write<'w> = (&'w [u8], Option<&'w [u8]>);

/// The last stage of a commit: receives the version of the commit, and adds writes to those of the transaction.
pub type LastStage<'s> = &'s mut dyn FnMut(Version, &mut dyn LastWrites) -> Result<()>;

/// An open write transaction. Dropping it rolls it back.
///
/// Reads borrow the transaction and writes borrow it mutably, so no cursor is open while a key changes.
pub trait Transaction: Send + 'static {
    /// The transaction's snapshot with its own writes applied.
    type View<'t>: View
    where
        Self: 't;

    /// Returns the transaction's snapshot with its own writes applied. Its version is the snapshot's.
    fn view(&self) -> Self::View<'_>;

    /// Puts and deletes keys, in the order given: the last write to a key wins. Deleting a key that does not exist is
    /// also a write and can conflict. Writes are cheapest in ascending key order, above all existing keys of the
    /// keyspace.
    ///
    /// # Errors
    /// [`TooLarge`](crate::Error::TooLarge) if a limit of [`Capabilities`](crate::Capabilities) is exceeded: then none
    /// of `writes` is applied, and the transaction stays usable. Any failure of the backend's storage.
    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()>;

    /// Deletes all keys within `bounds` that exist when the transaction commits; without
    /// [`ranges_conflict`](crate::Capabilities::ranges_conflict), those that its view shows. On some backends the cost grows with the number of
    /// keys.
    ///
    /// Earlier writes of the transaction in the range are removed, later ones remain. The delete conflicts with transactions that commit later and
    /// wrote or guarded a key in the range.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()>;

    /// Makes the commit depend on a key that this transaction does not write. [`Guard`] states which accesses conflict.
    /// Only transactions that committed after this transaction's view ([`View::version`]) can conflict with it.
    ///
    /// To guard a range, guard a key that every writer of the range writes or guards.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn guard(&mut self, keyspace: Keyspace, key: &[u8], guard: Guard) -> Result<()>;

    /// Applies all writes atomically. Returns the version of the commit; the version of the view if nothing was
    /// written.
    ///
    /// Waits for commits in progress, never for open transactions. Concurrent [`Sync`](Durability::Sync) commits may share a sync of the device.
    ///
    /// # Errors
    /// [`Conflict`](crate::Error::Conflict) if another transaction committed a write of a key that this one wrote or
    /// guarded, or if guards conflict; then nothing is written. [`OutcomeUnknown`](crate::Error::OutcomeUnknown) if the
    /// device failed and only reopening the database can show the outcome.
    fn commit(self, durability: Durability) -> Result<Version>;

    /// Commits all writes and those that `last` makes, atomically. `last` is called at most once, with the version of the commit, which its keys
    /// and values may contain. Its writes are applied after all others. With [`commit_versions`](crate::Capabilities::commit_versions) they may
    /// exceed the limits of the transaction. Writes are cheapest in ascending order of keys.
    ///
    /// `last` runs while other commits wait. It must not use the store.
    ///
    /// # Errors
    /// The error of `last`, and of writes that it makes: then nothing is written. Otherwise as [`commit`](Self::commit).
    fn commit_with(self, durability: Durability, last: LastStage<'_>) -> Result<Version>;
}

/// Writes of single keys, for every [`Transaction`].
pub trait TransactionExt: Transaction {
    /// Sets the value of `key`.
    ///
    /// # Errors
    /// Fails as [`write`](Transaction::write) does.
    fn put(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(keyspace, &[(key, Some(value))])
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// Fails as [`write`](Transaction::write) does.
    fn delete(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        self.write(keyspace, &[(key, None)])
    }
}

impl<T: Transaction> TransactionExt for T {}
