//! The spans and events of the library for the crate `tracing`: their names, targets, levels and fields. `docs/observability.md`
//! lists them.
//!
//! Without a subscriber each costs a comparison of levels. Without the feature `tracing` the functions do nothing.

#![cfg_attr(not(feature = "tracing"), expect(unused_variables, reason = "nothing is reported without the feature"))]

use std::{marker::PhantomData, time::Duration};

#[cfg(feature = "tracing")]
use tracing::level_filters::LevelFilter;

use super::{Examined, OperationKind, PointRead, SlowQuery};
use crate::{Error, Result};

/// The targets. All begin with `slate`, so that a subscriber selects them together: `slate=debug`.
#[cfg(feature = "tracing")]
mod target {
    pub(super) const CALL: &str = "slate::call";
    pub(super) const PLAN: &str = "slate::plan";
    pub(super) const CONFLICT: &str = "slate::conflict";
    pub(super) const SPILL: &str = "slate::spill";
    pub(super) const INDEX: &str = "slate::index";
    pub(super) const STATISTICS: &str = "slate::statistics";
    pub(super) const STORAGE: &str = "slate::storage";
    pub(super) const SLOW: &str = "slate::slow";
}

/// A span, which may be disabled.
#[derive(Clone)]
pub(crate) struct Span {
    /// `None` if no subscriber wants spans of this level: moving and checking `None` costs less than a disabled span.
    #[cfg(feature = "tracing")]
    span: Option<Box<tracing::Span>>,
}

/// An entered span, until it is dropped.
pub(crate) struct Entered<'s> {
    #[cfg(feature = "tracing")]
    _entered: Option<tracing::span::Entered<'s>>,
    span: PhantomData<&'s Span>,
}

/// The counts of a call, for its span.
pub(crate) struct CallResult {
    pub(crate) rows: u64,
    pub(crate) examined: Examined,
}

impl Span {
    /// Returns the span of a call, open until the call has ended: for a read, until its last row was read or its cursor
    /// is dropped.
    #[inline]
    pub(crate) fn call(operation: OperationKind, collection: Option<&str>) -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: wants_calls().then(|| open_call(operation, collection)),
        }
    }

    /// Returns the caller's current span, for the thread that executes the call.
    #[cfg(feature = "async")]
    #[inline]
    pub(crate) fn current() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: (LevelFilter::current() > LevelFilter::OFF).then(|| Box::new(tracing::Span::current())),
        }
    }

    /// Returns whether a subscriber of `tracing` wants the span.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        #[cfg(feature = "tracing")]
        return self.span.as_ref().is_some_and(|span| !span.is_none());
        #[cfg(not(feature = "tracing"))]
        false
    }

    #[inline]
    pub(crate) fn enter(&self) -> Entered<'_> {
        Entered {
            #[cfg(feature = "tracing")]
            _entered: self.span.as_deref().map(tracing::Span::enter),
            span: PhantomData,
        }
    }

    /// Records the counts of the call.
    pub(crate) fn ended(&self, result: &CallResult) {
        let CallResult { rows, examined: Examined { keys, documents } } = result;
        #[cfg(feature = "tracing")]
        if let Some(span) = &self.span {
            span.record("rows", rows);
            span.record("keys_examined", keys);
            span.record("documents_examined", documents);
        }
    }

    /// Records the call's error in its span.
    #[cold]
    pub(crate) fn failed(&self, error: &Error) {
        #[cfg(feature = "tracing")]
        if let Some(span) = &self.span {
            span.record("error", tracing::field::display(error));
        }
    }
}

/// Returns whether a subscriber of `tracing` may want the spans of calls. Cheap; callers compute nothing for a span if
/// it is false.
#[inline]
pub(crate) fn wants_calls() -> bool {
    #[cfg(feature = "tracing")]
    return LevelFilter::current() >= LevelFilter::DEBUG;
    #[cfg(not(feature = "tracing"))]
    false
}

#[cfg(feature = "tracing")]
#[cold]
fn open_call(operation: OperationKind, collection: Option<&str>) -> Box<tracing::Span> {
    Box::new(tracing::debug_span!(
        target: target::CALL,
        "call",
        operation = operation.name(),
        collection,
        rows = tracing::field::Empty,
        keys_examined = tracing::field::Empty,
        documents_examined = tracing::field::Empty,
        error = tracing::field::Empty,
    ))
}

