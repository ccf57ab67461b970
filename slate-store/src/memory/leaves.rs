use std::sync::Arc;

use im::{ordmap::RangedIter, shared_ptr::DefaultSharedPtr};

use super::{
    branch::{Branch, Place},
    fence::Fence,
    key::Key,
    leaf::Leaf,
    tree::Tree,
};

pub(super) type Branches<'t> = RangedIter<'t, Fence, Arc<Branch>, DefaultSharedPtr>;

/// Leaves in their order, to be gone through one way.
#[derive(Default)]
pub(super) struct Leaves<'t> {
    /// Those of the branch at hand.
    row: &'t [Place],
    beyond: Beyond<'t>,
}

/// The branches that come after the one at hand.
#[derive(Default)]
enum Beyond<'t> {
    #[default]
    Nothing,
    /// Those from this key on. They are not looked for before they are needed: most walks are short.
    From(&'t Tree, &'t Key),
    Branches(Branches<'t>),
}

impl<'t> Leaves<'t> {
    /// Those of a part of a branch, then those of the branches after it.
    pub(super) fn up(tree: &'t Tree, row: &'t [Place], fence: &'t Fence) -> Self {
        let beyond = fence.end.as_ref().map_or(Beyond::Nothing, |end| Beyond::From(tree, end));
        Self { row, beyond }
    }

    /// Those of a part of a branch, then those of the branches before it.
    pub(super) fn down(row: &'t [Place], before: Branches<'t>) -> Self {
        Self { row, beyond: Beyond::Branches(before) }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<&'t Leaf> {
        loop {
            if let Some(((_, leaf), row)) = self.row.split_first() {
                self.row = row;
                return Some(leaf);
            }
            self.row = self.branches()?.next()?.1.leaves();
        }
    }

    #[inline]
    pub(super) fn next_back(&mut self) -> Option<&'t Leaf> {
        loop {
            if let Some(((_, leaf), row)) = self.row.split_last() {
                self.row = row;
                return Some(leaf);
            }
            self.row = self.branches()?.next_back()?.1.leaves();
        }
    }

    fn branches(&mut self) -> Option<&mut Branches<'t>> {
        if let Beyond::From(tree, low) = self.beyond {
            self.beyond = Beyond::Branches(tree.branches_from(low));
        }
        match &mut self.beyond {
            Beyond::Branches(branches) => Some(branches),
            Beyond::Nothing | Beyond::From(..) => None,
        }
    }

    /// The next one, if it is of the branch at hand.
    #[inline]
    pub(super) fn peek(&self) -> Option<&'t Leaf> {
        self.row.first().map(|(_, leaf)| &**leaf)
    }

    /// The next one backwards, if it is of the branch at hand.
    #[inline]
    pub(super) fn peek_back(&self) -> Option<&'t Leaf> {
        self.row.last().map(|(_, leaf)| &**leaf)
    }
}
