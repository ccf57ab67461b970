use ::rocksdb::{DBPinnableSlice, ReadOptions};
use self_cell::self_cell;

use super::{RocksSnapshot, handle::Sorted, key, stepping_reader::SteppingReader};
use crate::{Keyspace, PointReader, Result, key_locality::KeyLocality};

/// The values of the last load.
#[derive(Default)]
struct Loaded<'r> {
    /// Empty if `stepping` has read the values.
    values: Vec<Option<DBPinnableSlice<'r>>>,
    stepping: Option<(Keyspace, SteppingReader<'r>)>,
    locality: KeyLocality,
}

impl<'r> Loaded<'r> {
    fn load(&mut self, from: &'r RocksSnapshot, options: &ReadOptions, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        if let [(keyspace, key)] = keys {
            self.values.push(from.read(&key::whole(*keyspace, key), options)?);
            return Ok(());
        }
        if self.walk(from, keys)? {
            return Ok(());
        }
        let all = key::concatenate(keys);
        self.values = from.multi_get(key::apart(&all, keys), Sorted::of(keys), options)?;
        Ok(())
    }

    /// Reads ascending keys of one keyspace by stepping, and returns `true`, if they are close together. After one load
    /// whose keys are far apart, no later load tries to step.
    fn walk(&mut self, from: &'r RocksSnapshot, keys: &[(Keyspace, &[u8])]) -> Result<bool> {
        let Some((keyspace, _)) = keys.first() else { return Ok(false) };
        let is_candidate = self.locality.allows_stepping(keys)
            && keys.iter().all(|(other, _)| other == keyspace)
            && Sorted::of(keys) == Sorted::Ascending;
        if !is_candidate {
            return Ok(false);
        }
        let keys: Vec<&[u8]> = keys.iter().map(|(_, key)| *key).collect();
        if self.stepping.as_ref().is_none_or(|(own, _)| own != keyspace) {
            self.stepping = SteppingReader::of(from, *keyspace, &keys)?.map(|reader| (*keyspace, reader));
        }
        let locality = match &mut self.stepping {
            Some((_, reader)) => reader.load(&keys)?,
            None => None,
        };
        self.locality = locality.unwrap_or(KeyLocality::Far);
        Ok(locality.is_some())
    }

    fn value(&self, index: usize) -> Option<&[u8]> {
        match self.values.get(index) {
            Some(value) => value.as_deref(),
            None => self.stepping.as_ref()?.1.loaded(index),
        }
    }

    /// Drops the loaded values.
    fn clear(&mut self) {
        self.values.clear();
        if let Some((_, reader)) = &mut self.stepping {
            reader.clear();
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
    /// The snapshot's read options, reused because creating them costs as much as a read.
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
