//! Cursors: a reply contains one batch of a command's rows, and the others wait for `getMore`.

use std::{
    collections::hash_map::{Entry, RandomState},
    hash::BuildHasher,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::Waker,
    time::{Duration, Instant},
};

use ahash::{AHashMap, AHashSet};
use bson::RawDocumentBuf;
use slate_query::{Code, raw::Doc};

use super::{
    call::CommandScope,
    common::Common,
    reply::{Filled, Reply},
};
use crate::{
    CancelToken, Error, ErrorKind, Result,
    call::{
        DatabaseHandle,
        change_stream::{ChangeStreamState, Follower, ReadOutcome},
    },
    call_context::CallContext,
    changes::Waiting,
    exec::Rows,
    interrupt::Interrupt,
};

/// MongoDB's limit on the bytes of a batch. The first document of a batch may exceed it.
const BATCH_BYTES: usize = 16 << 20;

/// The most documents of a batch if the command gives no size. A reply is in memory as a whole until it is sent, and one of 50,000
/// documents is as fast for the client as one of 16 MiB.
const UNSIZED_BATCH: u64 = 50_000;

/// The most bytes that an element of a batch has beside its document: its type, and its name of at most eight digits with the end. MongoDB
/// counts as many for each.
const ELEMENT_BYTES: usize = 10;

/// A batch that becomes longer than this gets room for the longest one.
const LONG_BATCH: usize = 1 << 20;

/// The number of documents in MongoDB's first batch if the command gives no size.
pub(super) const FIRST_BATCH: u64 = 101;

/// How much of the rows a reply takes.
#[derive(Clone, Copy, Debug)]
enum BatchSize {
    /// All rows, whatever their size: the caller has no place for a cursor.
    Everything,
    /// At most this many documents, or as many as fit, up to [`UNSIZED_BATCH`].
    Documents(Option<u64>),
}

/// Who has opened a cursor, where there are several users.
pub(super) type CursorOwner = Arc<[u8]>;

/// How a command's cursor is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct CursorOptions {
    /// The size of the first batch.
    pub(super) batch: Option<u64>,
    /// The limit of the command: the cursor ends with the last document that the limit allows.
    pub(super) limit: Option<u64>,
    /// Whether the cursor ends with its first batch.
    pub(super) is_single: bool,
    /// Whether the cursor is closed when nobody has used it for some time.
    pub(super) times_out: bool,
}

impl CursorOptions {
    /// Returns the options of a cursor of which nothing is known but the size of its first batch; `None`: as many documents as fit.
    pub(super) fn in_batches(batch: Option<u64>) -> Self {
        Self { batch, limit: None, is_single: false, times_out: true }
    }
}

/// The rows of a command and how they are continued.
pub(super) struct CommandCursor {
    rows: CursorRows,
    namespace: String,
    /// The number of documents that the command's limit leaves.
    left: Option<u64>,
    /// The time limit, which begins again with each batch, and the interrupt that all nodes share.
    max_time: Option<Duration>,
    interrupt: Interrupt,
    /// Cancelled when the cursor is killed.
    kill: CancelToken,
    /// The id of the session that has opened the cursor.
    session: Option<Vec<u8>>,
    owner: Option<CursorOwner>,
    times_out: bool,
    /// Whether the rows stand at a document that did not fit into the last batch.
    has_current: bool,
}

/// What a cursor reads.
enum CursorRows {
    Query(Box<dyn Rows + Send>),
    /// Changes, of which there are always more.
    Changes(Box<ChangeStreamState>),
}

/// Whether documents follow a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    More,
    Nothing,
}

impl CommandCursor {
    /// Returns the cursor of a change stream.
    pub(super) fn of_changes(
        state: Box<ChangeStreamState>,
        namespace: String,
        common: &Common,
        kill: CancelToken,
    ) -> Self {
        let rows: Box<dyn Rows + Send> = Box::new(ListedRows { documents: Vec::new().into_iter(), current: None });
        let mut call = common.call.clone();
        call.interrupt = call.interrupt.renewable();
        call.interrupt.cancel(kill.clone());
        let cursor = Self::new(rows, namespace, common, call.interrupt, kill);
        Self { rows: CursorRows::Changes(state), ..cursor }
    }

