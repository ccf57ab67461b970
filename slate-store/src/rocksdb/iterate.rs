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

/// The bounds of a cursor: as they were given, and the keys of its seeks with the keyspace before them.
pub(super) struct Limits {
    bounds: OwnedBounds,
    key: Prefixed,
}

impl Limits {
    /// The limits, and what tells RocksDB of them: it skips files beyond the bounds, stops at them, and does not read ahead
    /// over them. It reads ahead by itself once a file is read in order, more each time.
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
                // RocksDB's seek takes the key itself too.
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

    // RocksDB's iterator stays where it is when it stands nowhere.

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

    /// Whether the last move failed because it went past more keys than its options allow that are deleted, or overwritten,
    /// or not yet there.
    pub(super) fn gave_up(&self) -> bool {
        !self.0.valid() && self.0.status().is_err_and(|error| error.kind() == ErrorKind::Incomplete)
    }

    #[inline]
    fn stands(&self) -> Result<bool> {
        // A place where there is an entry has no error to tell.
        if self.0.valid() {
            return Ok(true);
        }
        self.0.status().map_err(error::storage)?;
        Ok(false)
    }
}
