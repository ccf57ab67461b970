use std::{
    panic::{self, AssertUnwindSafe},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    thread,
};

use tokio::sync::oneshot;

use super::wait_limits::{Patience, WaitLimits};
use crate::{Error, call::open_transactions::Caller, metrics::trace::Span};

/// Work for another thread, which passes an `A` to it.
pub(super) type Job<A = ()> = Box<dyn FnOnce(A) + Send>;

/// The result of a job, as a future. A panic of the work continues in the task that awaits it.
///
/// Until a thread begins the job, its limits can end the wait: the job is then never executed.
pub(super) struct Answer<R, E = Error> {
    receiver: oneshot::Receiver<thread::Result<Result<R, E>>>,
    lost: fn() -> Error,
    /// `None` once a thread has begun the job.
    waiting: Option<(Box<dyn Withdraw>, Patience)>,
    if_abandoned: IfAbandoned,
}

/// What happens to a job that waits for a thread when its answer is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfAbandoned {
    Dropped,
    Executed,
}

/// A job that waits for a thread.
trait Withdraw: Send + Sync {
    /// Drops the job. Returns whether it was still waiting.
    fn withdraw(&self) -> bool;
}

/// A job, until a thread begins it or its caller withdraws it.
struct Queued<A>(Arc<Mutex<Option<Job<A>>>>);

impl<A> Queued<A> {
    fn take(&self) -> Option<Job<A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The queue's reference to a job. Dropping it drops the job, although the answer has another reference.
struct PlaceInQueue<A>(Queued<A>);

impl<A> Drop for PlaceInQueue<A> {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

impl<A> Withdraw for Queued<A> {
    fn withdraw(&self) -> bool {
        self.take().is_some()
    }
}

/// Wraps `work` in a job that runs on behalf of the calling task and in its span. If the job is dropped instead of executed,
/// the answer is the error `lost`.
pub(super) fn job<A: 'static, R: Send + 'static, E: Send + 'static>(
    limits: WaitLimits,
    if_abandoned: IfAbandoned,
    work: impl FnOnce(A) -> Result<R, E> + Send + 'static,
    lost: fn() -> Error,
) -> (Job<A>, Answer<R, E>) {
    let (sender, receiver) = oneshot::channel();
    let (caller, span) = (Caller::current(), Span::current());
    let job: Job<A> = Box::new(move |input| {
        let _entered = span.enter();
        drop(sender.send(panic::catch_unwind(AssertUnwindSafe(|| caller.run(|| work(input))))));
    });
    let queued = Queued(Arc::new(Mutex::new(Some(job))));
    let waiting = Some((Box::new(Queued(Arc::clone(&queued.0))) as Box<dyn Withdraw>, Patience::new(limits)));
    let place = PlaceInQueue(queued);
    let job = move |input| {
        if let Some(job) = place.0.take() {
            job(input);
        }
    };
    (Box::new(job), Answer { receiver, lost, waiting, if_abandoned })
}

impl<R, E> Drop for Answer<R, E> {
    fn drop(&mut self) {
        if let (IfAbandoned::Dropped, Some((job, _))) = (self.if_abandoned, &self.waiting) {
            job.withdraw();
        }
    }
}

impl<R, E: From<Error>> Future for Answer<R, E> {
    type Output = Result<R, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R, E>> {
        if let Some((job, patience)) = &mut self.waiting
            && let Poll::Ready(ended) = patience.poll(context)
        {
            if job.withdraw() {
                return Poll::Ready(Err(ended.into()));
            }
            // The work has begun, and ends by its own limits.
            self.waiting = None;
        }
        Poll::Ready(match ready!(Pin::new(&mut self.receiver).poll(context)) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => panic::resume_unwind(panic),
            Err(_) => Err((self.lost)().into()),
        })
    }
}
