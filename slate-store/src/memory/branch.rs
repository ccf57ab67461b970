use std::{sync::Arc, vec};

use super::{
    block::{self, Fill},
    fence::Fence,
    key::{Key, Sought},
    leaf::{Extent, Leaf, Write},
};

/// The most leaves of a branch.
const MOST: usize = if cfg!(test) { 8 } else { 64 };

/// With so few leaves it is to be joined with one beside it, if the two of them have no more than [`JOINED`].
const FEW: usize = MOST / 4;

/// The most leaves that two branches are joined to: not so many that the next puts part them again.
const JOINED: usize = MOST / 4 * 3;

/// A leaf, and the key from which on it is asked for keys. The first leaf of a branch is asked for those below it, too.
pub(super) type Place = (Key, Arc<Leaf>);

/// Leaves that lie beside each other: the entries within a fence. None of the leaves is empty.
#[derive(Clone, Default)]
pub(super) struct Branch {
    leaves: Vec<Place>,
    /// How many entries they have.
    entries: usize,
}

impl Branch {
    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries
    }

    pub(super) fn leaves(&self) -> &[Place] {
        &self.leaves
    }

    pub(super) fn is_small(&self) -> bool {
        self.leaves.len() <= FEW
    }

    pub(super) fn is_large(&self) -> bool {
        self.leaves.len() > MOST
    }

    pub(super) fn fits(&self, other: &Self) -> bool {
        self.leaves.is_empty() || self.leaves.len() + other.leaves.len() <= JOINED
    }

    /// Where the leaf stands that is asked for a key. Nothing is compared with the first: what is below all others is its own.
    #[inline]
    pub(super) fn find(&self, key: &Sought<'_>) -> usize {
        let others = self.leaves.get(1..).unwrap_or_default();
        block::find(others, key).map_or_else(|at| at, |at| at + 1)
    }

    #[inline]
    pub(super) fn leaf(&self, key: &Sought<'_>) -> Option<&Leaf> {
        self.leaves.get(self.find(key)).map(|(_, leaf)| &**leaf)
    }

    /// How many of its entries are below the key.
    pub(super) fn rank(&self, key: &Sought<'_>) -> usize {
        let at = self.find(key);
        let before = self.leaves.get(..at).unwrap_or_default();
        let within = self.leaves.get(at).map_or(0, |(_, leaf)| leaf.find(key).unwrap_or_else(|at| at));
        before.iter().map(|(_, leaf)| leaf.len()).sum::<usize>() + within
    }

    /// Makes a write, and those of the `rest`, each to a key above the one before, that lie within the fence. It may have more
    /// leaves then than it may have, or none; how to share them out is told.
    pub(super) fn write(
        &mut self,
        first: Write,
        rest: &mut vec::IntoIter<Write>,
        fence: &Fence,
        extent: &mut Extent,
    ) -> Fill {
        let mut shared_out = Fill::Evenly;
        let mut next = Some(first);
        while let Some((key, value)) = next.take() {
            if self.leaves.is_empty() {
                self.leaves.push((key.clone(), Arc::default()));
            }
            let sought = Sought::from(&key);
            let at = self.find(&sought);
            let end = rest.as_slice().first().and_then(|_| self.leaves.get(at + 1)).map(|(low, _)| low.clone());
            let is_last = at + 1 == self.leaves.len();
            let Some((_, leaf)) = self.leaves.get_mut(at) else { return shared_out };
            let is_within = |key: &Key| match &end {
                Some(end) => key < end,
                None => is_last && fence.is_above(&Sought::from(key)),
            };
            let len = leaf.len();
            let place = leaf.find(&sought);
            match rest.as_slice().iter().take_while(|(key, _)| is_within(key)).count() {
                // Nothing is copied to delete what is not there.
                0 if value.is_none() && place.is_err() => {}
                0 => Arc::make_mut(leaf).write_at(place, key, value, extent),
                more => Arc::make_mut(leaf).write((key, value), rest.take(more), extent),
            }
            self.entries = self.entries + leaf.len() - len;
            if leaf.len() > leaf.most() {
                let fill = if place == Err(len) { Fill::All } else { Fill::Evenly };
                let more = Arc::make_mut(leaf).share_out(fill).map(|(low, leaf)| (low, Arc::new(leaf)));
                self.leaves.splice(at + 1..at + 1, more);
                shared_out = if is_last { fill } else { Fill::Evenly };
            } else if leaf.len() < len && leaf.is_small() || leaf.len() == 0 {
                self.join_leaf(at);
            }
            if rest.as_slice().first().is_some_and(|(key, _)| fence.is_above(&Sought::from(key))) {
                next = rest.next();
            }
        }
        shared_out
    }

    /// Joins a leaf that has few entries left with one beside it, if they fit. One that has none goes in any case.
    fn join_leaf(&mut self, at: usize) {
        let len = |at: usize| self.leaves.get(at).map(|(_, leaf)| (leaf.len(), leaf.joined()));
        let Some((own, joined)) = len(at) else { return };
        let fits = |at: usize| len(at).is_some_and(|(len, _)| own + len <= joined);
        let (at, next) = if own == 0 {
            self.leaves.remove(at);
            return;
        } else if fits(at + 1) {
            (at, at + 1)
        } else if let Some(before) = at.checked_sub(1).filter(|before| fits(*before)) {
            (before, at)
        } else {
            return;
        };
        let (_, next) = self.leaves.remove(next);
        if let Some((_, leaf)) = self.leaves.get_mut(at) {
            Arc::make_mut(leaf).join(Arc::unwrap_or_clone(next));
        }
    }

    /// Gives up what is more than a branch may have: branches to come after this one, each with its first key.
    pub(super) fn share_out(&mut self, fill: Fill) -> impl Iterator<Item = (Key, Self)> + use<> {
        let parts = block::share_out(&mut self.leaves, MOST, fill);
        self.entries = entries(&self.leaves);
        parts.into_iter().map(|(first, leaves)| (first, Self { entries: entries(&leaves), leaves }))
    }

    /// Takes over the leaves of the branch that comes next, and begins with `low`.
    pub(super) fn join(&mut self, low: Key, next: Self) {
        let joined = self.leaves.len();
        self.leaves.extend(next.leaves);
        // It is no longer the first of a branch, which is asked for keys below it.
        if let Some((first, _)) = self.leaves.get_mut(joined) {
            *first = low;
        }
        self.entries += next.entries;
    }
}

fn entries(leaves: &[Place]) -> usize {
    leaves.iter().map(|(_, leaf)| leaf.len()).sum()
}
