use ::redb::{AccessGuard, OwnedAccessGuard, ReadableTable, Table};

use super::{RedbSnapshot, error, snapshot::ReadTable, table::Bytes};
use crate::{Points, Result};

/// A reader of single keys of a [`RedbSnapshot`].
pub struct RedbPoints {
    table: ReadTable,
    // `get_owned`, not `get`: the guards of the latter do not keep their pages alive.
    last: Option<OwnedAccessGuard<Bytes>>,
    loaded: Vec<Option<OwnedAccessGuard<Bytes>>>,
    _snapshot: RedbSnapshot,
}

impl RedbPoints {
    pub(super) fn open(snapshot: RedbSnapshot, table: ReadTable) -> Self {
        Self { table, last: None, loaded: Vec::new(), _snapshot: snapshot }
    }
}

impl Points for RedbPoints {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.last = None;
        if let Some(table) = &self.table {
            self.last = table.get_owned(key).map_err(error::storage)?;
        }
        Ok(self.last.as_ref().map(OwnedAccessGuard::value))
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.loaded.clear();
        let Some(table) = &self.table else { return Ok(()) };
        collect(&mut self.loaded, keys, |key| table.get_owned(key).map_err(error::storage))
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        Some(self.loaded.get(index)?.as_ref()?.value())
    }
}

/// A reader of single keys of a [`RedbTransactionView`](super::RedbTransactionView).
pub struct RedbTransactionPoints<'t>(Within<'t>);

enum Within<'t> {
    /// Of a keyspace that the transaction did not write to.
    Base(RedbPoints),
    Written {
        table: &'t Table<'t, Bytes, Bytes>,
        last: Option<AccessGuard<'t, Bytes>>,
        loaded: Vec<Option<AccessGuard<'t, Bytes>>>,
    },
}

impl<'t> RedbTransactionPoints<'t> {
    pub(super) fn base(points: RedbPoints) -> Self {
        Self(Within::Base(points))
    }

    pub(super) fn written(table: &'t Table<'t, Bytes, Bytes>) -> Self {
        Self(Within::Written { table, last: None, loaded: Vec::new() })
    }
}

impl Points for RedbTransactionPoints<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        match &mut self.0 {
            Within::Base(points) => points.get(key),
            Within::Written { table, last, .. } => {
                *last = None;
                *last = table.get(key).map_err(error::storage)?;
                Ok(last.as_ref().map(AccessGuard::value))
            }
        }
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        match &mut self.0 {
            Within::Base(points) => points.load(keys),
            Within::Written { table, loaded, .. } => {
                collect(loaded, keys, |key| table.get(key).map_err(error::storage))
            }
        }
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        match &self.0 {
            Within::Base(points) => points.loaded(index),
            Within::Written { loaded, .. } => Some(loaded.get(index)?.as_ref()?.value()),
        }
    }
}

/// Reads each key into `loaded`; on an error nothing stays loaded.
fn collect<T>(loaded: &mut Vec<T>, keys: &[&[u8]], mut read: impl FnMut(&[u8]) -> Result<T>) -> Result<()> {
    loaded.clear();
    loaded.reserve(keys.len());
    for key in keys {
        match read(key) {
            Ok(value) => loaded.push(value),
            Err(error) => {
                loaded.clear();
                return Err(error);
            }
        }
    }
    Ok(())
}
