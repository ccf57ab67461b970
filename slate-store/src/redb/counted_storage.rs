use std::{
    fs::File,
    io,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ::redb::{BackendError, DatabaseError, StorageBackend, backends::FileBackend};

/// A storage that counts the bytes that redb reads because they are not in its cache, and reads ahead.
#[derive(Debug)]
pub(super) struct CountedStorage<B> {
    storage: B,
    bytes_read: Arc<AtomicU64>,
    #[cfg(target_os = "linux")]
    read_ahead: Option<super::read_ahead::ReadAhead>,
}

impl CountedStorage<FileBackend> {
    /// Uses a file.
    pub(super) fn of_file(file: File, bytes_read: &Arc<AtomicU64>) -> Result<Self, DatabaseError> {
        // A file system that takes no advice does without.
        #[cfg(target_os = "linux")]
        let read_ahead = super::read_ahead::ReadAhead::of(&file).ok();
        Ok(Self {
            #[cfg(target_os = "linux")]
            read_ahead,
            ..Self::new(FileBackend::new(file)?, bytes_read)
        })
    }
}

impl<B: StorageBackend> CountedStorage<B> {
    pub(super) fn new(storage: B, bytes_read: &Arc<AtomicU64>) -> Self {
        Self {
            storage,
            bytes_read: Arc::clone(bytes_read),
            #[cfg(target_os = "linux")]
            read_ahead: None,
        }
    }
}

impl<B: StorageBackend> StorageBackend for CountedStorage<B> {
    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if let Some(ahead) = &self.read_ahead {
            ahead.before_read(offset);
        }
        self.storage.read(offset, out)?;
        self.bytes_read.fetch_add(u64::try_from(out.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.storage.write(offset, data)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.storage.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.storage.sync_data()
    }

    fn close(&self) -> io::Result<()> {
        self.storage.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.storage.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.storage.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.storage.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.storage.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.storage.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.storage.query_lock_range(start, end)
    }
}
