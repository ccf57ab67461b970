use std::{
    io,
    ops::Bound,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use ::redb::{BackendError, StorageBackend};

use super::{error::DamagedFreePages, pages};

/// The bytes that redb has read from its storage, after misses of its cache, and has written to it.
#[derive(Debug, Default)]
pub(super) struct Transferred {
    read: AtomicU64,
    written: AtomicU64,
}

impl Transferred {
    pub(super) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

/// A storage that counts the bytes that redb reads and writes. If it is empty when redb opens it, redb creates a file with [smaller
/// regions](pages::with_new_regions). Writes fail if the file's [list of free pages is damaged](pages::damage_of_free_pages): redb could overwrite
/// pages that are in use, at the latest when it closes the file.
#[derive(Debug)]
pub(super) struct CountedStorage {
    /// Shared, because pages are also read to check them.
    storage: Arc<dyn StorageBackend>,
    transferred: Arc<Transferred>,
    is_new: bool,
    /// The reason why redb must not write, if any. Determined at its first write, when redb has locked the file.
    damaged_free_pages: OnceLock<Option<String>>,
}

impl CountedStorage {
    pub(super) fn new(storage: Arc<dyn StorageBackend>, transferred: &Arc<Transferred>) -> io::Result<Self> {
        let is_new = storage.len()? == 0;
        let transferred = Arc::clone(transferred);
        let damaged_free_pages = if is_new { OnceLock::from(None) } else { OnceLock::new() };
        Ok(Self { storage, transferred, is_new, damaged_free_pages })
    }

    fn check_free_pages(&self) -> io::Result<()> {
        let damage = match self.damaged_free_pages.get() {
            Some(damage) => damage,
            None => {
                let damage = pages::damage_of_free_pages(&*self.storage)?;
                self.damaged_free_pages.get_or_init(|| damage)
            }
        };
        damage.as_ref().map_or(Ok(()), |damage| Err(io::Error::other(DamagedFreePages(damage.clone()))))
    }
}

impl StorageBackend for CountedStorage {
    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.storage.read(offset, out)?;
        self.transferred.read.fetch_add(length(out), Ordering::Relaxed);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check_free_pages()?;
        let new_header = if self.is_new && offset == 0 { pages::with_new_regions(data) } else { None };
        self.storage.write(offset, new_header.as_deref().unwrap_or(data))?;
        self.transferred.written.fetch_add(length(data), Ordering::Relaxed);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.check_free_pages()?;
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

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
