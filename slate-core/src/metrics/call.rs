use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Observer, OperationKind};
use crate::{Error, Result, interrupt::is_would_wait};

/// One call in progress. It is counted when it is dropped.
pub(crate) struct Call {
    observer: Arc<Observer>,
    kind: OperationKind,
    start: Instant,
    time: Option<Duration>,
    rows: u64,
    bytes: u64,
    /// The keys examined without a plan.
    keys: u64,
    documents: u64,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
    /// The call will be repeated on a thread that may wait, or with the collation of its collection, and is not counted.
    Postponed,
}

impl Call {
    pub(crate) fn new(observer: &Arc<Observer>, kind: OperationKind) -> Self {
        let (observer, start) = (Arc::clone(observer), Instant::now());
        Self { observer, kind, start, time: None, rows: 0, bytes: 0, keys: 0, documents: 0, outcome: Outcome::Done }
    }

    /// Measures `work`, which is the whole call.
    pub(crate) fn measure<R>(
        observer: &Arc<Observer>,
        kind: OperationKind,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let mut call = Self::new(observer, kind);
        call.checked(work())
    }

    /// Records the result of a part of the call.
    pub(crate) fn checked<R>(&mut self, result: Result<R>) -> Result<R> {
        match &result {
            Ok(_) => self.outcome = Outcome::Done,
            Err(error) => self.failed(error),
        }
        result
    }

    /// Records that the call has refused some of its documents or statements.
    pub(crate) fn refused(&mut self) {
        self.outcome = Outcome::Failed;
    }

    #[cold]
    fn failed(&mut self, error: &Error) {
        let is_repeated = is_would_wait(error) || error.inherited_collation().is_some();
        self.outcome = if is_repeated { Outcome::Postponed } else { Outcome::Failed };
        self.observer.failed(error);
    }

    /// Counts keys and documents that were examined without a plan.
    pub(crate) fn examined(&mut self, keys: u64, documents: u64) {
        self.keys += keys;
        self.documents += documents;
    }

    #[inline]
    pub(super) fn add_row(&mut self) {
        self.rows += 1;
    }

    #[inline]
    pub(super) fn add_bytes(&mut self, bytes: usize) {
        self.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
    }

    /// Stops the clock, before the call is dropped.
    pub(super) fn stop(&mut self) {
        if self.time.is_none() {
            self.time = Some(self.start.elapsed());
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.outcome == Outcome::Postponed {
            return;
        }
        self.stop();
        let counters = self.observer.counters();
        let operation = counters.of(self.kind);
        operation.calls.add(1);
        operation.time.record(self.time.unwrap_or_default());
        if self.outcome == Outcome::Failed {
            operation.failures.add(1);
        }
        counters.rows.add(self.rows);
        counters.bytes.add(self.bytes);
        counters.keys.add(self.keys);
        counters.documents.add(self.documents);
    }
}
