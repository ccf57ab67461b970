//! Matches that are given up.
//!
//! Conditions are functions that return `bool`, because only a pattern that needs backtracking can fail. A match that is
//! given up is noted for its thread, and [`watch`] around the evaluation of a whole filter returns the error.

use std::cell::Cell;

use crate::Result;

#[derive(Clone, Copy, PartialEq, Eq)]
enum WatchState {
    /// Nothing is watched: a match that is given up is no match.
    Idle,
    Watched,
    Failed,
}

thread_local! {
    static STATE: Cell<WatchState> = const { Cell::new(WatchState::Idle) };
}

/// Restores the state of the enclosing evaluation.
struct Restore(WatchState);

impl Drop for Restore {
    fn drop(&mut self) {
        STATE.set(self.0);
    }
}

/// Calls `evaluate`, and fails if it gave up a match.
///
/// # Errors
/// 51156.
pub(crate) fn watch<T>(evaluate: impl FnOnce() -> T) -> Result<T> {
    let _restore = Restore(STATE.replace(WatchState::Watched));
    let value = evaluate();
    if STATE.get() == WatchState::Failed { Err(super::too_expensive()) } else { Ok(value) }
}

/// Returns whether the match succeeded; notes that it was given up. After that, no other match is tried.
pub(super) fn noted(is_match: impl FnOnce() -> Result<bool>) -> bool {
    if STATE.get() == WatchState::Failed {
        return false;
    }
    is_match().unwrap_or_else(|_| {
        if STATE.get() == WatchState::Watched {
            STATE.set(WatchState::Failed);
        }
        false
    })
}
