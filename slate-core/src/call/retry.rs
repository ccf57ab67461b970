use std::time::{Duration, Instant};

use crate::{
    Error,
    commit::{Turn, Turns},
    interrupt::Interrupt,
    metrics::Observer,
};

/// The pause before the first retry, about the duration of a small transaction, and the longest pause.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_micros(50);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The limits for retrying a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    /// The time after the start of the first attempt within which others begin. The second one may also begin later; zero allows only the first.
    pub(crate) within: Duration,
    /// Maximum number of attempts after the first.
    pub(crate) retries: u32,
    pub(crate) first_pause: Duration,
    pub(crate) longest_pause: Duration,
    /// The caller's deadline and cancellation, which end the retries.
    pub(crate) limits: Interrupt,
}

/// The error of an attempt, and whether another attempt can succeed.
pub(crate) struct Failure<E> {
    pub(crate) error: E,
    pub(crate) is_retryable: bool,
    /// Whether the next attempt may wait for its turn instead of a pause.
    pub(crate) takes_turn: bool,
}

impl<E: From<Error>> From<Error> for Failure<E> {
    fn from(error: Error) -> Self {
        Self { is_retryable: error.is_retryable(), error: error.into(), takes_turn: true }
    }
}

/// The number of conflicting attempts after which a single write takes a turn.
const ATTEMPTS_BEFORE_TURN: u32 = 2;

/// The longest time that all new writes wait for a write that conflicts in its turn, and the longest attempt for which they wait. A longer one is not
/// worth the delay of all others.
const LONGEST_EXCLUSIVE: Duration = Duration::from_millis(100);

/// Retries until an attempt succeeds, fails with another error than a conflict, or the limits are reached.
///
/// With `turns`, a write that has conflicted repeatedly waits for its turn instead of pausing; the turn lasts until the write ends. If it conflicts
/// in its turn, too, and the attempt was short, new writes wait before they begin, at most [`LONGEST_EXCLUSIVE`]. The only code of the caller that
/// may run in a turn is `on_slow_query`.
pub(crate) fn on_conflict<R, E: From<Error>>(
    retry: &Retry,
    turns: Option<&Turns>,
    observer: &Observer,
    mut attempt: impl FnMut() -> Result<R, Failure<E>>,
) -> Result<R, E> {
    if let Some(turns) = turns {
        let left = retry.limits.end().map(|end| end.saturating_duration_since(Instant::now()));
        turns.make_way(left.map_or(LONGEST_EXCLUSIVE, |left| left.min(LONGEST_EXCLUSIVE)));
    }
    let mut attempts = Attempts::new(retry, observer);
    let mut turn: Option<Turn<'_>> = None;
    loop {
        let began = turn.as_ref().map(|_| Instant::now());
        let failure = match attempt() {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        let takes_turn = failure.takes_turn;
        let pause = attempts.pause_after(failure)?;
        match turns.filter(|_| takes_turn && attempts.begun > ATTEMPTS_BEFORE_TURN) {
            None => std::thread::sleep(pause),
            Some(turns) => match (&turn, began) {
                (Some(turn), Some(began)) => turn.set_exclusive(began.elapsed() <= LONGEST_EXCLUSIVE),
                _ => turn = turns.take(attempts.time_left(), &retry.limits)?,
            },
        }
    }
}

/// Counts the attempts of one transaction and limits them.
pub(crate) struct Attempts<'r> {
    retry: &'r Retry,
    observer: &'r Observer,
    start: Instant,
    pause: Duration,
    left: u32,
    begun: u32,
}

impl<'r> Attempts<'r> {
    /// Begins the first attempt.
    pub(crate) fn new(retry: &'r Retry, observer: &'r Observer) -> Self {
        Self { retry, observer, start: Instant::now(), pause: retry.first_pause, left: retry.retries, begun: 1 }
    }

    /// Returns the rest of [`Retry::within`].
    fn time_left(&self) -> Duration {
        self.retry.within.saturating_sub(self.start.elapsed())
    }

    /// Returns how long to wait before the next attempt. The pause doubles with each attempt and is randomized by the
    /// clock, so that two writers do not conflict again.
    ///
    /// # Errors
    /// The failure's, if another attempt cannot succeed or the limits of retries are reached; `Interrupted` if the call's limits have ended it.
    pub(crate) fn pause_after<E: From<Error>>(&mut self, failure: Failure<E>) -> Result<Duration, E> {
        if failure.is_retryable {
            // The time that the attempt waited for other writers counts.
            self.retry.limits.check()?;
        }
        // The first attempt can use up the time: on a shared store it waits for the locks of a process that has ended. So there is a second one.
        let is_last = self.begun > 1 || self.retry.within.is_zero();
        if !failure.is_retryable || self.left == 0 || (is_last && self.start.elapsed() >= self.retry.within) {
            return Err(failure.error);
        }
        let pause = jittered(self.pause, self.start.elapsed().subsec_nanos());
        if self.retry.limits.end().is_some_and(|end| Instant::now().checked_add(pause).is_none_or(|at| at >= end)) {
            return Err(failure.error);
        }
        self.begun += 1;
        self.observer.retried(self.begun, pause);
        self.pause = self.pause.saturating_mul(2).min(self.retry.longest_pause);
        self.left -= 1;
        Ok(pause)
    }
}

