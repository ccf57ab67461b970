use std::sync::atomic::{AtomicU64, Ordering};

use super::{OperationKind, histogram::Timer};

/// A number that one thread increases and others read. An addition is a load and a store, without the locked instruction of
/// an atomic addition.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    /// Adds to the number. Only the thread that owns the counter may call this.
    #[inline]
    pub(super) fn add(&self, number: u64) {
        self.0.store(self.get().wrapping_add(number), Ordering::Relaxed);
    }

    /// Takes back what the thread has added.
    pub(super) fn subtract(&self, number: u64) {
        self.0.store(self.get().wrapping_sub(number), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one thread.
#[derive(Debug)]
pub(super) struct Counters {
    operations: [OperationCounters; OperationKind::ALL.len()],
    pub(super) rows: Counter,
    pub(super) bytes: Counter,
    pub(super) written: Counter,
    pub(super) keys: Counter,
    pub(super) documents: Counter,
    pub(super) conflicts: Counter,
    pub(super) retries: Counter,
    pub(super) spills: Counter,
    pub(super) spilled_bytes: Counter,
}

/// The counters of one kind of operation.
#[derive(Debug, Default)]
pub(super) struct OperationCounters {
    pub(super) calls: Counter,
    pub(super) failures: Counter,
    pub(super) time: Timer,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            operations: std::array::from_fn(|_| OperationCounters::default()),
            rows: Counter::default(),
            bytes: Counter::default(),
            written: Counter::default(),
            keys: Counter::default(),
            documents: Counter::default(),
            conflicts: Counter::default(),
            retries: Counter::default(),
            spills: Counter::default(),
            spilled_bytes: Counter::default(),
        }
    }
}

impl Counters {
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "the array has an element for each kind")]
    pub(super) fn of(&self, kind: OperationKind) -> &OperationCounters {
        &self.operations[kind as usize]
    }
}
