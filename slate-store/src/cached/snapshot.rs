use std::{ops::ControlFlow, sync::Arc};

use super::{cache::PointCache, reader::CachedPointReader};
use crate::{Bounds, Edge, Keyspace, Result, Snapshot, Version, View};

/// A snapshot of a [`Cached`](super::Cached) store. Its point readers use the cache.
#[derive(Clone)]
pub struct CachedSnapshot<V> {
    inner: V,
    cache: Arc<PointCache>,
}

impl<V> CachedSnapshot<V> {
    pub(super) fn new(inner: V, cache: &Arc<PointCache>) -> Self {
        Self { inner, cache: Arc::clone(cache) }
    }
}

impl<V: Snapshot> View for CachedSnapshot<V> {
    type Cursor = V::Cursor;
    type PointReader = CachedPointReader<V::PointReader>;

    fn version(&self) -> Version {
        self.inner.version()
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<V::Cursor> {
        self.inner.cursor(keyspace, bounds)
    }

    fn cursors(
        &self,
        keyspace: Keyspace,
        ranges: &[Bounds<'_>],
        edge: Edge<'_>,
        bytes: usize,
    ) -> Result<Option<Vec<V::Cursor>>> {
        self.inner.cursors(keyspace, ranges, edge, bytes)
    }

    fn point_reader(&self) -> Result<Self::PointReader> {
        Ok(CachedPointReader::new(self.inner.point_reader()?, &self.cache, self.version()))
    }

    fn get<R>(&self, keyspace: Keyspace, key: &[u8], visitor: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        if !self.cache.is_enabled() {
            return self.inner.get(keyspace, key, visitor);
        }
        let hash = self.cache.hash(keyspace, key);
        if let Some(value) = self.cache.get(keyspace, key, hash, self.version()) {
            return Ok(Some(visitor(value.bytes())));
        }
        self.inner.get(keyspace, key, |value| {
            self.cache.insert(keyspace, key, hash, self.version(), value);
            visitor(value)
        })
    }

    fn scan<B>(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        visitor: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        self.inner.scan(keyspace, bounds, visitor)
    }

    fn count(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        should_continue: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>> {
        self.inner.count(keyspace, bounds, should_continue)
    }

    fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        self.inner.with_bytes_read(read)
    }
}
