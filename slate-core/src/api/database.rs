use std::{
    fmt,
    marker::PhantomData,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use bson::{RawDocument, RawDocumentBuf};
use slate_query::Code;
pub use slate_store::{Durability, Isolation, Size};

use crate::{
    BulkWrite, Collection, CollectionDescription, Error, ErrorKind, Result, Snapshot, Transaction, TransactionOptions,
    Verify, WriteOperation,
    api::index_build,
    api::transaction_options::Started,
    catalog::Catalog,
    command,
    engine::{self, Access, Engine, OpenOptions, Writer},
    operation::retry,
    operation::scope::Scope,
};

/// An open database.
///
/// A handle: cheap to clone, to share and to send. What was opened through it keeps the database open.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    /// None once it was closed.
    engine: RwLock<Option<Arc<dyn Engine>>>,
    store: &'static str,
    durability: Durability,
    lock_timeout: Duration,
}

/// How long a writer waits for its turn, on a store where writers take turns, unless the builder says otherwise.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

impl Database {
    /// Opens a database by URL, creating it where there is none:
    ///
    /// | URL | store |
    /// |---|---|
    /// | `memory:` | in this process's memory, gone when the last handle is |
    /// | `memory:PATH` | the same, beginning with the copy that [`Database::backup`] wrote there; the file is only read |
    /// | `redb:PATH` | one file, in pure Rust |
    /// | `rocksdb:PATH` | a folder, by RocksDB, in a build with the feature `rocksdb` |
    ///
    /// # Errors
    /// Each with an [`ErrorKind`](crate::ErrorKind) of its own: no such store, a missing folder, a file that is no
    /// database of Slate's or of a newer version, a database that another handle holds open.
    ///
    /// ```
    /// let db = slate_core::Database::open("memory:")?;
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn open(url: &str) -> Result<Self> {
        Self::builder(url).open()
    }

    /// Opens a database with settings.
    pub fn builder(url: &str) -> DatabaseBuilder {
        DatabaseBuilder {
            url: url.into(),
            durability: Durability::Sync,
            lock_timeout: LOCK_TIMEOUT,
            options: OpenOptions::default(),
        }
    }

    /// A collection of documents that are read and written as `T`: a type of serde's, or
    /// [`RawDocumentBuf`](bson::RawDocumentBuf) for the documents' own bytes. It need not exist: it is created by the
    /// first document or index, and read as empty until then.
    pub fn collection<T>(&self, name: &str) -> Collection<T> {
        Collection::new(Scope::Database(self.clone()), name)
    }

