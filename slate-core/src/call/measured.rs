//! Calls in progress, which are counted when they end; and the cursor of a query, which counts its rows.

use std::{
    cell::Cell,
    sync::Arc,
    time::{Duration, Instant},
};

use slate_query::{held, raw::Doc};

use super::writer::located;
use crate::{
    Error, Result,
    call_context::CallContext,
    catalog::{Catalog, CollectionInfo},
    exec::{BoxedRows, NoRows, Rows},
    interrupt::{Interrupt, WaitBudget},
    metrics::{
        Examined, Observer, OperationKind, OwnedSubject, SlowQuery, Subject, Tally,
        trace::{CallResult, Span},
    },
    plan::{Output, Query},
    spill::Memory,
};

/// One call in progress. It is counted when it is dropped, unless it is postponed.
pub(super) struct MeasuredCall {
    observer: Arc<Observer>,
    kind: OperationKind,
    span: Span,
    /// When the clock was last started; `None` while the caller pauses, and after the end.
    running_since: Option<Instant>,
    /// The time measured before `running_since`.
    time: Duration,
    rows: u64,
    bytes: u64,
    /// Documents that a write has inserted, changed or deleted.
    written: u64,
    /// Keys and documents examined without a plan.
    examined: Examined,
    /// The counts of the plan; `None` unless a span or a report of slow queries needs them.
    tally: Option<Arc<Tally>>,
    /// The collection and the filter of a read whose rows outlive the query, for a report.
    subject: Option<Box<OwnedSubject>>,
    outcome: CallOutcome,
    /// The budget of a call that must not wait.
    budget: Option<WaitBudget>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallOutcome {
    Done,
    Failed,
    /// The call will be repeated on a thread that may wait, and is not counted.
    Postponed,
}

impl MeasuredCall {
    pub(super) fn new(
        observer: &Arc<Observer>,
        kind: OperationKind,
        collection: Option<&str>,
        budget: Option<&WaitBudget>,
    ) -> Self {
        let span = Span::call(kind, collection);
        let (observer, running_since) = (Arc::clone(observer), Some(Instant::now()));
        Self {
            observer,
            kind,
            span,
            running_since,
            time: Duration::ZERO,
            rows: 0,
            bytes: 0,
            written: 0,
            examined: Examined::default(),
            tally: None,
            subject: None,
            outcome: CallOutcome::Done,
            budget: budget.cloned(),
        }
    }

    /// Begins the call of a query whose rows are read after the query was dropped.
    pub(super) fn of_query(
        observer: &Arc<Observer>,
        query: &Query,
        collection: &CollectionInfo,
        context: &CallContext,
    ) -> Self {
        let mut call = Self::new(observer, query.kind, Some(&collection.name), context.interrupt.budget());
        if observer.reports_slow_queries() {
            let (collection, filter) = (Arc::clone(&collection.name), query.filter.clone());
            call.subject = Some(Box::new(OwnedSubject { collection, filter }));
        }
        call
    }

    /// Measures `work`, which is the whole call.
    pub(super) fn measure<R>(
        observer: &Arc<Observer>,
        kind: OperationKind,
        collection: Option<&str>,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let mut call = Self::new(observer, kind, collection, None);
        let result = call.within(work);
        call.end(Subject { collection, filter: None });
        result
    }

    /// Executes a part of the call in its span, and records the result.
    pub(super) fn within<R>(&mut self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let result = {
            let _entered = self.span.enter();
            work()
        };
        self.checked(result)
    }

    /// Returns whether a subscriber of `tracing` wants the span of the call.
    #[inline]
    fn is_traced(&self) -> bool {
        self.span.is_enabled()
    }

    /// Records the result of a part of the call.
    #[inline]
    fn checked<R>(&mut self, result: Result<R>) -> Result<R> {
        match &result {
            Ok(_) => self.outcome = CallOutcome::Done,
            Err(error) => self.failed(error),
        }
        result
    }

    /// Records that the call has rejected some of its documents or statements.
    pub(super) fn refused(&mut self) {
        self.outcome = CallOutcome::Failed;
    }

    #[cold]
    fn failed(&mut self, error: &Error) {
        let is_repeated = self.budget.as_ref().is_some_and(WaitBudget::is_spent);
        self.outcome = if is_repeated { CallOutcome::Postponed } else { CallOutcome::Failed };
        self.span.failed(error);
        self.observer.failed(error);
    }

    /// Counts keys and documents that were examined without a plan.
    pub(super) fn examined(&mut self, keys: u64, documents: u64) {
        self.examined += Examined { keys, documents };
    }

    /// Records the tally of the call's plan, if it will be reported.
    pub(super) fn tallied(&mut self, tally: &Arc<Tally>) {
        if self.is_traced() || self.observer.reports_slow_queries() {
            self.tally = Some(Arc::clone(tally));
        }
    }

