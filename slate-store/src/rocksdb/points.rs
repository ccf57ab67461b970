use ::rocksdb::{DBPinnableSlice, ReadOptions};
use self_cell::self_cell;

use super::{
    RocksSnapshot, RocksTransaction,
    handle::Sorted,
    key,
    neighbours::{Distance, Neighbours},
};
use crate::{Keyspace, PointReader, Result};

/// The values of the last load.
#[derive(Default)]
struct Loaded<'r> {
    /// Empty if the cursor of `neighbours` read them.
    values: Vec<Option<DBPinnableSlice<'r>>>,
    neighbours: Option<(Keyspace, Neighbours<'r>)>,
    /// `None` until a load of many keys.
    distance: Option<Distance>,
}

/// Fewer keys are looked up at once: finding out how close they are costs as much as a few lookups.
const MIN_WALKED: usize = 8;

impl<'r> Loaded<'r> {
    fn load(&mut self, from: &'r RocksSnapshot, options: &ReadOptions, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        if self.walk(from, keys)? {
            return Ok(());
        }
        let all = key::concatenate(keys);
        self.values = from.multi_get(key::apart(&all, keys), Sorted::of(keys), options)?;
        Ok(())
    }

    /// Reads keys that are close together by stepping; whether they were. Once they were not, no other load tries.
    fn walk(&mut self, from: &'r RocksSnapshot, keys: &[(Keyspace, &[u8])]) -> Result<bool> {
        let Some((keyspace, _)) = keys.first() else { return Ok(false) };
        let is_candidate = keys.len() >= MIN_WALKED
            && self.distance != Some(Distance::Far)
            && keys.iter().all(|(other, _)| other == keyspace)
            && Sorted::of(keys) == Sorted::Ascending;
        if !is_candidate {
            return Ok(false);
        }
        let keys: Vec<&[u8]> = keys.iter().map(|(_, key)| *key).collect();
        if self.neighbours.as_ref().is_none_or(|(own, _)| own != keyspace) {
            self.neighbours = Neighbours::of(from, *keyspace, &keys)?.map(|neighbours| (*keyspace, neighbours));
        }
        let distance = match &mut self.neighbours {
            Some((_, neighbours)) => neighbours.load(&keys)?,
            None => None,
        };
        self.distance = Some(distance.unwrap_or(Distance::Far));
        Ok(distance.is_some())
    }

    fn value(&self, index: usize) -> Option<&[u8]> {
        match self.values.get(index) {
            Some(value) => value.as_deref(),
            None => self.neighbours.as_ref()?.1.loaded(index),
        }
    }

    /// Forgets what was loaded.
    fn clear(&mut self) {
        self.values.clear();
        if let Some((_, neighbours)) = &mut self.neighbours {
            neighbours.clear();
        }
    }
}

self_cell!(
    struct Cell {
        owner: RocksSnapshot,
        #[covariant]
        dependent: Loaded,
    }
);

/// A reader of single keys of a [`RocksSnapshot`].
pub struct RocksPointReader {
    /// Those of the snapshot: making them costs as much as a read.
    options: ReadOptions,
    cell: Cell,
}

impl RocksPointReader {
    pub(super) fn open(snapshot: RocksSnapshot) -> Self {
        let options = snapshot.options();
        Self { options, cell: Cell::new(snapshot, |_| Loaded::default()) }
    }
}

impl PointReader for RocksPointReader {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        let options = &self.options;
        self.cell.with_dependent_mut(|snapshot, loaded| {
            loaded.clear();
            let all = loaded.load(snapshot, options, keys);
            if all.is_err() {
                loaded.clear();
            }
            all
        })
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.cell.borrow_dependent().value(index)
    }
}

/// A reader of single keys of a [`RocksTransactionView`](super::RocksTransactionView).
pub struct RocksTransactionPointReader<'t> {
    base: RocksPointReader,
    transaction: &'t RocksTransaction,
    /// Of the keys loaded last, those that the transaction wrote, with their indexes; ascending.
    own: Vec<(usize, Option<&'t [u8]>)>,
}

impl<'t> RocksTransactionPointReader<'t> {
    pub(super) fn open(transaction: &'t RocksTransaction) -> Self {
        let base = RocksPointReader::open(transaction.snapshot().clone());
        Self { base, transaction, own: Vec::new() }
    }
}

impl PointReader for RocksTransactionPointReader<'_> {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        self.own.clear();
        self.base.load(keys)?;
        let transaction = self.transaction;
        let own = |(index, (keyspace, key)): (usize, &(Keyspace, &[u8]))| {
            Some((index, transaction.written(*keyspace)?.get(key)?))
        };
        self.own.extend(keys.iter().enumerate().filter_map(own));
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        match self.own.binary_search_by_key(&index, |(index, _)| *index) {
            Ok(at) => self.own.get(at).and_then(|(_, value)| *value),
            Err(_) => self.base.loaded(index),
        }
    }
}
