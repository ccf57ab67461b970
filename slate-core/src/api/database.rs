use std::{collections::BTreeSet, time::Duration};

use bson::Document;
use slate_store::Store;

use crate::{
    Aggregate, BulkWrite, CancelToken, Collection, CollectionDescription, DatabaseBuilder, Durability, Error,
    IntoDocument, Result, Snapshot, Transaction, TransactionOptions, WriteOperation,
    api::{aggregate::NO_COLLECTION, database_builder::LOCK_TIMEOUT},
    call::transaction_options::Started,
    call::{
        self, DatabaseHandle, OpenOptions, Request, RequestSource, Scope, ScopedRequest,
        open_transactions::Registration,
        retry::{self, Failure},
    },
    call_context::CallContext,
    namespace::{self, DatabaseName},
};

/// An open database.
///
/// A handle: cheap to clone, share and send. Collections, snapshots and transactions keep the database open.
#[derive(Clone)]
pub struct Database {
    handle: DatabaseHandle,
    name: DatabaseName,
}

impl Database {
    pub(crate) fn new(handle: DatabaseHandle) -> Self {
        Self { handle, name: DatabaseName::default() }
    }

    pub(crate) fn handle(&self) -> &DatabaseHandle {
        &self.handle
    }

    pub(crate) fn name(&self) -> &DatabaseName {
        &self.name
    }

    /// Returns the scope of calls outside of transactions.
    pub(super) fn scope(&self) -> Scope {
        Scope::Database(self.handle.clone())
    }

    /// Returns the context of a call that begins now.
    pub(super) fn begin_call(&self) -> CallContext {
        CallContext::begin(self.handle.limits())
    }

    fn with_handle(&self, handle: DatabaseHandle) -> Self {
        Self { handle, name: self.name.clone() }
    }

    /// Opens a database by URL and creates it if it does not exist:
    ///
    /// | URL | store |
    /// |---|---|
    /// | `memory:` | this process's memory; dropped with the last handle |
    /// | `memory:PATH` | the same, loaded from a copy that [`Database::backup`] wrote; the file is only read |
    /// | `redb:PATH` | one file, in pure Rust |
    /// | `rocksdb:PATH` | a folder, written by RocksDB; needs the feature `rocksdb` |
    /// | `tikv://HOST:PORT,…/NAME` | a cluster that several processes can use; needs the feature `tikv` |
    ///
    /// # Errors
    /// Fails, each time with its own [`ErrorKind`](crate::ErrorKind), if the store is unknown, the folder is missing, the
    /// file is not a Slate database or was written by a newer version, or another handle has the database open.
    ///
    /// ```
    /// let db = slate_core::Database::open("memory:")?;
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn open(url: &str) -> Result<Self> {
        Self::builder(url).open()
    }

    /// Opens a database on a store of the caller's own, with default settings. `docs/writing-a-backend.md` in the repository
    /// walks through a complete store.
    ///
    /// # Errors
    /// Fails if the store's contents are not a Slate database or were written by a newer version, or if the store fails.
    ///
    /// ```
    /// let db = slate_core::Database::with_store(slate_store::memory::MemoryStore::new())?;
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn with_store(store: impl Store) -> Result<Self> {
        let engine = call::with_store(store, &OpenOptions::default())?;
        Ok(Self::new(DatabaseHandle::new(engine, Durability::Sync, LOCK_TIMEOUT)))
    }

    /// Returns a builder that configures how `url` is opened.
    pub fn builder(url: &str) -> DatabaseBuilder {
        DatabaseBuilder::new(url)
    }

    /// Returns a collection of documents that are read and written as `T`: a serde type, or
    /// [`RawDocumentBuf`](bson::RawDocumentBuf) for the bytes themselves. The collection need not exist: the first document
    /// or index creates it, and until then it is empty.
    pub fn collection<T>(&self, name: &str) -> Collection<T> {
        Collection::new(self.scope(), self.name.stored(name), self.handle.limits().clone())
    }

