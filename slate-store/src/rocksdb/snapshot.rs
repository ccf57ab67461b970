use std::sync::Arc;

use ::rocksdb::{DBPinnableSlice, ReadOptions, SnapshotWithThreadMode};
use self_cell::self_cell;

use super::{
    RocksCursor, RocksPointReader, bytes_read, error,
    handle::{Db, OpenedFolder, Sorted},
    iterate::Iterate,
    key,
};
use crate::{Bounds, Keyspace, Result, Version, View};

type Pin<'d> = SnapshotWithThreadMode<'d, Db>;

self_cell!(
    struct Cell {
        owner: Arc<OpenedFolder>,
        #[covariant]
        dependent: Pin,
    }
);

/// One commit of a [`RocksStore`](super::RocksStore). While it exists, RocksDB retains the versions that it sees.
#[derive(Clone)]
pub struct RocksSnapshot(Arc<Cell>);

impl RocksSnapshot {
    pub(super) fn open(opened: &Arc<OpenedFolder>) -> Self {
        Self(Arc::new(Cell::new(Arc::clone(opened), |opened| opened.db.snapshot())))
    }

    /// Returns read options for reads of this snapshot.
    pub(super) fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_snapshot(self.pin());
        options
    }

    pub(super) fn iterate(&self, options: ReadOptions) -> Iterate<'_> {
        Iterate(self.pin().raw_iterator_opt(options))
    }

    fn pin(&self) -> &Pin<'_> {
        self.0.borrow_dependent()
    }

    /// Reads a whole key. `options` must be [the options](Self::options) of this snapshot.
    pub(super) fn read(&self, whole: &[u8], options: &ReadOptions) -> Result<Option<DBPinnableSlice<'_>>> {
        self.0.borrow_owner().db.get_pinned_opt(whole, options).map_err(error::storage)
    }

    /// Reads many whole keys. `options` must be [the options](Self::options) of this snapshot.
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
    type PointReader = RocksPointReader;

    fn version(&self) -> Version {
        Version(self.pin().sequence_number())
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<RocksCursor> {
        Ok(RocksCursor::open(self.clone(), keyspace, bounds))
    }

    fn point_reader(&self) -> Result<RocksPointReader> {
        Ok(RocksPointReader::open(self.clone()))
    }

    fn get<R>(&self, keyspace: Keyspace, key: &[u8], visitor: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.read(&key::whole(keyspace, key), &self.options())?.map(|value| visitor(&value)))
    }

    fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        bytes_read::with_bytes_read(read)
    }
}
