use std::borrow::Borrow;

use super::{Row, RowCache};
use crate::{Keyspace, moments::Moment};

/// One who reads single keys of a keyspace, as one snapshot sees it.
pub(crate) struct RowReader<C = RowCache> {
    cache: C,
    keyspace: Keyspace,
    moment: Moment,
    /// How many more keys it asks for in vain. One that goes through a whole index would find little, and leave behind what
    /// nobody asks for again.
    patience: u16,
}

/// Each key that is found makes up for one that is not.
pub(super) const PATIENCE: u16 = 512;

/// Who writes begins with less: most of what it reads it writes, and that is kept by nobody.
#[cfg(feature = "rocksdb")]
pub(super) const PATIENCE_OF_WRITER: u16 = 64;

/// What became of looking for a key.
pub(crate) enum Lookup<'k> {
    Found(Row),
    Missed(Missed<'k>),
}

/// A key that is not cached, or not as this snapshot sees it.
pub(crate) struct Missed<'k> {
    pub(crate) key: &'k [u8],
    /// `None` where nobody looked.
    hash: Option<u64>,
}

impl<C: Borrow<RowCache>> RowReader<C> {
    pub(crate) fn new(cache: C, keyspace: Keyspace, moment: Moment) -> Self {
        let patience = if cache.borrow().has_room() { PATIENCE } else { 0 };
        Self { cache, keyspace, moment, patience }
    }

    /// The same for a transaction that writes.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn of_writer(self) -> Self {
        Self { patience: self.patience.min(PATIENCE_OF_WRITER), ..self }
    }

    pub(crate) fn find<'k>(&mut self, key: &'k [u8]) -> Lookup<'k> {
        if self.patience == 0 {
            return Lookup::Missed(Missed { key, hash: None });
        }
        let cache = self.cache.borrow();
        let hash = cache.hash(self.keyspace, key);
        match cache.find(self.keyspace, key, hash, self.moment) {
            Some(row) => {
                self.patience = PATIENCE.min(self.patience + 1);
                Lookup::Found(row)
            }
            None => {
                self.patience -= 1;
                Lookup::Missed(Missed { key, hash: Some(hash) })
            }
        }
    }

    /// Keeps the value that the snapshot has under a key, where it is worth it.
    pub(crate) fn keep(&self, missed: &Missed<'_>, value: &[u8]) {
        if let Some(hash) = missed.hash {
            self.cache.borrow().keep(self.keyspace, missed.key, hash, self.moment, value);
        }
    }
}
