use std::{fmt, time::Duration};

use super::{Operation, runner::Runner, setters};
use crate::{CancelToken, Hint};

/// A deletion of one or many documents; see [`Collection::delete_many`](super::Collection::delete_many).
#[derive(Clone)]
#[must_use = "nothing is deleted until `run`"]
pub struct Delete {
    call: crate::Delete,
    runner: Runner,
    token: CancelToken,
}

impl Delete {
    pub(super) fn new(call: crate::Delete, runner: Runner) -> Self {
        Self { call, runner, token: CancelToken::new() }
    }

    setters! {
        /// Takes this index instead of what the planner would choose.
        hint(hint: Hint);
        /// Ends, with nothing deleted, when it is not done within this time from now.
        deadline(within: Duration);
        /// Holds what it will delete in at most so many bytes of memory; the rest goes to temporary files.
        memory_limit(bytes: usize);
    }

    /// Ends, with nothing deleted, when the token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.token = token;
        self
    }

    /// Runs the deletion, all of it or nothing; gives back how many documents it deleted.
    ///
    /// # Errors
    /// A filter that is not valid; where the storage fails.
    pub fn run(self) -> Operation<u64> {
        let Self { call, runner, token } = self;
        runner.write(&token, |token| call.cancel(token).run())
    }
}

impl fmt::Debug for Delete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}
