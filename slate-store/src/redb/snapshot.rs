use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use ::redb::{ReadOnlyTable, ReadTransaction, ReadableTableMetadata, TableError};

use super::{
    RedbCursor, RedbPoints, error,
    open::{Handle, Opened},
    table::{self, Bytes},
};
use crate::{Bounds, Estimate, Keyspace, Result, View, moments::Moment, view};

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
    moment: Moment,
    /// redb gives up the file, and the lock on it, when its `Database` drops, readers or not.
    opened: Arc<Opened>,
}

impl RedbSnapshot {
    pub(super) fn open(opened: &Arc<Opened>) -> Result<Self> {
        Self::of(&opened.handle(), opened)
    }

    /// The same, of a handle that the caller holds.
    pub(super) fn of(handle: &Handle, opened: &Arc<Opened>) -> Result<Self> {
        let moment = opened.kept.rows.moment();
        let transaction = handle.begin_read()?;
        Ok(Self(Arc::new(Inner { transaction, tables: Mutex::default(), moment, opened: Arc::clone(opened) })))
    }

    pub(super) fn transaction(&self) -> &ReadTransaction {
        &self.0.transaction
    }

    fn table(&self, keyspace: Keyspace) -> Result<ReadTable> {
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
    type Points = RedbPoints;

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<RedbCursor> {
        Ok(RedbCursor::open(self.clone(), self.table(keyspace)?, bounds))
    }

    fn points(&self, keyspace: Keyspace) -> Result<RedbPoints> {
        let rows = self.0.opened.kept.rows.reader(keyspace, self.0.moment);
        Ok(RedbPoints::open(self.clone(), self.table(keyspace)?, rows))
    }

    fn estimate(&self, keyspace: Keyspace, bounds: Bounds<'_>, cap: u64) -> Result<Estimate> {
        match (self.table(keyspace)?, bounds) {
            (Some(table), Bounds::ALL) => Ok(Estimate::capped(table.len().map_err(error::storage)?, cap)),
            _ => view::count(&mut self.cursor(keyspace, bounds)?, cap),
        }
    }

    fn count(&self, keyspace: Keyspace, bounds: Bounds<'_>, go_on: impl FnMut() -> bool) -> Result<Option<u64>> {
        match (self.table(keyspace)?, bounds) {
            (None, _) => Ok(Some(0)),
            (Some(table), Bounds::ALL) => table.len().map(Some).map_err(error::storage),
            (Some(_), _) => self.0.opened.kept.counts.count(self, self.0.moment, keyspace, bounds, go_on),
        }
    }
}
