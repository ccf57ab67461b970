//! The writer queue, and which writer syncs the commits of others (group commit).
//!
//! redb's own `begin_write` waits without limit and in no particular order. This queue is first come, first served;
//! waiting ends with a typed error; and it knows the next writer, which decides how a commit reaches the device: see
//! the [module's page](super).
//!
//! A writer that waits for another to sync its commit is in the same queue. It therefore waits only for writers that
//! were before it. If its turn comes and nobody has synced its commit, it syncs itself.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use crate::{Context, Error, Result};

#[derive(Default)]
pub(super) struct Turn {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    holder: Option<Holder>,
    queue: VecDeque<Waiting>,
    tickets: u64,
    /// Number of the last commit since opening.
    committed: u64,
    /// Number of the last commit that is on the device.
    durable: u64,
    /// Commits of other writers that the last sync included.
    set_free: usize,
}

struct Holder {
    ticket: u64,
    /// The thread that began the transaction. The transaction may have been moved to another thread since; a second
    /// `begin` on this thread would still wait for itself.
    thread: ThreadId,
}

struct Waiting {
    ticket: u64,
    thread: ThreadId,
    purpose: Purpose,
    woken: Arc<Condvar>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Write,
    /// Waits until this commit is on the device.
    Cover(u64),
}

/// Holds the writer's turn. Dropping it admits the next writer.
pub(super) struct HeldTurn(Arc<Turn>);

/// How waiting for a sync by another writer ended.
pub(super) enum Cover {
    /// The commit is on the device.
    Done,
    /// The writer's turn has come, and it has to sync itself.
    Yours(HeldTurn),
}

