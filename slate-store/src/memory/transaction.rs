use std::{collections::BTreeMap, sync::Arc};

use super::{
    BorrowedCursor, BorrowedPoints,
    conflict::OpenTransactions,
    cursor,
    key::Key,
    root::Root,
    store::Shared,
    tree::{Tree, Value},
};
use crate::{
    Bounds, Context, Durability, Error, Estimate, Isolation, Keyspace, Result, Transaction, View, bounds::OwnedBounds,
    limits,
};

/// An open write transaction of a [`MemoryStore`](super::MemoryStore).
///
/// Many may be open at once, also on one thread. It works on trees of its own that share with its snapshot all that it
/// did not change; a commit that nobody came before costs no more than swapping them in.
pub struct MemoryTransaction {
    shared: Arc<Shared>,
    isolation: Isolation,
    base: Arc<Root>,
    touched: BTreeMap<Keyspace, Touched>,
}

/// What the transaction did to one keyspace.
#[derive(Default)]
struct Touched {
    tree: Tree,
    /// Every key that was put or deleted, in the order it happened, some of them more than once.
    written: Vec<Key>,
    deleted: Vec<Key>,
    guarded: Vec<Key>,
    /// The length of `written` at which it is worth looking for keys that stand in it twice.
    crowded: usize,
}

impl Touched {
    fn note(&mut self, key: Key) {
        if self.written.len() >= self.crowded {
            for keys in [&mut self.written, &mut self.deleted] {
                keys.sort_unstable();
                keys.dedup();
            }
            // Twice what is left, and never less than the tree, whose keys may well all be new ones.
            self.crowded = (2 * self.written.len()).max(2 * self.tree.entries.len()).max(1024);
        }
        self.written.push(key);
    }

    fn put(&mut self, key: Key, value: Value) {
        self.tree.insert(key.clone(), value);
        self.note(key);
    }

    /// Puts entries. Of ascending ones every second goes first: a leaf that is only appended to is split in halves when it
    /// is full, and one half stays so; those in between fill both.
    fn put_many(&mut self, entries: Vec<(Key, Value)>) {
        if !entries.is_sorted_by(|(a, _), (b, _)| a < b) {
            return entries.into_iter().for_each(|(key, value)| self.put(key, value));
        }
        let mut between = Vec::with_capacity(entries.len() / 2);
        for (at, (key, value)) in entries.into_iter().enumerate() {
            if at % 2 == 0 {
                self.put(key, value);
            } else {
                between.push((key, value));
            }
        }
        between.into_iter().for_each(|(key, value)| self.put(key, value));
    }

    fn delete(&mut self, key: Key) {
        self.tree.remove(key.as_slice());
        self.deleted.push(key.clone());
        self.note(key);
    }

    fn conflicts(&self, base: &Root, latest: &Root, keyspace: Keyspace, open: &OpenTransactions) -> bool {
        if open.was_dropped(base.sequence, keyspace) {
            return true;
        }
        let (then, now) = (base.tree(keyspace), latest.tree(keyspace));
        if then.zip(now).is_some_and(|(then, now)| then.is_surely_unchanged(now)) {
            return false;
        }
        self.written.iter().chain(&self.guarded).any(|key| {
            let find = |tree: Option<&_>| tree.and_then(|tree: &Tree| tree.get(key.as_slice()).map(Arc::as_ptr));
            match (find(then), find(now)) {
                (Some(then), Some(now)) => !std::ptr::addr_eq(then, now),
                (None, None) => open.may_have_vanished(base.sequence, keyspace, key),
                _ => true,
            }
        })
    }

    /// The keyspace as it is after this transaction, which conflicts with nothing that happened to `latest`.
    fn merge(self, base: Option<&Tree>, latest: Option<&Tree>) -> Tree {
        let is_empty = |tree: Option<&Tree>| tree.is_none_or(|tree| tree.entries.is_empty());
        let unchanged = base.zip(latest).is_some_and(|(base, latest)| base.is_surely_unchanged(latest));
        if unchanged || (is_empty(base) && is_empty(latest)) {
            return self.tree;
        }
        let mut merged = latest.cloned().unwrap_or_default();
        for key in self.written {
            match self.tree.get(key.as_slice()) {
                Some(value) => merged.insert(key, Arc::clone(value)),
                None => merged.remove(key.as_slice()),
            }
        }
        merged
    }
}

impl MemoryTransaction {
    pub(super) fn begin(shared: &Arc<Shared>, isolation: Isolation) -> Self {
        // Under the lock, so that no commit comes between the root and the note of who reads it.
        let mut open = shared.lock();
        let base = shared.root.load_full();
        open.opened(base.sequence);
        Self { shared: Arc::clone(shared), isolation, base, touched: BTreeMap::new() }
    }

