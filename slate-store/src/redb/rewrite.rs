//! Fills sparse pages before a compaction. A page that is split by an insert in its middle stays partly empty, and redb's compaction
//! moves pages without merging them. Entries that are removed and inserted again in their order take full pages.
//!
//! A chunk of entries at a time is rewritten by a durable commit, which changes no key and no value. A crash between two
//! of these commits loses nothing. The pages that one commit frees are reused by the commits after the next one.

use std::ops::Bound;

use ::redb::{
    ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata, TableHandle, TableStats, WriteTransaction,
};

use super::{
    error, format,
    table::{self, Bytes},
};
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
        for (name, table) in tables(transaction)? {
            let stats = table.stats().map_err(error::storage)?;
            pages.used += stats.stored_bytes() + stats.metadata_bytes() + stats.fragmented_bytes();
            if is_sparse(&stats, table.len().map_err(error::storage)?) {
                pages.sparse.push(name);
            }
        }
        Ok(pages)
    }
}

/// Reads all entries, until `is_late` returns `true`. Returns whether all were read.
pub(super) fn is_quick_to_read(transaction: &ReadTransaction, mut is_late: impl FnMut() -> bool) -> Result<bool> {
    /// The number of entries between two calls.
    const ENTRIES: usize = 64;
    for (_, table) in tables(transaction)? {
        for (number, entry) in table.iter().map_err(error::storage)?.enumerate() {
            entry.map_err(error::storage)?;
            if number % ENTRIES == 0 && is_late() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Returns the tables of keyspaces and their names.
fn tables(transaction: &ReadTransaction) -> Result<Vec<(String, ReadOnlyTable<Bytes, Bytes>)>> {
    let handles = transaction.list_tables().map_err(error::storage)?;
    let names = handles.map(|handle| handle.name().to_owned()).filter(|name| !format::is_mark(name));
    names
        .map(|name| {
            let table = transaction.open_table(table::definition(&name)).map_err(error::storage)?;
            Ok((name, table))
        })
        .collect()
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

    use super::{super::table, is_quick_to_read};

    #[test]
    fn reading_stops_when_it_is_late() -> Result<(), Box<dyn std::error::Error>> {
        let database = Database::builder().create_with_backend(InMemoryBackend::new())?;
        let writing = database.begin_write()?;
        for name in ["k1", "k2"] {
            let mut table = writing.open_table(table::definition(name))?;
            for key in 0..1_000_u32 {
                table.insert(&key.to_be_bytes()[..], &[7; 100][..])?;
            }
        }
        writing.commit()?;
        let reading = database.begin_read()?;
        let calls_until_late = |late| {
            let mut calls = 0;
            let is_quick = is_quick_to_read(&reading, || {
                calls += 1;
                calls == late
            });
            is_quick.map(|is_quick| (is_quick, calls))
        };
        // Once for every 64 of the 1,000 entries in each of two tables.
        assert_eq!(calls_until_late(33)?, (true, 32));
        assert_eq!(calls_until_late(20)?, (false, 20));
        assert_eq!(calls_until_late(1)?, (false, 1));
        Ok(())
    }
}
