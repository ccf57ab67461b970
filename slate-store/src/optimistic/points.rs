use std::sync::Arc;

use super::write_set::WriteSet;
use crate::{Keyspace, PointReader, Result};

/// A reader of single keys of an [`OptimisticView`](super::OptimisticView).
pub struct OptimisticPointReader<'t, R> {
    base: R,
    writes: &'t WriteSet,
    /// The keys of the last load that the transaction itself has written, with their values: each key's position in the load, ascending.
    own: Vec<(usize, Option<&'t [u8]>)>,
}

impl<'t, R> OptimisticPointReader<'t, R> {
    pub(super) fn new(base: R, writes: &'t WriteSet) -> Self {
        Self { base, writes, own: Vec::new() }
    }

    fn own(&self, index: usize) -> Option<Option<&'t [u8]>> {
        let at = self.own.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        self.own.get(at).map(|(_, value)| *value)
    }
}

impl<R: PointReader> PointReader for OptimisticPointReader<'_, R> {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        self.own.clear();
        self.base.load(keys)?;
        let mut index = 0;
        for run in keys.chunk_by(|(a, _), (b, _)| a == b) {
            if let Some((keyspace, _)) = run.first()
                && let Some(written) = self.writes.of(*keyspace)
            {
                let own = |(at, (_, key)): (usize, &(Keyspace, &[u8]))| Some((index + at, written.get(key)?));
                self.own.extend(run.iter().enumerate().filter_map(own));
            }
            index += run.len();
        }
        Ok(())
    }

    /// Requests all keys from the snapshot; `load` puts the transaction's own writes in place of its values.
    fn load_ahead(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<bool> {
        self.base.load_ahead(keys)
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.own(index).unwrap_or_else(|| self.base.loaded(index))
    }

    fn loaded_shared(&self, index: usize) -> Option<Arc<[u8]>> {
        match self.own(index) {
            Some(_) => None,
            None => self.base.loaded_shared(index),
        }
    }
}