/// Executes a point read in the span of its call. Without a subscriber this is a comparison, because the read takes little time.
#[inline]
pub(crate) fn point_read(collection: &str, read: impl FnOnce() -> Result<PointRead>) -> Result<PointRead> {
    #[cfg(feature = "tracing")]
    if wants_calls() {
        return point_read_in_span(collection, read);
    }
    read()
}

#[cfg(feature = "tracing")]
#[cold]
#[inline(never)]
fn point_read_in_span(collection: &str, read: impl FnOnce() -> Result<PointRead>) -> Result<PointRead> {
    let span = Span::call(OperationKind::FindById, Some(collection));
    let read = {
        let _entered = span.enter();
        read()
    };
    match &read {
        Ok(PointRead::Postponed | PointRead::NeedsQuery) => {}
        Ok(PointRead::Missing) => span.ended(&CallResult { rows: 0, examined: Examined::lookup(0) }),
        Ok(PointRead::Found(_)) => span.ended(&CallResult { rows: 1, examined: Examined::lookup(1) }),
        Err(error) => span.failed(error),
    }
    read
}

/// Executes work on the whole database in a span.
pub(crate) fn storage<R>(operation: &'static str, work: impl FnOnce() -> Result<R>) -> Result<R> {
    #[cfg(feature = "tracing")]
    {
        let span = tracing::info_span!(target: target::STORAGE, "storage", operation, error = tracing::field::Empty);
        let result = span.in_scope(work);
        if let Err(error) = &result {
            span.record("error", tracing::field::display(error));
        }
        result
    }
    #[cfg(not(feature = "tracing"))]
    work()
}

/// Reports the plan that was chosen for a query. The plan is drawn only if a subscriber wants it.
#[inline]
pub(crate) fn planned(operation: OperationKind, collection: &str, draw: impl FnOnce() -> String) {
    #[cfg(feature = "tracing")]
    if tracing::enabled!(target: target::PLAN, tracing::Level::DEBUG) {
        tracing::debug!(target: target::PLAN, operation = operation.name(), collection, plan = draw(), "plan chosen");
    }
}

/// Reports a call or a commit that failed with a conflict.
#[cold]
pub(crate) fn conflict(error: &Error) {
    #[cfg(feature = "tracing")]
    tracing::debug!(
        target: target::CONFLICT,
        collection = error.collection(),
        index = error.index(),
        %error,
        "conflict"
    );
}

/// Reports another attempt after a conflict.
#[cold]
pub(crate) fn retry(attempt: u32, pause: Duration) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: target::CONFLICT, attempt, pause_us = micros(pause), "retry");
}

/// Reports rows that were written to a temporary file.
#[cold]
pub(crate) fn spilled(bytes: u64) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: target::SPILL, bytes, "rows spilled");
}

/// Reports one of the transactions that build an index.
#[cold]
pub(crate) fn index_round(collection: &str, index: &str, documents: u64) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: target::INDEX, collection, index, documents, "index build round");
}

/// Reports the end of an index build.
#[cold]
pub(crate) fn index_built(collection: &str, index: &str, time: Duration, error: Option<&Error>) {
    #[cfg(feature = "tracing")]
    match error {
        None => {
            tracing::info!(target: target::INDEX, collection, index, duration_us = micros(time), "index built");
        }
        Some(error) => {
            tracing::warn!(target: target::INDEX, collection, index, duration_us = micros(time), %error, "index not built");
        }
    }
}

/// Reports that statistics were gathered.
#[cold]
pub(crate) fn statistics(collection: &str) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: target::STATISTICS, collection, "statistics refreshed");
}

/// Reports a slow call.
#[cold]
pub(crate) fn slow(slow: &SlowQuery) {
    #[cfg(feature = "tracing")]
    if tracing::enabled!(target: target::SLOW, tracing::Level::WARN) {
        tracing::warn!(
            target: target::SLOW,
            operation = slow.operation().name(),
            collection = slow.collection(),
            filter = slow.filter(),
            duration_us = micros(slow.duration()),
            rows = slow.rows(),
            keys_examined = slow.keys_examined(),
            documents_examined = slow.documents_examined(),
            plan = slow.plan().map(|plan| plan.to_string()),
            "slow query"
        );
    }
}

/// Reports a panic of the caller's `on_slow_query` closure.
#[cold]
pub(crate) fn report_panicked() {
    #[cfg(feature = "tracing")]
    tracing::error!(target: target::SLOW, "the closure of on_slow_query panicked");
}

#[cfg(feature = "tracing")]
fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
