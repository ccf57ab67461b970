use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use ::redb::{ReadOnlyTable, ReadTransaction, ReadableTableMetadata, TableError};

use super::{
    RedbCursor, RedbPointReader, error,
    open::{Handle, Opened},
    table::{self, Bytes},
    version,
};
use crate::{Bounds, Keyspace, Result, Version, View, view};

/// A keyspace's table; `None` where nobody wrote to it yet.
pub(super) type ReadTable = Option<Arc<ReadOnlyTable<Bytes, Bytes>>>;

/// One commit of a [`RedbStore`](super::RedbStore). While it lives, the pages it sees are not used again, and the file
/// grows with what is written.
#[derive(Clone)]
pub struct RedbSnapshot(Arc<Inner>);

struct Inner {
    transaction: ReadTransaction,
    /// Opening a table reads redb's catalog; it is done once per keyspace.
    tables: Mutex<HashMap<Keyspace, ReadTable>>,
    version: Version,
    /// redb gives up the file, and the lock on it, when its `Database` drops, readers or not.
    _opened: Arc<Opened>,
}

impl RedbSnapshot {
    pub(super) fn open(opened: &Arc<Opened>) -> Result<Self> {
        Self::of(&opened.handle(), opened)
    }

    /// The same, of a handle that the caller holds.
    pub(super) fn of(handle: &Handle, opened: &Arc<Opened>) -> Result<Self> {
        let transaction = handle.begin_read()?;
        let version = version::read(&transaction)?;
        Ok(Self(Arc::new(Inner { transaction, tables: Mutex::default(), version, _opened: Arc::clone(opened) })))
    }

    pub(super) fn transaction(&self) -> &ReadTransaction {
        &self.0.transaction
    }

    pub(super) fn table(&self, keyspace: Keyspace) -> Result<ReadTable> {
        let mut tables = self.0.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(&keyspace) {
            return Ok(table.clone());
        }
        let table = match self.0.transaction.open_table(table::definition(&table::name(keyspace))) {
            Ok(table) => Some(Arc::new(table)),
            Err(TableError::TableDoesNotExist(_)) => None,
            Err(error) => return Err(error::storage(error)),
        };
        tables.insert(keyspace, table.clone());
        Ok(table)
    }
}

impl View for RedbSnapshot {
    type Cursor = RedbCursor;
    type PointReader = RedbPointReader;

    fn version(&self) -> Version {
        self.0.version
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<RedbCursor> {
        Ok(RedbCursor::open(self.clone(), self.table(keyspace)?, bounds))
    }

    fn point_reader(&self) -> Result<RedbPointReader> {
        Ok(RedbPointReader::open(self.clone()))
    }

    fn count(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        should_continue: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>> {
        match (self.table(keyspace)?, bounds) {
            (None, _) => Ok(Some(0)),
            (Some(table), Bounds::ALL) => table.len().map(Some).map_err(error::storage),
            (Some(_), _) => view::count_steps(&mut self.cursor(keyspace, bounds)?, should_continue),
        }
    }
}
