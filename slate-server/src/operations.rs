mod description;

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bson::{RawDocument, RawDocumentBuf};
use slate_core::{Activity, CancelToken, aio::RunningCommand};
use tokio::sync::Notify;

pub(crate) use self::description::{MAX_COMMAND, Scope, idle_cursor, idle_transaction, kind, number, shown};
use crate::{
    auth::{User, UserName},
    command::Command,
    listener::Address,
    session::SessionId,
    top::LastUsage,
    traffic::{TotalTraffic, Traffic},
};

/// Maximum length in bytes of a client's metadata, and of the name of its application: MongoDB's limits. Longer ones are not shown.
const MAX_METADATA: usize = 512;
const MAX_APPLICATION: usize = 128;

/// Number of command ids that a connection reserves at a time. The first of them, a multiple of this number, is not used.
const IDS: i32 = 64;

/// The running commands, for `currentOp`, `killOp` and `killSessions`. Each connection has a place for its command, so that commands of different
/// connections do not wait for each other.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    last: AtomicI32,
    places: Mutex<Places>,
}

/// The places of open connections, by their numbers, and the total traffic of closed ones.
#[derive(Debug, Default)]
struct Places {
    open: HashMap<i64, Arc<Place>>,
    ended: TotalTraffic,
}

/// A connection and its running command.
#[derive(Debug)]
pub(crate) struct Place {
    connection: i64,
    client: Address,
    since: Instant,
    application: OnceLock<Application>,
    running: Mutex<Option<Operation>>,
    /// The id of the next command; a multiple of [`IDS`] if ids must be reserved first. Only the connection's task reads and writes it.
    next_id: AtomicI32,
    /// Notified when the server stops.
    ending: Notify,
    /// Notified when the connection is closed in favor of another one.
    dismissal: Notify,
    standing: AtomicU8,
    pub(crate) traffic: Traffic,
    /// The collection of the last command.
    pub(crate) usage: LastUsage,
}

/// The standing of a connection whose client has not logged in.
const STRANGER: u8 = 0;
/// The standing of a connection whose client has logged in.
const KNOWN: u8 = 1;
/// The standing of a connection that is being closed in favor of another one, because its client has not logged in.
const DISMISSED: u8 = 2;
/// The standing of a connection that was not admitted.
const REFUSED: u8 = 3;

/// Whether the server has admitted a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Admitted,
    /// The only reply to the client is an error with the reason. The connection is not closed in favor of another one.
    Refused,
}

/// What a client says about itself in its first `hello`.
#[derive(Debug)]
struct Application {
    name: Option<String>,
    metadata: Option<RawDocumentBuf>,
}

/// A running command. It is described only on request.
#[derive(Clone, Debug)]
struct Operation {
    id: i32,
    token: CancelToken,
    since: Instant,
    user: Option<Arc<User>>,
    command: Arc<Command>,
    activity: Activity,
    progress: Option<Arc<Progress>>,
}

/// Whose commands are selected.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose<'u> {
    Everyone,
    User(&'u UserName),
}

impl<'u> Whose<'u> {
    /// Selects the commands of one user, or of everyone for `None`.
    pub(crate) fn of(user: Option<&'u User>) -> Self {
        user.map_or(Self::Everyone, |user| Self::User(&user.name))
    }
}

/// The progress of a long command.
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

/// Removes a command from its place when dropped.
pub(crate) struct Running<'p> {
    place: &'p Place,
    since: Instant,
}

impl Operations {
    /// Creates the place of a connection, which exists until [`leave`](Self::leave).
    pub(crate) fn enter(&self, connection: i64, client: Address, admission: Admission) -> Arc<Place> {
        let standing = match admission {
            Admission::Admitted => STRANGER,
            Admission::Refused => REFUSED,
        };
        let place = Arc::new(Place {
            connection,
            client,
            since: Instant::now(),
            application: OnceLock::new(),
            running: Mutex::default(),
            next_id: AtomicI32::new(0),
            ending: Notify::new(),
            dismissal: Notify::new(),
            standing: AtomicU8::new(standing),
            traffic: Traffic::default(),
            usage: LastUsage::default(),
        });
        self.places().open.insert(connection, Arc::clone(&place));
        place
    }

    pub(crate) fn leave(&self, place: &Place) {
        let mut places = self.places();
        if places.open.remove(&place.connection).is_some() {
            places.ended += &place.traffic;
        }
    }

    /// Returns the total traffic of all connections since the start.
    pub(crate) fn traffic(&self) -> TotalTraffic {
        let places = self.places();
        places.open.values().fold(places.ended, |mut total, place| {
            total += &place.traffic;
            total
        })
    }

    /// Notifies the connections that wait for a request that the server is stopping.
    pub(crate) fn stop(&self) {
        self.places().open.values().for_each(|place| place.ending.notify_one());
    }

