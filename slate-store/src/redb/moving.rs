//! Moves pages from the end of a file to its front, so that redb can cut the end. redb's own compaction reads all pages at least twice,
//! one by one, and cannot end early. Here only branches are read to find the pages behind the place where the file could end. One entry
//! of each leaf that is there, or below a branch that is there, is written again: that writes the leaf and the branches above it to
//! free pages of the first region that has any.

use std::{ops::Bound, time::Instant};

use ::redb::{Database, ReadableTable, StorageBackend, WriteTransaction};

use super::{
    error,
    pages::{self, LeafPlace},
    rewrite::ROOM,
    steps::for_each_group,
    table,
};
use crate::Result;

/// The bytes of the leaves among which those to be moved are searched in one step. Their branches have a hundredth of that.
const SEARCHED: u64 = 64 << 20;

/// The bytes of leaves after which no more are moved in one step.
const MOVED: u64 = 4 << 20;

/// How often all leaves are searched. A page can be moved to a place that is also too far behind, as long as the pages of the step before
/// are not free.
const ROUNDS: usize = 2;

/// Moves pages of the last commit on the device until `until`. `commit` makes a transaction durable. Pages that are damaged stay where
/// they are.
pub(super) fn move_to_front(
    database: &Database,
    storage: &dyn StorageBackend,
    until: Option<Instant>,
    mut commit: impl FnMut(WriteTransaction) -> Result<()>,
) -> Result<()> {
    for _ in 0..ROUNDS {
        let Some(used) = pages::used_bytes(storage, until)? else { return Ok(()) };
        // Some room for redb's own tables, and for the pages that each step replaces.
        let end = used + used / 64 + ROOM;
        let is_done = for_each_group(database, storage, until, SEARCHED, |name, _, mut leaves| {
            let mut after = leaves.last().and_then(|last| last.up_to.clone());
            leaves.retain(|leaf| leaf.end > end);
            let mut bytes = 0;
            let has_room = |leaf: &&LeafPlace| {
                let has_room = bytes < MOVED;
                bytes += leaf.length;
                has_room
            };
            let moved = leaves.iter().take_while(has_room).count();
            if moved < leaves.len() {
                leaves.truncate(moved);
                after = leaves.last().and_then(|last| last.up_to.clone());
            }
            if !leaves.is_empty() && pages::read_leaves(storage, &leaves).is_some() {
                let transaction = database.begin_write().map_err(error::storage)?;
                write_again(&transaction, name, &leaves)?;
                commit(transaction)?;
            }
            Ok(after)
        })?;
        if !is_done {
            break;
        }
    }
    Ok(())
}

/// Writes the first entry of each leaf again.
fn write_again(transaction: &WriteTransaction, name: &str, leaves: &[LeafPlace]) -> Result<()> {
    let mut table = transaction.open_table(table::definition(name)).map_err(error::storage)?;
    for leaf in leaves {
        let after = leaf.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let first = table.range::<&[u8]>((after, Bound::Unbounded)).map_err(error::storage)?.next().transpose();
        let first = first.map_err(error::storage)?.map(|(key, value)| (key.value().to_vec(), value.value().to_vec()));
        if let Some((key, value)) = first {
            table.insert(key.as_slice(), value.as_slice()).map_err(error::storage)?;
        }
    }
    Ok(())
}
