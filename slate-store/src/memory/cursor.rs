use std::{
    ops::{Bound, ControlFlow},
    sync::Arc,
};

use branches::prefetch_read_data;
use self_cell::self_cell;

use super::{
    leaf::{Entry, Leaf},
    leaves::Leaves,
    root::Held,
    tree::Tree,
};
use crate::{
    Bounds, Cursor, Edge, Result,
    bounds::{Heading, Landing, OwnedBounds},
    prefetch,
};

self_cell!(
    /// A cursor that holds the commit it walks through.
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

    #[inline]
    fn value(&self) -> Option<&[u8]> {
        self.borrow_dependent().value()
    }

    fn shared(&self) -> Option<Arc<[u8]>> {
        self.borrow_dependent().shared()
    }
}

/// A cursor over a borrowed tree.
pub struct BorrowedCursor<'t> {
    tree: Option<&'t Tree>,
    bounds: OwnedBounds,
    way: Way<'t>,
    current: Option<&'t Entry>,
}

impl<'t> BorrowedCursor<'t> {
    pub(super) fn new(tree: Option<&'t Tree>, bounds: Bounds<'_>) -> Self {
        // Over impossible bounds there is nothing to walk.
        let tree = tree.filter(|_| !bounds.is_empty());
        Self { tree, bounds: OwnedBounds::of(bounds), way: Way::default(), current: None }
    }

    #[inline]
    fn advance(&mut self) -> bool {
        self.current = self.way.next(self.bounds.bounds());
        self.current.is_some()
    }

    #[cold]
    fn turn(&mut self, landing: Landing<'_>) -> bool {
        self.way = Way::from(self.tree, self.bounds.bounds(), landing);
        self.advance()
    }
}

impl Cursor for BorrowedCursor<'_> {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        let bounds = self.bounds.bounds();
        self.way = Way::from(self.tree, bounds, bounds.confine(edge));
        Ok(self.advance())
    }

    #[inline]
    fn step_forward(&mut self) -> Result<bool> {
        match (self.current, self.way.heading) {
            (None, _) => Ok(false),
            (Some(_), Heading::Forward) => Ok(self.advance()),
            (Some((key, _)), Heading::Back) => Ok(self.turn(Landing::Up(Bound::Excluded(key.as_slice())))),
        }
    }

    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        match (self.current, self.way.heading) {
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

/// Hands over the entries within bounds, in order, until `see` breaks. Nothing is copied, and nothing allocated.
pub(super) fn each<B>(
    tree: Option<&Tree>,
    bounds: Bounds<'_>,
    mut see: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
) -> Option<B> {
    let mut way = Way::from(tree.filter(|_| !bounds.is_empty()), bounds, bounds.confine(Edge::First));
    while let Some((key, value)) = way.next(bounds) {
        if let ControlFlow::Break(broken) = see(key.as_slice(), value) {
            return Some(broken);
        }
    }
    None
}

/// What lies ahead of a cursor: it runs along the entries of a leaf, then along those of the next. Only a turn descends
/// again.
struct Way<'t> {
    heading: Heading,
    /// What is left of a leaf, within the bounds.
    rest: &'t [Entry],
    /// What comes after it, as far as the bounds may reach.
    leaves: Leaves<'t>,
    pace: Pace,
}

/// How many entries were taken: none, one, or more. Values are asked for ahead from the second on, so that who looks at one
/// entry only does not pay for those behind it.
#[derive(Clone, Copy)]
enum Pace {
    Stands,
    Steps,
    Runs,
}

/// How far ahead of its reader a value is asked for.
const AHEAD: usize = 8;

/// With so many entries left of a leaf, the first ones of the next leaf are asked for: so that they are there when their values
/// are asked for.
const NEAR_END: usize = 2 * AHEAD;

impl Default for Way<'_> {
    fn default() -> Self {
        Self { heading: Heading::Forward, rest: &[], leaves: Leaves::default(), pace: Pace::Stands }
    }
}

impl<'t> Way<'t> {
    fn from(tree: Option<&'t Tree>, bounds: Bounds<'_>, landing: Landing<'_>) -> Self {
        let Some(tree) = tree else { return Self::default() };
        let (heading, mut leaves) = match landing {
            Landing::Up(from) => (Heading::Forward, tree.leaves_from(from)),
            Landing::Down(from) => (Heading::Back, tree.leaves_to(from)),
        };
        let entries = match landing {
            Landing::Up(from) => leaves.next().map(|leaf| leaf.above(from)),
            Landing::Down(from) => leaves.next_back().map(|leaf| leaf.below(from)),
        };
        let mut way = Self { heading, leaves, ..Self::default() };
        way.enter(entries.unwrap_or_default(), bounds);
        way
    }

    /// Goes among entries ahead, as far as the bound ahead leaves them.
    fn enter(&mut self, entries: &'t [Entry], bounds: Bounds<'_>) {
        self.rest = within(entries, self.heading, bounds);
        if self.rest.len() < entries.len() {
            self.leaves = Leaves::default();
        }
    }

