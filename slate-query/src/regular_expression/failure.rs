//! Matches that are given up.
//!
//! Conditions are functions that return `bool`, because only a pattern that needs backtracking can fail. A match that is
//! given up is noted for its thread, and [`watch`] around the evaluation of a whole filter returns the error. Its deadline
//! reaches the match in the same way.

use std::{cell::Cell, time::Instant};

use crate::{Code, Error, Result};

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
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets the value of the thread, and restores that of the enclosing evaluation when it is dropped.
struct During<T: Copy + 'static> {
    cell: &'static std::thread::LocalKey<Cell<T>>,
    outer: T,
}

impl<T: Copy> During<T> {
    fn set(cell: &'static std::thread::LocalKey<Cell<T>>, value: T) -> Self {
        Self { cell, outer: cell.replace(value) }
    }
}

impl<T: Copy> Drop for During<T> {
    fn drop(&mut self) {
        self.cell.set(self.outer);
    }
}

/// Calls `evaluate`, and fails if it gave up a match.
///
/// # Errors
/// 51156 for a match that takes too many steps; 50 for one that would not end before the deadline.
pub(crate) fn watch<T>(evaluate: impl FnOnce() -> T) -> Result<T> {
    let _during = During::set(&STATE, WatchState::Watched);
    let value = evaluate();
    match STATE.get() {
        WatchState::TooExpensive => Err(super::too_expensive()),
        WatchState::PastDeadline => Err(past_deadline()),
        WatchState::Idle | WatchState::Watched => Ok(value),
    }
}

/// Calls `evaluate`, whose matches that need backtracking must end before the deadline, if there is one.
pub(crate) fn until<T>(deadline: Option<Instant>, evaluate: impl FnOnce() -> T) -> T {
    let _during = deadline.map(|_| During::set(&DEADLINE, deadline));
    evaluate()
}

/// Returns the deadline of the current evaluation.
pub(super) fn deadline() -> Option<Instant> {
    DEADLINE.get()
}

/// Returns the error of a match that would not end before the deadline.
pub(super) fn past_deadline() -> Error {
    let message = "the operation exceeded its time limit: a regular expression takes too many backtracking steps";
    Error::new(Code::MAX_TIME_MS_EXPIRED, message)
}

/// Returns whether the match succeeded; notes that it was given up. After that, no other match is tried.
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
