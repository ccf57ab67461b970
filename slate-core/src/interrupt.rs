use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use slate_query::Code;

use crate::{Error, ErrorKind, Result};

/// Cancels the operations that hold a clone of it, from any thread.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Node>);

#[derive(Debug, Default)]
struct Node {
    cancelled: AtomicBool,
    parent: Option<CancelToken>,
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes every operation that holds a clone fail with [`ErrorKind::Interrupted`] at its next check. Operations check
    /// every few hundred rows. Cancelling cannot be undone.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Creates a token that is cancelled with this one, and can be cancelled alone: for example, one per request below the
    /// token of a service.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(Node { cancelled: AtomicBool::new(false), parent: Some(self.clone()) }))
    }

    /// Returns whether this token or one of its ancestors was cancelled.
    pub fn is_cancelled(&self) -> bool {
        let mut ancestry = std::iter::successors(Some(self), |token| token.0.parent.as_ref());
        ancestry.any(|token| token.0.cancelled.load(Ordering::Relaxed))
    }

    /// Fails if the token was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.is_cancelled() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Interrupted, Code::INTERRUPTED, "the operation was cancelled"))
    }
}

/// The deadline and the cancel tokens that can end an operation early.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    deadline: Option<Instant>,
    token: Option<CancelToken>,
    /// The token of the operation's transaction, if it has one.
    transaction_token: Option<CancelToken>,
    ticks: u32,
}

/// Rows between two checks. Reading the clock costs about as much as processing a row.
const ROWS_PER_CHECK: u32 = 128;

impl Interrupt {
    pub(crate) fn within(&mut self, time: Duration) {
        // A deadline that the clock cannot represent never passes.
        self.deadline = Instant::now().checked_add(time);
    }

    pub(crate) fn by(&mut self, token: CancelToken) {
        self.token = Some(token);
    }

    /// Combines an operation's interrupt with that of its transaction: the earlier deadline, both tokens.
    pub(crate) fn or(&self, outer: &Self) -> Self {
        let deadline = match (self.deadline, outer.deadline) {
            (Some(own), Some(outer)) => Some(own.min(outer)),
            (own, outer) => own.or(outer),
        };
        Self { deadline, token: self.token.clone(), transaction_token: outer.token.clone(), ticks: 0 }
    }

    /// Returns the deadline.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Counts a row; checks every [`ROWS_PER_CHECK`] rows.
    #[inline]
    pub(crate) fn tick(&mut self) -> Result<()> {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(ROWS_PER_CHECK) { self.check() } else { Ok(()) }
    }

    /// Fails if the deadline has passed or a token was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        [&self.token, &self.transaction_token].into_iter().flatten().try_for_each(CancelToken::check)?;
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
