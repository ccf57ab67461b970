use std::{
    mem,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError},
    time::Duration,
};

use super::{MemorySnapshot, MemoryTransaction, backup, commit_log::CommitLog, root::Root};
use crate::{Capabilities, Keyspace, Result, Size, SizeDetail, Store, Version};

/// Approximate memory of an entry beyond the bytes of its key and value: unused bytes of the 32-byte key, the value's
/// pointer and reference counts, and a share of the leaf's spare capacity.
const ENTRY_OVERHEAD: u64 = 56;

/// A database in memory. Clones share it. It is freed when the last clone, snapshot and transaction is dropped.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

/// The last commit, and the log for checking the next one.
///
/// Invariants:
/// - `root` is replaced, or changed in place, only under the lock of `log`. Its version grows by one each time.
/// - It is changed in place only while `root` is locked for writing and no other owner of the `Arc` exists. A shared
///   commit never changes.
#[derive(Default)]
pub(super) struct Shared {
    /// Locked while the pointer is copied or replaced, or while a commit is made in place.
    root: RwLock<Arc<Root>>,
    /// Locked while a transaction begins and while a commit is checked and applied. Snapshots never lock it.
    log: Mutex<CommitLog>,
    /// The versions of ended transactions that the log still counts as open, because it was locked when they ended.
    ended: Mutex<Vec<u64>>,
}

impl Shared {
    /// Takes the commit lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, CommitLog> {
        // No code under this lock can panic between two dependent updates.
        self.close_ended(self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the commit lock, unless another thread has it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, CommitLog>> {
        match self.log.try_lock() {
            Ok(log) => Some(self.close_ended(log)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.close_ended(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Ends a transaction that reads version `base`, without waiting for the commit lock.
    pub(super) fn end(&self, base: u64) {
        match self.try_lock() {
            Some(mut log) => log.close(base),
            None => self.ended().push(base),
        }
    }

    fn close_ended<'l>(&self, mut log: MutexGuard<'l, CommitLog>) -> MutexGuard<'l, CommitLog> {
        self.ended().drain(..).for_each(|base| log.close(base));
        log
    }

    /// Held only for a few instructions.
    fn ended(&self) -> MutexGuard<'_, Vec<u64>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last commit, unless a commit is being made in place.
    fn try_root(&self) -> Option<Arc<Root>> {
        self.root.try_read().ok().map(|root| Arc::clone(&root))
    }

    /// Returns the last commit.
    pub(super) fn root(&self) -> Arc<Root> {
        Arc::clone(&self.root.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the next commit, under the [commit lock](Self::lock): in place if no reader holds the last commit, which copies
    /// nothing; otherwise as [`replace`](Self::replace). Readers wait meanwhile.
    pub(super) fn change(&self, change: impl FnOnce(&mut Root)) -> Option<Arc<Root>> {
        let mut latest = self.root.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = Arc::get_mut(&mut latest) {
            change(root);
            return None;
        }
        drop(latest);
        Some(self.replace(change))
    }

    /// Makes the next commit, under the [commit lock](Self::lock), in a copy that shares all unchanged leaves with the last one.
    /// Returns the replaced commit, to be dropped after the lock is released.
    pub(super) fn replace(&self, change: impl FnOnce(&mut Root)) -> Arc<Root> {
        let mut root = Root::clone(&self.root());
        change(&mut root);
        let next = Arc::new(root);
        mem::replace(&mut *self.root.write().unwrap_or_else(PoisonError::into_inner), next)
    }
}

impl MemoryStore {
    /// Creates an empty database.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a database with the contents of the [`backup`](Store::backup) at `from`.
    ///
    /// # Errors
    ///
    /// [`Missing`](crate::Error::Missing) if the file does not exist;
    /// [`WrongFormat`](crate::Error::WrongFormat) if it is not such a backup;
    /// [`NewerVersion`](crate::Error::NewerVersion) if a later version of Slate wrote it;
    /// [`Corrupt`](crate::Error::Corrupt) if its checksum does not match or it is truncated.
    pub fn restore(from: &Path) -> Result<Self> {
        let root = backup::read(from)?;
        Ok(Self { shared: Arc::new(Shared { root: RwLock::new(Arc::new(root)), ..Shared::default() }) })
    }
}

impl Store for MemoryStore {
    type Snapshot = MemorySnapshot;
    type Transaction = MemoryTransaction;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "memory",
            concurrent_writers: true,
            exclusive: true,
            backup: true,
            ..Capabilities::MINIMAL
        }
    }

    fn snapshot(&self) -> Result<MemorySnapshot> {
        Ok(MemorySnapshot::new(self.shared.root()))
    }

    fn try_snapshot(&self) -> Option<MemorySnapshot> {
        self.shared.try_root().map(MemorySnapshot::new)
    }

    fn begin(&self, _: Duration) -> Result<MemoryTransaction> {
        Ok(MemoryTransaction::begin(&self.shared))
    }

    fn try_begin(&self) -> Option<MemoryTransaction> {
        MemoryTransaction::try_begin(&self.shared)
    }

    fn drop_keyspace(&self, keyspace: Keyspace, _: Duration) -> Result<Version> {
        let mut log = self.shared.lock();
        let latest = self.shared.root();
        let mut version = latest.version;
        if latest.tree(keyspace).is_some() {
            version += 1;
            log.record_drop(version, keyspace);
            self.shared.replace(|root| {
                root.version = version;
                root.keyspaces.remove(&keyspace);
            });
        }
        // After the lock is released, because freeing a large keyspace takes long.
        drop(log);
        drop(latest);
        Ok(Version(version))
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn backup(&self, to: &Path) -> Result<()> {
        backup::write(&self.snapshot()?, to)
    }

    /// `in_memory` is estimated from the number of entries, without values that only old snapshots hold.
    fn size(&self, _: SizeDetail) -> Result<Size> {
        let root = self.shared.root();
        let data: u64 = root.keyspaces.values().map(|tree| tree.extent().bytes).sum();
        let entries: u64 = root.keyspaces.values().map(|tree| tree.extent().entries).sum();
        Ok(Size {
            in_memory: Some(data.saturating_add(entries.saturating_mul(ENTRY_OVERHEAD))),
            data: Some(data),
            on_disk: None,
            free: None,
        })
    }
}
