use std::{iter, mem, ops::Bound, sync::Arc};

use im::{OrdMap, ordmap::RangedIter, shared_ptr::DefaultSharedPtr};

use super::{
    key::{Key, Probe},
    leaf::{Extent, Leaf, LeafEntry, Split, Write, size},
    separator::{Around, Retry, Separator},
    value::Value,
};
use crate::Bounds;

/// A persistent sorted map from keys to values: the entries of one keyspace, in leaves of up to some dozen entries. Versions
/// of a tree share the leaves that are the same in both.
///
/// Invariants:
/// - The separators partition all keys, or there are none. Every entry's key is within the separator of its leaf.
/// - No leaf is empty or has more than [`MAX_INLINE`](super::leaf::MAX_INLINE) entries.
/// - `extent` is the sum over all entries.
///
/// Searching by [`Around`] may miss: `OrdMap` guides a search by copies of separators, made when one of its nodes was split.
/// The range of a separator changes when its leaf is split or merged, and a copy of it does not. A search that was guided to the
/// wrong node finds nothing there, because ranges do not overlap, and [`Tree::retry`] finds the leaf: after a split it is further
/// right, and the search is repeated without the copy that misled it; after a merge it is further left, and the lower bounds, which
/// never change, find it.
#[derive(Clone, Default)]
pub(super) struct Tree {
    leaves: OrdMap<Separator, Arc<Leaf>>,
    extent: Extent,
}

pub(super) type Leaves<'t> = RangedIter<'t, Separator, Arc<Leaf>, DefaultSharedPtr>;

/// Borrows the leaf out of the `Arc` of an entry of the map.
#[inline]
pub(super) fn found<'t>((separator, leaf): (&'t Separator, &'t Arc<Leaf>)) -> (&'t Separator, &'t Leaf) {
    (separator, leaf)
}

impl Tree {
    /// Returns the number of entries, and the bytes of their keys and values.
    pub(super) fn extent(&self) -> Extent {
        self.extent
    }

    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Option<&Value> {
        let key = Probe::new(key);
        self.leaf(&key).and_then(|(_, leaf)| leaf.get(&key))
    }

    /// Returns the leaf whose range contains the key, and its separator. `None` if the tree is empty.
    #[inline]
    pub(super) fn leaf(&self, key: &Probe<'_>) -> Option<(&Separator, &Leaf)> {
        self.leaves.get_key_value(&Around(key)).or_else(|| self.retry(key)).map(found)
    }

    /// Searches again after outdated copies of separators misled a search.
    #[cold]
    fn retry(&self, key: &Probe<'_>) -> Option<(&Separator, &Arc<Leaf>)> {
        let mut search = Retry::new(key);
        loop {
            let found = self.leaves.get_key_value(&search);
            if found.is_some() {
                return found;
            }
            if !search.rule_out() {
                // Slower than the search above, because opening a range of the map allocates.
                return self.leaves.get_prev(&Separator::from(Key::new(key.as_slice())));
            }
        }
    }

    pub(super) fn first(&self) -> Option<(&Separator, &Leaf)> {
        self.leaves.get_min().map(|(separator, leaf)| (separator, &**leaf))
    }

    pub(super) fn last(&self) -> Option<(&Separator, &Leaf)> {
        self.leaves.get_max().map(|(separator, leaf)| (separator, &**leaf))
    }

    /// Returns the leaf after the one with this separator.
    pub(super) fn next(&self, separator: &Separator) -> Option<(&Separator, &Leaf)> {
        separator.end.as_ref().and_then(|end| self.leaf(&Probe::from(end)))
    }

