use std::{
    ops::{Bound, ControlFlow},
    sync::Arc,
};

use self_cell::self_cell;

use super::{
    key::Probe,
    leaf::{Leaf, LeafEntry},
    root::Held,
    separator::Separator,
    tree::{Leaves, Tree, found},
};
use crate::{
    Bounds, Cursor, Edge, Result,
    bounds::{Heading, Landing, OwnedBounds},
};

self_cell!(
    /// A cursor that holds the commit that it reads.
    pub struct MemoryCursor {
        owner: Held,
        #[covariant]
        dependent: BorrowedCursor,
    }
);

impl MemoryCursor {
    pub(super) fn open(keyspace: Held, bounds: Bounds<'_>) -> Self {
        Self::new(keyspace, |keyspace| BorrowedCursor::new(keyspace.tree(), bounds))
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

    fn shared(&self) -> Option<Arc<[u8]>> {
        self.borrow_dependent().shared()
    }
}

/// A cursor over a borrowed tree.
pub(super) struct BorrowedCursor<'t> {
    tree: Option<&'t Tree>,
    bounds: OwnedBounds,
    walk: TreeWalk<'t>,
    current: Option<&'t LeafEntry>,
}

impl<'t> BorrowedCursor<'t> {
    pub(super) fn new(tree: Option<&'t Tree>, bounds: Bounds<'_>) -> Self {
        // An empty range may have inverted bounds, which the map does not accept.
        let tree = tree.filter(|_| !bounds.is_empty());
        Self { tree, bounds: OwnedBounds::of(bounds), walk: TreeWalk::default(), current: None }
    }

    #[inline]
    fn advance(&mut self) -> bool {
        self.current = self.walk.next(|| self.bounds.bounds());
        self.current.is_some()
    }

    #[cold]
    fn turn(&mut self, landing: Landing<'_>) -> bool {
        self.walk = TreeWalk::from(self.tree, self.bounds.bounds(), landing);
        self.advance()
    }
}

impl Cursor for BorrowedCursor<'_> {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        let bounds = self.bounds.bounds();
        self.walk = TreeWalk::from(self.tree, bounds, bounds.confine(edge));
        Ok(self.advance())
    }

    #[inline]
    fn step_forward(&mut self) -> Result<bool> {
        match (self.current, self.walk.heading) {
            (None, _) => Ok(false),
            (Some(_), Heading::Forward) => Ok(self.advance()),
            (Some((key, _)), Heading::Back) => Ok(self.turn(Landing::Up(Bound::Excluded(key.as_slice())))),
        }
    }

    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        match (self.current, self.walk.heading) {
            (None, _) => Ok(false),
            (Some(_), Heading::Back) => Ok(self.advance()),
            (Some((key, _)), Heading::Forward) => Ok(self.turn(Landing::Down(Bound::Excluded(key.as_slice())))),
        }
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.current.map(|(key, value)| (key.as_slice(), &**value))
    }

    fn shared(&self) -> Option<Arc<[u8]>> {
        self.current.map(|(_, value)| value.shared())
    }
}

/// Calls `visit` with the entries within bounds in ascending order until it breaks. Copies and allocates nothing.
pub(super) fn scan<B>(
    tree: Option<&Tree>,
    bounds: Bounds<'_>,
    mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
) -> Option<B> {
    let mut walk = TreeWalk::from(tree.filter(|_| !bounds.is_empty()), bounds, bounds.confine(Edge::First));
    while let Some((key, value)) = walk.next(|| bounds) {
        if let ControlFlow::Break(broken) = visit(key.as_slice(), value) {
            return Some(broken);
        }
    }
    None
}

/// The entries ahead of a cursor in one direction, leaf by leaf. A change of direction begins a new walk.
struct TreeWalk<'t> {
    heading: Heading,
    /// The remaining entries of the current leaf, within the bounds.
    rest: &'t [LeafEntry],
    /// The next leaf in the direction of the walk; `None` if it was not searched yet or does not exist.
    next: Option<&'t Leaf>,
    /// The tree, and the separator of the last leaf that was found: `next`, or the current leaf if `next` is `None`. `None` if
    /// the walk ends in the last leaf that was found.
    last: Option<(&'t Tree, &'t Separator)>,
    /// The leaves before `last`; `None` until a backward walk needs them.
    before: Option<Leaves<'t>>,
}

/// Prefetch distance: a value is prefetched this many entries before it is read.
const PREFETCH_DISTANCE: usize = 8;

impl Default for TreeWalk<'_> {
    fn default() -> Self {
        Self { heading: Heading::Forward, rest: &[], next: None, last: None, before: None }
    }
}

