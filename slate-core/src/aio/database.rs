use std::{ops::ControlFlow, path::Path, sync::Arc, time::Duration};

use bson::{Document, RawDocumentBuf, Timestamp};

use super::{
    Call, Collection, Operation, ReadCollection, Transaction,
    methods::methods,
    runner::{Pool, Runner},
    wait_limits::WaitLimits,
};
use crate::{
    Aggregate, BulkWrite, CancelToken, ChangeLog, CollectionDescription, Config, CopyTarget, CopyTo, DatabaseBuilder,
    DatabaseStats, Error, Expire, IntoDocument, Metrics, MigrationResult, Migrations, Result, StorageSize,
    TransactionOptions, Verify, Watch, WriteOperation, call::open_transactions::Caller,
};

/// An open database, for async code; see the [module's page](super).
///
/// A handle: cheap to clone, share and send. It wraps a [`slate_core::Database`](crate::Database), and both can be used at
/// once. A handle made by `Database::from` has its own queue of writers, which its clones share.
#[derive(Clone)]
pub struct Database {
    blocking: crate::Database,
    pool: Arc<Pool>,
}

impl From<crate::Database> for Database {
    fn from(database: crate::Database) -> Self {
        Self { blocking: database, pool: Arc::default() }
    }
}

impl Database {
    /// See [`slate_core::Database::open`](crate::Database::open).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn open(url: &str) -> Operation<Self> {
        Self::open_with(crate::Database::builder(url))
    }

    /// See [`slate_core::Database::open_config`](crate::Database::open_config).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn open_config(config: &Config) -> Operation<Self> {
        Self::open_with(config.into())
    }

    /// Opens a database with the settings of a builder, [`slate_core::Database::builder`](crate::Database::builder).
    ///
    /// # Errors
    /// Fails as [`DatabaseBuilder::open`] does.
    pub fn open_with(builder: DatabaseBuilder) -> Operation<Self> {
        Runner::Pool(Arc::default()).block(CancelToken::new(), move || builder.open().map(Self::from))
    }

    methods! { handles "Database":
        /// The time begins when a method is called, not when its result is awaited.
        with_deadline(within: Duration);
        read_only();
        with_cancel(token: CancelToken);
        database(name: &str);
    }

    methods! { values "Database":
        metrics() -> Metrics;
        advance_time(time: Timestamp);
        last_time() -> Timestamp;
        next_time() -> Timestamp;
        store() -> &'static str;
    }

    methods! { calls "Database":
        aggregate(pipeline: impl IntoIterator<Item = impl IntoDocument>) -> Aggregate<Document>;
        copy_to(target: impl Into<CopyTarget>) -> CopyTo<'static>;
        watch(pipeline: impl IntoIterator<Item = impl IntoDocument>) -> Watch;
        expire() -> Expire;
        bulk_write['n](operations: impl IntoIterator<Item = (&'n str, WriteOperation)>) -> BulkWrite;
        verify() -> Verify<'static>;
    }

    /// Returns the database for blocking code.
    pub fn as_blocking(&self) -> &crate::Database {
        &self.blocking
    }

    /// Runs blocking code with the database on a thread of the pool. Many small calls then need one change of thread.
    ///
    /// Its writes do not wait in the queue of writers. `work` must end each blocking [`Transaction`](crate::Transaction) that it begins: it belongs
    /// to the thread. Dropping the operation does not stop `work`.
    ///
    /// # Errors
    /// Returns the error of `work`. Fails with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the handle's limits end the wait for a
    /// thread.
    ///
    /// ```
    /// use bson::{RawDocumentBuf, doc, rawdoc};
    /// use slate_core::aio::Database;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> slate_core::Result<()> {
    /// # let db = Database::open("memory:").await?;
    /// db.collection("users").insert_many(&[rawdoc! { "age": 36 }, rawdoc! { "age": 41 }]).run().await?;
    /// let total = db
    ///     .run_blocking(|db| {
    ///         let mut rows = db.collection::<RawDocumentBuf>("users").find(doc! {}).cursor()?;
    ///         let mut total = 0;
    ///         while rows.advance()? {
    ///             total += rows.current().and_then(|user| user.get_i32("age").ok()).unwrap_or_default();
    ///         }
    ///         Ok(total)
    ///     })
    ///     .await?;
    /// assert_eq!(total, 77);
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce(&crate::Database) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let database = self.blocking.clone();
        let limits = WaitLimits::of(database.handle().limits().begin(), None);
        self.runner().block(limits, move || work(&database))
    }

    /// Returns a collection of documents that are read and written as `T`; see
    /// [`slate_core::Database::collection`](crate::Database::collection).
    pub fn collection<T: 'static>(&self, name: &str) -> Collection<T> {
        Collection::new(self.blocking.collection(name), self.runner())
    }

    /// Takes a snapshot of the latest commit; see [`slate_core::Database::snapshot`](crate::Database::snapshot).
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn snapshot(&self) -> Operation<Snapshot> {
        let runner = self.runner();
        self.run_blocking(|database| Ok(Snapshot { snapshot: database.snapshot()?, runner }))
    }

    /// Begins a transaction with snapshot isolation. Dropping it rolls it back. Prefer
    /// [`Database::transact`] or [`Database::transact_async`], which retry after a conflict.
    ///
    /// # Errors
    /// Fails if the storage fails.
    ///
    /// ```
    /// use bson::{doc, rawdoc};
    /// use slate_core::aio::Database;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> slate_core::Result<()> {
    /// # let db = Database::open("memory:").await?;
    /// let tx = db.begin().await?;
    /// let users = tx.collection("users");
    /// users.insert_one(&rawdoc! { "_id": 1 }).await?;
    /// assert_eq!(users.count_documents(doc! {}).await?, 1);
    /// tx.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin(&self) -> Operation<Transaction> {
        self.begin_with(&TransactionOptions::default())
    }

    /// Begins a transaction with options. The caller must retry it after a conflict.
    ///
    /// # Errors
    /// Fails as [`Database::begin`] does.
    pub fn begin_with(&self, options: &TransactionOptions) -> Operation<Transaction> {
        let (database, pool, options) = (self.blocking.clone(), Arc::clone(&self.pool), self.blocking.limited(options));
        Operation::new(async move {
            let caller = Caller::current();
            // The permit is held only while the transaction begins: otherwise open transactions could block others from
            // ending.
            let place = pool.enter().await?;
            let name = database.name().clone();
            let begin = move |options: &TransactionOptions| {
                let begun = database.begin_for(options, caller);
                drop(place);
                begun
            };
            Transaction::begin(&options, name, begin).await
        })
    }

    /// Runs `work` in a transaction and commits it, with retries, as
    /// [`slate_core::Database::transact`](crate::Database::transact) does. `work` is blocking code that runs on one
    /// thread of the pool. It occupies one of the threads for writers, so it must not wait for another task's write.
    ///
    /// Dropping the operation cancels the transaction, unless it is being committed.
    ///
    /// # Errors
    /// Returns the error of `work`, or the last conflict when time is up.
    pub fn transact<R: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        work: impl FnMut(&crate::Transaction) -> Result<R, E> + Send + 'static,
    ) -> Operation<R, E> {
        self.transact_with(&TransactionOptions::default(), work)
    }

    /// Runs `work` in a transaction with options, as [`Database::transact`] does. The deadline counts from the start of the
    /// work, not from the wait in the queue.
    ///
    /// # Errors
    /// Fails as [`Database::transact`] does; with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) past the
    /// deadline.
    pub fn transact_with<R: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        options: &TransactionOptions,
        work: impl FnMut(&crate::Transaction) -> Result<R, E> + Send + 'static,
    ) -> Operation<R, E> {
        let database = self.blocking.clone();
        let (options, token) = database.limited(options).cancellable();
        self.runner().write(token, move || database.transact_with(&options, work))
    }

    /// See [`slate_core::Database::migrate`](crate::Database::migrate). The steps are blocking code that runs on one thread of the
    /// pool.
    ///
    /// Dropping the operation ends it; a step that is being executed is rolled back or committed.
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn migrate(&self, migrations: &Migrations) -> Operation<MigrationResult> {
        let database = self.blocking.clone();
        let (migrations, token) = migrations.limited(&database).cancellable();
        self.runner().write(token, move || database.migrate(&migrations))
    }

    methods! { block "Database":
        list_collection_names() -> Vec<String>;
        list_collections() -> Vec<CollectionDescription>;
        list_database_names() -> Vec<String>;
        logs_changes() -> bool;
        schema_version() -> u64;
        size() -> StorageSize;
        stats() -> DatabaseStats;
    }

    methods! { write "Database":
        disable_changes() -> ();
        drop_database() -> ();
        flush() -> ();
        compact() -> ();
        resume_index_builds() -> u64;
    }

    methods! { write "Database" owned:
        enable_changes(log: ChangeLog) -> ();
    }

    /// Runs one of MongoDB's commands and returns its reply; see
    /// [`slate_core::Database::command`](crate::Database::command).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn command(&self, command: impl IntoDocument) -> Operation<RawDocumentBuf> {
        let command = command.into_document();
        self.write(move |database| database.command(command?))
    }

    /// Writes a copy of the database, as of one commit, while writers continue; see
    /// [`slate_core::Database::backup`](crate::Database::backup). Dropping the operation does not stop it.
    ///
    /// # Errors
    /// Fails as [`slate_core::Database::backup`](crate::Database::backup) does.
    pub fn backup(&self, to: impl AsRef<Path>) -> Operation<()> {
        let to = to.as_ref().to_owned();
        self.run_blocking(move |database| database.backup(to))
    }

    /// Removes old versions from a cluster; see
    /// [`slate_core::Database::collect_garbage`](crate::Database::collect_garbage). Dropping the operation does not
    /// stop it.
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn collect_garbage(&self, keep: Duration) -> Operation<()> {
        self.run_blocking(move |database| database.collect_garbage(keep))
    }

    /// Writes a backup that the caller can stop; see [`slate_core::Database::backup_while`](crate::Database::backup_while). Dropping the operation
    /// does not end it.
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn backup_while(
        &self,
        to: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send + 'static,
    ) -> Operation<()> {
        let to = to.as_ref().to_owned();
        self.run_blocking(move |database| database.backup_while(to, progress))
    }

    /// Compacts in steps, between which other operations run; see
    /// [`slate_core::Database::compact_while`](crate::Database::compact_while). Dropping the operation does not end it.
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn compact_while(
        &self,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send + 'static,
    ) -> Operation<ControlFlow<()>> {
        self.run_blocking(move |database| database.compact_while(progress))
    }

    /// Closes the database for all its handles, blocking ones too; see
    /// [`slate_core::Database::close`](crate::Database::close).
    ///
    /// # Errors
    /// Fails as [`slate_core::Database::close`](crate::Database::close) does.
    pub fn close(self) -> Operation<()> {
        let database = self.blocking.clone();
        self.run_blocking(move |_| database.close())
    }

    fn with(&self, blocking: crate::Database) -> Self {
        Self { blocking, pool: Arc::clone(&self.pool) }
    }

    fn block<R: Send + 'static>(
        &self,
        run: impl FnOnce(crate::Database) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let database = self.blocking.begun();
        self.runner().block(CancelToken::new(), move || run(database))
    }

    fn write<R: Send + 'static>(
        &self,
        run: impl FnOnce(crate::Database) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let database = self.blocking.begun();
        self.runner().write(CancelToken::new(), move || run(database))
    }

    pub(super) fn runner(&self) -> Runner {
        Runner::Pool(Arc::clone(&self.pool))
    }
}

