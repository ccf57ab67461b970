use std::sync::Arc;

use super::{cache::PointCache, stamps::WrittenKeys};
use crate::{Bounds, Durability, Guard, Keyspace, LastStage, LastWrites, Result, Transaction, Version, Write};

/// A write transaction of a [`Cached`](super::Cached) store. It reads from the store, and its commit stamps the keys
/// that it wrote.
pub struct CachedTransaction<T> {
    inner: T,
    cache: Arc<PointCache>,
    written: WrittenKeys,
}

impl<T> CachedTransaction<T> {
    pub(super) fn new(inner: T, cache: &Arc<PointCache>) -> Self {
        Self { inner, cache: Arc::clone(cache), written: WrittenKeys::none() }
    }
}

impl<T: Transaction> Transaction for CachedTransaction<T> {
    type View<'t> = T::View<'t>;

    fn view(&self) -> T::View<'_> {
        self.inner.view()
    }

    fn write(&mut self, keyspace: Keyspace, entries: &[Write<'_>]) -> Result<()> {
        if self.cache.is_enabled() {
            entries.iter().for_each(|(key, _)| self.written.record(self.cache.hash(keyspace, key)));
        }
        self.inner.write(keyspace, entries)
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8], guard: Guard) -> Result<()> {
        self.inner.guard(keyspace, key, guard)
    }

    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        self.written = WrittenKeys::All;
        self.inner.delete_range(keyspace, bounds)
    }

    fn commit(self, durability: Durability) -> Result<Version> {
        let Self { inner, cache, written } = self;
        cache.commit(written, |_| inner.commit(durability))
    }

    fn commit_with(self, durability: Durability, last: LastStage<'_>) -> Result<Version> {
        let Self { inner, cache, written } = self;
        cache.commit(written, |pending| {
            inner.commit_with(durability, &mut |version, writes| {
                last(version, &mut Stamped { cache: &cache, pending: &mut *pending, writes })
            })
        })
    }
}

/// Marks the keys of a commit's last stage as pending before they are written.
struct Stamped<'c> {
    cache: &'c PointCache,
    pending: &'c mut Vec<WrittenKeys>,
    writes: &'c mut dyn LastWrites,
}

impl LastWrites for Stamped<'_> {
    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()> {
        if self.cache.is_enabled() {
            let mut keys = WrittenKeys::none();
            writes.iter().for_each(|(key, _)| keys.record(self.cache.hash(keyspace, key)));
            self.cache.begin(keys, self.pending);
        }
        self.writes.write(keyspace, writes)
    }
}
