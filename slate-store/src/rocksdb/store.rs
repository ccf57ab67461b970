use std::{
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ::rocksdb::properties;

use super::{Options, RocksSnapshot, backup, folder, open, writer::RocksDbWriter};
use crate::{
    Capabilities, Changes, Durability, Flushing, LocalStore, OldestSnapshot, Optimistic, Result, Size, SizeDetail,
    Version,
};

/// A database in a RocksDB folder.
pub type RocksStore = Optimistic<LocalRocks>;

/// A RocksDB folder.
pub struct LocalRocks {
    writer: RocksDbWriter,
}

impl RocksStore {
    /// Opens the database in the directory at `path` or creates it, depending on `options`. After a crash, opening
    /// reads the log since the last flush: usually at most 64 MiB.
    ///
    /// RocksDB runs background threads, which flush its write buffers and merge files.
    ///
    /// # Errors
    /// Each error names the path. [`Missing`](crate::Error::Missing): the parent directory does not exist, or with
    /// [`Access::Open`](crate::Access::Open) or [`ReadOnly`](crate::Access::ReadOnly) the database does
    /// not. [`WrongFormat`](crate::Error::WrongFormat): a file, a directory with other content, or a RocksDB database
    /// that Slate did not create. [`NewerVersion`](crate::Error::NewerVersion): written by a later version of RocksDB
    /// or Slate. [`Locked`](crate::Error::Locked): already open in this or another process, and one of the two writes.
    /// [`ReadOnly`](crate::Error::ReadOnly): the medium or the permissions forbid writing.
    /// [`Corrupt`](crate::Error::Corrupt) and [`Full`](crate::Error::Full) as documented there.
    pub fn open(path: &Path, options: &Options) -> Result<Self> {
        Ok(Self::over(LocalRocks { writer: RocksDbWriter::new(open::at(path, options)?) }))
    }
}

impl LocalStore for LocalRocks {
    type Snapshot = RocksSnapshot;

    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "rocksdb", exclusive: true, persistent: true, backup: true, ..Capabilities::MINIMAL }
    }

    fn snapshot(&self) -> Result<RocksSnapshot> {
        Ok(RocksSnapshot::open(&self.writer.opened))
    }

    fn check_writable(&self) -> Result<()> {
        self.writer.opened.writable().map(drop)
    }

    /// Dropping a keyspace is one range delete for any number of keys. RocksDB frees their space when it merges files, or in
    /// [`compact`](Self::compact). After a drop, a write buffer of 8 MiB or more is flushed in the background.
    fn apply(&self, changes: &mut Changes<'_>, durability: Durability) -> Result<Version> {
        let version = self.writer.apply(changes)?;
        match durability {
            Durability::Deferred => {}
            Durability::Sync => self.writer.flush()?,
        }
        Ok(version)
    }

    fn flush(&self) -> Result<()> {
        self.writer.flush()
    }

    fn flushing(&self) -> Flushing {
        Flushing::DuringCommits
    }

    /// On the same file system the copy shares the database's files through hard links, because RocksDB never changes
    /// them. On another one they are copied.
    fn backup(&self, to: &Path) -> Result<()> {
        backup::write(&self.writer.opened, to)
    }

    /// Rewrites every file, concurrently with snapshots. Versions that open snapshots see remain.
    fn compact(&self) -> Result<()> {
        self.writer.compact()
    }

    fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        let database = &self.writer.opened.db;
        let version = self.writer.opened.oldest_snapshot()?;
        let last = database.latest_sequence_number();
        let time = database.property_int_value(c"rocksdb.oldest-snapshot-time").ok().flatten();
        // RocksDB returns 0 if the snapshot was closed since its version was read.
        let seconds = time.filter(|seconds| *seconds > 0)?;
        let age =
            SystemTime::now().duration_since(UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?).unwrap_or_default();
        let held_bytes = self.writer.held_since(version).ok();
        (version.0 < last).then_some(OldestSnapshot { version, age, held_bytes })
    }

    /// Does not report `data`: it would have to read every key. `free` is RocksDB's estimate of data that was deleted or replaced and
    /// is still in its tables.
    fn size(&self, _: SizeDetail) -> Result<Size> {
        let opened = &self.writer.opened;
        // Includes the write buffers.
        let cache = u64::try_from(opened.cache.get_usage()).unwrap_or(u64::MAX);
        let readers = opened.property(properties::ESTIMATE_TABLE_READERS_MEM)?;
        let in_memory = cache.saturating_add(readers);
        let on_disk = folder::size(&opened.path)?;
        let tables = opened.property(properties::TOTAL_SST_FILES_SIZE)?;
        let free = tables.saturating_sub(opened.property(properties::ESTIMATE_LIVE_DATA_SIZE)?);
        Ok(Size { on_disk: Some(on_disk), in_memory: Some(in_memory), free: Some(free), data: None })
    }
}
