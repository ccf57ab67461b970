//! One redb table per keyspace. One writer at a time; a read transaction is a snapshot.
//!
//! `ReadOnlyTable::{get, range}` return `'static` guards that do *not* keep the transaction's pages alive;
//! this file uses only `get_owned` and cursors borrowed from a table it owns.

use std::{
    collections::HashMap,
    ops::Bound,
    path::Path,
    rc::Rc,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ::redb::{
    AccessGuard, DatabaseError, OwnedAccessGuard, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    StorageBackend, Table, TableDefinition, TableError, WriteTransaction,
};
use self_cell::self_cell;

use crate::{
    Bounds, Capabilities, Context, Cursor, Durability, Edge, Error, Isolation, Keyspace, Points, Result, Size, Store,
    Transaction, View,
    bounds::{Heading, Landing, OwnedBounds},
};

type Bytes = &'static [u8];

fn name(keyspace: Keyspace) -> String {
    format!("k{:08x}", keyspace.0)
}

fn definition(name: &str) -> TableDefinition<'_, Bytes, Bytes> {
    TableDefinition::new(name)
}

/// How to open a database.
#[derive(Clone, Debug)]
pub struct Options {
    cache_bytes: usize,
    access: Access,
}

/// What may be done with the database, and whether it may be created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Read and write; creates the database where there is none.
    #[default]
    CreateOrOpen,
    /// Read and write a database that exists.
    OpenExisting,
    /// Read only.
    ReadOnly,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache_bytes: 256 << 20, access: Access::default() }
    }
}

impl Options {
    /// Sets the size of the cache of pages, in bytes.
    #[must_use]
    pub fn cache_bytes(self, cache_bytes: usize) -> Self {
        Self { cache_bytes, ..self }
    }

    /// Sets the access mode.
    #[must_use]
    pub fn access(self, access: Access) -> Self {
        Self { access, ..self }
    }
}

pub struct RedbStore {
    db: Arc<::redb::Database>,
    turn: Arc<Turn>,
}

impl RedbStore {
    pub fn open(path: &Path, options: &Options) -> Result<Self> {
        let db = ::redb::Database::builder().set_cache_size(options.cache_bytes).create(path).map_err(opening)?;
        Ok(Self::over(db))
    }

    /// Opens over storage of the caller's own, which is how tests inject faults.
    pub fn open_over(storage: impl StorageBackend, _: &Options) -> Result<Self> {
        Ok(Self::over(::redb::Database::builder().create_with_backend(storage).map_err(opening)?))
    }

    fn over(db: ::redb::Database) -> Self {
        Self { db: Arc::new(db), turn: Arc::default() }
    }
}

impl Store for RedbStore {
    type Snapshot = RedbSnapshot;
    type Transaction = RedbTransaction;

    fn snapshot(&self) -> Result<RedbSnapshot> {
        let transaction = self.db.begin_read().map_err(storage)?;
        Ok(RedbSnapshot(Arc::new(SnapshotInner { transaction, tables: Mutex::default(), _db: Arc::clone(&self.db) })))
    }

    fn begin(&self, _: Isolation, wait: Duration) -> Result<RedbTransaction> {
        let turn = Turn::take(&self.turn, wait)?;
        let inner = self.db.begin_write().map_err(storage)?;
        Ok(RedbTransaction { inner, _turn: turn, _db: Arc::clone(&self.db) })
    }

    fn flush(&self) -> Result<()> {
        // An empty `Immediate` commit makes every earlier `None` commit durable.
        self.begin(Isolation::Snapshot, Duration::MAX)?.commit(Durability::Sync)
    }

    fn name(&self) -> &'static str {
        "redb"
    }

    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<()> {
        let transaction = self.begin(Isolation::Snapshot, wait)?;
        transaction.inner.delete_table(definition(&name(keyspace))).map_err(storage)?;
        transaction.commit(Durability::Deferred)
    }

    fn size(&self) -> Result<Size> {
        Ok(Size::default())
    }

    fn backup(&self, to: &Path) -> Result<()> {
        // redb has no hot backup: copy a read transaction into a new file, table by table.
        let source = self.db.begin_read().map_err(storage)?;
        let target = ::redb::Database::create(to).map_err(opening)?;
        let write = target.begin_write().map_err(storage)?;
        for handle in source.list_tables().map_err(storage)? {
            let name = ::redb::TableHandle::name(&handle).to_owned();
            let from = source.open_table(definition(&name)).map_err(storage)?;
            let mut into = write.open_table(definition(&name)).map_err(storage)?;
            let mut at_end = into.lower_bound_mut(Bound::<Bytes>::Unbounded).map_err(storage)?;
            for entry in from.iter().map_err(storage)? {
                let (key, value) = entry.map_err(storage)?;
                at_end.insert_before(key.value(), value.value()).map_err(storage)?;
            }
            at_end.close().map_err(storage)?;
        }
        write.commit().map_err(storage)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { persistent: true, backup: true, ..Capabilities::MINIMAL }
    }
}

