use std::ops::Bound;

use self_cell::self_cell;

use super::tree::{Entries, Tree};
use crate::{
    Bounds, Cursor, Edge, Estimate, Result,
    bounds::{Heading, Landing, OwnedBounds},
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
}

/// A cursor over a borrowed tree. The tree's iterator runs either way; only a turn descends again.
pub struct BorrowedCursor<'t> {
    tree: Option<&'t Tree>,
    bounds: OwnedBounds,
    heading: Heading,
    /// `None` before the first seek: even an empty range costs a descent.
    entries: Option<Entries<'t>>,
    current: Option<(&'t [u8], &'t [u8])>,
}

impl<'t> BorrowedCursor<'t> {
    pub(super) fn new(tree: Option<&'t Tree>, bounds: Bounds<'_>) -> Self {
        // Over impossible bounds there is nothing to walk, and no range to hand to the tree, which takes ordered ones.
        let tree = tree.filter(|_| !bounds.is_empty());
        Self { tree, bounds: OwnedBounds::of(bounds), heading: Heading::Forward, entries: None, current: None }
    }

    /// Takes the next entry of the iterator. The iterator is open at its far end, where opening it with the bound would
    /// cost a second descent: the bound is compared here instead.
    #[inline]
    fn advance(&mut self) -> bool {
        self.current = match (&mut self.entries, self.heading) {
            (Some(entries), Heading::Forward) => entries
                .next()
                .map(|(key, value)| (key.as_slice(), &**value))
                .filter(|(key, _)| self.bounds.below_end(key)),
            (Some(entries), Heading::Back) => entries
                .next_back()
                .map(|(key, value)| (key.as_slice(), &**value))
                .filter(|(key, _)| self.bounds.above_start(key)),
            (None, _) => None,
        };
        self.current.is_some()
    }

    /// An iterator that leaves `landing`, and the way it runs.
    fn entries(tree: Option<&'t Tree>, landing: Landing<'_>) -> (Heading, Option<Entries<'t>>) {
        match landing {
            Landing::Up(from) => {
                (Heading::Forward, tree.map(|tree| tree.entries.range::<_, [u8]>((from, Bound::Unbounded))))
            }
            Landing::Down(from) => {
                (Heading::Back, tree.map(|tree| tree.entries.range::<_, [u8]>((Bound::Unbounded, from))))
            }
        }
    }

    #[cold]
    fn turn(&mut self, landing: Landing<'_>) -> bool {
        (self.heading, self.entries) = Self::entries(self.tree, landing);
        self.advance()
    }
}

impl Cursor for BorrowedCursor<'_> {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        (self.heading, self.entries) = Self::entries(self.tree, self.bounds.confine(edge));
        Ok(self.advance())
    }

    #[inline]
    fn step_forward(&mut self) -> Result<bool> {
        match (self.current, self.heading) {
            (None, _) => Ok(false),
            (Some(_), Heading::Forward) => Ok(self.advance()),
            (Some((key, _)), Heading::Back) => Ok(self.turn(Landing::Up(Bound::Excluded(key)))),
        }
    }

    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        match (self.current, self.heading) {
            (None, _) => Ok(false),
            (Some(_), Heading::Back) => Ok(self.advance()),
            (Some((key, _)), Heading::Forward) => Ok(self.turn(Landing::Down(Bound::Excluded(key)))),
        }
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.current
    }
}

/// Counts what lies within `bounds`, up to `cap`. A whole keyspace knows its own length.
pub(super) fn estimate(tree: Option<&Tree>, bounds: Bounds<'_>, cap: u64) -> Result<Estimate> {
    if let (Some(tree), Bounds::ALL) = (tree, bounds) {
        return Ok(Estimate::capped(tree.len(), cap));
    }
    crate::view::count(&mut BorrowedCursor::new(tree, bounds), cap)
}
