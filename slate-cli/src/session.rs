use std::{
    env,
    io::{self, BufWriter, IsTerminal, Write},
    path::Path,
    time::{Duration, Instant},
};

use bson::RawDocumentBuf;
#[cfg(feature = "server")]
use slate_core::DatabaseBuilder;
use slate_core::{Access, CancelToken, Collection, Database, Durability, ErrorKind};

use crate::{
    endpoint::{self, Endpoint, Server},
    failure::{Failure, Result},
    interrupt::Interrupt,
};

/// How often a wait for another program checks whether the command was cancelled.
const STEP: Duration = Duration::from_millis(100);

/// The database of a command line or of a shell, and where results are written.
///
/// The database is opened when a command needs it, with no more access than that command needs: reading commands open it read-only
/// and never create it. Between commands of standard input it stays open, and a writing command opens it again for writing. A prompt
/// closes it after each command.
pub(crate) struct Session {
    url: Option<String>,
    /// How long opening waits while another program has the database open.
    wait: Duration,
    open: Option<Open>,
    /// The server, once it is connected.
    server: Option<Server>,
    out: BufWriter<io::Stdout>,
    cancel: Interrupt,
    mode: Mode,
}

/// Where commands come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// The command line.
    #[default]
    Arguments,
    /// Standard input, which is not a terminal.
    StandardInput,
    /// A person at a prompt.
    Prompt,
}

struct Open {
    database: Database,
    access: Access,
    writes: Writes,
}

/// Whether there may be commits that are not on the device yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writes {
    None,
    Pending,
}

impl Session {
    pub(crate) fn new(url: Option<String>, wait: Duration, cancel: Interrupt) -> Self {
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        Self { url, wait, open: None, server: None, out, cancel, mode: Mode::default() }
    }

    /// Returns a session that does not wait for other programs, and that no signal interrupts.
    pub(crate) fn at(url: Option<String>) -> Self {
        Self::new(url, Duration::ZERO, Interrupt::default())
    }

    /// Returns the URL on the command line.
    ///
    /// # Errors
    /// Fails if there is none.
    pub(crate) fn url(&self) -> Result<&str> {
        self.url.as_deref().ok_or_else(|| {
            Failure::usage("this command needs a database")
                .hint("put its URL first, as in `slate redb:PATH collections`, or into the variable SLATE_URL")
        })
    }

    /// Returns the URL without the user and the password, for messages.
    ///
    /// # Errors
    /// Fails if there is none.
    pub(crate) fn shown_url(&self) -> Result<String> {
        self.url().map(endpoint::shown)
    }

    /// Whether the database is one of a server.
    pub(crate) fn is_server(&self) -> bool {
        self.url.as_deref().is_some_and(endpoint::is_server)
    }

    /// Returns the session's database: an embedded one, opened with at least this access, or one of a server.
    ///
    /// # Errors
    /// Fails as [`read`](Self::read), [`write`](Self::write) and [`create`](Self::create) do, and if the server cannot be reached.
    pub(crate) fn endpoint(&mut self, access: Access) -> Result<Endpoint> {
        if !self.is_server() {
            return self.opened(access).map(Endpoint::Embedded);
        }
        let server = match self.server.take() {
            Some(server) => server,
            None => Server::connect(self.url()?, self.interrupt())?,
        };
        Ok(Endpoint::Server(self.server.insert(server).clone()))
    }

    /// Returns the database at a URL, as [`open_other`](Self::open_other) does, or one of a server.
    ///
    /// # Errors
    /// Fails if it cannot be opened or reached.
    pub(crate) fn other_endpoint(&self, url: &str, access: Access) -> Result<Endpoint> {
        if endpoint::is_server(url) {
            return Server::connect(url, self.interrupt()).map(Endpoint::Server);
        }
        self.open_other(url, access).map(Endpoint::Embedded)
    }

    /// Returns the database, for reading.
    ///
    /// # Errors
    /// Fails if it does not exist or cannot be opened.
    pub(crate) fn read(&mut self) -> Result<Database> {
        self.opened(Access::ReadOnly)
    }

