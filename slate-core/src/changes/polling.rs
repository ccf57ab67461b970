//! Streams that wait for what wakes nobody: commits of other processes, and their own deadlines. One thread at a time looks for all of a
//! database: it takes turns for as long as a stream needs it.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::{Duration, Instant},
};

use super::{OtherWriters, POLL, Position, Wakers};

/// How long a turn lasts at most, so that a runtime that shuts down does not wait for it longer.
const TURN: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct Polling {
    state: Mutex<PollingState>,
    /// Told when a turn may have to end sooner.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PollingState {
    has_thread: bool,
    /// How many streams wait for commits of other processes.
    lookers: usize,
    /// When the next look is due; `None` before the first.
    next_look: Option<Instant>,
    next: u64,
    deadlines: BTreeMap<(Instant, u64), Waker>,
    seen: Option<Seen>,
}

/// Where the last look ended: everything before it has woken its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) log: u32,
    pub(crate) position: Position,
}

/// A stream for which a thread takes turns, until this is dropped.
#[derive(Debug)]
pub(crate) struct Polled {
    wakers: Arc<Wakers>,
    writers: OtherWriters,
    deadline: Option<(Instant, u64)>,
}

/// What the thread that polls for the streams does after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nobody needs it: it ends.
    Last,
    Again,
    /// It looks for commits of other processes first.
    Look,
}

impl PollingState {
    fn is_needed(&self) -> bool {
        self.lookers > 0 || !self.deadlines.is_empty()
    }
}

impl Wakers {
    /// Takes turns for a stream that waits: `waker` is woken at the deadline. Returns also whether a thread has to be started.
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

    /// Ends the turns of a thread that cannot go on. The streams that wait are woken, and start another one.
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
        // Dropping a waker may drop its task, and with it others that are polled.
        drop(removed);
        if !is_needed {
            self.wakers.polling.changed.notify_all();
        }
    }
}