    pub(super) fn new(
        rows: Box<dyn Rows + Send>,
        namespace: String,
        common: &Common,
        interrupt: Interrupt,
        kill: CancelToken,
    ) -> Self {
        Self {
            rows: CursorRows::Query(rows),
            namespace,
            left: None,
            max_time: common.max_time,
            interrupt,
            kill,
            session: common.session.clone(),
            owner: common.owner.clone(),
            times_out: true,
            has_current: false,
        }
    }

    /// Returns the cursor of a command that lists definitions or effects.
    pub(super) fn listing(documents: Vec<RawDocumentBuf>, namespace: String, common: &Common) -> Self {
        let rows = ListedRows { documents: documents.into_iter(), current: None };
        Self::new(Box::new(rows), namespace, common, Interrupt::default(), CancelToken::new())
    }

    /// Appends the documents of a batch.
    fn fill(&mut self, batch: &mut Reply, size: BatchSize) -> Result<After> {
        match &mut self.rows {
            CursorRows::Query(_) => self.fill_rows(batch, size),
            CursorRows::Changes(state) => {
                let call = CallContext::within(self.interrupt.clone());
                fill_changes(state, batch, size, &call)
            }
        }
    }

    /// Where a change stream continues.
    fn token(&self) -> Option<Vec<u8>> {
        match &self.rows {
            CursorRows::Query(_) => None,
            CursorRows::Changes(state) => Some(state.token().document()),
        }
    }

    fn fill_rows(&mut self, batch: &mut Reply, size: BatchSize) -> Result<After> {
        let CursorRows::Query(rows) = &mut self.rows else { return Ok(After::Nothing) };
        let mut batch = ReplyBatch::new(batch, size);
        while self.left != Some(0) {
            if batch.is_full() {
                rows.pause();
                return Ok(After::More);
            }
            if !self.has_current {
                self.has_current = rows.advance()?;
            }
            let Some(document) = rows.current().filter(|_| self.has_current) else { return Ok(After::Nothing) };
            if !batch.has_room_for(document) {
                rows.pause();
                return Ok(After::More);
            }
            batch.add(document);
            (self.has_current, self.left) = (false, self.left.map(|left| left - 1));
        }
        Ok(After::Nothing)
    }
}

/// Appends the changes of a batch, without waiting for one.
fn fill_changes(
    state: &mut ChangeStreamState,
    batch: &mut Reply,
    size: BatchSize,
    call: &CallContext,
) -> Result<After> {
    let mut batch = ReplyBatch::new(batch, size);
    while !batch.is_full() {
        let Some(next) = state.peek() else {
            // What was read is not lost if the event after it fails.
            if state.is_over() || batch.documents > 0 || state.read(call)? == ReadOutcome::AtEnd {
                break;
            }
            continue;
        };
        if !batch.has_room_for(Doc::from(&next.document)) {
            break;
        }
        if let Some(next) = state.take() {
            batch.add(Doc::from(&next.document));
        }
    }
    Ok(if state.is_over() { After::Nothing } else { After::More })
}

/// The documents of a reply, while they are appended.
struct ReplyBatch<'r> {
    reply: &'r mut Reply,
    size: BatchSize,
    documents: u64,
    bytes: usize,
}

impl<'r> ReplyBatch<'r> {
    fn new(reply: &'r mut Reply, size: BatchSize) -> Self {
        Self { reply, size, documents: 0, bytes: 0 }
    }

    /// Whether the batch has as many documents as it may.
    fn is_full(&self) -> bool {
        match self.size {
            BatchSize::Everything => false,
            BatchSize::Documents(most) => self.documents >= most.unwrap_or(UNSIZED_BATCH),
        }
    }

    fn has_room_for(&self, document: Doc<'_>) -> bool {
        let is_limited = matches!(self.size, BatchSize::Documents(_)) && self.documents > 0;
        !is_limited || self.bytes + document.bytes().len() <= BATCH_BYTES
    }