    /// Returns the database, for writing, which must exist.
    ///
    /// # Errors
    /// Fails if it does not exist or cannot be opened.
    pub(crate) fn write(&mut self) -> Result<Database> {
        self.opened(Access::Open)
    }

    /// Returns the database, for writing. It is created if it does not exist.
    ///
    /// # Errors
    /// Fails if it cannot be opened or created.
    pub(crate) fn create(&mut self) -> Result<Database> {
        self.opened(Access::CreateOrOpen)
    }

    fn opened(&mut self, access: Access) -> Result<Database> {
        let url = self.url()?.to_owned();
        if endpoint::is_server(&url) {
            return Err(Failure::usage("this command works on the files of a database, and not on a server"));
        }
        // A database in memory lives as long as its handle.
        let access = if url.starts_with("memory:") { Access::CreateOrOpen } else { access };
        let reused = self.open.take_if(|open| access == Access::ReadOnly || open.access != Access::ReadOnly);
        // A store has one handle at a time.
        self.open = None;
        let mut open = match reused {
            Some(open) => open,
            None => Open { database: self.open_other(&url, access)?, access, writes: Writes::None },
        };
        if access != Access::ReadOnly {
            open.writes = Writes::Pending;
        }
        Ok(self.open.insert(open).database.clone())
    }

    /// Opens a database other than the session's; `access` says whether it may be created. While another program has it open, tries
    /// again for the time of `--wait`. A commit is on the device after the next flush.
    ///
    /// # Errors
    /// Fails as [`Database::open`] does; with a hint if there is no database or no such store.
    pub(crate) fn open_other(&self, url: &str, access: Access) -> Result<Database> {
        let (start, cancel) = (Instant::now(), self.cancel());
        loop {
            // Waits in short steps, so that it can be cancelled.
            let left = self.wait.saturating_sub(start.elapsed());
            let builder = Database::builder(url).access(access).durability(Durability::Deferred);
            match builder.open_timeout(left.min(STEP)).open() {
                Err(error) if error.kind() == ErrorKind::Locked && left > STEP => {
                    if cancel.is_cancelled() {
                        return Err(Failure::interrupted());
                    }
                }
                opened => return opened.map_err(|error| not_opened(error, url, access)),
            }
        }
    }

    /// Opens the database of a builder, whose commits are synced, for a server.
    ///
    /// # Errors
    /// Fails if it cannot be opened or created.
    #[cfg(feature = "server")]
    pub(crate) fn open_synced(&self, builder: DatabaseBuilder, url: &str, access: Access) -> Result<Database> {
        let opened = builder.access(access).open_timeout(self.wait).open();
        opened.map_err(|error| not_opened(error, url, access))
    }

    /// Returns whether the command comes from a person at a prompt.
    pub(crate) fn at_prompt(&self) -> bool {
        self.mode == Mode::Prompt
    }

    /// Returns whether standard input holds commands.
    pub(crate) fn reads_commands(&self) -> bool {
        self.mode == Mode::StandardInput
    }

    /// Records that the following commands come from standard input, which is not a terminal.
    pub(crate) fn enter_standard_input(&mut self) {
        self.mode = Mode::StandardInput;
    }

    /// Records that the following commands come from a person at a prompt.
    pub(crate) fn enter_prompt(&mut self) {
        self.mode = Mode::Prompt;
    }

    /// Returns the writer for results.
    pub(crate) fn out(&mut self) -> &mut BufWriter<io::Stdout> {
        &mut self.out
    }

    /// Returns a token that Ctrl-C, SIGTERM and SIGHUP cancel.
    pub(crate) fn cancel(&self) -> CancelToken {
        self.cancel.token()
    }

    /// Returns the handle through which signals interrupt commands.
    pub(crate) fn interrupt(&self) -> Interrupt {
        self.cancel.clone()
    }

