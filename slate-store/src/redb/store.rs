use std::{
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
};

use ::redb::StorageBackend;

use super::{
    Options, RedbSnapshot, Verification, backup,
    open::{self, OpenedFile},
    writer::RedbWriter,
};
use crate::{
    BackupProgress, CacheReads, Capabilities, Changes, Checked, Compaction, Durability, LocalStore, OldestSnapshot,
    Optimistic, Result, Size, SizeDetail, Version, files,
};

/// A database in a redb file.
pub type RedbStore = Optimistic<LocalRedb>;

/// A redb file.
pub struct LocalRedb {
    writer: RedbWriter,
}

impl RedbStore {
    /// Opens the database at `path` or creates it, depending on `options`. Creation is atomic: if it fails or the
    /// process crashes, `path` has a complete database or nothing. After a crash, opening is quick unless
    /// [`Options::recovery`] selects otherwise.
    ///
    /// # Errors
    /// Each error names the path. [`Missing`](crate::Error::Missing): the directory does not exist, or with
    /// [`Access::Open`](crate::Access::Open) or [`ReadOnly`](crate::Access::ReadOnly) the file does
    /// not. [`WrongFormat`](crate::Error::WrongFormat): a directory, an empty file, not a redb file, or one that Slate
    /// did not create. [`NewerVersion`](crate::Error::NewerVersion): written by a later version of redb or Slate.
    /// [`Locked`](crate::Error::Locked): already open in this or another process, without
    /// [`Sharing::WithReaders`](super::Sharing::WithReaders) or for writing. [`Unsupported`](crate::Error::Unsupported): the
    /// platform cannot share files. [`ReadOnly`](crate::Error::ReadOnly):
    /// the medium or the permissions forbid writing, or a database opened read-only needs repair.
    /// [`Corrupt`](crate::Error::Corrupt) and [`Full`](crate::Error::Full) as documented there; `Corrupt` for any damaged page
    /// with [`Verification::WhenOpened`].
    pub fn open(path: &Path, options: &Options) -> Result<Self> {
        Self::of(open::at(path, options)?, options)
    }

    /// Opens or creates a database in storage that the caller supplies, for example to inject faults in tests. A
    /// database is created if the storage is empty. A crash during creation can leave storage that is neither empty nor
    /// a database.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does, without a path. [`Unsupported`](crate::Error::Unsupported) with
    /// [`ReadOnly`](crate::Access::ReadOnly).
    pub fn open_over(storage: impl StorageBackend, options: &Options) -> Result<Self> {
        Self::of(open::over(storage, options)?, options)
    }

    fn of(opened: OpenedFile, options: &Options) -> Result<Self> {
        let writer = RedbWriter::new(opened, options)?;
        if options.verification == Verification::WhenOpened {
            writer.refuse_damage("the database was not opened")?;
        }
        Ok(Self::over(LocalRedb { writer }))
    }
}

impl LocalStore for LocalRedb {
    type Snapshot = RedbSnapshot;

    fn capabilities(&self) -> Capabilities {
        let exclusive = !self.writer.follows();
        Capabilities { name: "redb", exclusive, persistent: true, backup: true, ..Capabilities::MINIMAL }
    }

    fn snapshot(&self) -> Result<RedbSnapshot> {
        self.writer.snapshot()
    }

    fn check_writable(&self) -> Result<()> {
        self.writer.check_writable()
    }

    fn apply(&self, changes: &mut Changes<'_>, durability: Durability) -> Result<Version> {
        self.writer.apply(changes, durability)
    }

    fn flush(&self) -> Result<()> {
        self.writer.flush()
    }

    fn backup(&self, to: &Path) -> Result<()> {
        self.backup_while(to, &mut |_, _| ControlFlow::Continue(())).map(drop)
    }

    /// Compares all pages with their checksums first, so that a copy has no damage that its own checksums would hide.
    fn backup_while(&self, to: &Path, progress: BackupProgress<'_>) -> Result<ControlFlow<()>> {
        self.writer.refuse_damage("nothing was copied")?;
        let snapshot = self.snapshot()?;
        let mut panic = None;
        let mut progress = |copied, all| {
            catch_unwind(AssertUnwindSafe(|| progress(copied, all))).unwrap_or_else(|payload| {
                panic = Some(payload);
                ControlFlow::Break(())
            })
        };
        let written = snapshot.guarded(|| backup::write(&snapshot, to, &mut progress));
        // Resumes a panic of the caller's code outside of the guard, which would count it as one of redb and refuse later writes.
        panic.map_or(written, |payload| resume_unwind(payload))
    }

    /// Fails with [`Conflict`](crate::Error::Conflict) while a snapshot is open. All pages are compared with their checksums first.
    fn compact(&self) -> Result<()> {
        self.writer.compact()
    }

    /// A file of up to 256 MiB, and one that is shared with readers, is compacted as a whole.
    fn compact_step(&self, done: Option<Compaction>) -> Result<Option<Compaction>> {
        self.writer.compact_step(done)
    }

    /// Compares all pages with redb's checksums.
    fn check(&self, visitor: &mut dyn FnMut(Checked) -> ControlFlow<()>) -> Result<()> {
        self.writer.check(visitor)
    }

    fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        let oldest = self.writer.oldest_snapshot()?;
        // The estimate can exceed the file: redb reuses replaced pages that no snapshot shows.
        let length = self.writer.space.length();
        let held_bytes = oldest.held_bytes.map(|held| length.map_or(held, |length| held.min(length)));
        Some(OldestSnapshot { held_bytes, ..oldest })
    }

    fn cache_reads(&self) -> CacheReads {
        let file_bytes = Some(self.writer.opened.transferred.read());
        CacheReads { file_bytes, ..CacheReads::default() }
    }

    /// Does not report `data`, because that would read every page. Pages of redb's own tables, and those that only snapshots need, count as free.
    /// For storage supplied by the caller nothing is reported.
    fn size(&self, detail: SizeDetail) -> Result<Size> {
        let Some(path) = &self.writer.opened.path else { return Ok(Size::default()) };
        let metadata = path.metadata().map_err(|error| files::failed(error, "while taking its size", path))?;
        let free = match detail {
            SizeDetail::Known => None,
            SizeDetail::Measured(_) => self.writer.synced_used_bytes()?.map(|used| metadata.len().saturating_sub(used)),
        };
        Ok(Size { on_disk: Some(metadata.len()), free, ..Size::default() })
    }
}
