use std::{
    cell::Cell,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::Duration,
};

use slate_query::filter::Filter;

use super::{Examined, OperationKind, trace};
use crate::Explain;

/// The threshold if only a closure is set, as in MongoDB.
const DEFAULT_THRESHOLD: Duration = Duration::from_millis(100);

/// A call that took as long as the threshold or longer; see [`DatabaseBuilder::on_slow_query`](crate::DatabaseBuilder::on_slow_query).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SlowQuery {
    pub(crate) operation: OperationKind,
    pub(crate) collection: Option<String>,
    pub(crate) filter: Option<String>,
    pub(crate) duration: Duration,
    pub(crate) rows: u64,
    pub(crate) examined: Examined,
    pub(crate) has_failed: bool,
    pub(crate) plan: Option<ReportedPlan>,
}

impl SlowQuery {
    /// Returns the kind of the call.
    pub fn operation(&self) -> OperationKind {
        self.operation
    }

    /// Returns the collection; `None` for a commit, and for a bulk write to several.
    pub fn collection(&self) -> Option<&str> {
        self.collection.as_deref()
    }

    /// Returns the shape of the filter, with `?` in place of the values: `{ "age": { "$gte": ? } }`. `None` for a call
    /// without a filter.
    pub fn filter(&self) -> Option<&str> {
        self.filter.as_deref()
    }

    /// Returns the time that the call took. For a read with a blocking cursor it includes the time
    /// that the caller spent between the rows, unless the cursor was [paused](crate::Cursor::pause).
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Returns how many rows the call returned, or how many documents it inserted, changed or deleted.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns how many keys the call read.
    pub fn keys_examined(&self) -> u64 {
        self.examined.keys
    }

    /// Returns how many documents the call read.
    pub fn documents_examined(&self) -> u64 {
        self.examined.documents
    }

    /// Returns whether the call failed, or rejected some of its documents.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns the plan that was executed; `None` for a call without one: an insertion, a commit, a lookup of a single
    /// value. It is drawn with the values of the filter.
    pub fn plan(&self) -> Option<Explain> {
        self.plan.as_ref().map(|plan| (plan.0)())
    }
}

/// Formats the call on one line, then its plan, if it has one.
impl fmt::Display for SlowQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, duration, rows, examined: Examined { keys, documents }, .. } = self;
        write!(f, "{operation}")?;
        if let Some(collection) = &self.collection {
            write!(f, " {collection}")?;
        }
        if let Some(filter) = &self.filter {
            write!(f, " {filter}")?;
        }
        write!(f, ": {duration:.1?}, {rows} rows, {keys} keys and {documents} documents examined")?;
        if self.has_failed {
            f.write_str(", failed")?;
        }
        self.plan().map_or(Ok(()), |plan| write!(f, "\n{plan}"))
    }
}

/// Draws a plan that was executed. A closure, because this module does not depend on plans.
#[derive(Clone)]
pub(crate) struct ReportedPlan(pub(crate) Arc<dyn Fn() -> Explain + Send + Sync>);

impl fmt::Debug for ReportedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0)().fmt(f)
    }
}

type Report = dyn Fn(&SlowQuery) + Send + Sync;

/// The threshold of slow calls, and the caller's closure that receives them.
#[derive(Clone, Default)]
pub(crate) struct SlowQueries {
    threshold: Option<Duration>,
    report: Option<Arc<Report>>,
}

thread_local! {
    /// Whether this thread executes a report: its own calls are not reported.
    static IS_REPORTING: Cell<bool> = const { Cell::new(false) };
}

impl SlowQueries {
    pub(crate) fn threshold(&mut self, threshold: Duration) {
        self.threshold = Some(threshold);
    }

    pub(crate) fn report(&mut self, report: impl Fn(&SlowQuery) + Send + Sync + 'static) {
        self.threshold.get_or_insert(DEFAULT_THRESHOLD);
        self.report = Some(Arc::new(report));
    }

    #[inline]
    pub(crate) fn are_reported(&self) -> bool {
        self.threshold.is_some()
    }

    #[inline]
    pub(crate) fn contain(&self, time: Duration) -> bool {
        self.threshold.is_some_and(|threshold| time >= threshold)
    }

    /// Reports a call, unless the thread unwinds or is reporting another one. Catches a panic of the closure.
    pub(crate) fn add(&self, slow: &SlowQuery) {
        if thread::panicking() || IS_REPORTING.replace(true) {
            return;
        }
        trace::slow(slow);
        let reported = self.report.as_ref().map_or(Ok(()), |report| catch_unwind(AssertUnwindSafe(|| report(slow))));
        if reported.is_err() {
            trace::report_panicked();
        }
        IS_REPORTING.set(false);
    }
}

crate::debug::shown! { self: SlowQueries { threshold: self.threshold } }

/// The collection and the filter of a call, for reports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Subject<'s> {
    pub(crate) collection: Option<&'s str>,
    pub(crate) filter: Option<&'s Filter>,
}

impl<'s> Subject<'s> {
    pub(crate) fn collection(collection: &'s str) -> Self {
        Self { collection: Some(collection), filter: None }
    }
}

/// Like [`Subject`], for rows that are still read after the query itself has been dropped.
pub(crate) struct OwnedSubject {
    pub(crate) collection: Arc<str>,
    pub(crate) filter: Filter,
}

impl OwnedSubject {
    pub(crate) fn as_subject(&self) -> Subject<'_> {
        Subject { collection: Some(&self.collection), filter: Some(&self.filter) }
    }
}
