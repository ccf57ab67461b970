use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use slate_query::Code;

use crate::{Error, ErrorKind, Result};

/// Cancels the operations that were given a clone of it, from any thread.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Node>);

#[derive(Debug, Default)]
struct Node {
    cancelled: AtomicBool,
    parent: Option<CancelToken>,
}

impl CancelToken {
    /// A token that cancels nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends every operation that holds a clone, at its next check (every few hundred rows), with an error of kind
    /// [`ErrorKind::Interrupted`]. It cannot be undone.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// A token that is cancelled with this one, and can be cancelled without it: one for a request under that of its
    /// service, say.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(Node { cancelled: AtomicBool::new(false), parent: Some(self.clone()) }))
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        let mut lineage = std::iter::successors(Some(self), |token| token.0.parent.as_ref());
        lineage.any(|token| token.0.cancelled.load(Ordering::Relaxed))
    }

    /// An error where it was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.is_cancelled() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Interrupted, Code::INTERRUPTED, "the operation was cancelled"))
    }
}

/// When an operation must end before it is done: at a deadline, by a token, by both or by neither.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    deadline: Option<Instant>,
    token: Option<CancelToken>,
    /// That of the transaction, where the operation belongs to one that has a token of its own.
    outer: Option<CancelToken>,
    ticks: u32,
}

/// How many rows pass between two looks at the clock: a look costs about as much as a row.
const ROWS_PER_CHECK: u32 = 128;

impl Interrupt {
    pub(crate) fn within(&mut self, time: Duration) {
        // A deadline beyond what the clock can express is none.
        self.deadline = Instant::now().checked_add(time);
    }

    pub(crate) fn by(&mut self, token: CancelToken) {
        self.token = Some(token);
    }

    /// Ends at whichever of the two ends first.
    pub(crate) fn or(&self, outer: &Self) -> Self {
        let deadline = match (self.deadline, outer.deadline) {
            (Some(own), Some(outer)) => Some(own.min(outer)),
            (own, outer) => own.or(outer),
        };
        Self { deadline, token: self.token.clone(), outer: outer.token.clone(), ticks: 0 }
    }

    /// When it ends at the latest.
    pub(crate) fn ends(&self) -> Option<Instant> {
        self.deadline
    }

    /// To be called once a row; looks every so often.
    #[inline]
    pub(crate) fn tick(&mut self) -> Result<()> {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(ROWS_PER_CHECK) { self.check() } else { Ok(()) }
    }

    /// Looks now.
    pub(crate) fn check(&self) -> Result<()> {
        [&self.token, &self.outer].into_iter().flatten().try_for_each(CancelToken::check)?;
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::new(
                ErrorKind::Interrupted,
                Code::MAX_TIME_MS_EXPIRED,
                "the operation exceeded its time limit",
            ));
        }
        Ok(())
    }
}
