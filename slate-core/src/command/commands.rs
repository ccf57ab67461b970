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
    /// The budget of all commands.
    budget: Option<WaitBudget>,
    /// When all commands have begun, if that was earlier.
    began: Option<Instant>,
}

impl Database {
    /// Runs MongoDB's commands whose replies come in batches. Each value has cursors of its own: create one for all callers.
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
    /// Runs a command; see [`Database::command`]. The cursor of `find` and `aggregate` has MongoDB's batches, and `getMore` and `killCursors`
    /// know it. Its time limit (`maxTimeMS`) begins again with each batch. A command that
    /// [`at_snapshot`](Self::at_snapshot) and [`in_transaction`](Self::in_transaction) cannot run fails with 263 or, if it writes to a
    /// snapshot, with 20.
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

    /// Returns whether a command waits in the queue of writes.
    #[cfg(feature = "async")]
    pub(crate) fn writes(&self, command: &RawDocument) -> bool {
        super::writes(Doc::from(command))
    }

    /// Returns whether a command can be tried within a budget: it can be repeated when it has spent the budget.
    #[cfg(feature = "async")]
    pub(crate) fn is_short(&self, command: &RawDocument) -> bool {
        matches!(self.scope, Scope::Database(_)) && super::is_short(Doc::from(command))
    }

    /// Returns how long a command may take; for `getMore` what the command that has opened the cursor says. `None` also for a limit that
    /// the command will be refused for.
    #[cfg(feature = "async")]
    pub(crate) fn time_limit(&self, command: &RawDocument) -> Option<Duration> {
        let command = Doc::from(command);
        let first = command.elements().next()?;
        if first.name == b"getMore" {
            return self.cursors.time_limit(first.value.as_i64()?);
        }
        super::common::time_limit(command)
    }

    /// Returns what ends and shows a command that begins now.
    pub(crate) fn running(&self) -> Running<'_> {
        Running {
            began: self.began.unwrap_or_else(Instant::now),
            end: None,
            token: self.token.as_ref(),
            activity: self.activity.as_ref(),
            budget: self.budget.as_ref(),
        }
    }

    /// Runs a command that `running` ends and shows, in place of what these commands have.
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
        let reply = super::run(at);
        match running.budget {
            // A statement that has spent the budget is in the reply as one that was refused.
            Some(budget) if budget.is_spent() => Err(budget.spend()),
            _ => reply,
        }
    }

    /// Runs a command and then `then`, which gets its reply and the commands of the same transaction, as one transaction. Without a budget it
    /// is repeated after errors that are conflicts.
    ///
    /// # Errors
    /// Fails, with nothing changed, if the command, `then` or the commit fails; in a scope that is not the database.
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

    /// Returns the same cursors for commands that read a snapshot.
    #[must_use]
    pub fn at_snapshot(&self, snapshot: &Snapshot) -> Self {
        self.in_scope(snapshot.scope())
    }

    /// Returns the same cursors for commands in a transaction. After its end they fail with
    /// [`ErrorKind::TransactionOver`](crate::ErrorKind::TransactionOver).
    #[must_use]
    pub fn in_transaction(&self, transaction: &Transaction) -> Self {
        self.in_scope(transaction.scope())
    }

    pub(crate) fn in_scope(&self, scope: Scope) -> Self {
        Self { scope, ..self.clone() }
    }

    /// Returns the same cursors for commands that the token cancels: a running command fails with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted), and the cursors that these commands have opened end.
    #[must_use]
    pub fn with_cancel(&self, token: CancelToken) -> Self {
        Self { token: Some(token), ..self.clone() }
    }

    /// Returns the same cursors for commands that show in `activity` what they do: one for each command that runs.
    #[must_use]
    pub fn with_activity(&self, activity: &Activity) -> Self {
        Self { activity: Some(activity.clone()), ..self.clone() }
    }

    /// Returns the same cursors for the commands of one of several users, named by any bytes: the cursors that they open belong to the
    /// owner, and they may read and close no others. Commands without an owner may use all cursors.
    #[must_use]
    pub fn owned_by(&self, owner: impl Into<Arc<[u8]>>) -> Self {
        Self { owner: Some(owner.into()), ..self.clone() }
    }

    /// Returns the same cursors for commands that read these documents, in this order, from the collection `name` of a database: from the
    /// value of `find`, `aggregate`, `count` and `distinct`, and not from stages as `$lookup`. Nothing is stored, and no other command knows
    /// the collection. Its name may begin with `system.`
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

    /// Limits the cursors that are open at a time, for all values with the same cursors: a command that would open a further one fails
    /// with `ExceededMemoryLimit` (146). One [owner](Self::owned_by) may have three quarters of them. There is no limit by default.
    pub fn limit_cursors(&self, most: usize) {
        self.cursors.limit(most);
    }

    /// Returns the same cursors for a caller that waits for the events of change streams itself.
    #[cfg(feature = "async")]
    pub(crate) fn without_waiting(&self) -> Self {
        Self { waits: Waits::No, ..self.clone() }
    }

    /// Wakes `waker` when a commit of this process has changed what the change stream with this cursor watches. Returns also its database.
    #[cfg(feature = "async")]
    pub(crate) fn wait(&self, cursor: i64, waker: Waker) -> Option<Result<(Waiting, DatabaseHandle)>> {
        self.cursors.wait(cursor, waker)
    }

    /// Returns how many cursors are open.
    pub fn open_cursors(&self) -> usize {
        self.cursors.len()
    }

    /// Describes the cursors that are open; those of the owner, if there is one.
    pub fn cursors(&self) -> Vec<OpenCursor> {
        self.cursors.describe(self.owner.as_ref())
    }

    /// Closes the cursors that nobody has read for this time, except those of commands with `noCursorTimeout`; returns how many.
    /// MongoDB's time is ten minutes. Nothing closes them by itself: the library starts no thread for it.
    pub fn close_idle_cursors(&self, idle: Duration) -> usize {
        self.cursors.close_idle(idle)
    }

    /// Closes the cursors of the owner, and all if these commands have no owner; returns how many.
    pub fn close_cursors(&self) -> usize {
        self.cursors.close_all(self.owner.as_ref())
    }

    /// Closes the cursors of the sessions with these `lsid`, of the owner if there is one; returns how many.
    pub fn close_session_cursors<'l>(&self, lsids: impl IntoIterator<Item = &'l RawDocument>) -> usize {
        let sessions = lsids.into_iter().filter_map(|lsid| session_id(Doc::from(lsid))).collect();
        self.cursors.close_sessions(&sessions, self.owner.as_ref())
    }

    /// Closes the cursors that the commands of a transaction have opened, which have this `lsid` and this `txnNumber`; returns how many. A
    /// cursor has the rows of its transaction, and must not outlive it.
    pub fn close_transaction_cursors(&self, lsid: &RawDocument, number: i64) -> usize {
        let close = |session: Vec<u8>| self.cursors.close_transaction(&session, number, self.owner.as_ref());
        session_id(Doc::from(lsid)).map_or(0, close)
    }
}

crate::debug::shown! { self: Commands { open_cursors: self.open_cursors() } }