    /// The database as of its last commit, for as long as the snapshot is held: what is read through it belongs
    /// together, across collections. It blocks nobody, and waits for no transaction.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::new(self.engine()?.snapshot()?))
    }

    /// Begins a transaction of snapshot isolation. Dropping it rolls it back. Prefer [`Database::transact`], which tries
    /// again on a conflict.
    ///
    /// # Errors
    /// On a store where writers take turns: [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) when the wait is over,
    /// [`ErrorKind::Reentrant`](crate::ErrorKind::Reentrant), at once, when this thread has a transaction open.
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(&TransactionOptions::default())
    }

    /// Begins a transaction that is isolated, committed and limited as the options say. Its retries are the caller's.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub fn begin_with(&self, options: &TransactionOptions) -> Result<Transaction> {
        let started = options.start(self.inner.lock_timeout);
        self.begin_started(&started)
    }

    fn begin_started(&self, started: &Started) -> Result<Transaction> {
        let writer = self.engine()?.begin(&started.begin_options())?;
        Ok(Transaction::new(self.clone(), writer, started.durability.unwrap_or(self.inner.durability)))
    }

    /// Runs `work` in a transaction and commits it; an error of `work` rolls it back. On a conflict it is rolled back and
    /// run again, with growing pauses, until the lock timeout has passed since the first try.
    ///
    /// Inside, use `tx.collection(…)`: a plain write through the database would wait for this very transaction on a
    /// store where writers take turns, and fails at once there.
    ///
    /// # Errors
    /// Those of `work`; the conflict that was left when time was up.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{RawDocumentBuf, doc};
    ///
    /// db.transact(|tx| {
    ///     let accounts = tx.collection::<RawDocumentBuf>("accounts");
    ///     accounts.update_one(doc! { "_id": "a" }, doc! { "$inc": { "balance": -10 } }).upsert().run()?;
    ///     accounts.update_one(doc! { "_id": "b" }, doc! { "$inc": { "balance": 10 } }).upsert().run()
    /// })?;
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn transact<R>(&self, work: impl FnMut(&Transaction) -> Result<R>) -> Result<R> {
        self.transact_with(&TransactionOptions::default(), work)
    }

    /// Runs `work` in a transaction, as [`Database::transact`] does, that is isolated, committed, limited and tried again
    /// as the options say.
    ///
    /// # Errors
    /// As [`Database::transact`]; [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) past the deadline.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{RawDocumentBuf, doc};
    /// use slate_core::{Isolation, TransactionOptions};
    ///
    /// let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
    /// db.transact_with(&serializable, |tx| {
    ///     let doctors = tx.collection::<RawDocumentBuf>("doctors");
    ///     if doctors.count(doc! { "on_call": true })? > 1 {
    ///         doctors.update_one(doc! { "_id": "Ada" }, doc! { "$set": { "on_call": false } }).run()?;
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn transact_with<R>(
        &self,
        options: &TransactionOptions,
        mut work: impl FnMut(&Transaction) -> Result<R>,
    ) -> Result<R> {
        let started = options.start(self.inner.lock_timeout);
        retry::on_conflict(&started.retry, || {
            let transaction = self.begin_started(&started)?;
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        })
    }

    /// Runs many writes, over any number of collections, as one: each operation with the name of its collection. See
    /// [`BulkWrite`].
    pub fn bulk_write<'n>(&self, operations: impl IntoIterator<Item = (&'n str, WriteOperation)>) -> BulkWrite {
        let operations = operations.into_iter().map(|(collection, operation)| (collection.into(), operation));
        BulkWrite::new(Scope::Database(self.clone()), operations.collect())
    }

    /// The names of the collections, in order.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn collection_names(&self) -> Result<Vec<String>> {
        Ok(self.catalog()?.collections().map(|collection| collection.name.to_string()).collect())
    }

    /// The collections, in the order of their names, with their indexes.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn collections(&self) -> Result<Vec<CollectionDescription>> {
        Ok(self.catalog()?.collections().map(|collection| CollectionDescription::of(collection)).collect())
    }

    /// What there is, as of the last commit.
    pub(crate) fn catalog(&self) -> Result<Arc<Catalog>> {
        Ok(Arc::clone(self.engine()?.snapshot()?.catalog()))
    }

    /// Runs one of MongoDB's commands and gives its reply, for tests, tools and protocols that speak commands. It is a
    /// face over the same calls as the typed API, and as strict as MongoDB's own parser: what is not valid fails with
    /// its code, what Slate does not offer by name ([`Error::unsupported`](crate::Error::unsupported)).
    ///
    /// | command | what of it |
    /// |---|---|
    /// | `find` | everything in the first batch: the cursor's `id` is 0 |
    /// | `count`, `distinct` | whole |
    /// | `insert`, `update`, `delete` | each statement is a transaction of its own, an `insert` is one |
    /// | `findAndModify` | whole |
    /// | `create`, `drop`, `listCollections` | plain collections |
    /// | `createIndexes`, `dropIndexes`, `listIndexes` | ordered indexes: `unique`, `sparse`, `partialFilterExpression` |
    /// | `explain` | of `find`, `count`, `distinct`: verbosity `queryPlanner`, and `executionStats`, which runs the plan |
    /// | `ping` | |
    ///
    /// Arguments that only concern servers, sessions and logs (`lsid`, `comment`, `$readPreference`, …) are checked and
    /// change nothing. A statement that is refused is told in `writeErrors`, in a reply whose `ok` is 1.
    ///
    /// # Errors
    /// A command that is not known (code 59), not offered, or not valid; where the storage fails.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::rawdoc;
    ///
    /// db.command(&rawdoc! { "insert": "users", "documents": [{ "_id": 1, "age": 36 }] })?;
    /// let reply = db.command(&rawdoc! { "find": "users", "filter": { "age": { "$gt": 21 } } })?;
    /// assert_eq!(reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().into_iter().count(), 1);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn command(&self, command: &RawDocument) -> Result<RawDocumentBuf> {
        command::run(self, command)
    }

    /// Puts every commit that has returned on the device: what [`Durability::Deferred`] put off.
    ///
    /// # Errors
    /// Where the device fails.
    pub fn flush(&self) -> Result<()> {
        self.engine()?.flush()
    }

    /// Writes a copy of the database, as of one commit, while others go on writing. It is on the device when this returns,
    /// and opens by the same scheme: `redb:COPY`. A copy of a database in memory opens as `memory:COPY`, into memory again.
    ///
    /// Cost: a read and a write of the whole database.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let copy = folder.path().join("copy");
    /// use bson::{RawDocumentBuf, rawdoc};
    /// use slate_core::Database;
    ///
    /// let db = Database::open("memory:")?;
    /// db.collection("users").insert_one(&rawdoc! { "_id": 1 })?;
    /// db.backup(&copy)?;
    /// let restored = Database::open(&format!("memory:{}", copy.display()))?;
    /// assert!(restored.collection::<RawDocumentBuf>("users").find_by_id(1)?.is_some());
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Exists`](crate::ErrorKind::Exists) where something lies at `to`, which is left alone;
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) where its folder does not exist. A copy that failed half-way is
    /// removed.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<()> {
        self.engine()?.backup(to.as_ref())
    }

    /// Finishes the indexes whose building a crash broke off, one after the other; gives back how many. Until then writers
    /// keep their entries, and no question is answered by them. Creating an index again that is being built does the same
    /// for that one, so that a service which creates its indexes when it starts has no need of this.
    ///
    /// # Errors
    /// As [`Collection::create_index`]; the index that documents break is given up.
    pub fn resume_index_builds(&self) -> Result<u64> {
        index_build::resume_all(self)
    }

    /// Gives back to the file system what deleted documents and dropped collections left behind, as far as the store can.
    /// In memory there is nothing to do. On redb nothing else goes on meanwhile, and no snapshot, cursor or transaction
    /// may be open.
    ///
    /// Cost: up to a read and a write of the whole database.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where something is open that it cannot be done beside; as a
    /// write's.
    pub fn compact(&self) -> Result<()> {
        self.engine()?.compact(self.inner.lock_timeout)
    }

    /// Looks through every collection for damage, as [`ReadCollection::verify`](crate::ReadCollection::verify) does, as of
    /// one commit.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn verify(&self) -> Result<Verify<'static>> {
        let reader = self.engine()?.snapshot()?;
        let names = reader.catalog().collections().map(|collection| collection.name.to_string()).collect();
        Ok(Verify::new(Scope::Snapshot(reader), names))
    }

    /// Closes the database for all its handles: puts every commit on the device, and tells where that fails, which dropping
    /// the last handle cannot. Every later call through any handle, of collections too, fails with
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed). Calls, transactions, snapshots and cursors that are open go on;
    /// the store, and its lock on the files, is given up when the last of them ends. What transactions among them commit
    /// [`Deferred`](Durability::Deferred) is not waited for. Closing it a second time does nothing.
    ///
    /// # Errors
    /// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) where the device fails: the database is closed all
    /// the same. [`ErrorKind::Reentrant`](crate::ErrorKind::Reentrant) where writers take turns and this thread has a
    /// transaction open: the database then stays open.
    pub fn close(self) -> Result<()> {
        let Ok(engine) = self.engine() else { return Ok(()) };
        let flushed = engine.flush();
        if flushed.as_ref().is_err_and(|error| error.kind() == ErrorKind::Reentrant) {
            return flushed;
        }
        drop(self.inner.engine.write().unwrap_or_else(PoisonError::into_inner).take());
        // Once more: a commit may have come between. Where none did, it costs nothing.
        flushed.and_then(|()| engine.flush())
    }

    /// How much room the database takes, in bytes, as far as the store can tell.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn size(&self) -> Result<Size> {
        self.engine()?.size()
    }

    /// The store's name: `"memory"`, `"redb"`, `"rocksdb"`.
    pub fn store(&self) -> &'static str {
        self.inner.store
    }

    pub(crate) fn engine(&self) -> Result<Arc<dyn Engine>> {
        let engine = self.inner.engine.read().unwrap_or_else(PoisonError::into_inner);
        engine.clone().ok_or_else(|| {
            Error::new(ErrorKind::Closed, Code::ILLEGAL_OPERATION, "the database was closed through one of its handles")
        })
    }

    /// Runs a write of one call in a transaction of its own, again where another came first.
    pub(crate) fn write<R>(&self, mut work: impl FnMut(&mut dyn Writer) -> Result<R>) -> Result<R> {
        let started = TransactionOptions::default().start(self.inner.lock_timeout);
        retry::on_conflict(&started.retry, || {
            let mut writer = self.engine()?.begin(&started.begin_options())?;
            let result = work(&mut *writer)?;
            self.finish(writer, self.inner.durability)?;
            Ok(result)
        })
    }

    /// Gathers a collection's statistics, again where another write of statistics came first.
    pub(crate) fn analyze(&self, collection: &str) -> Result<()> {
        let started = TransactionOptions::default().start(self.inner.lock_timeout);
        retry::on_conflict(&started.retry, || self.engine()?.analyze(collection, self.inner.lock_timeout))
    }

    /// Begins a plain transaction; a conflict is the caller's to handle.
    pub(crate) fn begin_write(&self) -> Result<Box<dyn Writer>> {
        let started = TransactionOptions::default().start(self.inner.lock_timeout);
        self.engine()?.begin(&started.begin_options())
    }

    pub(crate) fn durability(&self) -> Durability {
        self.inner.durability
    }

    pub(crate) fn lock_timeout(&self) -> Duration {
        self.inner.lock_timeout
    }

    /// Commits, then drops what the transaction has unlinked and renews statistics that it made stale.
    pub(crate) fn finish(&self, writer: Box<dyn Writer>, durability: Durability) -> Result<()> {
        let work = writer.commit(durability)?;
        if !work.is_empty()
            && let Ok(engine) = self.engine()
        {
            engine.after_commit(&work, self.inner.lock_timeout);
        }
        Ok(())
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("store", &self.store()).finish_non_exhaustive()
    }
}

/// Settings of a database to be opened; see [`Database::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing is opened until `open`"]
pub struct DatabaseBuilder {
    url: String,
    durability: Durability,
    lock_timeout: Duration,
    options: OpenOptions,
}

