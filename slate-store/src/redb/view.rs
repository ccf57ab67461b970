use super::{RedbTransaction, RedbTransactionCursor, RedbTransactionPointReader};
use crate::{Bounds, Keyspace, Result, Version, View, view};

/// The view of a [`RedbTransaction`]: its snapshot with its own writes applied.
#[derive(Clone, Copy)]
pub struct RedbTransactionView<'t>(&'t RedbTransaction);

impl<'t> RedbTransactionView<'t> {
    pub(super) fn new(transaction: &'t RedbTransaction) -> Self {
        Self(transaction)
    }
}

impl<'t> View for RedbTransactionView<'t> {
    type Cursor = RedbTransactionCursor<'t>;
    type PointReader = RedbTransactionPointReader<'t>;

    fn version(&self) -> Version {
        self.0.version()
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<RedbTransactionCursor<'t>> {
        match self.0.written(keyspace) {
            Some(table) => Ok(RedbTransactionCursor::written(table, bounds)),
            None => Ok(RedbTransactionCursor::base(self.0.base()?.cursor(keyspace, bounds)?)),
        }
    }

    fn point_reader(&self) -> Result<RedbTransactionPointReader<'t>> {
        Ok(RedbTransactionPointReader::open(self.0))
    }

    fn count(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        should_continue: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>> {
        match self.0.written(keyspace) {
            Some(_) => view::count_steps(&mut self.cursor(keyspace, bounds)?, should_continue),
            None => self.0.base()?.count(keyspace, bounds, should_continue),
        }
    }

    fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        self.0.with_bytes_read(read)
    }
}