impl Turn {
    /// Waits at most `wait` for the turn.
    pub(super) fn take(turn: &Arc<Self>, wait: Duration) -> Result<HeldTurn> {
        let thread = thread::current().id();
        let mut state = turn.lock();
        if state.holder.as_ref().is_some_and(|holder| holder.thread == thread) {
            let detail = "writers take turns here, and waiting for oneself would never end; \
                          use the open transaction, or end it first";
            return Err(Error::Reentrant(Box::new(Context::new(detail))));
        }
        if state.holder.is_none() {
            let ticket = state.ticket();
            state.holder = Some(Holder { ticket, thread });
            return Ok(HeldTurn(Arc::clone(turn)));
        }
        // A wait beyond what the clock can represent never ends.
        let deadline = Instant::now().checked_add(wait);
        let (ticket, woken) = state.enqueue(thread, Purpose::Write);
        while !state.is_held_by(ticket) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            state = match left {
                Some(Duration::ZERO) => {
                    state.queue.retain(|waiting| waiting.ticket != ticket);
                    let detail = format!("writers take turns here, and the turn did not come within {wait:?}");
                    return Err(Error::Conflict(Box::new(Context::new(detail))));
                }
                Some(left) => woken.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => woken.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        Ok(HeldTurn(Arc::clone(turn)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code under this lock can panic between two dependent updates.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldTurn {
    /// Returns whether the next in the queue wants to write, and can therefore sync this commit, too.
    pub(super) fn is_followed_by_a_writer(&self) -> bool {
        let state = self.0.lock();
        if state.queue.is_empty() && state.set_free > 0 {
            // The writers whose commits the last sync included are usually about to write again. Yielding the processor
            // gives them time to enter the queue, which saves syncs; without such writers it costs almost nothing.
            drop(state);
            thread::yield_now();
            return self.0.lock().is_writer_next();
        }
        state.is_writer_next()
    }

    /// Returns whether every commit is on the device.
    pub(super) fn is_all_durable(&self) -> bool {
        let state = self.0.lock();
        state.durable == state.committed
    }

    /// Records a commit that is not on the device yet, and returns its number.
    pub(super) fn committed(&self) -> u64 {
        let mut state = self.0.lock();
        state.committed += 1;
        state.committed
    }

    /// Records that a commit and all before it are on the device.
    pub(super) fn committed_durably(&self) {
        let mut state = self.0.lock();
        state.committed += 1;
        state.durable = state.committed;
        state.set_free = state.queue.iter().filter(|waiting| waiting.purpose != Purpose::Write).count();
    }

    /// Gives up the turn and waits until this commit is on the device.
    pub(super) fn wait_for_cover(self, commit: u64) -> Cover {
        let turn = Arc::clone(&self.0);
        let (ticket, woken) = turn.lock().enqueue(thread::current().id(), Purpose::Cover(commit));
        drop(self);
        let mut state = turn.lock();
        loop {
            if state.is_held_by(ticket) {
                drop(state);
                return Cover::Yours(Self(turn));
            }
            if state.durable >= commit {
                return Cover::Done;
            }
            state = woken.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for HeldTurn {
    fn drop(&mut self) {
        self.0.lock().release();
    }
}

impl State {
    fn is_writer_next(&self) -> bool {
        self.queue.front().is_some_and(|next| next.purpose == Purpose::Write)
    }

    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    fn enqueue(&mut self, thread: ThreadId, purpose: Purpose) -> (u64, Arc<Condvar>) {
        let (ticket, woken) = (self.ticket(), Arc::new(Condvar::new()));
        self.queue.push_back(Waiting { ticket, thread, purpose, woken: Arc::clone(&woken) });
        (ticket, woken)
    }

    fn is_held_by(&self, ticket: u64) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.ticket == ticket)
    }

    /// Wakes the waiters whose wait is over, and gives the turn to the first of the others.
    fn release(&mut self) {
        let durable = self.durable;
        self.queue.retain(|waiting| match waiting.purpose {
            Purpose::Cover(commit) if commit <= durable => {
                waiting.woken.notify_one();
                false
            }
            Purpose::Cover(_) | Purpose::Write => true,
        });
        self.holder = self.queue.pop_front().map(|next| {
            next.woken.notify_one();
            Holder { ticket: next.ticket, thread: next.thread }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_turn_goes_to_those_who_wait_in_the_order_they_came() {
        let turn = Arc::<Turn>::default();
        let held = Turn::take(&turn, Duration::ZERO).unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for number in 0..8 {
                let (turn, order) = (&turn, &order);
                scope.spawn(move || {
                    let _held = Turn::take(turn, LONG).unwrap();
                    order.lock().unwrap().push(number);
                });
                while turn.lock().queue.len() <= number {
                    thread::yield_now();
                }
            }
            drop(held);
        });
        assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn a_wait_that_is_over_leaves_the_queue() {
        let turn = Arc::<Turn>::default();
        let held = Turn::take(&turn, Duration::ZERO).unwrap();
        let late =
            thread::scope(|scope| scope.spawn(|| Turn::take(&turn, Duration::from_millis(5)).err()).join().unwrap());
        assert!(late.unwrap().is_retryable());
        assert!(turn.lock().queue.is_empty());
        drop(held);
        assert!(Turn::take(&turn, Duration::ZERO).is_ok());
    }

    #[test]
    fn a_committer_is_covered_by_the_writer_behind_it_or_has_to_do_it_itself() {
        for covered in [true, false] {
            let turn = Arc::<Turn>::default();
            let first = Turn::take(&turn, Duration::ZERO).unwrap();
            thread::scope(|scope| {
                let second = scope.spawn(|| {
                    let held = Turn::take(&turn, LONG).unwrap();
                    assert!(!held.is_followed_by_a_writer(), "who waits to be covered is no writer");
                    if covered {
                        held.committed_durably()
                    } else {
                        held.committed();
                    }
                });
                while turn.lock().queue.is_empty() {
                    thread::yield_now();
                }
                assert!(first.is_followed_by_a_writer());
                let commit = first.committed();
                match first.wait_for_cover(commit) {
                    Cover::Done => assert!(covered),
                    Cover::Yours(held) => assert!(!covered && !held.is_all_durable()),
                }
                second.join().unwrap();
            });
        }
    }
}
