use std::{collections::BTreeSet, sync::Arc};

use ::rocksdb::{BottommostLevelCompaction, CompactOptions, FlushOptions, properties};

use super::{
    RocksSnapshot,
    commits::{self, Commits, Touched},
    drops::{self, Drops},
    error,
    handle::Opened,
    key,
    log::Log,
    options::Access,
    writes::Writes,
};
use crate::{Bounds, Context, Cursor, Durability, Edge, Error, Keyspace, Result, View, counts::NotedKeys};

/// What makes commits: the database, the notes of what others wrote and dropped, and how a commit reaches the device.
pub(super) struct Writer {
    pub(super) opened: Arc<Opened>,
    commits: Arc<Commits>,
    drops: Arc<Drops>,
    log: Log,
}

/// From so many bytes on a buffer is written out for what was dropped in it. To go through less takes some milliseconds.
const WORTH_A_FILE: u64 = 8 << 20;

/// Where a transaction began among the commits and the drops.
pub(super) struct Start {
    commits: commits::Began,
    drops: drops::Began,
}

impl Writer {
    pub(super) fn new(opened: Opened) -> Self {
        Self { opened: Arc::new(opened), commits: Arc::default(), drops: Arc::default(), log: Log::default() }
    }

    /// Notes a transaction that begins, before its snapshot is taken.
    pub(super) fn begin(&self) -> Result<Start> {
        self.opened.writable()?;
        self.log.check()?;
        Ok(Start { commits: Commits::begin(&self.commits), drops: Drops::begin(&self.drops) })
    }

    /// Commits what a transaction wrote, that relies on the keys of `guards`.
    pub(super) fn commit(
        &self,
        start: Start,
        writes: Writes,
        guards: BTreeSet<(Keyspace, Box<[u8]>)>,
        durability: Durability,
    ) -> Result<()> {
        if writes.is_empty() && guards.is_empty() {
            return Ok(());
        }
        let keyspaces: BTreeSet<Keyspace> =
            writes.keyspaces().chain(guards.iter().map(|(keyspace, _)| *keyspace)).collect();
        let kept = &self.opened.kept;
        let guarded = guards.iter().map(|(keyspace, key)| kept.rows.hash(*keyspace, key)).collect();
        let (mut written, mut counted) = (Vec::new(), NotedKeys::default());
        let batch = writes.into_batch(|keyspace, key| {
            written.push(kept.rows.hash(keyspace, key));
            counted.note(&kept.counts, keyspace, key);
        });
        let (only_guards, written) = (batch.is_empty(), Arc::<[u64]>::from(written));
        let number = start.drops.commit(keyspaces, || {
            self.log.check()?;
            let _claim = start.commits.claim(Touched { written: Arc::clone(&written), guarded })?;
            if only_guards {
                return Ok(None);
            }
            let _writing = kept.writing(&written, &counted);
            self.written(self.opened.writable()?.write(batch).map_err(error::committing)).map(Some)
        })?;
        // Others need not be compared with it while it waits for the device.
        drop(start);
        match (number, durability) {
            (None, _) | (_, Durability::Deferred) => Ok(()),
            (Some(number), Durability::Sync) => self.sync(number),
        }
    }

    pub(super) fn drop_keyspace(&self, keyspace: Keyspace) -> Result<()> {
        let db = self.opened.writable()?;
        self.drops.note(keyspace, || {
            self.log.check()?;
            let mut entries = RocksSnapshot::open(&self.opened).cursor(keyspace, Bounds::ALL)?;
            if !entries.seek(Edge::First)? {
                return Ok(()); // Each range delete costs reads something, until a merge of files takes it away.
            }
            let family = self.opened.family()?;
            let mut counted = NotedKeys::default();
            counted.note_any(keyspace);
            let _writing = self.opened.kept.writing_any(&counted);
            let (from, to) = (key::start(keyspace, Bounds::ALL), key::beyond(keyspace));
            self.written(db.delete_range_cf(family, from, to).map_err(error::committing)).map(drop)
        })?;
        self.write_out()
    }

    /// Lets RocksDB write its buffer to a file, in the background, if there is much in it. What a range delete took away
    /// stays in the buffer until then, and whoever comes near it, from the keyspaces beside it too, goes through it key by key.
    fn write_out(&self) -> Result<()> {
        if self.opened.property(properties::CUR_SIZE_ACTIVE_MEM_TABLE)? < WORTH_A_FILE {
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
