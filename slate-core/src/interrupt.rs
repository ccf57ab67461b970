use std::{
    collections::BTreeMap,
    future::poll_fn,
    mem,
    sync::{
        Arc, LazyLock, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence},
    },
    task::{Poll, Wake, Waker},
    time::{Duration, Instant},
};

use slate_query::{Code, work};
use slate_store::View;

use crate::{Error, ErrorKind, Result};

/// Cancels, from any thread, the operations that hold a clone of the token.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<CancelNode>);

#[derive(Debug, Default)]
struct CancelNode {
    cancelled: AtomicBool,
    parent: Option<CancelToken>,
    /// The wakers to call; created by the first one.
    waiting: OnceLock<Mutex<BTreeMap<u64, Waker>>>,
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes every operation that holds a clone fail with [`ErrorKind::Interrupted`] at its next check. Operations check
    /// every few hundred rows, and every fraction of a millisecond within a document. Cancelling cannot be undone.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
        // Either this call sees the waker, or its owner's check after the registration sees the cancellation.
        fence(Ordering::SeqCst);
        if let Some(waiting) = self.0.waiting.get() {
            let woken = mem::take(&mut *waiting.lock().unwrap_or_else(PoisonError::into_inner));
            woken.into_values().for_each(Waker::wake);
        }
    }

    /// Creates a token that is cancelled with this one, and can be cancelled alone: for example, one per request below the
    /// token of a service.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(CancelNode { parent: Some(self.clone()), ..CancelNode::default() }))
    }

    /// Returns whether this token or one of its ancestors was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.ancestry().any(|token| token.0.cancelled.load(Ordering::Relaxed))
    }

    /// Returns a future that completes when this token or one of its ancestors is cancelled. It needs no runtime.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let (token, mut waiting) = (self.clone(), None);
        poll_fn(move |context| {
            // Registered before the check, so that no cancellation is missed.
            drop(waiting.replace(token.wake_on_cancel(context.waker())));
            if token.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// Wakes `waker` when the token or one of its ancestors is cancelled. It is not woken for an earlier
    /// cancellation: the caller must check the token once more after this call.
    pub(crate) fn wake_on_cancel(&self, waker: &Waker) -> WakeOnCancel {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        for token in self.ancestry() {
            let waiting = token.0.waiting.get_or_init(Mutex::default);
            waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(number, waker.clone());
        }
        fence(Ordering::SeqCst);
        WakeOnCancel { token: self.clone(), number }
    }

    /// Cancels `other` when this token is cancelled, until the returned value is dropped.
    pub(crate) fn cancels(&self, other: &Self) -> WakeOnCancel {
        /// Cancels a token in place of waking a task.
        struct Canceller(CancelToken);

        impl Wake for Canceller {
            fn wake(self: Arc<Self>) {
                self.0.cancel();
            }
        }

        let cancels = self.wake_on_cancel(&Arc::new(Canceller(other.clone())).into());
        if self.is_cancelled() {
            other.cancel();
        }
        cancels
    }

    fn ancestry(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |token| token.0.parent.as_ref())
    }

    /// Fails if the token was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.is_cancelled() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Interrupted, Code::INTERRUPTED, "the operation was cancelled"))
    }
}

/// The registration of a waker at a token, until this is dropped.
#[derive(Debug)]
pub(crate) struct WakeOnCancel {
    token: CancelToken,
    number: u64,
}

impl Drop for WakeOnCancel {
    fn drop(&mut self) {
        for token in self.token.ancestry() {
            let Some(waiting) = token.0.waiting.get() else { continue };
            let removed = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
            // Dropped without the lock: a waker may own its task, whose drop removes other registrations.
            drop(removed);
        }
    }
}

/// The deadline and the cancel tokens that can end an operation early. Without any of them it costs nothing to clone and to check.
///
/// The nodes of a plan have clones, which share the deadline: a cursor that continues after a pause gets a new one for all its nodes
/// ([`renew`](Self::renew)).
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    ends: Option<Arc<InterruptEnds>>,
    ticks: u32,
}

/// The limits that can end an operation.
#[derive(Clone, Debug, Default)]
struct InterruptEnds {
    deadline: SharedDeadline,
    token: Option<CancelToken>,
    /// The token of the operation's transaction, if it has one.
    transaction_token: Option<CancelToken>,
    budget: Option<WaitBudget>,
}

/// A time that can be replaced while other threads read it: nanoseconds since [`DEADLINES_SINCE`].
#[derive(Debug)]
struct SharedDeadline(AtomicU64);

/// The value of a [`SharedDeadline`] that never passes.
const NEVER: u64 = u64::MAX;

/// The time from which a [`SharedDeadline`] counts: the first use of one.
static DEADLINES_SINCE: LazyLock<Instant> = LazyLock::new(Instant::now);

impl SharedDeadline {
    fn new(end: Option<Instant>) -> Self {
        let deadline = Self::default();
        deadline.set(end);
        deadline
    }

