use std::{
    io,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use bson::{DateTime, oid::ObjectId};
use slate_core::{Quota, aio::Database};
#[cfg(feature = "metrics")]
use tokio::net::TcpListener;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{interval, sleep, sleep_until, timeout, timeout_at},
};

use crate::{
    Listener,
    auth::{Throttle, Users, random},
    connection::Connection,
    fail_points::FailPoints,
    failure::{Code, Failure},
    listener::Accepted,
    operations::Operations,
    profiler::Profiler,
    session::{MAX_SESSIONS, Sessions},
    shared::{Counts, Settings, Shared},
    top::Top,
    trace,
    wire::MessageMemory,
};

/// The default of [`Server::max_connections`].
const MAX_CONNECTIONS: usize = 10_000;

/// The default of [`Server::max_cursors`].
const MAX_CURSORS: usize = 10_000;

/// The default of [`Server::max_transactions`]: one for each connection, the most that drivers open at a time.
const MAX_TRANSACTIONS: usize = MAX_CONNECTIONS;

/// The default of [`Server::max_snapshots`]. A session may hold one for minutes, and there may be a million sessions.
const MAX_SNAPSHOTS: usize = 10_000;

/// The default of [`Server::max_message_memory`], in bytes.
const MAX_MESSAGE_MEMORY: usize = 1 << 30;

/// Maximum number of connections above the limit that receive the error at the same time.
const REFUSALS: usize = 64;

/// The longest duration that can be set: the maximum of MongoDB's parameters. Adding it to an `Instant` does not overflow.
const LONGEST: Duration = Duration::from_secs(0x7fff_ffff);

/// How many connections may be open above the limit, including those that are being closed in favor of others or are refused.
const REPLACED: usize = 2 * REFUSALS;

/// Timeout for the first message of a connection above the limit.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(2);

/// The default of [`Server::login_patience`]. Drivers monitor a server by connections that do not log in, with a message every ten seconds by
/// default, or with one `hello` that has many replies. A driver whose monitoring connection is closed considers the server unavailable until it has
/// another one.
const LOGIN_PATIENCE: Duration = Duration::from_secs(300);

/// The default of [`Server::transaction_lifetime`], as MongoDB's `transactionLifetimeLimitSeconds`.
const TRANSACTION_LIFE: Duration = Duration::from_secs(60);

/// How long running commands may take to end when the server shuts down; then they are cancelled. The whole shutdown takes at most twice this time,
/// because `docker stop` kills a process after ten seconds.
const GRACE: Duration = Duration::from_secs(4);

/// The shortest and the longest pause between two sweeps for overdue transactions, cursors and sessions. A sweep visits each session, of which
/// there may be a million.
const TICKS: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(10)];

/// The default of [`Server::expire_every`], as MongoDB's `ttlMonitorSleepSecs`.
const EXPIRE_EVERY: Duration = Duration::from_secs(60);

/// The default of [`Server::profiler_threshold`], as MongoDB's `slowms`.
const SLOW: Duration = Duration::from_millis(100);

/// The pause after a failure to accept a connection, usually for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A server of one database, which speaks MongoDB's wire protocol.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use slate_core::aio::Database;
/// use slate_server::Server;
/// use tokio::net::TcpListener;
///
/// let server = Server::new(Database::open("memory:").await?).read_only();
/// let shutdown = server.shutdown();
/// let running = tokio::spawn(server.serve(TcpListener::bind("127.0.0.1:0").await?));
/// shutdown.now();
/// running.await??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a server does nothing until `serve`"]
pub struct Server {
    database: Database,
    settings: Settings,
    stopping: watch::Sender<bool>,
    #[cfg(feature = "metrics")]
    metrics: Option<TcpListener>,
}

/// Ends a server; see [`Server::shutdown`].
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Sender<bool>);

