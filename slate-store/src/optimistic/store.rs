use std::{
    ops::ControlFlow,
    path::Path,
    sync::{Arc, PoisonError, TryLockError},
    time::Duration,
};

use super::{
    changes::Changes,
    commit_log::CommitLog,
    queue::CommitQueue,
    transaction::{Began, Locking, OptimisticTransaction},
    write_set::WriteSet,
};
use crate::{
    BackupProgress, Bounds, CacheReads, Capabilities, Checked, Cursor, Durability, Edge, Error, Flushing, Keyspace,
    LocalStore, OldestSnapshot, Result, Size, SizeDetail, Store, Version, View, crash_point,
    sync::{Mutex, MutexGuard},
};

/// The most bytes of keys and values that a transaction may hold, unless the [local store](LocalStore) has a smaller limit. Bounds
/// the memory of a transaction that never ends.
const MAX_TRANSACTION_BYTES: usize = 1 << 30;

/// A [`LocalStore`] with transactions. Clones share it. It is closed when the last clone, snapshot and transaction is dropped.
pub struct Optimistic<L> {
    shared: Arc<Shared<L>>,
}

pub(super) struct Shared<L> {
    pub(super) local: L,
    pub(super) capabilities: Capabilities,
    pub(super) queue: CommitQueue,
    log: Mutex<CommitLog>,
}

impl<L: LocalStore> Optimistic<L> {
    /// Adds transactions to a store.
    pub fn over(local: L) -> Self {
        let capabilities = local.capabilities();
        let limit = capabilities.max_transaction_bytes.unwrap_or(MAX_TRANSACTION_BYTES);
        let capabilities = Capabilities { max_transaction_bytes: Some(limit), ..capabilities };
        let queue = CommitQueue::new(local.flushing());
        Self { shared: Arc::new(Shared { local, capabilities, queue, log: Mutex::default() }) }
    }
}

impl<L: LocalStore> Optimistic<L> {
    fn transaction(
        &self,
        mut log: MutexGuard<'_, CommitLog>,
        snapshot: L::Snapshot,
        locking: Locking,
    ) -> OptimisticTransaction<L> {
        let base = snapshot.version();
        log.open(base);
        drop(log);
        OptimisticTransaction::new(snapshot, Began::new(&self.shared, base), locking)
    }
}

impl<L> Clone for Optimistic<L> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<L: LocalStore + Default> Default for Optimistic<L> {
    fn default() -> Self {
        Self::over(L::default())
    }
}

impl<L: LocalStore> Shared<L> {
    /// Held only for moments: while a transaction begins or ends, and for each part of a commit that is checked or recorded.
    pub(super) fn log(&self) -> MutexGuard<'_, CommitLog> {
        // No code under this lock can panic between two dependent updates.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_log(&self) -> Option<MutexGuard<'_, CommitLog>> {
        match self.log.try_lock() {
            Ok(log) => Some(log),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Makes a commit, under the commit lock.
    pub(super) fn apply(&self, mut changes: Changes<'_>, durability: Durability) -> Result<Version> {
        crash_point("before-apply");
        let applied = self.local.apply(&mut changes, durability);
        crash_point("after-apply");
        if let Err(error) = &applied
            && !changes.is_refused()
            && !matches!(error, Error::TooLarge(_))
        {
            self.queue.fail(error);
        }
        applied
    }

    /// Returns when a commit is on the device.
    pub(super) fn wait_durable(&self, version: Version) -> Result<()> {
        self.queue.wait(version, || match self.local.flushing() {
            Flushing::DuringCommits => self.local.flush(),
            Flushing::Apart => {
                let _entered = self.queue.enter(Durability::Deferred);
                self.local.flush()
            }
        })
    }

    fn check_writable(&self) -> Result<()> {
        self.local.check_writable()?;
        self.queue.check()
    }
}

impl<L: LocalStore> Store for Optimistic<L> {
    type Snapshot = L::Snapshot;
    type Transaction = OptimisticTransaction<L>;

    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities
    }

    fn snapshot(&self) -> Result<L::Snapshot> {
        self.shared.local.snapshot()
    }

    fn try_snapshot(&self) -> Option<L::Snapshot> {
        self.shared.local.try_snapshot()
    }

    fn begin(&self, _: Duration) -> Result<OptimisticTransaction<L>> {
        self.shared.check_writable()?;
        // Under the lock, so that the log discards no commit that this transaction does not see.
        let log = self.shared.log();
        let snapshot = self.shared.local.snapshot()?;
        Ok(self.transaction(log, snapshot, Locking::Wait))
    }

    fn try_begin(&self) -> Option<OptimisticTransaction<L>> {
        self.shared.check_writable().ok()?;
        let log = self.shared.try_log()?;
        let snapshot = self.shared.local.try_snapshot()?;
        Some(self.transaction(log, snapshot, Locking::Try))
    }

    fn drop_keyspace(&self, keyspace: Keyspace, _: Duration) -> Result<Version> {
        let shared = &self.shared;
        shared.check_writable()?;
        let entered = shared.queue.enter(Durability::Deferred);
        // A commit may have failed meanwhile.
        shared.check_writable()?;
        let snapshot = shared.local.snapshot()?;
        if !snapshot.cursor(keyspace, Bounds::ALL)?.seek(Edge::First)? {
            return Ok(snapshot.version());
        }
        drop(snapshot);
        let mut writes = WriteSet::default();
        writes.delete_range(keyspace, Bounds::ALL);
        crash_point("before-drop-of-keyspace");
        let version = shared.apply(Changes::of(&writes), Durability::Deferred)?;
        let mut log = shared.log();
        log.committed(version);
        log.record_range(version, keyspace, Bounds::ALL);
        drop(log);
        entered.committed(version, Durability::Deferred);
        Ok(version)
    }

    fn flush(&self) -> Result<()> {
        let Shared { local, queue, .. } = &*self.shared;
        match local.flushing() {
            Flushing::DuringCommits => self.shared.wait_durable(queue.last()),
            Flushing::Apart => {
                let _entered = queue.enter(Durability::Deferred);
                let flushed = local.flush();
                queue.flushed(queue.last(), &flushed);
                flushed
            }
        }
    }

    fn backup(&self, to: &Path) -> Result<()> {
        self.shared.local.backup(to)
    }

    fn backup_while(&self, to: &Path, progress: BackupProgress<'_>) -> Result<ControlFlow<()>> {
        self.shared.local.backup_while(to, progress)
    }

    fn compact(&self, _: Duration) -> Result<()> {
        let Shared { local, queue, .. } = &*self.shared;
        self.shared.check_writable()?;
        let _entered = (local.flushing() == Flushing::Apart).then(|| queue.enter(Durability::Deferred));
        local.compact()?;
        crash_point("after-compact");
        Ok(())
    }

    fn size(&self, detail: SizeDetail) -> Result<Size> {
        self.shared.local.size(detail)
    }

    fn check(&self, visitor: &mut dyn FnMut(Checked) -> ControlFlow<()>) -> Result<()> {
        self.shared.local.check(visitor)
    }

    fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        self.shared.local.oldest_snapshot()
    }

    fn cache_reads(&self) -> CacheReads {
        self.shared.local.cache_reads()
    }
}
