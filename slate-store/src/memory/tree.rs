use std::{mem, ops::Bound, sync::Arc, vec};

use im::OrdMap;

use super::{
    block::Fill,
    branch::Branch,
    fence::{Around, Begins, Fence},
    key::{Key, Sought},
    leaf::{Entry, Extent, Leaf, Write, size},
    leaves::{Branches, Leaves},
    value::Value,
};
use crate::{Bounds, Estimate};

/// One keyspace: a persistent map of branches by their fences. Versions share the branches, and the branches' leaves, that
/// did not change between them. No branch is empty.
#[derive(Clone, Default)]
pub(super) struct Tree {
    branches: OrdMap<Fence, Arc<Branch>>,
    extent: Extent,
}

impl Tree {
    /// Puts `value`, or deletes the key where there is none.
    pub(super) fn write(&mut self, key: Key, value: Option<Value>) {
        self.write_next((key, value), &mut Vec::new().into_iter());
    }

    /// Makes writes, each to a key above the one before.
    pub(super) fn write_sorted(&mut self, writes: Vec<Write>) {
        debug_assert!(writes.is_sorted_by(|(a, _), (b, _)| a < b), "each key is above the one before");
        let mut writes = writes.into_iter();
        while let Some(first) = writes.next() {
            self.write_next(first, &mut writes);
        }
    }

    /// Makes a write, and those of the `rest` that are to the same branch.
    fn write_next(&mut self, first: Write, rest: &mut vec::IntoIter<Write>) {
        let key = Sought::from(&first.0);
        let written = if let Some((fence, branch)) = self.branches.get_key_value_mut(&Around(&key)) {
            write_branch(fence, branch, &mut self.extent, first, rest)
        } else if let Some(low) = self.led_astray(&key).map(|(fence, _)| fence.low.clone())
            && let Some((fence, branch)) = self.branches.get_key_value_mut(&Begins(&Sought::from(&low)))
        {
            write_branch(fence, branch, &mut self.extent, first, rest)
        } else {
            let (fence, mut branch) = (Fence::all(), Arc::default());
            let written = write_branch(&fence, &mut branch, &mut self.extent, first, rest);
            if branch.len() > 0 {
                self.branches.insert(fence, branch);
            }
            written
        };
        match written {
            Written::Within => {}
            Written::Over(fence, branch, fill) => self.share_out(fence, branch, fill),
            Written::Under(fence) => self.join_neighbour(&fence),
        }
    }

    /// Puts a branch into its place, in as many parts as its leaves need.
    fn share_out(&mut self, fence: Fence, branch: Arc<Branch>, fill: Fill) {
        let mut branch = Arc::unwrap_or_clone(branch);
        // From the first on, each with the end that it will have: what the map copies in between is true then.
        let Fence { mut low, end } = fence;
        for (next, after) in branch.share_out(fill) {
            let fence = Fence { low: mem::replace(&mut low, next.clone()), end: Some(next) };
            self.branches.insert(fence, Arc::new(mem::replace(&mut branch, after)));
        }
        self.branches.insert(Fence { low, end }, Arc::new(branch));
    }

    /// Joins a branch that has few leaves left with one beside it, if they fit. One that has none goes in any case.
    fn join_neighbour(&mut self, fence: &Fence) {
        let key = Sought::from(&fence.low);
        let Some(branch) = self.branches.get(&Begins(&key)) else { return };
        let after = fence.end.as_ref().and_then(|end| self.branches.get_key_value(&Begins(&Sought::from(end))));
        if let Some((after, _)) = after.filter(|(_, after)| branch.fits(after)) {
            let after = after.clone();
            self.join(fence.low.clone(), after);
            return;
        }
        let before =
            self.branches.range::<_, Begins<'_>>((Bound::Unbounded, Bound::Excluded(&Begins(&key)))).next_back();
        match before {
            Some((before, other)) if branch.fits(other) => {
                let before = before.low.clone();
                self.join(before, fence.clone());
            }
            None if branch.len() == 0 => self.branches = OrdMap::new(),
            _ => {}
        }
    }

    /// Joins the branch that begins with `low` with the next one.
    fn join(&mut self, low: Key, next: Fence) {
        let Some(after) = self.branches.remove(&Begins(&Sought::from(&next.low))) else { return };
        let Some(before) = self.branches.remove(&Begins(&Sought::from(&low))) else { return };
        let joined = if before.len() == 0 {
            after
        } else if after.len() == 0 {
            before
        } else {
            let mut joined = Arc::unwrap_or_clone(before);
            joined.join(next.low, Arc::unwrap_or_clone(after));
            Arc::new(joined)
        };
        self.branches.insert(Fence { low, end: next.end }, joined);
    }

    /// The branch around the key; `None` where there are none.
    #[inline]
    fn around(&self, key: &Sought<'_>) -> Option<(&Fence, &Branch)> {
        let found = self.branches.get_key_value(&Around(key)).or_else(|| self.led_astray(key));
        found.map(|(fence, branch)| (fence, &**branch))
    }

    /// The same where the map does not find it. The map leads by copies of fences, some of which it keeps when the branch is
    /// long parted: such a one is around keys that now lie further on. To ask for a range costs an allocation, and compares
    /// nothing but where fences begin, which never changes.
    #[cold]
    fn led_astray(&self, key: &Sought<'_>) -> Option<(&Fence, &Arc<Branch>)> {
        self.branches.range::<_, Begins<'_>>((Bound::Unbounded, Bound::Included(&Begins(key)))).next_back()
    }

    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Option<&Value> {
        let key = Sought::new(key);
        self.leaf(&key).and_then(|leaf| leaf.get(&key))
    }

