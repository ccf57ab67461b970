use ::rocksdb::{DBPinnableSlice, ReadOptions};
use self_cell::self_cell;

use super::{
    RocksSnapshot,
    handle::Sorted,
    key::{self, Prefixed},
    writes::Written,
};
use crate::{Keyspace, Points, Result};

/// What was read last, where it lies: in RocksDB's cache or its buffers.
#[derive(Default)]
struct Pinned<'r> {
    last: Option<DBPinnableSlice<'r>>,
    loaded: Vec<Option<DBPinnableSlice<'r>>>,
}

self_cell!(
    struct Cell {
        owner: RocksSnapshot,
        #[covariant]
        dependent: Pinned,
    }
);

/// A reader of single keys of a [`RocksSnapshot`].
pub struct RocksPoints {
    key: Prefixed,
    /// Those of the snapshot: making them costs as much as a read.
    options: ReadOptions,
    cell: Cell,
}

impl RocksPoints {
    pub(super) fn open(snapshot: RocksSnapshot, keyspace: Keyspace) -> Self {
        let options = snapshot.options();
        Self { key: Prefixed::new(keyspace), options, cell: Cell::new(snapshot, |_| Pinned::default()) }
    }
}

impl Points for RocksPoints {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (whole, options) = (self.key.with(key), &self.options);
        self.cell.with_dependent_mut(|snapshot, pinned| {
            pinned.last = None;
            pinned.last = snapshot.get(whole, options)?;
            Ok(pinned.last.as_deref())
        })
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        let (all, options) = (self.key.run_together(keys), &self.options);
        self.cell.with_dependent_mut(|snapshot, pinned| {
            pinned.loaded.clear();
            pinned.loaded = snapshot.multi_get(key::apart(&all, keys), Sorted::of(keys), options)?;
            Ok(())
        })
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.cell.borrow_dependent().loaded.get(index)?.as_deref()
    }
}

/// A reader of single keys of a [`RocksTransactionView`](super::RocksTransactionView).
pub struct RocksTransactionPoints<'t> {
    base: RocksPoints,
    written: Option<&'t Written>,
    /// Of the keys loaded last, those that the transaction wrote, by their places; ascending.
    own: Vec<(usize, Option<&'t [u8]>)>,
}

impl<'t> RocksTransactionPoints<'t> {
    pub(super) fn new(base: RocksPoints, written: Option<&'t Written>) -> Self {
        Self { base, written, own: Vec::new() }
    }
}

impl Points for RocksTransactionPoints<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        match self.written.and_then(|written| written.get(key)) {
            Some(own) => Ok(own.as_deref()),
            None => self.base.get(key),
        }
    }

    /// In one round, those that the transaction wrote too: they are few as a rule.
    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.own.clear();
        self.base.load(keys)?;
        if let Some(written) = self.written {
            let own = |(place, key): (usize, &&[u8])| Some((place, written.get(*key)?.as_deref()));
            self.own.extend(keys.iter().enumerate().filter_map(own));
        }
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        match self.own.binary_search_by_key(&index, |(place, _)| *place) {
            Ok(at) => self.own.get(at).and_then(|(_, value)| *value),
            Err(_) => self.base.loaded(index),
        }
    }
}