    /// Returns the leaves before the one with this separator, to be iterated backwards.
    pub(super) fn before(&self, separator: &Separator) -> Leaves<'_> {
        self.leaves.range::<_, Separator>((Bound::Unbounded, Bound::Excluded(separator)))
    }

    /// Returns all entries in ascending order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &LeafEntry> {
        self.leaves.values().flat_map(|leaf| leaf.entries())
    }

    /// Returns the number of keys within bounds; if it exceeds `cap`, returns any number above `cap`. Costs a step per leaf.
    pub(super) fn count(&self, bounds: Bounds<'_>, cap: u64) -> u64 {
        if bounds == Bounds::ALL {
            return self.extent.entries;
        }
        let (start, end) = (Probe::new(bounds.start.unwrap_or_default()), bounds.end.map(Probe::new));
        let Some((first, leaf)) = self.leaf(&start).filter(|_| !bounds.is_empty()) else { return 0 };
        let rank_of_end = |separator: &Separator, leaf: &Leaf| {
            end.as_ref().filter(|end| separator.is_above(end)).map(|end| size(leaf.rank(end)))
        };
        let below_start = size(leaf.rank(&start));
        if let Some(rank) = rank_of_end(first, leaf) {
            return rank - below_start;
        }
        let mut counted = size(leaf.entries().len()) - below_start;
        let mut rest = self.leaves.range::<_, Separator>((Bound::Excluded(first), Bound::Unbounded));
        while counted <= cap
            && let Some((separator, leaf)) = rest.next()
        {
            if let Some(rank) = rank_of_end(separator, leaf) {
                return counted + rank;
            }
            counted += size(leaf.entries().len());
        }
        counted
    }

    /// Puts `value`, or deletes the key where it is `None`.
    pub(super) fn write(&mut self, key: Key, value: Option<Value>) {
        self.write_sorted(iter::once((key, value)));
    }

    /// Applies writes in strictly ascending order of keys.
    pub(super) fn write_sorted(&mut self, writes: impl IntoIterator<Item = Write>) {
        let mut writes = writes.into_iter().peekable();
        // The writes to one leaf.
        let mut run = Vec::new();
        while let Some(first) = writes.next() {
            if self.leaves.is_empty() {
                if first.1.is_none() {
                    continue;
                }
                self.leaves.insert(Separator::all(), Arc::default());
            }
            let key = first.0.clone();
            let probe = Probe::from(&key);
            let write = |separator: &Separator, leaf: &mut Arc<Leaf>, extent: &mut Extent| {
                run.push(first);
                run.extend(iter::from_fn(|| writes.next_if(|(next, _)| separator.is_above(&Probe::from(next)))));
                write_leaf(separator, leaf, &mut run, extent)
            };
            let outcome = if let Some((separator, leaf)) = self.leaves.get_key_value_mut(&Around(&probe)) {
                write(separator, leaf, &mut self.extent)
            } else if let Some(separator) = self.retry(&probe).map(|(separator, _)| separator.clone())
                && let Some(leaf) = self.leaves.get_mut(&separator)
            {
                write(&separator, leaf, &mut self.extent)
            } else {
                continue;
            };
            match outcome {
                Outcome::Fits => {}
                Outcome::Overfull(separator, leaf, split) => self.split(separator, leaf, split),
                Outcome::Underfull(separator) => self.merge(&separator),
            }
        }
    }

    /// Replaces an overfull leaf by as many leaves as its entries need.
    fn split(&mut self, separator: Separator, leaf: Arc<Leaf>, split: Split) {
        let mut leaf = Arc::unwrap_or_clone(leaf);
        let Separator { mut low, end } = separator;
        for (next_low, next) in leaf.split(split) {
            let separator = Separator { low: mem::replace(&mut low, next_low.clone()), end: Some(next_low) };
            self.leaves.insert(separator, Arc::new(mem::replace(&mut leaf, next)));
        }
        self.leaves.insert(Separator { low, end }, Arc::new(leaf));
    }

    /// Merges an underfull leaf with the next one, or the last leaf with the one before, if their entries fit into one.
    fn merge(&mut self, separator: &Separator) {
        let other = match &separator.end {
            Some(_) => self.next(separator),
            None => self.before(separator).next_back().map(found),
        };
        let Some(leaf) = self.leaves.get(separator) else { return };
        let Some((other, _)) = other.filter(|(_, other)| leaf.fits(other)) else {
            if leaf.entries().is_empty() {
                self.leaves = OrdMap::new();
            }
            return;
        };
        let (before, after) =
            if other < separator { (other.clone(), separator.clone()) } else { (separator.clone(), other.clone()) };
        let (Some(first), Some(second)) = (self.leaves.remove(&before), self.leaves.remove(&after)) else { return };
        let mut merged = Arc::unwrap_or_clone(first);
        merged.append(Arc::unwrap_or_clone(second));
        self.leaves.insert(Separator { low: before.low, end: after.end }, Arc::new(merged));
    }
}

/// The state of a leaf after writes to it.
enum Outcome {
    Fits,
    /// The leaf was moved out of the tree, to be split.
    Overfull(Separator, Arc<Leaf>, Split),
    Underfull(Separator),
}

/// Applies the writes in `run`, all within the separator, and empties it.
fn write_leaf(separator: &Separator, place: &mut Arc<Leaf>, run: &mut Vec<Write>, extent: &mut Extent) -> Outcome {
    let deletes_nothing = |(key, value): &Write| value.is_none() && place.get(&Probe::from(key)).is_none();
    if run.iter().all(deletes_nothing) {
        // Avoids copying the leaf for a delete that changes nothing.
        run.clear();
        return Outcome::Fits;
    }
    let before = place.entries().len();
    let is_appended = place.entries().last().map(|(last, _)| last) < run.first().map(|(first, _)| first);
    let leaf = Arc::make_mut(place);
    leaf.write(run, extent);
    if leaf.is_overfull() {
        let split = if is_appended { Split::Full } else { Split::Even };
        Outcome::Overfull(separator.clone(), mem::take(place), split)
    } else if leaf.entries().is_empty() || leaf.entries().len() < before && leaf.is_underfull() {
        Outcome::Underfull(separator.clone())
    } else {
        Outcome::Fits
    }
}

#[cfg(test)]
mod tests;
