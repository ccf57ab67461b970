use std::sync::Arc;

use ::rocksdb::{BottommostLevelCompaction, CompactOptions, DEFAULT_COLUMN_FAMILY_NAME, properties};

use super::{
    RocksSnapshot,
    drops::{Began, Drops},
    error,
    handle::{self, Handle, Opened},
    key,
    log::Log,
};
use crate::{Bounds, Context, Cursor, Durability, Edge, Error, Keyspace, Result, View};

/// What makes commits: the database, the notes of what was dropped, and how a commit reaches the device.
pub(super) struct Writer {
    pub(super) opened: Arc<Opened>,
    drops: Arc<Drops>,
    log: Log,
}

impl Writer {
    pub(super) fn new(opened: Opened) -> Self {
        Self { opened: Arc::new(opened), drops: Arc::default(), log: Log::default() }
    }

    /// Notes a transaction that begins, before its snapshot is taken.
    pub(super) fn begin(&self) -> Result<Began> {
        self.opened.writable()?;
        self.log.check()?;
        Ok(Drops::begin(&self.drops))
    }

    /// Commits a transaction that touched those keyspaces.
    pub(super) fn commit(
        &self,
        began: &Began,
        touched: impl IntoIterator<Item = Keyspace>,
        durability: Durability,
        commit: impl FnOnce() -> Result<(), ::rocksdb::Error>,
    ) -> Result<()> {
        let number = began.commit(touched, || {
            self.log.check()?;
            self.written(commit().map_err(error::committing))
        })?;
        match durability {
            Durability::Deferred => Ok(()),
            Durability::Sync => self.sync(number),
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
            let family = handle::family(db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME))?;
            let (from, to) = (key::start(keyspace, Bounds::ALL), key::beyond(keyspace));
            self.written(db.delete_range_cf(family, from, to).map_err(error::committing)).map(drop)
        })
    }

    pub(super) fn flush(&self) -> Result<()> {
        match self.opened.handle {
            Handle::ReadOnly(_) => Ok(()),
            Handle::Writable(_) => self.sync(self.log.last()),
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
            Err(conflict @ Error::Conflict(_)) => Err(conflict),
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
