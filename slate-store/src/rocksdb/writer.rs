use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, Hasher},
    sync::Arc,
};

use ::rocksdb::{BottommostLevelCompaction, CompactOptions, FlushOptions, WriteBatch, WriteBatchIterator, properties};
use ahash::RandomState;

use super::{
    RocksSnapshot,
    commits::{Began, CommitError, Commits, Keys},
    error,
    group_commit::GroupCommit,
    handle::{Db, Opened},
    key,
    write_buffer::WriteBuffer,
};
use crate::{Access, Bounds, Context, Cursor, Durability, Edge, Error, Guard, Keyspace, Result, Version, View};

/// The keys that a transaction guards. Of two guards of one key the stronger one counts.
pub(super) type Guards = BTreeMap<(Keyspace, Box<[u8]>), Guard>;

/// Makes commits: orders them, checks them for conflicts and syncs them.
pub(super) struct Writer {
    pub(super) opened: Arc<Opened>,
    commits: Arc<Commits>,
    group_commit: GroupCommit,
    hasher: RandomState,
}

/// The size in bytes of RocksDB's write buffer from which it is flushed after a keyspace in it is dropped, and when the
/// database is closed. Reads skip the deleted keys of a smaller one quickly, and its log is short.
const MIN_FLUSHED: u64 = 8 << 20;

/// Whether to wait until a flush has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Yes,
    No,
}

impl Writer {
    pub(super) fn new(opened: Opened) -> Self {
        Self {
            opened: Arc::new(opened),
            commits: Arc::default(),
            group_commit: GroupCommit::default(),
            hasher: RandomState::new(),
        }
    }

    /// Begins a transaction. Returns its snapshot and its entry among the open transactions.
    pub(super) fn begin(&self) -> Result<(RocksSnapshot, Began)> {
        self.opened.writable()?;
        self.group_commit.check()?;
        Ok(Commits::begin(&self.commits, || {
            let snapshot = RocksSnapshot::open(&self.opened);
            let version = snapshot.version();
            (snapshot, version)
        }))
    }

