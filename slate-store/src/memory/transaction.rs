use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, MutexGuard},
};

use super::{
    BorrowedCursor, MemoryTransactionPointReader,
    commit_log::{Access, CommitLog, Conflict},
    key::Key,
    leaf,
    root::Root,
    store::Shared,
    tree::Tree,
    value::Value,
    write_set::WriteSet,
};
use crate::{
    Bounds, Capabilities, Context, Durability, Error, Guard, Keyspace, Result, Transaction, Version, View, Write,
};

/// The most writes of a commit that may be made in place, while the root is locked. A larger commit is made in a copy.
/// Bounds the time that a reader waits for the lock to a few milliseconds.
const MAX_IN_PLACE: usize = 8192;

/// An open write transaction of a [`MemoryStore`](super::MemoryStore): the commit that it reads, and its writes.
///
/// Any number of transactions may be open at once, also on one thread.
pub struct MemoryTransaction {
    shared: Arc<Shared>,
    /// The commit that the transaction reads. `None` once the transaction is closed.
    base: Option<Arc<Root>>,
    write_sets: BTreeMap<Keyspace, WriteSet>,
    locking: Locking,
}

/// What a transaction does if another thread has the commit lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Locking {
    Wait,
    /// The commit fails with a conflict.
    Try,
}

impl MemoryTransaction {
    pub(super) fn begin(shared: &Arc<Shared>) -> Self {
        Self::open(shared, shared.lock(), Locking::Wait)
    }

    /// Begins a transaction that never waits for the commit lock.
    pub(super) fn try_begin(shared: &Arc<Shared>) -> Option<Self> {
        Some(Self::open(shared, shared.try_lock()?, Locking::Try))
    }

    fn open(shared: &Arc<Shared>, mut log: MutexGuard<'_, CommitLog>, locking: Locking) -> Self {
        let base = shared.root();
        log.open(base.version);
        drop(log);
        Self { shared: Arc::clone(shared), base: Some(base), write_sets: BTreeMap::new(), locking }
    }

    fn base(&self, keyspace: Keyspace) -> Option<&Tree> {
        self.base.as_ref().and_then(|base| base.tree(keyspace))
    }

    /// Returns a keyspace with the transaction's own writes applied.
    fn tree(&self, keyspace: Keyspace) -> Option<&Tree> {
        let base = self.base(keyspace);
        self.write_sets.get(&keyspace).map_or(base, |writes| writes.merged(base))
    }

    /// Returns a keyspace's tree, and sorted writes that take precedence over it.
    pub(super) fn overlay(&self, keyspace: Keyspace) -> (Option<&Tree>, &[leaf::Write]) {
        let base = self.base(keyspace);
        self.write_sets.get(&keyspace).map_or((base, &[][..]), |set| set.overlay(base))
    }

    fn write_set(&mut self, keyspace: Keyspace) -> &mut WriteSet {
        self.write_sets.entry(keyspace).or_default()
    }
}

fn refusal(keyspace: Keyspace, conflict: Conflict<'_>) -> Context {
    match conflict {
        Conflict::Forgotten => "it was open for so long that the record of concurrent commits was discarded".into(),
        Conflict::Dropped => "a keyspace that it wrote to or guarded was dropped".into(),
        Conflict::Key(key) => {
            Context::new("another transaction first committed a change to the same key").on(keyspace, key.as_slice())
        }
    }
}

impl Drop for MemoryTransaction {
    fn drop(&mut self) {
        if let Some(base) = self.base.take() {
            self.shared.end(base.version);
        }
    }
}

impl Transaction for MemoryTransaction {
    type View<'t> = MemoryView<'t>;

