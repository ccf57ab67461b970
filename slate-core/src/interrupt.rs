use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use slate_query::Code;

use crate::{Error, ErrorKind, Result};

/// Cancels the operations that hold a clone of it, from any thread.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<CancelNode>);

#[derive(Debug, Default)]
struct CancelNode {
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
        Self(Arc::new(CancelNode { cancelled: AtomicBool::new(false), parent: Some(self.clone()) }))
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
    budget: Option<WaitBudget>,
    ticks: u32,
}

/// The limits of each call through a handle. A limit of the call itself replaces the handle's.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallLimits {
    deadline: Option<CallDeadline>,
    token: Option<CancelToken>,
    budget: Option<WaitBudget>,
}

#[derive(Clone, Copy, Debug)]
enum CallDeadline {
    /// The time from the beginning of the call.
    Within(Duration),
    /// The time at which a call that has begun must end.
    #[cfg(feature = "async")]
    At(Instant),
}

impl CallLimits {
    pub(crate) fn deadline(&mut self, within: Duration) {
        self.deadline = Some(CallDeadline::Within(within));
    }

    pub(crate) fn cancel(&mut self, token: CancelToken) {
        self.token = Some(token);
    }

    /// Returns the interrupt of a call that begins now.
    pub(crate) fn begin(&self) -> Interrupt {
        let (token, budget) = (self.token.clone(), self.budget.clone());
        Interrupt { deadline: self.end(), token, budget, ..Interrupt::default() }
    }

    /// Returns the same limits for a call with this budget.
    #[cfg(feature = "async")]
    pub(crate) fn within(&self, budget: &WaitBudget) -> Self {
        Self { budget: Some(budget.clone()), ..self.clone() }
    }

    /// Returns the budget of a call that must not wait.
    pub(crate) fn budget(&self) -> Option<&WaitBudget> {
        self.budget.as_ref().filter(|budget| budget.is_limited())
    }

    /// Fails if a call that begins now is already cancelled, or has no time left.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.deadline.is_none() && self.token.is_none() { Ok(()) } else { self.begin().check() }
    }

    /// Returns the limits of a call that begins now and continues on another thread.
    #[cfg(feature = "async")]
    pub(crate) fn begun(&self) -> Self {
        Self { deadline: self.end().map(CallDeadline::At), ..self.clone() }
    }

    /// Returns the time left for a call that begins now.
    pub(crate) fn left(&self) -> Option<Duration> {
        match self.deadline? {
            CallDeadline::Within(within) => Some(within),
            #[cfg(feature = "async")]
            CallDeadline::At(end) => Some(end.saturating_duration_since(Instant::now())),
        }
    }

    pub(crate) fn token(&self) -> Option<&CancelToken> {
        self.token.as_ref()
    }

    fn end(&self) -> Option<Instant> {
        match self.deadline? {
            // A deadline that the clock cannot represent never passes.
            CallDeadline::Within(within) => Instant::now().checked_add(within),
            #[cfg(feature = "async")]
            CallDeadline::At(end) => Some(end),
        }
    }
}

/// Rows between two checks. Reading the clock costs about as much as processing a row.
const ROWS_PER_CHECK: u32 = 128;

/// The work that a call may do on a thread of an async runtime: it must not wait for a device, a network or another thread, and no
/// node of its plan may process more than [`ROWS_PER_CHECK`] rows. A call that has spent its budget ends, and is repeated on a
/// thread that may wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitBudget(Arc<AtomicU8>);

/// The states of a [`WaitBudget`] that is no longer limited to short work. It begins with 0.
const SPENT: u8 = 1;
const LIFTED: u8 = 2;

impl WaitBudget {
    /// Lifts the limit, because the call continues on a thread that may wait.
    #[cfg(feature = "async")]
    pub(crate) fn lift(&self) {
        self.0.store(LIFTED, Ordering::Relaxed);
    }

    fn is_limited(&self) -> bool {
        self.0.load(Ordering::Relaxed) != LIFTED
    }

