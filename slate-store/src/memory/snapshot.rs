use std::{ops::ControlFlow, sync::Arc};

use super::{
    MemoryCursor, MemoryPointReader, cursor,
    root::{Held, Root},
};
use crate::{Bounds, Keyspace, Result, Version, View};

/// A snapshot of a [`MemoryStore`](super::MemoryStore). All its values stay in memory while it is open.
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
    type PointReader = MemoryPointReader;

    fn version(&self) -> Version {
        Version(self.root.version)
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<MemoryCursor> {
        Ok(MemoryCursor::open(Held::new(&self.root, keyspace), bounds))
    }

    fn point_reader(&self) -> Result<MemoryPointReader> {
        Ok(MemoryPointReader::open(Arc::clone(&self.root)))
    }

    fn get<R>(&self, keyspace: Keyspace, key: &[u8], visitor: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.root.tree(keyspace).and_then(|tree| tree.get(key)).map(|value| visitor(value)))
    }

    fn scan<B>(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        visitor: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        Ok(cursor::scan(self.root.tree(keyspace), bounds, visitor))
    }

    fn count(&self, keyspace: Keyspace, bounds: Bounds<'_>, _: impl FnMut(u64) -> bool) -> Result<Option<u64>> {
        Ok(Some(self.root.tree(keyspace).map_or(0, |tree| tree.count(bounds, u64::MAX))))
    }

    fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        (read(), Some(0))
    }
}
