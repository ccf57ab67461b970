use std::sync::Arc;

use equivalent::Comparable;
use self_cell::self_cell;

use super::{
    block,
    key::Sought,
    leaf::{Entry, Leaf, Write},
    noted,
    root::Held,
    tree::Tree,
    value::Value,
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

/// A reader of single keys that holds the commit it reads.
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

/// A reader of single keys of a borrowed tree, and of writes in order that lie over it.
pub struct BorrowedPoints<'t> {
    tree: Option<&'t Tree>,
    noted: &'t [Write],
    loaded: Loaded<'t>,
}

impl<'t> BorrowedPoints<'t> {
    pub(super) fn new(tree: Option<&'t Tree>, noted: &'t [Write]) -> Self {
        Self { tree, noted, loaded: Vec::new() }
    }
}

impl Points for BorrowedPoints<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let found = noted::find(self.noted, key).unwrap_or_else(|| self.tree.and_then(|tree| tree.get(key)));
        Ok(found.map(|value| &**value))
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        match self.tree {
            Some(tree) => load(tree, keys, &mut self.loaded),
            None => {
                self.loaded.clear();
                self.loaded.resize(keys.len(), None);
            }
        }
        if !self.noted.is_empty() {
            for (loaded, key) in self.loaded.iter_mut().zip(keys) {
                *loaded = noted::find(self.noted, key).unwrap_or(*loaded);
            }
        }
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.loaded.get(index).copied().flatten().map(|value| &**value)
    }

    fn loaded_shared(&self, index: usize) -> Option<Arc<[u8]>> {
        self.loaded.get(index).copied().flatten().map(Value::shared)
    }
}

fn load<'t>(tree: &'t Tree, keys: &[&[u8]], loaded: &mut Loaded<'t>) {
    loaded.clear();
    // One needs no order.
    if let [only] = keys {
        return loaded.push(tree.get(only));
    }
    // Keys that are new are often above all others.
    let greatest = tree.greatest();
    // The entries from the one last found to the end of its leaf: a key that comes next in order is mostly among the first.
    let mut rest: &[Entry] = &[];
    loaded.extend(keys.iter().map(|key| {
        let key = Sought::new(key);
        if greatest.is_some_and(|greatest| key.compare(greatest).is_gt()) {
            return None;
        }
        if !rest.last().is_some_and(|(last, _)| key.compare(last).is_le())
            || rest.first().is_some_and(|(first, _)| key.compare(first).is_lt())
        {
            rest = tree.leaf(&key).map_or(&[], Leaf::entries);
        }
        let at = block::find_near(rest, &key);
        rest = rest.get(at.unwrap_or_else(|at| at)..).unwrap_or_default();
        rest.first().filter(|_| at.is_ok()).map(|(_, value)| value)
    }));
}
