use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use crate::{CancelToken, Result};

/// A call that is to be awaited.
///
/// Nothing is begun before it is first polled. Dropping it later asks what was begun to end:
///
/// - A **read** ends soon.
/// - A **write** is done wholly or not at all. If it was still waiting in line, it is not done. If it was under way, it is
///   either rolled back as a whole or committed as a whole, soon; to know which, read. An insertion that is under way, and
///   a commit, are carried out.
/// - A write **inside a transaction** of [`Database::begin`](super::Database::begin) is carried out in its place among
///   the transaction's calls, and shares the transaction's fate.
///
/// So a timeout around a call is safe: `tokio::time::timeout(limit, users.delete_many(filter).run())`. Where the limit is
/// known beforehand, the builder's `deadline` is better: it tells what came of it.
///
/// A panic of the work (in a closure of `transact`, or in a type's own serde) continues in the task that awaits it.
#[must_use = "nothing is done until it is awaited"]
pub struct Operation<R> {
    work: Pin<Box<dyn Future<Output = Result<R>> + Send>>,
}

impl<R> Operation<R> {
    pub(super) fn new(work: impl Future<Output = Result<R>> + Send + 'static) -> Self {
        Self { work: Box::pin(work) }
    }
}

impl<R> Future for Operation<R> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R>> {
        self.work.as_mut().poll(context)
    }
}

impl<R> fmt::Debug for Operation<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").finish_non_exhaustive()
    }
}

/// Cancels its token when it is dropped: nobody waits for the work any more.
pub(super) struct CancelOnDrop(pub(super) CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