    fn add(&mut self, document: Doc<'_>) {
        let before = self.bytes;
        self.bytes += document.bytes().len() + ELEMENT_BYTES;
        if before <= LONG_BATCH && self.bytes > LONG_BATCH && matches!(self.size, BatchSize::Documents(_)) {
            self.reply.expect_long_batch();
        }
        self.reply.document(&self.documents.to_string(), document);
        self.documents += 1;
    }
}

/// Documents that are in memory.
struct ListedRows {
    documents: std::vec::IntoIter<RawDocumentBuf>,
    current: Option<RawDocumentBuf>,
}

impl Rows for ListedRows {
    fn advance(&mut self) -> Result<bool> {
        self.current = self.documents.next();
        Ok(self.current.is_some())
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.current.as_ref().map(Doc::from)
    }
}

impl CommandScope<'_> {
    /// Appends the first batch of a cursor to a reply, and parks the cursor if there is more and there is a place for it.
    pub(super) fn first_batch(
        self,
        reply: &mut Reply,
        mut cursor: CommandCursor,
        options: CursorOptions,
    ) -> Result<()> {
        (cursor.left, cursor.times_out) = (options.limit, options.times_out);
        let namespace = cursor.namespace.clone();
        let size = self.cursors.map_or(BatchSize::Everything, |_| BatchSize::Documents(options.batch));
        reply.cursor("firstBatch", &namespace, |batch| {
            let after = cursor.fill(batch, size)?;
            let token = cursor.token();
            // A thread that may wait reads the other batches.
            self.budget.iter().for_each(|budget| budget.lift());
            let stays = after == After::More && !options.is_single;
            let id = self.cursors.filter(|_| stays).map_or(Ok(0), |cursors| cursors.park(cursor))?;
            Ok(Filled { id, token })
        })
    }
}

/// The cursors that wait for their next batch. They hold a snapshot and their place in it, but no thread and no batch.
pub(super) struct ParkedCursors {
    cursors: Mutex<AHashMap<i64, Parked>>,
    ids: RandomState,
    /// How many may be open.
    most: AtomicUsize,
}

impl Default for ParkedCursors {
    fn default() -> Self {
        Self { cursors: Mutex::default(), ids: RandomState::default(), most: AtomicUsize::new(usize::MAX) }
    }
}

enum Parked {
    Waiting {
        cursor: Box<CommandCursor>,
        since: Instant,
    },
    /// A call reads the next batch.
    InUse {
        kill: CancelToken,
        session: Option<Vec<u8>>,
        owner: Option<CursorOwner>,
    },
}

impl Parked {
    fn owner(&self) -> Option<&CursorOwner> {
        match self {
            Self::Waiting { cursor, .. } => cursor.owner.as_ref(),
            Self::InUse { owner, .. } => owner.as_ref(),
        }
    }

    /// Whether commands of a user may use the cursor.
    fn is_open_to(&self, user: Option<&CursorOwner>) -> bool {
        user.is_none_or(|user| self.owner() == Some(user))
    }
}

/// What became of a cursor that was to be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Killed {
    Yes,
    NotFound,
}

impl ParkedCursors {
    /// Appends the next batch of a cursor to a reply.
    ///
    /// # Errors
    /// `CursorNotFound` (43); `CursorInUse` (12051); `Unauthorized` (13) for another collection or another owner's cursor; 50736 to 50738 for another session;
    /// the errors of the rows, after which the cursor is closed.
    pub(super) fn next_batch(
        &self,
        reply: &mut Reply,
        id: i64,
        namespace: &str,
        common: &Common,
        documents: Option<u64>,
    ) -> Result<()> {
        let mut cursor = InUse { cursors: self, id, cursor: Some(self.take(id, namespace, common)?) };
        reply.cursor("nextBatch", namespace, |batch| cursor.fill(batch, documents))
    }

    /// Returns whether the cursor is that of a change stream, whose batches may come later.
    pub(super) fn awaits(&self, id: i64) -> bool {
        self.with_changes(id, |_| Ok(())).is_some()
    }