    fn touch(&mut self, keyspace: Keyspace) -> &mut Touched {
        self.touched.entry(keyspace).or_insert_with(|| Touched {
            tree: self.base.tree(keyspace).cloned().unwrap_or_default(),
            ..Touched::default()
        })
    }

    fn tree(&self, keyspace: Keyspace) -> Option<&Tree> {
        match self.touched.get(&keyspace) {
            Some(touched) => Some(&touched.tree),
            None => self.base.tree(keyspace),
        }
    }
}

impl Drop for MemoryTransaction {
    fn drop(&mut self) {
        self.shared.lock().closed(self.base.sequence);
    }
}

impl Transaction for MemoryTransaction {
    type View<'t> = MemoryView<'t>;

    fn view(&self) -> MemoryView<'_> {
        MemoryView(self)
    }

    fn put(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        limits::check(key, value)?;
        self.touch(keyspace).put(Key::new(key), Value::from(value));
        Ok(())
    }

    fn put_many(&mut self, keyspace: Keyspace, entries: &[(&[u8], &[u8])]) -> Result<()> {
        entries.iter().try_for_each(|(key, value)| limits::check(key, value))?;
        // Values that are read one after another lie one after another.
        let made: Vec<(Key, Value)> = entries.iter().map(|(key, value)| (Key::new(key), Value::from(*value))).collect();
        self.touch(keyspace).put_many(made);
        Ok(())
    }

    fn delete(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        self.touch(keyspace).delete(Key::new(key));
        Ok(())
    }

    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        if bounds.is_empty() || self.tree(keyspace).is_none() {
            return Ok(());
        }
        let (bounds, touched) = (OwnedBounds::of(bounds), self.touch(keyspace));
        let range = touched.tree.entries.range::<_, [u8]>((bounds.lower(), bounds.upper()));
        let doomed: Vec<Key> = range.map(|(key, _)| key.clone()).collect();
        doomed.into_iter().for_each(|key| touched.delete(key));
        Ok(())
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        if self.isolation == Isolation::Serializable {
            self.touch(keyspace).guarded.push(Key::new(key));
        }
        Ok(())
    }

    fn commit(mut self, _: Durability) -> Result<()> {
        let touched = std::mem::take(&mut self.touched);
        if touched.is_empty() {
            return Ok(());
        }
        let (shared, base) = (Arc::clone(&self.shared), Arc::clone(&self.base));
        let mut open = shared.lock();
        let latest = shared.root.load_full();
        let conflict = |(keyspace, touched): (&Keyspace, &Touched)| touched.conflicts(&base, &latest, *keyspace, &open);
        if touched.iter().any(conflict) {
            drop(open);
            return Err(Error::Conflict(Box::new(Context::new(
                "another one committed a change to the same keys first",
            ))));
        }
        if touched.values().all(|touched| touched.written.is_empty()) {
            drop(open);
            return Ok(());
        }
        let mut root = Root::clone(&latest);
        root.sequence += 1;
        let others = !open.is_alone();
        for (keyspace, touched) in touched {
            if touched.written.is_empty() {
                continue;
            }
            if others {
                touched.deleted.iter().for_each(|key| open.deleted(root.sequence, keyspace, key));
            }
            let merged = touched.merge(base.tree(keyspace), latest.tree(keyspace));
            root.keyspaces.insert(keyspace, merged);
        }
        shared.root.store(Arc::new(root));
        // In this order: taking old trees apart must not hold up the next writer.
        drop(open);
        drop(latest);
        Ok(())
    }
}

/// What a [`MemoryTransaction`] sees: its snapshot with its own writes laid over.
#[derive(Clone, Copy)]
pub struct MemoryView<'t>(&'t MemoryTransaction);

impl<'t> View for MemoryView<'t> {
    type Cursor = BorrowedCursor<'t>;
    type Points = BorrowedPoints<'t>;

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<BorrowedCursor<'t>> {
        Ok(BorrowedCursor::new(self.0.tree(keyspace), bounds))
    }

    fn points(&self, keyspace: Keyspace) -> Result<BorrowedPoints<'t>> {
        Ok(BorrowedPoints::new(self.0.tree(keyspace)))
    }

    fn estimate(&self, keyspace: Keyspace, bounds: Bounds<'_>, cap: u64) -> Result<Estimate> {
        cursor::estimate(self.0.tree(keyspace), bounds, cap)
    }

    fn bytes(&self, keyspace: Keyspace) -> Result<u64> {
        Ok(self.0.tree(keyspace).map_or(0, Tree::bytes))
    }
}
