use std::time::{Duration, Instant};

use crate::{Error, interrupt::Interrupt, metrics::Observer};

/// The pause before the first retry: about the duration of a small transaction.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_micros(50);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The limits for retrying a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    /// The time after the first attempt within which the last one must begin.
    pub(crate) within: Duration,
    /// The most attempts after the first.
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
}

impl<E: From<Error>> From<Error> for Failure<E> {
    fn from(error: Error) -> Self {
        Self { is_retryable: error.is_retryable(), error: error.into() }
    }
}

/// Retries until an attempt succeeds, fails with another error than a conflict, or the limits are reached.
///
/// The pause doubles with each attempt, and is randomized by the clock so that two writers do not conflict again.
pub(crate) fn on_conflict<R, E: From<Error>>(
    retry: &Retry,
    observer: &Observer,
    mut attempt: impl FnMut() -> Result<R, Failure<E>>,
) -> Result<R, E> {
    let start = Instant::now();
    let mut pause = retry.first_pause;
    let mut left = retry.retries;
    loop {
        let failure = match attempt() {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        if !failure.is_retryable || left == 0 || start.elapsed() >= retry.within {
            return Err(failure.error);
        }
        let noise = start.elapsed().subsec_nanos() % 1_000;
        let spread = pause / 2 + pause.saturating_mul(noise) / 1_000;
        if retry.limits.end().is_some_and(|end| Instant::now() + spread >= end) {
            return Err(failure.error);
        }
        retry.limits.check()?;
        observer.retried();
        std::thread::sleep(spread);
        pause = pause.saturating_mul(2).min(retry.longest_pause);
        left -= 1;
    }
}
