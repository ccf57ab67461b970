use std::{
    mem,
    ops::ControlFlow,
    path::Path,
    sync::{Arc, PoisonError},
};

use super::{MemorySnapshot, backup, cursor, key::Key, root::Root, tree::Tree, value::Value};
use crate::{
    BackupProgress, Bounds, Capabilities, Change, Changes, Durability, Keyspace, LocalStore, OldestSnapshot,
    Optimistic, OwnedBounds, Result, Size, SizeDetail, Version, Write, superseded::Superseded, sync::RwLock,
};

/// A database in memory.
pub type MemoryStore = Optimistic<LocalMemory>;

/// Maximum number of changes of a commit that is made in place, while the root is locked. A larger commit is made in a copy. Bounds the time that a
/// reader waits for the lock to a few milliseconds.
const MAX_IN_PLACE: usize = 8192;

/// The last commit of a database in memory.
///
/// Invariants:
/// - The root is replaced, or changed in place, only by a commit. Its version grows by one each time.
/// - It is changed in place only while it is locked for writing and no other owner of the `Arc` exists. A shared commit never
///   changes.
#[derive(Default)]
pub struct LocalMemory {
    /// Locked while the pointer is copied or replaced, or while a commit is made in place.
    root: RwLock<Arc<Root>>,
    superseded: Superseded<Root>,
}

impl MemoryStore {
    /// Creates an empty database.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a database with the contents of the [`backup`](crate::Store::backup) at `from`.
    ///
    /// # Errors
    /// [`Missing`](crate::Error::Missing) if the file does not exist;
    /// [`WrongFormat`](crate::Error::WrongFormat) if it is not such a backup;
    /// [`NewerVersion`](crate::Error::NewerVersion) if a later version of Slate wrote it;
    /// [`Corrupt`](crate::Error::Corrupt) if its checksum does not match or it is truncated.
    pub fn restore(from: &Path) -> Result<Self> {
        let root = RwLock::new(Arc::new(backup::read(from)?));
        Ok(Optimistic::over(LocalMemory { root, superseded: Superseded::default() }))
    }
}

impl LocalMemory {
    /// Creates a store whose last commit is that of `snapshot`: the state of a simulated device after a crash.
    #[cfg(simulated)]
    pub fn of(snapshot: &MemorySnapshot) -> Self {
        Self { root: RwLock::new(Arc::new(snapshot.root().clone())), superseded: Superseded::default() }
    }

    /// Makes a commit with a last stage, which receives the version of the commit and may fail. Few changes are collected, and then applied like
    /// those of any commit. Many changes are applied to a copy as they arrive, to save the memory for collecting them.
    fn apply_with_last_stage(&self, changes: &mut Changes<'_>) -> Result<Version> {
        let base = self.root();
        let version = Version(base.version + 1);
        let mut gathered = Gathered { steps: Vec::new(), writes: 0, bytes: 0, copy: None };
        changes.each(version, |keyspace, change| {
            gathered.add(&base, keyspace, change);
            Ok(())
        })?;
        let Gathered { steps, copy, .. } = gathered;
        let (mut next, mut dropped) = match copy {
            Some(copied) => copied,
            None => {
                drop(base);
                let mut latest = self.root.write().unwrap_or_else(PoisonError::into_inner);
                if let Some(root) = Arc::get_mut(&mut latest) {
                    let mut dropped = Vec::new();
                    steps.into_iter().for_each(|(keyspace, step)| step.make(root, keyspace, &mut dropped));
                    root.version = version.0;
                    drop(latest);
                    drop(dropped);
                    return Ok(version);
                }
                let mut next = (Root::clone(&latest), Vec::new());
                drop(latest);
                steps.into_iter().for_each(|(keyspace, step)| step.make(&mut next.0, keyspace, &mut next.1));
                next
            }
        };
        next.version = version.0;
        self.replace(Arc::new(next));
        dropped.clear();
        Ok(version)
    }

    /// Makes a root the last commit.
    fn replace(&self, next: Arc<Root>) {
        let replaced = mem::replace(&mut *self.root.write().unwrap_or_else(PoisonError::into_inner), next);
        self.superseded.add(&replaced, Version(replaced.version), 0);
        drop(replaced);
    }

    fn root(&self) -> Arc<Root> {
        Arc::clone(&self.root.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LocalStore for LocalMemory {
    type Snapshot = MemorySnapshot;

    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "memory", exclusive: true, backup: true, ..Capabilities::MINIMAL }
    }

    fn snapshot(&self) -> Result<MemorySnapshot> {
        Ok(MemorySnapshot::new(self.root()))
    }

    fn try_snapshot(&self) -> Option<MemorySnapshot> {
        self.root.try_read().ok().map(|root| MemorySnapshot::new(Arc::clone(&root)))
    }

    fn apply(&self, changes: &mut Changes<'_>, _: Durability) -> Result<Version> {
        let Some(count) = changes.count() else { return self.apply_with_last_stage(changes) };
        if count <= MAX_IN_PLACE {
            // In place if no reader holds the last commit. Readers wait meanwhile for the lock.
            let mut latest = self.root.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(root) = Arc::get_mut(&mut latest) {
                let Changed { version, dropped } = change(root, changes)?;
                // Drops the old root after the lock is released, because freeing it can take long.
                drop(latest);
                drop(dropped);
                return Ok(version);
            }
        }
        // Otherwise in a copy, which shares all unchanged leaves with the last commit.
        let mut root = Root::clone(&self.root());
        let Changed { version, dropped } = change(&mut root, changes)?;
        let next = Arc::new(root);
        self.replace(next);
        drop(dropped);
        Ok(version)
    }

    fn backup(&self, to: &Path) -> Result<()> {
        self.backup_while(to, &mut |_, _| ControlFlow::Continue(())).map(drop)
    }

    fn backup_while(&self, to: &Path, progress: BackupProgress<'_>) -> Result<ControlFlow<()>> {
        backup::write(&self.snapshot()?, to, progress)
    }

    fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        let last = self.root();
        self.superseded.oldest(|commit, _| commit.held_beside(&last))
    }

