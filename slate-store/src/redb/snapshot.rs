use std::{
    collections::HashMap,
    hint::black_box,
    ops::{Bound, ControlFlow},
    sync::{Arc, Mutex, PoisonError},
};

use ::redb::{ReadOnlyTable, ReadTransaction, ReadableTableMetadata, TableError};

use super::{
    RedbCursor, RedbPointReader, error,
    open::{Handle, OpenedFile},
    table::{self, Bytes},
    version,
};
use crate::{Bounds, Keyspace, Result, Version, View, superseded::Superseded, view};

/// A keyspace's table; `None` if the keyspace was never written to or was dropped.
pub(super) type ReadTable = Option<Arc<ReadOnlyTable<Bytes, Bytes>>>;

/// A snapshot of a [`RedbStore`](super::RedbStore). While it is open, redb does not reuse the pages that it shows, and
/// the file grows with every write.
#[derive(Clone)]
pub struct RedbSnapshot(Arc<Inner>);

pub(super) struct Inner {
    transaction: ReadTransaction,
    /// The opened tables. Opening a table reads redb's catalog, so each is opened once.
    tables: Mutex<HashMap<Keyspace, ReadTable>>,
    version: Version,
    /// Keeps the database open: redb closes the file and releases its lock when its `Database` is dropped, even if read transactions are open.
    opened: Arc<OpenedFile>,
}

impl RedbSnapshot {
    pub(super) fn open(opened: &Arc<OpenedFile>) -> Result<Self> {
        Self::of(&opened.handle(), opened)
    }

    /// Opens a snapshot with a handle that the caller has locked.
    pub(super) fn of(handle: &Handle, opened: &Arc<OpenedFile>) -> Result<Self> {
        let (transaction, version) = opened.guarded(|| {
            let transaction = handle.begin_read()?;
            let version = version::read(&transaction)?;
            Ok((transaction, version))
        })?;
        Ok(Self(Arc::new(Inner { transaction, tables: Mutex::default(), version, opened: Arc::clone(opened) })))
    }

    /// Records that this snapshot no longer shows the last commit.
    pub(super) fn supersede(&self, superseded: &Superseded<Inner>) {
        superseded.add(&self.0, self.0.version, self.0.opened.transferred.written());
    }

    pub(super) fn transaction(&self) -> &ReadTransaction {
        &self.0.transaction
    }

    /// Calls redb; see [`guarded`](super::guarded::guarded).
    #[inline]
    pub(super) fn guarded<R>(&self, call: impl FnOnce() -> Result<R>) -> Result<R> {
        self.0.opened.guarded(call)
    }

    /// Calls `visitor` with the entries from the start of `bounds` up to the key `last`, until it breaks.
    fn scan_up_to<B>(
        &self,
        table: &ReadOnlyTable<Bytes, Bytes>,
        bounds: Bounds<'_>,
        last: &[u8],
        mut visitor: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        let within = (bounds.lower(), Bound::Included(last));
        let mut entries = self.guarded(|| table.range::<&[u8]>(within).map_err(error::storage))?;
        loop {
            let next = self.guarded(|| {
                let entry = entries.next().transpose().map_err(error::storage)?;
                if let Some((key, value)) = &entry {
                    // Panics here if the bytes are not within the page.
                    black_box((key.value(), value.value()));
                }
                Ok(entry)
            })?;
            let Some((key, value)) = next else { return Ok(None) };
            if let ControlFlow::Break(broken) = visitor(key.value(), value.value()) {
                return Ok(Some(broken));
            }
        }
    }

    pub(super) fn table(&self, keyspace: Keyspace) -> Result<ReadTable> {
        let mut tables = self.0.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(&keyspace) {
            return Ok(table.clone());
        }
        let name = table::name(keyspace);
        let table = self.guarded(|| match self.0.transaction.open_table(table::definition(&name)) {
            Ok(table) => Ok(Some(Arc::new(table))),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error::storage(error)),
        })?;
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
        Ok(RedbCursor::open(self.clone(), keyspace, self.table(keyspace)?, bounds))
    }

    fn point_reader(&self) -> Result<RedbPointReader> {
        Ok(RedbPointReader::open(self.clone()))
    }

    fn scan<B>(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        visitor: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        // If the end is the successor of a key, this key is the last of the range. redb finds that end in the page of this key. A cursor would read
        // the next page, which can be damaged.
        match (bounds.end.and_then(|end| end.strip_suffix(&[0])), self.table(keyspace)?) {
            (Some(last), Some(table)) if !bounds.is_empty() => self.scan_up_to(&table, bounds, last, visitor),
            _ => view::scan_steps(&mut self.cursor(keyspace, bounds)?, visitor),
        }
    }

    fn count(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        should_continue: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>> {
        match (self.table(keyspace)?, bounds) {
            (None, _) => Ok(Some(0)),
            (Some(table), Bounds::ALL) => self.guarded(|| table.len().map(Some).map_err(error::storage)),
            (Some(_), _) => view::count_steps(&mut self.cursor(keyspace, bounds)?, should_continue),
        }
    }

    /// Includes reads of other threads.
    fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        self.0.opened.with_bytes_read(read)
    }
}