    fn set(&self, end: Option<Instant>) {
        let since = |end: Instant| u64::try_from(end.saturating_duration_since(*DEADLINES_SINCE).as_nanos()).ok();
        self.0.store(end.and_then(since).unwrap_or(NEVER), Ordering::Relaxed);
    }

    fn get(&self) -> Option<Instant> {
        let since = self.0.load(Ordering::Relaxed);
        if since == NEVER { None } else { DEADLINES_SINCE.checked_add(Duration::from_nanos(since)) }
    }
}

impl Default for SharedDeadline {
    fn default() -> Self {
        Self(AtomicU64::new(NEVER))
    }
}

impl Clone for SharedDeadline {
    fn clone(&self) -> Self {
        Self::new(self.get())
    }
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
    /// The time from the start of the call.
    Within(Duration),
    /// The deadline of a call that has begun.
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
        if self.deadline.is_none() && self.token.is_none() && self.budget.is_none() {
            return Interrupt::default();
        }
        let (token, budget) = (self.token.clone(), self.budget.clone());
        let deadline = SharedDeadline::new(self.end());
        Interrupt::of(InterruptEnds { deadline, token, transaction_token: None, budget })
    }

    /// Returns these limits with the budget.
    #[cfg(feature = "async")]
    pub(crate) fn within(&self, budget: &WaitBudget) -> Self {
        Self { budget: Some(budget.clone()), ..self.clone() }
    }

    /// Returns the budget of a call that must not wait; `None` if it may wait.
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

    /// Returns the time left for a call that begins now; `None` without a deadline.
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

/// The states of a [`WaitBudget`] that the call has spent, and of one that limits nothing any more. The first state
/// is 0.
const SPENT: u8 = 1;
const LIFTED: u8 = 2;

impl WaitBudget {
    /// Lifts the limit of a call that has not spent it, because it continues on a thread that may wait.
    pub(crate) fn lift(&self) {
        if !self.is_spent() {
            self.0.store(LIFTED, Ordering::Relaxed);
        }
    }

    fn is_limited(&self) -> bool {
        self.0.load(Ordering::Relaxed) != LIFTED
    }

    /// Returns whether the call would have had to wait. Then it has no result, whatever it returned.
    pub(crate) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == SPENT
    }

    /// Spends the budget. Returns an error that ends the call early; it is discarded with the call's result, because
    /// [`is_spent`](Self::is_spent) is then true.
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
    fn of(ends: InterruptEnds) -> Self {
        Self { ends: Some(Arc::new(ends)), ticks: 0 }
    }

    /// Returns the limits for a change; clones do not see the change.
    fn own(&mut self) -> &mut InterruptEnds {
        Arc::make_mut(self.ends.get_or_insert_default())
    }

    pub(crate) fn deadline(&mut self, within: Duration) {
        // A deadline that the clock cannot represent never passes.
        self.end_at(Instant::now().checked_add(within));
    }

    /// Sets the deadline; `None` removes it.
    pub(crate) fn end_at(&mut self, end: Option<Instant>) {
        self.own().deadline.set(end);
    }

    pub(crate) fn cancel(&mut self, token: CancelToken) {
        self.own().token = Some(token);
    }

    /// Returns an interrupt of the same operation whose deadline can be [renewed](Self::renew).
    pub(crate) fn renewable(mut self) -> Self {
        self.own();
        self
    }

    /// Replaces the deadline of all clones. Does nothing if this was created without limits and is not
    /// [`renewable`](Self::renewable).
    pub(crate) fn renew(&self, end: Option<Instant>) {
        if let Some(ends) = &self.ends {
            ends.deadline.set(end);
        }
    }

    /// Combines an operation's interrupt with that of its transaction, `outer`: the earlier deadline, both tokens,
    /// and the operation's budget, or else the transaction's.
    pub(crate) fn or(&self, outer: &Self) -> Self {
        let (Some(own), Some(outer)) = (&self.ends, &outer.ends) else {
            return if self.ends.is_some() { self.clone() } else { outer.clone() };
        };
        let deadline = match (own.deadline.get(), outer.deadline.get()) {
            (Some(own), Some(outer)) => Some(own.min(outer)),
            (own, outer) => own.or(outer),
        };
        Self::of(InterruptEnds {
            deadline: SharedDeadline::new(deadline),
            token: own.token.clone(),
            transaction_token: outer.token.clone(),
            budget: own.budget.clone().or_else(|| outer.budget.clone()),
        })
    }

    /// Sets the budget of the call.
    pub(crate) fn limit_to(&mut self, budget: &WaitBudget) {
        self.own().budget = Some(budget.clone());
    }

    /// Returns the budget of a call that must not wait; `None` if it may wait.
    pub(crate) fn budget(&self) -> Option<&WaitBudget> {
        self.ends.as_ref()?.budget.as_ref().filter(|budget| budget.is_limited())
    }

    /// Returns an interrupt that has only the budget.
    pub(crate) fn only_budget(&self) -> Self {
        let budget = self.ends.as_ref().and_then(|ends| ends.budget.clone());
        budget.map_or_else(Self::default, |budget| {
            Self::of(InterruptEnds { budget: Some(budget), ..InterruptEnds::default() })
        })
    }

    /// Replaces the caller's token by a child of it, or by a new token if there is none, and returns that.
    #[cfg(feature = "async")]
    pub(crate) fn child_token(&mut self) -> CancelToken {
        let own = self.own();
        let child = own.token.as_ref().map_or_else(CancelToken::new, CancelToken::child);
        own.token = Some(child.clone());
        child
    }

    /// Returns the deadline; `None` without one.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.ends.as_ref()?.deadline.get()
    }

    /// Counts a row; checks every [`ROWS_PER_CHECK`] rows.
    #[inline]
    pub(crate) fn tick(&mut self) -> Result<()> {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(ROWS_PER_CHECK) { self.check_rows() } else { Ok(()) }
    }

    fn check_rows(&self) -> Result<()> {
        self.budget().map_or_else(|| self.check(), |budget| Err(budget.spend()))
    }

    /// Calls `work` on this thread; ends evaluations within a document early if a limit is reached; see
    /// [`slate_query::work`].
    pub(crate) fn during<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let Some(ends) = &self.ends else { return work() };
        if self.budget().is_some() {
            work::restart();
        }
        let limit: Arc<dyn work::Limit> = Arc::clone(ends) as _;
        match work::during(limit, work) {
            Ok(result) => result,
            // If this interrupt has not ended, an outer one has, and `error` is its error.
            Err(error) => self.check_rows().and(Err(error.into())),
        }
    }

    /// Wakes `waker` when a token is cancelled. The caller must [check](Self::check) once more after this call.
    pub(crate) fn wake_on_cancel(&self, waker: &Waker) -> Vec<WakeOnCancel> {
        let tokens = self.ends.iter().flat_map(|ends| [&ends.token, &ends.transaction_token]).flatten();
        tokens.map(|token| token.wake_on_cancel(waker)).collect()
    }

    /// Fails if the deadline has passed or a token was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        self.ends.as_ref().map_or(Ok(()), |ends| ends.check())
    }

    /// Returns the view with cursors that check the limits while they pass ranges without keys. `None` without limits, and on a store on this
    /// machine, whose cursors do not pass such ranges.
    pub(crate) fn ending<V: View>(&self, view: &V) -> Option<V> {
        let ends = Arc::clone(self.ends.as_ref().filter(|_| view.round_trips().is_some())?);
        let interrupted =
            |error| slate_store::Error::Interrupted(Box::new(slate_store::Context::new("").because(error)));
        Some(view.ended_by(Arc::new(move || ends.check().map_err(interrupted))))
    }
}

