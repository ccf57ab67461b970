#[cfg(feature = "async")]
use std::task::Waker;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bson::{RawDocument, RawDocumentBuf};
use slate_query::raw::Doc;

use super::{
    call::{CommandScope, Running, Waits},
    cursor::{CursorOwner, session_id},
    open_cursor::OpenCursor,
    own_collection::OwnCollection,
    parked_cursors::ParkedCursors,
};
use crate::{
    Activity, CancelToken, Database, IntoDocument, Result, Snapshot, Transaction,
    call::Scope,
    interrupt::WaitBudget,
    namespace::{self, DatabaseName},
};
#[cfg(feature = "async")]
use crate::{Error, call::DatabaseHandle, call_context::CallContext, changes::Waiting};

/// Runs MongoDB's commands on a database, a snapshot or in an open transaction, and holds the cursors that they open: a reply contains
/// one batch, and `getMore` returns the next one, from any thread. A cursor holds a snapshot, or the rows that a transaction has read;
/// it holds no thread and no batch.
///
/// Clones share their cursors, and so do the values that [`at_snapshot`](Self::at_snapshot) and
/// [`in_transaction`](Self::in_transaction) return.
///
/// ```
/// # let db = slate_core::Database::open("memory:")?;
/// use bson::{doc, rawdoc};
///
/// db.collection("users").insert_many(&[rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }, rawdoc! { "_id": 3 }]).run()?;
/// let commands = db.commands();
/// let first = commands.run(doc! { "find": "users", "batchSize": 2 })?;
/// let id = first.get_document("cursor").unwrap().get_i64("id").unwrap();
/// let next = std::thread::spawn(move || commands.run(doc! { "getMore": id, "collection": "users" })).join().unwrap()?;
/// let cursor = next.get_document("cursor").unwrap();
/// assert_eq!((cursor.get_array("nextBatch").unwrap().into_iter().count(), cursor.get_i64("id").unwrap()), (1, 0));
/// # Ok::<(), slate_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Commands {
    scope: Scope,
    /// The database of commands without `$db`.
    database: DatabaseName,
    cursors: Arc<ParkedCursors>,
    token: Option<CancelToken>,
    activity: Option<Activity>,
    owner: Option<CursorOwner>,
    own: Option<OwnCollection>,
    waits: Waits,
    /// The budget that all commands of this value share.
    budget: Option<WaitBudget>,
    /// When the commands of this value began, if earlier than their execution.
    began: Option<Instant>,
}

impl Database {
    /// Returns a handle that runs MongoDB's commands with replies in batches. Each call returns a handle with cursors of its own: callers share
    /// cursors through clones.
    pub fn commands(&self) -> Commands {
        let (scope, database) = (Scope::Database(self.handle().clone()), self.name().clone());
        let (cursors, waits) = (Arc::default(), Waits::Yes);
        Commands {
            scope,
            database,
            cursors,
            token: None,
            activity: None,
            owner: None,
            own: None,
            waits,
            budget: None,
            began: None,
        }
    }
}

impl Commands {
    /// Runs a command; see [`Database::command`]. `find` and `aggregate` return one batch, of MongoDB's size, and the id of a cursor for `getMore`
    /// and `killCursors`. The time limit (`maxTimeMS`) applies to each batch separately. At a snapshot or in a transaction, commands that are not possible
    /// there fail with 263; commands that write to a snapshot fail with 20.
    ///
    /// # Errors
    /// Fails as [`Database::command`] does; with `CursorNotFound` (43) for a cursor that has ended, was killed or has timed out.
    pub fn run(&self, command: impl IntoDocument) -> Result<RawDocumentBuf> {
        self.run_document(&command.into_document()?)
    }

    /// Like [`run`](Self::run), without a copy of the command.
    pub(crate) fn run_document(&self, command: &RawDocument) -> Result<RawDocumentBuf> {
        self.run_within(self.running(), command)
    }

    /// Returns whether a command may write, and so must wait in the queue of writes.
    #[cfg(feature = "async")]
    pub(crate) fn writes(&self, command: &RawDocument) -> bool {
        super::writes(Doc::from(command))
    }

    /// Returns whether a command can be tried within a budget: it can be repeated when it has spent the budget.
    #[cfg(feature = "async")]
    pub(crate) fn is_short(&self, command: &RawDocument) -> bool {
        matches!(self.scope, Scope::Database(_)) && super::is_short(Doc::from(command))
    }

