use std::sync::Arc;

use super::{
    RocksSnapshot, RocksTransactionView,
    commits::Began,
    write_buffer::WriteBuffer,
    writer::{Guards, Writer},
    written::Written,
};
use crate::{Capabilities, Durability, Guard, Keyspace, Result, Transaction, Version, Write};

/// An open write transaction of a [`RocksStore`](super::RocksStore). Its writes are in memory until it commits.
pub struct RocksTransaction {
    snapshot: RocksSnapshot,
    writes: WriteBuffer,
    guards: Guards,
    began: Began,
    writer: Arc<Writer>,
}

impl RocksTransaction {
    pub(super) fn begin(writer: &Arc<Writer>) -> Result<Self> {
        let (snapshot, began) = writer.begin()?;
        let (writes, guards) = (WriteBuffer::default(), Guards::new());
        Ok(Self { snapshot, writes, guards, began, writer: Arc::clone(writer) })
    }

    pub(super) fn snapshot(&self) -> &RocksSnapshot {
        &self.snapshot
    }

    pub(super) fn written(&self, keyspace: Keyspace) -> Option<&Written> {
        self.writes.of(keyspace)
    }
}

impl Transaction for RocksTransaction {
    type View<'t> = RocksTransactionView<'t>;

    fn view(&self) -> RocksTransactionView<'_> {
        RocksTransactionView::new(self)
    }

    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()> {
        Capabilities::MINIMAL.check_sizes(writes)?;
        writes.iter().for_each(|(key, value)| self.writes.write(keyspace, key, *value));
        Ok(())
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8], guard: Guard) -> Result<()> {
        let strongest = self.guards.entry((keyspace, key.into())).or_insert(guard);
        if guard == Guard::Exclusive {
            *strongest = guard;
        }
        Ok(())
    }

    fn commit(self, durability: Durability) -> Result<Version> {
        let Self { snapshot, writes, guards, began, writer } = self;
        // Allows RocksDB to drop the old versions that only this snapshot sees.
        drop(snapshot);
        writer.commit(began, writes, &guards, durability)
    }
}
