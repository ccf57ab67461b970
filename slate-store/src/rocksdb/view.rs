use super::{RocksPoints, RocksTransaction, RocksTransactionCursor, RocksTransactionPoints};
use crate::{Bounds, Keyspace, Result, View, view};

/// What a [`RocksTransaction`] sees: its snapshot with its own writes laid over.
#[derive(Clone, Copy)]
pub struct RocksTransactionView<'t>(&'t RocksTransaction);

impl<'t> RocksTransactionView<'t> {
    pub(super) fn new(transaction: &'t RocksTransaction) -> Self {
        Self(transaction)
    }
}

impl<'t> View for RocksTransactionView<'t> {
    type Cursor = RocksTransactionCursor<'t>;
    type Points = RocksTransactionPoints<'t>;

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<RocksTransactionCursor<'t>> {
        let base = self.0.snapshot().cursor(keyspace, bounds)?;
        Ok(RocksTransactionCursor::new(base, self.0.written(keyspace), bounds))
    }

    fn points(&self, keyspace: Keyspace) -> Result<RocksTransactionPoints<'t>> {
        let snapshot = self.0.snapshot();
        let base = RocksPoints::open(snapshot.clone(), keyspace, snapshot.rows(keyspace).of_writer());
        Ok(RocksTransactionPoints::new(base, self.0.written(keyspace)))
    }

    fn get<R>(&self, keyspace: Keyspace, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        match self.0.written(keyspace).and_then(|written| written.get(key)) {
            Some(own) => Ok(own.map(see)),
            None => self.0.snapshot().get(keyspace, key, see),
        }
    }

    fn count(&self, keyspace: Keyspace, bounds: Bounds<'_>, go_on: impl FnMut() -> bool) -> Result<Option<u64>> {
        match self.0.written(keyspace) {
            Some(_) => view::count_steps(&mut self.cursor(keyspace, bounds)?, go_on),
            None => self.0.snapshot().count(keyspace, bounds, go_on),
        }
    }
}
