//! The example store, declared as one that other processes write to as well; if wanted without shared guards, as on a network.

use std::{path::Path, time::Duration};

use slate_store::{
    Bounds, Capabilities, Durability, Guard, Keyspace, LastStage, Result, Size, SizeDetail, Store, Transaction,
    Version, Write,
};

use super::btree::BTreeStore;

#[derive(Clone, Default)]
pub(crate) struct SharedStore {
    btree: BTreeStore,
    lease: Option<Duration>,
}

impl SharedStore {
    /// A store without shared guards, whose writers commit within a lease.
    pub(crate) fn leased(lease: Duration) -> Self {
        Self { lease: Some(lease), ..Self::default() }
    }
}

impl Store for SharedStore {
    type Snapshot = <BTreeStore as Store>::Snapshot;
    type Transaction = SharedTransaction;

    fn capabilities(&self) -> Capabilities {
        Capabilities { exclusive: false, writer_lease: self.lease, ..self.btree.capabilities() }
    }

    fn snapshot(&self) -> Result<Self::Snapshot> {
        self.btree.snapshot()
    }

    fn begin(&self, wait: Duration) -> Result<SharedTransaction> {
        Ok(SharedTransaction { inner: self.btree.begin(wait)?, guards_are_exclusive: self.lease.is_some() })
    }

    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<Version> {
        self.btree.drop_keyspace(keyspace, wait)
    }

    fn flush(&self) -> Result<()> {
        self.btree.flush()
    }

    fn backup(&self, to: &Path) -> Result<()> {
        self.btree.backup(to)
    }

    fn size(&self, detail: SizeDetail) -> Result<Size> {
        self.btree.size(detail)
    }
}

pub(crate) struct SharedTransaction {
    inner: <BTreeStore as Store>::Transaction,
    guards_are_exclusive: bool,
}

impl Transaction for SharedTransaction {
    type View<'t> = <<BTreeStore as Store>::Transaction as Transaction>::View<'t>;

    fn view(&self) -> Self::View<'_> {
        self.inner.view()
    }

    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()> {
        self.inner.write(keyspace, writes)
    }

    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        self.inner.delete_range(keyspace, bounds)
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8], guard: Guard) -> Result<()> {
        self.inner.guard(keyspace, key, if self.guards_are_exclusive { Guard::Exclusive } else { guard })
    }

    fn commit(self, durability: Durability) -> Result<Version> {
        self.inner.commit(durability)
    }

    fn commit_with(self, durability: Durability, last: LastStage<'_>) -> Result<Version> {
        self.inner.commit_with(durability, last)
    }
}
