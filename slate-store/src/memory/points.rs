use std::sync::Arc;

use self_cell::self_cell;

use super::{
    key::Probe,
    leaf::{Leaf, Write},
    root::Held,
    separator::Separator,
    tree::Tree,
    value::Value,
    write_set,
};
use crate::{Points, Result};

type Loaded<'t> = Vec<Option<&'t Value>>;

self_cell!(
    struct Cell {
        owner: Held,
        #[covariant]
        dependent: BorrowedPoints,
    }
);

/// A point reader that owns the commit it reads.
pub struct MemoryPoints(Cell);

impl MemoryPoints {
    pub(super) fn open(keyspace: Held) -> Self {
        Self(Cell::new(keyspace, |keyspace| BorrowedPoints::new(keyspace.tree(), &[])))
    }
}

impl Points for MemoryPoints {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.0.with_dependent_mut(|_, points| points.get(key))
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.0.with_dependent_mut(|_, points| points.load(keys))
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.0.borrow_dependent().loaded(index)
    }

    fn loaded_shared(&self, index: usize) -> Option<Arc<[u8]>> {
        self.0.borrow_dependent().loaded_shared(index)
    }
}

/// A point reader of a borrowed tree and of sorted uncommitted writes to it.
pub struct BorrowedPoints<'t> {
    tree: Option<&'t Tree>,
    writes: &'t [Write],
    loaded: Loaded<'t>,
}

impl<'t> BorrowedPoints<'t> {
    pub(super) fn new(tree: Option<&'t Tree>, writes: &'t [Write]) -> Self {
        Self { tree, writes, loaded: Vec::new() }
    }
}

impl Points for BorrowedPoints<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let written = write_set::find(self.writes, key);
        let found = written.unwrap_or_else(|| self.tree.and_then(|tree| tree.get(key)));
        Ok(found.map(|value| &**value))
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        // Keys that come in order are often in the same leaf.
        let mut last: Option<(&Separator, &Leaf)> = None;
        self.loaded.clear();
        self.loaded.extend(keys.iter().map(|key| {
            if let Some(written) = write_set::find(self.writes, key) {
                return written;
            }
            let key = Probe::new(key);
            if !last.is_some_and(|(separator, _)| separator.contains(&key)) {
                last = self.tree.and_then(|tree| tree.leaf(&key));
            }
            last.and_then(|(_, leaf)| leaf.get(&key))
        }));
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.loaded.get(index).copied().flatten().map(|value| &**value)
    }

    fn loaded_shared(&self, index: usize) -> Option<Arc<[u8]>> {
        self.loaded.get(index).copied().flatten().map(Value::shared)
    }
}
