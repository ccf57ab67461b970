/// How to open a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub(super) cache_bytes: usize,
    pub(super) access: Access,
    pub(super) recovery: Recovery,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache_bytes: 256 << 20, access: Access::default(), recovery: Recovery::default() }
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
}

/// The allowed access to a database, and whether a missing one is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Read and write; creates the database if it does not exist.
    #[default]
    CreateOrOpen,
    /// Read and write an existing database.
    OpenExisting,
    /// Read an existing database that was closed properly. Several processes may read it at the same time, but not
    /// while one writes.
    ReadOnly,
}

/// How a database recovers after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Each `Sync` commit also stores what a fast open needs, which takes a second sync. Opening is always fast.
    #[default]
    WithEachCommit,
    /// A `Sync` commit takes one sync. The first open after a crash reads the whole file.
    WhenOpened,
}
