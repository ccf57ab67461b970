//! The contract of a store, independent of backends.

use std::{ops::ControlFlow, path::Path, time::Duration};

use crate::{
    CacheReads, Capabilities, Checked, Error, Keyspace, OldestSnapshot, Result, Size, SizeDetail, Snapshot,
    Transaction, Version, View,
};

/// The callback of a backup: receives the number of entries copied so far, and the number of all; `Break` ends the backup. For a compaction the
/// numbers are bytes.
pub type BackupProgress<'p> = &'p mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// Number of entries between two calls of [`BackupProgress`].
pub(crate) const PROGRESS_ENTRIES: u64 = 256;

/// A database: a set of keyspaces (ordered maps of bytes) with one total order of commits.
///
/// A handle, cheap to share behind an [`Arc`](std::sync::Arc). The snapshots and transactions opened on it keep the
/// database open, also after the handle was dropped.
pub trait Store: Send + Sync + 'static {
    /// A read-only view of one commit.
    type Snapshot: Snapshot;
    /// An open write transaction.
    type Transaction: Transaction;

    /// Returns what this backend supports, and its limits. Constant while the store is open.
    fn capabilities(&self) -> Capabilities;

    /// Returns a snapshot of the last commit, across all keyspaces. Waits at most for a commit that is being published, never
    /// for open transactions.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn snapshot(&self) -> Result<Self::Snapshot>;

    /// Returns a snapshot of the last commit, if neither taking the snapshot nor short reads of it wait for a device, a
    /// network or another thread; `None` otherwise, and by default. Async callers read from it on their own thread.
    fn try_snapshot(&self) -> Option<Self::Snapshot> {
        None
    }

    /// Calls `visitor` with the value of one key in the last commit, if that is known without waiting for a device, a
    /// network or another thread; `None` otherwise. The inner `None`: the key does not exist.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn try_get<R>(
        &self,
        keyspace: Keyspace,
        key: &[u8],
        visitor: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<Option<R>>> {
        self.try_snapshot().map(|snapshot| snapshot.get(keyspace, key, visitor)).transpose()
    }

    /// Returns the last committed values of keys, if the store can read them in fewer round trips than through a snapshot; `None` otherwise, and by
    /// default. The keys must be distinct.
    ///
    /// Each value is the last one at some time between the call and its return; these times can differ.
    ///
    /// # Errors
    ///
    /// Any failure of the backend's storage.
    fn latest(&self, keys: &[(Keyspace, &[u8])]) -> Result<Option<Vec<Option<Vec<u8>>>>> {
        let _ = keys;
        Ok(None)
    }

    /// Begins a write transaction over the last commit.
    ///
    /// Never waits for open transactions: any number may be open at once. A backend on a network waits at most `wait` for it; others
    /// ignore `wait`.
    ///
    /// # Errors
    /// [`ReadOnly`](crate::Error::ReadOnly) if the database is read-only. Any failure of the backend's storage.
    fn begin(&self, wait: Duration) -> Result<Self::Transaction>;

    /// Begins a write transaction over the last commit, if neither beginning it nor committing few writes waits for a device, a
    /// network or another thread; `None` otherwise, and by default. If the commit would have to wait after all, it fails with
    /// [`Conflict`](crate::Error::Conflict). Async callers execute short writes in it on their own thread.
    fn try_begin(&self) -> Option<Self::Transaction> {
        None
    }

    /// Drops a keyspace with all its keys. Returns the version from which on it is empty. Open snapshots still show it. Does nothing to a keyspace
    /// that does not exist.
    ///
    /// A drop has a commit version and the durability of a [`Deferred`](crate::Durability::Deferred) commit. Apart from
    /// freeing space, its cost does not grow with the number of keys.
    ///
    /// An open transaction of this process that wrote to the keyspace or guarded a key in it fails to commit with
    /// [`Conflict`](crate::Error::Conflict).
    ///
    /// # Errors
    /// Fails as [`begin`](Self::begin) does.
    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<Version>;

    /// Syncs to the device every commit that has returned.
    ///
    /// # Errors
    /// [`OutcomeUnknown`](crate::Error::OutcomeUnknown) if the device fails: commits that were not synced may be lost.
    fn flush(&self) -> Result<()>;

    /// Writes a copy of the last commit that can be opened with this backend. Does not block writers.
    ///
    /// The copy is on the device when this returns. Costs a read and a write of the whole database.
    ///
    /// # Errors
    /// [`Exists`](crate::Error::Exists) if something exists at `to`; it is not changed;
    /// [`Missing`](crate::Error::Missing) if its folder does not exist; [`Unsupported`](crate::Error::Unsupported)
    /// if the backend has no backup. A copy that failed half-way is removed.
    fn backup(&self, to: &Path) -> Result<()>;

    /// Writes a copy like [`backup`](Self::backup). Calls `progress` repeatedly with the number of entries that are copied and the number of all,
    /// until it returns `Break`; then the copy is removed. By default `progress` is not called: for backends whose copy takes little time.
    ///
    /// # Errors
    /// As `backup`.
    fn backup_while(&self, to: &Path, progress: BackupProgress<'_>) -> Result<ControlFlow<()>> {
        let _ = progress;
        self.backup(to).map(ControlFlow::Continue)
    }

    /// Returns space of deleted data to the file system; does nothing by default.
    ///
    /// May cost a read and a write of the whole database. On some backends commits, snapshots and transactions wait for it.
    ///
    /// # Errors
    /// Fails as [`begin`](Self::begin) does; [`Conflict`](crate::Error::Conflict) if open snapshots prevent it.
    fn compact(&self, wait: Duration) -> Result<()> {
        let _ = wait;
        Ok(())
    }

    /// Compacts like [`compact`](Self::compact), in steps of bounded work if the backend can. After each step, and while it waits for snapshots, it
    /// calls `progress` with the bytes that were examined and the estimated bytes to examine. Commits, snapshots and transactions are possible
    /// between two steps, and commits that waited for a step are made before the next one. If `progress` returns `Break`, stops and returns it; the
    /// next call continues from there if the backend still can. By default the whole compaction is one step.
    ///
    /// # Errors
    /// As `compact`; the completed steps stay. [`Conflict`](crate::Error::Conflict) if snapshots prevent a step for longer than `wait`.
    fn compact_while(&self, wait: Duration, progress: BackupProgress<'_>) -> Result<ControlFlow<()>> {
        let _ = progress;
        self.compact(wait).map(ControlFlow::Continue)
    }

    /// Removes the versions of values that only snapshots older than `keep` show, on a store on a network that does not do so by itself. These
    /// snapshots, of any process, then fail with [`Expired`](crate::Error::Expired). May take minutes.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error::Unsupported) if the store needs no such call, which is the default, or if `keep` is shorter than the store
    /// allows; any failure of the backend's storage.
    fn collect_garbage(&self, keep: Duration) -> Result<()> {
        let _ = keep;
        Err(Error::Unsupported(Box::new("collect garbage: the store does so by itself".into())))
    }

    /// Returns the space that the database takes. Sizes that the backend does not know, or may not measure, are `None`.
    ///
    /// # Errors
    /// Any failure of the backend's storage; while measuring, also the errors of [`begin`](Self::begin).
    fn size(&self, detail: SizeDetail) -> Result<Size>;

    /// Reads all data of the last commit on the device, and compares them with the store's own checksums. Calls `visitor` for each damaged part and
    /// after about every page, until it returns `Break`. By default does nothing, which suits a store that checks its data at every read.
    ///
    /// # Errors
    /// Any failure of the backend's storage. Damage is not an error.
    fn check(&self, visitor: &mut dyn FnMut(Checked) -> ControlFlow<()>) -> Result<()> {
        let _ = visitor;
        Ok(())
    }

    /// Returns the oldest commit that an open snapshot, cursor or transaction of this process reads; `None` if all read the last one, and by
    /// default.
    fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        None
    }

    /// Returns how often a cache in front of the store was read (zeros without a cache), and what the store read from its files since it was
    /// opened.
    fn cache_reads(&self) -> CacheReads {
        CacheReads::default()
    }

    /// Returns the number of round trips to the network since the store was opened; concurrent ones count as one. `None` for a store on this
    /// machine, and by default.
    fn round_trips(&self) -> Option<u64> {
        None
    }

    /// Returns the estimated number of requests to the network since the store was opened; concurrent ones count each. `None` as for
    /// [`round_trips`](Self::round_trips).
    fn requests(&self) -> Option<u64> {
        None
    }
}
