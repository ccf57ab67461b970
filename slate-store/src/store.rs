//! The contract. Nothing here names a backend.

use std::{path::Path, time::Duration};

use crate::{Capabilities, Isolation, Keyspace, Result, Size, Snapshot, Transaction};

/// A database of keyspaces.
///
/// A handle, cheap to share behind an [`Arc`](std::sync::Arc). What it opened (snapshots, transactions, and theirs)
/// keeps the database open for as long as it lives, also when the handle is gone.
pub trait Store: Send + Sync + 'static {
    /// One commit, to be read.
    type Snapshot: Snapshot;
    /// An open write transaction.
    type Transaction: Transaction;

    /// The backend's name, in lower case, as it stands in messages: `"memory"`.
    fn name(&self) -> &'static str;

    /// What this backend can do, and its limits.
    fn capabilities(&self) -> Capabilities;

    /// The last commit, across all keyspaces. Blocks nobody, and waits for no transaction: at most, now and then, for as long
    /// as it takes to put a commit in place, a few milliseconds.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn snapshot(&self) -> Result<Self::Snapshot>;

    /// A write transaction over the last commit.
    ///
    /// Where writers take turns ([`Capabilities::concurrent_writers`] is false), waits at most `wait` for those before
    /// it, first come, first served. Elsewhere `wait` means nothing.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::Error::Conflict) when `wait` is over; [`Reentrant`](crate::Error::Reentrant), at once, when
    /// writers take turns and the open transaction was begun by this thread, wherever it has been moved to since;
    /// [`ReadOnly`](crate::Error::ReadOnly) where the database is.
    fn begin(&self, isolation: Isolation, wait: Duration) -> Result<Self::Transaction>;

    /// Drops a keyspace and all it holds: at once, for every snapshot taken from now on. Snapshots already open keep
    /// seeing it. Dropping one that does not exist does nothing.
    ///
    /// Like a [`Deferred`](crate::Durability::Deferred) commit it takes its place in the order of commits, and is on the device
    /// by the next [`Sync`](crate::Durability::Sync) commit or [`flush`](Self::flush). The cost does not grow with the number
    /// of keys beyond giving their space back.
    ///
    /// What it means to an open write transaction: where writers are concurrent, one that began before the drop and
    /// wrote to or guarded anything in the keyspace fails to commit with [`Conflict`](crate::Error::Conflict); one that
    /// only read it is not disturbed. Where writers take turns, the drop waits for its own, at most `wait`.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<()>;

    /// Puts every commit that has returned on the device. Where writers take turns, it waits for its own, as long as it
    /// takes.
    ///
    /// # Errors
    ///
    /// [`Reentrant`](crate::Error::Reentrant) as [`begin`](Self::begin);
    /// [`OutcomeUnknown`](crate::Error::OutcomeUnknown) when the device fails: what was not on it may never be.
    fn flush(&self) -> Result<()>;

    /// Writes a copy, as of one commit, that opens as a database of this backend. Writers are not held up.
    ///
    /// The copy is on the device when this returns. Costs a read and a write of the whole database.
    ///
    /// # Errors
    ///
    /// [`Exists`](crate::Error::Exists) when something lies at `to`, which is then left alone;
    /// [`Missing`](crate::Error::Missing) when its folder does not exist; [`Unsupported`](crate::Error::Unsupported)
    /// where the backend has no backup. A copy that failed half-way is removed.
    fn backup(&self, to: &Path) -> Result<()>;

    /// Gives back to the file system what deleted data left behind, as far as the backend can. Where it has nothing to give
    /// back, which is so unless it says otherwise, it does nothing.
    ///
    /// May cost a read and a write of the whole database. Where writers take turns, it waits for its own, at most `wait`,
    /// and neither snapshots nor transactions begin until it is done.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin); [`Conflict`](crate::Error::Conflict) where it cannot be done beside snapshots that are
    /// open.
    fn compact(&self, wait: Duration) -> Result<()> {
        let _ = wait;
        Ok(())
    }

    /// How much room the database takes, as far as the backend can tell without reading it all.
    ///
    /// # Errors
    ///
    /// As the backend's storage fails.
    fn size(&self) -> Result<Size>;
}