/// Whose turn it is to write. redb's own `begin_write` waits for ever; this wait ends in a typed error.
#[derive(Default)]
struct Turn {
    taken: Mutex<bool>,
    freed: Condvar,
}

struct HeldTurn(Arc<Turn>);

impl Turn {
    fn take(turn: &Arc<Self>, wait: Duration) -> Result<HeldTurn> {
        let taken = unpoisoned(turn.taken.lock());
        let (mut taken, _) =
            turn.freed.wait_timeout_while(taken, wait, |taken| *taken).unwrap_or_else(PoisonError::into_inner);
        if *taken {
            return Err(Error::Conflict(Box::new(Context::new(""))));
        }
        *taken = true;
        Ok(HeldTurn(Arc::clone(turn)))
    }
}

impl Drop for HeldTurn {
    fn drop(&mut self) {
        *unpoisoned(self.0.taken.lock()) = false;
        self.0.freed.notify_one();
    }
}

fn unpoisoned<T>(lock: std::sync::LockResult<MutexGuard<'_, T>>) -> MutexGuard<'_, T> {
    lock.unwrap_or_else(PoisonError::into_inner)
}

type ReadTable = Option<Arc<ReadOnlyTable<Bytes, Bytes>>>;

#[derive(Clone)]
pub struct RedbSnapshot(Arc<SnapshotInner>);

struct SnapshotInner {
    transaction: ReadTransaction,
    /// Opening a table reads the catalog tree; it is done once per keyspace.
    tables: Mutex<HashMap<Keyspace, ReadTable>>,
    /// redb gives up the file lock when `Database` drops, readers or not; another process may then write over them.
    _db: Arc<::redb::Database>,
}

impl RedbSnapshot {
    fn table(&self, keyspace: Keyspace) -> Result<ReadTable> {
        let mut tables = unpoisoned(self.0.tables.lock());
        if let Some(table) = tables.get(&keyspace) {
            return Ok(table.clone());
        }
        let table = match self.0.transaction.open_table(definition(&name(keyspace))) {
            Ok(table) => Some(Arc::new(table)),
            Err(TableError::TableDoesNotExist(_)) => None,
            Err(error) => return Err(storage(error)),
        };
        tables.insert(keyspace, table.clone());
        Ok(table)
    }
}

impl View for RedbSnapshot {
    type Cursor = RedbCursor;
    type Points = RedbPoints;

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<RedbCursor> {
        // The cursor's table keeps the read transaction; the snapshot beside it keeps the database.
        Ok(RedbCursor {
            _view: self.clone(),
            bounds: OwnedBounds::of(bounds),
            cell: ReadCell::new(self.table(keyspace)?, |_| Place::default()),
        })
    }

    fn points(&self, keyspace: Keyspace) -> Result<RedbPoints> {
        Ok(RedbPoints { table: self.table(keyspace)?, last: None, loaded: Vec::new(), _view: self.clone() })
    }
}

pub struct RedbPoints {
    table: ReadTable,
    last: Option<OwnedAccessGuard<Bytes>>,
    loaded: Vec<Option<OwnedAccessGuard<Bytes>>>,
    _view: RedbSnapshot,
}

impl Points for RedbPoints {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let Some(table) = &self.table else { return Ok(None) };
        self.last = table.get_owned(key).map_err(storage)?;
        Ok(self.last.as_ref().map(|guard| guard.value()))
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.loaded.clear();
        let Some(table) = &self.table else { return Ok(()) };
        for key in keys {
            self.loaded.push(table.get_owned(*key).map_err(storage)?);
        }
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        Some(self.loaded.get(index)?.as_ref()?.value())
    }
}

