use std::sync::Arc;

use super::{
    BorrowedCursor, BorrowedPoints,
    key::Key,
    leaf::Write,
    root::Root,
    store::{CommitSize, Shared},
    touched::{Room, Touched},
    tree::{Tree, estimate},
    value::{Stamp, Value},
};
use crate::{
    Bounds, Context, Cursor, Durability, Edge, Error, Estimate, Isolation, Keyspace, Result, Transaction, View, limits,
};

/// An open write transaction of a [`MemoryStore`](super::MemoryStore).
///
/// Many may be open at once, also on one thread. Its writes are noted, and applied when it commits: in place where nobody
/// looks at the last commit. Once it has many, or goes through what it wrote, they are applied before, to trees of its own that
/// share with its snapshot all that it did not change: a commit that nobody came before costs no more then than swapping them
/// in.
pub struct MemoryTransaction {
    shared: Arc<Shared>,
    isolation: Isolation,
    /// `None` once it is over.
    base: Option<Arc<Root>>,
    stamp: Stamp,
    /// In the order of the keyspaces.
    touched: Vec<(Keyspace, Touched)>,
}

impl MemoryTransaction {
    pub(super) fn begin(shared: &Arc<Shared>, isolation: Isolation) -> Self {
        // Under the lock, so that no commit comes between the root and the note of who reads it.
        let mut open = shared.lock();
        let base = shared.root();
        let stamp = open.opened(base.sequence);
        drop(open);
        Self { shared: Arc::clone(shared), isolation, base: Some(base), stamp, touched: Vec::new() }
    }

    fn touch(&mut self, keyspace: Keyspace) -> &mut Touched {
        let place = self.touched.binary_search_by_key(&keyspace, |(touched, _)| *touched);
        let place = place.unwrap_or_else(|place| {
            self.touched.insert(place, (keyspace, Touched::default()));
            place
        });
        #[expect(clippy::indexing_slicing, reason = "it was found there, or put there")]
        let (_, touched) = &mut self.touched[place];
        touched
    }

    /// What the transaction sees of a keyspace, its own writes applied.
    fn tree(&self, keyspace: Keyspace) -> Option<&Tree> {
        let base = self.base.as_ref().and_then(|base| base.tree(keyspace));
        self.touched(keyspace).map_or(base, |touched| touched.seen(base))
    }

    fn touched(&self, keyspace: Keyspace) -> Option<&Touched> {
        let place = self.touched.binary_search_by_key(&keyspace, |(touched, _)| *touched).ok()?;
        self.touched.get(place).map(|(_, touched)| touched)
    }

    fn write(&mut self, keyspace: Keyspace, key: Key, value: Option<Value>) {
        if self.touch(keyspace).write(key, value) == Room::Filled {
            // Many are applied now, when nobody waits for it, and not by the commit.
            let base = self.base.clone();
            self.touch(keyspace).apply_now(base.as_ref().and_then(|base| base.tree(keyspace)));
        }
    }

    /// Makes writes, each to a key above the one before.
    fn write_sorted(&mut self, keyspace: Keyspace, writes: Vec<Write>) {
        let base = self.base.clone();
        self.touch(keyspace).write_sorted(writes, base.as_ref().and_then(|base| base.tree(keyspace)));
    }
}

impl Drop for MemoryTransaction {
    fn drop(&mut self) {
        if let Some(base) = self.base.take() {
            self.shared.lock().closed(base.sequence);
        }
    }
}

impl Transaction for MemoryTransaction {
    type View<'t> = MemoryView<'t>;

