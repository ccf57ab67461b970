use std::time::{Duration, Instant};

use slate_query::raw::Doc;
use thread_local::ThreadLocal;

use super::{
    Examined, Metrics, OperationKind, SlowQuery, counters::Counters, slow::SlowQueries, spilled::Spilled, trace,
};
use crate::{Error, Result};

/// One of this many point reads of a thread is timed, because reading the clock twice is a noticeable part of a point
/// read.
const POINT_READS_PER_TIMING: u64 = 32;

/// The outcome of a read by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointRead {
    /// A document of this length.
    Found(usize),
    Missing,
    /// Only a query can find it: the name is a view's, which has no records of its own, or strings are compared by a collation.
    NeedsQuery,
    /// The read would have had to wait, and is repeated on a thread that may wait.
    Postponed,
}

impl PointRead {
    /// Calls `visitor` with the document that was found.
    #[inline]
    pub(crate) fn visit(document: Doc<'_>, visitor: &mut dyn FnMut(Doc<'_>) -> Result<()>) -> Result<Self> {
        visitor(document).map(|()| Self::Found(document.bytes().len()))
    }
}

/// Counts the work of one database. Each thread has counters of its own, so that threads do not wait for each other's cache
/// lines.
#[derive(Default)]
pub(crate) struct Observer {
    threads: ThreadLocal<Counters>,
    slow_queries: SlowQueries,
}

impl Observer {
    pub(crate) fn new(slow_queries: SlowQueries) -> Self {
        Self { threads: ThreadLocal::default(), slow_queries }
    }

    #[inline]
    pub(crate) fn slow_queries(&self) -> &SlowQueries {
        &self.slow_queries
    }

    /// Returns whether slow calls are reported.
    #[inline]
    pub(crate) fn reports_slow_queries(&self) -> bool {
        self.slow_queries.are_reported()
    }

    /// Returns the counters of this thread.
    #[inline]
    pub(crate) fn counters(&self) -> &Counters {
        self.threads.get_or_default()
    }

    /// Executes a point read, and counts it unless it needs a query or is postponed.
    #[inline]
    pub(crate) fn point_read(&self, collection: &str, read: impl FnOnce() -> Result<PointRead>) -> Result<PointRead> {
        let counters = self.counters();
        let operation = counters.of(OperationKind::FindById);
        let start = operation.calls.get().is_multiple_of(POINT_READS_PER_TIMING).then(Instant::now);
        let read = read();
        let mut found = 0;
        match &read {
            Ok(PointRead::Postponed | PointRead::NeedsQuery) => return read,
            Ok(PointRead::Missing) => {}
            Ok(PointRead::Found(bytes)) => {
                found = 1;
                counters.documents.add(1);
                counters.rows.add(1);
                counters.bytes.add(u64::try_from(*bytes).unwrap_or(u64::MAX));
            }
            Err(error) => {
                operation.failures.add(1);
                self.failed(error);
            }
        }
        counters.keys.add(1);
        operation.calls.add(1);
        if let Some(start) = start {
            let time = start.elapsed();
            operation.time.record(time);
            if self.slow_queries.contain(time) {
                self.report_point_read(collection, time, found, read.is_err());
            }
        }
        read
    }

    #[cold]
    fn report_point_read(&self, collection: &str, duration: Duration, found: u64, has_failed: bool) {
        self.slow_queries.add(&SlowQuery {
            operation: OperationKind::FindById,
            collection: Some(collection.into()),
            filter: None,
            duration,
            rows: found,
            examined: Examined::lookup(found),
            has_failed,
            plan: None,
        });
    }

    /// Counts the error of an operation or of a commit, if it is a conflict.
    pub(crate) fn failed(&self, error: &Error) {
        if error.is_retryable() {
            trace::conflict(error);
            self.counters().conflicts.add(1);
        }
    }

    pub(crate) fn retried(&self, attempt: u32, pause: Duration) {
        trace::retry(attempt, pause);
        self.counters().retries.add(1);
    }

    pub(crate) fn spilled(&self, spilled: Spilled) {
        trace::spilled(spilled.bytes);
        let counters = self.counters();
        counters.spills.add(spilled.runs);
        counters.spilled_bytes.add(spilled.bytes);
    }

    /// Returns the sums over all threads.
    pub(crate) fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        self.threads.iter().for_each(|counters| metrics.add(counters));
        metrics
    }
}

crate::debug::shown! { self: Observer {} }