    /// Waits until the writes of a command are on the device. The command's buffered result is written out only after that.
    ///
    /// # Errors
    /// Fails if the device fails.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if let Some(open) = self.open.as_mut().filter(|open| open.writes == Writes::Pending) {
            open.database.flush()?;
            open.writes = Writes::None;
        }
        Ok(())
    }

    /// Ends a command of a shell: waits until what it wrote is on the device. At a prompt it also closes the database, so that other
    /// programs can open it while the person thinks.
    ///
    /// # Errors
    /// Fails if the device fails.
    pub(crate) fn end_command(&mut self) -> Result<()> {
        self.sync()?;
        if self.at_prompt() { self.release() } else { Ok(()) }
    }

    /// Closes a database that can be opened again.
    ///
    /// # Errors
    /// Fails if the device fails.
    pub(crate) fn release(&mut self) -> Result<()> {
        // A database in memory would be lost.
        match self.open.take_if(|open| open.database.store() != "memory") {
            Some(Open { database, access, .. }) if access != Access::ReadOnly => Ok(database.close()?),
            _ => Ok(()),
        }
    }

    /// Forgets the database without writing anything more to it.
    pub(crate) fn forget(&mut self) {
        self.open = None;
    }

    /// Writes the buffered output. A closed pipe is no failure.
    ///
    /// # Errors
    /// Fails if standard output fails.
    pub(crate) fn flush(&mut self) -> Result<()> {
        match self.out.flush() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Closes the database, which reports failures that dropping it would not, and writes out what is buffered.
    ///
    /// # Errors
    /// Fails if standard output or the device fails.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let synced = self.sync();
        let closed = match self.open.take() {
            Some(Open { database, access, .. }) if access != Access::ReadOnly => database.close(),
            _ => Ok(()),
        };
        if synced.is_err() || closed.is_err() {
            // Discards the buffered output, which may report writes that were not stored.
            let _ = std::mem::replace(&mut self.out, BufWriter::new(io::stdout())).into_parts();
        }
        self.flush()?;
        synced?;
        Ok(closed?)
    }
}

/// Returns the failure of opening a database, with what can be done about it.
fn not_opened(error: slate_core::Error, url: &str, access: Access) -> Failure {
    match error.kind() {
        ErrorKind::NotFound if access != Access::CreateOrOpen => Failure::no_database(url),
        ErrorKind::Unsupported if url.starts_with("rocksdb:") => {
            Failure::from(error).hint("install slate with `cargo install --path slate-cli --features rocksdb`")
        }
        ErrorKind::Unsupported if url.starts_with("tikv:") => {
            Failure::from(error).hint("install slate with `cargo install --path slate-cli --features tikv`")
        }
        ErrorKind::WrongFormat if url.strip_prefix("rocksdb:").is_some_and(|path| Path::new(path).is_file()) => {
            let path = url.trim_start_matches("rocksdb:");
            Failure::from(error).hint(format!("a database of redb is a file; its URL is redb:{path}"))
        }
        ErrorKind::WrongFormat if url.strip_prefix("redb:").is_some_and(|path| Path::new(path).is_dir()) => {
            let path = url.trim_start_matches("redb:");
            Failure::from(error).hint(format!("a database of RocksDB is a folder; its URL is rocksdb:{path}"))
        }
        ErrorKind::Invalid if !url.contains(':') => {
            Failure::from(error).hint(format!("the URL of a file begins with its store: redb:{url}"))
        }
        _ => error.into(),
    }
}

/// Returns the collection of this name.
///
/// # Errors
/// Fails with the names of the existing collections if this collection does not exist.
pub(crate) fn existing(database: &Database, name: &str) -> Result<Collection<RawDocumentBuf>> {
    Endpoint::Embedded(database.clone()).check(name)?;
    Ok(database.collection(name))
}

/// Returns whether standard output is a terminal.
pub(crate) fn on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns the width of the terminal in characters; if the output is not a terminal, `COLUMNS` or 80. At least 20.
pub(crate) fn width() -> usize {
    let chosen = || env::var("COLUMNS").ok()?.parse::<u16>().ok();
    let columns = if on_terminal() { Some(console::Term::stdout().size().1) } else { chosen() };
    usize::from(columns.unwrap_or(80)).max(20)
}
