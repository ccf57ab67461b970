use std::{ops::ControlFlow, path::Path, sync::Arc, time::Duration};

use super::{
    cache::PointCache, reads::Found, snapshot::CachedSnapshot, stamps::WrittenKeys, transaction::CachedTransaction,
};
use crate::{
    BackupProgress, CacheReads, Capabilities, Checked, Keyspace, OldestSnapshot, Result, Size, SizeDetail, Store,
    Version,
};

/// A store with a point cache in front of it.
///
/// Caches nothing if other processes write to the store ([`Capabilities::exclusive`] is false).
pub struct Cached<S> {
    inner: S,
    cache: Arc<PointCache>,
}

impl<S: Store> Cached<S> {
    /// Caches values of `inner` in about `bytes` of memory. Every write must go through the returned store.
    pub fn new(inner: S, bytes: usize) -> Self {
        let bytes = if inner.capabilities().exclusive { bytes } else { 0 };
        Self { inner, cache: Arc::new(PointCache::new(bytes)) }
    }
}

impl<S: Store> Store for Cached<S> {
    type Snapshot = CachedSnapshot<S::Snapshot>;
    type Transaction = CachedTransaction<S::Transaction>;

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn snapshot(&self) -> Result<Self::Snapshot> {
        Ok(CachedSnapshot::new(self.inner.snapshot()?, &self.cache))
    }

    fn try_snapshot(&self) -> Option<Self::Snapshot> {
        Some(CachedSnapshot::new(self.inner.try_snapshot()?, &self.cache))
    }

    fn try_get<R>(
        &self,
        keyspace: Keyspace,
        key: &[u8],
        visitor: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<Option<R>>> {
        if !self.cache.is_enabled() {
            return self.inner.try_get(keyspace, key, visitor);
        }
        let hash = self.cache.hash(keyspace, key);
        if let Some(value) = self.cache.find(keyspace, key, hash, Version::MAX) {
            self.cache.count(hash, Found::InCache);
            return Ok(Some(Some(visitor(value.bytes()))));
        }
        let read = self.inner.try_get(keyspace, key, visitor);
        if matches!(read, Ok(Some(_))) {
            // Counts only a known answer: otherwise a snapshot reads the key again, and counts it.
            self.cache.count(hash, Found::InStore);
        }
        read
    }

    fn begin(&self, wait: Duration) -> Result<Self::Transaction> {
        Ok(CachedTransaction::new(self.inner.begin(wait)?, &self.cache))
    }

    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<Version> {
        self.cache.commit(WrittenKeys::All, |_| self.inner.drop_keyspace(keyspace, wait))
    }

    fn flush(&self) -> Result<()> {
        self.inner.flush()
    }

    fn backup(&self, to: &Path) -> Result<()> {
        self.inner.backup(to)
    }

    fn backup_while(&self, to: &Path, progress: BackupProgress<'_>) -> Result<ControlFlow<()>> {
        self.inner.backup_while(to, progress)
    }

    fn compact(&self, wait: Duration) -> Result<()> {
        self.inner.compact(wait)
    }

    fn compact_while(&self, wait: Duration, progress: BackupProgress<'_>) -> Result<ControlFlow<()>> {
        self.inner.compact_while(wait, progress)
    }

    fn collect_garbage(&self, keep: Duration) -> Result<()> {
        self.inner.collect_garbage(keep)
    }

    fn check(&self, visitor: &mut dyn FnMut(Checked) -> ControlFlow<()>) -> Result<()> {
        self.inner.check(visitor)
    }

    fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        self.inner.oldest_snapshot()
    }

    fn cache_reads(&self) -> CacheReads {
        CacheReads { file_bytes: self.inner.cache_reads().file_bytes, ..self.cache.reads() }
    }

    fn size(&self, detail: SizeDetail) -> Result<Size> {
        let size = self.inner.size(detail)?;
        Ok(Size { in_memory: size.in_memory.map(|bytes| bytes.saturating_add(self.cache.bytes())), ..size })
    }
}
