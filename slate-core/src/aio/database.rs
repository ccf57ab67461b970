use std::{fmt, path::Path};

use bson::{RawDocument, RawDocumentBuf};

use super::{
    Call, Collection, Operation, ReadCollection, Transaction,
    runner::{Pool, Runner},
};
use crate::{
    CancelToken, CollectionDescription, Config, DatabaseBuilder, Result, StorageSize, TransactionOptions,
    WriteOperation,
};

/// An open database, for async code; see the [module's page](super).
///
/// A handle: cheap to clone, to share and to send. It is a face of a [`slate_core::Database`](crate::Database): either can
/// be had from the other, and both can be used at once. One made with `Database::from` has a line of its own for writers,
/// which its clones share.
#[derive(Clone)]
pub struct Database {
    database: crate::Database,
    pool: Pool,
}

impl From<crate::Database> for Database {
    fn from(database: crate::Database) -> Self {
        Self { database, pool: Pool::default() }
    }
}

impl Database {
    /// Opens a database by URL, creating it where there is none.
    ///
    /// # Errors
    /// As [`slate_core::Database::open`](crate::Database::open).
    pub fn open(url: &str) -> Operation<Self> {
        Self::open_with(crate::Database::builder(url))
    }

    /// Opens a database as a service's settings say.
    ///
    /// # Errors
    /// As [`slate_core::Database::open_config`](crate::Database::open_config).
    pub fn open_config(config: &Config) -> Operation<Self> {
        Self::open_with(config.into())
    }