impl<'t> TreeWalk<'t> {
    fn from(tree: Option<&'t Tree>, bounds: Bounds<'_>, landing: Landing<'_>) -> Self {
        let Some(tree) = tree else { return Self::default() };
        let (heading, from) = match landing {
            Landing::Up(from) => (Heading::Forward, from),
            Landing::Down(from) => (Heading::Back, from),
        };
        let leaf = match (from, heading) {
            (Bound::Included(key) | Bound::Excluded(key), _) => tree.leaf(&Probe::new(key)),
            (Bound::Unbounded, Heading::Forward) => tree.first(),
            (Bound::Unbounded, Heading::Back) => tree.last(),
        };
        let Some((separator, leaf)) = leaf else { return Self::default() };
        let mut walk = Self { heading, last: Some((tree, separator)), ..Self::default() };
        let entries = match heading {
            Heading::Forward => leaf.above(from),
            Heading::Back => leaf.below(from),
        };
        walk.enter(entries, bounds);
        walk
    }

    /// Makes these entries the current ones, up to the bound in the direction of the walk.
    fn enter(&mut self, entries: &'t [LeafEntry], bounds: Bounds<'_>) {
        self.rest = within(entries, self.heading, bounds);
        if self.rest.len() < entries.len() {
            (self.next, self.last) = (None, None);
        }
    }

    #[inline]
    fn next<'b>(&mut self, bounds: impl FnOnce() -> Bounds<'b>) -> Option<&'t LeafEntry> {
        let next = match self.heading {
            Heading::Forward => self.rest.split_first(),
            Heading::Back => self.rest.split_last(),
        };
        let Some((entry, rest)) = next else { return self.enter_next(bounds()) };
        self.rest = rest;
        // Inline values, as in an index, need no prefetch.
        if entry.1.is_shared() {
            self.prefetch();
        }
        Some(entry)
    }

    /// Prefetches the value that is read [`PREFETCH_DISTANCE`] entries later.
    #[inline]
    fn prefetch(&self) {
        let of_next = |leaf: &'t Leaf| self.at(leaf.entries(), PREFETCH_DISTANCE - 1 - self.rest.len());
        let entry = self.at(self.rest, PREFETCH_DISTANCE - 1).or_else(|| self.next.and_then(of_next));
        if let Some((_, value)) = entry {
            value.prefetch();
        }
    }

    /// Returns the entry after `distance` others in the direction of the walk.
    #[inline]
    fn at<'e>(&self, entries: &'e [LeafEntry], distance: usize) -> Option<&'e LeafEntry> {
        match self.heading {
            Heading::Forward => entries.get(distance),
            Heading::Back => entries.len().checked_sub(distance + 1).and_then(|at| entries.get(at)),
        }
    }

    fn enter_next(&mut self, bounds: Bounds<'_>) -> Option<&'t LeafEntry> {
        let leaf = match self.next.take() {
            Some(leaf) => leaf,
            None => self.find_next()?,
        };
        self.next = self.find_next();
        self.enter(leaf.entries(), bounds);
        // No leaf is empty, but all its entries may be out of bounds.
        if self.rest.is_empty() { None } else { self.next(|| bounds) }
    }

    fn find_next(&mut self) -> Option<&'t Leaf> {
        let (tree, separator) = self.last?;
        let next = match self.heading {
            Heading::Forward => tree.next(separator),
            Heading::Back => self.before.get_or_insert_with(|| tree.before(separator)).next_back().map(found),
        };
        self.last = next.map(|(separator, _)| (tree, separator));
        next.map(|(_, leaf)| {
            leaf.prefetch();
            leaf
        })
    }
}

/// Returns the entries of a leaf up to the bound in the direction of the walk. The other bound is not checked.
fn within<'t>(entries: &'t [LeafEntry], heading: Heading, bounds: Bounds<'_>) -> &'t [LeafEntry] {
    match heading {
        Heading::Forward if entries.last().is_some_and(|(last, _)| !bounds.below_end(last.as_slice())) => {
            let end = entries.partition_point(|(key, _)| bounds.below_end(key.as_slice()));
            entries.get(..end).unwrap_or_default()
        }
        Heading::Back if entries.first().is_some_and(|(first, _)| !bounds.above_start(first.as_slice())) => {
            let start = entries.partition_point(|(key, _)| !bounds.above_start(key.as_slice()));
            entries.get(start..).unwrap_or_default()
        }
        Heading::Forward | Heading::Back => entries,
    }
}
