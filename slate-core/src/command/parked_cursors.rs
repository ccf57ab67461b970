use std::{
    collections::hash_map::{Entry, RandomState},
    hash::BuildHasher,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::{Duration, Instant},
};

use ahash::{AHashMap, AHashSet};
use slate_query::{Code, raw::Doc};

use super::{
    common::Common,
    cursor::{After, BatchSize, CommandCursor, CursorOwner, CursorRows},
    open_cursor::OpenCursor,
    reply::{Filled, Reply},
};
use crate::{
    CancelToken, Error, ErrorKind, Quota, Result,
    call::{
        DatabaseHandle,
        change_stream::{ChangeStreamState, Follower},
    },
    changes::Waiting,
};

/// The open cursors. Between batches a cursor holds a snapshot and its position in it, but no thread and no batch.
pub(super) struct ParkedCursors {
    cursors: Mutex<AHashMap<i64, Parked>>,
    ids: RandomState,
    /// Limits the number of open cursors, those in use included.
    quota: Arc<Quota>,
}

impl Default for ParkedCursors {
    fn default() -> Self {
        Self { cursors: Mutex::default(), ids: RandomState::default(), quota: Quota::new("cursors", usize::MAX) }
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
        described: OpenCursor,
    },
}

impl Parked {
    fn owner(&self) -> Option<&CursorOwner> {
        match self {
            Self::Waiting { cursor, .. } => cursor.owner.as_ref(),
            Self::InUse { described, .. } => described.owner.as_ref(),
        }
    }

    /// Returns the session and the transaction that opened the cursor.
    fn opened_in(&self) -> (Option<&[u8]>, Option<i64>) {
        match self {
            Self::Waiting { cursor, .. } => (cursor.session.as_deref(), cursor.transaction),
            Self::InUse { described, .. } => (described.session.as_deref(), described.transaction),
        }
    }

    /// Whether commands of this user may use the cursor; `None`: without a user.
    fn is_open_to(&self, user: Option<&CursorOwner>) -> bool {
        user.is_none_or(|user| self.owner() == Some(user))
    }
}

impl ParkedCursors {
    /// Appends the next batch of a cursor to a reply. Cancelling `token` closes the cursor.
    ///
    /// # Errors
    /// Fails with `CursorNotFound` (43), `CursorInUse` (143), `Unauthorized` (13) for another collection or another owner's cursor, 50736 to 50741
    /// for another session or transaction; also with the errors of the rows, which close the cursor.
    pub(super) fn next_batch(
        &self,
        reply: &mut Reply,
        id: i64,
        namespace: &str,
        common: &Common,
        documents: Option<u64>,
        token: Option<&CancelToken>,
    ) -> Result<()> {
        let mut cursor = InUse { cursors: self, id, cursor: Some(self.take(id, namespace, common)?) };
        reply.cursor("nextBatch", namespace, |batch| cursor.fill(batch, common.began, documents, token))
    }

    /// Returns whether the cursor reads a change stream, so that `getMore` can wait for events.
    pub(super) fn awaits(&self, id: i64) -> bool {
        self.with_changes(id, |_| Ok(())).is_some()
    }

    /// Returns whether the cursor reads a query and is not in use; false if it does not exist.
    pub(super) fn is_of_query(&self, id: i64) -> bool {
        matches!(self.lock().get(&id), Some(Parked::Waiting { cursor, .. }) if matches!(cursor.rows, CursorRows::Query(_)))
    }

    /// Returns the time limit of the next batch of a query; `None` also for a change stream, and for a cursor that is in use.
    #[cfg(feature = "async")]
    pub(super) fn time_limit(&self, id: i64) -> Option<Duration> {
        match self.lock().get(&id)? {
            Parked::Waiting { cursor, .. } if matches!(cursor.rows, CursorRows::Query(_)) => cursor.max_time,
            Parked::Waiting { .. } | Parked::InUse { .. } => None,
        }
    }

    /// Wakes `waker` at the next commit of this process that changes what this change stream watches. Returns also the stream's database. `None` if
    /// the cursor is not a change stream, or is in use.
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

