//! A database of a server: Slate's or MongoDB's, through MongoDB's driver.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use bson::{Bson, Document, RawDocument, RawDocumentBuf};
use mongodb::{
    Client, Cursor,
    error::{Error, ErrorKind, WriteFailure},
    options::ClientOptions,
};
use tokio::{
    runtime::{Builder, Runtime},
    time::sleep,
};

use super::OnSignal;
use crate::{
    failure::{Failure, Result},
    interrupt::Interrupt,
};

/// The database of a URL that names none, as in MongoDB's shell.
const DEFAULT_DATABASE: &str = "test";

/// How long the driver tries to reach the server, unless the URL has a limit (`serverSelectionTimeoutMS`).
const PATIENCE: Duration = Duration::from_secs(5);

/// How often a command that waits for the server checks whether a signal has arrived.
const SIGNAL_STEP: Duration = Duration::from_millis(20);

/// How long a call may continue after a signal if its result decides what must be undone. After SIGTERM the program has five seconds
/// in total.
const GRACE: Duration = Duration::from_secs(3);

/// A database of a server. Its calls block, and a signal interrupts them.
#[derive(Clone)]
pub(crate) struct Server {
    database: mongodb::Database,
    runtime: Arc<Runtime>,
    interrupt: Interrupt,
    /// The addresses in the URL.
    hosts: String,
    /// The write concern of the URL.
    concern: Option<Document>,
}

/// The result of inserting documents.
pub(crate) struct Inserted {
    /// The `_id`s of the documents, by their positions; empty if a document was refused.
    pub(crate) ids: BTreeMap<usize, Bson>,
    /// The documents that were refused, by their positions.
    pub(crate) refused: Vec<(usize, Failure)>,
}