/// Where a redb cursor stands: redb's own points at a gap between entries; ours, on the entry it last crossed.
#[derive(Default)]
struct Place<'t> {
    gap: Option<::redb::Cursor<'t, Bytes, Bytes>>,
    heading: Option<Heading>,
    entry: Option<(AccessGuard<'t, Bytes>, AccessGuard<'t, Bytes>)>,
}

impl<'t> Place<'t> {
    fn seek(
        &mut self,
        table: Option<&'t impl ReadableTable<Bytes, Bytes>>,
        bounds: &OwnedBounds,
        edge: Edge<'_>,
    ) -> Result<bool> {
        let Some(table) = table else { return Ok(false) };
        let (gap, heading) = match bounds.confine(edge) {
            Landing::Up(from) => (table.lower_bound(from), Heading::Forward),
            Landing::Down(from) => (table.upper_bound(from), Heading::Back),
        };
        self.gap = Some(gap.map_err(storage)?);
        self.cross(bounds, heading)
    }

    fn step(&mut self, bounds: &OwnedBounds, heading: Heading) -> Result<bool> {
        if self.entry.is_none() {
            return Ok(false);
        }
        if self.heading != Some(heading) {
            self.cross(bounds, heading)?; // Back over the entry it stands on.
        }
        self.cross(bounds, heading)
    }

    fn cross(&mut self, bounds: &OwnedBounds, heading: Heading) -> Result<bool> {
        let Some(gap) = &mut self.gap else { return Ok(false) };
        let crossed = match heading {
            Heading::Forward => gap.next(),
            Heading::Back => gap.prev(),
        };
        self.heading = Some(heading);
        self.entry = crossed.map_err(storage)?.filter(|(key, _)| bounds.as_bounds().contains(key.value()));
        Ok(self.entry.is_some())
    }

    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.entry.as_ref().map(|(key, value)| (key.value(), value.value()))
    }
}

self_cell!(
    struct ReadCell {
        owner: ReadTable,
        #[not_covariant]
        dependent: Place,
    }
);

pub struct RedbCursor {
    bounds: OwnedBounds,
    cell: ReadCell,
    _view: RedbSnapshot,
}

impl Cursor for RedbCursor {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        let bounds = &self.bounds;
        self.cell.with_dependent_mut(|table, place| place.seek(table.as_deref(), bounds, edge))
    }

    fn step_forward(&mut self) -> Result<bool> {
        let bounds = &self.bounds;
        self.cell.with_dependent_mut(|_, place| place.step(bounds, Heading::Forward))
    }

    fn step_back(&mut self) -> Result<bool> {
        let bounds = &self.bounds;
        self.cell.with_dependent_mut(|_, place| place.step(bounds, Heading::Back))
    }

    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.cell.with_dependent(|_, place| place.current())
    }
}

pub struct RedbTransaction {
    // Before the turn: it must end before the next writer is let in.
    inner: WriteTransaction,
    _turn: HeldTurn,
    _db: Arc<::redb::Database>,
}

type OpenTable<'t> = Rc<Table<'t, Bytes, Bytes>>;

/// The tables a view has opened for reading. They close with it, and a write cannot begin before that.
#[derive(Clone)]
pub struct RedbTransactionView<'t>(Rc<OpenTables<'t>>);

struct OpenTables<'t> {
    transaction: &'t WriteTransaction,
    tables: std::cell::RefCell<HashMap<Keyspace, OpenTable<'t>>>,
}

impl<'t> RedbTransactionView<'t> {
    fn table(&self, keyspace: Keyspace) -> Result<OpenTable<'t>> {
        if let Some(table) = self.0.tables.borrow().get(&keyspace) {
            return Ok(Rc::clone(table));
        }
        let table = Rc::new(self.0.transaction.open_table(definition(&name(keyspace))).map_err(storage)?);
        self.0.tables.borrow_mut().insert(keyspace, Rc::clone(&table));
        Ok(table)
    }
}

impl<'t> View for RedbTransactionView<'t> {
    type Cursor = RedbTransactionCursor<'t>;
    type Points = RedbTransactionPoints<'t>;

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Self::Cursor> {
        let cell = WriteCell::new(self.table(keyspace)?, |_| Place::default());
        Ok(RedbTransactionCursor { bounds: OwnedBounds::of(bounds), cell })
    }

    fn points(&self, keyspace: Keyspace) -> Result<Self::Points> {
        Ok(RedbTransactionPoints(PointsCell::new(self.table(keyspace)?, |_| Found::default())))
    }
}

