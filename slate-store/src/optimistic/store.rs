use std::{
    ops::ControlFlow,
    path::Path,
    sync::{Arc, PoisonError, TryLockError},
    thread,
    time::{Duration, Instant},
};

use super::{
    changes::Changes,
    commit_log::CommitLog,
    queue::CommitQueue,
    transaction::{Began, Locking, OptimisticTransaction},
    write_set::WriteSet,
};
use crate::{
    BackupProgress, Bounds, CacheReads, Capabilities, Checked, Compaction, Cursor, Durability, Edge, Error, Flushing,
    Keyspace, LocalStore, OldestSnapshot, Result, Size, SizeDetail, Store, Version, View, crash_point,
    sync::{Mutex, MutexGuard},
};

/// Maximum bytes of keys and values in an open transaction, unless the [local store](LocalStore) has a limit. Bounds the memory of a
/// transaction that never ends.
const MAX_TRANSACTION_BYTES: usize = 1 << 30;

/// Minimum pause of a compaction in steps before it checks again whether the snapshots that prevent it are closed.
const PAUSE_FOR_SNAPSHOTS: Duration = Duration::from_millis(2);

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
    /// Locks the log. It is held briefly: while a transaction begins or ends, and for each part of a commit that is checked or recorded.
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

    /// Makes a commit. The caller has the commit lock.
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

    /// Waits until a commit is on the device.
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
        // Opens the snapshot under the lock, so that the log discards no commit that is after it.
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
        // Checks again, because a commit may have failed meanwhile.
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

    fn compact_while(&self, wait: Duration, progress: BackupProgress<'_>) -> Result<ControlFlow<()>> {
        let Shared { local, queue, .. } = &*self.shared;
        let mut done: Option<Compaction> = None;
        let mut blocked_since = None;
        loop {
            self.shared.check_writable()?;
            let entered = (local.flushing() == Flushing::Apart).then(|| queue.enter(Durability::Deferred));
            let begin = Instant::now();
            let step = local.compact_step(done);
            let took = begin.elapsed();
            match (step, entered) {
                (Ok(None), _) => {
                    crash_point("after-compact");
                    return Ok(ControlFlow::Continue(()));
                }
                (Ok(Some(next)), entered) => {
                    (done, blocked_since) = (Some(next), None);
                    if let Some(entered) = entered {
                        entered.give_way(took);
                    }
                }
                // A snapshot is open. Most are closed within a second, so this waits.
                (Err(error @ Error::Conflict(_)), entered) => {
                    drop(entered);
                    if blocked_since.get_or_insert(begin).elapsed() >= wait {
                        return Err(error);
                    }
                    thread::sleep(PAUSE_FOR_SNAPSHOTS.max(took));
                }
                (Err(error), _) => return Err(error),
            }
            let Compaction { examined, total } = done.unwrap_or_default();
            if progress(examined.min(total), total).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;
    use crate::{
        Transaction, TransactionExt,
        memory::{LocalMemory, MemorySnapshot},
    };

    /// A store in memory that is compacted in steps, each of some milliseconds.
    #[derive(Default)]
    struct Stepwise {
        memory: LocalMemory,
        steps: AtomicU32,
    }

    const STEPS: u32 = 40;

    impl LocalStore for Stepwise {
        type Snapshot = MemorySnapshot;

        fn capabilities(&self) -> Capabilities {
            self.memory.capabilities()
        }

        fn snapshot(&self) -> Result<MemorySnapshot> {
            self.memory.snapshot()
        }

        fn apply(&self, changes: &mut Changes<'_>, durability: Durability) -> Result<Version> {
            self.memory.apply(changes, durability)
        }

        fn compact_step(&self, done: Option<Compaction>) -> Result<Option<Compaction>> {
            thread::sleep(Duration::from_millis(3));
            let step = self.steps.fetch_add(1, Ordering::SeqCst);
            assert_eq!(done.map_or(0, |done| done.examined), u64::from(step), "no step is done twice");
            Ok((step < STEPS).then(|| Compaction { examined: u64::from(step) + 1, total: u64::from(STEPS) }))
        }
    }

    #[test]
    fn all_who_wait_for_the_commit_lock_get_it_between_the_steps_of_a_compaction() {
        let store = Optimistic::over(Stepwise::default());
        let commit = |durability| {
            let mut transaction = store.begin(Duration::ZERO).unwrap();
            transaction.put(Keyspace(1), &[u8::from(durability == Durability::Sync)], b"").unwrap();
            transaction.commit(durability).unwrap();
        };
        let others: [&(dyn Fn() + Sync); 4] = [
            &|| commit(Durability::Sync),
            &|| commit(Durability::Deferred),
            &|| {
                store.drop_keyspace(Keyspace(2), Duration::ZERO).unwrap();
            },
            &|| store.flush().unwrap(),
        ];
        let (made, is_over) = (others.map(|_| AtomicU32::new(0)), AtomicBool::new(false));
        thread::scope(|scope| {
            for (other, made) in others.iter().zip(&made) {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        other();
                        made.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            let (mut examined, mut arrived_before) = (0, 0);
            let compacted = store.compact_while(Duration::ZERO, &mut |now, total| {
                assert!(now > examined && now <= total);
                examined = now;
                let [arrived, admitted] = store.shared.queue.waited();
                assert!(admitted >= arrived_before, "{admitted} of {arrived_before} who waited before this step");
                arrived_before = arrived;
                ControlFlow::Continue(())
            });
            is_over.store(true, Ordering::SeqCst);
            assert!(compacted.unwrap().is_continue());
        });
        let made = made.map(AtomicU32::into_inner);
        assert!(made.iter().all(|made| *made > 0), "{made:?} beside {STEPS} steps");
    }
}
