//! Fills sparse pages before a compaction. A page that is split by an insert in its middle stays partly empty, and redb's compaction
//! moves pages without merging them. Entries that are removed and inserted again in their order take full pages.
//!
//! A chunk of entries at a time is rewritten by a durable commit, which changes no key and no value. A crash between two
//! of these commits loses nothing. The pages that one commit frees are reused by the commits after the next one.

use std::{
    ops::Bound,
    time::{Duration, Instant},
};

use ::redb::{ReadTransaction, ReadableTable, ReadableTableMetadata, TableHandle, TableStats, WriteTransaction};

use super::{error, format, table};
use crate::Result;

/// Bytes of keys and values in a chunk.
const CHUNK: usize = 4 << 20;

/// With this many free bytes in the file, rewriting does not lengthen the file.
pub(super) const ROOM: u64 = 4 * CHUNK as u64;

/// The size of redb's pages.
pub(super) const PAGE: u64 = 4 << 10;

/// The least number of pages of a table that is rewritten.
const FEWEST_PAGES: u64 = 16;

/// What a read of all pages has found.
pub(super) struct Pages {
    /// The names of the tables that take fewer pages when they are rewritten.
    pub(super) sparse: Vec<String>,
    /// The bytes of the tables' pages.
    pub(super) used: u64,
}

impl Pages {
    pub(super) fn of(transaction: &ReadTransaction) -> Result<Self> {
        let mut pages = Self { sparse: Vec::new(), used: 0 };
        for handle in transaction.list_tables().map_err(error::storage)? {
            if format::is_mark(handle.name()) {
                continue;
            }
            let table = transaction.open_table(table::definition(handle.name())).map_err(error::storage)?;
            let stats = table.stats().map_err(error::storage)?;
            pages.used += stats.stored_bytes() + stats.metadata_bytes() + stats.fragmented_bytes();
            if is_sparse(&stats, table.len().map_err(error::storage)?) {
                pages.sparse.push(handle.name().to_owned());
            }
        }
        Ok(pages)
    }
}

/// Reads all entries; returns whether that takes no longer than `patience`. Stops when it does.
pub(super) fn is_quick_to_read(transaction: &ReadTransaction, patience: Duration) -> Result<bool> {
    /// The number of entries between two looks at the clock.
    const ENTRIES: usize = 64;
    let begin = Instant::now();
    for handle in transaction.list_tables().map_err(error::storage)? {
        if format::is_mark(handle.name()) {
            continue;
        }
        let table = transaction.open_table(table::definition(handle.name())).map_err(error::storage)?;
        for (number, entry) in table.iter().map_err(error::storage)?.enumerate() {
            entry.map_err(error::storage)?;
            if number % ENTRIES == 0 && begin.elapsed() > patience {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Returns whether more than a fifth of the pages' space is empty, apart from the space at the end of each page in which no further
/// entry fits. Larger entries have pages of their own.
fn is_sparse(stats: &TableStats, entries: u64) -> bool {
    let stored = stats.stored_bytes();
    let entries_per_page = PAGE.saturating_mul(entries) / stored.max(1);
    stats.leaf_pages() >= FEWEST_PAGES
        && entries_per_page >= 2
        && stats.fragmented_bytes() > stored / 4 + stored / entries_per_page
}

/// Rewrites the chunk of entries that follows the key `after`. Returns its last key if more entries follow.
pub(super) fn rewrite_chunk(
    transaction: &WriteTransaction,
    name: &str,
    after: Option<&[u8]>,
) -> Result<Option<Vec<u8>>> {
    let mut table = transaction.open_table(table::definition(name)).map_err(error::storage)?;
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    let (mut entries, mut bytes) = (Vec::new(), 0);
    for entry in table.range::<&[u8]>((from, Bound::Unbounded)).map_err(error::storage)? {
        let (key, value) = entry.map_err(error::storage)?;
        let (key, value) = (key.value().to_vec(), value.value().to_vec());
        bytes += key.len() + value.len();
        entries.push((key, value));
        if bytes >= CHUNK {
            break;
        }
    }
    let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else { return Ok(None) };
    table.retain_in::<&[u8], _>(first.as_slice()..=last.as_slice(), |_, _| false).map_err(error::storage)?;
    let mut gap = table.lower_bound_mut(Bound::Included(first.as_slice())).map_err(error::storage)?;
    for (key, value) in &entries {
        gap.insert_before(key.as_slice(), value.as_slice()).map_err(error::storage)?;
    }
    gap.close().map_err(error::storage)?;
    Ok((bytes >= CHUNK).then(|| last.clone()))
}

#[cfg(test)]
mod tests {
    use ::redb::{Database, ReadableDatabase, backends::InMemoryBackend};

    use super::*;

    #[test]
    fn reading_stops_when_it_takes_too_long() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let writing = database.begin_write().unwrap();
        for name in ["k1", "k2"] {
            let mut table = writing.open_table(table::definition(name)).unwrap();
            (0..1_000_u32).for_each(|key| drop(table.insert(&key.to_be_bytes()[..], &[7; 100][..]).unwrap()));
        }
        writing.commit().unwrap();
        let reading = database.begin_read().unwrap();
        assert!(!is_quick_to_read(&reading, Duration::ZERO).unwrap());
        assert!(is_quick_to_read(&reading, Duration::MAX).unwrap());
    }
}
