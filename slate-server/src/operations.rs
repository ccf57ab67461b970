use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI32, AtomicU64, Ordering},
    },
    time::{Instant, SystemTime},
};

use bson::{DateTime, RawArrayBuf, RawDocumentBuf, cstr, rawdoc};
use slate_core::CancelToken;

use crate::{
    auth::{User, UserName},
    command::Command,
    listener::Address,
    session::SessionId,
};

/// A command of more bytes is shown without its content.
const SHOWN_BYTES: usize = 1000;

/// The commands that run, for `currentOp`, `killOp` and `killSessions`. Each connection has a place for the one that it runs, so that
/// commands of different connections do not wait for each other.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    last: AtomicI32,
    /// The places, by the numbers of their connections.
    places: Mutex<HashMap<i64, Arc<Place>>>,
}

/// The place of a connection's command.
#[derive(Debug)]
pub(crate) struct Place {
    connection: i64,
    client: Address,
    running: Mutex<Option<Operation>>,
}

/// A command that runs. It is described only when somebody asks.
#[derive(Debug)]
struct Operation {
    id: i32,
    token: CancelToken,
    since: Instant,
    user: Option<Arc<User>>,
    command: Arc<Command>,
    progress: Option<Arc<Progress>>,
}

/// How far a command is that takes long.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    pub(crate) fn set(&self, done: u64, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }
}

/// Empties the place of a command when it is dropped.
pub(crate) struct Running<'p>(&'p Place);

impl Operations {
    /// Makes a place for a connection, until [`leave`](Self::leave).
    pub(crate) fn enter(&self, connection: i64, client: Address) -> Arc<Place> {
        let place = Arc::new(Place { connection, client, running: Mutex::default() });
        self.places().insert(connection, Arc::clone(&place));
        place
    }

    pub(crate) fn leave(&self, place: &Place) {
        self.places().remove(&place.connection);
    }

    /// Puts a command into the place of its connection.
    pub(crate) fn begin<'p>(
        &self,
        place: &'p Place,
        command: &Arc<Command>,
        token: &CancelToken,
        user: Option<Arc<User>>,
    ) -> Running<'p> {
        let id = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let (token, since, command) = (token.clone(), Instant::now(), Arc::clone(command));
        *place.running() = Some(Operation { id, token, since, user, command, progress: None });
        Running(place)
    }

    /// Cancels a command, if it still runs. Returns false if it does and is not one of the user.
    pub(crate) fn kill(&self, id: i32, user: Option<&UserName>) -> bool {
        let places = self.places();
        let is_refused = places.values().any(|place| {
            let running = place.running();
            let Some(operation) = running.as_ref().filter(|operation| operation.id == id) else { return false };
            let is_allowed = operation.is_of(user);
            if is_allowed {
                operation.token.cancel();
            }
            !is_allowed
        });
        !is_refused
    }

    /// Cancels the commands of sessions.
    pub(crate) fn kill_sessions(&self, sessions: &HashSet<SessionId>) {
        self.kill_if(|operation| operation.session().is_some_and(|session| sessions.contains(&session)));
    }

    /// Returns the sessions whose commands run.
    pub(crate) fn sessions(&self) -> HashSet<SessionId> {
        self.places().values().filter_map(|place| place.running().as_ref()?.session()).collect()
    }

    /// Cancels every command.
    pub(crate) fn kill_all(&self) {
        self.kill_if(|_| true);
    }

    fn kill_if(&self, is_killed: impl Fn(&Operation) -> bool) {
        for place in self.places().values() {
            place
                .running()
                .iter()
                .filter(|operation| is_killed(operation))
                .for_each(|operation| operation.token.cancel());
        }
    }

    /// Returns a description of every command that runs, or of those of a user.
    pub(crate) fn describe(&self, host: &str, user: Option<&UserName>) -> RawArrayBuf {
        let mut described: Vec<(i32, RawDocumentBuf)> = Vec::new();
        for place in self.places().values() {
            let running = place.running();
            let of_user = running.iter().filter(|operation| operation.is_of(user));
            described.extend(of_user.map(|operation| (operation.id, operation.describe(place, host))));
        }
        described.sort_unstable_by_key(|(id, _)| *id);
        described.into_iter().map(|(_, description)| description).collect()
    }

    fn places(&self) -> MutexGuard<'_, HashMap<i64, Arc<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Shows the progress of the command that runs.
    pub(crate) fn show(&self, progress: &Arc<Progress>) {
        self.running().iter_mut().for_each(|operation| operation.progress = Some(Arc::clone(progress)));
    }

    fn running(&self) -> MutexGuard<'_, Option<Operation>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a command contains a password or the messages of a login.
fn holds_secrets(command: &str) -> bool {
    matches!(command, "createUser" | "updateUser" | "saslStart" | "saslContinue")
}

impl Operation {
    /// Whether it is one of the user; every one is, if no user is given.
    fn is_of(&self, user: Option<&UserName>) -> bool {
        user.is_none_or(|user| self.user.as_ref().is_some_and(|own| own.name == *user))
    }

    /// The session that the command belongs to.
    fn session(&self) -> Option<SessionId> {
        let owner = self.user.as_ref().map(|user| user.digest);
        self.command.session.as_deref().and_then(|lsid| SessionId::read(lsid, owner).ok())
    }

    fn describe(&self, place: &Place, host: &str) -> RawDocumentBuf {
        let Command { name, database, .. } = &*self.command;
        let elapsed = self.since.elapsed();
        let micros = i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX);
        let began = DateTime::from_system_time(SystemTime::now() - elapsed);
        let target = self.command.get(name).ok().flatten().and_then(|target| target.as_str()).unwrap_or("$cmd");
        let kind = match &**name {
            "find" => "query",
            "getMore" => "getmore",
            "insert" => "insert",
            "update" => "update",
            "delete" => "remove",
            _ => "command",
        };
        let mut described = rawdoc! {
            "type": "op",
            "host": host,
            "desc": format!("conn{}", place.connection),
            "connectionId": place.connection,
            "client": place.client.to_string(),
            "active": true,
            "currentOpTime": began.try_to_rfc3339_string().unwrap_or_default(),
            "opid": self.id,
            "secs_running": micros / 1_000_000,
            "microsecs_running": micros,
            "op": kind,
            "ns": format!("{database}.{target}"),
            "command": self.shown(),
            "killPending": self.token.is_cancelled(),
        };
        if let Some(progress) = &self.progress {
            let number = |number: &AtomicU64| i64::try_from(number.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
            let (done, total) = (number(&progress.done), number(&progress.total));
            described.append(cstr!("msg"), format!("{name}: {done}/{total}"));
            described.append(cstr!("progress"), rawdoc! { "done": done, "total": total });
        }
        if let Some(user) = &self.user {
            described.append(cstr!("effectiveUsers"), RawArrayBuf::from_iter([user.name.document()]));
        }
        if let Some(session) = self.session() {
            described.append(cstr!("lsid"), session.document());
        }
        described
    }

    /// Returns the command as others may see it.
    fn shown(&self) -> RawDocumentBuf {
        let (name, document) = (&*self.command.name, self.command.document());
        if holds_secrets(name) {
            rawdoc! { "$truncated": name }
        } else if document.as_bytes().len() <= SHOWN_BYTES {
            document.to_owned()
        } else {
            rawdoc! { "$truncated": format!("{name} of {} bytes", document.as_bytes().len()) }
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.0.running() = None;
    }
}
