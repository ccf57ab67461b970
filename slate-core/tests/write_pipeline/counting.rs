//! A store that counts how often it is accessed, as a backend over a network would be.

#![allow(unreachable_pub, reason = "a test's own module")]

use std::{
    ops::ControlFlow,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use slate_store::{
    Bounds, Capabilities, Durability, Edge, Guard, Keyspace, LastStage, LastWrites, PointReader, Result, Store,
    Transaction, Version, View, memory::MemoryStore,
};

use crate::passed_on::passed_on;

/// Round trips and keys read since the last [`Counts::take`].
#[derive(Debug, Default)]
pub struct Counts {
    round_trips: AtomicU64,
    keys: AtomicU64,
    /// For each call that writes: the keyspace, and the bytes of the values.
    writes: Mutex<Vec<(Keyspace, usize)>>,
    /// Writes of a value that contains these bytes conflict.
    conflicting: Mutex<Option<&'static [u8]>>,
}

impl Counts {
    fn add(&self, keys: usize) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        self.keys.fetch_add(keys as u64, Ordering::Relaxed);
    }

    fn add_writes(&self, keyspace: Keyspace, writes: &[slate_store::Write<'_>]) {
        let bytes = writes.iter().filter_map(|(_, value)| value.map(<[u8]>::len)).sum();
        self.writes.lock().unwrap().push((keyspace, bytes));
    }

    /// Lets writes of values that contain these bytes conflict with another transaction, as on a store that finds conflicts before the commit.
    pub fn conflict_on(&self, bytes: &'static [u8]) {
        *self.conflicting.lock().unwrap() = Some(bytes);
    }

    fn check_conflict(&self, writes: &[slate_store::Write<'_>]) -> Result<()> {
        let Some(bytes) = *self.conflicting.lock().unwrap() else { return Ok(()) };
        let conflicts = |value: &[u8]| value.windows(bytes.len()).any(|part| part == bytes);
        match writes.iter().any(|(_, value)| value.is_some_and(conflicts)) {
            true => Err(slate_store::Error::Conflict(Box::default())),
            false => Ok(()),
        }
    }

    /// Returns and resets the counts: round trips, keys loaded.
    pub fn take(&self) -> (u64, u64) {
        (self.round_trips.swap(0, Ordering::Relaxed), self.keys.swap(0, Ordering::Relaxed))
    }

    /// Removes and returns the calls that wrote: the keyspace, and the bytes of the values.
    pub fn take_writes(&self) -> Vec<(Keyspace, usize)> {
        std::mem::take(&mut *self.writes.lock().unwrap())
    }
}

/// The memory store with counters and configurable limits.
pub struct CountingStore {
    store: MemoryStore,
    pub capabilities: Capabilities,
    pub counts: Arc<Counts>,
}

impl Default for CountingStore {
    fn default() -> Self {
        let store = MemoryStore::default();
        Self { capabilities: store.capabilities(), store, counts: Arc::default() }
    }
}

#[derive(Clone)]
pub struct Counting<T> {
    inner: T,
    counts: Arc<Counts>,
}

impl Store for CountingStore {
    type Snapshot = Counting<<MemoryStore as Store>::Snapshot>;
    type Transaction = Counting<<MemoryStore as Store>::Transaction>;

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn snapshot(&self) -> Result<Self::Snapshot> {
        Ok(Counting { inner: self.store.snapshot()?, counts: Arc::clone(&self.counts) })
    }

    fn begin(&self, wait: Duration) -> Result<Self::Transaction> {
        Ok(Counting { inner: self.store.begin(wait)?, counts: Arc::clone(&self.counts) })
    }

    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<Version> {
        self.store.drop_keyspace(keyspace, wait)
    }

    passed_on!(store);
}

impl<V: View> View for Counting<V> {
    type Cursor = Counting<V::Cursor>;
    type PointReader = Counting<V::PointReader>;

    fn version(&self) -> Version {
        self.inner.version()
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Self::Cursor> {
        Ok(Counting { inner: self.inner.cursor(keyspace, bounds)?, counts: Arc::clone(&self.counts) })
    }

    fn point_reader(&self) -> Result<Self::PointReader> {
        Ok(Counting { inner: self.inner.point_reader()?, counts: Arc::clone(&self.counts) })
    }

    fn scan<B>(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        visitor: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        self.counts.add(0);
        self.inner.scan(keyspace, bounds, visitor)
    }

    fn count(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        should_continue: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>> {
        self.counts.add(0);
        self.inner.count(keyspace, bounds, should_continue)
    }
}

impl<C: slate_store::Cursor> slate_store::Cursor for Counting<C> {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        self.counts.add(0);
        self.inner.seek(edge)
    }

    // A backend over a network reads ahead, so a step is no round trip.
    fn step_forward(&mut self) -> Result<bool> {
        self.inner.step_forward()
    }

    fn step_back(&mut self) -> Result<bool> {
        self.inner.step_back()
    }

    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.inner.current()
    }
}

impl<R: PointReader> PointReader for Counting<R> {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        self.counts.add(keys.len());
        self.inner.load(keys)
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.inner.loaded(index)
    }
}

impl<T: Transaction> Transaction for Counting<T> {
    type View<'t> = Counting<T::View<'t>>;

    fn view(&self) -> Self::View<'_> {
        Counting { inner: self.inner.view(), counts: Arc::clone(&self.counts) }
    }

    // Writes and guards are sent with the commit.
    fn write(&mut self, keyspace: Keyspace, writes: &[slate_store::Write<'_>]) -> Result<()> {
        self.counts.add_writes(keyspace, writes);
        self.counts.check_conflict(writes)?;
        self.inner.write(keyspace, writes)
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8], guard: Guard) -> Result<()> {
        self.inner.guard(keyspace, key, guard)
    }

    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        self.inner.delete_range(keyspace, bounds)
    }

    fn commit(self, durability: Durability) -> Result<Version> {
        self.counts.add(0);
        self.inner.commit(durability)
    }

    fn commit_with(self, durability: Durability, last: LastStage<'_>) -> Result<Version> {
        self.counts.add(0);
        let counts = self.counts;
        self.inner.commit_with(durability, &mut |version, inner| last(version, &mut Counted { inner, counts: &counts }))
    }
}

/// Counts the writes of the last stage of a commit.
struct Counted<'c> {
    inner: &'c mut dyn LastWrites,
    counts: &'c Counts,
}

impl LastWrites for Counted<'_> {
    fn write(&mut self, keyspace: Keyspace, writes: &[slate_store::Write<'_>]) -> Result<()> {
        self.counts.add_writes(keyspace, writes);
        self.inner.write(keyspace, writes)
    }
}
