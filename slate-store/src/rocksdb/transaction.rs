use std::{collections::BTreeSet, sync::Arc};

use super::{
    RocksSnapshot, RocksTransactionView,
    writer::{Start, Writer},
    writes::Writes,
    written::Written,
};
use crate::{Bounds, Cursor, Durability, Edge, Isolation, Keyspace, Result, Transaction, View, limits};

/// An open write transaction of a [`RocksStore`](super::RocksStore). Its writes are in memory until it commits.
pub struct RocksTransaction {
    snapshot: RocksSnapshot,
    isolation: Isolation,
    writes: Writes,
    guards: BTreeSet<(Keyspace, Box<[u8]>)>,
    start: Start,
    writer: Arc<Writer>,
}

impl RocksTransaction {
    pub(super) fn begin(writer: &Arc<Writer>, isolation: Isolation) -> Result<Self> {
        let start = writer.begin()?;
        let snapshot = RocksSnapshot::open(&writer.opened);
        let (writes, guards) = (Writes::default(), BTreeSet::new());
        Ok(Self { snapshot, isolation, writes, guards, start, writer: Arc::clone(writer) })
    }

    pub(super) fn snapshot(&self) -> &RocksSnapshot {
        &self.snapshot
    }

    pub(super) fn written(&self, keyspace: Keyspace) -> Option<&Written> {
        self.writes.of(keyspace)
    }

    fn keys_within(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Vec<Vec<u8>>> {
        let mut cursor = self.view().cursor(keyspace, bounds)?;
        let (mut keys, mut more) = (Vec::new(), cursor.seek(Edge::First)?);
        while more {
            keys.extend(cursor.current().map(|(key, _)| key.to_vec()));
            more = cursor.step_forward()?;
        }
        Ok(keys)
    }
}

impl Transaction for RocksTransaction {
    type View<'t> = RocksTransactionView<'t>;

    fn view(&self) -> RocksTransactionView<'_> {
        RocksTransactionView::new(self)
    }

    fn put(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        limits::check(key, value)?;
        self.writes.write(keyspace, key, Some(value));
        Ok(())
    }

    fn delete(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        self.writes.write(keyspace, key, None);
        Ok(())
    }

    /// Key by key: a range delete of RocksDB's would take with it what others insert there meanwhile.
    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        let doomed = self.keys_within(keyspace, bounds)?;
        doomed.iter().for_each(|key| self.writes.write(keyspace, key, None));
        Ok(())
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        if self.isolation == Isolation::Serializable {
            self.guards.insert((keyspace, key.into()));
        }
        Ok(())
    }

    fn commit(self, durability: Durability) -> Result<()> {
        let Self { snapshot, writes, guards, start, writer, .. } = self;
        // RocksDB need not keep the versions that it sees any longer.
        drop(snapshot);
        writer.commit(start, writes, guards, durability)
    }
}