    /// Returns whether the call has ended because it would have had to wait.
    pub(crate) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == SPENT
    }

    /// Spends the budget. Returns the error with which the call ends.
    pub(crate) fn spend(&self) -> Error {
        self.0.store(SPENT, Ordering::Relaxed);
        Error::new(ErrorKind::Interrupted, Code::INTERRUPTED, "the operation would have to wait")
    }
}

/// Returns the error of an operation that did not end before its deadline.
pub(crate) fn past_deadline() -> Error {
    Error::new(ErrorKind::Interrupted, Code::MAX_TIME_MS_EXPIRED, "the operation exceeded its time limit")
}

impl Interrupt {
    pub(crate) fn deadline(&mut self, within: Duration) {
        // A deadline that the clock cannot represent never passes.
        self.deadline = Instant::now().checked_add(within);
    }

    pub(crate) fn cancel(&mut self, token: CancelToken) {
        self.token = Some(token);
    }

    /// Sets the limits of a call that begins now.
    pub(crate) fn limit_by(&mut self, limits: &CallLimits) {
        *self = limits.begin();
    }

    /// Combines an operation's interrupt with that of its transaction: the earlier deadline, both tokens.
    pub(crate) fn or(&self, outer: &Self) -> Self {
        let deadline = match (self.deadline, outer.deadline) {
            (Some(own), Some(outer)) => Some(own.min(outer)),
            (own, outer) => own.or(outer),
        };
        let (token, transaction_token) = (self.token.clone(), outer.token.clone());
        Self {
            deadline,
            token,
            transaction_token,
            budget: self.budget.clone().or_else(|| outer.budget.clone()),
            ..Self::default()
        }
    }

    /// Gives the call this budget.
    #[cfg(feature = "async")]
    pub(crate) fn limit_to(&mut self, budget: &WaitBudget) {
        self.budget = Some(budget.clone());
    }

    /// Returns the budget of a call that must not wait.
    pub(crate) fn budget(&self) -> Option<&WaitBudget> {
        self.budget.as_ref().filter(|budget| budget.is_limited())
    }

    /// Returns an interrupt with the budget alone.
    pub(crate) fn only_budget(&self) -> Self {
        Self { budget: self.budget.clone(), ..Self::default() }
    }

    /// Replaces the caller's token by a child of it, and returns the child.
    #[cfg(feature = "async")]
    pub(crate) fn child_token(&mut self) -> CancelToken {
        let child = self.token.as_ref().map_or_else(CancelToken::new, CancelToken::child);
        self.token = Some(child.clone());
        child
    }

    /// Returns the time of the deadline.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.deadline
    }

    /// Counts a row; checks every [`ROWS_PER_CHECK`] rows.
    #[inline]
    pub(crate) fn tick(&mut self) -> Result<()> {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(ROWS_PER_CHECK) { self.check_rows() } else { Ok(()) }
    }

    /// Counts several rows. Checks once if [`tick`](Self::tick) would have checked for any of them.
    #[inline]
    pub(crate) fn tick_by(&mut self, rows: u64) -> Result<()> {
        let before = self.ticks / ROWS_PER_CHECK;
        self.ticks = self.ticks.wrapping_add(u32::try_from(rows).unwrap_or(ROWS_PER_CHECK));
        if self.ticks / ROWS_PER_CHECK == before { Ok(()) } else { self.check_rows() }
    }

    fn check_rows(&self) -> Result<()> {
        self.budget().map_or_else(|| self.check(), |budget| Err(budget.spend()))
    }

    /// Like [`check`](Self::check), for the evaluation of an expression.
    pub(crate) fn check_evaluation(&self) -> slate_query::Result<()> {
        self.check().map_err(|error| slate_query::Error::new(Code(error.code()), error.message().to_owned()))
    }

    /// Fails if the deadline has passed or a token was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        [&self.token, &self.transaction_token].into_iter().flatten().try_for_each(CancelToken::check)?;
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(past_deadline());
        }
        Ok(())
    }
}
