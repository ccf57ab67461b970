use ::rocksdb::{DBPinnableSlice, ReadOptions};
use self_cell::self_cell;

use super::{
    RocksSnapshot, error,
    handle::{Opened, Sorted, WritableDb},
    key::{self, Prefixed},
};
use crate::{Keyspace, Points, Result};

/// What was read last, where it lies: in RocksDB's cache or its buffers.
#[derive(Default)]
struct Pinned<'r> {
    last: Option<DBPinnableSlice<'r>>,
    loaded: Vec<Option<DBPinnableSlice<'r>>>,
}

impl Pinned<'_> {
    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.loaded.get(index)?.as_deref()
    }
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
    cell: Cell,
}

impl RocksPoints {
    pub(super) fn open(snapshot: RocksSnapshot, keyspace: Keyspace) -> Self {
        Self { key: Prefixed::new(keyspace), cell: Cell::new(snapshot, |_| Pinned::default()) }
    }
}

impl Points for RocksPoints {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let whole = self.key.with(key);
        self.cell.with_dependent_mut(|snapshot, pinned| {
            pinned.last = None;
            pinned.last = snapshot.get(whole)?;
            Ok(pinned.last.as_deref())
        })
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        let all = self.key.run_together(keys);
        self.cell.with_dependent_mut(|snapshot, pinned| {
            pinned.loaded.clear();
            pinned.loaded = snapshot.multi_get(key::apart(&all, keys), Sorted::of(keys))?;
            Ok(())
        })
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.cell.borrow_dependent().loaded(index)
    }
}

/// A reader of single keys of a [`RocksTransactionView`](super::RocksTransactionView).
pub struct RocksTransactionPoints<'t> {
    source: Source<'t>,
    /// Names the transaction's snapshot.
    options: ReadOptions,
    key: Prefixed,
    pinned: Pinned<'t>,
}

/// Where a transaction reads a keyspace.
pub(super) enum Source<'t> {
    /// One that it did not write to, which it can read past its writes: many keys in one round.
    Base(&'t Opened),
    Written(&'t ::rocksdb::Transaction<'t, WritableDb>),
}

impl<'t> RocksTransactionPoints<'t> {
    pub(super) fn new(source: Source<'t>, options: ReadOptions, keyspace: Keyspace) -> Self {
        Self { source, options, key: Prefixed::new(keyspace), pinned: Pinned::default() }
    }
}

impl Points for RocksTransactionPoints<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let whole = self.key.with(key);
        self.pinned.last = None;
        self.pinned.last = match self.source {
            Source::Base(opened) => opened.writable()?.get_pinned_opt(whole, &self.options),
            Source::Written(transaction) => transaction.get_pinned_opt(whole, &self.options),
        }
        .map_err(error::storage)?;
        Ok(self.pinned.last.as_deref())
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.pinned.loaded.clear();
        self.pinned.loaded = match self.source {
            Source::Base(opened) => {
                let all = self.key.run_together(keys);
                opened.multi_get(key::apart(&all, keys), Sorted::of(keys), &self.options)?
            }
            Source::Written(transaction) => {
                let read = |key: &&[u8]| transaction.get_pinned_opt(self.key.with(key), &self.options);
                keys.iter().map(read).collect::<Result<_, _>>().map_err(error::storage)?
            }
        };
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.pinned.loaded(index)
    }
}
