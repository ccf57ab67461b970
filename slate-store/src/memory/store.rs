use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;

use super::{MemorySnapshot, MemoryTransaction, backup, conflict::OpenTransactions, root::Root, tree::Tree};
use crate::{Capabilities, Isolation, Keyspace, Result, Size, Store};

/// What a tree takes for one entry beyond the key's and the value's own bytes: its slots in a node that is three quarters
/// full, and the value's counts.
const ENTRY: u64 = 80;

/// A database in memory. Clones share it; it ends with the last of them and of what they opened.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
pub(super) struct Shared {
    pub(super) root: ArcSwap<Root>,
    /// Held while a commit is checked and swapped in, and while a transaction begins. Readers never take it.
    open: Mutex<OpenTransactions>,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, OpenTransactions> {
        // A panic under the lock leaves the old root in place, which is whole, and at worst a note too many.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
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
        Ok(Self { shared: Arc::new(Shared { root: ArcSwap::from_pointee(root), open: Mutex::default() }) })
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
        Ok(MemorySnapshot::new(self.shared.root.load_full()))
    }

    fn begin(&self, isolation: Isolation, _: Duration) -> Result<MemoryTransaction> {
        Ok(MemoryTransaction::begin(&self.shared, isolation))
    }

    fn drop_keyspace(&self, keyspace: Keyspace, _: Duration) -> Result<()> {
        let mut open = self.shared.lock();
        let latest = self.shared.root.load_full();
        if latest.tree(keyspace).is_some() {
            let mut root = Root::clone(&latest);
            root.keyspaces.remove(&keyspace);
            root.sequence += 1;
            if !open.is_empty() {
                open.dropped(root.sequence, keyspace);
            }
            self.shared.root.store(Arc::new(root));
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
        let root = self.shared.root.load();
        let data: u64 = root.keyspaces.values().map(Tree::bytes).sum();
        let entries: u64 = root.keyspaces.values().map(Tree::len).sum();
        Ok(Size {
            in_memory: Some(data.saturating_add(entries.saturating_mul(ENTRY))),
            data: Some(data),
            on_disk: None,
        })
    }
}
