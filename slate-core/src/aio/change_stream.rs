use std::{
    any::Any,
    marker::PhantomData,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bson::RawDocumentBuf;
use futures_core::Stream;
use serde::de::DeserializeOwned;

use super::{
    Call, Operation,
    job::Answer,
    operation::CancelOnDrop,
    poller::poll,
    runner::{Runner, on_pool},
    signal::Signal,
};
use crate::{
    CancelToken, ChangeEvent, Find, LiveChange, Result, Watch,
    call::live_change::converted,
    call::{
        change_stream::{ChangeStreamState, Follower, ReadOutcome},
        live::LiveState,
    },
    call_context::CallContext,
    changes::{Polled, Waiting},
    document::As,
    interrupt::WakeOnCancel,
};

/// A follower of the log whose items a task awaits.
pub(super) struct Following<F: Follower> {
    phase: Phase<F>,
    call: CallContext,
    /// Cancels a read when the stream is dropped.
    _abandoned: CancelOnDrop,
    /// Updates `token` from the follower; called after each read and each `take`.
    seen: fn(&F, &mut RawDocumentBuf),
    token: RawDocumentBuf,
}

enum Phase<F: Follower> {
    /// Items may be ready.
    Ready(Box<F>),
    /// A thread of the pool reads. A commit since the read began wakes the signal.
    Reading(Answer<Read<F>>, Waiting, Arc<Signal>),
    /// The log was read to its end. Commits, the deadline and the caller's token wake the signal.
    Waiting(Box<F>, Arc<Signal>, (Waiting, Option<Polled>, Vec<WakeOnCancel>)),
    Over,
}

type Read<F> = (Box<F>, Result<ReadOutcome>);

impl<F: Follower> Following<F> {
    fn new(state: F, call: CallContext, token: CancelToken, seen: fn(&F, &mut RawDocumentBuf)) -> Self {
        let mut resume = RawDocumentBuf::new();
        seen(&state, &mut resume);
        Self { phase: Phase::Ready(Box::new(state)), call, _abandoned: CancelOnDrop(token), seen, token: resume }
    }

    fn read(&self, mut state: Box<F>) -> Result<Phase<F>> {
        // Registered before the read: a later commit wakes the signal, an earlier one is read.
        let signal = Arc::new(Signal::default());
        let waiting = state.wait(Arc::clone(&signal).into())?;
        let call = self.call.clone();
        let read = move || {
            let outcome = state.read(&call);
            Ok((state, outcome))
        };
        Ok(Phase::Reading(on_pool(CancelToken::new(), read)?, waiting, signal))
    }

    fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<F::Item>>> {
        loop {
            match mem::replace(&mut self.phase, Phase::Over) {
                Phase::Over => return Poll::Ready(Ok(None)),
                Phase::Ready(mut state) => {
                    let taken = state.take();
                    (self.seen)(&state, &mut self.token);
                    if let Some(taken) = taken {
                        self.phase = Phase::Ready(state);
                        return Poll::Ready(Ok(Some(taken)));
                    }
                    if state.is_over() {
                        return Poll::Ready(Ok(None));
                    }
                    self.phase = self.read(state)?;
                }
                Phase::Reading(mut answer, waiting, signal) => {
                    let Poll::Ready(read) = Pin::new(&mut answer).poll(context) else {
                        self.phase = Phase::Reading(answer, waiting, signal);
                        return Poll::Pending;
                    };
                    let (state, outcome) = read?;
                    self.phase = match outcome? {
                        ReadOutcome::Ready => Phase::Ready(state),
                        ReadOutcome::AtEnd => {
                            (self.seen)(&state, &mut self.token);
                            let interrupt = &self.call.interrupt;
                            let polled = poll(state.database(), Arc::clone(&signal).into(), interrupt.end())?;
                            let cancelled = interrupt.wake_on_cancel(&Arc::clone(&signal).into());
                            Phase::Waiting(state, signal, (waiting, polled, cancelled))
                        }
                    };
                }
                Phase::Waiting(state, signal, waiting) => {
                    self.call.check()?;
                    if signal.is_woken(context) {
                        self.phase = self.read(state)?;
                        drop(waiting);
                        continue;
                    }
                    self.phase = Phase::Waiting(state, signal, waiting);
                    return Poll::Pending;
                }
            }
        }
    }
}

/// A change stream; see [`slate_core::ChangeStream`](crate::ChangeStream). It occupies no thread while it waits: a commit that changes what it
/// watches wakes its task.
///
/// ```
/// # use slate_core::{ChangeLog, aio::Database, bson::{Document, doc, rawdoc}};
/// # #[tokio::main]
/// # async fn main() -> slate_core::Result<()> {
/// let db = Database::open("memory:").await?;
/// db.as_blocking().enable_changes(ChangeLog::new())?;
/// let users = db.collection("users");
/// let mut changes = users.watch([] as [Document; 0]).await?;
/// users.insert_one(&rawdoc! { "_id": 1 }).await?;
/// assert_eq!(changes.next().await.unwrap()?.operation_type(), "insert");
/// # Ok(())
/// # }
/// ```
pub struct ChangeStream {
    following: Following<ChangeStreamState>,
}

impl ChangeStream {
    /// Waits for the next event; `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<Result<ChangeEvent>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Returns the resume token after the events returned so far, for [`Watch::resume_after`]. It advances also while there are no events.
    pub fn resume_token(&self) -> RawDocumentBuf {
        self.following.token.clone()
    }
}

impl Stream for ChangeStream {
    type Item = Result<ChangeEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.following.poll_item(context)).transpose();
        Poll::Ready(next.map(|next| next.map(|ready| ChangeEvent::new(ready.document))))
    }
}

crate::debug::shown! { self: ChangeStream {} }

/// A live query; see [`slate_core::LiveQuery`](crate::LiveQuery). It occupies no thread while it waits.
pub struct LiveQuery<T> {
    following: Following<LiveState>,
    collection: Arc<str>,
    documents: As<T>,
}

impl<T: DeserializeOwned + Any> LiveQuery<T> {
    /// Waits for the next step; `None` after an error.
    pub async fn next(&mut self) -> Option<Result<LiveChange<T>>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl<T: DeserializeOwned + Any> Stream for LiveQuery<T> {
    type Item = Result<LiveChange<T>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.following.poll_item(context)).transpose();
        Poll::Ready(next.map(|next| next.and_then(|step| converted(step, &self.collection))))
    }
}

crate::debug::shown! { self: LiveQuery<T> { collection: self.collection } }

impl<T: DeserializeOwned + Send + Any> Call<Find<T>> {
    /// Runs the query and updates its result with each commit; see [`Find::live`].
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn live(self) -> Operation<LiveQuery<T>> {
        let (mut find, runner) = self.into_parts();
        let token = find.child_token();
        let opened = runner.block(CancelToken::new(), move || find.open_live());
        Operation::new(async move {
            let (state, call, collection) = opened.await?;
            let following = Following::new(state, call, token, |_, _| {});
            Ok(LiveQuery { following, collection, documents: PhantomData })
        })
    }
}

pub(super) fn open(watch: Watch, token: CancelToken, runner: &Runner) -> Operation<ChangeStream> {
    let opened = runner.block(CancelToken::new(), move || watch.open());
    Operation::new(async move {
        let (state, call) = opened.await?;
        let seen = |state: &ChangeStreamState, token: &mut RawDocumentBuf| {
            *token = RawDocumentBuf::from_bytes(state.token().document()).unwrap_or_default();
        };
        Ok(ChangeStream { following: Following::new(state, call, token, seen) })
    })
}