impl Server {
    /// Connects to the server of a URL, and checks that it answers.
    ///
    /// # Errors
    /// Fails if the URL is not valid, or if the server cannot be reached or does not let the user in.
    pub(crate) fn connect(url: &str, interrupt: Interrupt) -> Result<Self> {
        if url.starts_with("mongodb+srv:") {
            return Err(Failure::usage("slate does not look up servers in the DNS")
                .hint("use the URL that names the hosts: mongodb://HOST:27017,HOST:27017/DATABASE?tls=true"));
        }
        // The driver monitors its servers from tasks.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let opened = runtime.block_on(async {
            let mut options = ClientOptions::parse(url).await?;
            options.app_name.get_or_insert_with(|| "slate".into());
            options.server_selection_timeout.get_or_insert(PATIENCE);
            let hosts: Vec<String> = options.hosts.iter().map(ToString::to_string).collect();
            let name = options.default_database.clone().unwrap_or_else(|| DEFAULT_DATABASE.into());
            let concern = options.write_concern.as_ref().map(bson::serialize_to_document).transpose()?;
            let concern = concern.filter(|concern| !concern.is_empty());
            Ok::<_, Error>((Client::with_options(options)?.database(&name), hosts.join(", "), concern))
        });
        let (database, hosts, concern) = opened.map_err(|error| match *error.kind {
            ErrorKind::InvalidArgument { message, .. } => {
                Failure::usage(message).hint("a server's URL is mongodb://USER:PASSWORD@HOST:PORT/DATABASE")
            }
            kind => Failure::new(kind.to_string()),
        })?;
        let server = Self { database, runtime: Arc::new(runtime), interrupt, hosts, concern };
        server.run(bson::rawdoc! { "ping": 1 })?;
        Ok(server)
    }

    /// Runs a command, and returns its reply.
    ///
    /// # Errors
    /// Fails as the command does.
    pub(crate) fn run(&self, command: RawDocumentBuf) -> Result<Document> {
        self.run_within(&self.database, command, Duration::ZERO)
    }

    /// Runs a command that writes, with the write concern of the URL: the driver adds it only to its own methods.
    ///
    /// # Errors
    /// Fails as the command does, and if what it has written does not satisfy the write concern.
    pub(crate) fn write(&self, command: &Document) -> Result<Document> {
        self.write_to(&self.database, command, Duration::ZERO)
    }

    /// Runs a command like [`write`](Self::write), but a signal ends the wait for its reply only after [`GRACE`], even if the signal
    /// came before the call.
    ///
    /// # Errors
    /// Fails as `write` does.
    pub(crate) fn write_to_end(&self, command: &Document) -> Result<Document> {
        self.write_to(&self.database, command, GRACE)
    }

    fn write_to(&self, database: &mongodb::Database, command: &Document, grace: Duration) -> Result<Document> {
        let mut command = command.clone();
        if let Some(concern) = &self.concern {
            command.insert("writeConcern", concern.clone());
        }
        let command = RawDocumentBuf::try_from(&command).map_err(|error| Failure::usage(error.to_string()))?;
        let reply = self.run_within(database, command, grace)?;
        match reply.get_document("writeConcernError") {
            Ok(error) => {
                let text = |field| error.get_str(field).unwrap_or_default();
                let code = error.get_i32("code").unwrap_or_default();
                Err(Failure::unsatisfied(text("errmsg").to_owned(), code, text("codeName")))
            }
            Err(_) => Ok(reply),
        }
    }

    fn run_within(&self, database: &mongodb::Database, command: RawDocumentBuf, grace: Duration) -> Result<Document> {
        let mut reply = self.block_within(database.run_raw_command(command).into_future(), grace)?;
        // Drops the fields that only drivers use.
        for field in ["$clusterTime", "operationTime"] {
            reply.remove(field);
        }
        Ok(reply)
    }

    /// Runs a command on the database `admin`, and returns its reply.
    ///
    /// # Errors
    /// Fails as the command does.
    pub(crate) fn run_on_admin(&self, command: RawDocumentBuf) -> Result<Document> {
        self.block(self.database.client().database("admin").run_raw_command(command).into_future())
    }

    /// Renames a collection. A signal ends the wait as in [`write_to_end`](Self::write_to_end).
    ///
    /// # Errors
    /// Fails with `NamespaceExists` (48) if `to` already exists, and as `write` does.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<()> {
        let full = |name| format!("{}.{name}", self.database.name());
        let command = bson::doc! { "renameCollection": full(from), "to": full(to) };
        self.write_to(&self.database.client().database("admin"), &command, GRACE).map(drop)
    }

    /// Runs a command whose reply is a cursor. Further batches are read when they are needed.
    ///
    /// # Errors
    /// Fails as the command does.
    pub(crate) fn rows(&self, command: &Document) -> Result<ServerRows> {
        let cursor = self.block(self.database.run_cursor_command(command.clone()).into_future())?;
        Ok(ServerRows { cursor: Some(Box::new(cursor)), server: self.clone() })
    }

    /// Inserts documents. A refused one does not stop the others. A document without `_id` gets an ObjectId.
    ///
    /// # Errors
    /// Fails if the server fails or the write concern is not satisfied. Refused documents and their errors are in the result.
    pub(crate) fn insert(
        &self,
        collection: &str,
        documents: &[RawDocumentBuf],
        on_signal: OnSignal,
    ) -> Result<Inserted> {
        let grace = match on_signal {
            OnSignal::End => Duration::ZERO,
            OnSignal::Finish => GRACE,
        };
        let collection = self.database.collection::<RawDocumentBuf>(collection);
        let insert = async { Ok(collection.insert_many(documents).ordered(false).await) };
        match self.block_within(insert, grace)? {
            Ok(done) => Ok(Inserted { ids: done.inserted_ids.into_iter().collect(), refused: Vec::new() }),
            Err(error) => match *error.kind {
                ErrorKind::InsertMany(error) if error.write_concern_error.is_none() => {
                    let refused = error.write_errors.unwrap_or_default().into_iter();
                    let refused = refused.map(|refused| {
                        let name = refused.code_name.unwrap_or_default();
                        (refused.index, Failure::replied(refused.message, refused.code, &name, refused.details))
                    });
                    Ok(Inserted { ids: BTreeMap::new(), refused: refused.collect() })
                }
                ErrorKind::InsertMany(failed) => match failed.write_concern_error {
                    Some(concern) => Err(Failure::unsatisfied(concern.message, concern.code, &concern.code_name)),
                    None => Err(Failure::new("the server refused the documents")),
                },
                kind => Err(self.failure(kind)),
            },
        }
    }

    /// Waits for the driver. Fails after a signal.
    fn block<T>(&self, work: impl Future<Output = mongodb::error::Result<T>>) -> Result<T> {
        self.block_within(work, Duration::ZERO)
    }

    /// Waits for the driver. After a signal, waits for at most `grace` longer and then fails.
    fn block_within<T>(&self, work: impl Future<Output = mongodb::error::Result<T>>, grace: Duration) -> Result<T> {
        let cancel = self.interrupt.token();
        let cancelled = async {
            while !cancel.is_cancelled() {
                sleep(SIGNAL_STEP).await;
            }
            sleep(grace).await;
        };
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                done = work => done.map_err(|error| self.failure(*error.kind)),
                () = cancelled => Err(Failure::interrupted()),
            }
        })
    }

    fn failure(&self, kind: ErrorKind) -> Failure {
        match kind {
            ErrorKind::Command(error) => Failure::replied(error.message, error.code, &error.code_name, None),
            ErrorKind::Write(WriteFailure::WriteError(error)) => {
                Failure::replied(error.message, error.code, &error.code_name.unwrap_or_default(), error.details)
            }
            ErrorKind::Authentication { message, .. } => Failure::new(message)
                .hint("check the user, the password, and authSource: the database to which the user belongs"),
            ErrorKind::ServerSelection { message, .. } => {
                // The reason stands within the driver's description of its servers.
                let why = message.split_once("Error: ").map_or(&*message, |(_, why)| why);
                let why = why.split(", labels").next().unwrap_or(why).trim_start_matches("Kind: ");
                Failure::new(format!("no server can be used at {}: {why}", self.hosts))
                    .hint("check the address, whether the server runs, and whether it expects TLS (?tls=true)")
            }
            kind => Failure::new(kind.to_string()),
        }
    }
}

/// The documents of a cursor of a server.
pub(crate) struct ServerRows {
    /// `None` only while the value is dropped.
    cursor: Option<Box<Cursor<Document>>>,
    server: Server,
}

impl ServerRows {
    /// Calls `read` with the next document. Returns `None` after the last one.
    ///
    /// # Errors
    /// Fails if the next batch cannot be read, or if `read` fails.
    pub(crate) fn next<T>(&mut self, read: impl FnOnce(&RawDocument) -> Result<T>) -> Result<Option<T>> {
        let Some(cursor) = &mut self.cursor else { return Ok(None) };
        if self.server.block(cursor.advance())? { read(cursor.current()).map(Some) } else { Ok(None) }
    }
}

impl Drop for ServerRows {
    fn drop(&mut self) {
        // The driver closes the server's cursor in a task.
        let _runtime = self.server.runtime.enter();
        self.cursor = None;
    }
}
