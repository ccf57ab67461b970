use std::sync::Arc;

use super::{cache::PointCache, stamps::WrittenKeys};
use crate::{Durability, Guard, Keyspace, Result, Transaction, Version};

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

    fn write(&mut self, keyspace: Keyspace, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        if self.cache.is_enabled() {
            entries.iter().for_each(|(key, _)| self.written.record(self.cache.hash(keyspace, key)));
        }
        self.inner.write(keyspace, entries)
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8], guard: Guard) -> Result<()> {
        self.inner.guard(keyspace, key, guard)
    }

    fn commit(self, durability: Durability) -> Result<Version> {
        let Self { inner, cache, written } = self;
        cache.commit(written, || inner.commit(durability))
    }
}
