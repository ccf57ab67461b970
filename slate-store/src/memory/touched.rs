use std::sync::OnceLock;

use super::{
    conflict::OpenTransactions,
    key::Key,
    leaf::Write,
    noted::{self, Noted},
    root::Root,
    tree::Tree,
    value::Value,
};
use crate::Keyspace;

/// What a transaction did to one keyspace.
#[derive(Default)]
pub(super) struct Touched {
    /// What was written, until it is applied; after that what is left of it to be [let go](Self::let_go).
    noted: Noted,
    /// The keyspace with all writes applied.
    applied: OnceLock<Tree>,
    /// Every key that was put or deleted since, in the order it happened, some of them more than once.
    written: Vec<Key>,
    deleted: Vec<Key>,
    guarded: Vec<Key>,
    /// Twice as many as `written` had left when it was last looked through for keys that stand in it twice.
    crowded: usize,
}

/// So few keys are not looked through for those that stand there twice.
const LEAST_CROWDED: usize = 1024;

/// Whether more writes may be noted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Left,
    /// They are to be applied.
    Filled,
}

impl Touched {
    /// Puts `value`, or deletes the key where there is none.
    pub(super) fn write(&mut self, key: Key, value: Option<Value>) -> Room {
        self.let_go();
        let Some(tree) = self.applied.get_mut() else {
            self.noted.push((key, value));
            return if self.noted.is_full() { Room::Filled } else { Room::Left };
        };
        if value.is_none() {
            self.deleted.push(key.clone());
        }
        tree.write(key.clone(), value);
        self.written.push(key);
        self.thin_out();
        Room::Left
    }

    /// Makes writes, each to a key above the one before. `base` is what the transaction began with.
    pub(super) fn write_sorted(&mut self, writes: Vec<Write>, base: Option<&Tree>) {
        if self.applied.get().is_none() && self.noted.has_room(&writes) {
            return self.noted.extend(writes);
        }
        self.apply_now(base);
        self.let_go();
        self.write_applied(writes);
    }

    /// What was noted and is applied is told by its keys alone: values that are overwritten are not to be held.
    fn let_go(&mut self) {
        if self.applied.get().is_some() {
            for (key, value) in self.noted.take() {
                if value.is_none() {
                    self.deleted.push(key.clone());
                }
                self.written.push(key);
            }
        }
    }

    /// The same where all before is applied.
    fn write_applied(&mut self, writes: Vec<Write>) {
        let Some(tree) = self.applied.get_mut() else { return };
        self.deleted.extend(writes.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key.clone()));
        self.written.extend(writes.iter().map(|(key, _)| key.clone()));
        tree.write_sorted(writes);
        self.thin_out();
    }

    /// Keys that were written many times stand there once.
    fn thin_out(&mut self) {
        // Never less than twice the tree, whose keys may well all be new ones.
        let entries = self.applied.get().map_or(0, Tree::len);
        let twice = usize::try_from(entries).unwrap_or(usize::MAX / 2).saturating_mul(2);
        if self.written.len() < self.crowded.max(twice).max(LEAST_CROWDED) {
            return;
        }
        for keys in [&mut self.written, &mut self.deleted] {
            keys.sort_unstable();
            keys.dedup();
        }
        self.crowded = 2 * self.written.len();
    }

    /// Brings what is noted into the order of its keys.
    pub(super) fn put_in_order(&mut self) {
        self.noted.put_in_order();
    }

    /// Applies what is noted now, and not by the commit. `base` is what the transaction began with.
    pub(super) fn apply_now(&mut self, base: Option<&Tree>) {
        if self.applied.get().is_none() {
            self.applied.get_or_init(|| base.cloned().unwrap_or_default());
            let writes = self.noted.take();
            self.write_applied(writes);
        }
    }

    /// `base` with what is noted.
    fn apply(&self, base: Option<&Tree>) -> Tree {
        let mut tree = base.cloned().unwrap_or_default();
        tree.write_sorted(self.noted.clone().take());
        tree
    }

    pub(super) fn guard(&mut self, key: Key) {
        self.guarded.push(key);
    }

    /// The keyspace as the transaction sees it, which began with `base`.
    pub(super) fn seen<'t>(&'t self, base: Option<&'t Tree>) -> Option<&'t Tree> {
        if self.writes_nothing() {
            return base;
        }
        Some(self.applied.get_or_init(|| self.apply(base)))
    }

    /// The same for who reads single keys: a tree, and writes in order that lie over it.
    pub(super) fn seen_and_noted<'t>(&'t self, base: Option<&'t Tree>) -> (Option<&'t Tree>, &'t [Write]) {
        match (self.applied.get(), self.noted.in_order()) {
            (None, Some(noted)) => (base, noted),
            _ => (self.seen(base), &[]),
        }
    }

    pub(super) fn writes_nothing(&self) -> bool {
        self.noted.len() == 0 && self.written.is_empty()
    }

    /// How many writes are noted, where none is applied.
    pub(super) fn noted(&self) -> Option<usize> {
        self.applied.get().is_none().then_some(self.noted.len())
    }

    fn written(&self) -> impl Iterator<Item = &Key> {
        self.noted.iter().map(|(key, _)| key).chain(&self.written)
    }

    pub(super) fn deleted(&self) -> impl Iterator<Item = &Key> {
        self.noted.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key).chain(&self.deleted)
    }

    pub(super) fn conflicts(&self, base: &Root, latest: &Root, keyspace: Keyspace, open: &OpenTransactions) -> bool {
        if open.was_dropped(base.sequence, keyspace) {
            return true;
        }
        let (then, now) = (base.tree(keyspace), latest.tree(keyspace));
        if then.zip(now).is_some_and(|(then, now)| then.is_surely_unchanged(now)) {
            return false;
        }
        self.written().chain(&self.guarded).any(|key| match (find(then, key), find(now, key)) {
            (Some(then), Some(now)) => !then.is_same_put(now),
            (None, None) => open.may_have_vanished(base.sequence, keyspace, key),
            _ => true,
        })
    }

    /// Does to `latest`, with which it does not conflict, what the transaction did to `base`. What is only noted needs no
    /// `base`.
    pub(super) fn merge(mut self, base: Option<&Tree>, latest: &mut Tree) {
        let Some(tree) = self.applied.get() else {
            latest.write_sorted(self.noted.take());
            return;
        };
        let base_is_empty = base.is_none_or(Tree::is_empty);
        if base.is_some_and(|base| base.is_surely_unchanged(latest)) || (base_is_empty && latest.is_empty()) {
            latest.clone_from(tree);
            return;
        }
        let mut written: Vec<&Key> = self.written().collect();
        written.sort_unstable();
        written.dedup();
        // Not all at once: they may be millions.
        for keys in written.chunks(noted::MOST) {
            let write = |key: &&Key| ((*key).clone(), tree.get(key.as_slice()).cloned());
            latest.write_sorted(keys.iter().map(write).collect());
        }
    }
}

fn find<'t>(tree: Option<&'t Tree>, key: &Key) -> Option<&'t Value> {
    tree?.get(key.as_slice())
}
