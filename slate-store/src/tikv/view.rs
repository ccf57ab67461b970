use super::{cursor::TikvCursor, point_reader::TikvPointReader, transaction::TikvTransaction};
use crate::{
    Bounds, Edge, Keyspace, OptimisticCursor, OptimisticPointReader, Result, Version, View, view::count_steps,
};

/// The view of a [`TikvTransaction`]: its snapshot with its own writes applied.
#[derive(Clone, Copy)]
pub struct TikvView<'t>(&'t TikvTransaction);

impl<'t> TikvView<'t> {
    pub(super) fn new(transaction: &'t TikvTransaction) -> Self {
        Self(transaction)
    }
}

impl<'t> View for TikvView<'t> {
    type Cursor = OptimisticCursor<'t, TikvCursor>;
    type PointReader = OptimisticPointReader<'t, TikvPointReader>;

    fn version(&self) -> Version {
        self.0.snapshot().version()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn round_trips(&self) -> Option<u64> {
        self.0.snapshot().round_trips()
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Self::Cursor> {
        let base = self.0.snapshot().cursor(keyspace, bounds)?;
        Ok(OptimisticCursor::new(base, self.0.writes().of(keyspace), bounds))
    }

    /// One by one where the transaction has written to the keyspace.
    fn cursors(
        &self,
        keyspace: Keyspace,
        ranges: &[Bounds<'_>],
        edge: Edge<'_>,
        bytes: usize,
    ) -> Result<Option<Vec<Self::Cursor>>> {
        if self.0.writes().of(keyspace).is_some() {
            return Ok(None);
        }
        let base = TikvCursor::open_several(self.0.snapshot(), keyspace, ranges, edge, bytes)?;
        let cursors = base.into_iter().zip(ranges).map(|(base, bounds)| OptimisticCursor::new(base, None, *bounds));
        Ok(Some(cursors.collect()))
    }

    fn point_reader(&self) -> Result<Self::PointReader> {
        Ok(OptimisticPointReader::new(self.0.snapshot().point_reader()?, self.0.writes()))
    }

    fn get<R>(&self, keyspace: Keyspace, key: &[u8], visitor: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        match self.0.writes().of(keyspace).and_then(|written| written.get(key)) {
            Some(own) => Ok(own.map(visitor)),
            None => self.0.snapshot().get(keyspace, key, visitor),
        }
    }

    fn count(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        should_continue: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>> {
        match self.0.writes().of(keyspace) {
            Some(_) => count_steps(&mut self.cursor(keyspace, bounds)?, should_continue),
            None => self.0.snapshot().count(keyspace, bounds, should_continue),
        }
    }
}
