use std::{fs::File, path::PathBuf};

use ::rocksdb::{
    Cache, ColumnFamily, DBPinnableSlice, DEFAULT_COLUMN_FAMILY_NAME, OptimisticTransactionDB, ReadOptions,
    SingleThreaded,
};

use super::error;
use crate::{Context, Error, Result};

pub(super) type WritableDb = OptimisticTransactionDB<SingleThreaded>;
pub(super) type ReadOnlyDb = ::rocksdb::DBWithThreadMode<SingleThreaded>;

/// A database that is open, one way or the other.
pub(super) enum Handle {
    Writable(WritableDb),
    ReadOnly(ReadOnlyDb),
}

/// What is open, and where it lies.
pub(super) struct Opened {
    // The order matters when it is dropped: RocksDB must have closed the folder before the lock on it goes.
    pub(super) handle: Handle,
    pub(super) cache: Cache,
    pub(super) path: PathBuf,
    /// The mark, locked: by many who read, or by one who writes.
    pub(super) _lock: File,
}

impl Opened {
    pub(super) fn writable(&self) -> Result<&WritableDb> {
        match &self.handle {
            Handle::Writable(db) => Ok(db),
            Handle::ReadOnly(_) => Err(Error::ReadOnly(Box::new(Context::new("it was opened so").at(&self.path)))),
        }
    }

    /// What RocksDB says of itself in numbers; 0 where it does not know.
    pub(super) fn property(&self, name: &::rocksdb::properties::PropName) -> Result<u64> {
        let value = match &self.handle {
            Handle::Writable(db) => db.property_int_value(name),
            Handle::ReadOnly(db) => db.property_int_value(name),
        };
        Ok(value.map_err(error::storage)?.unwrap_or_default())
    }

    /// Reads many whole keys in one round.
    pub(super) fn multi_get<'h, 'k>(
        &'h self,
        keys: impl Iterator<Item = &'k [u8]>,
        sorted: Sorted,
        options: &ReadOptions,
    ) -> Result<Vec<Option<DBPinnableSlice<'h>>>> {
        let sorted = sorted == Sorted::Ascending;
        let values = match &self.handle {
            Handle::Writable(db) => {
                db.batched_multi_get_cf_opt(family(db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME))?, keys, sorted, options)
            }
            Handle::ReadOnly(db) => {
                db.batched_multi_get_cf_opt(family(db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME))?, keys, sorted, options)
            }
        };
        values.into_iter().collect::<Result<_, _>>().map_err(error::storage)
    }
}

/// In what order keys are given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sorted {
    Ascending,
    Unknown,
}

impl Sorted {
    pub(super) fn of(keys: &[&[u8]]) -> Self {
        if keys.is_sorted() { Self::Ascending } else { Self::Unknown }
    }
}

/// The one column family, which every database has.
pub(super) fn family(family: Option<&ColumnFamily>) -> Result<&ColumnFamily> {
    family.ok_or_else(|| Error::Io(Box::new(Context::new("RocksDB gave no handle of its default column family"))))
}
