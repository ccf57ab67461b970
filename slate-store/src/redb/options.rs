use crate::Access;
pub use crate::{Recovery, Sharing, Verification};

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
