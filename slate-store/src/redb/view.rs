use super::{RedbTransaction, RedbTransactionCursor, RedbTransactionPoints};
use crate::{Bounds, Estimate, Keyspace, Result, View, view};

/// What a [`RedbTransaction`] sees: its snapshot with its own writes laid over.
#[derive(Clone, Copy)]
pub struct RedbTransactionView<'t>(&'t RedbTransaction);

impl<'t> RedbTransactionView<'t> {
    pub(super) fn new(transaction: &'t RedbTransaction) -> Self {
        Self(transaction)
    }
}

impl<'t> View for RedbTransactionView<'t> {
    type Cursor = RedbTransactionCursor<'t>;
    type Points = RedbTransactionPoints<'t>;

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<RedbTransactionCursor<'t>> {
        match self.0.written(keyspace) {
            Some(table) => Ok(RedbTransactionCursor::written(table, bounds)),
            None => Ok(RedbTransactionCursor::base(self.0.base()?.cursor(keyspace, bounds)?)),
        }
    }

    fn points(&self, keyspace: Keyspace) -> Result<RedbTransactionPoints<'t>> {
        match self.0.written(keyspace) {
            Some(table) => Ok(RedbTransactionPoints::written(table)),
            None => Ok(RedbTransactionPoints::base(self.0.base()?.points(keyspace)?)),
        }
    }

    fn estimate(&self, keyspace: Keyspace, bounds: Bounds<'_>, cap: u64) -> Result<Estimate> {
        match self.0.written(keyspace) {
            Some(_) => view::count(&mut self.cursor(keyspace, bounds)?, cap),
            None => self.0.base()?.estimate(keyspace, bounds, cap),
        }
    }

    fn count(&self, keyspace: Keyspace, bounds: Bounds<'_>, go_on: impl FnMut() -> bool) -> Result<Option<u64>> {
        match self.0.written(keyspace) {
            Some(_) => view::count_steps(&mut self.cursor(keyspace, bounds)?, go_on),
            None => self.0.base()?.count(keyspace, bounds, go_on),
        }
    }
}
