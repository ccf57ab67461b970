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
    /// The most memory, in bytes, for pages that were read or are to be written. 256 MiB by default.
    #[must_use]
    pub fn cache_bytes(self, cache_bytes: usize) -> Self {
        Self { cache_bytes, ..self }
    }

    /// What may be done with the database, and whether it may be created. [`Access::CreateOrOpen`] if not said.
    #[must_use]
    pub fn access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// When to pay for opening again after a crash. [`Recovery::WhenOpened`] if not said.
    #[must_use]
    pub fn recovery(self, recovery: Recovery) -> Self {
        Self { recovery, ..self }
    }
}

/// What may be done with a database, and whether it may be created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Read and write; creates the database where there is none.
    #[default]
    CreateOrOpen,
    /// Read and write a database that exists.
    OpenExisting,
    /// Read a database that exists and was closed properly. Many may read it at once; none while one writes.
    ReadOnly,
}

/// When to pay for opening again after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Commits are quick; after a crash the first to open the database reads all of it.
    #[default]
    WhenOpened,
    /// Each commit to the device writes down what opening needs, and goes to the device twice; opening is always quick.
    WithEachCommit,
}
