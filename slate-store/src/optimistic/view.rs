use std::ops::ControlFlow;

use super::{
    overlay::OptimisticCursor, points::OptimisticPointReader, transaction::OptimisticTransaction,
    write_set::KeyspaceWrites,
};
use crate::{Bounds, Keyspace, LocalStore, Result, Version, View, view};

/// The view of an [`OptimisticTransaction`]: its snapshot with its own writes applied.
pub struct OptimisticView<'t, L: LocalStore>(&'t OptimisticTransaction<L>);

impl<'t, L: LocalStore> OptimisticView<'t, L> {
    pub(super) fn new(transaction: &'t OptimisticTransaction<L>) -> Self {
        Self(transaction)
    }

    fn written(&self, keyspace: Keyspace) -> Option<&'t KeyspaceWrites> {
        self.0.writes().of(keyspace)
    }
}

impl<L: LocalStore> Clone for OptimisticView<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: LocalStore> Copy for OptimisticView<'_, L> {}

impl<'t, L: LocalStore> View for OptimisticView<'t, L> {
    type Cursor = OptimisticCursor<'t, <L::Snapshot as View>::Cursor>;
    type PointReader = OptimisticPointReader<'t, <L::Snapshot as View>::PointReader>;

    fn version(&self) -> Version {
        self.0.base()
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Self::Cursor> {
        let base = self.0.snapshot().cursor(keyspace, bounds)?;
        Ok(OptimisticCursor::new(base, self.written(keyspace), bounds))
    }

    fn point_reader(&self) -> Result<Self::PointReader> {
        Ok(OptimisticPointReader::new(self.0.snapshot().point_reader()?, self.0.writes()))
    }

    fn get<R>(&self, keyspace: Keyspace, key: &[u8], visitor: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        match self.written(keyspace).and_then(|written| written.get(key)) {
            Some(own) => Ok(own.map(visitor)),
            None => self.0.snapshot().get(keyspace, key, visitor),
        }
    }

    fn scan<B>(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        visitor: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        match self.written(keyspace) {
            Some(_) => view::scan_steps(&mut self.cursor(keyspace, bounds)?, visitor),
            None => self.0.snapshot().scan(keyspace, bounds, visitor),
        }
    }

    fn count(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        should_continue: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>> {
        match self.written(keyspace) {
            Some(_) => view::count_steps(&mut self.cursor(keyspace, bounds)?, should_continue),
            None => self.0.snapshot().count(keyspace, bounds, should_continue),
        }
    }

    fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        self.0.snapshot().with_bytes_read(read)
    }
}
