use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, Hasher},
    sync::Arc,
};

use ::rocksdb::{BottommostLevelCompaction, CompactOptions, FlushOptions, WriteBatch, properties};
use ahash::RandomState;

use super::{
    RocksSnapshot,
    commits::{Began, Commits, Keys},
    error,
    handle::Opened,
    key,
    log::Log,
    options::Access,
    writes::Writes,
};
use crate::{Bounds, Context, Cursor, Durability, Edge, Error, Guard, Keyspace, Result, Version, View};

/// The keys that a transaction guards. Of two guards of one key the stronger one counts.
pub(super) type Guards = BTreeMap<(Keyspace, Box<[u8]>), Guard>;

/// What makes commits: the database, the order of commits, and how a commit reaches the device.
pub(super) struct Writer {
    pub(super) opened: Arc<Opened>,
    commits: Arc<Commits>,
    log: Log,
    hasher: RandomState,
}

/// From this size on, in bytes, RocksDB's write buffer is flushed after a drop in it. Skipping the deleted keys of a smaller
/// one takes some milliseconds.
const MIN_FLUSHED: u64 = 8 << 20;

impl Writer {
    pub(super) fn new(opened: Opened) -> Self {
        Self { opened: Arc::new(opened), commits: Arc::default(), log: Log::default(), hasher: RandomState::new() }
    }

    /// Begins a transaction: its snapshot, and what it is to be compared with.
    pub(super) fn begin(&self) -> Result<(RocksSnapshot, Began)> {
        self.opened.writable()?;
        self.log.check()?;
        Ok(Commits::begin(&self.commits, || {
            let snapshot = RocksSnapshot::open(&self.opened);
            let version = snapshot.version();
            (snapshot, version)
        }))
    }

    /// Commits what a transaction wrote, if no other commit conflicts with it.
    pub(super) fn commit(
        &self,
        began: Began,
        writes: Writes,
        guards: &Guards,
        durability: Durability,
    ) -> Result<Version> {
        if writes.is_empty() && guards.is_empty() {
            return Ok(began.version());
        }
        let keyspaces: BTreeSet<Keyspace> =
            writes.keyspaces().chain(guards.keys().map(|(keyspace, _)| *keyspace)).collect();
        let mut keys = Keys { keyspaces: keyspaces.into_iter().collect(), ..Keys::default() };
        let mut batch = writes.into_batch(|keyspace, key| keys.written.push(self.hash(keyspace, key)));
        for ((keyspace, key), guard) in guards {
            let hash = self.hash(*keyspace, key);
            match guard {
                Guard::Shared => keys.shared.push(hash),
                Guard::Exclusive => {
                    keys.written.push(hash);
                    keys.exclusive.push(hash);
                }
            }
        }
        if batch.is_empty() {
            if keys.exclusive.is_empty() {
                return began.check(&keys);
            }
            // An exclusive guard conflicts as a write does, so it needs a version of its own.
            batch.put(key::VERSION, []);
        }
        let (version, number) = began.commit(keys, || self.write(batch))?;
        if durability == Durability::Sync {
            self.sync(number)?;
        }
        Ok(version)
    }

    fn write(&self, batch: WriteBatch) -> Result<(Version, u64)> {
        self.log.check()?;
        let db = self.opened.writable()?;
        let number = self.written(db.write(batch).map_err(error::committing))?;
        Ok((Version(db.latest_sequence_number()), number))
    }

    fn hash(&self, keyspace: Keyspace, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u32(keyspace.0);
        hasher.write(key);
        hasher.finish()
    }

    pub(super) fn drop_keyspace(&self, keyspace: Keyspace) -> Result<Version> {
        let db = self.opened.writable()?;
        let version = self.commits.drop_keyspace(keyspace, || {
            self.log.check()?;
            let mut entries = RocksSnapshot::open(&self.opened).cursor(keyspace, Bounds::ALL)?;
            // Each range delete costs reads something until a compaction removes it.
            if entries.seek(Edge::First)? {
                let (from, to) = (key::start(keyspace, Bounds::ALL), key::beyond(keyspace));
                let family = self.opened.family()?;
                self.written(db.delete_range_cf(family, from, to).map_err(error::committing))?;
            }
            Ok(Version(db.latest_sequence_number()))
        })?;
        self.flush_buffer()?;
        Ok(version)
    }

    /// Lets RocksDB flush a large write buffer in the background. Until then the keys that a range delete removed stay in it,
    /// and every cursor near them, also of neighbouring keyspaces, steps over them one by one.
    fn flush_buffer(&self) -> Result<()> {
        if self.opened.property(properties::CUR_SIZE_ACTIVE_MEM_TABLE)? < MIN_FLUSHED {
            return Ok(());
        }
        let mut options = FlushOptions::default();
        options.set_wait(false);
        self.opened.writable()?.flush_opt(&options).map_err(error::storage)
    }

    pub(super) fn flush(&self) -> Result<()> {
        match self.opened.access {
            Access::ReadOnly => Ok(()),
            Access::CreateOrOpen | Access::OpenExisting => self.sync(self.log.last()),
        }
    }

    /// Merges all files into those of the last level, without what was deleted.
    pub(super) fn compact(&self) -> Result<()> {
        let db = self.opened.writable()?;
        self.log.check()?;
        let mut options = CompactOptions::default();
        // Those of the last level too, which may hold what a snapshot kept when they were made.
        options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
        options.set_exclusive_manual_compaction(false);
        // The bindings do not tell whether it succeeded; RocksDB counts what failed.
        let failures = || self.opened.property(properties::BACKGROUND_ERRORS);
        let before = failures()?;
        db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        if failures()? == before {
            return Ok(());
        }
        let detail = "while merging files; the folder's file LOG tells more";
        Err(Error::Io(Box::new(Context::new(detail).at(&self.opened.path))))
    }

    /// What became of a write to the log: its number, or the error, after which RocksDB writes no more.
    fn written(&self, written: Result<()>) -> Result<u64> {
        match written {
            Ok(()) => Ok(self.log.committed()),
            Err(error) => {
                self.log.failed();
                Err(error)
            }
        }
    }

    fn sync(&self, number: u64) -> Result<()> {
        let db = self.opened.writable()?;
        self.log.wait(number, || {
            db.flush_wal(true).map_err(|error| {
                let context = Context::new("the device failed; open the database again to find out");
                Error::OutcomeUnknown(Box::new(context.because(error)))
            })
        })
    }
}