    /// Records how many documents a write has inserted, changed or deleted.
    pub(super) fn wrote(&mut self, documents: u64) {
        self.written = documents;
    }

    #[inline]
    fn add_row(&mut self) {
        self.rows += 1;
    }

    #[inline]
    fn add_bytes(&mut self, bytes: usize) {
        self.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
    }

    /// Stops the clock: at the end of the call, and while the caller pauses.
    fn stop(&mut self) {
        if let Some(since) = self.running_since.take() {
            self.time += since.elapsed();
        }
    }

    #[inline]
    fn is_stopped(&self) -> bool {
        self.running_since.is_none()
    }

    /// Starts the clock again after a pause.
    #[cold]
    fn resume(&mut self) {
        self.running_since = Some(Instant::now());
    }

    /// Ends the call and reports it if it was slow.
    pub(super) fn end(mut self, subject: Subject<'_>) {
        self.stop();
        self.report(subject);
    }

    #[inline]
    fn report(&self, subject: Subject<'_>) {
        if self.outcome != CallOutcome::Postponed && self.observer.slow_queries().contain(self.time) {
            self.observer.slow_queries().add(&self.describe(subject));
        }
    }

    #[cold]
    fn describe(&self, Subject { collection, filter }: Subject<'_>) -> SlowQuery {
        SlowQuery {
            operation: self.kind,
            collection: collection.map(str::to_owned),
            filter: filter.map(slate_query::filter::Filter::shape),
            duration: self.time,
            rows: self.rows + self.written,
            examined: self.all_examined(),
            has_failed: self.outcome == CallOutcome::Failed,
            plan: self.tally.as_ref().and_then(|tally| tally.executed()),
        }
    }

    /// Returns the keys and documents examined, with and without a plan.
    fn all_examined(&self) -> Examined {
        self.examined + self.tally.as_ref().map(|tally| tally.examined()).unwrap_or_default()
    }
}

impl Drop for MeasuredCall {
    fn drop(&mut self) {
        if self.outcome == CallOutcome::Postponed {
            return;
        }
        self.stop();
        if self.is_traced() {
            self.span.ended(&CallResult { rows: self.rows + self.written, examined: self.all_examined() });
        }
        if let Some(subject) = self.subject.take() {
            self.report(subject.as_subject());
        }
        let counters = self.observer.counters();
        let operation = counters.of(self.kind);
        operation.calls.add(1);
        operation.time.record(self.time);
        if self.outcome == CallOutcome::Failed {
            operation.failures.add(1);
        }
        counters.rows.add(self.rows);
        counters.bytes.add(self.bytes);
        counters.written.add(self.written);
        counters.add_examined(self.examined);
    }
}

/// Lends the documents of a query one at a time, without copying them.
///
/// ```
/// # let db = slate_core::Database::open("memory:")?;
/// use bson::{RawDocumentBuf, doc};
///
/// let users = db.collection::<RawDocumentBuf>("users");
/// let mut rows = users.find(doc! { "tags": "rust" }).projection(doc! { "name": 1 }).cursor()?;
/// while rows.advance()? {
///     println!("{:?}", rows.current());
/// }
/// # Ok::<(), slate_core::Error>(())
/// ```
pub struct Cursor {
    // The rows are dropped before the call, because the call ends with the rows.
    rows: BoxedRows<'static>,
    /// `None` if the rows do not come from a query: they are not counted.
    call: Option<CallOfRows>,
    /// The length of the current document in bytes; 0 if the caller has not read it.
    length: Cell<usize>,
    /// The collection that conversion errors name.
    collection: Arc<str>,
}

/// The call of a query whose rows are read.
struct CallOfRows {
    call: MeasuredCall,
    /// The limits of the call during a move; none if the query evaluates nothing.
    interrupt: Interrupt,
    /// Maximum bytes of values that these expressions hold; `None`: no limit.
    memory_limit: Option<usize>,
    /// The limits of the call after a large row, and while one is decoded.
    between_rows: Interrupt,
    /// To name the collection of damaged data in errors.
    catalog: Arc<Catalog>,
}

impl Cursor {
    /// Returns the cursor of a query of `collection`.
    pub(super) fn new(
        rows: BoxedRows<'static>,
        call: MeasuredCall,
        catalog: &Arc<Catalog>,
        collection: &CollectionInfo,
    ) -> Self {
        let (interrupt, between_rows) = (Interrupt::default(), Interrupt::default());
        let call = CallOfRows { call, interrupt, memory_limit: None, between_rows, catalog: Arc::clone(catalog) };
        Self { rows, call: Some(call), length: Cell::new(0), collection: Arc::clone(&collection.name) }
    }

