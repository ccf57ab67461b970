use std::{
    panic::{self, AssertUnwindSafe},
    pin::Pin,
    task::{Context, Poll, ready},
    thread,
};

use tokio::sync::oneshot;

use crate::{Error, Result};

/// Work for another thread, which calls it with an `A`.
pub(super) type Job<A = ()> = Box<dyn FnOnce(A) + Send>;

/// The result of a job, as a future. A panic of the work continues in the task that awaits it.
pub(super) struct Answer<R> {
    receiver: oneshot::Receiver<thread::Result<Result<R>>>,
    lost: fn() -> Error,
}

/// Makes a job of `work`. If the job is dropped instead of executed, the answer is the error `lost`.
pub(super) fn job<A, R: Send + 'static>(
    work: impl FnOnce(A) -> Result<R> + Send + 'static,
    lost: fn() -> Error,
) -> (Job<A>, Answer<R>) {
    let (sender, receiver) = oneshot::channel();
    let job = move |input| drop(sender.send(panic::catch_unwind(AssertUnwindSafe(|| work(input)))));
    (Box::new(job), Answer { receiver, lost })
}

impl<R> Future for Answer<R> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R>> {
        Poll::Ready(match ready!(Pin::new(&mut self.receiver).poll(context)) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => panic::resume_unwind(panic),
            Err(_) => Err((self.lost)()),
        })
    }
}
