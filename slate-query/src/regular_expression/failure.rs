//! Matches that are given up.
//!
//! Conditions are functions that return `bool`, because only a pattern that needs backtracking can fail. A match that is
//! given up is noted for its thread, and [`watch`] around the evaluation of a whole filter returns the error.

use std::cell::Cell;

use crate::{Code, Error, Result, work};

#[derive(Clone, Copy, PartialEq, Eq)]
enum WatchState {
    /// Nothing is watched: a match that is given up is no match.
    Idle,
    Watched,
    TooExpensive,
    PastDeadline,
}

thread_local! {
    static STATE: Cell<WatchState> = const { Cell::new(WatchState::Idle) };
}

/// Restores the state of the enclosing evaluation when it is dropped.
struct Watching {
    outer: WatchState,
}

impl Watching {
    fn begin() -> Self {
        Self { outer: STATE.replace(WatchState::Watched) }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        STATE.set(self.outer);
    }
}

/// Calls `evaluate`, and fails if it gave up a match.
///
/// # Errors
/// 51156 for a match that takes too many steps; 50 for one that would not end before the deadline; the error of a call that is over.
pub(crate) fn watch<T>(evaluate: impl FnOnce() -> T) -> Result<T> {
    let _watching = Watching::begin();
    let value = evaluate();
    work::check()?;
    match STATE.get() {
        WatchState::TooExpensive => Err(super::too_expensive()),
        WatchState::PastDeadline => Err(past_deadline()),
        WatchState::Idle | WatchState::Watched => Ok(value),
    }
}

/// Returns the error of a match that would not end before the deadline.
pub(super) fn past_deadline() -> Error {
    let message = "the operation exceeded its time limit: a regular expression takes too many backtracking steps";
    Error::new(Code::MAX_TIME_MS_EXPIRED, message)
}

/// Returns whether the match succeeded. Records a match that is given up for [`watch`], and returns false; after that, no other match is tried.
pub(super) fn noted(is_match: impl FnOnce() -> Result<bool>) -> bool {
    if matches!(STATE.get(), WatchState::TooExpensive | WatchState::PastDeadline) {
        return false;
    }
    is_match().unwrap_or_else(|error| {
        if STATE.get() == WatchState::Watched {
            let is_late = error.code() == Code::MAX_TIME_MS_EXPIRED;
            STATE.set(if is_late { WatchState::PastDeadline } else { WatchState::TooExpensive });
        }
        false
    })
}
