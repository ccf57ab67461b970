use std::{cmp::Ordering, ops::Bound, sync::Arc};

use self_cell::self_cell;

use super::{tree::Tree, value::Value};
use crate::{Points, Result};

type Loaded<'t> = Vec<Option<&'t Value>>;

self_cell!(
    struct Cell {
        owner: Tree,
        #[covariant]
        dependent: Loaded,
    }
);

/// A reader of single keys that owns what it reads.
pub struct MemoryPoints(Cell);

impl MemoryPoints {
    pub(super) fn open(tree: Tree) -> Self {
        Self(Cell::new(tree, |_| Vec::new()))
    }
}

impl Points for MemoryPoints {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        Ok(self.0.borrow_owner().get(key).map(|value| &**value))
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.0.with_dependent_mut(|tree, loaded| load(tree, keys, loaded));
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.0.borrow_dependent().get(index).copied().flatten().map(|value| &**value)
    }

    fn loaded_shared(&self, index: usize) -> Option<Arc<[u8]>> {
        self.0.borrow_dependent().get(index).copied().flatten().map(Value::shared)
    }
}

/// A reader of single keys of a borrowed tree.
pub struct BorrowedPoints<'t> {
    tree: Option<&'t Tree>,
    loaded: Loaded<'t>,
}

impl<'t> BorrowedPoints<'t> {
    pub(super) fn new(tree: Option<&'t Tree>) -> Self {
        Self { tree, loaded: Vec::new() }
    }
}

impl Points for BorrowedPoints<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        Ok(self.tree.and_then(|tree| tree.get(key)).map(|value| &**value))
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        match self.tree {
            Some(tree) => load(tree, keys, &mut self.loaded),
            None => self.loaded.clear(),
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

/// How many entries a load walks over, for each key that it looks for, before it looks the keys up one by one.
const STEPS_PER_KEY: usize = 6;

/// What a walk may cost before it has found anything.
const FIRST_STEPS: usize = 32;

fn load<'t>(tree: &'t Tree, keys: &[&[u8]], loaded: &mut Loaded<'t>) {
    loaded.clear();
    let walked = if keys.len() > FIRST_STEPS { walk(tree, keys, loaded) } else { 0 };
    let rest = keys.get(walked..).unwrap_or_default();
    loaded.extend(rest.iter().map(|key| tree.get(key)));
}

/// Goes along the tree from the first key, as long as the next one is near: keys that come in order and lie close to each
/// other are found for less than a descent each. How many keys it has dealt with.
fn walk<'t>(tree: &'t Tree, keys: &[&[u8]], loaded: &mut Loaded<'t>) -> usize {
    let Some(first) = keys.first() else { return 0 };
    let mut entries = tree.range(Bound::Included(*first), Bound::Unbounded);
    let mut entry = entries.next();
    let mut steps = FIRST_STEPS;
    let mut before: Option<&[u8]> = None;
    for (at, key) in keys.iter().enumerate() {
        if before.is_some_and(|before| *key < before) {
            return at;
        }
        before = Some(key);
        steps += STEPS_PER_KEY;
        loop {
            match entry.map(|(stands, value)| (stands.as_slice().cmp(key), value)) {
                Some((Ordering::Less, _)) if steps == 0 => return at,
                Some((Ordering::Less, _)) => {
                    steps -= 1;
                    entry = entries.next();
                }
                Some((Ordering::Equal, value)) => {
                    loaded.push(Some(value));
                    break;
                }
                Some((Ordering::Greater, _)) | None => {
                    loaded.push(None);
                    break;
                }
            }
        }
    }
    keys.len()
}
