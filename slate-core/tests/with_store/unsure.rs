//! A store whose commits can be made without an answer, as on a network.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use slate_store::{
    Bounds, Capabilities, Durability, Error, Guard, Keyspace, LastStage, Result, Store, Transaction, Version, Write,
    memory::MemoryStore,
};

use super::passed_on::passed_on;

type Inner = <MemoryStore as Store>::Transaction;

/// The memory store. After [`UnsureStore::lose_an_answer`] the next commit that writes something is made and reported as one with an unknown outcome.
#[derive(Clone, Default)]
pub(crate) struct UnsureStore {
    store: MemoryStore,
    loses: Arc<AtomicBool>,
}

impl UnsureStore {
    pub(crate) fn lose_an_answer(&self) {
        self.loses.store(true, Ordering::SeqCst);
    }
}

impl Store for UnsureStore {
    type Snapshot = <MemoryStore as Store>::Snapshot;
    type Transaction = UnsureTransaction;

    fn capabilities(&self) -> Capabilities {
        Capabilities { exclusive: false, ..self.store.capabilities() }
    }

    fn snapshot(&self) -> Result<Self::Snapshot> {
        self.store.snapshot()
    }

    fn begin(&self, wait: Duration) -> Result<UnsureTransaction> {
        Ok(UnsureTransaction { inner: self.store.begin(wait)?, loses: Arc::clone(&self.loses) })
    }

    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<Version> {
        self.store.drop_keyspace(keyspace, wait)
    }

    passed_on!(store);
}

pub(crate) struct UnsureTransaction {
    inner: Inner,
    loses: Arc<AtomicBool>,
}

fn answer(loses: &AtomicBool, committed: Result<Version>) -> Result<Version> {
    let version = committed?;
    match loses.swap(false, Ordering::SeqCst) {
        true => Err(Error::OutcomeUnknown(Box::new("the answer was lost".into()))),
        false => Ok(version),
    }
}

impl Transaction for UnsureTransaction {
    type View<'t> = <Inner as Transaction>::View<'t>;

    fn view(&self) -> Self::View<'_> {
        self.inner.view()
    }

    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()> {
        self.inner.write(keyspace, writes)
    }

    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        self.inner.delete_range(keyspace, bounds)
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8], guard: Guard) -> Result<()> {
        self.inner.guard(keyspace, key, guard)
    }

    fn commit(self, durability: Durability) -> Result<Version> {
        answer(&self.loses, self.inner.commit(durability))
    }

    fn commit_with(self, durability: Durability, last: LastStage<'_>) -> Result<Version> {
        answer(&self.loses, self.inner.commit_with(durability, last))
    }
}