    /// The greatest key.
    pub(super) fn greatest(&self) -> Option<&Key> {
        let (_, branch) = self.branches.get_max()?;
        branch.leaves().last().and_then(|(_, leaf)| leaf.entries().last()).map(|(key, _)| key)
    }

    /// The leaf that has the key if it is there; `None` where there are no leaves.
    #[inline]
    pub(super) fn leaf(&self, key: &Sought<'_>) -> Option<&Leaf> {
        self.around(key).and_then(|(_, branch)| branch.leaf(key))
    }

    /// The leaves in which a walk up from the bound begins, and all after it.
    pub(super) fn leaves_from(&self, from: Bound<&[u8]>) -> Leaves<'_> {
        let (found, at) = match from {
            Bound::Included(key) | Bound::Excluded(key) => {
                let key = Sought::new(key);
                let found = self.around(&key);
                (found, found.map_or(0, |(_, branch)| branch.find(&key)))
            }
            Bound::Unbounded => (self.branches.get_min().map(|(fence, branch)| (fence, &**branch)), 0),
        };
        found.map_or_else(Leaves::default, |(fence, branch)| {
            Leaves::up(self, branch.leaves().get(at..).unwrap_or_default(), fence)
        })
    }

    /// The leaves in which a walk down from the bound begins, and all before it, to be gone through backwards.
    pub(super) fn leaves_to(&self, from: Bound<&[u8]>) -> Leaves<'_> {
        let from = from.map(Sought::new);
        let low = from.as_ref().map(Begins);
        let mut branches = self.branches.range::<_, Begins<'_>>((Bound::Unbounded, low.as_ref()));
        let Some((_, branch)) = branches.next_back() else { return Leaves::default() };
        let row = match &from {
            Bound::Included(key) | Bound::Excluded(key) => branch.leaves().get(..=branch.find(key)),
            Bound::Unbounded => Some(branch.leaves()),
        };
        Leaves::down(row.unwrap_or_default(), branches)
    }

    /// The branches from the one on that begins with this key.
    pub(super) fn branches_from(&self, low: &Key) -> Branches<'_> {
        let low = Sought::from(low);
        self.branches.range::<_, Begins<'_>>((Bound::Included(&Begins(&low)), Bound::Unbounded))
    }

    /// All entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.branches.values().flat_map(|branch| branch.leaves()).flat_map(|(_, leaf)| leaf.entries())
    }

    /// How many keys lie within bounds; more than `cap` may be told as any number above it. Costs a step for each branch.
    pub(super) fn count(&self, bounds: Bounds<'_>, cap: u64) -> u64 {
        if bounds == Bounds::ALL {
            return self.len();
        }
        if bounds.is_empty() {
            return 0;
        }
        let (start, end) = (Sought::new(bounds.start.unwrap_or_default()), bounds.end.map(Sought::new));
        let Some((mut fence, mut branch)) = self.around(&start) else { return 0 };
        let mut skipped = branch.rank(&start);
        let mut counted = 0_u64;
        let mut branches = None;
        loop {
            if let Some(end) = end.as_ref().filter(|end| fence.is_above(end)) {
                return counted + size(branch.rank(end).saturating_sub(skipped));
            }
            counted += size(branch.len().saturating_sub(mem::take(&mut skipped)));
            let Some(low) = fence.end.as_ref().filter(|_| counted <= cap) else { return counted };
            let Some(next) = branches.get_or_insert_with(|| self.branches_from(low)).next() else { return counted };
            (fence, branch) = (next.0, &**next.1);
        }
    }

    /// The bytes of all keys and values.
    pub(super) fn bytes(&self) -> u64 {
        self.extent.bytes
    }

    pub(super) fn len(&self) -> u64 {
        self.extent.entries
    }

    pub(super) fn is_empty(&self) -> bool {
        self.branches.is_empty()
    }

    /// Whether nothing was written between the two, one of which came of the other. Empty trees look alike whatever
    /// happened to them, so for those the answer is that it is not known.
    pub(super) fn is_surely_unchanged(&self, other: &Self) -> bool {
        !self.is_empty() && self.branches.ptr_eq(&other.branches)
    }
}

/// What a branch has become by writes.
enum Written {
    /// One that may be.
    Within,
    /// It has too many leaves, and was taken out.
    Over(Fence, Arc<Branch>, Fill),
    /// It was left with few, or with none.
    Under(Fence),
}

/// Makes a write to a branch, and those that come next and lie within its fence.
fn write_branch(
    fence: &Fence,
    place: &mut Arc<Branch>,
    extent: &mut Extent,
    first: Write,
    rest: &mut vec::IntoIter<Write>,
) -> Written {
    let branch = Arc::make_mut(place);
    let leaves = branch.leaves().len();
    let fill = branch.write(first, rest, fence, extent);
    if branch.is_large() {
        Written::Over(fence.clone(), mem::take(place), fill)
    } else if branch.leaves().len() < leaves && branch.is_small() || branch.len() == 0 {
        Written::Under(fence.clone())
    } else {
        Written::Within
    }
}

/// How many keys lie within `bounds`, up to `cap`.
pub(super) fn estimate(tree: Option<&Tree>, bounds: Bounds<'_>, cap: u64) -> Estimate {
    Estimate::capped(tree.map_or(0, |tree| tree.count(bounds, cap)), cap)
}

#[cfg(test)]
mod tests;
