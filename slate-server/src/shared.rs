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

/// MongoDB's limit on the number of statements in a command.
pub(crate) const MAX_STATEMENTS: i32 = 100_000;

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) database: Database,
    pub(crate) commands: Commands,
    pub(crate) sessions: Sessions,
    pub(crate) users: Users,
    /// Limits failed logins.
    pub(crate) throttle: Throttle,
    /// A random key for the apparent salts of unknown users, which hide the users that exist. It changes with each start.
    pub(crate) secret: [u8; 32],
    pub(crate) operations: Operations,
    pub(crate) profiler: Profiler,
    pub(crate) top: Top,
    pub(crate) message_memory: Arc<MessageMemory>,
    /// The quota of open transactions.
    pub(crate) transactions: Arc<Quota>,
    /// The quota of snapshots of sessions.
    pub(crate) snapshots: Arc<Quota>,
    /// Permits for connections above the limit that receive the error.
    pub(crate) refusals: Semaphore,
    /// The permit to write a backup: one at a time.
    pub(crate) backups: Semaphore,
    pub(crate) counts: Counts,
    pub(crate) fail_points: FailPoints,
    pub(crate) settings: Settings,
    /// Identifies this run of the server to drivers.
    pub(crate) process: ObjectId,
    pub(crate) started: Instant,
    pub(crate) started_at: DateTime,
    /// Whether the server is shutting down.
    pub(crate) stopping: watch::Sender<bool>,
}

impl Shared {
    /// Closes the cursors of a user who has lost a role that they may depend on.
    pub(crate) fn close_cursors_of(&self, user: &User) {
        self.commands.as_blocking().owned_by(user.digest).close_cursors();
    }

    /// Closes the cursors of a user who was dropped, and ends the user's sessions.
    pub(crate) async fn forget(&self, user: &User) {
        self.close_cursors_of(user);
        self.sessions.end_all(self, |id| id.owner() == Some(user.digest)).await;
    }
}

/// The configuration of a server.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) read_only: bool,
    /// Whether clients must log in.
    pub(crate) authentication: bool,
    pub(crate) replica_set: String,
    /// The address that the server reports to clients; `None` for the one that each has connected to.
    pub(crate) host: Option<String>,
    pub(crate) max_connections: usize,
    /// How long a client without a login may be silent.
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
    /// Pause between two deletions of documents that are due by TTL indexes; zero means never.
    pub(crate) expire_every: Duration,
    /// Commands that take longer are slow for the profiler, until a client sets another threshold.
    pub(crate) slow: Duration,
    /// The folder for copies of the database; `None` refuses the command `backup`.
    pub(crate) backup_directory: Option<PathBuf>,
    /// The command line, for `getCmdLineOpts`.
    pub(crate) arguments: Vec<String>,
}

/// Counters since the start, apart from the [traffic](crate::traffic) of connections.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) connections: AtomicUsize,
    pub(crate) last_connection: AtomicI64,
    /// Number of deletions by TTL indexes.
    pub(crate) expiries: AtomicU64,
    /// Number of documents that these have deleted.
    pub(crate) expired: AtomicU64,
}
