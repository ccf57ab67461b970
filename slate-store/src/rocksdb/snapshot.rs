use std::sync::Arc;

use ::rocksdb::{DBPinnableSlice, ReadOptions, SnapshotWithThreadMode};
use self_cell::self_cell;

use super::{
    RocksCursor, RocksPoints, error,
    handle::{Db, Opened, Sorted},
    iterate::Iterate,
    key,
};
use crate::{
    Bounds, Keyspace, Result, View,
    moments::Moment,
    row_cache::{Lookup, RowReader},
};

struct Pin<'d> {
    moment: Moment,
    snapshot: SnapshotWithThreadMode<'d, Db>,
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
        let cell = Cell::new(Arc::clone(opened), |opened| {
            let moment = opened.kept.rows.moment();
            Pin { moment, snapshot: opened.db.snapshot() }
        });
        Self(Arc::new(cell))
    }

    /// What makes RocksDB's reads see this snapshot.
    pub(super) fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_snapshot(&self.pin().snapshot);
        options
    }

    pub(super) fn iterate(&self, options: ReadOptions) -> Iterate<'_> {
        Iterate(self.pin().snapshot.raw_iterator_opt(options))
    }

    /// One who reads what is cached of a keyspace.
    pub(super) fn rows(&self, keyspace: Keyspace) -> RowReader {
        self.0.borrow_owner().kept.rows.reader(keyspace, self.pin().moment)
    }

    fn pin(&self) -> &Pin<'_> {
        self.0.borrow_dependent()
    }

    /// `options` are [those](Self::options) of this snapshot.
    pub(super) fn read(&self, whole: &[u8], options: &ReadOptions) -> Result<Option<DBPinnableSlice<'_>>> {
        self.0.borrow_owner().db.get_pinned_opt(whole, options).map_err(error::storage)
    }

    /// `options` are [those](Self::options) of this snapshot.
    pub(super) fn multi_get<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        sorted: Sorted,
        options: &ReadOptions,
    ) -> Result<Vec<Option<DBPinnableSlice<'_>>>> {
        self.0.borrow_owner().multi_get(keys, sorted, options)
    }
}

impl View for RocksSnapshot {
    type Cursor = RocksCursor;
    type Points = RocksPoints;

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<RocksCursor> {
        Ok(RocksCursor::open(self.clone(), keyspace, bounds))
    }

    fn points(&self, keyspace: Keyspace) -> Result<RocksPoints> {
        Ok(RocksPoints::open(self.clone(), keyspace, self.rows(keyspace)))
    }

    fn get<R>(&self, keyspace: Keyspace, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let mut rows = RowReader::new(&self.0.borrow_owner().kept.rows, keyspace, self.pin().moment);
        match rows.find(key) {
            Lookup::Found(row) => Ok(Some(see(row.value()))),
            Lookup::Missed(missed) => {
                let value = self.read(&key::whole(keyspace, key), &self.options())?;
                Ok(value.map(|value| {
                    rows.keep(&missed, &value);
                    see(&value)
                }))
            }
        }
    }

    fn count(&self, keyspace: Keyspace, bounds: Bounds<'_>, go_on: impl FnMut() -> bool) -> Result<Option<u64>> {
        self.0.borrow_owner().kept.counts.count(self, self.pin().moment, keyspace, bounds, go_on)
    }
}
