use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::Bound,
    sync::{Arc, OnceLock},
    time::Duration,
};

use ::redb::{AccessGuard, CursorError, Table, WriteTransaction};
use self_cell::self_cell;

use super::{
    RedbSnapshot, RedbTransactionView, error,
    rewrite::PAGE,
    table::{self, Bytes},
    writer::{Writer, Written},
    writer_queue::WritePermit,
};
use crate::{Capabilities, Durability, Guard, Keyspace, Result, Transaction, Version, Write};

/// The written tables. They stay open between writes because opening one is expensive.
type Tables<'t> = BTreeMap<Keyspace, Table<'t, Bytes, Bytes>>;

self_cell!(
    struct Cell {
        owner: WriteTransaction,
        #[covariant]
        dependent: Tables,
    }
);

/// An open write transaction of a [`RedbStore`](super::RedbStore): no other write transaction is open at the same time.
pub struct RedbTransaction {
    // The fields are dropped in this order: redb's transaction must end before the permit is released.
    cell: Cell,
    /// The snapshot that the transaction began with. It serves the keyspaces that the transaction did not write to,
    /// because redb creates a table to read it. Opened by the first read: no other commit can happen before.
    base: OnceLock<RedbSnapshot>,
    version: Version,
    written: Written,
    permit: WritePermit,
    writer: Arc<Writer>,
}

impl RedbTransaction {
    pub(super) fn begin(writer: &Arc<Writer>, wait: Duration) -> Result<Self> {
        let (permit, transaction) = writer.begin(wait)?;
        let cell = Cell::new(transaction, |_| Tables::new());
        let version = writer.version();
        Ok(Self {
            cell,
            base: OnceLock::new(),
            version,
            written: Written::default(),
            permit,
            writer: Arc::clone(writer),
        })
    }

    pub(super) fn written(&self, keyspace: Keyspace) -> Option<&Table<'_, Bytes, Bytes>> {
        self.cell.borrow_dependent().get(&keyspace)
    }

    pub(super) fn base(&self) -> Result<&RedbSnapshot> {
        match self.base.get() {
            Some(base) => Ok(base),
            None => {
                let base = RedbSnapshot::open(&self.writer.opened)?;
                Ok(self.base.get_or_init(|| base))
            }
        }
    }

    pub(super) fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        self.writer.opened.with_bytes_read(read)
    }

    /// Returns the version of the commit that the transaction reads.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    fn with_table<T>(
        &mut self,
        keyspace: Keyspace,
        write: impl FnOnce(&mut Table<'_, Bytes, Bytes>) -> Result<T>,
    ) -> Result<T> {
        self.cell.with_dependent_mut(|transaction, tables| write(open(transaction, tables, keyspace)?))
    }
}

fn open<'a, 't>(
    transaction: &'t WriteTransaction,
    tables: &'a mut Tables<'t>,
    keyspace: Keyspace,
) -> Result<&'a mut Table<'t, Bytes, Bytes>> {
    match tables.entry(keyspace) {
        Entry::Occupied(open) => Ok(open.into_mut()),
        Entry::Vacant(place) => {
            let name = table::name(keyspace);
            Ok(place.insert(transaction.open_table(table::definition(&name)).map_err(error::storage)?))
        }
    }
}

/// Appends the leading writes whose keys are above all keys of the table, and returns their number. redb fills whole
/// pages with such entries instead of searching for the position of each.
fn append(table: &mut Table<'_, Bytes, Bytes>, writes: &[Write<'_>]) -> Result<usize> {
    let mut gap = table.upper_bound_mut(Bound::<&[u8]>::Unbounded).map_err(error::storage)?;
    let mut appended = 0;
    for (key, value) in writes {
        let Some(value) = value else { break };
        match gap.insert_before(*key, *value) {
            Ok(()) => appended += 1,
            Err(CursorError::UnorderedKey) => break,
            Err(error) => return Err(error::storage(error)),
        }
    }
    gap.close().map_err(error::storage)?;
    Ok(appended)
}

impl Transaction for RedbTransaction {
    type View<'t> = RedbTransactionView<'t>;

    fn view(&self) -> RedbTransactionView<'_> {
        RedbTransactionView::new(self)
    }

    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()> {
        Capabilities::MINIMAL.check_sizes(writes)?;
        if writes.is_empty() {
            return Ok(());
        }
        let mut written = Written::default();
        let done = self.with_table(keyspace, |table| {
            let appended = if writes.len() > 1 { append(table, writes)? } else { 0 };
            written.added += writes.iter().take(appended).map(|(key, value)| bytes(key, *value)).sum::<i64>();
            for (key, value) in writes.iter().skip(appended) {
                let before = match value {
                    Some(value) => table.insert(*key, *value),
                    None => table.remove(*key),
                }
                .map_err(error::storage)?;
                let before = bytes(key, before.as_ref().map(AccessGuard::value));
                written.added += bytes(key, *value) - before;
                written.replaced += PAGE + before.unsigned_abs();
            }
            Ok(())
        });
        self.written.added += written.added;
        self.written.replaced += written.replaced;
        done
    }

    /// One writer is admitted at a time, so no other commit can change a guarded key.
    fn guard(&mut self, _: Keyspace, _: &[u8], _: Guard) -> Result<()> {
        Ok(())
    }

    fn commit(self, durability: Durability) -> Result<Version> {
        let Self { cell, base, version, written, permit, writer } = self;
        if cell.borrow_dependent().is_empty() {
            // Nothing was written. The transaction must end before the permit is released.
            drop(cell);
            return Ok(version);
        }
        // redb cannot reuse the pages that the snapshot pins.
        drop(base);
        writer.commit(permit, cell.into_owner(), durability, written)
    }
}

/// Returns the bytes of an entry; 0 if there is none.
fn bytes(key: &[u8], value: Option<&[u8]>) -> i64 {
    value.map_or(0, |value| i64::try_from(key.len() + value.len()).unwrap_or(i64::MAX))
}
