use std::{ops::ControlFlow, path::Path};

use crate::{
    BackupProgress, Bounds, CacheReads, Capabilities, Checked, Context, Durability, Error, Keyspace, OldestSnapshot,
    Result, Size, SizeDetail, Snapshot, Version, Write, optimistic::Changes,
};

/// The progress of a compaction in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// The bytes that were examined.
    pub examined: u64,
    /// The estimated number of bytes to examine in all.
    pub total: u64,
}

/// The lower level of the contract, for a store on this machine: snapshots of ordered maps, and commits of complete sets of changes.
/// [`Optimistic`](crate::Optimistic) adds transactions and thereby makes it a [`Store`](crate::Store).
///
/// A store that other machines write to implements [`Store`](crate::Store) itself.
pub trait LocalStore: Send + Sync + 'static {
    /// A read-only view of one commit.
    type Snapshot: Snapshot;

    /// Returns what the backend supports, and its limits. Constant while the store is open.
    fn capabilities(&self) -> Capabilities;

    /// Returns a snapshot of the last commit. Must not wait for a commit in progress, except while it becomes visible.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn snapshot(&self) -> Result<Self::Snapshot>;

    /// Returns a snapshot like [`Store::try_snapshot`](crate::Store::try_snapshot). A backend that implements this also commits
    /// without waiting for a device.
    fn try_snapshot(&self) -> Option<Self::Snapshot> {
        None
    }

    /// Fails if nothing can be committed, because the database was opened read-only.
    ///
    /// # Errors
    /// [`ReadOnly`](crate::Error::ReadOnly).
    fn check_writable(&self) -> Result<()> {
        Ok(())
    }

    /// Makes the next commit: chooses its version, which is greater than all before, applies [all changes](Changes::each)
    /// atomically, and returns the version. `Sync`: returns when the commit and all before it are on the device.
    ///
    /// Calls are made one at a time. A call without changes also makes a version.
    ///
    /// # Errors
    /// The error of [`Changes::each`], unchanged: then nothing is applied. [`TooLarge`](crate::Error::TooLarge), before anything is applied, if the
    /// backend cannot make so large a commit. Any failure of the backend's storage: [`OutcomeUnknown`](crate::Error::OutcomeUnknown) if the commit
    /// may be visible. After any storage error except [`Full`](crate::Error::Full), `apply` is not called again. After `Full` nothing of the commit
    /// may be visible, and later calls fail with it until the device has space.
    fn apply(&self, changes: &mut Changes<'_>, durability: Durability) -> Result<Version>;

    /// Waits until every commit is on the device. Does nothing by default.
    ///
    /// # Errors
    /// [`OutcomeUnknown`](crate::Error::OutcomeUnknown) if the device fails.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// Returns whether commits may be made during a [`flush`](Self::flush), which decides how concurrent commits share a sync of the device.
    fn flushing(&self) -> Flushing {
        Flushing::Apart
    }

    /// Writes a copy like [`Store::backup`](crate::Store::backup). Fails by default.
    ///
    /// # Errors
    /// As `Store::backup`.
    fn backup(&self, to: &Path) -> Result<()> {
        let _ = to;
        Err(Error::Unsupported(Box::new(Context::new("this backend has no backup"))))
    }

    /// Writes a copy like [`Store::backup_while`](crate::Store::backup_while).
    ///
    /// # Errors
    /// As `backup`.
    fn backup_while(&self, to: &Path, progress: BackupProgress<'_>) -> Result<ControlFlow<()>> {
        let _ = progress;
        self.backup(to).map(ControlFlow::Continue)
    }

    /// Returns the space of deleted data to the file system. Does nothing by default. Is not called during a commit, except where
    /// [flushing](Self::flushing) happens during commits.
    ///
    /// # Errors
    /// Any failure of the backend's storage; [`Conflict`](crate::Error::Conflict) if open snapshots prevent it.
    fn compact(&self) -> Result<()> {
        Ok(())
    }

    /// Executes one step of a compaction, with a bounded amount of work if the backend can. `done` is what the previous step returned. For the
    /// first step it is `None`: that step continues an unfinished compaction, or starts over, as the backend chooses. Returns the progress; `None`
    /// after the last step. Is called under the same conditions as `compact`; commits are made between two steps. By default the whole compaction
    /// is one step.
    ///
    /// # Errors
    /// As `compact`.
    fn compact_step(&self, done: Option<Compaction>) -> Result<Option<Compaction>> {
        let _ = done;
        self.compact().map(|()| None)
    }

    /// Returns the space that the database takes; everything is unknown by default.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    fn size(&self, detail: SizeDetail) -> Result<Size> {
        let _ = detail;
        Ok(Size::default())
    }

    /// Checks the last commit like [`Store::check`](crate::Store::check). By default does nothing.
    ///
    /// # Errors
    /// As `Store::check`.
    fn check(&self, visitor: &mut dyn FnMut(Checked) -> ControlFlow<()>) -> Result<()> {
        let _ = visitor;
        Ok(())
    }

    /// Returns the oldest snapshot like [`Store::oldest_snapshot`](crate::Store::oldest_snapshot).
    fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        None
    }

    /// Returns what the store read from its files since it was opened.
    fn cache_reads(&self) -> CacheReads {
        CacheReads::default()
    }
}

/// Whether a [`LocalStore`] makes commits during a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushing {
    /// No commit is made during a flush, or a flush costs nothing: a commit is best synced by the [`apply`](LocalStore::apply) that makes it, or by
    /// that of a later commit.
    Apart,
    /// Commits are made during a flush. The flush includes all commits that were made before it, so one flush serves all waiting callers.
    DuringCommits,
}

/// A part of a commit, in one keyspace.
#[derive(Clone, Copy, Debug)]
pub enum Change<'c> {
    /// Keys with their new values, usually in ascending order. If a key occurs twice, the later write wins.
    Writes(&'c [Write<'c>]),
    /// Deletes all keys within these bounds, of the last commit and of earlier parts of this one. [`Bounds::ALL`] drops the keyspace.
    DeleteRange(Bounds<'c>),
}

/// Receives the writes of the [last stage](crate::Transaction::commit_with) of a commit.
pub trait LastWrites {
    /// Puts and deletes keys, like [`Transaction::write`](crate::Transaction::write).
    ///
    /// # Errors
    /// Any error ends the commit; the last stage must return it.
    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()>;
}
