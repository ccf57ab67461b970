//! Polls for events that wake no stream by themselves: commits of other processes, and deadlines. One thread polls for all waiting streams of a
//! database, in short turns, while a stream needs it.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::{Duration, Instant},
};

use super::{OtherWriters, POLL, Position, Wakers};

/// The longest turn: a runtime that shuts down waits for the end of the turn.
const TURN: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct Polling {
    state: Mutex<PollingState>,
    /// Notified when a turn may have to end sooner: a stream was added, or the last one removed.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PollingState {
    has_thread: bool,
    /// How many streams wait for commits of other processes.
    lookers: usize,
    /// When to look for commits of other processes again; `None` before the first time.
    next_look: Option<Instant>,
    next: u64,
    deadlines: BTreeMap<(Instant, u64), Waker>,
    seen: Option<Seen>,
}

/// Where the last look for commits of other processes ended: the streams of all earlier commits were woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) log: u32,
    pub(crate) position: Position,
}

/// The registration of a stream with the polling thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct Polled {
    wakers: Arc<Wakers>,
    writers: OtherWriters,
    deadline: Option<(Instant, u64)>,
}

/// What the polling thread does after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// No stream needs the thread: it ends.
    Last,
    Again,
    /// Takes another turn, after it has looked for commits of other processes.
    Look,
}

impl PollingState {
    fn is_needed(&self) -> bool {
        self.lookers > 0 || !self.deadlines.is_empty()
    }
}

impl Wakers {
    /// Registers a waiting stream: `waker` is woken at `deadline`, if there is one. Returns also whether the caller must start
    /// a polling thread.
    pub(crate) fn poll(
        self: &Arc<Self>,
        waker: Waker,
        writers: OtherWriters,
        deadline: Option<Instant>,
    ) -> (Polled, bool) {
        let mut state = self.polling();
        let number = state.next;
        state.next += 1;
        state.lookers += usize::from(writers == OtherWriters::Expected);
        let deadline = deadline.map(|deadline| (deadline, number));
        state.deadlines.extend(deadline.map(|deadline| (deadline, waker)));
        let starts = state.is_needed() && !mem::replace(&mut state.has_thread, true);
        drop(state);
        self.polling.changed.notify_all();
        (Polled { wakers: Arc::clone(self), writers, deadline }, starts)
    }

    /// Waits until a deadline passes or a look is due, and wakes the streams whose deadlines have passed.
    pub(crate) fn take_turn(&self) -> Turn {
        let mut state = self.polling();
        if state.is_needed() {
            let until_look = |next: Instant| next.saturating_duration_since(Instant::now());
            let longest = if state.lookers > 0 { state.next_look.map_or(Duration::ZERO, until_look) } else { TURN };
            let first = state.deadlines.first_key_value().map(|((deadline, _), _)| *deadline);
            let left = first.map_or(longest, |first| first.saturating_duration_since(Instant::now()).min(longest));
            state = self.polling.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let later = state.deadlines.split_off(&(Instant::now(), u64::MAX));
        let passed = mem::replace(&mut state.deadlines, later);
        state.has_thread = state.is_needed();
        let now = Instant::now();
        let looks = state.lookers > 0 && state.next_look.is_none_or(|next| next <= now);
        if looks {
            state.next_look = Some(now + POLL);
        }
        let turn = match (state.has_thread, looks) {
            (false, _) => Turn::Last,
            (true, false) => Turn::Again,
            (true, true) => Turn::Look,
        };
        drop(state);
        passed.into_values().for_each(Waker::wake);
        turn
    }

    /// Ends polling on a thread that failed. Wakes all waiting streams, which start another thread.
    pub(crate) fn abandon_turns(&self) {
        let mut state = self.polling();
        state.has_thread = false;
        let woken = mem::take(&mut state.deadlines);
        drop(state);
        woken.into_values().for_each(Waker::wake);
        self.wake_all();
    }

    pub(crate) fn seen(&self) -> Option<Seen> {
        self.polling().seen
    }

    pub(crate) fn set_seen(&self, seen: Option<Seen>) {
        self.polling().seen = seen;
    }

    fn polling(&self) -> MutexGuard<'_, PollingState> {
        // No code under this lock can panic between two dependent updates.
        self.polling.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        let mut state = self.wakers.polling();
        state.lookers -= usize::from(self.writers == OtherWriters::Expected);
        let removed = self.deadline.and_then(|deadline| state.deadlines.remove(&deadline));
        let is_needed = state.is_needed();
        drop(state);
        // Dropped without the lock: a waker may own its task, whose drop removes other registrations.
        drop(removed);
        if !is_needed {
            self.wakers.polling.changed.notify_all();
        }
    }
}
