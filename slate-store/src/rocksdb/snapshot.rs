use std::sync::Arc;

use ::rocksdb::{DBPinnableSlice, ReadOptions, SnapshotWithThreadMode};
use self_cell::self_cell;

use super::{
    RocksCursor, RocksPoints, error,
    handle::{Handle, Opened, ReadOnlyDb, Sorted, WritableDb},
    iterate::Iterate,
};
use crate::{Bounds, Keyspace, Result, View};

enum Pin<'d> {
    Writable(SnapshotWithThreadMode<'d, WritableDb>),
    ReadOnly(SnapshotWithThreadMode<'d, ReadOnlyDb>),
}

self_cell!(
    struct Cell {
        owner: Arc<Opened>,
        #[covariant]
        dependent: Pin,
    }
);

/// One commit of a [`RocksStore`](super::RocksStore). While it lives, RocksDB keeps the versions that it sees.
#[derive(Clone)]
pub struct RocksSnapshot(Arc<Cell>);

impl RocksSnapshot {
    pub(super) fn open(opened: &Arc<Opened>) -> Self {
        let cell = Cell::new(Arc::clone(opened), |opened| match &opened.handle {
            Handle::Writable(db) => Pin::Writable(db.snapshot()),
            Handle::ReadOnly(db) => Pin::ReadOnly(db.snapshot()),
        });
        Self(Arc::new(cell))
    }

    pub(super) fn iterate(&self, options: ReadOptions) -> Iterate<'_> {
        match self.0.borrow_dependent() {
            Pin::Writable(snapshot) => Iterate::Writable(snapshot.raw_iterator_opt(options)),
            Pin::ReadOnly(snapshot) => Iterate::ReadOnly(snapshot.raw_iterator_opt(options)),
        }
    }

    pub(super) fn get(&self, whole: &[u8]) -> Result<Option<DBPinnableSlice<'_>>> {
        let value = match self.0.borrow_dependent() {
            Pin::Writable(snapshot) => snapshot.get_pinned(whole),
            Pin::ReadOnly(snapshot) => snapshot.get_pinned(whole),
        };
        value.map_err(error::storage)
    }

    pub(super) fn multi_get<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        sorted: Sorted,
    ) -> Result<Vec<Option<DBPinnableSlice<'_>>>> {
        let mut options = ReadOptions::default();
        match self.0.borrow_dependent() {
            Pin::Writable(snapshot) => options.set_snapshot(snapshot),
            Pin::ReadOnly(snapshot) => options.set_snapshot(snapshot),
        }
        self.0.borrow_owner().multi_get(keys, sorted, &options)
    }
}

impl View for RocksSnapshot {
    type Cursor = RocksCursor;
    type Points = RocksPoints;

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<RocksCursor> {
        Ok(RocksCursor::open(self.clone(), keyspace, bounds))
    }

    fn points(&self, keyspace: Keyspace) -> Result<RocksPoints> {
        Ok(RocksPoints::open(self.clone(), keyspace))
    }
}
