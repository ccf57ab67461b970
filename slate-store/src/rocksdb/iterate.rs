use std::ops::Bound;

use ::rocksdb::{DBRawIteratorWithThreadMode as RawIterator, ErrorKind, ReadOptions};

use super::{
    error,
    handle::Db,
    key::{self, Prefixed},
};
use crate::{
    Bounds, Edge, Keyspace, Result,
    bounds::{Landing, OwnedBounds},
};

/// RocksDB's iterator over whole keys.
pub(super) struct Iterate<'r>(pub(super) RawIterator<'r, Db>);

/// The bounds of a cursor, and a buffer for the whole keys of its seeks.
pub(super) struct Limits {
    bounds: OwnedBounds,
    key: Prefixed,
}

impl Limits {
    /// Returns the limits and read options for them: RocksDB skips files outside of the bounds, and neither steps nor reads ahead beyond them. It
    /// reads ahead by itself when a file is read in order.
    pub(super) fn new(keyspace: Keyspace, bounds: Bounds<'_>) -> (Self, ReadOptions) {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(key::start(keyspace, bounds));
        if let Some(end) = key::end(keyspace, bounds) {
            options.set_iterate_upper_bound(end);
        }
        (Self { bounds: OwnedBounds::of(bounds), key: Prefixed::new(keyspace) }, options)
    }
}

impl Iterate<'_> {
    pub(super) fn seek(&mut self, limits: &mut Limits, edge: Edge<'_>) -> Result<bool> {
        let (key, iterator) = (&mut limits.key, &mut self.0);
        match limits.bounds.bounds().confine(edge) {
            Landing::Up(Bound::Included(from) | Bound::Excluded(from)) => iterator.seek(key.with(from)),
            Landing::Up(Bound::Unbounded) => iterator.seek(key.first()),
            Landing::Down(Bound::Excluded(from) | Bound::Included(from)) => {
                // RocksDB's seek includes the key itself, which must be excluded.
                let from = key.with(from);
                iterator.seek_for_prev(from);
                if iterator.key() == Some(from) {
                    iterator.prev();
                }
            }
            Landing::Down(Bound::Unbounded) => iterator.seek_to_last(),
        }
        self.stands()
    }

    // A step of RocksDB's iterator without a current entry does nothing.

    #[inline]
    pub(super) fn step_forward(&mut self) -> Result<bool> {
        self.0.next();
        self.stands()
    }

    #[inline]
    pub(super) fn step_back(&mut self) -> Result<bool> {
        self.0.prev();
        self.stands()
    }

    #[inline]
    pub(super) fn current(&self) -> Option<(&[u8], &[u8])> {
        let (key, value) = self.0.item()?;
        Some((key::bare(key), value))
    }

    /// Returns whether the last move failed because it passed more invisible keys (deleted, overwritten or newer than the
    /// snapshot) than its options allow.
    pub(super) fn gave_up(&self) -> bool {
        !self.0.valid() && self.0.status().is_err_and(|error| error.kind() == ErrorKind::Incomplete)
    }

    #[inline]
    fn stands(&self) -> Result<bool> {
        // An iterator with a current entry has no error.
        if self.0.valid() {
            return Ok(true);
        }
        self.0.status().map_err(error::storage)?;
        Ok(false)
    }
}
