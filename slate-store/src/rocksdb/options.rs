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
    /// How much memory, in bytes, blocks that were read may take, with the filters and indexes of the files, an eighth of it
    /// for single entries that were read repeatedly, a sixty-fourth for counts. 256 MiB if not said. What was written lately
    /// takes room [besides](Self::write_buffer_bytes).
    #[must_use]
    pub fn cache_bytes(self, cache_bytes: usize) -> Self {
        Self { cache_bytes, ..self }
    }

    /// How much is gathered in memory, in bytes, before it is written to a file. 64 MiB if not said, 64 KiB at least. Larger
    /// buffers make for larger files and fewer merges of them; opening after a crash reads as much from the log.
    ///
    /// Up to twice as much may be in memory: one buffer that is filled while the one before is written out.
    #[must_use]
    pub fn write_buffer_bytes(self, write_buffer_bytes: usize) -> Self {
        Self { write_buffer_bytes, ..self }
    }

    /// What may be done with the database, and whether it may be created. [`Access::CreateOrOpen`] if not said.
    #[must_use]
    pub fn access(self, access: Access) -> Self {
        Self { access, ..self }
    }
}

/// What may be done with a database, and whether it may be created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Read and write; creates the database where there is nothing, or an empty folder.
    #[default]
    CreateOrOpen,
    /// Read and write a database that exists.
    OpenExisting,
    /// Read a database that exists. Many may read it at once; none while one writes.
    ReadOnly,
}
