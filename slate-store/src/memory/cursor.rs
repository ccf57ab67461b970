use std::{ops::Bound, sync::Arc};

use self_cell::self_cell;

use super::{
    key::Key,
    tree::{Entries, Tree},
    value::Value,
};
use crate::{
    Bounds, Cursor, Edge, Estimate, Result,
    bounds::{Heading, Landing, OwnedBounds},
    prefetch,
};

self_cell!(
    /// A cursor that owns what it walks.
    pub struct MemoryCursor {
        owner: Tree,
        #[covariant]
        dependent: BorrowedCursor,
    }
);

impl MemoryCursor {
    pub(super) fn open(tree: Tree, bounds: Bounds<'_>) -> Self {
        Self::new(tree, |tree| BorrowedCursor::new(Some(tree), bounds))
    }
}

impl Cursor for MemoryCursor {
    #[inline]
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        self.with_dependent_mut(|_, cursor| cursor.seek(edge))
    }

    #[inline]
    fn step_forward(&mut self) -> Result<bool> {
        self.with_dependent_mut(|_, cursor| cursor.step_forward())
    }

    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        self.with_dependent_mut(|_, cursor| cursor.step_back())
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.borrow_dependent().current()
    }

    #[inline]
    fn value(&self) -> Option<&[u8]> {
        self.borrow_dependent().value()
    }

    fn shared(&self) -> Option<Arc<[u8]>> {
        self.borrow_dependent().shared()
    }
}

/// A cursor over a borrowed tree. The tree's iterator runs either way; only a turn descends again.
///
/// Entries are taken from the iterator in batches, which grow, so that a caller who stops early has paid for little
/// more than was seen.
pub struct BorrowedCursor<'t> {
    tree: Option<&'t Tree>,
    bounds: OwnedBounds,
    heading: Heading,
    /// `None` before the first seek: even an empty range costs a descent.
    entries: Option<Entries<'t>>,
    current: Option<Lent<'t>>,
    /// Entries taken in advance, within the bounds, from `at` on.
    batch: Vec<Lent<'t>>,
    at: usize,
    /// How many entries to take next.
    next_batch: usize,
}

/// A key and its value.
type Lent<'t> = (&'t Key, &'t Value);

const LARGEST_BATCH: usize = 256;

/// How far ahead of its reader a value is asked for.
const AHEAD: usize = 8;

impl<'t> BorrowedCursor<'t> {
    pub(super) fn new(tree: Option<&'t Tree>, bounds: Bounds<'_>) -> Self {
        // Over impossible bounds there is nothing to walk, and no range to hand to the tree, which takes ordered ones.
        let tree = tree.filter(|_| !bounds.is_empty());
        Self {
            tree,
            bounds: OwnedBounds::of(bounds),
            heading: Heading::Forward,
            entries: None,
            current: None,
            batch: Vec::new(),
            at: 0,
            next_batch: 1,
        }
    }

    /// Takes the next entry.
    #[inline]
    fn advance(&mut self) -> bool {
        self.current = match self.batch.get(self.at) {
            Some(entry) => Some(*entry),
            None => return self.refill(),
        };
        if let Some((_, value)) = self.batch.get(self.at + AHEAD) {
            prefetch(value);
        }
        self.at += 1;
        true
    }

    /// Takes the next entries of the iterator. The iterator is open at its far end, where opening it with the bound would
    /// cost a second descent: the bound is compared here instead, with the last entry of a batch.
    fn refill(&mut self) -> bool {
        self.batch.clear();
        let most = self.next_batch;
        self.next_batch = (if most < 64 { 4 * most } else { 2 * most }).min(LARGEST_BATCH);
        let bounds = &self.bounds;
        match (&mut self.entries, self.heading) {
            (Some(entries), Heading::Forward) => {
                self.batch.extend(entries.by_ref().take(most));
                let is_within = |key: &[u8]| bounds.below_end(key);
                confine(&mut self.batch, is_within);
            }
            (Some(entries), Heading::Back) => {
                self.batch.extend(entries.by_ref().rev().take(most));
                let is_within = |key: &[u8]| bounds.above_start(key);
                confine(&mut self.batch, is_within);
            }
            (None, _) => {}
        }
        if self.batch.len() < most {
            self.entries = None;
        }
        // The reader goes on from the second.
        self.batch.iter().take(1 + AHEAD).for_each(|(_, value)| prefetch(value));
        self.current = self.batch.first().copied();
        self.at = 1;
        self.current.is_some()
    }

    /// Goes where `landing` is.
    fn land(&mut self, (heading, entries): (Heading, Option<Entries<'t>>)) -> bool {
        (self.heading, self.entries) = (heading, entries);
        self.batch.clear();
        self.next_batch = 1;
        self.refill()
    }

    /// An iterator that leaves `landing`, and the way it runs.
    fn entries(tree: Option<&'t Tree>, landing: Landing<'_>) -> (Heading, Option<Entries<'t>>) {
        match landing {
            Landing::Up(from) => (Heading::Forward, tree.map(|tree| tree.range(from, Bound::Unbounded))),
            Landing::Down(from) => (Heading::Back, tree.map(|tree| tree.range(Bound::Unbounded, from))),
        }
    }

    #[cold]
    fn turn(&mut self, landing: Landing<'_>) -> bool {
        self.land(Self::entries(self.tree, landing))
    }
}

impl Cursor for BorrowedCursor<'_> {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        let entries = Self::entries(self.tree, self.bounds.confine(edge));
        Ok(self.land(entries))
    }

    #[inline]
    fn step_forward(&mut self) -> Result<bool> {
        match (self.current, self.heading) {
            (None, _) => Ok(false),
            (Some(_), Heading::Forward) => Ok(self.advance()),
            (Some((key, _)), Heading::Back) => Ok(self.turn(Landing::Up(Bound::Excluded(key.as_slice())))),
        }
    }

    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        match (self.current, self.heading) {
            (None, _) => Ok(false),
            (Some(_), Heading::Back) => Ok(self.advance()),
            (Some((key, _)), Heading::Forward) => Ok(self.turn(Landing::Down(Bound::Excluded(key.as_slice())))),
        }
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.current.map(|(key, value)| (key.as_slice(), &**value))
    }

    #[inline]
    fn value(&self) -> Option<&[u8]> {
        self.current.map(|(_, value)| &**value)
    }

    fn shared(&self) -> Option<Arc<[u8]>> {
        self.current.map(|(_, value)| value.shared())
    }
}

/// Cuts off the entries at the end that lie beyond the bound ahead.
fn confine(batch: &mut Vec<Lent<'_>>, is_within: impl Fn(&[u8]) -> bool) {
    if batch.last().is_some_and(|(key, _)| !is_within(key.as_slice())) {
        batch.truncate(batch.partition_point(|(key, _)| is_within(key.as_slice())));
    }
}

/// Counts what lies within `bounds`, up to `cap`. A whole keyspace knows its own length.
pub(super) fn estimate(tree: Option<&Tree>, bounds: Bounds<'_>, cap: u64) -> Result<Estimate> {
    if let (Some(tree), Bounds::ALL) = (tree, bounds) {
        return Ok(Estimate::capped(tree.len(), cap));
    }
    crate::view::count(&mut BorrowedCursor::new(tree, bounds), cap)
}
