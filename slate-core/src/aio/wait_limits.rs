use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use crate::{
    CancelToken, Error, Result,
    interrupt::{Interrupt, WakeOnCancel},
};

/// A clock: returns a future that completes at this time. The library itself has none that wakes a task.
pub type Sleep = fn(Instant) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// The limits of a call while it waits for a thread.
pub(super) struct WaitLimits {
    /// Cancelled when the call's future is dropped.
    abandoned: CancelToken,
    /// The limits of the call.
    interrupt: Interrupt,
    /// Wakes the call at its deadline. Without it a call past its deadline ends when it is polled or a thread begins it.
    sleep: Option<Sleep>,
}

impl From<CancelToken> for WaitLimits {
    fn from(abandoned: CancelToken) -> Self {
        Self { abandoned, interrupt: Interrupt::default(), sleep: None }
    }
}

impl WaitLimits {
    /// Returns the limits of a call that has begun, with a new token for its future.
    pub(super) fn of(interrupt: Interrupt, sleep: Option<Sleep>) -> Self {
        Self { abandoned: CancelToken::new(), interrupt, sleep }
    }

    /// Returns the token to cancel when the call's future is dropped.
    pub(super) fn abandoned(&self) -> CancelToken {
        self.abandoned.clone()
    }

    /// Fails if a limit has ended the wait.
    fn check(&self) -> Result<()> {
        self.abandoned.check()?;
        self.interrupt.check()
    }
}

/// The wait of a call for a thread.
pub(super) struct Patience {
    limits: WaitLimits,
    timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Registrations that wake the waiting task at a cancellation.
    wakes: Vec<WakeOnCancel>,
}

impl Patience {
    pub(super) fn new(limits: WaitLimits) -> Self {
        let timer = limits.sleep.and_then(|sleep| Some(sleep(limits.interrupt.end()?)));
        Self { limits, timer, wakes: Vec::new() }
    }

    /// Completes with the error of the call when a limit ends the wait.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Error> {
        // Registered before the check, so that no cancellation is missed.
        let mut wakes = self.limits.interrupt.wake_on_cancel(context.waker());
        wakes.push(self.limits.abandoned.wake_on_cancel(context.waker()));
        self.wakes = wakes;
        if self.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(context).is_ready()) {
            self.timer = None;
        }
        match self.limits.check() {
            Ok(()) => Poll::Pending,
            Err(ended) => Poll::Ready(ended),
        }
    }
}
