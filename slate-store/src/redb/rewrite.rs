//! Fills sparse pages. A page that is split by an insert in its middle stays partly empty, and redb's compaction
//! moves pages without merging them. Entries that are removed and inserted again in their order take full pages, in the first region of
//! the file that has free ones.
//!
//! A step of a compaction (`steps.rs`) reads several of its leaves at the same time, before redb reads them one by one
//! (`pages/leaves.rs`): a device serves several reads in hardly more time than one. If the leaves are sparse, their entries are
//! rewritten. The pages that one commit frees are reused by the commits after the next one.

use std::ops::Bound;

use ::redb::{Database, ReadableTable, StorageBackend, WriteTransaction};

use super::{
    error,
    pages::{self, LeafContent, LeafPlace},
    steps::Group,
    table,
};
use crate::Result;

/// Bytes of leaves that one step (`steps.rs`) reads.
pub(super) const STEP: u64 = 4 << 20;

/// Free bytes in the file with which filling does not lengthen it.
pub(super) const ROOM: u64 = 4 * STEP;

/// The size of redb's pages.
pub(super) const PAGE: u64 = 4 << 10;

/// Minimum number of leaves to rewrite.
const FEWEST_LEAVES: usize = 16;

/// Fills the pages of a group of leaves if they are sparse. `commit` makes the transaction durable.
pub(super) fn fill(
    database: &Database,
    storage: &dyn StorageBackend,
    group: Group<'_>,
    commit: impl FnOnce(WriteTransaction) -> Result<()>,
) -> Result<()> {
    let leaves: Vec<&LeafPlace> = group.leaves.iter().collect();
    if is_sparse(&leaves, &pages::read_leaves(storage, &leaves)?) {
        let up_to = leaves.last().and_then(|last| last.up_to.as_deref());
        if let Some(up_to) = up_to {
            // redb may also rewrite the leaf after the group, and would give a damaged one a new checksum.
            let next = pages::leaves(group.header, storage, group.table, Some(up_to), 1)?;
            pages::read_leaves(storage, &next.iter().collect::<Vec<_>>())?;
        }
        for edge in [group.after, up_to].into_iter().flatten() {
            pages::check_around(group.header, storage, group.table, edge)?;
        }
        let transaction = database.begin_write().map_err(error::storage)?;
        rewrite(&transaction, group.table, group.after, up_to)?;
        commit(transaction)?;
    }
    Ok(())
}

/// Returns whether more than a fifth of the leaves' space is empty, apart from the space at the end of each page in which no further
/// entry fits. `false` for fewer than [`FEWEST_LEAVES`] leaves, or if a page has space for only one entry.
fn is_sparse(leaves: &[&LeafPlace], contents: &[LeafContent]) -> bool {
    let entries: u64 = contents.iter().map(|content| content.entries).sum();
    let stored: u64 = contents.iter().map(|content| content.bytes).sum();
    let needed: u64 = contents.iter().map(|content| content.needed).sum();
    let empty = leaves.iter().map(|leaf| leaf.length).sum::<u64>().saturating_sub(needed);
    let entries_per_page = PAGE.saturating_mul(entries) / stored.max(1);
    contents.len() >= FEWEST_LEAVES && entries_per_page >= 2 && empty > stored / 4 + stored / entries_per_page
}

/// Rewrites the entries with keys greater than `after` and not greater than `up_to`.
fn rewrite(transaction: &WriteTransaction, name: &str, after: Option<&[u8]>, up_to: Option<&[u8]>) -> Result<()> {
    let mut table = transaction.open_table(table::definition(name)).map_err(error::storage)?;
    let within = (after.map_or(Bound::Unbounded, Bound::Excluded), up_to.map_or(Bound::Unbounded, Bound::Included));
    let mut entries = Vec::new();
    for entry in table.range::<&[u8]>(within).map_err(error::storage)? {
        let (key, value) = entry.map_err(error::storage)?;
        entries.push((key.value().to_vec(), value.value().to_vec()));
    }
    let Some((first, _)) = entries.first() else { return Ok(()) };
    table.retain_in::<&[u8], _>(within, |_, _| false).map_err(error::storage)?;
    let mut gap = table.lower_bound_mut(Bound::Included(first.as_slice())).map_err(error::storage)?;
    for (key, value) in &entries {
        gap.insert_before(key.as_slice(), value.as_slice()).map_err(error::storage)?;
    }
    gap.close().map_err(error::storage)
}
