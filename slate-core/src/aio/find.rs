use std::{any::Any, fmt, time::Duration};

use bson::Bson;
use serde::de::DeserializeOwned;

use super::{Documents, Operation, documents::Batch, operation::CancelOnDrop, runner::Runner, setters};
use crate::{CancelToken, Explain, Hint, IntoDocument};

/// A question to a collection; see [`ReadCollection::find`](super::ReadCollection::find).
#[derive(Clone)]
#[must_use = "nothing is read until `run`, `collect`, `first`, `count`, `distinct` or `explain`"]
pub struct Find<T> {
    call: crate::Find<T>,
    runner: Runner,
    token: CancelToken,
}

impl<T: 'static> Find<T> {
    pub(super) fn new(call: crate::Find<T>, runner: Runner) -> Self {
        Self { call, runner, token: CancelToken::new() }
    }

    setters! {
        /// Orders the documents by fields, each 1 (lowest first) or -1; `{ $natural: 1 }` is the order of `_id`.
        sort(sort: impl IntoDocument);
        /// Hands out only some fields of each document.
        project(projection: impl IntoDocument);
        /// Leaves out the first documents.
        skip(documents: u64);
        /// Hands out at most so many documents.
        limit(documents: u64);
        /// Takes this index, or the order of `_id`, instead of what the planner would choose.
        hint(hint: Hint);
        /// Ends with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) when it is not done within this time from
        /// now; for a stream, when it is not read to its end.
        deadline(within: Duration);
        /// Holds rows in at most so many bytes of memory; the rest goes to temporary files.
        memory_limit(bytes: usize);
    }

    /// Ends with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) when the token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.token = token;
        self
    }

    /// How many documents there are, after skip and limit.
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn count(self) -> Operation<u64> {
        let Self { call, runner, token } = self;
        runner.read(&token, |token| call.cancel(token).count())
    }

    /// The different values at `path` of the documents, in BSON's order; elements of arrays count one by one. Sort, skip
    /// and limit are about the values; see [`slate_core::Find::distinct`](crate::Find::distinct).
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn distinct(self, path: &str) -> Operation<Vec<Bson>> {
        let Self { call, runner, token } = self;
        let path = path.to_owned();
        runner.read(&token, move |token| call.cancel(token).distinct(&path))
    }

    /// The plan that would be run, without running it.
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn explain(self) -> Operation<Explain> {
        let Self { call, runner, token } = self;
        runner.read(&token, |_| call.explain())
    }

    /// The plan of [`Find::count`], without running it.
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn explain_count(self) -> Operation<Explain> {
        let Self { call, runner, token } = self;
        runner.read(&token, |_| call.explain_count())
    }

    /// The plan of [`Find::distinct`], without running it.
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn explain_distinct(self, path: &str) -> Operation<Explain> {
        let Self { call, runner, token } = self;
        let path = path.to_owned();
        runner.read(&token, move |_| call.explain_distinct(&path))
    }

    /// Runs the question to its end, and tells what each node of its plan did; see
    /// [`slate_core::Find::explain_analyze`](crate::Find::explain_analyze).
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn explain_analyze(self) -> Operation<Explain> {
        let Self { call, runner, token } = self;
        runner.read(&token, |token| call.cancel(token).explain_analyze())
    }

    /// As [`Find::explain_analyze`], of [`Find::count`].
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn explain_analyze_count(self) -> Operation<Explain> {
        let Self { call, runner, token } = self;
        runner.read(&token, |token| call.cancel(token).explain_analyze_count())
    }

    /// As [`Find::explain_analyze`], of [`Find::distinct`].
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn explain_analyze_distinct(self, path: &str) -> Operation<Explain> {
        let Self { call, runner, token } = self;
        let path = path.to_owned();
        runner.read(&token, move |token| call.cancel(token).explain_analyze_distinct(&path))
    }
}

impl<T: DeserializeOwned + Send + Any> Find<T> {
    /// Runs the question; the stream hands out each document as `T`.
    ///
    /// # Errors
    /// A question that is not valid, with MongoDB's code and the path at fault; where the storage fails.
    pub fn run(self) -> Operation<Documents<T>> {
        let Self { call, runner, token } = self;
        // Of the stream, not of this operation: it must outlive the one with the other.
        let abandoned = CancelOnDrop(token.child());
        let call = call.cancel(abandoned.0.clone());
        let first = runner.read(&token, |_| Ok(Batch::first(call.cursor()?)));
        Operation::new(async move { Ok(Documents::new(first.await?, abandoned)) })
    }

    /// All documents at once.
    ///
    /// # Errors
    /// As [`Find::run`]; of a document that is no `T`.
    pub fn collect(self) -> Operation<Vec<T>> {
        let Self { call, runner, token } = self;
        runner.read(&token, |token| call.cancel(token).run()?.collect())
    }

    /// The first document, if there is one.
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn first(self) -> Operation<Option<T>> {
        let Self { call, runner, token } = self;
        runner.read(&token, |token| call.cancel(token).first())
    }
}

impl<T> fmt::Debug for Find<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}
