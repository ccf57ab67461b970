use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The turns of single writes that conflict repeatedly, first come, first served.
///
/// Of the writers of one document the first to commit wins and the others begin again. A write that has lost several times would
/// otherwise be as likely to lose as one that has just begun. With a turn it competes only with new writes and open transactions,
/// and each time it loses one of them has committed.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<TurnState>);

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
    /// Waits for a turn; `None` after `wait`.
    pub(crate) fn take(&self, wait: Duration) -> Option<Turn<'_>> {
        let mut state = self.lock();
        if !state.is_taken {
            state.is_taken = true;
            return Some(Turn(self));
        }
        // A wait beyond the range of `Instant` has no deadline.
        let deadline = Instant::now().checked_add(wait);
        let wake = Arc::new(Condvar::new());
        state.waiting.push_back(Arc::clone(&wake));
        loop {
            if state.next.as_ref().is_some_and(|next| Arc::ptr_eq(next, &wake)) {
                state.next = None;
                return Some(Turn(self));
            }
            state = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => {
                    state.waiting.retain(|waiting| !Arc::ptr_eq(waiting, &wake));
                    return None;
                }
                Some(left) => wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, TurnState> {
        // No code under this lock can panic between two dependent updates.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
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

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn turns_are_taken_in_the_order_of_arrival() {
        let (turns, order) = (Turns::default(), Mutex::new(Vec::new()));
        let first = turns.take(Duration::ZERO).unwrap();
        thread::scope(|scope| {
            for number in 0..8 {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let _turn = turns.take(LONG).unwrap();
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
        let turns = Turns::default();
        let first = turns.take(Duration::ZERO).unwrap();
        assert!(turns.take(Duration::from_millis(5)).is_none());
        drop(first);
        assert!(turns.take(Duration::ZERO).is_some());
    }
}