    fn view(&self) -> MemoryView<'_> {
        MemoryView(self)
    }

    fn put(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        limits::check(key, value)?;
        self.write(keyspace, Key::new(key), Some(Value::new(value, self.stamp)));
        Ok(())
    }

    fn put_many(&mut self, keyspace: Keyspace, entries: &[(&[u8], &[u8])]) -> Result<()> {
        entries.iter().try_for_each(|(key, value)| limits::check(key, value))?;
        // Values that are read one after another lie one after another.
        let made: Vec<Write> =
            entries.iter().map(|(key, value)| (Key::new(key), Some(Value::new(value, self.stamp)))).collect();
        if made.is_sorted_by(|(a, _), (b, _)| a < b) {
            self.write_sorted(keyspace, made);
        } else {
            made.into_iter().for_each(|(key, value)| self.write(keyspace, key, value));
        }
        Ok(())
    }

    fn delete(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        self.write(keyspace, Key::new(key), None);
        Ok(())
    }

    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        if bounds.is_empty() {
            return Ok(());
        }
        let Some(tree) = self.tree(keyspace) else { return Ok(()) };
        let (mut cursor, mut doomed) = (BorrowedCursor::new(Some(tree), bounds), Vec::new());
        let mut more = cursor.seek(Edge::First)?;
        while more {
            doomed.extend(cursor.current().map(|(key, _)| (Key::new(key), None)));
            more = cursor.step_forward()?;
        }
        self.write_sorted(keyspace, doomed);
        Ok(())
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        if self.isolation == Isolation::Serializable {
            self.touch(keyspace).guard(Key::new(key));
        }
        Ok(())
    }

    fn commit(mut self, _: Durability) -> Result<()> {
        let mut touched = std::mem::take(&mut self.touched);
        if touched.is_empty() {
            return Ok(());
        }
        let Some(base) = self.base.take() else { return Ok(()) };
        touched.iter_mut().for_each(|(_, touched)| touched.put_in_order());
        let noted: Option<usize> = touched.iter().map(|(_, touched)| touched.noted()).sum();
        let size = CommitSize::of(noted);
        if size == CommitSize::Huge || (size == CommitSize::Large && self.shared.spares_readers(&base)) {
            // Too many to be made while others wait.
            touched.iter_mut().for_each(|(keyspace, touched)| touched.apply_now(base.tree(*keyspace)));
        }
        let mut open = self.shared.lock();
        let latest = self.shared.root();
        let is_first = Arc::ptr_eq(&base, &latest);
        let conflict = |(keyspace, touched): &(_, Touched)| touched.conflicts(&base, &latest, *keyspace, &open);
        let conflicts = !is_first && touched.iter().any(conflict);
        open.closed(base.sequence);
        if conflicts {
            drop(open);
            let detail = "another one committed a change to the same keys first";
            return Err(Error::Conflict(Box::new(Context::new(detail))));
        }
        touched.retain(|(_, touched)| !touched.writes_nothing());
        if touched.is_empty() {
            return Ok(());
        }
        let sequence = latest.sequence + 1;
        if !open.is_empty() {
            for (keyspace, touched) in &touched {
                touched.deleted().for_each(|key| open.deleted(sequence, *keyspace, key));
            }
        }
        let old = if touched.iter().all(|(_, touched)| touched.noted().is_some()) {
            // In place if nobody looks at the last commit, this transaction included.
            drop(latest);
            let base = (!is_first).then_some(base);
            let old = self.shared.change(size, |root| {
                root.sequence = sequence;
                touched.into_iter().for_each(|(keyspace, touched)| touched.merge(None, root.tree_mut(keyspace)));
            });
            (base, old)
        } else {
            let mut root = Root::clone(&latest);
            root.sequence = sequence;
            for (keyspace, touched) in touched {
                touched.merge(base.tree(keyspace), root.tree_mut(keyspace));
            }
            drop(latest);
            (Some(base), Some(self.shared.replace(root)))
        };
        // In this order: taking old trees apart must not hold up the next writer.
        drop(open);
        drop(old);
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
        let base = self.0.base.as_ref().and_then(|base| base.tree(keyspace));
        let (tree, noted) = self.0.touched(keyspace).map_or((base, &[][..]), |touched| touched.seen_and_noted(base));
        Ok(BorrowedPoints::new(tree, noted))
    }

    fn estimate(&self, keyspace: Keyspace, bounds: Bounds<'_>, cap: u64) -> Result<Estimate> {
        Ok(estimate(self.0.tree(keyspace), bounds, cap))
    }

    fn count(&self, keyspace: Keyspace, bounds: Bounds<'_>, _: impl FnMut() -> bool) -> Result<Option<u64>> {
        Ok(Some(self.0.tree(keyspace).map_or(0, |tree| tree.count(bounds, u64::MAX))))
    }

    fn bytes(&self, keyspace: Keyspace) -> Result<u64> {
        Ok(self.0.tree(keyspace).map_or(0, Tree::bytes))
    }
}
