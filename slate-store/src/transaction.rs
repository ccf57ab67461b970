use crate::{Bounds, Durability, Keyspace, Result, View, limits};

/// An open write transaction. Dropping it rolls it back.
///
/// Reading borrows it, writing borrows it mutably: no cursor is open while a key changes, by type.
///
/// An operation that fails as [`TooLarge`](crate::Error::TooLarge) leaves the transaction as it was, earlier writes and all.
pub trait Transaction: Send + 'static {
    /// The transaction's snapshot with its own writes laid over.
    type View<'t>: View
    where
        Self: 't;

    /// The transaction's snapshot with its own puts and deletes applied.
    fn view(&self) -> Self::View<'_>;

    /// Sets the value of `key`. Keys in ascending order are cheapest.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](crate::Error::TooLarge) over the limits that
    /// [`Capabilities`](crate::Capabilities) state; as the backend's storage fails.
    fn put(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<()>;

    /// Puts many entries, in the order given; of two with one key the later stays. Keys in ascending order, above all that
    /// the keyspace holds, are several times as quick as one [`put`](Self::put) each.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put). When one entry is [`TooLarge`](crate::Error::TooLarge), none is put.
    fn put_many(&mut self, keyspace: Keyspace, entries: &[(&[u8], &[u8])]) -> Result<()> {
        entries.iter().try_for_each(|(key, value)| limits::check(key, value))?;
        entries.iter().try_for_each(|(key, value)| self.put(keyspace, key, value))
    }

    /// Deletes `key`. Deleting what is not there is a write all the same: it conflicts like one.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn delete(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()>;

    /// Deletes what lies within `bounds` as this transaction sees it; keys that others insert there meanwhile stay.
    /// Costs O(keys deleted). To empty a keyspace for good, [drop](crate::Store::drop_keyspace) it.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()>;

    /// Under [`Serializable`](crate::Isolation::Serializable): commit fails with [`Conflict`](crate::Error::Conflict) if
    /// another transaction puts or deletes `key` first, whether or not it is there now. Under
    /// [`Snapshot`](crate::Isolation::Snapshot) it does nothing.
    ///
    /// A range is guarded through a key that every writer of the range puts.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn guard(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()>;

    /// All writes at once, or none and an error.
    ///
    /// Where writers take turns, a [`Sync`](Durability::Sync) commit may wait for those that queue for theirs at the time, so
    /// that one trip to the device serves them all. So none of them may wait for this commit while its own turn lasts.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::Error::Conflict) if another transaction committed first what this one wrote or guarded;
    /// [`OutcomeUnknown`](crate::Error::OutcomeUnknown) if the device failed and reading it again is the only way to know.
    fn commit(self, durability: Durability) -> Result<()>;
}
