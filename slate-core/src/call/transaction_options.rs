use std::time::{Duration, Instant};

use crate::{
    CancelToken, Durability, Isolation,
    call::retry::{FIRST_PAUSE, LONGEST_PAUSE, Retry},
    interrupt::{CallLimits, Interrupt},
    write::BeginOptions,
};

/// The isolation, durability, limits and retries of a transaction; see
/// [`Database::transact_with`](crate::Database::transact_with) and [`Database::begin_with`](crate::Database::begin_with).
///
/// ```
/// use std::time::Duration;
/// use slate_core::{Durability, Isolation, TransactionOptions};
///
/// let options = TransactionOptions::new()
///     .isolation(Isolation::Serializable)
///     .durability(Durability::Sync)
///     .deadline(Duration::from_secs(2))
///     .retries(20)
///     .backoff(Duration::from_millis(1), Duration::from_millis(100));
/// ```
#[derive(Clone, Debug)]
#[must_use = "options are for `Database::transact_with` and `begin_with`"]
pub struct TransactionOptions {
    isolation: Isolation,
    durability: Option<Durability>,
    lock_timeout: Option<Duration>,
    deadline: Option<Duration>,
    cancel: Option<CancelToken>,
    retries: u32,
    first_pause: Duration,
    longest_pause: Duration,
    is_detached: bool,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self {
            isolation: Isolation::Snapshot,
            durability: None,
            lock_timeout: None,
            deadline: None,
            cancel: None,
            retries: u32::MAX,
            first_pause: FIRST_PAUSE,
            longest_pause: LONGEST_PAUSE,
            is_detached: false,
        }
    }
}

impl TransactionOptions {
    /// Creates options with snapshot isolation, the database's durability and lock timeout, no deadline, and retries until
    /// the lock timeout.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the isolation. The default is [`Isolation::Snapshot`].
    ///
    /// At both levels, a transaction reads one commit, and of two transactions that write the same document the first to
    /// commit wins. With [`Isolation::Serializable`] it also conflicts if another commit changed what it read: a document
    /// that it read by its `_id`, or any document of a collection that it queried or counted, or in which one of its
    /// writes was rejected. The result is as if the serializable transactions had run one after the other. Other
    /// transactions are not delayed and do not conflict more often. A transaction that only reads never conflicts.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Sets the durability of the transaction's commit. By default it is the database's durability.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Sets for how long the transaction is retried after conflicts, instead of the database's lock timeout: at least once, unless it is zero. Also
    /// bounds each wait for a store on a network.
    pub fn lock_timeout(mut self, lock_timeout: Duration) -> Self {
        self.lock_timeout = Some(lock_timeout);
        self
    }

    /// Sets the time from the beginning within which the whole transaction must end, with retries and waits. After it, calls
    /// in the transaction and its commit fail with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted). It replaces
    /// the lock timeout as the limit of retries.
    pub fn deadline(mut self, within: Duration) -> Self {
        self.deadline = Some(within);
        self
    }

    /// Ends the transaction, with nothing changed, when the token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Allows the thread or task that begins the transaction to write outside of it while it is open, which fails otherwise. For servers, whose
    /// threads and tasks serve the sessions of many clients.
    pub fn detached(mut self) -> Self {
        self.is_detached = true;
        self
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.is_detached
    }

    /// Returns the options with a child of the caller's token, and that child.
    #[cfg(feature = "async")]
    pub(crate) fn cancellable(&self) -> (Self, CancelToken) {
        let token = self.cancel.as_ref().map_or_else(CancelToken::new, CancelToken::child);
        (self.clone().cancel(token.clone()), token)
    }

    /// Returns the options with the limits of a handle in place of those that are not set.
    pub(crate) fn limited(&self, limits: &CallLimits) -> Self {
        let mut options = self.clone();
        options.deadline = options.deadline.or_else(|| limits.left());
        options.cancel = options.cancel.or_else(|| limits.token().cloned());
        options
    }

    /// Sets the maximum number of retries, within the time limit.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets the pause before the first retry and the longest pause. Pauses double and vary randomly. The defaults are 50 µs
    /// and 20 ms.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first_pause = first;
        self.longest_pause = longest;
        self
    }

    /// Starts the clock of the deadline and the lock timeout.
    pub(crate) fn start(&self, lock_timeout: Duration) -> Started {
        let wait = self.lock_timeout.unwrap_or(lock_timeout);
        let mut limits = Interrupt::default();
        if let Some(deadline) = self.deadline {
            limits.deadline(deadline);
        }
        if let Some(token) = &self.cancel {
            limits.cancel(token.clone());
        }
        let retry = Retry {
            within: self.deadline.unwrap_or(wait),
            retries: self.retries,
            first_pause: self.first_pause,
            longest_pause: self.longest_pause,
            limits,
        };
        Started { isolation: self.isolation, durability: self.durability, wait, retry }
    }
}

/// The options of a started transaction: its deadline is an instant.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    isolation: Isolation,
    pub(crate) durability: Option<Durability>,
    wait: Duration,
    pub(crate) retry: Retry,
}

impl Started {
    /// Whether the deadline has passed, or is so near that no further attempt begins.
    pub(crate) fn is_over(&self) -> bool {
        let soon = Instant::now() + 2 * self.retry.longest_pause;
        self.retry.limits.end().is_some_and(|end| end <= soon)
    }

    pub(crate) fn begin_options(&self) -> BeginOptions {
        let left = self.retry.limits.end().map(|end| end.saturating_duration_since(Instant::now()));
        let wait = left.map_or(self.wait, |left| left.min(self.wait));
        BeginOptions { wait, isolation: self.isolation, limits: self.retry.limits.clone(), announced: None }
    }
}