    /// Returns whether the cursor is there, and that of a query.
    pub(super) fn is_of_query(&self, id: i64) -> bool {
        matches!(self.lock().get(&id), Some(Parked::Waiting { cursor, .. }) if matches!(cursor.rows, CursorRows::Query(_)))
    }

    /// Wakes `waker` when a commit of this process has changed what the change stream with this cursor watches. Returns also the stream's
    /// database. `None` if it is no change stream, or is in use.
    pub(super) fn wait(&self, id: i64, waker: Waker) -> Option<Result<(Waiting, DatabaseHandle)>> {
        self.with_changes(id, |state| Ok((state.wait(waker)?, state.database().clone())))
    }

    fn with_changes<R>(&self, id: i64, work: impl FnOnce(&ChangeStreamState) -> Result<R>) -> Option<Result<R>> {
        match self.lock().get(&id)? {
            Parked::Waiting { cursor, .. } => match &cursor.rows {
                CursorRows::Changes(state) => Some(work(state)),
                CursorRows::Query(_) => None,
            },
            Parked::InUse { .. } => None,
        }
    }

    /// Closes the cursor. A call that reads from it ends with `CursorKilled` (237).
    ///
    /// # Errors
    /// `Unauthorized` (13) for another owner's cursor.
    pub(super) fn kill(&self, id: i64, user: Option<&CursorOwner>) -> Result<Killed> {
        let mut cursors = self.lock();
        let Some(parked) = cursors.get(&id) else { return Ok(Killed::NotFound) };
        if !parked.is_open_to(user) {
            return Err(not_owned(id));
        }
        let closed = cursors.remove(&id);
        // Closing a cursor can release a snapshot and drop files, which takes time.
        drop(cursors);
        if let Some(Parked::InUse { kill, .. }) = closed {
            kill.cancel();
        }
        Ok(Killed::Yes)
    }