impl Shutdown {
    /// Closes the listener and the connections that wait for a request. Running commands have four seconds to end, then they are cancelled. Open
    /// transactions are rolled back. [`Server::serve`] returns after eight seconds at the latest.
    pub fn now(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Creates a server of an open database, which the process may also use itself. A blocking [`Database`](slate_core::Database) is converted.
    pub fn new(database: impl Into<Database>) -> Self {
        let settings = Settings {
            read_only: false,
            authentication: false,
            replica_set: "slate".into(),
            host: None,
            max_connections: MAX_CONNECTIONS,
            login_patience: LOGIN_PATIENCE,
            max_cursors: MAX_CURSORS,
            max_message_memory: MAX_MESSAGE_MEMORY,
            max_sessions: MAX_SESSIONS,
            max_snapshots: MAX_SNAPSHOTS,
            max_transactions: MAX_TRANSACTIONS,
            #[cfg(feature = "tls")]
            tls: None,
            test_commands: false,
            transaction_life: TRANSACTION_LIFE,
            expire_every: EXPIRE_EVERY,
            slow: SLOW,
            backup_directory: None,
            arguments: Vec::new(),
        };
        Self {
            database: database.into(),
            settings,
            stopping: watch::Sender::new(false),
            #[cfg(feature = "metrics")]
            metrics: None,
        }
    }

    /// Refuses all writes by clients.
    pub fn read_only(mut self) -> Self {
        self.settings.read_only = true;
        self
    }

    /// Requires that clients log in, and lets each user do what the user's roles allow.
    ///
    /// Users are documents of the collection `system.users` of the database `admin`. The first one is created by `slate user add`, or by a
    /// client on this machine: as long as there is no user, the command `createUser` in the database `admin` needs no login.
    pub fn authentication(mut self) -> Self {
        self.settings.authentication = true;
        self
    }

    /// Sets the name of the replica set that the server presents. The default is `slate`. A client whose URI names another set does not
    /// connect.
    pub fn replica_set(mut self, name: impl Into<String>) -> Self {
        self.settings.replica_set = name.into();
        self
    }

    /// Sets the address that the server reports to clients, `name:port`, instead of the one that each has connected to. A driver without
    /// `directConnection=true` connects to that address from then on: it must be one that all clients reach and, with TLS, a name of the
    /// certificate. Clients of a Unix socket ignore it.
    pub fn host(mut self, address: impl Into<String>) -> Self {
        self.settings.host = Some(address.into());
        self
    }

    /// Requires TLS, and certificates of clients if `tls` says so. Unix sockets do not use TLS.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::Tls) -> Self {
        self.settings.tls = Some(tls);
        self
    }

    /// Sets how many cursors may be open: a command that opens a further one fails with `ExceededMemoryLimit` (146). With
    /// [`authentication`](Self::authentication) one user may have three quarters of them. The default is 10,000.
    pub fn max_cursors(mut self, most: usize) -> Self {
        self.settings.max_cursors = most;
        self
    }

    /// Sets how many transactions may be open: the command that begins a further one fails with `ExceededMemoryLimit` (146). With
    /// [`authentication`](Self::authentication) one user may have three quarters of them. The default is 10,000.
    pub fn max_transactions(mut self, most: usize) -> Self {
        self.settings.max_transactions = most;
        self
    }

    /// Sets how many sessions may hold a snapshot, which they do for five minutes after a read with the read concern `snapshot`: a
    /// further such read fails with `ExceededMemoryLimit` (146). With [`authentication`](Self::authentication) one user may have three
    /// quarters of them. The default is 10,000.
    pub fn max_snapshots(mut self, most: usize) -> Self {
        self.settings.max_snapshots = most;
        self
    }

    /// Sets how many bytes the messages of all connections may have while they arrive and are executed, not counting those of at most 64 KiB. A
    /// message above it is answered with `ExceededMemoryLimit` (146), and its connection is closed. The default is 1 GiB.
    pub fn max_message_memory(mut self, bytes: usize) -> Self {
        self.settings.max_message_memory = bytes;
        self
    }

    /// Sets how many logical sessions there may be: a further one fails with `TooManyLogicalSessions` (261). The default is MongoDB's
    /// 1,000,000.
    pub fn max_sessions(mut self, most: usize) -> Self {
        self.settings.max_sessions = most;
        self
    }

    /// Sets how many connections may be open. Further ones receive an error as their first reply and are closed; if there are many at the same
    /// time, most are closed without a reply. The default is 10,000.
    pub fn max_connections(mut self, most: usize) -> Self {
        self.settings.max_connections = most;
        self
    }

    /// Sets after how long without a message or a running command a connection without a login is closed, with
    /// [`authentication`](Self::authentication). The default is five minutes.
    pub fn login_patience(mut self, patience: Duration) -> Self {
        self.settings.login_patience = patience.min(LONGEST);
        self
    }

    /// Sets how long a transaction may be open before it is rolled back. The default is 60 seconds.
    pub fn transaction_lifetime(mut self, life: Duration) -> Self {
        self.settings.transaction_life = life.min(LONGEST);
        self
    }

    /// Offers `configureFailPoint`, by which clients make commands fail. Only for the tests of drivers.
    pub fn test_commands(mut self) -> Self {
        self.settings.test_commands = true;
        self
    }

