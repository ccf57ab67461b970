use std::{fmt, time::Duration};

use super::{Operation, runner::Runner, setters};
use crate::{CancelToken, Hint, IntoDocument, UpdateResult};

/// An update of one or many documents; see [`Collection::update_many`](super::Collection::update_many).
#[derive(Clone)]
#[must_use = "nothing is updated until `run`"]
pub struct Update {
    call: crate::Update,
    runner: Runner,
    token: CancelToken,
}

impl Update {
    pub(super) fn new(call: crate::Update, runner: Runner) -> Self {
        Self { call, runner, token: CancelToken::new() }
    }

    setters! {
        /// Where no document matches, inserts one made of the filter's equalities and the update.
        upsert();
        /// Of one document: the first in this order instead of that of `_id`.
        sort(sort: impl IntoDocument);
        /// Takes this index instead of what the planner would choose.
        hint(hint: Hint);
        /// Ends, with nothing changed, when it is not done within this time from now.
        deadline(within: Duration);
        /// Holds what it will change in at most so many bytes of memory; the rest goes to temporary files.
        memory_limit(bytes: usize);
    }

    /// Conditions on array elements, for `$[name]` in the update's paths.
    pub fn array_filters<F: IntoDocument>(mut self, filters: impl IntoIterator<Item = F>) -> Self {
        self.call = self.call.array_filters(filters);
        self
    }

    /// Ends, with nothing changed, when the token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.token = token;
        self
    }

    /// Runs the update: all of it or nothing.
    ///
    /// # Errors
    /// As [`slate_core::Update::run`](crate::Update::run).
    pub fn run(self) -> Operation<UpdateResult> {
        let Self { call, runner, token } = self;
        runner.write(&token, |token| call.cancel(token).run())
    }
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}
