use std::{path::Path, time::Duration};

use crate::{
    Access, Database, Durability, Recovery, Result, Sharing, SlowQuery, Verification,
    call::DatabaseHandle,
    call::{self, OpenOptions},
};

/// The default of [`DatabaseBuilder::lock_timeout`].
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings for opening a database; see [`Database::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing is opened until `open`"]
pub struct DatabaseBuilder {
    url: String,
    durability: Durability,
    lock_timeout: Duration,
    open_timeout: Duration,
    options: OpenOptions,
}

impl DatabaseBuilder {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.into(),
            durability: Durability::Sync,
            lock_timeout: LOCK_TIMEOUT,
            open_timeout: Duration::ZERO,
            options: OpenOptions::default(),
        }
    }

    /// Sets when a commit returns, unless the transaction has its own setting. The default is [`Durability::Sync`]: after it
    /// is synced to the device.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the cache memory of a store on disk, in bytes. An eighth of it caches single records, the rest pages. The default is 256 MiB.
    pub fn cache(mut self, bytes: usize) -> Self {
        self.options.cache_bytes = Some(bytes);
        self
    }

    /// Sets whether the database may be created, or written to. By default it may.
    pub fn access(mut self, access: Access) -> Self {
        self.options.access = access;
        self
    }

    /// Sets when a redb database prepares its recovery after a crash: with each synced commit, the default, or when it is opened.
    pub fn recovery(mut self, recovery: Recovery) -> Self {
        self.options.recovery = recovery;
        self
    }

    /// Sets which other processes may have a redb database open. By default one process writes, or several read. With
    /// [`Sharing::WithReaders`] one writes while others read: open the writer with it, and readers with
    /// [`Access::ReadOnly`]. A reader's calls and snapshots see the latest commit of the writer.
    ///
    /// Cost: each of the writer's commits is synced alone, also with [`Durability::Deferred`], because other processes
    /// must not see a commit that a crash can undo. A reader reads the catalog's version with each call and caches no
    /// values.
    ///
    /// A reader detects by itself that the file is shared. If it sets this, too, the writer can be opened after it.
    /// Opening fails with [`ErrorKind::Locked`](crate::ErrorKind::Locked) if another process has the file open in a way
    /// that excludes this one, and with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) on other stores and
    /// on platforms without locks on parts of files. The file system must be local.
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        self.options.sharing = sharing;
        self
    }

    /// Sets when all pages of a redb database are compared with their checksums: on request, the default, or also when it is opened.
    ///
    /// redb does not compare checksums when it reads, so a read can return damaged bytes. With [`Verification::WhenOpened`] a damaged database fails
    /// to open. Open it without this setting and with [`Access::ReadOnly`] to [list the damage](Database::verify) and to [copy the
    /// rest](crate::CopyTo::salvage).
    pub fn verification(mut self, verification: Verification) -> Self {
        self.options.verification = verification;
        self
    }

    /// Sets for how long a write or a transaction is retried after conflicts: at least once, unless it is zero. The default is 5 seconds.
    pub fn lock_timeout(mut self, lock_timeout: Duration) -> Self {
        self.lock_timeout = lock_timeout;
        self
    }

    /// Sets how long [`open`](Self::open) waits while another handle, usually of another process, has the database open. By default it fails without
    /// waiting with [`ErrorKind::Locked`](crate::ErrorKind::Locked).
    ///
    /// A service that restarts should wait a few seconds: the system releases the locks of a process that was killed only after it
    /// has freed the process's memory. A handle in this process counts as another one: drop it first.
    pub fn open_timeout(mut self, open_timeout: Duration) -> Self {
        self.open_timeout = open_timeout;
        self
    }

    /// Sets the maximum bytes of rows that one query or one write holds in memory: to sort, to deduplicate, to collect
    /// the documents to change. The nodes of its plan share the limit equally; rows beyond it are spilled to temporary
    /// files, with the same result. The default is 64 MiB for each query that runs.
    ///
    /// A few rows during a merge and buffers of about 100 KiB are not counted.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.options.memory = self.options.memory.limited(Some(bytes));
        self
    }

    /// Sets the folder for temporary files; the default is the operating system's. The files have no names and disappear
    /// with the query that needed them, however it ends. If the default folder is in memory (`tmpfs`), choose one on disk.
    pub fn temp_directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.options.memory = self.options.memory.in_directory(directory.as_ref());
        self
    }

    /// Sets the time from which a call is slow. A slow call is reported as an event of the crate `tracing`, with its plan, and to the
    /// closure of [`on_slow_query`](Self::on_slow_query). By default no call is reported; with a closure alone the threshold is
    /// 100 ms.
    ///
    /// Cost: a query whose rows are returned one by one copies its filter and plan for the report. Other calls only compare their time,
    /// which is measured for [`Database::metrics`] in any case.
    pub fn slow_query_threshold(mut self, threshold: Duration) -> Self {
        self.options.slow_queries.threshold(threshold);
        self
    }

    /// Calls `report` after each call that took as long as the [threshold](Self::slow_query_threshold) or longer: reads,
    /// writes and commits. A read has ended when its last row was read or its cursor is dropped. Only one in 32 calls of
    /// `find_by_id` is measured.
    ///
    /// `report` runs on the thread of the call, in `aio` on the thread that executed it, before the call returns. It holds no lock, but the
    /// transaction of a write is still open: a write to the same database is committed separately. To store reports, better send them to another
    /// thread, without waiting for it. Calls that `report` makes are not reported. If it panics, the call continues as if it had returned.
    ///
    /// ```
    /// use std::time::Duration;
    /// use slate_core::{Database, bson::doc};
    ///
    /// let db = Database::builder("memory:")
    ///     .slow_query_threshold(Duration::from_millis(20))
    ///     .on_slow_query(|slow| eprintln!("{slow}"))
    ///     .open()?;
    /// # db.collection::<bson::Document>("users").find(doc! { "age": 36 }).collect()?;
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn on_slow_query(mut self, report: impl Fn(&SlowQuery) + Send + Sync + 'static) -> Self {
        self.options.slow_queries.report(report);
        self
    }

    /// Opens the database.
    ///
    /// # Errors
    /// Fails as [`Database::open`] does; with [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if the folder for
    /// temporary files does not exist.
    pub fn open(self) -> Result<Database> {
        self.options.memory.check()?;
        let engine = call::open_within(self.open_timeout, &self.url, &self.options)?;
        Ok(Database::new(DatabaseHandle::new(engine, self.durability, self.lock_timeout)))
    }
}