    /// Limits how many cursors may be open.
    pub(super) fn limit(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Closes the cursors that nobody has used for this time. Returns how many.
    pub(super) fn close_idle(&self, idle: Duration) -> usize {
        self.close(|parked| match parked {
            Parked::Waiting { cursor, since } => cursor.times_out && since.elapsed() >= idle,
            Parked::InUse { .. } => false,
        })
    }

    /// Closes the cursors that the user may use. Returns how many.
    pub(super) fn close_all(&self, user: Option<&CursorOwner>) -> usize {
        self.close(|parked| parked.is_open_to(user))
    }

    /// Closes the cursors of sessions that the user may use. Returns how many.
    pub(super) fn close_sessions(&self, sessions: &AHashSet<Vec<u8>>, user: Option<&CursorOwner>) -> usize {
        self.close(|parked| {
            let of = match parked {
                Parked::Waiting { cursor, .. } => &cursor.session,
                Parked::InUse { session, .. } => session,
            };
            of.as_ref().is_some_and(|session| sessions.contains(session)) && parked.is_open_to(user)
        })
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn close(&self, is_closed: impl Fn(&Parked) -> bool) -> usize {
        let mut cursors = self.lock();
        let closed: Vec<Parked> = cursors.extract_if(|_, parked| is_closed(parked)).map(|(_, parked)| parked).collect();
        // Closing a cursor can release a snapshot and drop files, which takes time.
        drop(cursors);
        closed.iter().for_each(|parked| {
            if let Parked::InUse { kill, .. } = parked {
                kill.cancel();
            }
        });
        closed.len()
    }

    fn park(&self, cursor: CommandCursor) -> Result<i64> {
        let mut cursors = self.lock();
        let most = self.most.load(Ordering::Relaxed);
        if cursors.len() >= most {
            let message = format!("{most} cursors are open, which is the limit: read them to their end or close them");
            return Err(Error::new(ErrorKind::Full, Code::EXCEEDED_MEMORY_LIMIT, message));
        }
        let mut attempt = cursors.len();
        loop {
            // Positive, because some drivers take 0 and negative numbers for the end.
            let id = i64::from_ne_bytes(self.ids.hash_one((Instant::now(), attempt)).to_ne_bytes()) & i64::MAX;
            if let Entry::Vacant(place) = cursors.entry(id)
                && id != 0
            {
                place.insert(Parked::Waiting { cursor: Box::new(cursor), since: Instant::now() });
                return Ok(id);
            }
            attempt += 1;
        }
    }

    fn take(&self, id: i64, namespace: &str, common: &Common) -> Result<Box<CommandCursor>> {
        let mut cursors = self.lock();
        let parked = cursors.get_mut(&id).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, Code::CURSOR_NOT_FOUND, format!("cursor id {id} not found"))
        })?;
        if !parked.is_open_to(common.owner.as_ref()) {
            return Err(not_owned(id));
        }
        let Parked::Waiting { cursor, .. } = &*parked else {
            return Err(already_in_use(id));
        };
        if cursor.namespace != namespace {
            let message = format!(
                "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
                cursor.namespace
            );
            return Err(Error::invalid(Code::UNAUTHORIZED, message).at("collection"));
        }
        check_session(id, cursor.session.as_deref(), common.session.as_deref())?;
        let (session, owner) = (cursor.session.clone(), cursor.owner.clone());
        let in_use = Parked::InUse { kill: cursor.kill.clone(), session, owner };
        match std::mem::replace(parked, in_use) {
            Parked::Waiting { cursor, .. } => Ok(cursor),
            Parked::InUse { .. } => Err(already_in_use(id)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, AHashMap<i64, Parked>> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cursor that was taken out for a batch. Dropping it closes the cursor, unless there is more to read.
struct InUse<'p> {
    cursors: &'p ParkedCursors,
    id: i64,
    cursor: Option<Box<CommandCursor>>,
}

impl InUse<'_> {
    /// Appends the documents of the batch; returns the id for the next one.
    fn fill(&mut self, batch: &mut Reply, documents: Option<u64>) -> Result<Filled> {
        let Some(cursor) = &mut self.cursor else { return Ok(Filled { id: 0, token: None }) };
        cursor.interrupt.renew(cursor.max_time);
        let filled = cursor.fill(batch, BatchSize::Documents(documents));
        if cursor.kill.is_cancelled() {
            let message = format!("the cursor {} was killed", self.id);
            return Err(Error::new(ErrorKind::Interrupted, Code::CURSOR_KILLED, message));
        }
        let token = cursor.token();
        if filled? == After::Nothing {
            return Ok(Filled { id: 0, token });
        }
        let mut cursors = self.cursors.lock();
        // A cursor that was killed meanwhile is no longer there.
        let (Some(parked), Some(cursor)) = (cursors.get_mut(&self.id), self.cursor.take()) else {
            return Ok(Filled { id: 0, token });
        };
        *parked = Parked::Waiting { cursor, since: Instant::now() };
        Ok(Filled { id: self.id, token })
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        if self.cursor.is_some() {
            self.cursors.lock().remove(&self.id);
        }
    }
}

fn already_in_use(id: i64) -> Error {
    Error::invalid(Code::CURSOR_IN_USE, format!("cursor id {id} is already in use")).at("getMore")
}

fn not_owned(id: i64) -> Error {
    let message = format!("cursor id {id} was not created by the authenticated user");
    Error::invalid(Code::UNAUTHORIZED, message)
}

/// Fails if a cursor of one session is used by another.
fn check_session(id: i64, owner: Option<&[u8]>, session: Option<&[u8]>) -> Result<()> {
    let (code, message) = match (owner, session) {
        _ if owner == session => return Ok(()),
        (None, _) => (50_736, "which was not created in a session, in a session"),
        (Some(_), None) => (50_737, "which was created in a session, without an lsid"),
        (Some(_), Some(_)) => (50_738, "which was created in another session"),
    };
    let message = format!("Cannot run getMore on cursor {id}, {message}");
    Err(Error::invalid(Code(code), message).at("lsid"))
}

/// Returns the bytes by which a session is known: its `id`.
pub(super) fn session_id(lsid: Doc<'_>) -> Option<Vec<u8>> {
    lsid.get("id").map(|id| id.bytes().to_vec())
}
