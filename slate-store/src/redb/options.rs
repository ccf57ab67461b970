use crate::Access;

/// How to open a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub(super) cache_bytes: usize,
    pub(super) access: Access,
    pub(super) recovery: Recovery,
    pub(super) sharing: Sharing,
    pub(super) verification: Verification,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 256 << 20,
            access: Access::default(),
            recovery: Recovery::default(),
            sharing: Sharing::default(),
            verification: Verification::default(),
        }
    }
}

impl Options {
    /// Sets the size in bytes of the cache for pages that were read or will be written. 256 MiB by default.
    #[must_use]
    pub fn cache_bytes(self, cache_bytes: usize) -> Self {
        Self { cache_bytes, ..self }
    }

    /// Sets which access is allowed, and whether a missing database is created. [`Access::CreateOrOpen`] by default.
    #[must_use]
    pub fn access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// Sets how the database recovers after a crash. [`Recovery::WithEachCommit`] by default.
    #[must_use]
    pub fn recovery(self, recovery: Recovery) -> Self {
        Self { recovery, ..self }
    }

    /// Sets which other processes may have the file open. [`Sharing::Exclusive`] by default.
    #[must_use]
    pub fn sharing(self, sharing: Sharing) -> Self {
        Self { sharing, ..self }
    }

    /// Sets when all pages are compared with their checksums. [`Verification::OnRequest`] by default.
    #[must_use]
    pub fn verification(self, verification: Verification) -> Self {
        Self { verification, ..self }
    }
}

/// How a database recovers after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Each `Sync` commit also stores what a fast open needs, which takes a second sync. Opening is fast, but for rare cases such as a crash
    /// during a compaction.
    #[default]
    WithEachCommit,
    /// A `Sync` commit takes one sync. The first open after a crash reads the whole file.
    WhenOpened,
}

/// Which processes may have the file open at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Either one process that writes, or any number that read.
    #[default]
    Exclusive,
    /// One process that writes, and any number that read what it commits. Needs a platform with locks on parts of files
    /// (Linux, macOS, Windows) and a file system on this machine. Every commit is then synced, with two syncs, whatever its
    /// durability: another process must not see a commit that a crash can undo.
    WithReaders,
}

/// When all pages are compared with their checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// By [`Store::check`](crate::Store::check), before a backup and before a compaction.
    #[default]
    OnRequest,
    /// Also when the database is opened, which fails if a page is damaged. Costs reading the whole file.
    WhenOpened,
}
