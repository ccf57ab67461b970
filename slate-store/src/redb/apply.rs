use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::{AddAssign, Bound},
};

use ::redb::{AccessGuard, CursorError, ReadableTable, Table, WriteTransaction};

use super::{
    backlog::Backlog,
    error,
    rewrite::PAGE,
    table::{self, Bytes},
};
use crate::{Bounds, Change, Keyspace, Result, Write};

/// What a commit has written.
#[derive(Clone, Copy, Default)]
pub(super) struct Written {
    /// Bytes of keys and values that it added; negative if it removed more.
    pub(super) added: i64,
    /// Upper bound of the bytes of the pages that it replaced, without branch pages.
    pub(super) replaced: u64,
    /// Whether it dropped a keyspace. The bytes of that are in neither count.
    pub(super) has_dropped: bool,
}

/// Applies the changes of a commit to redb's transaction.
pub(super) struct Applying<'t> {
    transaction: &'t WriteTransaction,
    storage: &'t Backlog,
    /// The written tables. They stay open because opening one is expensive.
    tables: BTreeMap<Keyspace, Table<'t, Bytes, Bytes>>,
    pub(super) written: Written,
}

impl<'t> Applying<'t> {
    pub(super) fn new(transaction: &'t WriteTransaction, storage: &'t Backlog) -> Self {
        Self { transaction, storage, tables: BTreeMap::new(), written: Written::default() }
    }

    pub(super) fn apply(&mut self, keyspace: Keyspace, change: Change<'_>) -> Result<()> {
        if let Change::DeleteRange(Bounds::ALL) = change {
            self.tables.remove(&keyspace);
            let name = table::name(keyspace);
            self.written.has_dropped |=
                self.transaction.delete_table(table::definition(&name)).map_err(error::storage)?;
            return Ok(());
        }
        let table = match self.tables.entry(keyspace) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => {
                let name = table::name(keyspace);
                place.insert(self.transaction.open_table(table::definition(&name)).map_err(error::storage)?)
            }
        };
        self.written += match change {
            Change::Writes(writes) => write(table, self.storage, writes)?,
            Change::DeleteRange(bounds) => delete_range(table, bounds)?,
        };
        // redb writes changed pages before the commit when its write buffer is full, so the device can be full already.
        check_room(self.storage)
    }
}

impl AddAssign for Written {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.replaced += other.replaced;
    }
}

/// Fails if a write did not fit on the device, so that the rest of a large transaction is not buffered in memory.
fn check_room(storage: &Backlog) -> Result<()> {
    if storage.is_behind() { Err(error::full(storage.full())) } else { Ok(()) }
}

fn write(table: &mut Table<'_, Bytes, Bytes>, storage: &Backlog, writes: &[Write<'_>]) -> Result<Written> {
    let mut written = Written::default();
    let appended = if writes.len() >= FEWEST_APPENDED { append(table, storage, writes)? } else { 0 };
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
        check_room(storage)?;
    }
    Ok(written)
}

/// Minimum number of writes to append: inserting fewer costs less than opening and closing a gap.
const FEWEST_APPENDED: usize = 8;

/// Appends the leading puts whose keys are above all keys of the table, and returns their number. redb fills whole
/// pages with such entries instead of searching for the position of each.
fn append(table: &mut Table<'_, Bytes, Bytes>, storage: &Backlog, writes: &[Write<'_>]) -> Result<usize> {
    let Some((first, _)) = writes.first() else { return Ok(0) };
    // Opening a gap and closing it rebuilds the path to it, whether or not anything is appended.
    if table.last().map_err(error::storage)?.is_some_and(|(last, _)| last.value() >= *first) {
        return Ok(0);
    }
    let mut gap = table.upper_bound_mut(Bound::<&[u8]>::Unbounded).map_err(error::storage)?;
    let mut appended = 0;
    for (key, value) in writes {
        let Some(value) = value else { break };
        match gap.insert_before(*key, *value) {
            Ok(()) => appended += 1,
            Err(CursorError::UnorderedKey) => break,
            Err(error) => return Err(error::storage(error)),
        }
        check_room(storage)?;
    }
    gap.close().map_err(error::storage)?;
    Ok(appended)
}

fn delete_range(table: &mut Table<'_, Bytes, Bytes>, bounds: Bounds<'_>) -> Result<Written> {
    let mut written = Written::default();
    let within = (bounds.lower(), bounds.upper());
    let delete = |key: &[u8], value: &[u8]| {
        written.added -= bytes(key, Some(value));
        written.replaced += bytes(key, Some(value)).unsigned_abs();
        false
    };
    table.retain_in::<&[u8], _>(within, delete).map_err(error::storage)?;
    written.replaced += PAGE;
    Ok(written)
}

/// Returns the size of an entry in bytes; 0 if `value` is `None`.
fn bytes(key: &[u8], value: Option<&[u8]>) -> i64 {
    value.map_or(0, |value| i64::try_from(key.len() + value.len()).unwrap_or(i64::MAX))
}
