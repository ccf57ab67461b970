use std::{path::Path, sync::Arc, time::Duration};

use ::redb::StorageBackend;

use super::{
    Options, RedbSnapshot, RedbTransaction, backup, error,
    open::{self, Opened},
    table,
    writer::Writer,
};
use crate::{Capabilities, Durability, Keyspace, Result, Size, Store, Version, files};

/// A database in a redb file. Clones share it; it ends with the last of them and of what they opened.
#[derive(Clone)]
pub struct RedbStore {
    writer: Arc<Writer>,
}

impl RedbStore {
    /// Opens the database at `path`, or makes it, as `options` say. A database comes into being whole: whatever happens
    /// meanwhile, there is one at `path` or nothing. After a crash, opening reads the whole file unless
    /// [`Options::recovery`] had it otherwise.
    ///
    /// # Errors
    ///
    /// Each names the path. [`Missing`](crate::Error::Missing): its folder, or with
    /// [`Access::OpenExisting`](super::Access::OpenExisting) or [`ReadOnly`](super::Access::ReadOnly) the file, is not
    /// there. [`WrongFormat`](crate::Error::WrongFormat): it is a folder, empty, no redb file, or one that Slate did not
    /// make. [`NewerVersion`](crate::Error::NewerVersion): a later version of redb or of Slate made it.
    /// [`Locked`](crate::Error::Locked): it is open already, here or in another process. [`ReadOnly`](crate::Error::ReadOnly): its
    /// medium or its permissions allow no writing; or it was to be read only, and needs repair, which writes.
    /// [`Corrupt`](crate::Error::Corrupt) and [`Full`](crate::Error::Full), as they say.
    pub fn open(path: &Path, options: &Options) -> Result<Self> {
        Self::over(open::at(path, options)?, options)
    }

    /// Opens a database over storage of the caller's own, or makes one in it where it is empty. Tests inject faults that way.
    /// A crash in the middle of making one may leave storage that is neither empty nor a database.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), without a path. Opening it [`ReadOnly`](super::Access::ReadOnly) is
    /// [`Unsupported`](crate::Error::Unsupported).
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
        Capabilities { name: "redb", exclusive: true, persistent: true, backup: true, ..Capabilities::MINIMAL }
    }

    fn snapshot(&self) -> Result<RedbSnapshot> {
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
        self.writer.commit(permit, transaction, Durability::Deferred)
    }

    fn flush(&self) -> Result<()> {
        self.writer.flush()
    }

    fn backup(&self, to: &Path) -> Result<()> {
        backup::write(&self.snapshot()?, to)
    }

    /// redb moves no page that an open snapshot may read.
    fn compact(&self, wait: Duration) -> Result<()> {
        self.writer.compact(wait)
    }

    /// `data` would take reading every page, and storage of the caller's own does not tell its length.
    fn size(&self) -> Result<Size> {
        let on_disk = match &self.writer.opened.path {
            Some(path) => {
                let metadata = path.metadata().map_err(|error| files::failed(error, "while taking its size", path))?;
                Some(metadata.len())
            }
            None => None,
        };
        Ok(Size { on_disk, ..Size::default() })
    }
}