self_cell!(
    struct WriteCell<'t> {
        owner: OpenTable<'t>,
        #[not_covariant]
        dependent: Place,
    }
);

pub struct RedbTransactionCursor<'t> {
    bounds: OwnedBounds,
    cell: WriteCell<'t>,
}

impl Cursor for RedbTransactionCursor<'_> {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        let bounds = &self.bounds;
        self.cell.with_dependent_mut(|table, place| place.seek(Some(&**table), bounds, edge))
    }

    fn step_forward(&mut self) -> Result<bool> {
        let bounds = &self.bounds;
        self.cell.with_dependent_mut(|_, place| place.step(bounds, Heading::Forward))
    }

    fn step_back(&mut self) -> Result<bool> {
        let bounds = &self.bounds;
        self.cell.with_dependent_mut(|_, place| place.step(bounds, Heading::Back))
    }

    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.cell.with_dependent(|_, place| place.current())
    }
}

#[derive(Default)]
struct Found<'t> {
    last: Option<AccessGuard<'t, Bytes>>,
    loaded: Vec<Option<AccessGuard<'t, Bytes>>>,
}

self_cell!(
    struct PointsCell<'t> {
        owner: OpenTable<'t>,
        #[not_covariant]
        dependent: Found,
    }
);

pub struct RedbTransactionPoints<'t>(PointsCell<'t>);

impl Points for RedbTransactionPoints<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.0.with_dependent_mut(|table, found| {
            found.last = table.get(key).map_err(storage)?;
            Ok(found.last.as_ref().map(|guard| guard.value()))
        })
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.0.with_dependent_mut(|table, found| {
            found.loaded.clear();
            for key in keys {
                found.loaded.push(table.get(*key).map_err(storage)?);
            }
            Ok(())
        })
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.0.with_dependent(|_, found| Some(found.loaded.get(index)?.as_ref()?.value()))
    }
}

impl Transaction for RedbTransaction {
    type View<'t> = RedbTransactionView<'t>;

    fn view(&self) -> RedbTransactionView<'_> {
        RedbTransactionView(Rc::new(OpenTables { transaction: &self.inner, tables: Default::default() }))
    }

    fn put(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        crate::limits::check(key, value)?;
        let mut table = self.inner.open_table(definition(&name(keyspace))).map_err(storage)?;
        table.insert(key, value).map_err(storage)?;
        Ok(())
    }

    fn delete(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        let mut table = self.inner.open_table(definition(&name(keyspace))).map_err(storage)?;
        table.remove(key).map_err(storage)?;
        Ok(())
    }

    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        let name = name(keyspace);
        if bounds.start.is_none() && bounds.end.is_none() {
            self.inner.delete_table(definition(&name)).map_err(storage)?;
            return Ok(());
        }
        let bounds = OwnedBounds::of(bounds);
        let mut table = self.inner.open_table(definition(&name)).map_err(storage)?;
        table.retain_in::<&[u8], _>((bounds.lower(), bounds.upper()), |_, _| false).map_err(storage)
    }

    fn guard(&mut self, _: Keyspace, _: &[u8]) -> Result<()> {
        Ok(()) // One writer at a time: every order is serial.
    }

    fn commit(self, durability: Durability) -> Result<()> {
        let Self { mut inner, _turn, _db } = self;
        let level = match durability {
            Durability::Sync => ::redb::Durability::Immediate,
            Durability::Deferred => ::redb::Durability::None,
        };
        inner.set_durability(level).map_err(storage)?;
        inner.commit().map_err(storage)
    }
}

fn opening(error: DatabaseError) -> Error {
    let because = |error: DatabaseError| Box::new(Context::new("").because(error));
    match error {
        DatabaseError::DatabaseAlreadyOpen => Error::Locked(because(error)),
        DatabaseError::UpgradeRequired(_) => Error::WrongFormat(because(error)),
        DatabaseError::Storage(::redb::StorageError::Io(ref io)) if io.kind() == std::io::ErrorKind::InvalidData => {
            Error::WrongFormat(because(error))
        }
        other => storage(other),
    }
}

fn storage(error: impl Into<::redb::Error>) -> Error {
    let error = error.into();
    let because = |error: ::redb::Error| Box::new(Context::new("").because(error));
    match error {
        ::redb::Error::Corrupted(_) => Error::Corrupt(because(error)),
        other => Error::Io(because(other)),
    }
}
