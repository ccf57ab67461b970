//! Moves pages from the end of a file to its front, so that redb can truncate it. redb's own compaction reads all pages at least twice, one by one,
//! and cannot end early. Here only branches are read, to find the pages beyond the place where the file could end. For each leaf that is there, or
//! below a branch that is there, one entry is rewritten: redb then writes the leaf and the branches above it to free pages of the first region that
//! has any.

use std::ops::Bound;

use ::redb::{Database, ReadableTable, StorageBackend, WriteTransaction};

use super::{
    error,
    pages::{self, LeafPlace},
    rewrite::ROOM,
    steps::Group,
    table,
};
use crate::Result;

/// Bytes of leaves that a step (`steps.rs`) searches for leaves to move. It reads only their branches, about a hundredth of that.
pub(super) const SEARCHED: u64 = 64 << 20;

/// A step moves about this many bytes of leaves.
const MOVED: u64 = 4 << 20;

/// Returns the offset at which a file with pages of `used` bytes could end: with space for redb's own tables and for the pages that each step
/// replaces.
pub(super) fn end(used: u64) -> u64 {
    used.saturating_add(used / 64).saturating_add(ROOM)
}

/// Moves leaves of a group that lie beyond `end`, about [`MOVED`] bytes. `commit` makes the transaction durable. Returns how many leading leaves of
/// the group are done.
pub(super) fn move_to_front(
    database: &Database,
    storage: &dyn StorageBackend,
    group: Group<'_>,
    end: u64,
    commit: impl FnOnce(WriteTransaction) -> Result<()>,
) -> Result<usize> {
    let (mut moved, mut bytes, mut seen) = (Vec::new(), 0, 0);
    for leaf in group.leaves {
        if leaf.end > end {
            if bytes >= MOVED {
                break;
            }
            bytes += leaf.length;
            moved.push(leaf);
        }
        seen += 1;
    }
    if !moved.is_empty() {
        // redb would give a damaged page a new checksum.
        pages::read_leaves(storage, &moved)?;
        let transaction = database.begin_write().map_err(error::storage)?;
        write_again(&transaction, group.table, &moved)?;
        commit(transaction)?;
    }
    Ok(seen)
}

/// Rewrites the first entry of each leaf.
fn write_again(transaction: &WriteTransaction, name: &str, leaves: &[&LeafPlace]) -> Result<()> {
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