    #[inline]
    fn next(&mut self, bounds: Bounds<'_>) -> Option<&'t Entry> {
        let next = match self.heading {
            Heading::Forward => self.rest.split_first(),
            Heading::Back => self.rest.split_last(),
        };
        let Some((entry, rest)) = next else { return self.enter_next(bounds) };
        self.rest = rest;
        if rest.len() == NEAR_END {
            self.prefetch_entries();
        }
        // Beside values in place lie others in place.
        if entry.1.is_shared() {
            self.prefetch_ahead();
        }
        Some(entry)
    }

    /// Asks for the entries that the next leaf begins with. Those behind them the processor asks for, once it sees that they
    /// are gone through.
    fn prefetch_entries(&self) {
        let Some(next) = self.peek() else { return };
        for entry in (0..AHEAD).filter_map(|ahead| self.ahead(next.entries(), ahead)) {
            prefetch_read_data::<Entry, 0>(entry);
        }
    }

    /// Asks for values that will be come to soon.
    #[inline]
    fn prefetch_ahead(&mut self) {
        match self.pace {
            Pace::Runs => self.prefetch(AHEAD - 1),
            Pace::Steps => {
                self.pace = Pace::Runs;
                (0..AHEAD).for_each(|ahead| self.prefetch(ahead));
            }
            Pace::Stands => self.pace = Pace::Steps,
        }
    }

    /// Asks for the value that comes after so many others.
    #[inline]
    fn prefetch(&self, ahead: usize) {
        let beyond = |leaf: &'t Leaf| self.ahead(leaf.entries(), ahead.saturating_sub(self.rest.len()));
        if let Some((_, value)) = self.ahead(self.rest, ahead).or_else(|| self.peek().and_then(beyond)) {
            prefetch(value);
        }
    }

    /// The entry that comes after so many others of these.
    #[inline]
    fn ahead<'e>(&self, entries: &'e [Entry], ahead: usize) -> Option<&'e Entry> {
        match self.heading {
            Heading::Forward => entries.get(ahead),
            Heading::Back => entries.len().checked_sub(ahead + 1).and_then(|at| entries.get(at)),
        }
    }

    /// The leaf that comes next, if it is of the branch at hand.
    #[inline]
    fn peek(&self) -> Option<&'t Leaf> {
        match self.heading {
            Heading::Forward => self.leaves.peek(),
            Heading::Back => self.leaves.peek_back(),
        }
    }

    fn enter_next(&mut self, bounds: Bounds<'_>) -> Option<&'t Entry> {
        let leaf = match self.heading {
            Heading::Forward => self.leaves.next()?,
            Heading::Back => self.leaves.next_back()?,
        };
        if let Some(after) = self.peek() {
            after.prefetch();
        }
        self.enter(leaf.entries(), bounds);
        // No leaf is empty, but its part within the bounds may be.
        if self.rest.is_empty() { None } else { self.next(bounds) }
    }
}

/// Those of a leaf's entries ahead that the bound ahead leaves. The bound behind is behind.
fn within<'t>(entries: &'t [Entry], heading: Heading, bounds: Bounds<'_>) -> &'t [Entry] {
    match heading {
        Heading::Forward if entries.last().is_some_and(|(last, _)| !bounds.below_end(last.as_slice())) => {
            entries.get(..leading(entries, |(key, _)| bounds.below_end(key.as_slice()))).unwrap_or_default()
        }
        Heading::Back if entries.first().is_some_and(|(first, _)| !bounds.above_start(first.as_slice())) => {
            let start = entries.partition_point(|(key, _)| !bounds.above_start(key.as_slice()));
            entries.get(start..).unwrap_or_default()
        }
        Heading::Forward | Heading::Back => entries,
    }
}

/// How many entries come before the first that is not as asked: most ranges that end in a leaf are short, so that it is looked
/// for near the front.
fn leading(entries: &[Entry], is_so: impl Fn(&Entry) -> bool) -> usize {
    let mut near = 1;
    while entries.get(near - 1).is_some_and(&is_so) {
        near *= 2;
    }
    // Half as many are known to be so.
    let known = near / 2;
    let rest = entries.get(known..near.min(entries.len())).unwrap_or_default();
    known + rest.partition_point(is_so)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{key::Key, value::Value},
        *,
    };

    #[test]
    fn leading_entries_are_counted_wherever_they_end() {
        let entries = |many: u8| (0..many).map(|key| (Key::new(&[key]), Value::new(&[], 0))).collect::<Vec<Entry>>();
        for many in 0..40 {
            let entries = entries(many);
            for end in 0..=many + 1 {
                assert_eq!(leading(&entries, |(key, _)| key.as_slice() < &[end][..]), usize::from(end.min(many)));
            }
        }
    }
}
