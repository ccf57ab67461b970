use std::{
    pin::Pin,
    task::{Context, Poll},
};

use crate::{CancelToken, Error};

/// A call to await.
///
/// Nothing starts before the first poll. Dropping it later cancels what was started:
///
/// - A **read** ends soon.
/// - A **write** is applied as a whole or not at all. If it was still waiting in the queue, it is not applied. If it
///   was running, it is soon either rolled back or committed; only a read shows which. A running insertion and a commit
///   are completed.
/// - A write **inside a transaction** of [`Database::begin`](super::Database::begin) is executed in its order, and is
///   committed or rolled back with the transaction.
///
/// So a timeout around a call is safe: `tokio::time::timeout(limit, users.delete_many(filter).run())`. If the limit is
/// known beforehand, the builder's `deadline` is better: it reports the outcome.
///
/// A panic of the work (in a closure of `transact`, or in a type's own `Serialize` or `Deserialize`) continues in the task that awaits it.
#[must_use = "nothing is executed until it is awaited"]
pub struct Operation<R, E = Error> {
    work: Pin<Box<dyn Future<Output = Result<R, E>> + Send>>,
}

impl<R, E> Operation<R, E> {
    pub(super) fn new(work: impl Future<Output = Result<R, E>> + Send + 'static) -> Self {
        Self { work: Box::pin(work) }
    }
}

impl<R, E> Future for Operation<R, E> {
    type Output = Result<R, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R, E>> {
        self.work.as_mut().poll(context)
    }
}

crate::debug::shown! { self: Operation<R, E> {} }

/// Cancels its token when it is dropped.
pub(super) struct CancelOnDrop(pub(super) CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
