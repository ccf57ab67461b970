use std::{
    hint,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use super::{MemorySnapshot, MemoryTransaction, backup, conflict::OpenTransactions, noted, root::Root, tree::Tree};
use crate::{Capabilities, Isolation, Keyspace, Result, Size, Store};

/// What a tree takes for one entry beyond the key's and the value's own bytes: what its slot is longer than most keys, its share
/// of a leaf and a branch, and the value's counts.
const ENTRY: u64 = 56;

/// A database in memory. Clones share it; it ends with the last of them and of what they opened.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

/// How often a reader looks whether the root is free before it sleeps until it is.
const SPINS: u32 = 200;

/// How many commits are not made in place after a reader had to wait for one, so that readers wait for two in a hundred at most.
const SPARED: u32 = 64;

/// How many writes a commit makes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitSize {
    /// So few that they are left to the commit, even where they cannot be made in place.
    Small,
    /// They are made in place if no reader has to be spared that.
    Large,
    /// So many, or applied in part already, that they are made beside the last commit.
    Huge,
}

impl CommitSize {
    /// Of so many writes; `None` where some are applied already.
    pub(super) fn of(writes: Option<usize>) -> Self {
        const SMALL: usize = 64;
        /// Of all keyspaces together: those of a record and its entries are several.
        const LARGE: usize = 2 * noted::MOST;
        match writes {
            Some(..=SMALL) => Self::Small,
            Some(..=LARGE) => Self::Large,
            _ => Self::Huge,
        }
    }
}

#[derive(Default)]
pub(super) struct Shared {
    /// Held while a pointer is copied, or while a commit of moderate size is made in place.
    root: RwLock<Arc<Root>>,
    /// How many commits are yet to [spare readers](Self::spares_readers).
    spared: AtomicU32,
    /// Held while a commit is checked and made, and while a transaction begins. Readers never take it.
    open: Mutex<OpenTransactions>,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, OpenTransactions> {
        // What is done under the lock does not panic. If it did, there would at worst be a note too many.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last commit.
    pub(super) fn root(&self) -> Arc<Root> {
        if let Ok(root) = self.root.try_read() {
            return Arc::clone(&root);
        }
        self.spared.store(SPARED, Ordering::Relaxed);
        // A small commit in place is over sooner than a thread falls asleep and is woken.
        for _ in 0..SPINS {
            hint::spin_loop();
            if let Ok(root) = self.root.try_read() {
                return Arc::clone(&root);
            }
        }
        Arc::clone(&self.root.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether readers are to be spared a commit in place of more than a few writes: where somebody reads the last commit, or
    /// one before it with which it shares most of its leaves, so that they would have to be copied anyway; or where somebody
    /// had to wait a short while ago. `base` is what the transaction began with. Readers come and go, so the answer is true at
    /// best at this moment.
    pub(super) fn spares_readers(&self, base: &Arc<Root>) -> bool {
        let latest = self.root();
        // Held here, by the store, and by the transaction where it is what that began with.
        let is_held = Arc::strong_count(&latest) > 2 + usize::from(Arc::ptr_eq(&latest, base));
        let is_read = is_held || !latest.is_only_one();
        let one_less = |spared: u32| spared.checked_sub(1);
        is_read || self.spared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    /// Makes the next commit, to be called under the [`lock`](Self::lock). Gives back the last one, to be dropped without it.
    pub(super) fn replace(&self, root: Root) -> Arc<Root> {
        let next = Arc::new(root);
        std::mem::replace(&mut *self.root.write().unwrap_or_else(PoisonError::into_inner), next)
    }

    /// The same by changing the last commit: in place where nobody looks at it, so that nothing on the way to what changes
    /// is copied, and if it is not small, nobody looks at what it shares with older ones. Readers that come meanwhile wait.
    pub(super) fn change(&self, size: CommitSize, change: impl FnOnce(&mut Root)) -> Option<Arc<Root>> {
        let mut latest = self.root.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = Arc::get_mut(&mut latest)
            && (size == CommitSize::Small || root.is_only_one())
        {
            change(root);
            return None;
        }
        let mut root = Root::clone(&latest);
        drop(latest);
        change(&mut root);
        Some(self.replace(root))
    }
}

impl MemoryStore {
    /// An empty database.
    pub fn new() -> Self {
        Self::default()
    }

    /// A database with what [`backup`](Store::backup) wrote to the file at `from`.
    ///
    /// # Errors
    ///
    /// [`Missing`](crate::Error::Missing) when there is no such file;
    /// [`WrongFormat`](crate::Error::WrongFormat) when it is none of these;
    /// [`NewerVersion`](crate::Error::NewerVersion) when a later version wrote it;
    /// [`Corrupt`](crate::Error::Corrupt) when its checksum does not match or it ends too early.
    pub fn restore(from: &Path) -> Result<Self> {
        let root = backup::read(from)?;
        Ok(Self { shared: Arc::new(Shared { root: RwLock::new(Arc::new(root)), ..Shared::default() }) })
    }
}

impl Store for MemoryStore {
    type Snapshot = MemorySnapshot;
    type Transaction = MemoryTransaction;

    fn name(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { concurrent_writers: true, backup: true, ..Capabilities::MINIMAL }
    }

    fn snapshot(&self) -> Result<MemorySnapshot> {
        Ok(MemorySnapshot::new(self.shared.root()))
    }

    fn begin(&self, isolation: Isolation, _: Duration) -> Result<MemoryTransaction> {
        Ok(MemoryTransaction::begin(&self.shared, isolation))
    }

    fn drop_keyspace(&self, keyspace: Keyspace, _: Duration) -> Result<()> {
        let mut open = self.shared.lock();
        let latest = self.shared.root();
        if latest.tree(keyspace).is_some() {
            let mut root = Root::clone(&latest);
            root.keyspaces.remove(&keyspace);
            root.sequence += 1;
            if !open.is_empty() {
                open.dropped(root.sequence, keyspace);
            }
            self.shared.replace(root);
        }
        // In this order: taking a large keyspace apart, if nobody else reads it, must not hold up writers.
        drop(open);
        drop(latest);
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn backup(&self, to: &Path) -> Result<()> {
        backup::write(&self.snapshot()?, to)
    }

    /// `in_memory` is reckoned from the number of entries; what old snapshots alone keep alive is not in it.
    fn size(&self) -> Result<Size> {
        let root = self.shared.root();
        let data: u64 = root.keyspaces.values().map(Tree::bytes).sum();
        let entries: u64 = root.keyspaces.values().map(Tree::len).sum();
        Ok(Size {
            in_memory: Some(data.saturating_add(entries.saturating_mul(ENTRY))),
            data: Some(data),
            on_disk: None,
        })
    }
}