/// Varies a pause randomly between half of it and one and a half times.
fn jittered(pause: Duration, noise: u32) -> Duration {
    pause / 2 + pause.saturating_mul(noise % 1_000) / 1_000
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        collections::BTreeSet,
        sync::atomic::{AtomicU64, Ordering},
        thread,
    };

    use slate_query::Code;

    use super::*;
    use crate::{ErrorKind, Result, metrics::Observer};

    #[test]
    fn pauses_vary_around_their_length() {
        let pause = Duration::from_micros(50);
        let pauses: BTreeSet<Duration> = (0..5_000).map(|noise| jittered(pause, noise)).collect();
        assert_eq!(pauses.first(), Some(&(pause / 2)));
        assert!(pauses.last().is_some_and(|longest| *longest < pause * 3 / 2));
        assert_eq!(pauses.len(), 1_000);
    }

    /// Runs attempts that all conflict; returns how many there were, and the error.
    fn attempts(retry: &Retry) -> (u32, ErrorKind) {
        let attempts = Cell::new(0);
        let result: Result<()> = on_conflict(retry, None, &Observer::default(), || {
            attempts.set(attempts.get() + 1);
            Err(Error::new(ErrorKind::Conflict, Code::WRITE_CONFLICT, "a conflict").into())
        });
        (attempts.get(), result.unwrap_err().kind())
    }

    #[test]
    fn attempts_end_with_their_number_with_the_time_and_with_the_cancellation() {
        let (first_pause, longest_pause) = (Duration::from_micros(1), Duration::from_micros(2));
        let hour = Duration::from_secs(3_600);
        let endless =
            Retry { within: hour, retries: u32::MAX, first_pause, longest_pause, limits: Interrupt::default() };
        assert_eq!(attempts(&Retry { retries: 3, ..endless.clone() }), (4, ErrorKind::Conflict));
        assert_eq!(attempts(&Retry { within: Duration::ZERO, ..endless.clone() }), (1, ErrorKind::Conflict));
        let (count, kind) = attempts(&Retry { within: Duration::from_millis(20), ..endless.clone() });
        assert!(count > 1 && kind == ErrorKind::Conflict);
        // The time is over after the first attempt.
        let (count, kind) = attempts(&Retry { within: Duration::from_nanos(1), ..endless.clone() });
        assert_eq!((count, kind), (2, ErrorKind::Conflict));
        let mut limits = Interrupt::default();
        let token = crate::CancelToken::new();
        token.cancel();
        limits.cancel(token);
        assert_eq!(attempts(&Retry { limits, ..endless }), (1, ErrorKind::Interrupted));
    }

    #[test]
    fn turns_bound_the_retries_of_64_writers_of_one_document() {
        const WRITERS: u64 = 64;
        const CALLS: u64 = 50 * WRITERS;
        let (turns, observer, document) = (Turns::default(), Observer::default(), AtomicU64::new(0));
        let (within, no_pause) = (Duration::from_secs(3_600), Duration::ZERO);
        let limits = Interrupt::default();
        let retry = Retry { within, retries: u32::MAX, first_pause: no_pause, longest_pause: no_pause, limits };
        // Fails as in a store if another writer has committed since the attempt began. All others can run meanwhile.
        let increment = || {
            let seen = document.load(Ordering::SeqCst);
            thread::yield_now();
            let committed = document.compare_exchange(seen, seen + 1, Ordering::SeqCst, Ordering::SeqCst);
            committed.map_err(|_| Error::new(ErrorKind::Conflict, Code::WRITE_CONFLICT, "a conflict").into())
        };
        thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| {
                    for _ in 0..CALLS / WRITERS {
                        on_conflict::<_, Error>(&retry, Some(&turns), &observer, increment).unwrap();
                    }
                });
            }
        });
        assert_eq!(document.into_inner(), CALLS);
        // A call conflicts at most twice without a turn. One call at a time has a turn, so a commit makes at most one of these conflict.
        let retries = observer.metrics().retries;
        assert!(retries <= 3 * CALLS, "{retries} retries of {CALLS} calls");
    }

    #[test]
    fn a_pause_that_never_ends_is_beyond_every_deadline() {
        let hour = Duration::from_secs(3_600);
        let mut limits = Interrupt::default();
        limits.deadline(hour);
        let retry =
            Retry { within: hour, retries: 5, first_pause: Duration::MAX, longest_pause: Duration::MAX, limits };
        assert_eq!(attempts(&retry), (1, ErrorKind::Conflict));
    }
}
