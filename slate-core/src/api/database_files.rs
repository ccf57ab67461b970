use std::{ops::ControlFlow, path::Path, time::Duration};

use slate_store::SizeDetail;

use super::index_build;
use crate::{CopyTarget, CopyTo, Database, DatabaseStats, Expire, Metrics, Result, StorageSize, Verify};

/// Operations on the whole database: its files, their space, backups, checks and metrics.
impl Database {
    /// Syncs every commit that has returned to the device, including those with [`Durability::Deferred`](crate::Durability::Deferred).
    ///
    /// On redb it also compacts the file if the file is a fifth longer than its data requires: as a whole if the data has at most
    /// 256 MiB and can be read within half a second, which usually takes a fraction of a second, after many updates a few
    /// seconds; in steps for half a second if it has more. Meanwhile no transaction can commit. Compactions take at most a twentieth of the time.
    ///
    /// # Errors
    /// Fails if the device fails.
    pub fn flush(&self) -> Result<()> {
        self.handle().limits().check()?;
        self.handle().engine()?.flush()
    }

    /// Writes a copy of the database, as of one commit, while writers continue. The copy is synced when this returns, and is
    /// opened with the same scheme: `redb:COPY`. The copy of a database in memory is loaded by `memory:COPY`.
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
    /// [`ErrorKind::Exists`](crate::ErrorKind::Exists) if `to` exists, which is left unchanged;
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if its folder does not exist. An incomplete copy is removed.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<()> {
        self.backup_while(to, |_, _| ControlFlow::Continue(()))
    }

    /// Writes a copy like [`backup`](Self::backup). `progress` is called repeatedly, with the number of copied entries and of all, and stops the copy
    /// by `Break`. On redb it is first called after the checksums of the file were verified; on RocksDB it is not called, because a copy there takes
    /// little time.
    ///
    /// # Errors
    /// Fails like `backup`; with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) after `Break`. The incomplete copy is removed.
    pub fn backup_while(
        &self,
        to: impl AsRef<Path>,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        self.handle().limits().check()?;
        self.handle().engine()?.backup(to.as_ref(), &mut progress)
    }

