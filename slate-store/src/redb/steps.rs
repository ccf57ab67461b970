//! Goes through the leaves of all tables group by group: how a file is compacted in steps, each a durable commit that changes no key and
//! no value. A crash between two steps loses nothing, and the work can end after each.

use std::time::Instant;

use ::redb::{Database, ReadTransaction, ReadableDatabase, StorageBackend, TableHandle};

use super::{
    error, format,
    pages::{self, LeafPlace},
};
use crate::Result;

/// Calls `step` with groups of leaves of about `bytes` bytes, as the last commit has them on the device, until `until`. `step` gets the
/// name of the table, the key behind which the group begins, and the group, and returns the key behind which the next one begins; `None`
/// ends the table. Returns whether there was time for all. Leaves of a damaged table are left out.
pub(super) fn for_each_group(
    database: &Database,
    storage: &dyn StorageBackend,
    until: Option<Instant>,
    bytes: u64,
    mut step: impl FnMut(&str, Option<&[u8]>, Vec<LeafPlace>) -> Result<Option<Box<[u8]>>>,
) -> Result<bool> {
    // An open read transaction would keep redb from using the pages that the steps free.
    let names = names(&database.begin_read().map_err(error::storage)?)?;
    for name in names {
        let mut after: Option<Box<[u8]>> = None;
        loop {
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(false);
            }
            let Some(header) = pages::header(storage)? else { return Ok(true) };
            let leaves = pages::leaves(header, storage, &name, after.as_deref(), bytes).unwrap_or_default();
            after = step(&name, after.as_deref(), leaves)?;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(true)
}

/// Returns the names of the tables of keyspaces.
fn names(transaction: &ReadTransaction) -> Result<Vec<String>> {
    let handles = transaction.list_tables().map_err(error::storage)?;
    Ok(handles.map(|handle| handle.name().to_owned()).filter(|name| !format::is_mark(name)).collect())
}
