use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use super::{Examined, Observer, slow::ReportedPlan};

/// The keys and documents that the nodes of one plan examine. It is added to the database's counters when it is dropped.
#[derive(Debug)]
pub(crate) struct Tally {
    keys: AtomicU64,
    documents: AtomicU64,
    /// The plan, if slow queries are reported.
    executed: OnceLock<ReportedPlan>,
    observer: Arc<Observer>,
}

impl Tally {
    pub(crate) fn new(observer: &Arc<Observer>) -> Arc<Self> {
        Arc::new(Self {
            keys: AtomicU64::new(0),
            documents: AtomicU64::new(0),
            executed: OnceLock::new(),
            observer: Arc::clone(observer),
        })
    }

    pub(crate) fn add(&self, examined: Examined) {
        self.keys.fetch_add(examined.keys, Ordering::Relaxed);
        self.documents.fetch_add(examined.documents, Ordering::Relaxed);
    }

    /// Stores the plan for a report, if slow queries are reported.
    pub(crate) fn executes(&self, executed: impl FnOnce() -> ReportedPlan) {
        if self.observer.reports_slow_queries() && self.executed.get().is_none() {
            // Of several plans of a bulk write, the first is reported.
            let _ = self.executed.set(executed());
        }
    }

    pub(crate) fn executed(&self) -> Option<ReportedPlan> {
        self.executed.get().cloned()
    }

    /// Returns the counts so far.
    pub(crate) fn examined(&self) -> Examined {
        Examined { keys: self.keys.load(Ordering::Relaxed), documents: self.documents.load(Ordering::Relaxed) }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.observer.counters().add_examined(self.examined());
    }
}
