use std::{
    panic::{self, AssertUnwindSafe},
    pin::Pin,
    task::{Context, Poll, ready},
    thread,
};

use tokio::sync::oneshot;

use crate::{Error, call::open_transactions::Caller, metrics::trace::Span};

/// Work for another thread, which calls it with an `A`.
pub(super) type Job<A = ()> = Box<dyn FnOnce(A) + Send>;

/// The result of a job, as a future. A panic of the work continues in the task that awaits it.
pub(super) struct Answer<R, E = Error> {
    receiver: oneshot::Receiver<thread::Result<Result<R, E>>>,
    lost: fn() -> Error,
}

/// Wraps `work` in a job that runs on behalf of the calling task and in its span. If the job is dropped instead of executed,
/// the answer is the error `lost`.
pub(super) fn job<A, R: Send + 'static, E: Send + 'static>(
    work: impl FnOnce(A) -> Result<R, E> + Send + 'static,
    lost: fn() -> Error,
) -> (Job<A>, Answer<R, E>) {
    let (sender, receiver) = oneshot::channel();
    let (caller, span) = (Caller::current(), Span::current());
    let job = move |input| {
        let _entered = span.enter();
        drop(sender.send(panic::catch_unwind(AssertUnwindSafe(|| caller.run(|| work(input))))));
    };
    (Box::new(job), Answer { receiver, lost })
}

impl<R, E: From<Error>> Future for Answer<R, E> {
    type Output = Result<R, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R, E>> {
        Poll::Ready(match ready!(Pin::new(&mut self.receiver).poll(context)) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => panic::resume_unwind(panic),
            Err(_) => Err((self.lost)().into()),
        })
    }
}
