use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Wake,
    thread::{self, Thread},
    time::{Duration, Instant},
};

use bson::{RawDocument, RawDocumentBuf, Timestamp};
use serde::de::DeserializeOwned;
use slate_query::raw::{Doc, Kind, Value};

use crate::{
    CancelToken, FullDocument, FullDocumentBeforeChange, IntoDocument, Result,
    api::setters::setters,
    call::{
        Request, Scope,
        change_stream::{ChangeStreamState, Follower, ReadOutcome, StreamSpec, StreamStart, parse_stages},
    },
    call_context::CallContext,
    changes::{Expanded, OtherWriters, POLL, Token, Watched},
    document::from_raw,
};

/// The options of a change stream; see [`Collection::watch`](crate::Collection::watch) and
/// [`Database::watch`](crate::Database::watch).
#[derive(Clone)]
#[must_use = "nothing is watched until `run`"]
pub struct Watch {
    scope: Scope,
    watched: Watched,
    start: StreamStart,
    full_document: FullDocument,
    before: FullDocumentBeforeChange,
    expanded: Expanded,
    request: Request,
}

impl Watch {
    pub(crate) fn new(
        scope: Scope,
        watched: Watched,
        pipeline: impl IntoIterator<Item = impl IntoDocument>,
        call: CallContext,
    ) -> Self {
        let mut request = Request::default();
        request.pipeline(pipeline);
        request.call = call;
        Self {
            scope,
            watched,
            start: StreamStart::Now,
            full_document: FullDocument::Default,
            before: FullDocumentBeforeChange::Off,
            expanded: Expanded::No,
            request,
        }
    }

    fn token(&mut self, token: impl IntoDocument) -> Option<Token> {
        let token = self.request.take(token)?;
        self.request.accept(Token::read(Doc::from(&token)))
    }

    /// Sets the content of `fullDocument` in events of updates.
    pub fn full_document(mut self, full_document: FullDocument) -> Self {
        self.full_document = full_document;
        self
    }

    /// Sets the content of `fullDocumentBeforeChange` in events of updates, replacements and deletions.
    pub fn full_document_before_change(mut self, before: FullDocumentBeforeChange) -> Self {
        self.before = before;
        self
    }

    /// Continues after the event with this resume token: no event is lost or repeated, also after a restart and in another process.
    pub fn resume_after(mut self, token: impl IntoDocument) -> Self {
        if let Some(token) = self.token(token) {
            self.start = StreamStart::ResumeAfter(token);
        }
        self
    }

    /// Like [`resume_after`](Self::resume_after), but also after the end of a stream whose collection was dropped or renamed.
    pub fn start_after(mut self, token: impl IntoDocument) -> Self {
        if let Some(token) = self.token(token) {
            self.start = StreamStart::StartAfter(token);
        }
        self
    }

    /// Begins with the first commit at this time or later: the `clusterTime` of events.
    pub fn start_at(mut self, time: Timestamp) -> Self {
        self.start = StreamStart::At(u64::from(time.time) << 32 | u64::from(time.increment));
        self
    }

    /// Also returns events of created and changed collections and indexes, and further fields of other events: MongoDB's `showExpandedEvents`.
    pub fn expanded_events(mut self) -> Self {
        self.expanded = Expanded::Yes;
        self
    }

    setters! { request: let_variables, collation; request.call: deadline, cancel }

    /// Opens the stream. Without a start it begins with the next commit.
    ///
    /// # Errors
    /// Code 40573 if [changes are not logged](crate::Database::enable_changes); `ChangeStreamHistoryLost` (286) if the start is no longer in
    /// the log, or before it; `CommandNotSupportedOnView` (166) for a view; MongoDB's code for a pipeline or a token that is not valid.
    pub fn run(self) -> Result<ChangeStream> {
        let (state, call) = self.open()?;
        Ok(ChangeStream { following: Following::new(state, call) })
    }