    /// Returns a cursor without documents.
    pub(super) fn empty(collection: &str) -> Self {
        Self { rows: Box::new(NoRows), call: None, length: Cell::new(0), collection: collection.into() }
    }

    /// Sets the limits of the call, for the expressions of each move and for large rows.
    pub(super) fn limited(mut self, query: &Query, context: &CallContext, memory: &Memory) -> Self {
        if let Some(call) = &mut self.call {
            if evaluates(query) {
                call.interrupt = context.interrupt.clone();
                call.memory_limit = context.limit_in(memory);
            }
            call.between_rows = context.interrupt.clone();
        }
        self
    }

    /// Sets the name under which the caller reads the rows: that of a view.
    pub(crate) fn named(mut self, collection: &Arc<str>) -> Self {
        if *self.collection != **collection {
            self.collection = Arc::clone(collection);
        }
        self
    }

    /// Returns the name of the collection or view that is read.
    pub(crate) fn collection(&self) -> &Arc<str> {
        &self.collection
    }

    /// Returns the current document, if there is one. The next move counts its bytes.
    #[inline]
    pub(crate) fn document(&self) -> Option<Doc<'_>> {
        let current = self.rows.current();
        self.length.set(current.map_or(0, |document| document.bytes().len()));
        current
    }

    /// Calls `decode`, which reads this document. If the document is large, the limits of the call end it early.
    #[inline]
    pub(crate) fn decoding<R>(&self, document: Option<Doc<'_>>, decode: impl FnOnce() -> Result<R>) -> Result<R> {
        match &self.call {
            Some(of_rows) if document.is_some_and(|document| document.bytes().len() >= LARGE_ROW) => {
                of_rows.between_rows.during(decode)
            }
            _ => decode(),
        }
    }
}

/// Returns whether conditions, expressions or keys of sorts are evaluated on documents.
fn evaluates(query: &Query) -> bool {
    let is_whole = matches!(query.output, Output::Whole | Output::Count | Output::Key);
    !(is_whole && query.filter.is_empty() && query.sort.is_none() && query.pipeline.nodes.is_empty())
}

/// The bytes from which a row is large: decoding fewer takes less than a millisecond, so the limits are not checked.
const LARGE_ROW: usize = 1 << 16;

impl CallOfRows {
    /// Counts the row that the caller has read. Checks the limits after a large one, because decoding it may have taken longer than the time between
    /// two checks of a node.
    #[inline]
    fn finish_row(&mut self, length: usize) -> Result<()> {
        self.call.add_bytes(length);
        if length < LARGE_ROW { Ok(()) } else { self.between_rows.check() }
    }

    #[inline]
    fn advance(&self, rows: &mut BoxedRows<'static>) -> Result<bool> {
        let mut advance = || self.interrupt.during(|| rows.advance());
        match self.memory_limit {
            Some(_) => held::within(self.memory_limit, advance),
            None => advance(),
        }
    }

    #[cold]
    #[inline(never)]
    fn advance_in_span(&self, rows: &mut BoxedRows<'static>) -> Result<bool> {
        let _entered = self.call.span.enter();
        self.advance(rows)
    }
}

impl Rows for Cursor {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        let Self { rows, call: Some(of_rows), length, .. } = self else { return self.rows.advance() };
        let finished = of_rows.finish_row(length.take());
        if of_rows.call.is_stopped() {
            of_rows.call.resume();
        }
        let more = match finished {
            Ok(()) if of_rows.call.is_traced() => of_rows.advance_in_span(rows),
            Ok(()) => of_rows.advance(rows),
            Err(error) => Err(error),
        };
        let more = of_rows.call.checked(more);
        match more {
            Ok(true) => of_rows.call.add_row(),
            Ok(false) | Err(_) => of_rows.call.stop(),
        }
        more.map_err(|error| located(error, &of_rows.catalog))
    }

    #[inline]
    fn current(&self) -> Option<Doc<'_>> {
        self.document()
    }

    fn pause(&mut self) {
        if let Some(of_rows) = &mut self.call {
            of_rows.call.stop();
        }
    }

    fn park(&mut self) {
        self.pause();
        self.rows.park();
    }

    #[cfg(feature = "async")]
    fn shared(&self) -> Option<Arc<[u8]>> {
        // Only if a move reads one record: moves that read many would delay the reader of shared rows.
        let shared = self.rows.reads_one_record().then(|| self.rows.shared()).flatten();
        let bytes = shared.as_deref().map(|stored| Doc::stored(stored).bytes());
        self.length.set(bytes.map_or(0, <[u8]>::len));
        shared
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        if let Some(of_rows) = &mut self.call {
            of_rows.call.add_bytes(self.length.take());
        }
    }
}
