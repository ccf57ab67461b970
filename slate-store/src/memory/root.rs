use im::OrdMap;

use super::tree::Tree;
use crate::Keyspace;

/// One commit: every keyspace, and the commit's place in the order of all.
#[derive(Clone, Default)]
pub(super) struct Root {
    pub(super) keyspaces: OrdMap<Keyspace, Tree>,
    pub(super) sequence: u64,
}

impl Root {
    pub(super) fn tree(&self, keyspace: Keyspace) -> Option<&Tree> {
        self.keyspaces.get(&keyspace)
    }

    pub(super) fn tree_mut(&mut self, keyspace: Keyspace) -> &mut Tree {
        self.keyspaces.entry(keyspace).or_default()
    }
}