    /// Opens the stream; returns it with the limits of its reads.
    pub(crate) fn open(self) -> Result<(ChangeStreamState, CallContext)> {
        self.request.check()?;
        self.request.call.check()?;
        let bindings = self.request.stream_bindings()?;
        let stages = self.request.stages().iter().map(|stage| Value::new(Kind::Document, stage.as_bytes()));
        let (stages, splits) = self.request.call.during(|| parse_stages(stages, &bindings))?;
        let Self { watched, start, full_document, before, expanded, request, .. } = self;
        let call = request.call;
        let spec = StreamSpec { watched, start, full_document, before, expanded, stages, splits };
        let state = ChangeStreamState::open(self.scope.database("watching changes")?, spec, &call)?;
        Ok((state, call))
    }
}

crate::debug::shown! { self: Watch { watched: self.watched, pipeline: self.request.stages() } }

/// A change stream: an iterator that waits for the next event, and ends only after the collection or the database was dropped or renamed
/// (`invalidate`), or after an error.
///
/// While it waits the stream holds no snapshot.
///
/// ```
/// # use slate_core::{ChangeLog, Database, bson::{Document, doc, rawdoc}};
/// let db = Database::open("memory:")?;
/// db.enable_changes(ChangeLog::new())?;
/// let users = db.collection("users");
/// let mut changes = users.watch([doc! { "$match": { "operationType": "insert" } }]).run()?;
/// users.insert_one(&rawdoc! { "_id": 1, "name": "Ada" })?;
/// let event = changes.next().unwrap()?;
/// assert_eq!(event.full_document::<Document>()?, Some(doc! { "_id": 1, "name": "Ada" }));
/// # Ok::<(), slate_core::Error>(())
/// ```
pub struct ChangeStream {
    following: Following<ChangeStreamState>,
}

/// The longest wait of a stream between two checks of its token and its deadline.
const LOOK: Duration = Duration::from_millis(100);

impl ChangeStream {
    /// Waits at most this time for the next event. `None` if there was none, or the stream has ended.
    ///
    /// # Errors
    /// `ChangeStreamHistoryLost` (286) if the log was trimmed beyond the stream's position; code 47 if a required image is missing; an
    /// interruption; the errors of the storage. The stream then has ended.
    pub fn next_within(&mut self, time: Duration) -> Result<Option<ChangeEvent>> {
        self.next_until(Instant::now().checked_add(time))
    }

    fn next_until(&mut self, until: Option<Instant>) -> Result<Option<ChangeEvent>> {
        let next = self.following.next_until(until)?;
        Ok(next.map(|ready| ChangeEvent { document: ready.document }))
    }

    /// Returns the resume token after the events returned so far, for [`Watch::resume_after`]. It advances also while there are no events.
    pub fn resume_token(&self) -> RawDocumentBuf {
        RawDocumentBuf::from_bytes(self.following.state.token().document()).unwrap_or_default()
    }
}

/// A follower of the log that waits on the caller's thread.
pub(crate) struct Following<F> {
    pub(crate) state: F,
    call: CallContext,
    has_failed: bool,
}

impl<F: Follower> Following<F> {
    pub(crate) fn new(state: F, call: CallContext) -> Self {
        Self { state, call, has_failed: false }
    }

    /// Waits until this time for the next item; `None` if there was none, or the follower has ended.
    pub(crate) fn next_until(&mut self, until: Option<Instant>) -> Result<Option<F::Item>> {
        if self.has_failed {
            return Ok(None);
        }
        let waited = self.wait(until);
        self.has_failed |= waited.is_err();
        waited
    }

    fn wait(&mut self, until: Option<Instant>) -> Result<Option<F::Item>> {
        loop {
            if let Some(ready) = self.state.take() {
                return Ok(Some(ready));
            }
            if self.state.is_over() {
                return Ok(None);
            }
            if self.state.read(&self.call)? == ReadOutcome::Ready {
                continue;
            }
            let woken = Parked::here();
            let waiting = self.state.wait(Arc::clone(&woken).into())?;
            // Reads again: a commit between the read and the registration has not woken this thread.
            if self.state.read(&self.call)? == ReadOutcome::Ready {
                continue;
            }
            let longest = match self.state.database().other_writers()? {
                OtherWriters::Expected => POLL,
                OtherWriters::None => LOOK,
            };
            while !woken.is_woken() {
                let left = |end: Option<Instant>| {
                    end.map_or(longest, |end| end.saturating_duration_since(Instant::now()).min(longest))
                };
                if left(until).is_zero() {
                    return Ok(None);
                }
                thread::park_timeout(left(until).min(left(self.call.interrupt.end())));
                self.call.check()?;
                if longest == POLL {
                    break;
                }
            }
            drop(waiting);
        }
    }
}