    fn view(&self) -> MemoryView<'_> {
        MemoryView(self)
    }

    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()> {
        Capabilities::MINIMAL.check_sizes(writes)?;
        let mut made = writes.iter().map(|(key, value)| (Key::new(key), value.map(Value::new)));
        let set = self.write_set(keyspace);
        if writes.len() > 1 && writes.is_sorted_by(|(a, _), (b, _)| a < b) {
            // Values that are read together are allocated together.
            set.write_sorted(made.collect());
        } else {
            made.by_ref().for_each(|(key, value)| set.write(key, value));
        }
        Ok(())
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8], guard: Guard) -> Result<()> {
        let access = match guard {
            Guard::Shared => Access::Shared,
            Guard::Exclusive => Access::Exclusive,
        };
        self.write_set(keyspace).guard(Key::new(key), access);
        Ok(())
    }

    fn commit(mut self, _: Durability) -> Result<Version> {
        let mut write_sets = mem::take(&mut self.write_sets);
        write_sets.values_mut().for_each(WriteSet::sort);
        let writes: usize = write_sets.values().map(WriteSet::len).sum();
        let Some(base) = self.base.as_ref().map(Arc::clone) else { return Ok(Version::default()) };
        if write_sets.is_empty() {
            return Ok(Version(base.version));
        }
        if writes > MAX_IN_PLACE {
            // Merged before the lock is taken, so that others wait for it only if another commit to the same keyspace
            // comes first.
            for (keyspace, writes) in &write_sets {
                writes.merged(base.tree(*keyspace));
            }
        }
        let locked = match self.locking {
            Locking::Wait => Some(self.shared.lock()),
            Locking::Try => self.shared.try_lock(),
        };
        let Some(mut log) = locked else {
            return Err(Error::Conflict(Box::new("another commit is in progress".into())));
        };
        let latest = self.shared.root();
        let is_first = Arc::ptr_eq(&base, &latest);
        let conflict = |(keyspace, set): (&Keyspace, &WriteSet)| {
            log.conflict(base.version, *keyspace, set.accesses()).map(|conflict| refusal(*keyspace, conflict))
        };
        let refusal = if is_first { None } else { write_sets.iter().find_map(conflict) };
        self.base = None;
        log.close(base.version);
        if let Some(refusal) = refusal {
            drop(log);
            return Err(Error::Conflict(Box::new(refusal)));
        }
        if !write_sets.values().any(WriteSet::leaves_trace) {
            return Ok(Version(base.version));
        }
        let version = latest.version + 1;
        write_sets.iter().for_each(|(keyspace, set)| log.record(version, *keyspace, set.accesses()));
        let apply = |root: &mut Root, base: Option<&Root>| {
            root.version = version;
            for (keyspace, set) in write_sets {
                let base = base.map(|base| base.tree(keyspace).cloned().unwrap_or_default());
                set.apply(base.as_ref(), root.tree_mut(keyspace));
            }
        };
        let (replaced, base) = if writes > MAX_IN_PLACE {
            (Some(self.shared.replace(|root| apply(root, Some(&base)))), Some(base))
        } else {
            // Releases the commit that this transaction reads; otherwise it could not be changed in place.
            drop(latest);
            let older = Some(base).filter(|_| !is_first);
            (self.shared.change(|root| apply(root, None)), older)
        };
        // After the lock is released, because freeing values that only old commits contain may take long.
        drop(log);
        drop((replaced, base));
        Ok(Version(version))
    }
}

/// The view of a [`MemoryTransaction`]: the commit that it reads with its own writes applied.
#[derive(Clone, Copy)]
pub struct MemoryView<'t>(&'t MemoryTransaction);

impl<'t> View for MemoryView<'t> {
    type Cursor = BorrowedCursor<'t>;
    type PointReader = MemoryTransactionPointReader<'t>;

    fn version(&self) -> Version {
        Version(self.0.base.as_ref().map_or(0, |base| base.version))
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<BorrowedCursor<'t>> {
        Ok(BorrowedCursor::new(self.0.tree(keyspace), bounds))
    }

    fn point_reader(&self) -> Result<MemoryTransactionPointReader<'t>> {
        Ok(MemoryTransactionPointReader::open(self.0))
    }

    fn count(&self, keyspace: Keyspace, bounds: Bounds<'_>, _: impl FnMut(u64) -> bool) -> Result<Option<u64>> {
        Ok(Some(self.0.tree(keyspace).map_or(0, |tree| tree.count(bounds, u64::MAX))))
    }

    fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        (read(), Some(0))
    }
}
