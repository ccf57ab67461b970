use std::{ops::ControlFlow, sync::Arc};

use super::{
    MemoryCursor, MemoryPoints, cursor,
    root::{Held, Root},
    tree::estimate,
};
use crate::{Bounds, Estimate, Keyspace, Result, View};

/// One commit of a [`MemoryStore`](super::MemoryStore). While it lives, so does every value it holds.
#[derive(Clone)]
pub struct MemorySnapshot {
    root: Arc<Root>,
}

impl MemorySnapshot {
    pub(super) fn new(root: Arc<Root>) -> Self {
        Self { root }
    }

    pub(super) fn root(&self) -> &Root {
        &self.root
    }
}

impl View for MemorySnapshot {
    type Cursor = MemoryCursor;
    type Points = MemoryPoints;

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<MemoryCursor> {
        Ok(MemoryCursor::open(Held::new(&self.root, keyspace), bounds))
    }

    fn points(&self, keyspace: Keyspace) -> Result<MemoryPoints> {
        Ok(MemoryPoints::open(Held::new(&self.root, keyspace)))
    }

    fn get<R>(&self, keyspace: Keyspace, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.root.tree(keyspace).and_then(|tree| tree.get(key)).map(|value| see(value)))
    }

    fn each<B>(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        see: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        Ok(cursor::each(self.root.tree(keyspace), bounds, see))
    }

    fn estimate(&self, keyspace: Keyspace, bounds: Bounds<'_>, cap: u64) -> Result<Estimate> {
        Ok(estimate(self.root.tree(keyspace), bounds, cap))
    }

    fn count(&self, keyspace: Keyspace, bounds: Bounds<'_>, _: impl FnMut() -> bool) -> Result<Option<u64>> {
        Ok(Some(self.root.tree(keyspace).map_or(0, |tree| tree.count(bounds, u64::MAX))))
    }

    fn bytes(&self, keyspace: Keyspace) -> Result<u64> {
        Ok(self.root.tree(keyspace).map_or(0, |tree| tree.extent().bytes))
    }
}
