use std::sync::Arc;

use self_cell::self_cell;

use super::{key::Probe, leaf::Leaf, root::Root, separator::Separator, value::Value};
use crate::{Keyspace, PointReader, Result, prefetch::prefetch};

/// Prefetch distance: a value is prefetched when the one this many places before it is read.
const PREFETCH_DISTANCE: usize = 8;

/// The values of the last load.
#[derive(Default)]
struct Loaded<'t>(Vec<Option<&'t Value>>);

impl<'t> Loaded<'t> {
    fn get(&self, index: usize) -> Option<&'t Value> {
        self.prefetch(index + PREFETCH_DISTANCE);
        self.0.get(index).copied().flatten()
    }

    fn prefetch(&self, index: usize) {
        if let Some(Some(value)) = self.0.get(index) {
            prefetch(value);
        }
    }
}

self_cell!(
    struct Cell {
        owner: Arc<Root>,
        #[covariant]
        dependent: Loaded,
    }
);

/// A point reader that holds the commit that it reads.
pub struct MemoryPointReader(Cell);

impl MemoryPointReader {
    pub(super) fn open(root: Arc<Root>) -> Self {
        Self(Cell::new(root, |_| Loaded::default()))
    }
}

impl PointReader for MemoryPointReader {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        self.0.with_dependent_mut(|root, loaded| load(root, keys, loaded));
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.0.borrow_dependent().get(index).map(|value| &**value)
    }

    fn loaded_shared(&self, index: usize) -> Option<Arc<[u8]>> {
        self.0.borrow_dependent().get(index).map(Value::shared)
    }
}

fn load<'t>(root: &'t Root, keys: &[(Keyspace, &[u8])], loaded: &mut Loaded<'t>) {
    loaded.0.clear();
    loaded.0.reserve(keys.len());
    for run in keys.chunk_by(|(a, _), (b, _)| a == b) {
        let Some((keyspace, _)) = run.first() else { continue };
        let tree = root.tree(*keyspace);
        // The leaf of the previous key is tried first, because ascending keys are often in the same one.
        let mut last: Option<(&Separator, &Leaf)> = None;
        let mut at = 0;
        loaded.0.extend(run.iter().map(|(_, key)| {
            let key = Probe::new(key);
            if !last.is_some_and(|(separator, _)| separator.contains(&key)) {
                last = tree.and_then(|tree| tree.leaf(&key));
                at = 0;
            }
            let (_, leaf) = last?;
            let found = leaf.find_from(at, &key);
            at = found.unwrap_or_else(|above| above);
            leaf.entries().get(found.ok()?).map(|(_, value)| value)
        }));
    }
    (0..PREFETCH_DISTANCE).for_each(|index| loaded.prefetch(index));
}
