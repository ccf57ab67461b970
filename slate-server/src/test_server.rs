use std::{fmt, io, thread};

use slate_core::{ChangeLog, Database};
use tokio::{net::TcpListener, runtime};

use crate::{Listener, Server, Shutdown};

/// A server of a fresh database in memory, on a free port of the loopback interface, for tests. It stops when it is dropped.
///
/// It runs on a thread of its own, so that async and blocking clients may use it.
///
/// ```
/// let server = slate_server::TestServer::start()?;
/// assert!(server.uri().starts_with("mongodb://127.0.0.1:"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "the server stops when it is dropped"]
pub struct TestServer {
    database: Database,
    uri: String,
    shutdown: Shutdown,
    thread: Option<thread::JoinHandle<()>>,
}

impl TestServer {
    /// Starts a server of a fresh database in memory, which logs changes.
    ///
    /// # Errors
    /// Fails if the system has no port or no thread left.
    pub fn start() -> io::Result<Self> {
        let database = Database::open("memory:").map_err(io::Error::other)?;
        database.enable_changes(ChangeLog::new()).map_err(io::Error::other)?;
        Self::of(database)
    }

    /// Starts a server of an open database.
    ///
    /// # Errors
    /// Fails as [`TestServer::start`] does.
    pub fn of(database: Database) -> io::Result<Self> {
        Self::with(database, |server| server)
    }

    /// Starts a server of an open database. `set_up` changes its settings.
    ///
    /// # Errors
    /// Fails as [`TestServer::start`] does.
    pub fn with(database: Database, set_up: impl FnOnce(Server) -> Server) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let listener = {
            let _guard = runtime.enter();
            Listener::from(TcpListener::from_std(listener)?)
        };
        let (uri, server) = (listener.uri()?, set_up(Server::new(database.clone())));
        let shutdown = server.shutdown();
        let serve = move || {
            // Serving fails only if the listener cannot be opened, which has succeeded above.
            let _ = runtime.block_on(server.serve(listener));
        };
        let thread = thread::Builder::new().name("slate-test-server".into()).spawn(serve)?;
        Ok(Self { database, uri, shutdown, thread: Some(thread) })
    }

    /// Returns the URI for a client.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the database of the server.
    pub fn database(&self) -> &Database {
        &self.database
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shutdown.now();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").field("uri", &self.uri).finish_non_exhaustive()
    }
}
