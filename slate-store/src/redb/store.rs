use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ::redb::StorageBackend;

use super::{
    Options, RedbSnapshot, RedbTransaction, backup, error,
    open::{self, Opened},
    table,
    writer::{Writer, Written},
};
use crate::{CacheReads, Capabilities, Durability, Keyspace, Result, Size, SizeDetail, Store, Version, files};

/// A database in a redb file. Clones share it. It is closed when the last clone, snapshot and transaction is dropped.
#[derive(Clone)]
pub struct RedbStore {
    writer: Arc<Writer>,
}

impl RedbStore {
    /// Opens the database at `path` or creates it, depending on `options`. Creation is atomic: if it fails or the
    /// process crashes, `path` has a complete database or nothing. After a crash, opening is quick unless
    /// [`Options::recovery`] selects otherwise.
    ///
    /// # Errors
    ///
    /// Each error names the path. [`Missing`](crate::Error::Missing): the directory does not exist, or with
    /// [`Access::OpenExisting`](crate::Access::OpenExisting) or [`ReadOnly`](crate::Access::ReadOnly) the file does
    /// not. [`WrongFormat`](crate::Error::WrongFormat): a directory, an empty file, not a redb file, or one that Slate
    /// did not create. [`NewerVersion`](crate::Error::NewerVersion): written by a later version of redb or Slate.
    /// [`Locked`](crate::Error::Locked): already open in this or another process, without
    /// [`Sharing::WithReaders`](super::Sharing::WithReaders) or for writing. [`Unsupported`](crate::Error::Unsupported): the
    /// platform cannot share files. [`ReadOnly`](crate::Error::ReadOnly):
    /// the medium or the permissions forbid writing, or a database opened read-only needs repair.
    /// [`Corrupt`](crate::Error::Corrupt) and [`Full`](crate::Error::Full) as documented there.
    pub fn open(path: &Path, options: &Options) -> Result<Self> {
        Self::over(open::at(path, options)?, options)
    }

    /// Opens or creates a database in storage that the caller supplies, for example to inject faults in tests. A
    /// database is created if the storage is empty. A crash during creation can leave storage that is neither empty nor
    /// a database.
    ///
    /// # Errors
    ///
    /// Fails as [`open`](Self::open) does, without a path. [`Unsupported`](crate::Error::Unsupported) with
    /// [`ReadOnly`](crate::Access::ReadOnly).
    pub fn open_over(storage: impl StorageBackend, options: &Options) -> Result<Self> {
        Self::over(open::over(storage, options)?, options)
    }

    fn over(opened: Opened, options: &Options) -> Result<Self> {
        Ok(Self { writer: Arc::new(Writer::new(opened, options.recovery)?) })
    }
}

impl Store for RedbStore {
    type Snapshot = RedbSnapshot;
    type Transaction = RedbTransaction;

    fn capabilities(&self) -> Capabilities {
        let exclusive = !self.writer.follows();
        Capabilities { name: "redb", exclusive, persistent: true, backup: true, ..Capabilities::MINIMAL }
    }

    fn snapshot(&self) -> Result<RedbSnapshot> {
        if self.writer.follows() {
            return RedbSnapshot::open(&self.writer.opened);
        }
        self.writer.latest.snapshot(&self.writer.opened)
    }

    fn begin(&self, wait: Duration) -> Result<RedbTransaction> {
        RedbTransaction::begin(&self.writer, wait)
    }

    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<Version> {
        let (permit, transaction) = self.writer.begin(wait)?;
        let existed = transaction.delete_table(table::definition(&table::name(keyspace))).map_err(error::storage)?;
        if !existed {
            return Ok(self.writer.version());
        }
        let dropped = self.writer.commit(permit, transaction, Durability::Deferred, Written::default());
        self.writer.space.dropped_keyspace();
        dropped
    }

    fn flush(&self) -> Result<()> {
        self.writer.flush()
    }

    fn backup(&self, to: &Path) -> Result<()> {
        backup::write(&self.snapshot()?, to)
    }

    /// redb does not move pages that an open snapshot may read.
    fn compact(&self, wait: Duration) -> Result<()> {
        self.writer.compact(wait)
    }

    fn cache_reads(&self) -> CacheReads {
        let file_bytes = Some(self.writer.opened.bytes_read.load(Ordering::Relaxed));
        CacheReads { file_bytes, ..CacheReads::default() }
    }

    /// Does not report `data`, because that would read every page. Storage supplied by the caller does not report its
    /// length.
    fn size(&self, detail: SizeDetail) -> Result<Size> {
        let Some(path) = &self.writer.opened.path else { return Ok(Size::default()) };
        let metadata = path.metadata().map_err(|error| files::failed(error, "while taking its size", path))?;
        let free = match detail {
            SizeDetail::Known => None,
            SizeDetail::Measured(wait) => Some(metadata.len().saturating_sub(self.writer.allocated(wait)?)),
        };
        Ok(Size { on_disk: Some(metadata.len()), free, ..Size::default() })
    }
}
