use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Wake,
    time::{Duration, Instant},
};

use crate::{Result, interrupt::Interrupt};

/// The turns of single writes that conflict repeatedly, first come, first served.
///
/// Of the writers of one document, the first to commit succeeds and the others are retried. Without turns, a write that has
/// conflicted several times would be as likely to conflict as a new one. With a turn it competes only with new writes and open
/// transactions, and each time it conflicts, one of them has committed. A write that takes longer than they do would conflict
/// each time, so its turn becomes exclusive: new writes then wait a little before they begin.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    state: Arc<Mutex<TurnState>>,
    /// Whether new writes wait until the turn is over. Changed under the lock.
    is_exclusive: AtomicBool,
    /// Notified when an exclusive turn is over.
    is_over: Condvar,
}

#[derive(Debug, Default)]
struct TurnState {
    is_taken: bool,
    /// Each waiter has its own condition variable, so that the end of a turn wakes only the next one.
    waiting: VecDeque<Arc<Condvar>>,
    /// The waiter that received the turn and has not woken up yet.
    next: Option<Arc<Condvar>>,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'t>(&'t Turns);

impl Turns {
    /// Returns whether new writes have to wait.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.is_exclusive.load(Ordering::Relaxed)
    }

    /// Waits until no turn is exclusive, for at most `wait`.
    pub(crate) fn make_way(&self, wait: Duration) {
        if self.is_exclusive() {
            let is_exclusive = |_: &mut TurnState| self.is_exclusive();
            drop(self.is_over.wait_timeout_while(self.lock(), wait, is_exclusive));
        }
    }

    /// Waits for a turn; `None` after `wait`.
    ///
    /// # Errors
    /// Fails when the deadline of `limits` has passed or one of their tokens is cancelled.
    pub(crate) fn take(&self, wait: Duration, limits: &Interrupt) -> Result<Option<Turn<'_>>> {
        let mut state = self.lock();
        if !state.is_taken {
            state.is_taken = true;
            return Ok(Some(Turn(self)));
        }
        // A wait beyond the range of `Instant` has no deadline.
        let deadline = [Instant::now().checked_add(wait), limits.end()].into_iter().flatten().min();
        let wake = Arc::new(Condvar::new());
        state.waiting.push_back(Arc::clone(&wake));
        drop(state);
        // Registered before the first check, so that no cancellation is missed in between.
        let waiter = WaitingWrite { turns: Arc::clone(&self.state), wake: Arc::clone(&wake) };
        let _wakes = limits.wake_on_cancel(&Arc::new(waiter).into());
        let mut state = self.lock();
        loop {
            if state.next.as_ref().is_some_and(|next| Arc::ptr_eq(next, &wake)) {
                state.next = None;
                return Ok(Some(Turn(self)));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let ended = limits.check();
            if ended.is_err() || left == Some(Duration::ZERO) {
                state.waiting.retain(|waiting| !Arc::ptr_eq(waiting, &wake));
                return ended.map(|()| None);
            }
            state = match left {
                Some(left) => wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn set_exclusive(&self, _: &TurnState, is_exclusive: bool) {
        if self.is_exclusive.swap(is_exclusive, Ordering::Relaxed) && !is_exclusive {
            self.is_over.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, TurnState> {
        // No code under this lock can panic between two dependent updates.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes a write that waits for its turn when its token is cancelled.
struct WaitingWrite {
    turns: Arc<Mutex<TurnState>>,
    wake: Arc<Condvar>,
}

impl Wake for WaitingWrite {
    fn wake(self: Arc<Self>) {
        // While this holds the lock, the write either waits already or has yet to check its token.
        let _state = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        self.wake.notify_one();
    }
}

impl Turn<'_> {
    /// Sets whether new writes wait until the turn is over.
    pub(crate) fn set_exclusive(&self, is_exclusive: bool) {
        self.0.set_exclusive(&self.0.lock(), is_exclusive);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        self.0.set_exclusive(&state, false);
        match state.waiting.pop_front() {
            Some(next) => {
                next.notify_one();
                state.next = Some(next);
            }
            None => state.is_taken = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::CancelToken;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn turns_are_taken_in_the_order_of_arrival() {
        let (turns, order, endless) = (Turns::default(), Mutex::new(Vec::new()), Interrupt::default());
        let first = turns.take(Duration::ZERO, &endless).unwrap().unwrap();
        thread::scope(|scope| {
            for number in 0..8 {
                let (turns, order, endless) = (&turns, &order, &endless);
                scope.spawn(move || {
                    let _turn = turns.take(LONG, endless).unwrap().unwrap();
                    order.lock().unwrap().push(number);
                });
                while turns.lock().waiting.len() <= number {
                    thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(order.into_inner().unwrap(), (0..8).collect::<Vec<_>>());
        assert!(!turns.lock().is_taken);
    }

    #[test]
    fn a_waiter_that_times_out_leaves_the_queue() {
        let (turns, endless) = (Turns::default(), Interrupt::default());
        let first = turns.take(Duration::ZERO, &endless).unwrap().unwrap();
        assert!(turns.take(Duration::from_millis(5), &endless).unwrap().is_none());
        drop(first);
        assert!(turns.take(Duration::ZERO, &endless).unwrap().is_some());
    }

    #[test]
    fn a_waiter_that_is_cancelled_or_past_its_deadline_leaves_the_queue() {
        let (turns, token) = (Turns::default(), CancelToken::new());
        let (mut cancelled, mut late) = (Interrupt::default(), Interrupt::default());
        cancelled.cancel(token.clone());
        late.deadline(Duration::from_millis(5));
        let first = turns.take(Duration::ZERO, &cancelled).unwrap().unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| turns.take(Duration::MAX, &cancelled).unwrap_err().code());
            while turns.lock().waiting.is_empty() {
                thread::yield_now();
            }
            token.cancel();
            assert_eq!(waits.join().unwrap(), 11_601);
        });
        assert_eq!(turns.take(LONG, &late).unwrap_err().code(), 50);
        assert!(turns.lock().waiting.is_empty());
        drop(first);
        assert!(!turns.lock().is_taken);
    }
}
