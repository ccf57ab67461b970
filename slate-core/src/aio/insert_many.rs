use std::{fmt, time::Duration};

use super::{Operation, runner::Runner, setters};
use crate::{CancelToken, InsertManyResult};

/// An insertion of documents of which some may be refused; see
/// [`Collection::insert_batch`](super::Collection::insert_batch).
///
/// What is accepted is inserted in one transaction: a crash leaves all of it or nothing.
#[must_use = "nothing is inserted until `run`"]
pub struct InsertMany {
    call: crate::InsertMany,
    runner: Runner,
    token: CancelToken,
}

impl InsertMany {
    pub(super) fn new(call: crate::InsertMany, runner: Runner) -> Self {
        Self { call, runner, token: CancelToken::new() }
    }

    setters! {
        /// The documents before the first refused one are inserted, those after it are not tried. So it is if not said.
        ordered();
        /// Every document that is not refused is inserted.
        unordered();
        /// Ends, with nothing inserted, when it is not done within this time from now.
        deadline(within: Duration);
    }

    /// Ends, with nothing inserted, when the token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.token = token;
        self
    }

    /// Inserts the documents. A refused one is told in the result, which is no error of the call.
    ///
    /// # Errors
    /// As [`slate_core::InsertMany::run`](crate::InsertMany::run).
    pub fn run(self) -> Operation<InsertManyResult> {
        let Self { call, runner, token } = self;
        runner.write(&token, |token| call.cancel(token).run())
    }
}

impl fmt::Debug for InsertMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}
