use std::sync::Arc;

use ::rocksdb::{BottommostLevelCompaction, CompactOptions, FlushOptions, Range, WriteBatch, properties};

use super::{
    error,
    handle::OpenedFolder,
    key::{self, Prefixed},
    written::{Amount, Written},
};
use crate::{Access, Bounds, Change, Changes, Context, Error, Result, TooLarge, Version};

/// Makes commits, flushes and compactions.
pub(super) struct RocksDbWriter {
    pub(super) opened: Arc<OpenedFolder>,
    pub(super) written: Written,
}

/// Minimum size in bytes of RocksDB's write buffer for a flush after a keyspace was dropped. Reads skip the deleted keys of a smaller one quickly.
const MIN_FLUSHED: u64 = 8 << 20;

/// Maximum size of a commit in bytes. RocksDB holds it in memory as a whole, including the part that the engine had spilled. Twice the limit of a
/// transaction without a last stage; RocksDB's own limit is 4 GiB.
const LARGEST_COMMIT: usize = 2 << 30;

fn check_size(size: usize) -> Result<()> {
    if size <= LARGEST_COMMIT {
        return Ok(());
    }
    Err(Error::TooLarge(Box::new(TooLarge { what: "commit", size, limit: LARGEST_COMMIT })))
}

/// Whether to wait for the end of a flush.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Yes,
    No,
}

impl RocksDbWriter {
    pub(super) fn new(opened: OpenedFolder) -> Self {
        Self { opened: Arc::new(opened), written: Written::default() }
    }

    /// Writes the changes as one batch, in the order in which they come: RocksDB inserts ascending keys fastest.
    ///
    /// RocksDB numbers the entries of all batches. The version of a commit is the number of its first entry, which is known before the batch is
    /// written. The version of a snapshot is the number of the last entry that it shows.
    pub(super) fn apply(&self, changes: &mut Changes<'_>) -> Result<Version> {
        let db = self.opened.writable()?;
        let (family, version) = (self.opened.family()?, Version(db.latest_sequence_number() + 1));
        let (mut batch, mut has_dropped, mut amount) = (WriteBatch::default(), false, Amount::default());
        changes.each(version, |keyspace, change| {
            match change {
                Change::Writes(writes) => {
                    let mut prefixed = Prefixed::new(keyspace);
                    for (key, value) in writes {
                        let whole = prefixed.with(key);
                        match value {
                            Some(value) => batch.put(whole, value),
                            None => {
                                amount.deletes += 1;
                                batch.delete(whole);
                            }
                        }
                    }
                }
                Change::DeleteRange(bounds) => {
                    has_dropped |= bounds == Bounds::ALL;
                    let end = key::end(keyspace, bounds).unwrap_or_else(|| key::beyond(keyspace));
                    let start = key::start(keyspace, bounds);
                    let sizes = db.get_approximate_sizes(&[Range::new(&start, &end)]);
                    amount.bytes = amount.bytes.saturating_add(sizes.iter().sum());
                    batch.delete_range_cf(family, start, end);
                }
            }
            check_size(batch.size_in_bytes())
        })?;
        if batch.is_empty() {
            // The commit has no writes but an exclusive guard, which conflicts as a write does and so needs a version of its own.
            batch.put(key::VERSION, []);
        }
        amount.bytes = amount.bytes.saturating_add(u64::try_from(batch.size_in_bytes()).unwrap_or(u64::MAX));
        db.write(batch).map_err(error::committing)?;
        self.written.add(version, amount, || self.opened.oldest_snapshot());
        if has_dropped {
            // Until the buffer is flushed, it holds the deleted keys, and every cursor near them, even in neighbouring keyspaces, steps over them
            // one by one. A failure shows at the next commit.
            let _ = self.flush_buffer(MIN_FLUSHED, Wait::No);
        }
        Ok(version)
    }

    /// Returns an estimate of the bytes that are retained because of a snapshot of this version: those of all writes since, even if they were
    /// overwritten meanwhile, but at most the size of the database. A deleted key counts as much as an average entry.
    pub(super) fn held_since(&self, snapshot: Version) -> Result<u64> {
        let property = |name| self.opened.property(name);
        let Amount { bytes, deletes } = self.written.since(snapshot);
        let entries = property(properties::ESTIMATE_NUM_KEYS)?.max(1);
        let all =
            property(properties::TOTAL_SST_FILES_SIZE)?.saturating_add(property(properties::SIZE_ALL_MEM_TABLES)?);
        Ok(bytes.saturating_add(deletes.saturating_mul(all / entries)).min(all))
    }

    /// Flushes RocksDB's write buffer if it has at least `least` bytes; in the background without [`Wait::Yes`].
    fn flush_buffer(&self, least: u64, wait: Wait) -> Result<()> {
        if self.opened.property(properties::CUR_SIZE_ACTIVE_MEM_TABLE)? < least {
            return Ok(());
        }
        let mut options = FlushOptions::default();
        options.set_wait(wait == Wait::Yes);
        self.opened.writable()?.flush_opt(&options).map_err(error::storage)
    }

    /// Syncs the log to the device. Does nothing if the database was opened read-only.
    pub(super) fn flush(&self) -> Result<()> {
        if self.opened.access == Access::ReadOnly {
            return Ok(());
        }
        self.opened.db.flush_wal(true).map_err(|error| {
            let context = Context::new("the device failed; reopen the database to see which commits it has");
            Error::OutcomeUnknown(Box::new(context.because(error)))
        })
    }

    /// Merges all files into those of the last level, without deleted keys.
    pub(super) fn compact(&self) -> Result<()> {
        let db = self.opened.writable()?;
        let mut options = CompactOptions::default();
        // Includes the last level, which may hold old versions that an open snapshot needed during an earlier compaction.
        options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
        options.set_exclusive_manual_compaction(false);
        // The bindings do not return failures, but RocksDB counts them.
        let failures = || self.opened.property(properties::BACKGROUND_ERRORS);
        let before = failures()?;
        db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        if failures()? == before {
            return Ok(());
        }
        let detail = "while merging files; see the file LOG in the database folder";
        Err(Error::Io(Box::new(Context::new(detail).at(&self.opened.path))))
    }
}

impl Drop for RocksDbWriter {
    fn drop(&mut self) {
        // Flushes the write buffer, because damage in a table is found by its checksums, while a damaged log looks like one whose last commits were
        // not synced before a crash: the next open would show an earlier state. The next open would write the same table anyway. The log has all
        // data of the buffer, so a failure loses nothing.
        let _ = self.flush_buffer(0, Wait::Yes);
    }
}