impl DatabaseBuilder {
    /// When a commit counts as done, unless it says otherwise itself. The default is [`Durability::Sync`]: on the device
    /// before the call returns.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The bytes of memory in which a store on disk may keep what it has read. The default is the store's own.
    pub fn cache(mut self, bytes: usize) -> Self {
        self.options.cache_bytes = Some(bytes);
        self
    }

    /// Whether the database may be created, or written to.
    pub fn access(mut self, access: Access) -> Self {
        self.options.access = access;
        self
    }

    /// How long a writer waits for its turn, on stores where writers take turns, and how long a transaction that
    /// conflicts is tried again. The default is 5 seconds.
    pub fn lock_timeout(mut self, lock_timeout: Duration) -> Self {
        self.lock_timeout = lock_timeout;
        self
    }

    /// The bytes of memory that one question, or one write, may hold rows in: to sort them, to tell the values or the
    /// records apart that it has seen, to remember what it will change. Its nodes share them equally; what exceeds them
    /// is put into temporary files, and the answer stays the same. The default is 64 MiB.
    ///
    /// Not counted is what comes in one piece however little memory there is: a few rows being merged, and buffers of
    /// some 100 KiB. With many questions at once, each has so much.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.options.memory = self.options.memory.limited(Some(bytes));
        self
    }

    /// Where temporary files are put; the default is the operating system's folder for them. They have no names there,
    /// and are gone with the question that needed them, however it ends.
    ///
    /// Where the operating system keeps that folder in memory (`tmpfs`), name one on a device.
    pub fn temp_directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.options.memory = self.options.memory.in_directory(directory.as_ref());
        self
    }

    /// Opens the database.
    ///
    /// # Errors
    /// As [`Database::open`]; [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) where the folder for temporary files is
    /// none.
    pub fn open(self) -> Result<Database> {
        self.options.memory.check()?;
        let engine = engine::open(&self.url, &self.options)?;
        let store = engine.name();
        let engine = RwLock::new(Some(engine));
        let inner = Inner { engine, store, durability: self.durability, lock_timeout: self.lock_timeout };
        Ok(Database { inner: Arc::new(inner) })
    }
}

/// Keeps a type parameter that only says what documents are read as.
pub(crate) type As<T> = PhantomData<fn() -> T>;
