use crate::Access;

/// How to open a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub(super) cache_bytes: usize,
    pub(super) write_buffer_bytes: usize,
    pub(super) access: Access,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache_bytes: 256 << 20, write_buffer_bytes: 64 << 20, access: Access::default() }
    }
}

impl Options {
    /// Sets the size in bytes of the cache for blocks that were read, for the filters and indexes of files, and for
    /// [write buffers](Self::write_buffer_bytes). 256 MiB by default.
    #[must_use]
    pub fn cache_bytes(self, cache_bytes: usize) -> Self {
        Self { cache_bytes, ..self }
    }

    /// Sets the size in bytes of a write buffer, which is written to a file when it is full. 64 MiB by default, at
    /// least 64 KiB and at most a quarter of the [cache](Self::cache_bytes). Larger buffers produce larger files and fewer
    /// merges, but opening after a crash reads up to this much log.
    ///
    /// Up to two buffers are in memory: one that is filled while the previous one is written. They take the place of
    /// blocks in the cache.
    #[must_use]
    pub fn write_buffer_bytes(self, write_buffer_bytes: usize) -> Self {
        Self { write_buffer_bytes, ..self }
    }

    /// Returns the size of a write buffer.
    pub(super) fn write_buffer(&self) -> usize {
        self.write_buffer_bytes.min(self.cache_bytes / 4).max(64 << 10)
    }

    /// Sets which access is allowed, and whether a missing database is created. [`Access::CreateOrOpen`] by default.
    #[must_use]
    pub fn access(self, access: Access) -> Self {
        Self { access, ..self }
    }
}
