use std::{any::Any, fmt, time::Duration};

use serde::de::DeserializeOwned;

use super::{Operation, runner::Runner, setters};
use crate::{CancelToken, Hint, IntoDocument, ReturnDocument};

/// An update of one document that gives it back; see
/// [`Collection::find_one_and_update`](super::Collection::find_one_and_update).
#[must_use = "nothing is updated until `run`"]
pub struct FindOneAndUpdate<T> {
    call: crate::FindOneAndUpdate<T>,
    runner: Runner,
    token: CancelToken,
}

/// A deletion of one document that gives it back; see
/// [`Collection::find_one_and_delete`](super::Collection::find_one_and_delete).
#[must_use = "nothing is deleted until `run`"]
pub struct FindOneAndDelete<T> {
    call: crate::FindOneAndDelete<T>,
    runner: Runner,
    token: CancelToken,
}

/// What both have.
macro_rules! common {
    ($call:ty) => {
        pub(super) fn new(call: $call, runner: Runner) -> Self {
            Self { call, runner, token: CancelToken::new() }
        }

        setters! {
            /// The first in this order instead of that of `_id`.
            sort(sort: impl IntoDocument);
            /// Gives back only some fields of the document.
            project(projection: impl IntoDocument);
            /// Takes this index instead of what the planner would choose.
            hint(hint: Hint);
            /// Ends, with nothing changed, when it is not done within this time from now.
            deadline(within: Duration);
            /// Holds rows in at most so many bytes of memory; the rest goes to temporary files.
            memory_limit(bytes: usize);
        }

        /// Ends, with nothing changed, when the token is cancelled.
        pub fn cancel(mut self, token: CancelToken) -> Self {
            self.token = token;
            self
        }
    };
}

impl<T: DeserializeOwned + Send + Any> FindOneAndUpdate<T> {
    common!(crate::FindOneAndUpdate<T>);

    setters! {
        /// Where no document matches, inserts one made of the filter's equalities and the update.
        upsert();
        /// Whether to give back the document as it was (the default) or as it is now.
        returning(returns: ReturnDocument);
    }

    /// Conditions on array elements, for `$[name]` in the update's paths.
    pub fn array_filters<F: IntoDocument>(mut self, filters: impl IntoIterator<Item = F>) -> Self {
        self.call = self.call.array_filters(filters);
        self
    }

    /// Runs the update and gives the document back; none where none matched.
    ///
    /// # Errors
    /// As [`slate_core::FindOneAndUpdate::run`](crate::FindOneAndUpdate::run).
    pub fn run(self) -> Operation<Option<T>> {
        let Self { call, runner, token } = self;
        runner.write(&token, |token| call.cancel(token).run())
    }
}

impl<T: DeserializeOwned + Send + Any> FindOneAndDelete<T> {
    common!(crate::FindOneAndDelete<T>);

    /// Runs the deletion and gives the document back; none where none matched.
    ///
    /// # Errors
    /// As [`slate_core::FindOneAndDelete::run`](crate::FindOneAndDelete::run).
    pub fn run(self) -> Operation<Option<T>> {
        let Self { call, runner, token } = self;
        runner.write(&token, |token| call.cancel(token).run())
    }
}

impl<T> fmt::Debug for FindOneAndUpdate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}

impl<T> fmt::Debug for FindOneAndDelete<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}
