use ::rocksdb::ReadOptions;

use super::{
    RocksTransaction, RocksTransactionCursor, RocksTransactionPoints,
    iterate::{Iterate, Limits},
    points::Source,
};
use crate::{Bounds, Keyspace, Result, View};

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
        let (limits, mut options) = Limits::new(keyspace, bounds);
        if bounds.is_empty() {
            return Ok(RocksTransactionCursor::new(limits, None));
        }
        self.0.read_as_of_begin(&mut options)?;
        let iterate = if self.0.has_written(keyspace) {
            Iterate::Transaction(self.0.inner()?.raw_iterator_opt(options))
        } else {
            Iterate::Writable(self.0.opened().writable()?.raw_iterator_opt(options))
        };
        Ok(RocksTransactionCursor::new(limits, Some(iterate)))
    }

    fn points(&self, keyspace: Keyspace) -> Result<RocksTransactionPoints<'t>> {
        let mut options = ReadOptions::default();
        self.0.read_as_of_begin(&mut options)?;
        let source =
            if self.0.has_written(keyspace) { Source::Written(self.0.inner()?) } else { Source::Base(self.0.opened()) };
        Ok(RocksTransactionPoints::new(source, options, keyspace))
    }
}
