use std::{collections::BTreeSet, sync::Arc};

use ::rocksdb::{OptimisticTransactionOptions, ReadOptions, WriteOptions};
use self_cell::self_cell;

use super::{
    RocksTransactionView,
    drops::Began,
    error,
    handle::{Handle, Opened, WritableDb},
    key,
    writer::Writer,
};
use crate::{Bounds, Context, Cursor, Durability, Edge, Error, Isolation, Keyspace, Result, Transaction, View, limits};

/// `None` once it is committed, which RocksDB takes by value.
type Open<'d> = Option<::rocksdb::Transaction<'d, WritableDb>>;

self_cell!(
    struct Cell {
        owner: Arc<Opened>,
        #[covariant]
        dependent: Open,
    }
);

/// An open write transaction of a [`RocksStore`](super::RocksStore). Its writes are in memory until it commits.
pub struct RocksTransaction {
    cell: Cell,
    isolation: Isolation,
    written: BTreeSet<Keyspace>,
    guarded: BTreeSet<Keyspace>,
    began: Began,
    writer: Arc<Writer>,
}

impl RocksTransaction {
    pub(super) fn begin(writer: &Arc<Writer>, isolation: Isolation) -> Result<Self> {
        let began = writer.begin()?;
        let mut options = OptimisticTransactionOptions::default();
        // What was committed since this snapshot is what it conflicts with, and it reads nothing later.
        options.set_snapshot(true);
        // RocksDB fixes here whether a commit syncs, when nobody knows yet: the log is synced apart from it.
        let write = WriteOptions::default();
        let cell = Cell::new(Arc::clone(&writer.opened), |opened| match &opened.handle {
            Handle::Writable(db) => Some(db.transaction_opt(&write, &options)),
            Handle::ReadOnly(_) => None,
        });
        let (written, guarded) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self { cell, isolation, written, guarded, began, writer: Arc::clone(writer) })
    }

    pub(super) fn opened(&self) -> &Opened {
        self.cell.borrow_owner()
    }

    pub(super) fn inner(&self) -> Result<&::rocksdb::Transaction<'_, WritableDb>> {
        let over = || Error::Io(Box::new(Context::new("the transaction is over")));
        self.cell.borrow_dependent().as_ref().ok_or_else(over)
    }

    pub(super) fn has_written(&self, keyspace: Keyspace) -> bool {
        self.written.contains(&keyspace)
    }

    /// Makes reads see the transaction's snapshot.
    pub(super) fn read_as_of_begin(&self, options: &mut ReadOptions) -> Result<()> {
        // The handle goes at once; the snapshot itself is the transaction's.
        options.set_snapshot(&self.inner()?.snapshot());
        Ok(())
    }

    fn keys_within(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Vec<Vec<u8>>> {
        let mut cursor = self.view().cursor(keyspace, bounds)?;
        let (mut keys, mut more) = (Vec::new(), cursor.seek(Edge::First)?);
        while more {
            keys.extend(cursor.current().map(|(key, _)| key::whole(keyspace, key)));
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
        self.written.insert(keyspace);
        self.inner()?.put(key::whole(keyspace, key), value).map_err(error::storage)
    }

    fn delete(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        self.written.insert(keyspace);
        self.inner()?.delete(key::whole(keyspace, key)).map_err(error::storage)
    }

    /// RocksDB's transactions have no range delete: key by key, then.
    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        let doomed = self.keys_within(keyspace, bounds)?;
        if !doomed.is_empty() {
            self.written.insert(keyspace);
        }
        let transaction = self.inner()?;
        doomed.into_iter().try_for_each(|key| transaction.delete(key).map_err(error::storage))
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        if self.isolation == Isolation::Snapshot {
            return Ok(());
        }
        self.guarded.insert(keyspace);
        let mut options = ReadOptions::default();
        self.read_as_of_begin(&mut options)?;
        // To read a key so is the only way to have it compared at commit. The lock is nobody's: it is an optimistic one.
        let read = self.inner()?.get_pinned_for_update_opt(key::whole(keyspace, key), true, &options);
        read.map(drop).map_err(error::storage)
    }

    fn commit(self, durability: Durability) -> Result<()> {
        let Self { mut cell, written, guarded, began, writer, .. } = self;
        if written.is_empty() && guarded.is_empty() {
            return Ok(());
        }
        // What only guards is compared, and has nothing to go to the device.
        let durability = if written.is_empty() { Durability::Deferred } else { durability };
        let touched = written.into_iter().chain(guarded);
        writer.commit(&began, touched, durability, || {
            cell.with_dependent_mut(|_, transaction| match transaction.take() {
                Some(transaction) => transaction.commit(),
                None => Ok(()),
            })
        })
    }
}