    /// Sets how often documents that are due by TTL indexes are deleted. The default is a minute; zero means never.
    pub fn expire_every(mut self, pause: Duration) -> Self {
        self.settings.expire_every = pause;
        self
    }

    /// Serves `GET /metrics` over HTTP on this listener while the server runs: metrics of the database and of the server in Prometheus' text
    /// format. Everyone who can connect can read them.
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self, listener: TcpListener) -> Self {
        self.metrics = Some(listener);
        self
    }

    /// Sets the time above which a command is slow for the profiler, until a client sets another `slowms`. The default is MongoDB's, 100
    /// milliseconds. The profiler is off until a client switches it on, with the command `profile`.
    pub fn profiler_threshold(mut self, slow: Duration) -> Self {
        self.settings.slow = slow;
        self
    }

    /// Sets the folder into which clients may write copies of the database, by Slate's command `backup`: `{ backup: "monday.slate" }` on the
    /// database `admin`. With [`authentication`](Self::authentication) this requires the role `backup`. By default the command is refused.
    pub fn backup_directory(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.backup_directory = Some(folder.into());
        self
    }

    /// Sets the command line that `getCmdLineOpts` returns.
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.settings.arguments = arguments.into_iter().collect();
        self
    }

    /// Returns a handle that ends the server.
    pub fn shutdown(&self) -> Shutdown {
        Shutdown(self.stopping.clone())
    }

    /// Serves clients until [`Shutdown::now`]; returns when every connection has ended.
    ///
    /// Each connection is a task of tokio and occupies no thread. Commands execute as those of [`slate_core::aio`] do.
    ///
    /// # Errors
    /// Fails if the system has no random bytes. The failure of a connection ends only that connection.
    pub async fn serve(self, listener: impl Into<Listener>) -> io::Result<()> {
        let Self {
            database,
            settings,
            stopping,
            #[cfg(feature = "metrics")]
            metrics,
        } = self;
        let (mut listener, shared) = (listener.into(), share(database, settings, stopping)?);
        let mut stopping = shared.stopping.subscribe();
        let mut connections = JoinSet::new();
        // Tasks that end with the listener.
        let mut beside = JoinSet::new();
        beside.spawn(expire(Arc::clone(&shared)));
        beside.spawn(tidy(Arc::clone(&shared)));
        #[cfg(feature = "metrics")]
        if let Some(metrics) = metrics {
            beside.spawn(crate::metrics::serve(metrics, Arc::clone(&shared)));
        }
        while !*stopping.borrow() {
            tokio::select! {
                _ = stopping.changed() => {}
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => drop(connections.spawn(connect(Arc::clone(&shared), accepted))),
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
        drop((listener, beside));
        shared.operations.stop();
        stop(&shared, connections, GRACE).await;
        Ok(())
    }

    /// Returns what connections share, for a server without a listener.
    #[cfg(test)]
    pub(crate) fn shared(self) -> io::Result<Arc<Shared>> {
        share(self.database, self.settings, self.stopping)
    }
}

/// Returns what the connections of a server share.
fn share(database: Database, settings: Settings, stopping: watch::Sender<bool>) -> io::Result<Arc<Shared>> {
    let database = if settings.read_only { database.read_only() } else { database };
    let commands = database.commands().with_sleep(|until| Box::pin(sleep_until(until.into())));
    // Advances the clock, so that the first reply already has a time.
    database.next_time();
    commands.as_blocking().limit_cursors(settings.max_cursors);
    Ok(Arc::new(Shared {
        commands,
        sessions: Sessions::new(settings.max_sessions),
        message_memory: Arc::new(MessageMemory::new(settings.max_message_memory)),
        transactions: Quota::new("transactions", settings.max_transactions),
        snapshots: Quota::new("snapshots", settings.max_snapshots),
        refusals: Semaphore::new(REFUSALS),
        backups: Semaphore::new(1),
        users: Users::new(database.commands()),
        throttle: Throttle::default(),
        secret: random()?,
        database,
        operations: Operations::default(),
        profiler: Profiler::new(settings.slow),
        top: Top::default(),
        counts: Counts::default(),
        fail_points: FailPoints::new(settings.test_commands),
        settings,
        process: ObjectId::new(),
        started: Instant::now(),
        started_at: DateTime::now(),
        stopping,
    }))
}

/// Waits for the connections to end. After `grace`, cancels their commands; after 1.5 times `grace`, drops them. Then ends the sessions. Returns
/// after twice the grace, whatever a command waits for.
async fn stop(shared: &Shared, mut connections: JoinSet<()>, grace: Duration) {
    let begun = tokio::time::Instant::now();
    let ended = timeout(grace, async { while connections.join_next().await.is_some() {} }).await;
    if ended.is_err() {
        shared.operations.kill_all();
        let _ = timeout_at(begun + grace * 3 / 2, async { while connections.join_next().await.is_some() {} }).await;
    }
    // After a connection was dropped, its session is no longer locked.
    let _ = timeout_at(begun + grace * 7 / 4, connections.shutdown()).await;
    let _ = timeout_at(begun + grace * 2, shared.sessions.end_all(shared, |_| true)).await;
}

/// Ends overdue transactions, cursors and sessions, periodically.
async fn tidy(shared: Arc<Shared>) {
    let [shortest, longest] = TICKS;
    let mut ticks = interval((shared.settings.transaction_life / 2).clamp(shortest, longest));
    loop {
        ticks.tick().await;
        Sessions::tidy(&shared);
    }
}

/// Deletes documents that are due by TTL indexes, periodically. A failure, for instance because the database is read-only, is tried again the next
/// time.
async fn expire(shared: Arc<Shared>) {
    let pause = shared.settings.expire_every;
    while !pause.is_zero() {
        sleep(pause).await;
        if let Ok(expired) = shared.database.expire().await {
            shared.counts.expiries.fetch_add(1, Ordering::Relaxed);
            shared.counts.expired.fetch_add(expired.documents, Ordering::Relaxed);
        }
    }
}

/// Serves one client, or refuses it if too many connections are open.
async fn connect(shared: Arc<Shared>, accepted: Accepted) {
    let open = OpenConnection::count(&shared);
    let most = shared.settings.max_connections;
    // Closes a connection without a login in favor of this one, so that such connections cannot take all places. Until the closed ones have ended,
    // a few more than the limit may be open.
    let may_replace = shared.settings.authentication && open.number <= most.saturating_add(REPLACED);
    if open.number > most && !(may_replace && shared.operations.dismiss_stranger()) {
        // Sends the client an error, unless too many clients are receiving one.
        let Ok(_permit) = shared.refusals.try_acquire() else { return };
        let message = format!("the server has {most} connections, which is its limit");
        let refusal = Failure::new(Code(264, "TooManyFilesOpen"), message);
        let _ = timeout(REFUSAL_PATIENCE, Connection::serve(&shared, accepted, Some(refusal))).await;
        return;
    }
    let peer = accepted.peer().clone();
    trace::connection(&peer, Connection::serve(&shared, accepted, None)).await;
}

/// Counts an open connection, until it is dropped.
struct OpenConnection<'s> {
    shared: &'s Shared,
    /// The number of open connections, including this one.
    number: usize,
}