    /// Returns a handle of the database with this name in the same store. A store holds many databases, as a MongoDB server does; one exists as long
    /// as it has a collection. Collections, pipelines, views, lists and commands without `$db` of the handle use names within the database; `$out`
    /// and `$merge` can write to another one with `{ db, coll }`. Commits, snapshots, `stats`, `metrics`, `verify`, backups and copies are those of
    /// the whole store.
    ///
    /// The handle with which the store was opened names the collections of all databases: those of `test`, MongoDB's default, by their
    /// own names, others as `$database.collection`.
    ///
    /// With a name that is invalid in MongoDB, creating a collection fails with code 73.
    ///
    /// ```
    /// # let store = slate_core::Database::open("memory:")?;
    /// use bson::rawdoc;
    ///
    /// let shop = store.database("shop");
    /// shop.collection("orders").insert_one(&rawdoc! { "_id": 1 })?;
    /// assert_eq!(shop.list_collection_names()?, ["orders"]);
    /// assert_eq!(store.list_database_names()?, ["shop"]);
    /// assert_eq!(store.list_collection_names()?, ["$shop.orders"]);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    #[must_use]
    pub fn database(&self, name: &str) -> Self {
        Self { handle: self.handle.clone(), name: DatabaseName::new(name) }
    }

    /// Returns the names of the databases in the store that have a collection or a view, sorted.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn list_database_names(&self) -> Result<Vec<String>> {
        self.handle.limits().check()?;
        let names = self.handle.catalog()?.names();
        let databases: BTreeSet<&str> = names.iter().map(|name| namespace::split(name).0).collect();
        Ok(databases.into_iter().map(str::to_owned).collect())
    }

    /// Returns a handle of the same database with a deadline for each call, also through its collections: a call fails
    /// with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if it does not end within this time from its beginning; see
    /// [`ReadCollection::with_deadline`](crate::ReadCollection::with_deadline). For a transaction, the deadline applies
    /// to the whole transaction. The deadline of a call's own options replaces it. [`command`](Self::command) has
    /// MongoDB's `maxTimeMS` instead, and `flush`, `backup`, `size` and `close` are not interrupted once they have begun.
    ///
    /// ```
    /// use std::time::Duration;
    /// use slate_core::{CancelToken, Database, bson::rawdoc};
    ///
    /// let db = Database::open("memory:")?;
    /// let shutdown = CancelToken::new();
    /// let requests = db.with_deadline(Duration::from_secs(2)).with_cancel(shutdown.child());
    /// requests.collection("users").insert_one(&rawdoc! { "_id": 1 })?;
    /// shutdown.cancel();
    /// assert!(requests.collection("users").insert_one(&rawdoc! { "_id": 2 }).is_err());
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    #[must_use]
    pub fn with_deadline(&self, within: Duration) -> Self {
        let mut limits = self.handle.limits().clone();
        limits.deadline(within);
        self.with_handle(self.handle.with_limits(limits))
    }

    /// Returns a handle of the same database with a cancel token for each call, also through its collections; see
    /// [`with_deadline`](Self::with_deadline).
    #[must_use]
    pub fn with_cancel(&self, token: CancelToken) -> Self {
        let mut limits = self.handle.limits().clone();
        limits.cancel(token);
        self.with_handle(self.handle.with_limits(limits))
    }

    /// Returns a handle of the same database that cannot write: calls that would change the database, also through its collections,
    /// fail with [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly). This includes transactions, commands, pipelines that end with `$out` or `$merge`,
    /// index builds, `analyze` and [`compact`](Self::compact). For several reads of one commit take a [`snapshot`](Self::snapshot).
    /// Other handles of the database still write, and this one reads what they commit.
    ///
    /// It is for callers that are not trusted to write, such as an endpoint that forwards commands. It does not limit
    /// reads, the files that [`backup`](Self::backup) and [`copy_to`](Self::copy_to) create, or [`close`](Self::close),
    /// which closes the database for all handles.
    ///
    /// ```
    /// use slate_core::{Database, ErrorKind, bson::doc};
    ///
    /// let db = Database::open("memory:")?;
    /// db.command(doc! { "insert": "users", "documents": [{ "_id": 1 }] })?;
    /// let reader = db.read_only();
    /// reader.command(doc! { "find": "users" })?;
    /// let pipeline = [doc! { "$merge": "copies" }];
    /// let refused = reader.command(doc! { "aggregate": "users", "pipeline": pipeline.to_vec(), "cursor": {} });
    /// assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    #[must_use]
    pub fn read_only(&self) -> Self {
        self.with_handle(self.handle.read_only())
    }

    /// Returns the same database for an async call: its deadline counts from now, although it is executed later.
    #[cfg(feature = "async")]
    pub(crate) fn begun(&self) -> Self {
        self.with_handle(self.handle.with_limits(self.handle.limits().begun()))
    }

    /// Returns the options of a transaction, with the limits of this handle in place of those that are not set.
    pub(crate) fn limited(&self, options: &TransactionOptions) -> TransactionOptions {
        options.limited(self.handle.limits())
    }

    /// Opens a snapshot of the latest commit: all reads through it, of all collections, see that commit. It blocks no
    /// writer and waits for none.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.handle.limits().check()?;
        Ok(Snapshot::new(self.handle.engine()?.snapshot()?, self.name.clone(), self.handle.limits().clone()))
    }

    /// Begins a transaction with snapshot isolation. Dropping it rolls it back. Prefer [`Database::transact`], which retries
    /// after a conflict.
    ///
    /// The transaction belongs to this thread. Until it ends, this thread's writes outside of it, and its calls of `transact`, fail without waiting
    /// with [`ErrorKind::Reentrant`](crate::ErrorKind::Reentrant), on every store: they would not be part of it. If the transaction is moved to
    /// another thread, that thread's writes outside of it do not fail. A [detached](TransactionOptions::detached) transaction belongs to no thread.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(&TransactionOptions::default())
    }

    /// Begins a transaction with options. The caller must retry it after a conflict.
    ///
    /// # Errors
    /// Fails as [`Database::begin`] does.
    pub fn begin_with(&self, options: &TransactionOptions) -> Result<Transaction> {
        let owner = (!options.is_detached()).then(|| self.handle.open_transactions().register());
        self.begin_started(&self.start(options), owner)
    }

    /// Begins a transaction that belongs to the caller's task.
    #[cfg(feature = "async")]
    pub(crate) fn begin_for(
        &self,
        options: &TransactionOptions,
        caller: call::open_transactions::Caller,
    ) -> Result<Transaction> {
        let owner = (!options.is_detached()).then(|| self.handle.open_transactions().register_task(caller));
        self.begin_started(&self.start(options), owner)
    }

    /// Starts the clock of a transaction with these options and the limits of this handle.
    pub(crate) fn start(&self, options: &TransactionOptions) -> Started {
        self.limited(options).start(self.handle.lock_timeout())
    }

    #[cfg(feature = "async")]
    pub(crate) fn observer(&self) -> &crate::metrics::Observer {
        self.handle.observer()
    }

    /// Returns the transactions that callers have open.
    #[cfg(feature = "async")]
    pub(crate) fn open_transactions(&self) -> &std::sync::Arc<crate::call::open_transactions::OpenTransactions> {
        self.handle.open_transactions()
    }

    fn begin_started(&self, started: &Started, owner: Option<Registration>) -> Result<Transaction> {
        let writer = self.handle.engine_to_write()?.begin(&started.begin_options())?;
        let durability = started.durability.unwrap_or(self.handle.durability());
        Ok(Transaction::new(self.handle.clone(), writer, owner, self.name.clone(), durability))
    }

    /// Runs `work` in a transaction and commits it; an error of `work` rolls it back. After a conflict it is rolled back and
    /// run again, with growing pauses, until the lock timeout has passed since the first attempt.
    ///
    /// Inside, use `tx.collection(…)`: a write through the database fails, see [`Database::begin`].
    ///
    /// The error is of the caller's own type, to which errors of the database are converted: `slate_core::Error`, an enum with a variant for it,
    /// `anyhow::Error`. If the closure uses `?` and ends with `Ok(…)`, write down its result type. An attempt in which a call failed with a conflict
    /// is repeated, whatever error `work` returns.
    ///
    /// # Errors
    /// Returns the error of `work`, or the last conflict when time is up. Also fails as [`Database::begin`] does.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{Document, doc};
    ///
    /// #[derive(Debug)]
    /// enum PayError { TooPoor, Database(slate_core::Error) }
    ///
    /// impl From<slate_core::Error> for PayError {
    ///     fn from(error: slate_core::Error) -> Self { Self::Database(error) }
    /// }
    ///
    /// # db.collection("accounts").insert_one(&doc! { "_id": "a", "balance": 3 })?;
    /// let paid = db.transact(|tx| -> Result<(), PayError> {
    ///     let accounts = tx.collection::<Document>("accounts");
    ///     let paid = accounts.update_one(doc! { "_id": "a", "balance": { "$gte": 10 } }, doc! { "$inc": { "balance": -10 } });
    ///     if paid.run()?.matched == 0 {
    ///         return Err(PayError::TooPoor);                             // rolls back
    ///     }
    ///     accounts.update_one(doc! { "_id": "b" }, doc! { "$inc": { "balance": 10 } }).upsert().run()?;
    ///     Ok(())
    /// });
    /// assert!(matches!(paid, Err(PayError::TooPoor)));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn transact<R, E: From<Error>>(&self, work: impl FnMut(&Transaction) -> Result<R, E>) -> Result<R, E> {
        self.transact_with(&TransactionOptions::default(), work)
    }

    /// Runs `work` in a transaction with options, as [`Database::transact`] does.
    ///
    /// # Errors
    /// Fails as [`Database::transact`] does; with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) past the deadline.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{RawDocumentBuf, doc};
    /// use slate_core::{Isolation, TransactionOptions};
    ///
    /// let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
    /// db.transact_with(&serializable, |tx| -> slate_core::Result<()> {
    ///     let doctors = tx.collection::<RawDocumentBuf>("doctors");
    ///     if doctors.count_documents(doc! { "on_call": true }).run()? > 1 {
    ///         doctors.update_one(doc! { "_id": "Ada" }, doc! { "$set": { "on_call": false } }).run()?;
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn transact_with<R, E: From<Error>>(
        &self,
        options: &TransactionOptions,
        mut work: impl FnMut(&Transaction) -> Result<R, E>,
    ) -> Result<R, E> {
        self.handle.open_transactions().check_outside()?;
        let started = self.start(options);
        retry::on_conflict(&started.retry, None, self.handle.observer(), || {
            let transaction = self.begin_started(&started, Some(self.handle.open_transactions().register()))?;
            match work(&transaction) {
                Ok(result) => {
                    transaction.commit()?;
                    Ok(result)
                }
                Err(error) => Err(Failure { is_retryable: transaction.has_conflict(), error, takes_turn: false }),
            }
        })
    }

    /// Runs many writes to any number of collections in one transaction: pairs of a collection's name and an operation.
    /// See [`BulkWrite`].
    pub fn bulk_write<'n>(&self, operations: impl IntoIterator<Item = (&'n str, WriteOperation)>) -> BulkWrite {
        let operations = operations.into_iter();
        let operations =
            operations.map(|(collection, operation)| (self.name.stored(collection).into_owned(), operation));
        BulkWrite::new(self.scope(), operations.collect(), self.begin_call())
    }

    /// Executes a pipeline that begins with `$documents` and so reads no collection, except those of `$lookup` and `$unionWith`.
    ///
    /// ```
    /// # use slate_core::{Database, bson::doc};
    /// # let db = Database::open("memory:")?;
    /// let pipeline = [doc! { "$documents": [{ "n": 1 }, { "n": 2 }] }, doc! { "$match": { "n": { "$gt": 1 } } }];
    /// assert_eq!(db.aggregate(pipeline).first()?, Some(doc! { "n": 2 }));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn aggregate(&self, pipeline: impl IntoIterator<Item = impl IntoDocument>) -> Aggregate<Document> {
        let limits = self.handle.limits();
        let mut scoped = ScopedRequest::new(self.scope(), &NO_COLLECTION.into(), limits, Request::default());
        scoped.request.source = RequestSource::Pipeline;
        Aggregate::new(scoped, self.name.as_deref().unwrap_or(namespace::DEFAULT_DATABASE), pipeline)
    }

    /// Returns the names of the collections and views, sorted.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn list_collection_names(&self) -> Result<Vec<String>> {
        self.handle.limits().check()?;
        Ok(self.handle.catalog()?.names_in(&self.name))
    }

    /// Drops all collections and views that exist when it is called, with their documents and indexes, in one transaction.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn drop_database(&self) -> Result<()> {
        let names = self.list_collection_names()?;
        let names = names.iter().map(|name| self.name.stored(name));
        self.scope().write(&self.begin_call(), |writer| {
            names.clone().try_for_each(|name| writer.drop_collection(&name).map(drop))?;
            let dropped: BTreeSet<String> = names.clone().map(|name| namespace::split(&name).0.to_owned()).collect();
            dropped.iter().try_for_each(|database| writer.dropped_database(database))
        })
    }

    /// Returns the collections with their indexes, and the views, sorted by name.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn list_collections(&self) -> Result<Vec<CollectionDescription>> {
        self.handle.limits().check()?;
        Ok(CollectionDescription::all(&*self.handle.catalog()?, &self.name))
    }
}

crate::debug::shown! { self: Database { store: self.store() } }