/// A thread that waits for a commit.
pub(crate) struct Parked {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Parked {
    /// Returns a waker of the calling thread.
    pub(crate) fn here() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), is_woken: AtomicBool::new(false) })
    }

    fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Acquire)
    }

    /// Waits until a commit has woken the thread. Returns `false` when the time is over.
    ///
    /// # Errors
    /// Fails with `Interrupted` if the token is cancelled.
    pub(crate) fn wait(&self, until: Instant, token: Option<&CancelToken>) -> Result<bool> {
        while !self.is_woken() {
            let left = until.saturating_duration_since(Instant::now()).min(LOOK);
            if left.is_zero() {
                return Ok(false);
            }
            thread::park_timeout(left);
            token.map_or(Ok(()), CancelToken::check)?;
        }
        Ok(true)
    }
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Iterator for ChangeStream {
    type Item = Result<ChangeEvent>;

    fn next(&mut self) -> Option<Result<ChangeEvent>> {
        self.next_until(None).transpose()
    }
}

crate::debug::shown! { self: ChangeStream { watched: self.following.state.watched() } }

/// An event of a [`ChangeStream`]: MongoDB's change event, and its fields.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeEvent {
    document: RawDocumentBuf,
}

impl ChangeEvent {
    #[cfg(feature = "async")]
    pub(crate) fn new(document: RawDocumentBuf) -> Self {
        Self { document }
    }

    /// Returns the kind of the event: `insert`, `update`, `replace`, `delete`, `drop`, `rename`, `dropDatabase`, `invalidate`, or, among expanded
    /// events, `create`, `createIndexes`, `dropIndexes` or `modify`. Empty if the pipeline has removed the field.
    pub fn operation_type(&self) -> &str {
        self.field("operationType").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the `_id` of the changed document, as a document; `None` if the event has none.
    pub fn document_key(&self) -> Option<&RawDocument> {
        self.part("documentKey")
    }

    /// Returns the changes of an update: `updatedFields`, `removedFields` and `truncatedArrays`. `None` for other events.
    pub fn update_description(&self) -> Option<&RawDocument> {
        self.part("updateDescription")
    }

    /// Returns the document after the change, if the event has it.
    ///
    /// # Errors
    /// Fails if it is not a `T`.
    pub fn full_document<T: DeserializeOwned + Any>(&self) -> Result<Option<T>> {
        self.document("fullDocument")
    }

    /// Returns the document before the change, if the event has it.
    ///
    /// # Errors
    /// Fails if it is not a `T`.
    pub fn full_document_before_change<T: DeserializeOwned + Any>(&self) -> Result<Option<T>> {
        self.document("fullDocumentBeforeChange")
    }

    /// Returns the resume token of this event, for [`Watch::resume_after`].
    pub fn resume_token(&self) -> RawDocumentBuf {
        self.part("_id").map(RawDocument::to_owned).unwrap_or_default()
    }

    /// Returns MongoDB's change event.
    pub fn as_raw(&self) -> &RawDocument {
        &self.document
    }

    /// Returns MongoDB's change event.
    pub fn into_raw(self) -> RawDocumentBuf {
        self.document
    }

    fn field(&self, name: &str) -> Option<Value<'_>> {
        Doc::from(&self.document).get(name)
    }

    fn part(&self, name: &str) -> Option<&RawDocument> {
        self.document.get_document(name).ok()
    }

    fn document<T: DeserializeOwned + Any>(&self, name: &str) -> Result<Option<T>> {
        self.field(name).and_then(Value::as_document).map(|document| from_raw("a change stream", document)).transpose()
    }
}
