//! The contract. Nothing here names a backend.

use std::{path::Path, time::Duration};

use crate::{Capabilities, Keyspace, Result, Size, Snapshot, Transaction, Version, View};

/// A database: ordered maps of bytes, the keyspaces, under one order of commits.
///
/// A handle, cheap to share behind an [`Arc`](std::sync::Arc). The snapshots and transactions opened on it keep the
/// database open, also after the handle was dropped.
pub trait Store: Send + Sync + 'static {
    /// A commit, to be read.
    type Snapshot: Snapshot;
    /// An open write transaction.
    type Transaction: Transaction;

    /// What this backend can do, and its limits. The same for as long as the store is open.
    fn capabilities(&self) -> Capabilities;

    /// A snapshot of the last commit, across all keyspaces. Does not wait for transactions; at most for a commit that is
    /// being put in place.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn snapshot(&self) -> Result<Self::Snapshot>;

    /// A snapshot of the last commit, if it and short reads of it need not wait for a device, a network or another thread;
    /// `None` otherwise, and by default. Async callers read from it on their own thread.
    fn try_snapshot(&self) -> Option<Self::Snapshot> {
        None
    }

    /// Calls `visitor` with the value of one key in the last commit, if that is known without waiting for a device, a
    /// network or another thread; `None` otherwise. The inner `None`: the key does not exist.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn try_get<R>(
        &self,
        keyspace: Keyspace,
        key: &[u8],
        visitor: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<Option<R>>> {
        self.try_snapshot().map(|snapshot| snapshot.get(keyspace, key, visitor)).transpose()
    }

    /// Begins a write transaction over the last commit.
    ///
    /// If writers take turns ([`Capabilities::concurrent_writers`] is false), waits at most `wait` for the writers before
    /// it, first come, first served. Other backends ignore `wait`.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::Error::Conflict) when `wait` is over; [`Reentrant`](crate::Error::Reentrant), at once, if
    /// writers take turns and this thread began the open transaction; [`ReadOnly`](crate::Error::ReadOnly) if the
    /// database is.
    fn begin(&self, wait: Duration) -> Result<Self::Transaction>;

    /// Drops a keyspace with everything in it; returns the version from which on it is empty. Snapshots that are open keep
    /// showing it. Dropping a keyspace that does not exist does nothing.
    ///
    /// It takes its place in the order of commits like a [`Deferred`](crate::Durability::Deferred) commit, and is on the
    /// device by the next [`Sync`](crate::Durability::Sync) commit or [`flush`](Self::flush). The cost does not grow with
    /// the number of keys, beyond freeing their space.
    ///
    /// If writers are concurrent, an open transaction that wrote to the keyspace or guarded a key of it fails to commit
    /// with [`Conflict`](crate::Error::Conflict). If writers take turns, the drop waits for its turn, at most `wait`.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<Version>;

    /// Puts every commit that has returned on the device. If writers take turns, waits for its own turn without limit.
    ///
    /// # Errors
    ///
    /// [`Reentrant`](crate::Error::Reentrant) as [`begin`](Self::begin);
    /// [`OutcomeUnknown`](crate::Error::OutcomeUnknown) if the device fails: what was not on it may be lost.
    fn flush(&self) -> Result<()>;

    /// Writes a copy, as of one commit, that opens as a database of this backend. Does not block writers.
    ///
    /// The copy is on the device when this returns. Costs a read and a write of the whole database.
    ///
    /// # Errors
    ///
    /// [`Exists`](crate::Error::Exists) if something exists at `to`, which is then left alone;
    /// [`Missing`](crate::Error::Missing) if its folder does not exist; [`Unsupported`](crate::Error::Unsupported)
    /// if the backend has no backup. A copy that failed half-way is removed.
    fn backup(&self, to: &Path) -> Result<()>;

    /// Returns the space of deleted data to the file system, as far as the backend can; does nothing by default.
    ///
    /// May cost a read and a write of the whole database. If writers take turns, it waits for its own turn, at most `wait`,
    /// and neither snapshots nor transactions begin until it is done.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin); [`Conflict`](crate::Error::Conflict) if open snapshots prevent it.
    fn compact(&self, wait: Duration) -> Result<()> {
        let _ = wait;
        Ok(())
    }

    /// The space that the database takes, as far as the backend knows it without reading everything.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn size(&self) -> Result<Size>;
}