crate::debug::shown! { self: Database { store: self.store() } }

/// One commit of a database, across all its collections; see [`Database::snapshot`].
#[derive(Clone, Debug)]
pub struct Snapshot {
    snapshot: crate::Snapshot,
    runner: Runner,
}

impl Snapshot {
    /// Returns a collection as of this commit.
    pub fn collection<T: 'static>(&self, name: &str) -> ReadCollection<T> {
        ReadCollection::new(self.snapshot.collection(name), self.runner.clone())
    }

    /// Returns the same commit of another database in the store; see
    /// [`slate_core::Snapshot::database`](crate::Snapshot::database).
    #[must_use]
    pub fn database(&self, name: &str) -> Self {
        Self { snapshot: self.snapshot.database(name), runner: self.runner.clone() }
    }

    /// Returns the names of the collections and views, sorted.
    pub fn list_collection_names(&self) -> Vec<String> {
        self.snapshot.list_collection_names()
    }

    /// Returns the collections with their indexes, and the views, sorted by name.
    pub fn list_collections(&self) -> Vec<CollectionDescription> {
        self.snapshot.list_collections()
    }

    /// Returns the snapshot for blocking code.
    pub fn as_blocking(&self) -> &crate::Snapshot {
        &self.snapshot
    }
}

impl From<&Database> for CopyTarget {
    fn from(database: &Database) -> Self {
        database.as_blocking().into()
    }
}
