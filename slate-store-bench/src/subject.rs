use std::path::Path;

use slate_bench_harness::{About, Result};

/// A key-value store as the workload uses it: a Slate backend or another store.
///
/// Work is passed as closures, so that stores whose transactions borrow their tables can be used.
pub trait Subject: Sized + Send + Sync + 'static {
    /// Reads one commit, or the latest state on stores without [`Feature::Snapshots`].
    type Reader<'r>: Reader
    where
        Self: 'r;
    /// Writes, and reads its own writes on stores with [`Feature::Transactions`].
    type Writer<'w>: Writer
    where
        Self: 'w;

    /// Returns the name, version and settings for reports.
    fn about() -> About;

    /// Returns the features that the store does not have. Rows that need one are reported as unsupported.
    fn lacks() -> &'static [Feature];

    /// Opens or creates the store in a directory.
    ///
    /// # Errors
    ///
    /// Fails with the store's errors.
    fn open(folder: &Path) -> Result<Self>;

    /// Opens the store without its cache for on-disk data. Returns `None` if that is not supported.
    ///
    /// # Errors
    ///
    /// Fails with the store's errors.
    fn open_uncached(folder: &Path) -> Result<Option<Self>> {
        let _ = folder;
        Ok(None)
    }

    /// Runs a read of one commit.
    ///
    /// # Errors
    ///
    /// Fails with the errors of the store or the work.
    fn read<T>(&self, work: impl FnOnce(&mut Self::Reader<'_>) -> Result<T>) -> Result<T>;

    /// Writes in one transaction, or in one batch on stores without transactions, and commits. A store that retries
    /// conflicts can run the work more than once.
    ///
    /// # Errors
    ///
    /// Fails with the errors of the store or the work. A conflict is an [`Outcome`].
    fn write(&self, durability: Durability, work: impl FnMut(&mut Self::Writer<'_>) -> Result<()>) -> Result<Outcome>;

    /// Inserts entries in ascending order the way the store's own benchmark does: in one transaction or one by one.
    ///
    /// # Errors
    ///
    /// Fails with the store's errors.
    fn fill(&self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        match self.write(Durability::Deferred, |writer| writer.put_sorted(entries))? {
            Outcome::Committed => Ok(()),
            Outcome::Conflict => Err("unexpected conflict".into()),
        }
    }

    /// Writes in a transaction and rolls it back.
    ///
    /// # Errors
    ///
    /// Fails with the errors of the store or the work.
    fn roll_back(&self, work: impl FnOnce(&mut Self::Writer<'_>) -> Result<()>) -> Result<()>;

    /// Flushes all committed data to the device.
    ///
    /// # Errors
    ///
    /// Fails with the store's errors.
    fn flush(&self) -> Result<()>;
}

/// Reads one commit.
pub trait Reader {
    /// Calls `look` with the value of `key`, copied as little as the store's API allows.
    ///
    /// # Errors
    ///
    /// Fails with the store's errors.
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>>;

    /// Calls `look` with the values of many sorted keys and their positions in `keys`.
    ///
    /// # Errors
    ///
    /// Fails with the store's errors.
    fn get_many(&mut self, keys: &[&[u8]], mut look: impl FnMut(usize, &[u8])) -> Result<()> {
        for (place, key) in keys.iter().enumerate() {
            self.get(key, |value| look(place, value))?;
        }
        Ok(())
    }

    /// Calls `visit` with every entry in ascending or descending key order.
    ///
    /// # Errors
    ///
    /// Fails with the store's errors.
    fn scan(&mut self, direction: Direction, visit: impl FnMut(&[u8], &[u8])) -> Result<()>;

    /// Calls `visit` with at most `limit` entries from the first key at or above `start`.
    ///
    /// # Errors
    ///
    /// Fails with the store's errors.
    fn scan_from(&mut self, start: &[u8], limit: usize, visit: impl FnMut(&[u8], &[u8])) -> Result<()>;

    /// Counts the keys from `start` to `end` (exclusive), of which there are at most `most`. Stores without a count use
    /// a scan.
    ///
    /// # Errors
    ///
    /// Fails with the store's errors.
    fn count(&mut self, start: &[u8], end: &[u8], most: usize) -> Result<u64> {
        let mut keys = 0;
        self.scan_from(start, most, |key, _| keys += u64::from(key < end))?;
        Ok(keys)
    }
}

/// Writes in one transaction or batch.
pub trait Writer {
    /// Calls `look` with the value of `key` as this transaction sees it.
    ///
    /// # Errors
    ///
    /// Fails with the store's errors, and on stores without transactions.
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>>;

    /// Sets the value of `key`.
    ///
    /// # Errors
    ///
    /// Fails with the store's errors.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Sets the values of keys in ascending order, with the store's fastest method for that.
    ///
    /// # Errors
    ///
    /// Fails with the store's errors.
    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        entries.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Deletes every key from `start` to `end` (exclusive).
    ///
    /// # Errors
    ///
    /// Fails with the store's errors.
    fn delete_range(&mut self, start: &[u8], end: &[u8]) -> Result<()>;
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Until other readers see it. It reaches the device later, or never on a store in memory.
    Deferred,
    /// Until it is on the device.
    Sync,
}

/// How a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "after a conflict nothing is written"]
pub enum Outcome {
    /// Committed.
    Committed,
    /// Rolled back, because another transaction wrote the same keys first.
    Conflict,
}

/// Direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending.
    Forward,
    /// Descending.
    Back,
}

/// A feature that not every store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// No special feature.
    None,
    /// Scans.
    Scans,
    /// Descending scans.
    BackwardScans,
    /// Reads of one commit.
    Snapshots,
    /// Atomic writes of several keys.
    Batches,
    /// Transactions that detect or prevent conflicts.
    Transactions,
    /// Storage on a device.
    Files,
    /// Deleting a key range without a scan.
    RangeDeletes,
}

impl Feature {
    /// Describes that the feature is missing, for reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Scans => "scans",
            Self::BackwardScans => "scans backward",
            Self::Snapshots => "snapshots",
            Self::Batches => "batches",
            Self::Transactions => "transactions",
            Self::Files => "files",
            Self::RangeDeletes => "range deletes",
        }
    }
}
