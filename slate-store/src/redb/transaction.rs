use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::Bound,
    sync::{Arc, OnceLock},
    time::Duration,
};

use ::redb::{CursorError, Table, WriteTransaction};
use self_cell::self_cell;

use super::{
    RedbSnapshot, RedbTransactionView, error,
    table::{self, Bytes},
    turn::HeldTurn,
    writer::Writer,
    written_keys::WrittenKeys,
};
use crate::{Bounds, Durability, Keyspace, Result, Transaction, bounds::OwnedBounds, limits};

/// The tables written to, kept open from one write to the next: opening one costs a third of a put.
type Tables<'t> = BTreeMap<Keyspace, Table<'t, Bytes, Bytes>>;

self_cell!(
    struct Cell {
        owner: WriteTransaction,
        #[covariant]
        dependent: Tables,
    }
);

/// An open write transaction of a [`RedbStore`](super::RedbStore): the only one there is at the time.
pub struct RedbTransaction {
    // The order matters when it is dropped: all must be over before the turn is given up.
    cell: Cell,
    /// What the transaction began with, for the keyspaces it did not write to: redb would make a table by reading it.
    /// Opened when first read; as nobody else can commit meanwhile, it is the same commit whenever that is.
    base: OnceLock<RedbSnapshot>,
    keys: WrittenKeys,
    turn: HeldTurn,
    writer: Arc<Writer>,
}

impl RedbTransaction {
    pub(super) fn begin(writer: &Arc<Writer>, wait: Duration) -> Result<Self> {
        let (turn, transaction) = writer.begin(wait)?;
        let cell = Cell::new(transaction, |_| Tables::new());
        Ok(Self { cell, base: OnceLock::new(), keys: WrittenKeys::default(), turn, writer: Arc::clone(writer) })
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

    /// Notes a key that is written, for what is kept of what was read.
    fn note(&mut self, keyspace: Keyspace, key: &[u8]) {
        self.keys.note(&self.writer.opened, keyspace, key);
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

/// Puts entries for as long as each lies above all keys of the table, and tells how many that were. redb then builds
/// whole pages instead of searching for the place of each entry.
fn append(table: &mut Table<'_, Bytes, Bytes>, entries: &[(&[u8], &[u8])]) -> Result<usize> {
    let mut gap = table.upper_bound_mut(Bound::<&[u8]>::Unbounded).map_err(error::storage)?;
    let mut appended = 0;
    for (key, value) in entries {
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

    fn put(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        limits::check(key, value)?;
        self.note(keyspace, key);
        self.with_table(keyspace, |table| table.insert(key, value).map(drop).map_err(error::storage))
    }

    fn put_many(&mut self, keyspace: Keyspace, entries: &[(&[u8], &[u8])]) -> Result<()> {
        entries.iter().try_for_each(|(key, value)| limits::check(key, value))?;
        entries.iter().for_each(|(key, _)| self.note(keyspace, key));
        self.with_table(keyspace, |table| {
            let appended = append(table, entries)?;
            let rest = entries.iter().skip(appended);
            rest.copied().try_for_each(|(key, value)| table.insert(key, value).map(drop).map_err(error::storage))
        })
    }

    fn delete(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        self.note(keyspace, key);
        self.with_table(keyspace, |table| table.remove(key).map(drop).map_err(error::storage))
    }

    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        if bounds.is_empty() {
            return Ok(());
        }
        self.keys.note_range(keyspace);
        let owned = OwnedBounds::of(bounds);
        if bounds != Bounds::ALL {
            let range = (owned.bounds().lower(), owned.bounds().upper());
            return self.with_table(keyspace, |table| {
                table.retain_in::<&[u8], _>(range, |_, _| false).map_err(error::storage)
            });
        }
        self.cell.with_dependent_mut(|transaction, tables| {
            tables.remove(&keyspace);
            let name = table::name(keyspace);
            transaction.delete_table(table::definition(&name)).map_err(error::storage)?;
            // Opened again at once: a keyspace without a table of its own would show what it held before.
            open(transaction, tables, keyspace).map(drop)
        })
    }

    fn guard(&mut self, _: Keyspace, _: &[u8]) -> Result<()> {
        Ok(()) // One writer at a time: nobody changes anything meanwhile.
    }

    fn commit(self, durability: Durability) -> Result<()> {
        let Self { cell, base, keys, turn, writer } = self;
        if cell.borrow_dependent().is_empty() {
            // Nothing was written. The transaction must end before the turn does.
            drop(cell);
            return Ok(());
        }
        // The pages it pins could not be used again.
        drop(base);
        writer.commit(turn, cell.into_owner(), &keys, durability)
    }
}
