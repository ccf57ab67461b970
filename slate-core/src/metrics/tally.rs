use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::Observer;

/// The keys and documents that the nodes of one plan examine. It is added to the database's counters when it is dropped.
#[derive(Debug)]
pub(crate) struct Tally {
    keys: AtomicU64,
    documents: AtomicU64,
    observer: Arc<Observer>,
}

impl Tally {
    pub(crate) fn new(observer: &Arc<Observer>) -> Arc<Self> {
        Arc::new(Self { keys: AtomicU64::new(0), documents: AtomicU64::new(0), observer: Arc::clone(observer) })
    }

    pub(crate) fn add(&self, keys: u64, documents: u64) {
        self.keys.fetch_add(keys, Ordering::Relaxed);
        self.documents.fetch_add(documents, Ordering::Relaxed);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let counters = self.observer.counters();
        counters.keys.add(*self.keys.get_mut());
        counters.documents.add(*self.documents.get_mut());
    }
}