    /// Closes the connection that has been open longest without a login. Returns `false` if there is none.
    pub(crate) fn dismiss_stranger(&self) -> bool {
        let places = self.places();
        loop {
            let strangers = places.open.values().filter(|place| place.standing.load(Ordering::Relaxed) == STRANGER);
            let Some(first) = strangers.min_by_key(|place| place.connection) else { return false };
            // A connection that logs in meanwhile stays open.
            let (from, to) = (STRANGER, DISMISSED);
            if first.standing.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                first.dismissal.notify_one();
                return true;
            }
        }
    }

    /// Enters a command in the place of its connection. It is removed when the result is dropped.
    pub(crate) fn begin<'p>(
        &self,
        place: &'p Place,
        command: &Arc<Command>,
        running: RunningCommand<'_>,
        user: Option<Arc<User>>,
    ) -> Running<'p> {
        let id = self.next_id(place);
        let RunningCommand { began: since, token, activity } = running;
        let (token, command, activity) = (token.clone(), Arc::clone(command), activity.clone());
        *place.running() = Some(Operation { id, token, since, user, command, activity, progress: None });
        Running { place, since }
    }

    /// Returns the id of the next command of a connection. Connections reserve [`IDS`] ids at a time, because they contend for the counter.
    fn next_id(&self, place: &Place) -> i32 {
        let next = place.next_id.load(Ordering::Relaxed);
        let id = if next % IDS == 0 { self.last.fetch_add(IDS, Ordering::Relaxed).wrapping_add(1) } else { next };
        place.next_id.store(id.wrapping_add(1), Ordering::Relaxed);
        id
    }

    /// Cancels a command, if it is still running. Returns `false` if it is running and belongs to another user.
    pub(crate) fn kill(&self, id: i32, whose: Whose<'_>) -> bool {
        let places = self.places();
        let is_refused = places.open.values().any(|place| {
            let running = place.running();
            let Some(operation) = running.as_ref().filter(|operation| operation.id == id) else { return false };
            let is_allowed = operation.is_of(whose);
            if is_allowed {
                operation.token.cancel();
            }
            !is_allowed
        });
        !is_refused
    }

    /// Cancels the running commands of sessions.
    pub(crate) fn kill_sessions(&self, sessions: &HashSet<SessionId>) {
        self.kill_if(|operation| operation.session().is_some_and(|session| sessions.contains(&session)));
    }

    /// Returns the sessions with a running command.
    pub(crate) fn sessions(&self) -> HashSet<SessionId> {
        self.places().open.values().filter_map(|place| place.running().as_ref()?.session()).collect()
    }

    /// Cancels all commands.
    pub(crate) fn kill_all(&self) {
        self.kill_if(|_| true);
    }

    fn kill_if(&self, is_killed: impl Fn(&Operation) -> bool) {
        for place in self.places().open.values() {
            place
                .running()
                .iter()
                .filter(|operation| is_killed(operation))
                .for_each(|operation| operation.token.cancel());
        }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Shows the progress of the running command.
    pub(crate) fn show(&self, progress: &Arc<Progress>) {
        self.running().iter_mut().for_each(|operation| operation.progress = Some(Arc::clone(progress)));
    }

    /// Waits until the server stops.
    pub(crate) async fn ended(&self) {
        self.ending.notified().await;
    }

    /// Waits until the connection is closed in favor of another one.
    pub(crate) async fn dismissed(&self) {
        self.dismissal.notified().await;
    }

    /// Records whether the client has logged in.
    pub(crate) fn set_known(&self, is_known: bool) {
        let (from, to) = if is_known { (STRANGER, KNOWN) } else { (KNOWN, STRANGER) };
        let _ = self.standing.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Records the client's metadata from its first `hello`. Ignores later ones.
    pub(crate) fn introduce(&self, metadata: &RawDocument) {
        let name = metadata.get_document("application").and_then(|application| application.get_str("name"));
        let name = name.ok().filter(|name| name.len() <= MAX_APPLICATION).map(str::to_owned);
        let metadata = (metadata.as_bytes().len() <= MAX_METADATA).then(|| metadata.to_owned());
        let _ = self.application.set(Application { name, metadata });
    }

    /// Returns the name of the client's application; `None` if it has not sent one.
    pub(crate) fn application(&self) -> Option<&str> {
        self.application.get()?.name.as_deref()
    }

    fn running(&self) -> MutexGuard<'_, Option<Operation>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Operation {
    fn is_of(&self, whose: Whose<'_>) -> bool {
        match whose {
            Whose::Everyone => true,
            Whose::User(user) => self.user.as_ref().is_some_and(|own| own.name == *user),
        }
    }

    /// Returns the session of the command; `None` if it has none.
    fn session(&self) -> Option<SessionId> {
        let owner = self.user.as_ref().map(|user| user.digest);
        self.command.session().and_then(|lsid| SessionId::read(lsid, owner).ok())
    }
}

impl Running<'_> {
    /// Returns how long the command has run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.place.running() = None;
    }
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    #[test]
    fn ids_differ_and_what_was_exchanged_stays_when_a_connection_ends() {
        let operations = Operations::default();
        let enter =
            |number| operations.enter(number, Address::Tcp("127.0.0.1:1".parse().unwrap()), Admission::Admitted);
        let (first, second) = (enter(1), enter(2));
        let command = Arc::new(Command::read(rawdoc! { "ping": 1, "$db": "admin" }).unwrap());
        let mut ids = HashSet::new();
        for place in [&first, &second].into_iter().cycle().take(300) {
            place.traffic.received(10);
            place.traffic.executes("ping");
            let (began, token, activity) = (Instant::now(), &CancelToken::new(), &Activity::default());
            let running = operations.begin(place, &command, RunningCommand { began, token, activity }, None);
            assert!(ids.insert(place.running().as_ref().unwrap().id));
            drop(running);
        }
        let counts = || {
            let traffic = operations.traffic();
            (traffic.requests, traffic.bytes_in, traffic.others)
        };
        assert_eq!(counts(), (300, 3000, 300));
        operations.leave(&first);
        operations.leave(&first);
        assert_eq!(counts(), (300, 3000, 300));
    }
}