    /// Commits a transaction, unless another commit conflicts with it.
    pub(super) fn commit(
        &self,
        began: Began,
        writes: WriteBuffer,
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
                return began.check(&keys).map_err(|error| self.commit_error(error, None, guards));
            }
            // An exclusive guard conflicts as a write does, so it needs its own version.
            batch.put(key::VERSION, []);
        }
        let mut batch = Some(batch);
        let write = || batch.take().map_or(Ok(Version::default()), |batch| self.write(batch));
        let version = began.commit(keys, write).map_err(|error| self.commit_error(error, batch.as_ref(), guards))?;
        if durability == Durability::Sync {
            self.sync(version)?;
        }
        Ok(version)
    }

    /// Names the key of a conflict, which is in the batch or guarded.
    fn commit_error(&self, error: CommitError, batch: Option<&WriteBatch>, guards: &Guards) -> Error {
        let hash = match error {
            CommitError::Store(error) => return error,
            CommitError::Conflict(detail) => return Error::Conflict(Box::new(detail.into())),
            CommitError::SameKey(hash) => hash,
        };
        let context = Context::new("another transaction first committed a change to the same key");
        let guarded = guards.keys().find(|(keyspace, key)| self.hash(*keyspace, key) == hash);
        let mut search = KeySearch { writer: self, hash, found: None };
        if let (None, Some(batch)) = (guarded, batch) {
            batch.iterate(&mut search);
        }
        let found = guarded.map(|(keyspace, key)| (*keyspace, &**key));
        Error::Conflict(Box::new(match found.or(search.found.as_ref().map(|(keyspace, key)| (*keyspace, &**key))) {
            Some((keyspace, key)) => context.on(keyspace, key),
            None => context,
        }))
    }

    fn write(&self, batch: WriteBatch) -> Result<Version> {
        self.group_commit.check()?;
        let db = self.opened.writable()?;
        self.record(db, db.write(batch))
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
            self.group_commit.check()?;
            let mut entries = RocksSnapshot::open(&self.opened).cursor(keyspace, Bounds::ALL)?;
            // A range delete slows reads down until a compaction removes it.
            if !entries.seek(Edge::First)? {
                return Ok(Version(db.latest_sequence_number()));
            }
            let (from, to) = (key::start(keyspace, Bounds::ALL), key::beyond(keyspace));
            self.record(db, db.delete_range_cf(self.opened.family()?, from, to))
        })?;
        // Until the buffer is flushed, the deleted keys stay in it, and every cursor near them, also of neighbouring
        // keyspaces, steps over them one by one.
        self.flush_buffer(Wait::No)?;
        Ok(version)
    }

    /// Writes a large write buffer to a table, in the background unless the caller waits.
    fn flush_buffer(&self, wait: Wait) -> Result<()> {
        if self.opened.property(properties::CUR_SIZE_ACTIVE_MEM_TABLE)? < MIN_FLUSHED {
            return Ok(());
        }
        let mut options = FlushOptions::default();
        options.set_wait(wait == Wait::Yes);
        self.opened.writable()?.flush_opt(&options).map_err(error::storage)
    }

    pub(super) fn flush(&self) -> Result<()> {
        match self.opened.access {
            Access::ReadOnly => Ok(()),
            Access::CreateOrOpen | Access::OpenExisting => self.sync(self.group_commit.last()),
        }
    }

    /// Merges all files into those of the last level, without deleted keys.
    pub(super) fn compact(&self) -> Result<()> {
        let db = self.opened.writable()?;
        self.group_commit.check()?;
        let mut options = CompactOptions::default();
        // Includes the last level, which may hold old versions that an open snapshot needed at the last compaction.
        options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
        options.set_exclusive_manual_compaction(false);
        // The bindings do not report success. RocksDB counts background failures.
        let failures = || self.opened.property(properties::BACKGROUND_ERRORS);
        let before = failures()?;
        db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        if failures()? == before {
            return Ok(());
        }
        let detail = "while merging files; see the file LOG in the database folder";
        Err(Error::Io(Box::new(Context::new(detail).at(&self.opened.path))))
    }

    /// Records the result of a write and returns its version. After an error RocksDB accepts no more writes. Called under
    /// the lock of `commits`, so that the last sequence number is that of the write.
    fn record(&self, db: &Db, written: std::result::Result<(), ::rocksdb::Error>) -> Result<Version> {
        match written {
            Ok(()) => {
                let version = Version(db.latest_sequence_number());
                self.group_commit.set_committed(version);
                Ok(version)
            }
            Err(error) => {
                self.group_commit.failed();
                Err(error::committing(error))
            }
        }
    }

    fn sync(&self, commit: Version) -> Result<()> {
        let db = self.opened.writable()?;
        self.group_commit.wait(commit, || {
            db.flush_wal(true).map_err(|error| {
                let context = Context::new("the device failed; reopen the database to see which commits it has");
                Error::OutcomeUnknown(Box::new(context.because(error)))
            })
        })
    }
}

/// Finds the key with a hash in a batch.
struct KeySearch<'w> {
    writer: &'w Writer,
    hash: u64,
    found: Option<(Keyspace, Box<[u8]>)>,
}

impl KeySearch<'_> {
    fn visit(&mut self, whole: &[u8]) {
        let Some(keyspace) = key::keyspace(whole) else { return };
        if self.found.is_none() && self.writer.hash(keyspace, key::bare(whole)) == self.hash {
            self.found = Some((keyspace, key::bare(whole).into()));
        }
    }
}

impl WriteBatchIterator for KeySearch<'_> {
    fn put(&mut self, key: &[u8], _: &[u8]) {
        self.visit(key);
    }

    fn delete(&mut self, key: &[u8]) {
        self.visit(key);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The table is compressed and smaller than the log, and the next open does not replay the log. The log has
        // everything that the buffer has, so a failure loses nothing.
        let _ = self.flush_buffer(Wait::Yes);
    }
}
