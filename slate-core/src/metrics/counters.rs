use std::sync::atomic::{AtomicU64, Ordering};

use super::{Examined, OperationKind, histogram::Timer};

/// A number that one thread increases and others read. An addition is a load and a store, without the locked instruction of
/// an atomic addition.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to the number. Only the thread that owns the counter may call this.
    #[inline]
    pub(crate) fn add(&self, number: u64) {
        self.0.store(self.get().wrapping_add(number), Ordering::Relaxed);
    }

    /// Subtracts from the number. Only the thread that owns the counter may call this.
    pub(crate) fn subtract(&self, number: u64) {
        self.0.store(self.get().wrapping_sub(number), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one thread.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    operations: [OperationCounters; OperationKind::ALL.len()],
    pub(crate) rows: Counter,
    pub(crate) bytes: Counter,
    pub(crate) written: Counter,
    pub(crate) keys: Counter,
    pub(crate) documents: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) retries: Counter,
    pub(crate) spills: Counter,
    pub(crate) spilled_bytes: Counter,
}

/// The counters of one kind of operation.
#[derive(Debug, Default)]
pub(crate) struct OperationCounters {
    pub(crate) calls: Counter,
    pub(crate) failures: Counter,
    pub(crate) time: Timer,
}

impl Counters {
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "the array has an element for each kind")]
    pub(crate) fn of(&self, kind: OperationKind) -> &OperationCounters {
        &self.operations[kind as usize]
    }

    #[inline]
    pub(crate) fn add_examined(&self, examined: Examined) {
        self.keys.add(examined.keys);
        self.documents.add(examined.documents);
    }
}