impl InterruptEnds {
    fn check(&self) -> Result<()> {
        [&self.token, &self.transaction_token].into_iter().flatten().try_for_each(CancelToken::check)?;
        if self.deadline.get().is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(past_deadline());
        }
        Ok(())
    }
}

impl work::Limit for InterruptEnds {
    /// A call with a budget spends it rather than evaluate one document for long.
    fn check(&self) -> slate_query::Result<()> {
        let checked = match self.budget.as_ref().filter(|budget| budget.is_limited()) {
            Some(budget) => Err(budget.spend()),
            None => self.check(),
        };
        checked.map_err(|error| slate_query::Error::new(Code(error.code()), error.message().to_owned()))
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline.get()
    }
}

/// Counts and limits how often a call checks whether it must end.
#[cfg(test)]
pub(crate) mod looks {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        time::Instant,
    };

    use slate_query::{
        Code, Error,
        work::{self, Limit},
    };

    use crate::Result;

    /// The number of checks that are left.
    struct Looks(AtomicUsize);

    impl Limit for Looks {
        fn check(&self) -> slate_query::Result<()> {
            let left = self.0.load(Relaxed);
            self.0.store(left.saturating_sub(1), Relaxed);
            if left > 0 { Ok(()) } else { Err(Error::new(Code::INTERRUPTED, "no looks left")) }
        }

        fn deadline(&self) -> Option<Instant> {
            None
        }
    }

    /// Calls `work` and returns how often it has checked whether it must end.
    pub(crate) fn of<R>(work: impl FnOnce() -> Result<R>) -> usize {
        let looks = Arc::new(Looks(AtomicUsize::new(usize::MAX)));
        work::during(looks.clone(), || work().unwrap()).unwrap();
        usize::MAX - looks.0.load(Relaxed)
    }

    /// Calls `work` and ends the call after this number of checks. Panics unless `work` then fails.
    pub(crate) fn end_after<R>(looks: usize, work: impl FnOnce() -> Result<R>) {
        let mut is_ended = false;
        let ended = work::during(Arc::new(Looks(AtomicUsize::new(looks))), || is_ended = work().is_err());
        assert!(ended.is_err() && is_ended, "it did not end after {looks} looks");
    }
}
