use std::sync::Arc;

use im::OrdMap;

use super::tree::Tree;
use crate::Keyspace;

/// One commit: its version and the trees of all keyspaces. The first commit has version 1, a new or restored store version 0.
#[derive(Clone, Default)]
pub(super) struct Root {
    pub(super) keyspaces: OrdMap<Keyspace, Tree>,
    pub(super) version: u64,
}

impl Root {
    pub(super) fn tree(&self, keyspace: Keyspace) -> Option<&Tree> {
        self.keyspaces.get(&keyspace)
    }

    /// Returns an upper bound of the bytes that are in memory only because this commit is still read: values and leaves that were replaced since,
    /// but not more than everything that the commit shows.
    pub(super) fn held_beside(&self, last: &Self) -> u64 {
        self.keyspaces
            .iter()
            .map(|(keyspace, tree)| tree.extent().held_beside(last.tree(*keyspace).map(Tree::extent)))
            .sum()
    }

    pub(super) fn tree_mut(&mut self, keyspace: Keyspace) -> &mut Tree {
        self.keyspaces.entry(keyspace).or_default()
    }
}

/// A keyspace of a commit. Holds the whole commit, so that the commit's reference count shows whether it is being read.
pub(super) struct Held {
    root: Arc<Root>,
    keyspace: Keyspace,
}

impl Held {
    pub(super) fn new(root: &Arc<Root>, keyspace: Keyspace) -> Self {
        Self { root: Arc::clone(root), keyspace }
    }

    pub(super) fn tree(&self) -> Option<&Tree> {
        self.root.tree(self.keyspace)
    }
}
