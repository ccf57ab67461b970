use std::{borrow::Cow, ops::ControlFlow, sync::Arc};

use super::{
    overlay::OptimisticCursor,
    points::OptimisticPointReader,
    write_set::{KeyspaceWrites, WriteSet},
};
use crate::{Ahead, Bounds, Edge, Keyspace, ReadEnd, Result, Version, View, view};

/// The view of a transaction: a snapshot with the transaction's own writes applied.
pub struct OptimisticView<'t, V> {
    snapshot: &'t V,
    writes: &'t WriteSet,
    /// Ends the reads of cursors and scans early.
    end: Option<ReadEnd>,
}

impl<'t, V> OptimisticView<'t, V> {
    pub(crate) fn new(snapshot: &'t V, writes: &'t WriteSet) -> Self {
        Self { snapshot, writes, end: None }
    }

    fn written(&self, keyspace: Keyspace) -> Option<&'t KeyspaceWrites> {
        self.writes.of(keyspace)
    }
}

impl<'t, V: View> OptimisticView<'t, V> {
    /// Returns the snapshot, with the same `end`.
    fn base(&self) -> Cow<'t, V> {
        match &self.end {
            None => Cow::Borrowed(self.snapshot),
            Some(end) => Cow::Owned(self.snapshot.ended_by(Arc::clone(end))),
        }
    }
}

impl<V> Clone for OptimisticView<'_, V> {
    fn clone(&self) -> Self {
        Self { end: self.end.clone(), ..*self }
    }
}

impl<'t, V: View + Sync> View for OptimisticView<'t, V> {
    type Cursor = OptimisticCursor<'t, V::Cursor>;
    type PointReader = OptimisticPointReader<'t, V::PointReader>;

    fn version(&self) -> Version {
        self.snapshot.version()
    }

    fn round_trips(&self) -> Option<u64> {
        self.snapshot.round_trips()
    }

    fn requests(&self) -> Option<u64> {
        self.snapshot.requests()
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Self::Cursor> {
        Ok(OptimisticCursor::new(self.base().cursor(keyspace, bounds)?, self.written(keyspace), bounds))
    }

    /// `None` where the transaction has written to the keyspace: cursors are then opened one by one.
    fn cursors(
        &self,
        keyspace: Keyspace,
        ranges: &[Bounds<'_>],
        edge: Edge<'_>,
        bytes: usize,
    ) -> Result<Option<Vec<Self::Cursor>>> {
        if self.written(keyspace).is_some() {
            return Ok(None);
        }
        let Some(base) = self.base().cursors(keyspace, ranges, edge, bytes)? else { return Ok(None) };
        let cursors = base.into_iter().zip(ranges).map(|(base, bounds)| OptimisticCursor::new(base, None, *bounds));
        Ok(Some(cursors.collect()))
    }

    fn scan_ahead(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Option<Ahead>> {
        match self.written(keyspace) {
            Some(_) => Ok(None),
            None => self.base().scan_ahead(keyspace, bounds),
        }
    }

    fn ended_by(&self, end: ReadEnd) -> Self {
        Self { end: Some(end), ..*self }
    }

    fn point_reader(&self) -> Result<Self::PointReader> {
        Ok(OptimisticPointReader::new(self.snapshot.point_reader()?, self.writes))
    }

    fn get<R>(&self, keyspace: Keyspace, key: &[u8], visitor: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        match self.written(keyspace).and_then(|written| written.get(key)) {
            Some(own) => Ok(own.map(visitor)),
            None => self.snapshot.get(keyspace, key, visitor),
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
            None => self.base().scan(keyspace, bounds, visitor),
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
            None => self.snapshot.count(keyspace, bounds, should_continue),
        }
    }

    fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        self.snapshot.with_bytes_read(read)
    }
}
