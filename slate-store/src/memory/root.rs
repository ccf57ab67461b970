use std::sync::Arc;

use im::OrdMap;

use super::tree::Tree;
use crate::Keyspace;

/// One commit: every keyspace, and the commit's place in the order of all.
#[derive(Clone, Default)]
pub(super) struct Root {
    pub(super) keyspaces: OrdMap<Keyspace, Tree>,
    pub(super) sequence: u64,
    /// Held by every root that there is: the last one, and older ones that somebody reads.
    all: Arc<()>,
}

impl Root {
    /// Whether there is no other, so that nobody shares what it holds.
    pub(super) fn is_only_one(&self) -> bool {
        Arc::strong_count(&self.all) == 1
    }

    pub(super) fn tree(&self, keyspace: Keyspace) -> Option<&Tree> {
        self.keyspaces.get(&keyspace)
    }

    pub(super) fn tree_mut(&mut self, keyspace: Keyspace) -> &mut Tree {
        self.keyspaces.entry(keyspace).or_default()
    }
}

/// A keyspace of a commit. That is held as a whole, so that it can be told whether anybody reads it.
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