    /// Closes the cursors, all or none. Calls that are reading them fail with `CursorKilled` (237). Returns the ids of closed and of unknown cursors.
    ///
    /// # Errors
    /// Fails with `Unauthorized` (13) if one of them belongs to another owner.
    pub(super) fn kill(&self, ids: &[i64], user: Option<&CursorOwner>) -> Result<(Vec<i64>, Vec<i64>)> {
        let mut cursors = self.lock();
        let foreign = |id: &&i64| cursors.get(*id).is_some_and(|parked| !parked.is_open_to(user));
        if let Some(id) = ids.iter().find(foreign) {
            return Err(not_owned(*id));
        }
        let (mut closed, mut killed, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for id in ids {
            match cursors.remove(id) {
                Some(parked) => {
                    closed.push(parked);
                    killed.push(*id);
                }
                None => missing.push(*id),
            }
        }
        // Cursors are dropped without the lock: that can release a snapshot and delete files, which takes time.
        drop(cursors);
        for parked in &closed {
            if let Parked::InUse { kill, .. } = parked {
                kill.cancel();
            }
        }
        Ok((killed, missing))
    }

    /// Limits how many cursors may be open.
    pub(super) fn limit(&self, most: usize) {
        self.quota.limit(most);
    }

    /// Closes the cursors that were not used for this time and may time out. Returns how many.
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
            parked.opened_in().0.is_some_and(|session| sessions.contains(session)) && parked.is_open_to(user)
        })
    }

    /// Closes the cursors that a transaction of a session opened and the user may use. Returns how many.
    pub(super) fn close_transaction(&self, session: &[u8], number: i64, user: Option<&CursorOwner>) -> usize {
        self.close(|parked| parked.opened_in() == (Some(session), Some(number)) && parked.is_open_to(user))
    }

    /// Describes the cursors that the user may use.
    pub(super) fn describe(&self, user: Option<&CursorOwner>) -> Vec<OpenCursor> {
        let describe = |(id, parked): (&i64, &Parked)| match parked {
            Parked::Waiting { cursor, .. } => OpenCursor::of(*id, cursor),
            Parked::InUse { described, .. } => described.clone(),
        };
        self.lock().iter().filter(|(_, parked)| parked.is_open_to(user)).map(describe).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn close(&self, is_closed: impl Fn(&Parked) -> bool) -> usize {
        let mut cursors = self.lock();
        let closed: Vec<Parked> = cursors.extract_if(|_, parked| is_closed(parked)).map(|(_, parked)| parked).collect();
        // Cursors are dropped without the lock: that can release a snapshot and delete files, which takes time.
        drop(cursors);
        closed.iter().for_each(|parked| {
            if let Parked::InUse { kill, .. } = parked {
                kill.cancel();
            }
        });
        closed.len()
    }

    /// Adds an open cursor and returns its id.
    ///
    /// # Errors
    /// Fails with `ExceededMemoryLimit` (146) if too many are open.
    pub(super) fn park(&self, mut cursor: CommandCursor, command: Doc<'_>) -> Result<i64> {
        cursor.facts.opened_by(command);
        cursor.place = Some(self.quota.take(cursor.owner.clone())?);
        let mut cursors = self.lock();
        let mut attempt = cursors.len();
        loop {
            // Positive, because some drivers treat 0 and negative ids as the end of a cursor.
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
        check_transaction(id, cursor.transaction, common.transaction)?;
        common.call.activity.iter().zip(&cursor.activity).for_each(|(own, opened)| own.continues(opened));
        let described = OpenCursor::of(id, cursor).in_use();
        let in_use = Parked::InUse { kill: cursor.kill.clone(), described };
        match std::mem::replace(parked, in_use) {
            Parked::Waiting { cursor, .. } => Ok(cursor),
            Parked::InUse { .. } => Err(already_in_use(id)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, AHashMap<i64, Parked>> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cursor while a call reads a batch. Dropping this closes the cursor, unless it was parked again.
struct InUse<'p> {
    cursors: &'p ParkedCursors,
    id: i64,
    cursor: Option<Box<CommandCursor>>,
}

impl InUse<'_> {
    /// Appends the documents of the batch, and parks the cursor if rows remain.
    fn fill(
        &mut self,
        batch: &mut Reply,
        began: Instant,
        documents: Option<u64>,
        token: Option<&CancelToken>,
    ) -> Result<Filled> {
        let Some(cursor) = &mut self.cursor else { return Ok(Filled { id: 0, token: None }) };
        // The time limit of a change stream does not include the wait for an event.
        let began = match &cursor.rows {
            CursorRows::Changes(_) => Instant::now(),
            CursorRows::Query(_) => began,
        };
        cursor.interrupt.renew(cursor.max_time.and_then(|within| began.checked_add(within)));
        // The rows check the token of the command that opened them. The token of this command must end them, too.
        let cancels = token.map(|token| token.cancels(&cursor.kill));
        let filled = cursor.fill(batch, BatchSize::Documents(documents));
        drop(cancels);
        token.map_or(Ok(()), CancelToken::check)?;
        if cursor.kill.is_cancelled() {
            return Err(killed(self.id));
        }
        let token = cursor.token();
        if filled? == After::Nothing {
            return Ok(Filled { id: 0, token });
        }
        let Some(mut cursor) = self.cursor.take() else { return Ok(Filled { id: 0, token }) };
        cursor.facts.used();
        let mut cursors = self.cursors.lock();
        let Some(parked) = cursors.get_mut(&self.id) else {
            // The cursor was killed after its token was checked. Dropped without the lock, because that deletes its temporary files.
            drop(cursors);
            drop(cursor);
            return Err(killed(self.id));
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

fn killed(id: i64) -> Error {
    Error::new(ErrorKind::Interrupted, Code::CURSOR_KILLED, format!("the cursor {id} was killed"))
}

fn already_in_use(id: i64) -> Error {
    Error::invalid(Code::CURSOR_IN_USE, format!("cursor id {id} is already in use")).at("getMore")
}

fn not_owned(id: i64) -> Error {
    let message = format!("cursor id {id} was not created by the authenticated user");
    Error::invalid(Code::UNAUTHORIZED, message)
}

/// Fails unless `session` is the session that opened the cursor, `owner`. `None`: no session.
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

/// Fails unless `within` is the transaction that opened the cursor, `of`. `None`: no transaction.
fn check_transaction(id: i64, of: Option<i64>, within: Option<i64>) -> Result<()> {
    let (code, message) = match (of, within) {
        _ if of == within => return Ok(()),
        (None, _) => (50_739, "which was not created in a transaction, in a transaction"),
        (Some(_), None) => (50_740, "which was created in a transaction, without a txnNumber"),
        (Some(_), Some(_)) => (50_741, "which was created in another transaction"),
    };
    let message = format!("Cannot run getMore on cursor {id}, {message}");
    Err(Error::invalid(Code(code), message).at("txnNumber"))
}