    /// Copies all collections, with their documents and indexes, and all views into another database on any store: a URL, or an open database. The
    /// target must be empty, unless [`CopyTo::existing`] allows collections. For a copy on the same kind of store, [`backup`](Database::backup) is
    /// faster.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let url = format!("redb:{}", folder.path().join("copy.slate").display());
    /// use bson::{RawDocumentBuf, doc, rawdoc};
    /// use slate_core::{Database, Index};
    ///
    /// let db = Database::open("memory:")?;
    /// let users = db.collection("users");
    /// users.insert_one(&rawdoc! { "_id": 1, "mail": "ada@example.org" })?;
    /// users.create_index(Index::on(doc! { "mail": 1 }).unique()).run()?;
    /// let copied = db.copy_to(&*url).progress(|at| println!("{}: {}/{}", at.collection, at.documents, at.total)).run()?;
    /// assert_eq!((copied.collections, copied.documents, copied.indexes), (1, 1, 1));
    /// assert!(Database::open(&url)?.collection::<RawDocumentBuf>("users").find_by_id(1)?.is_some());
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// Cost: a read of the database, a write of every document in batches of about 4 MiB, and a build of each index.
    pub fn copy_to(&self, target: impl Into<CopyTarget>) -> CopyTo<'static> {
        CopyTo::new(self.clone(), target.into())
    }

    /// Deletes the documents that have expired by the TTL indexes of all collections; see [`Index::expire_after`](crate::Index::expire_after). The
    /// library does not call this by itself; `slate serve` does each minute.
    ///
    /// Cost: reads and deletes the expired documents, and one lookup in each TTL index.
    pub fn expire(&self) -> Expire {
        Expire::new(self.handle().clone())
    }

    /// Finishes the index builds that a crash interrupted, one after the other; returns how many. Until then writers
    /// maintain these indexes, and queries do not use them. Creating such an index again finishes it, too, so a service
    /// that creates its indexes at startup does not need this.
    ///
    /// # Errors
    /// Fails as [`CreateIndex::run`](crate::CreateIndex::run) does; a unique index that documents violate is dropped.
    pub fn resume_index_builds(&self) -> Result<u64> {
        index_build::resume_all(self.handle())
    }

    /// Returns the space of deleted documents and dropped collections to the file system. Has no effect in memory. On redb it blocks all other
    /// operations, and no snapshot, cursor or transaction may be open; it fills sparse pages, moves pages to the front of the file and truncates it.
    /// Up to 256 MiB of data are compacted by `flush` and up to 1 GiB when the database is closed, if that saves a fifth; more data in steps, for a
    /// limited time. [`compact_while`](Self::compact_while) compacts in steps beside other operations.
    ///
    /// Cost: up to a read and a write of the whole database.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if an open snapshot, cursor or transaction prevents it; otherwise fails as a write
    /// does.
    pub fn compact(&self) -> Result<()> {
        self.handle().limits().check()?;
        self.handle().engine_to_write()?.compact(self.wait())
    }

    /// Compacts like [`compact`](Self::compact), in steps of some 4 MiB, between which other operations run. After each step `progress` is called
    /// with the bytes examined and about the bytes to examine in all (0 if not known yet), and stops the compaction by `Break`. Completed steps
    /// remain. As long as the database is open, the next call continues there; it starts over if more than a quarter of the data has changed, or the
    /// file was compacted in another way. Returns `Continue` once the whole file is compacted.
    ///
    /// On redb a step waits for the snapshots, cursors and transactions that were open when the step before it ended, up to the [lock
    /// timeout](crate::DatabaseBuilder::lock_timeout), and `progress` is called meanwhile, too. Commits that wait for the end of a step precede the
    /// next step. A file of up to 256 MiB without open snapshots, or one that is shared with readers, is compacted in one step. Steps leave about a
    /// sixtieth of the file free, and the space of writes during the compaction. Other stores compact in one step.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let url = format!("redb:{}", folder.path().join("shop.slate").display());
    /// use std::{
    ///     ops::ControlFlow,
    ///     time::{Duration, Instant},
    /// };
    ///
    /// # let db = slate_core::Database::open(&url)?;
    /// let end = Instant::now() + Duration::from_secs(10);
    /// let compacted = db.compact_while(|examined, total| {
    ///     println!("{examined} of {total} bytes");
    ///     if Instant::now() < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// })?;
    /// if compacted.is_break() {
    ///     println!("the rest follows tomorrow");
    /// }
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails like `compact`; after a step past the handle's deadline; at the first damaged page that a step reads; with
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if a snapshot, cursor or transaction prevents a step for longer than the lock timeout.
    /// Completed steps remain.
    pub fn compact_while(&self, mut progress: impl FnMut(u64, u64) -> ControlFlow<()>) -> Result<ControlFlow<()>> {
        let limits = self.handle().limits().begin();
        limits.check()?;
        let mut ended = Ok(());
        let compacted = self.handle().engine_to_write()?.compact_while(self.wait(), &mut |examined, total| {
            ended = limits.check();
            if ended.is_err() { ControlFlow::Break(()) } else { progress(examined, total) }
        })?;
        ended.map(|()| compacted)
    }

    /// Removes old versions of documents from the cluster of a `tikv:` database: those that only snapshots, cursors and transactions older than
    /// `keep` can read. These, of any process, then fail with code 239 (`SnapshotTooOld`). Without this call replaced and deleted documents use space
    /// forever, in all databases of the cluster. Call it regularly, in one process: every ten minutes for example, with a time longer than the
    /// longest query. `slate URL collect-garbage` does this once.
    ///
    /// First waits some minutes, until earlier commits have ended.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) on other stores, which do so by themselves, and for less than a minute; otherwise fails
    /// as a write does.
    pub fn collect_garbage(&self, keep: Duration) -> Result<()> {
        self.handle().limits().check()?;
        self.handle().engine_to_write()?.collect_garbage(keep)
    }

    /// Verifies every collection, as of one commit; see [`ReadCollection::verify`](crate::ReadCollection::verify).
    pub fn verify(&self) -> Verify<'static> {
        Verify::database(self.handle().clone())
    }

    /// Closes the database for all its handles: syncs every commit to the device and reports a failure, which dropping the
    /// last handle cannot. Later calls through any handle fail with [`ErrorKind::Closed`](crate::ErrorKind::Closed). Open
    /// transactions, snapshots and cursors continue; the store and its file lock are released when the last of them ends.
    /// Their [`Deferred`](crate::Durability::Deferred) commits are not synced. Closing again has no effect.
    ///
    /// # Errors
    /// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) if the device fails; the database is closed nevertheless.
    pub fn close(self) -> Result<()> {
        let Ok(engine) = self.handle().engine() else { return Ok(()) };
        let flushed = engine.flush();
        self.handle().close();
        // There may have been a commit since the first flush. If there was none, this costs nothing.
        flushed.and_then(|()| engine.flush())
    }

    /// Returns the space that the database uses, in bytes. Sizes that the store does not know are `None`.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn size(&self) -> Result<StorageSize> {
        self.handle().limits().check()?;
        self.handle().engine()?.size(SizeDetail::Known)
    }

    /// Measures the space that the database uses: the documents, the field tables and keys, each index, and, within the
    /// files, the free space and the store's overhead.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// db.collection("users").insert_one(&bson::rawdoc! { "_id": 1 })?;
    /// println!("{}", db.stats()?);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// Cost: reads the whole database.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn stats(&self) -> Result<DatabaseStats> {
        self.handle().stats(&self.begin_call(), SizeDetail::Measured(self.wait()))
    }

    /// Returns how long a call may wait for a store on a network: the lock timeout, or the time left until the deadline if that is shorter.
    fn wait(&self) -> Duration {
        let left = self.handle().limits().left();
        left.map_or(self.handle().lock_timeout(), |left| left.min(self.handle().lock_timeout()))
    }

    /// Returns counts of the database's work since it was opened, through all its handles: operations by kind with
    /// their times, rows, keys and documents examined, conflicts, retries, commits, spills. [`Metrics::prometheus`]
    /// writes them for Prometheus.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use slate_core::OperationKind;
    ///
    /// db.collection("users").insert_one(&bson::rawdoc! { "_id": 1 })?;
    /// let metrics = db.metrics();
    /// let inserts = metrics.operation(OperationKind::Insert);
    /// assert_eq!((inserts.calls, metrics.commits()), (1, 1));
    /// println!("median: {:?}", inserts.latency.quantile(0.5));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// Cost: a sum over the threads that have used the database. Counting adds a few nanoseconds to each call, and for
    /// calls other than point reads two readings of the clock.
    pub fn metrics(&self) -> Metrics {
        self.handle().metrics()
    }

    /// Returns the store's name: `"memory"`, `"redb"`, `"rocksdb"`, `"tikv"`.
    pub fn store(&self) -> &'static str {
        self.handle().store()
    }
}