    /// Returns the time limit of a command; for `getMore` that of the command that opened the cursor, `None` for a change stream. `None` also if the
    /// limit is invalid: the command will fail.
    #[cfg(feature = "async")]
    pub(crate) fn time_limit(&self, command: &RawDocument) -> Option<Duration> {
        let command = Doc::from(command);
        let first = command.elements().next()?;
        if first.name == b"getMore" {
            return self.cursors.time_limit(first.value.as_i64()?);
        }
        super::common::time_limit(command)
    }

    /// Returns the limits and the activity of a command that begins now.
    pub(crate) fn running(&self) -> Running<'_> {
        Running {
            began: self.began.unwrap_or_else(Instant::now),
            end: None,
            token: self.token.as_ref(),
            activity: self.activity.as_ref(),
            budget: self.budget.as_ref(),
        }
    }

    /// Runs a command with the limits and the activity of `running` instead of the ones of this value.
    pub(crate) fn run_within(&self, running: Running<'_>, command: &RawDocument) -> Result<RawDocumentBuf> {
        if let Scope::Database(database) = &self.scope {
            database.limits().check()?;
        }
        let (cursors, owner) = (Some(&*self.cursors), self.owner.as_ref());
        let database = self.database.as_deref();
        let (waits, own) = (self.waits, self.own.as_ref());
        let at = CommandScope {
            scope: &self.scope,
            command: Doc::from(command),
            running,
            own,
            cursors,
            database,
            owner,
            waits,
        };
        super::run(at)
    }

    /// Runs a command and then `then` in one transaction. `then` gets the reply, and a handle for further commands in the transaction. Repeated after
    /// conflicts, unless there is a budget.
    ///
    /// # Errors
    /// Fails, with nothing changed, if the command, `then` or the commit fails; at a snapshot and in a transaction.
    #[cfg(feature = "async")]
    pub(crate) fn run_then<R, E: From<Error>>(
        &self,
        running: Running<'_>,
        command: &RawDocument,
        then: impl Fn(&Self, RawDocumentBuf) -> Result<R, E>,
        is_conflict: fn(&E) -> bool,
    ) -> Result<R, E> {
        let database = self.scope.database("a command with a transaction of its own")?;
        let mut call = CallContext::default();
        let Running { began, token, activity, budget, .. } = running;
        token.iter().for_each(|&token| call.cancel(token.clone()));
        call.interrupt.end_at(self.time_limit(command).and_then(|limit| began.checked_add(limit)));
        budget.iter().for_each(|budget| call.interrupt.limit_to(budget));
        let attempt = || {
            database.transact_detached(&call, |transaction| {
                let within = Self {
                    scope: Scope::Transaction(transaction),
                    database: self.database.clone(),
                    cursors: Arc::clone(&self.cursors),
                    token: token.cloned(),
                    activity: activity.cloned(),
                    owner: self.owner.clone(),
                    own: self.own.clone(),
                    waits: self.waits,
                    budget: budget.cloned(),
                    began: Some(began),
                };
                let reply = within.run_document(command)?;
                then(&within, reply)
            })
        };
        if let Some(budget) = budget {
            if database.has_exclusive_turn() { Err(budget.spend().into()) } else { attempt() }
        } else {
            database.in_turns(&call, is_conflict, attempt)
        }
    }

    /// Returns a handle with the same cursors whose commands read a snapshot.
    #[must_use]
    pub fn at_snapshot(&self, snapshot: &Snapshot) -> Self {
        self.in_scope(snapshot.scope())
    }

    /// Returns a handle with the same cursors whose commands run in a transaction. After its end they fail with
    /// [`ErrorKind::TransactionOver`](crate::ErrorKind::TransactionOver).
    #[must_use]
    pub fn in_transaction(&self, transaction: &Transaction) -> Self {
        self.in_scope(transaction.scope())
    }

    pub(crate) fn in_scope(&self, scope: Scope) -> Self {
        Self { scope, ..self.clone() }
    }

    /// Returns a handle with the same cursors whose commands the token cancels: a running command fails with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted), and cursors that these commands opened end.
    #[must_use]
    pub fn with_cancel(&self, token: CancelToken) -> Self {
        Self { token: Some(token), ..self.clone() }
    }

    /// Returns a handle with the same cursors whose commands show their work in `activity`. Commands that run at the same time need an activity each.
    #[must_use]
    pub fn with_activity(&self, activity: &Activity) -> Self {
        Self { activity: Some(activity.clone()), ..self.clone() }
    }

    /// Returns a handle with the same cursors for one of several users, named by any bytes: its commands open cursors that belong to this owner, and
    /// may read and close only these. Commands without an owner may use all cursors.
    #[must_use]
    pub fn owned_by(&self, owner: impl Into<Arc<[u8]>>) -> Self {
        Self { owner: Some(owner.into()), ..self.clone() }
    }

    /// Returns a handle with the same cursors for which the collection `name` of a database consists of these documents, in this order. `find`,
    /// `aggregate`, `count` and `distinct` can read it, stages such as `$lookup` cannot. Nothing is stored, and other commands do not see the
    /// collection. Its name may begin with `system.`
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::rawdoc;
    ///
    /// let log = vec![rawdoc! { "n": 1 }, rawdoc! { "n": 2 }];
    /// let reply = db.commands().with_collection("shop", "system.log", log).run(
    ///     rawdoc! { "find": "system.log", "$db": "shop", "filter": { "n": 2 } })?;
    /// assert_eq!(reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().into_iter().count(), 1);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    #[must_use]
    pub fn with_collection(&self, database: &str, name: &str, documents: impl Into<Arc<[RawDocumentBuf]>>) -> Self {
        let own = OwnCollection::new(&namespace::stored(database, name), documents.into());
        Self { own: Some(own), ..self.clone() }
    }

    /// Limits the number of open cursors, for all handles that share them: a command that would open a further one fails with `ExceededMemoryLimit`
    /// (146). One [owner](Self::owned_by) may have three quarters of them. There is no limit by default.
    pub fn limit_cursors(&self, most: usize) {
        self.cursors.limit(most);
    }

    /// Returns a handle with the same cursors whose `getMore` does not wait for events of change streams: the caller does.
    #[cfg(feature = "async")]
    pub(crate) fn without_waiting(&self) -> Self {
        Self { waits: Waits::No, ..self.clone() }
    }

    /// Wakes `waker` at the next commit of this process that changes what this change stream watches. Returns also its database. `None` if the cursor
    /// is not a change stream, or is in use.
    #[cfg(feature = "async")]
    pub(crate) fn wait(&self, cursor: i64, waker: Waker) -> Option<Result<(Waiting, DatabaseHandle)>> {
        self.cursors.wait(cursor, waker)
    }

    /// Returns how many cursors are open.
    pub fn open_cursors(&self) -> usize {
        self.cursors.len()
    }

    /// Describes the open cursors; with an owner only the owner's.
    pub fn cursors(&self) -> Vec<OpenCursor> {
        self.cursors.describe(self.owner.as_ref())
    }

    /// Closes the cursors that were not read for this time, except those of commands with `noCursorTimeout`; returns
    /// how many. MongoDB's time is ten minutes. The library does not call this by itself.
    pub fn close_idle_cursors(&self, idle: Duration) -> usize {
        self.cursors.close_idle(idle)
    }

    /// Closes all cursors; with an owner only the owner's. Returns how many.
    pub fn close_cursors(&self) -> usize {
        self.cursors.close_all(self.owner.as_ref())
    }

    /// Closes the cursors of the sessions with these `lsid`; with an owner only the owner's. Returns how many.
    pub fn close_session_cursors<'l>(&self, lsids: impl IntoIterator<Item = &'l RawDocument>) -> usize {
        let sessions = lsids.into_iter().filter_map(|lsid| session_id(Doc::from(lsid))).collect();
        self.cursors.close_sessions(&sessions, self.owner.as_ref())
    }

    /// Closes the cursors that commands with this `lsid` and this `txnNumber` opened in a transaction; returns how many. A cursor has the rows of its
    /// transaction, and must not outlive it.
    pub fn close_transaction_cursors(&self, lsid: &RawDocument, number: i64) -> usize {
        let close = |session: Vec<u8>| self.cursors.close_transaction(&session, number, self.owner.as_ref());
        session_id(Doc::from(lsid)).map_or(0, close)
    }
}

crate::debug::shown! { self: Commands { open_cursors: self.open_cursors() } }