    /// Opens a database with the settings of a builder, [`slate_core::Database::builder`](crate::Database::builder).
    ///
    /// # Errors
    /// As [`DatabaseBuilder::open`].
    ///
    /// ```
    /// use slate_core::{Durability, aio::Database};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> slate_core::Result<()> {
    /// let settings = slate_core::Database::builder("memory:").durability(Durability::Deferred);
    /// let db = Database::open_with(settings).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn open_with(builder: DatabaseBuilder) -> Operation<Self> {
        Runner::Pool(Pool::default()).read(&CancelToken::new(), move |_| builder.open().map(Self::from))
    }

    /// The database for blocking code.
    pub fn as_blocking(&self) -> &crate::Database {
        &self.database
    }

    /// Runs blocking code with the database on the pool: for what has no async form (lending cursors, say), and for work
    /// of many small calls, which so costs one change of thread.
    ///
    /// What it writes does not wait in line with other writes. A blocking [`Transaction`](crate::Transaction) must be ended
    /// by the code that began it: where writers take turns, the store would take another task's write on the same thread
    /// for its own.
    ///
    /// # Errors
    /// Those of `work`. Dropping the operation does not end it.
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
        let database = self.database.clone();
        self.runner().read(&CancelToken::new(), move |_| work(&database))
    }

    /// A collection of documents that are read and written as `T`: a type of serde's, or
    /// [`RawDocumentBuf`] for the documents' own bytes. It need not exist: it is created by the
    /// first document or index, and read as empty until then.
    pub fn collection<T>(&self, name: &str) -> Collection<T> {
        Collection::new(self.database.collection(name), self.runner())
    }

    /// The database as of its last commit, for as long as the snapshot is held: what is read through it belongs
    /// together, across collections. It blocks nobody, and waits for no transaction.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn snapshot(&self) -> Operation<Snapshot> {
        let runner = self.runner();
        self.run_blocking(|database| Ok(Snapshot { snapshot: database.snapshot()?, runner }))
    }

    /// Begins a transaction of snapshot isolation, on a thread of its own. Dropping it rolls it back. Prefer
    /// [`Database::transact`], which tries again on a conflict.
    ///
    /// # Errors
    /// On a store where writers take turns: [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) when the wait is over.
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
    /// assert_eq!(users.count_documents(doc! {}).run().await?, 1);
    /// tx.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin(&self) -> Operation<Transaction> {
        self.begin_with(&TransactionOptions::default())
    }

    /// Begins a transaction that is isolated, committed and limited as the options say. Its retries are the caller's.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub fn begin_with(&self, options: &TransactionOptions) -> Operation<Transaction> {
        let (database, pool, options) = (self.database.clone(), self.pool.clone(), options.clone());
        Operation::new(async move {
            // Only while it begins: an open transaction must not keep others from being ended.
            let place = pool.enter().await?;
            let begin = move |options: &TransactionOptions| {
                let begun = database.begin_with(options);
                drop(place);
                begun
            };
            Transaction::begin(&options, begin).await
        })
    }

    /// Runs `work` in a transaction and commits it; an error of `work` rolls it back. On a conflict it is rolled back and
    /// run again, as [`slate_core::Database::transact`](crate::Database::transact) does. `work` is blocking code: it runs
    /// on one thread of the pool, and needs no change of thread for each call. It has a place in the line of writers, so it
    /// must not wait for what another task is to write.
    ///
    /// Dropping the operation cancels the transaction, unless it is being committed.
    ///
    /// # Errors
    /// Those of `work`; the conflict that was left when time was up.
    pub fn transact<R: Send + 'static>(
        &self,
        work: impl FnMut(&crate::Transaction) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        self.transact_with(&TransactionOptions::default(), work)
    }

    /// Runs `work` in a transaction, as [`Database::transact`] does, that is isolated, committed, limited and tried again
    /// as the options say. The deadline counts from when its turn in line has come.
    ///
    /// # Errors
    /// As [`Database::transact`]; [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) past the deadline.
    pub fn transact_with<R: Send + 'static>(
        &self,
        options: &TransactionOptions,
        work: impl FnMut(&crate::Transaction) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let database = self.database.clone();
        let (options, caller) = options.cancellable();
        self.runner().write(&caller, move |token| database.transact_with(&options.cancel(token), work))
    }

    /// Runs many writes, over any number of collections, as one: each operation with the name of its collection. See
    /// [`slate_core::BulkWrite`](crate::BulkWrite).
    pub fn bulk_write<'n>(
        &self,
        operations: impl IntoIterator<Item = (&'n str, WriteOperation)>,
    ) -> Call<crate::BulkWrite> {
        Call::new(self.database.bulk_write(operations), self.runner())
    }

    /// The names of the collections, in order.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn list_collection_names(&self) -> Operation<Vec<String>> {
        self.run_blocking(crate::Database::list_collection_names)
    }

    /// The collections, in the order of their names, with their indexes.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn list_collections(&self) -> Operation<Vec<CollectionDescription>> {
        self.run_blocking(crate::Database::list_collections)
    }

    /// Runs one of MongoDB's commands and gives its reply; see
    /// [`slate_core::Database::command`](crate::Database::command).
    ///
    /// # Errors
    /// A command that is not known (code 59), not offered, or not valid; where the storage fails.
    pub fn command(&self, command: &RawDocument) -> Operation<RawDocumentBuf> {
        let (database, command) = (self.database.clone(), command.to_owned());
        self.runner().write(&CancelToken::new(), move |_| database.command(&command))
    }

    /// Puts every commit that has returned on the device: what [`Durability::Deferred`](crate::Durability::Deferred) put
    /// off.
    ///
    /// # Errors
    /// Where the device fails.
    pub fn flush(&self) -> Operation<()> {
        let database = self.database.clone();
        self.runner().write(&CancelToken::new(), move |_| database.flush())
    }

    /// Writes a copy of the database, as of one commit, while others go on writing; see
    /// [`slate_core::Database::backup`](crate::Database::backup). Dropping the operation does not end it.
    ///
    /// # Errors
    /// As [`slate_core::Database::backup`](crate::Database::backup).
    pub fn backup(&self, to: impl AsRef<Path>) -> Operation<()> {
        let to = to.as_ref().to_owned();
        self.run_blocking(move |database| database.backup(to))
    }

    /// Gives back to the file system what deleted documents and dropped collections left behind, as far as the store can;
    /// see [`slate_core::Database::compact`](crate::Database::compact). Dropping the operation does not end it.
    ///
    /// # Errors
    /// As [`slate_core::Database::compact`](crate::Database::compact).
    pub fn compact(&self) -> Operation<()> {
        let database = self.database.clone();
        self.runner().write(&CancelToken::new(), move |_| database.compact())
    }

    /// Verifies every collection, as of one commit; see [`slate_core::Database::verify`](crate::Database::verify).
    pub fn verify(&self) -> Call<crate::Verify<'static>> {
        Call::new(self.database.verify(), self.runner())
    }

    /// Finishes interrupted index builds; see
    /// [`slate_core::Database::resume_index_builds`](crate::Database::resume_index_builds).
    ///
    /// # Errors
    /// As the blocking method.
    pub fn resume_index_builds(&self) -> Operation<u64> {
        let database = self.database.clone();
        self.runner().write(&CancelToken::new(), move |_| database.resume_index_builds())
    }

    /// Closes the database for all its handles, blocking ones too: puts every commit on the device, and tells where that
    /// fails; see [`slate_core::Database::close`](crate::Database::close).
    ///
    /// # Errors
    /// As [`slate_core::Database::close`](crate::Database::close).
    pub fn close(self) -> Operation<()> {
        let database = self.database.clone();
        self.run_blocking(move |_| database.close())
    }

    /// How much room the database takes, in bytes, as far as the store can tell.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn size(&self) -> Operation<StorageSize> {
        self.run_blocking(crate::Database::size)
    }

    /// The store's name: `"memory"`, `"redb"`, `"rocksdb"`.
    pub fn store(&self) -> &'static str {
        self.database.store()
    }

    fn runner(&self) -> Runner {
        Runner::Pool(self.pool.clone())
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("store", &self.store()).finish_non_exhaustive()
    }
}

/// One commit of a database, across all its collections; see [`Database::snapshot`].
#[derive(Clone, Debug)]
pub struct Snapshot {
    snapshot: crate::Snapshot,
    runner: Runner,
}

impl Snapshot {
    /// A collection as of this commit.
    pub fn collection<T>(&self, name: &str) -> ReadCollection<T> {
        ReadCollection::new(self.snapshot.collection(name), self.runner.clone())
    }

    /// The names of the collections, sorted.
    pub fn list_collection_names(&self) -> Vec<String> {
        self.snapshot.list_collection_names()
    }

    /// The snapshot for blocking code.
    pub fn as_blocking(&self) -> &crate::Snapshot {
        &self.snapshot
    }
}
