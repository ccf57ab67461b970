use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, AtomicUsize},
    },
    time::{Duration, Instant},
};

use bson::{DateTime, oid::ObjectId};
use slate_core::{
    Quota,
    aio::{Commands, Database},
};
use tokio::sync::{Semaphore, watch};

use crate::{
    auth::{Throttle, User, Users},
    fail_points::FailPoints,
    operations::Operations,
    profiler::Profiler,
    session::Sessions,
    top::Top,
    wire::MessageMemory,
};

/// MongoDB's limit on the statements of a command.
pub(crate) const MAX_STATEMENTS: i32 = 100_000;

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) database: Database,
    pub(crate) commands: Commands,
    pub(crate) sessions: Sessions,
    pub(crate) users: Users,
    /// Limits failed logins.
    pub(crate) throttle: Throttle,
    /// Hides which users exist, for as long as the server runs.
    pub(crate) secret: [u8; 32],
    pub(crate) operations: Operations,
    pub(crate) profiler: Profiler,
    pub(crate) top: Top,
    pub(crate) message_memory: Arc<MessageMemory>,
    /// Open transactions.
    pub(crate) transactions: Arc<Quota>,
    /// Snapshots that sessions hold.
    pub(crate) snapshots: Arc<Quota>,
    /// Connections above the limit that receive the error.
    pub(crate) refusals: Semaphore,
    /// The one backup that may be written.
    pub(crate) backups: Semaphore,
    pub(crate) counts: Counts,
    pub(crate) fail_points: FailPoints,
    pub(crate) settings: Settings,
    /// Identifies this run of the server to drivers.
    pub(crate) process: ObjectId,
    pub(crate) started: Instant,
    pub(crate) started_at: DateTime,
    /// Whether the server shuts down.
    pub(crate) stopping: watch::Sender<bool>,
}

impl Shared {
    /// Closes the cursors of a user who has lost a role, by which they were opened.
    pub(crate) fn close_cursors_of(&self, user: &User) {
        self.commands.as_blocking().owned_by(user.digest).close_cursors();
    }

    /// Closes the cursors of a user who is no longer there, and ends the user's sessions.
    pub(crate) async fn forget(&self, user: &User) {
        self.close_cursors_of(user);
        self.sessions.end_all(self, |id| id.owner() == Some(user.digest)).await;
    }
}

/// How the server was set up.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) read_only: bool,
    /// Whether commands need a user with a role.
    pub(crate) authentication: bool,
    pub(crate) replica_set: String,
    /// The address that the server reports to clients; without one it is the address that each has connected to.
    pub(crate) host: Option<String>,
    pub(crate) max_connections: usize,
    /// How long a client that has not logged in may be silent.
    pub(crate) login_patience: Duration,
    pub(crate) max_cursors: usize,
    pub(crate) max_message_memory: usize,
    pub(crate) max_sessions: usize,
    pub(crate) max_snapshots: usize,
    pub(crate) max_transactions: usize,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<crate::Tls>,
    pub(crate) test_commands: bool,
    pub(crate) transaction_life: Duration,
    /// The pause between two deletions of what is due by TTL indexes; zero: none are made.
    pub(crate) expire_every: Duration,
    /// Commands that take longer are slow for the profiler, until a client says otherwise.
    pub(crate) slow: Duration,
    /// Where clients may write copies of the database.
    pub(crate) backup_directory: Option<PathBuf>,
    /// The command line, for `getCmdLineOpts`.
    pub(crate) arguments: Vec<String>,
}

/// What has happened since the start, beside the [traffic](crate::traffic) of connections.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) connections: AtomicUsize,
    pub(crate) last_connection: AtomicI64,
    /// How often what is due by TTL indexes was deleted.
    pub(crate) expiries: AtomicU64,
    /// The documents that were deleted then.
    pub(crate) expired: AtomicU64,
}
