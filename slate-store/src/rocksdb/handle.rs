use std::{fs::File, path::PathBuf};

use ::rocksdb::{
    Cache, ColumnFamily, DBPinnableSlice, DBWithThreadMode, DEFAULT_COLUMN_FAMILY_NAME, ReadOptions, SingleThreaded,
};

use super::error;
use crate::{Access, Context, Error, Keyspace, Result, Version};

pub(super) type Db = DBWithThreadMode<SingleThreaded>;

/// An open database and its path.
pub(super) struct OpenedFolder {
    // The fields are dropped in this order: RocksDB must close the folder before the lock is released.
    pub(super) db: Db,
    pub(super) access: Access,
    pub(super) cache: Cache,
    pub(super) path: PathBuf,
    /// The locked file of the layout version: locked shared by readers, exclusively by a writer.
    pub(super) _lock: File,
}

impl OpenedFolder {
    /// Returns the database, unless it was opened read-only.
    pub(super) fn writable(&self) -> Result<&Db> {
        match self.access {
            Access::CreateOrOpen | Access::Open => Ok(&self.db),
            Access::ReadOnly => Err(Error::ReadOnly(Box::new(Context::new("it was opened read-only").at(&self.path)))),
        }
    }

    /// Returns a numeric property of RocksDB; 0 if RocksDB does not have it.
    pub(super) fn property(&self, name: &::rocksdb::properties::PropName) -> Result<u64> {
        Ok(self.db.property_int_value(name).map_err(error::storage)?.unwrap_or_default())
    }

    /// Returns the version of the oldest open snapshot; `None` if none is open.
    pub(super) fn oldest_snapshot(&self) -> Option<Version> {
        // RocksDB returns 0 without a snapshot.
        let number = self.db.property_int_value(c"rocksdb.oldest-snapshot-sequence").ok().flatten();
        number.filter(|number| *number > 0).map(Version)
    }

    /// Returns the only column family.
    pub(super) fn family(&self) -> Result<&ColumnFamily> {
        let missing = || Error::Io(Box::new(Context::new("RocksDB returned no handle for its default column family")));
        self.db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME).ok_or_else(missing)
    }

    /// Reads many whole keys in one call.
    pub(super) fn multi_get<'h, 'k>(
        &'h self,
        keys: impl Iterator<Item = &'k [u8]>,
        sorted: Sorted,
        options: &ReadOptions,
    ) -> Result<Vec<Option<DBPinnableSlice<'h>>>> {
        let sorted = sorted == Sorted::Ascending;
        let values = self.db.batched_multi_get_cf_opt(self.family()?, keys, sorted, options);
        values.into_iter().collect::<Result<_, _>>().map_err(error::storage)
    }
}

/// Whether keys are in ascending order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sorted {
    Ascending,
    Unknown,
}

impl Sorted {
    pub(super) fn of(keys: &[(Keyspace, &[u8])]) -> Self {
        if keys.is_sorted() { Self::Ascending } else { Self::Unknown }
    }
}
