use super::{RocksTransaction, RocksTransactionCursor, RocksTransactionPointReader, bytes_read};
use crate::{Bounds, Keyspace, Result, Version, View};

/// The view of a [`RocksTransaction`]: its snapshot with its own writes applied.
#[derive(Clone, Copy)]
pub struct RocksTransactionView<'t>(&'t RocksTransaction);

impl<'t> RocksTransactionView<'t> {
    pub(super) fn new(transaction: &'t RocksTransaction) -> Self {
        Self(transaction)
    }
}

impl<'t> View for RocksTransactionView<'t> {
    type Cursor = RocksTransactionCursor<'t>;
    type PointReader = RocksTransactionPointReader<'t>;

    fn version(&self) -> Version {
        self.0.snapshot().version()
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<RocksTransactionCursor<'t>> {
        let base = self.0.snapshot().cursor(keyspace, bounds)?;
        Ok(RocksTransactionCursor::new(base, self.0.written(keyspace), bounds))
    }

    fn point_reader(&self) -> Result<RocksTransactionPointReader<'t>> {
        Ok(RocksTransactionPointReader::open(self.0))
    }

    fn get<R>(&self, keyspace: Keyspace, key: &[u8], visitor: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        match self.0.written(keyspace).and_then(|written| written.get(key)) {
            Some(own) => Ok(own.map(visitor)),
            None => self.0.snapshot().get(keyspace, key, visitor),
        }
    }

    fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        bytes_read::with_bytes_read(read)
    }
}