    /// `in_memory` is estimated from the bytes and the number of entries, without values that only old snapshots hold.
    fn size(&self, _: SizeDetail) -> Result<Size> {
        let root = self.root();
        let data: u64 = root.keyspaces.values().map(|tree| tree.extent().bytes).sum();
        Ok(Size {
            in_memory: Some(root.keyspaces.values().map(|tree| tree.extent().in_memory()).sum()),
            data: Some(data),
            on_disk: None,
            free: None,
        })
    }
}

/// Maximum bytes of keys and values that are collected before a commit is made in place.
const MAX_GATHERED: usize = 64 << 10;

/// The collected changes of a commit with a last stage, whose number is not known in advance.
struct Gathered {
    steps: Vec<(Keyspace, TreeStep)>,
    writes: usize,
    bytes: usize,
    /// Once there are many changes: a copy of the root with the changes so far, and the keyspaces that they dropped. Then `steps` is empty.
    copy: Option<(Root, Vec<Tree>)>,
}

/// A change that owns its bytes.
enum TreeStep {
    Writes(Vec<(Key, Option<Value>)>),
    Drop,
    DeleteRange(OwnedBounds),
}

impl Gathered {
    fn add(&mut self, base: &Arc<Root>, keyspace: Keyspace, change: Change<'_>) {
        if let Change::Writes(writes) = change {
            self.writes += writes.len();
            self.bytes += writes.iter().map(|(key, value)| key.len() + value.map_or(0, <[u8]>::len)).sum::<usize>();
        }
        let step = TreeStep::of(change);
        match &mut self.copy {
            Some((root, dropped)) => step.make(root, keyspace, dropped),
            None => self.steps.push((keyspace, step)),
        }
        if self.copy.is_none() && (self.writes > MAX_IN_PLACE || self.bytes > MAX_GATHERED) {
            let (mut root, mut dropped) = (Root::clone(base), Vec::new());
            mem::take(&mut self.steps)
                .into_iter()
                .for_each(|(keyspace, step)| step.make(&mut root, keyspace, &mut dropped));
            self.copy = Some((root, dropped));
        }
    }
}

impl TreeStep {
    fn of(change: Change<'_>) -> Self {
        match change {
            Change::Writes(writes) => {
                Self::Writes(writes.iter().map(|(key, value)| (Key::new(key), value.map(Value::new))).collect())
            }
            Change::DeleteRange(Bounds::ALL) => Self::Drop,
            Change::DeleteRange(bounds) => Self::DeleteRange(OwnedBounds::of(bounds)),
        }
    }

    fn make(self, root: &mut Root, keyspace: Keyspace, dropped: &mut Vec<Tree>) {
        match self {
            Self::Writes(writes) => {
                let tree = root.tree_mut(keyspace);
                if writes.len() > 1 && writes.is_sorted_by(|(a, _), (b, _)| a < b) {
                    tree.write_sorted(writes);
                } else {
                    writes.into_iter().for_each(|(key, value)| tree.write(key, value));
                }
            }
            Self::Drop => dropped.extend(root.keyspaces.remove(&keyspace)),
            Self::DeleteRange(bounds) => delete_range(root.tree_mut(keyspace), bounds.bounds()),
        }
    }
}

/// A commit, and the keyspaces that it dropped.
struct Changed {
    version: Version,
    dropped: Vec<Tree>,
}

/// Applies the changes of the next commit to `root`. Cannot fail if the number of changes is known.
fn change(root: &mut Root, changes: &mut Changes<'_>) -> Result<Changed> {
    let (version, mut dropped) = (Version(root.version + 1), Vec::new());
    changes.each(version, |keyspace, change| {
        match change {
            Change::Writes(writes) => write(root.tree_mut(keyspace), writes),
            Change::DeleteRange(Bounds::ALL) => dropped.extend(root.keyspaces.remove(&keyspace)),
            Change::DeleteRange(bounds) => delete_range(root.tree_mut(keyspace), bounds),
        }
        Ok(())
    })?;
    root.version = version.0;
    Ok(Changed { version, dropped })
}

fn write(tree: &mut Tree, writes: &[Write<'_>]) {
    let made = writes.iter().map(|(key, value)| (Key::new(key), value.map(Value::new)));
    if writes.len() > 1 && writes.is_sorted_by(|(a, _), (b, _)| a < b) {
        // Allocates all values one after the other, because they are often read together.
        tree.write_sorted(made.collect::<Vec<_>>());
    } else {
        made.for_each(|(key, value)| tree.write(key, value));
    }
}

fn delete_range(tree: &mut Tree, bounds: Bounds<'_>) {
    let mut deletes = Vec::new();
    let _: Option<()> = cursor::scan(Some(tree), bounds, |key, _| {
        deletes.push((Key::new(key), None));
        ControlFlow::Continue(())
    });
    tree.write_sorted(deletes);
}
