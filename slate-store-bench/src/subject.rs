use std::path::Path;

use slate_bench_harness::{About, Result};

/// A store of keys and values, as the workload sees it: Slate on one of its backends, or a peer.
///
/// Work is handed in as closures, so that a store whose transactions borrow their tables needs no tricks to take part.
pub trait Subject: Sized + Send + Sync + 'static {
    /// What reads one commit, or the latest state where there are no snapshots ([`Feature::Snapshots`]).
    type Reader<'r>: Reader
    where
        Self: 'r;
    /// What writes, and reads its own writes where there are transactions ([`Feature::Transactions`]).
    type Writer<'w>: Writer
    where
        Self: 'w;

    /// What reports say was measured.
    fn about() -> About;

    /// What the store does not offer. Rows that need it are reported as not offered.
    fn lacks() -> &'static [Feature];

    /// Opens the store in a folder of its own, or makes it there.
    ///
    /// # Errors
    ///
    /// As the store fails.
    fn open(folder: &Path) -> Result<Self>;

    /// The same with the cache for what lies on the device switched off. `None` where that is not offered.
    ///
    /// # Errors
    ///
    /// As the store fails.
    fn open_uncached(folder: &Path) -> Result<Option<Self>> {
        let _ = folder;
        Ok(None)
    }

    /// Reads one commit.
    ///
    /// # Errors
    ///
    /// As the store or the work fails.
    fn read<T>(&self, work: impl FnOnce(&mut Self::Reader<'_>) -> Result<T>) -> Result<T>;

    /// Writes in one transaction, or in one batch where there are no transactions, and commits it. The work may be done more
    /// than once, where the store is one that does it again on a conflict.
    ///
    /// # Errors
    ///
    /// As the store or the work fails; a conflict is an [`Outcome`].
    fn write(&self, durability: Durability, work: impl FnMut(&mut Self::Writer<'_>) -> Result<()>) -> Result<Outcome>;

    /// Puts entries in ascending order, the way that benches of its own fill it: in one transaction, or one by one.
    ///
    /// # Errors
    ///
    /// As the store fails.
    fn fill(&self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        match self.write(Durability::Deferred, |writer| writer.put_sorted(entries))? {
            Outcome::Committed => Ok(()),
            Outcome::Conflict => Err("a commit conflicts where there is no other".into()),
        }
    }

    /// Writes in a transaction that is rolled back.
    ///
    /// # Errors
    ///
    /// As the store or the work fails.
    fn roll_back(&self, work: impl FnOnce(&mut Self::Writer<'_>) -> Result<()>) -> Result<()>;

    /// Puts all that was committed on the device, out of whatever buffers the store has.
    ///
    /// # Errors
    ///
    /// As the store fails.
    fn flush(&self) -> Result<()>;
}

/// Reads of one commit.
pub trait Reader {
    /// Hands the value of `key` to `look`, as little copied as the store's API allows.
    ///
    /// # Errors
    ///
    /// As the store fails.
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>>;

    /// Hands the values of many sorted keys to `look`, with their places in `keys`.
    ///
    /// # Errors
    ///
    /// As the store fails.
    fn get_many(&mut self, keys: &[&[u8]], mut look: impl FnMut(usize, &[u8])) -> Result<()> {
        for (place, key) in keys.iter().enumerate() {
            self.get(key, |value| look(place, value))?;
        }
        Ok(())
    }

    /// Hands every entry to `visit`, in the order of the keys or against it.
    ///
    /// # Errors
    ///
    /// As the store fails.
    fn scan(&mut self, direction: Direction, visit: impl FnMut(&[u8], &[u8])) -> Result<()>;

    /// Hands at most `limit` entries to `visit`, from the smallest key at or above `start`.
    ///
    /// # Errors
    ///
    /// As the store fails.
    fn scan_from(&mut self, start: &[u8], limit: usize, visit: impl FnMut(&[u8], &[u8])) -> Result<()>;

    /// How many keys there are from `start` up to, and without, `end`, which are `most` at most: by a scan of so many, where a
    /// store has nothing better.
    ///
    /// # Errors
    ///
    /// As the store fails.
    fn count(&mut self, start: &[u8], end: &[u8], most: usize) -> Result<u64> {
        let mut keys = 0;
        self.scan_from(start, most, |key, _| keys += u64::from(key < end))?;
        Ok(keys)
    }
}

/// Writes of one transaction or batch.
pub trait Writer {
    /// Hands the value of `key`, as this transaction sees it, to `look`.
    ///
    /// # Errors
    ///
    /// As the store fails; where there are no transactions.
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>>;

    /// Sets the value of `key`.
    ///
    /// # Errors
    ///
    /// As the store fails.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Sets the values of keys in ascending order, by the quickest way the store has for that.
    ///
    /// # Errors
    ///
    /// As the store fails.
    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        entries.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Deletes every key from `start` up to, and without, `end`.
    ///
    /// # Errors
    ///
    /// As the store fails.
    fn delete_range(&mut self, start: &[u8], end: &[u8]) -> Result<()>;
}

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Once others see it; on the device by and by, or never where the store lies in memory.
    Deferred,
    /// On the device before the commit returns.
    Sync,
}

/// How a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a conflict has written nothing"]
pub enum Outcome {
    /// Others see it.
    Committed,
    /// Another wrote the same keys first; nothing was written.
    Conflict,
}

/// Which way a scan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// In the order of the keys.
    Forward,
    /// Against it.
    Back,
}

/// Something that not every store offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Nothing special.
    None,
    /// To be scanned at all.
    Scans,
    /// To be scanned against the order of the keys.
    BackwardScans,
    /// To be read as of one commit.
    Snapshots,
    /// To write several keys at once or not at all.
    Batches,
    /// To read, write, and be told of a conflict or be kept out of its way.
    Transactions,
    /// To lie on a device.
    Files,
    /// To delete a range of keys, other than by a scan.
    RangeDeletes,
}

impl Feature {
    /// The feature in words, as reports tell that it is missing.
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