impl<'s> OpenConnection<'s> {
    fn count(shared: &'s Shared) -> Self {
        Self { shared, number: shared.counts.connections.fetch_add(1, Ordering::Relaxed).saturating_add(1) }
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.shared.counts.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;

    use super::*;
    use crate::session::SessionId;

    #[tokio::test]
    async fn a_server_stops_whatever_holds_a_session() {
        let shared = Server::new(slate_core::Database::open("memory:").unwrap()).shared().unwrap();
        let session = shared.sessions.use_session(SessionId::new(None)).unwrap();
        let (mut connections, (locked, is_locked)) = (JoinSet::new(), oneshot::channel());
        connections.spawn(async move {
            let state = session.state.lock().await;
            locked.send(()).unwrap();
            pending::<()>().await;
            drop(state);
        });
        is_locked.await.unwrap();
        let stopped = stop(&shared, connections, Duration::from_millis(1));
        assert!(timeout(Duration::from_secs(20), stopped).await.is_ok());
        assert_eq!(shared.sessions.len(), 0);
    }

    #[tokio::test]
    async fn a_server_stops_within_twice_its_grace() {
        let shared = Server::new(slate_core::Database::open("memory:").unwrap()).shared().unwrap();
        let session = shared.sessions.use_session(SessionId::new(None)).unwrap();
        let _locked = session.state.lock().await;
        let mut connections = JoinSet::new();
        connections.spawn(pending());
        let (begun, grace) = (Instant::now(), Duration::from_millis(200));
        stop(&shared, connections, grace).await;
        assert!(begun.elapsed() >= grace * 3 / 2 && begun.elapsed() < grace * 11 / 4, "{:?}", begun.elapsed());
    }
}
