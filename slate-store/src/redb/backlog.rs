//! A storage that continues when the device is full: writes that do not fit are buffered in memory, in the order of syncs, and written to the device
//! when it has space again.
//!
//! redb accepts nothing after a failed write, not even reads of pages that are not in its cache. So no write of redb fails when the device is full:
//! redb completes the commit. [`RedbWriter`](super::writer::RedbWriter) undoes this commit by another one and returns [`Full`](crate::Error::Full); both
//! commits are in the backlog. The device still has the commit before them, and every snapshot stays readable.
//!
//! ```text
//! device         epoch 1             epoch 2              epoch 3 (open)
//! commit 7   ←   pages of 8, sync ←  header of 8, sync ←  pages of 9, which undoes 8, …
//! ```
//!
//! The epochs are written one after the other, each with its sync, as redb would have written them. So a crash in between leaves a complete commit,
//! as any crash does.
//!
//! A failed sync is an error for redb: it is unknown which of the writes before it the device has, including those that were not buffered. After
//! that the backlog is never written out, and the file is not marked as closed properly.

mod epoch;

use std::{
    collections::VecDeque,
    io,
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use ::redb::{BackendError, StorageBackend};

use self::epoch::Epoch;
use crate::files;

/// A storage that buffers the writes for which the device has no space; see the [module](self).
#[derive(Debug)]
pub(super) struct Backlog {
    device: Arc<dyn StorageBackend>,
    /// Whether anything is buffered in memory. Set and cleared under the lock of `buffered`.
    is_behind: AtomicBool,
    buffered: RwLock<Buffered>,
    /// Odd while snapshots may show a commit that will be undone.
    undoing: AtomicU64,
    /// Held by [`Undoable`]. Its holder must not take a lock of the layers above: holders of these locks wait for this one.
    undoable: Mutex<()>,
}

#[derive(Debug, Default)]
struct Buffered {
    /// Ordered from oldest to newest. All but the last end with a sync.
    epochs: VecDeque<Epoch>,
    /// The length of the storage with the buffered writes, in bytes. Only meaningful while something is buffered.
    length: u64,
    /// Maximum number of buffered bytes. 0 while the storage is opened or closed: then redb receives the errors of the device.
    limit: u64,
    /// Whether the current commit is undone if it does not fit.
    is_undoable: bool,
    /// The operating system's error code of the last "device full" error.
    full: Option<i32>,
    /// The kind of the error that ended writing to the device. Once set, nothing more is written.
    failed: Option<io::ErrorKind>,
}

/// A commit that is undone if it does not fit. When this is dropped, also after an error or a panic, the commit was made, was undone or has failed,
/// and snapshots can be opened again.
#[derive(Debug)]
pub(super) struct Undoable<'b> {
    backlog: &'b Backlog,
    _held: MutexGuard<'b, ()>,
}

impl Undoable<'_> {
    /// Ends the commit. Returns whether it did not fit, so that it has to be undone.
    pub(super) fn end(&self) -> bool {
        self.backlog.lock_buffered().is_undoable = false;
        self.backlog.stable().is_none()
    }
}

impl Drop for Undoable<'_> {
    fn drop(&mut self) {
        if self.end() {
            self.backlog.undoing.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// The result of clearing the backlog.
#[derive(Debug)]
pub(super) enum Cleared {
    /// The device has everything.
    All,
    /// The device is still full.
    Full(io::Error),
    /// The device has failed in another way.
    Failed(io::Error),
}

impl Backlog {
    pub(super) fn new(device: impl StorageBackend) -> Arc<Self> {
        Arc::new(Self {
            device: Arc::new(device),
            is_behind: AtomicBool::new(false),
            buffered: RwLock::default(),
            undoing: AtomicU64::new(0),
            undoable: Mutex::default(),
        })
    }

    /// Sets how many bytes that do not fit are buffered. With 0, redb receives the errors of the device.
    pub(super) fn buffer_up_to(&self, limit: u64) {
        self.lock_buffered().limit = limit;
    }

    /// Returns whether the device lacks writes of redb.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::SeqCst)
    }

    /// Returns the last "device full" error.
    pub(super) fn full(&self) -> io::Error {
        self.read_buffered().full.map_or_else(|| io::ErrorKind::StorageFull.into(), io::Error::from_raw_os_error)
    }

    /// Begins a commit that is undone if it does not fit; `None` while there is a backlog: then no such commit may begin.
    pub(super) fn begin_undoable(&self) -> Option<Undoable<'_>> {
        let held = self.lock_undoable();
        let mut buffered = self.lock_buffered();
        buffered.is_undoable = !self.is_behind();
        buffered.is_undoable.then_some(Undoable { backlog: self, _held: held })
    }

    /// Waits until no commit is being undone. The wait is short, because undoing happens in memory.
    pub(super) fn wait_until_undone(&self) {
        drop(self.lock_undoable());
    }

    fn lock_undoable(&self) -> MutexGuard<'_, ()> {
        self.undoable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a number that changes when a commit does not fit, and again when it was undone; `None` in between. A snapshot shows no
    /// such commit if the number was the same before it was opened and afterwards.
    pub(super) fn stable(&self) -> Option<u64> {
        Some(self.undoing.load(Ordering::SeqCst)).filter(|undoing| undoing.is_multiple_of(2))
    }

    /// Writes the buffer to the device. Must be called by one thread at a time. Reads continue meanwhile.
    pub(super) fn clear(&self) -> Cleared {
        while self.is_behind() {
            let buffered = self.read_buffered();
            if let Some(failed) = buffered.failed {
                return Cleared::Failed(failed.into());
            }
            let (Some(first), is_last) = (buffered.epochs.front(), buffered.epochs.len() == 1) else { break };
            if let Err(error) = first.write_to(&*self.device) {
                drop(buffered);
                return match files::is_full(error.kind()) {
                    true => Cleared::Full(error),
                    false => self.failed(error),
                };
            }
            if !is_last && let Err(error) = self.device.sync_data() {
                drop(buffered);
                return self.failed(error);
            }
            let changes = first.changes();
            drop(buffered);
            let mut buffered = self.lock_buffered();
            // Readers can evict dirty pages of redb's cache, and so write, at any time.
            if buffered.epochs.front().is_some_and(|first| first.changes() == changes) {
                buffered.epochs.pop_front();
                self.is_behind.store(!buffered.epochs.is_empty(), Ordering::SeqCst);
            }
        }
        Cleared::All
    }

    /// Ends writing to the device for good, and lets redb's own writes fail.
    fn failed(&self, error: io::Error) -> Cleared {
        let mut buffered = self.lock_buffered();
        (buffered.failed, buffered.limit) = (Some(error.kind()), 0);
        Cleared::Failed(error)
    }

    fn read_buffered(&self) -> RwLockReadGuard<'_, Buffered> {
        // No code under this lock can panic between two dependent updates.
        self.buffered.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_buffered(&self) -> RwLockWriteGuard<'_, Buffered> {
        self.buffered.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `direct`, or `buffer` if something is buffered already or the device is full. Fails if the limit of the buffer is reached.
    fn or_buffer(
        &self,
        direct: impl Fn() -> io::Result<()>,
        buffer: impl FnOnce(&mut Buffered) -> io::Result<()>,
    ) -> io::Result<()> {
        if !self.is_behind() {
            match direct() {
                Err(error) if files::is_full(error.kind()) => {}
                done => return done,
            }
        }
        let mut buffered = self.lock_buffered();
        // Checks again under the lock: the backlog may have been cleared meanwhile.
        let full = match self.is_behind() {
            true => None,
            false => match direct() {
                Err(error) if files::is_full(error.kind()) => Some(error),
                done => return done,
            },
        };
        if let Some(full) = &full {
            buffered.full = full.raw_os_error();
        }
        if buffered.bytes() >= buffered.limit {
            return Err(full.unwrap_or_else(|| buffered.refusal()));
        }
        if !self.is_behind() {
            buffered.length = self.device.len()?;
            buffered.epochs.push_back(Epoch::default());
            self.is_behind.store(true, Ordering::SeqCst);
            if buffered.is_undoable && self.stable().is_some() {
                self.undoing.fetch_add(1, Ordering::SeqCst);
            }
        }
        buffer(&mut buffered)
    }
}

impl Buffered {
    fn bytes(&self) -> u64 {
        self.epochs.iter().map(Epoch::bytes).sum()
    }

    /// Returns the error of a write that can be neither written nor buffered.
    fn refusal(&self) -> io::Error {
        self.failed.unwrap_or(io::ErrorKind::StorageFull).into()
    }

    /// Reads as if everything were on the device.
    fn read(&self, device: &dyn StorageBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.saturating_add(length(out));
        if end > self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let on_device = usize::try_from(device.len()?.saturating_sub(offset)).unwrap_or(usize::MAX).min(out.len());
        let (old, new) = out.split_at_mut(on_device);
        if !old.is_empty() {
            device.read(offset, old)?;
        }
        new.fill(0);
        self.epochs.iter().for_each(|epoch| epoch.overlay(offset, out));
        Ok(())
    }
}

impl StorageBackend for Backlog {
    fn len(&self) -> io::Result<u64> {
        if self.is_behind() {
            let buffered = self.read_buffered();
            if self.is_behind() {
                return Ok(buffered.length);
            }
        }
        self.device.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.is_behind() {
            let buffered = self.read_buffered();
            if self.is_behind() {
                return buffered.read(&*self.device, offset, out);
            }
        }
        self.device.read(offset, out)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let buffer = |buffered: &mut Buffered| {
            // The first and the last block are completed with their current content.
            let (start, end) = epoch::blocks_around(offset, data.len());
            let mut whole = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
            let stored = usize::try_from(buffered.length.saturating_sub(start)).unwrap_or(usize::MAX).min(whole.len());
            if length(data) < end - start
                && let Some(stored) = whole.get_mut(..stored)
            {
                buffered.read(&*self.device, start, stored)?;
            }
            let at = usize::try_from(offset - start).map_err(io::Error::other)?;
            if let Some(changed) = whole.get_mut(at..at + data.len()) {
                changed.copy_from_slice(data);
            }
            if let Some(last) = buffered.epochs.back_mut() {
                last.write(start, &whole);
            }
            Ok(())
        };
        self.or_buffer(|| self.device.write(offset, data), buffer)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let buffer = |buffered: &mut Buffered| {
            buffered.length = length;
            if let Some(last) = buffered.epochs.back_mut() {
                last.set_len(length);
            }
            Ok(())
        };
        self.or_buffer(|| self.device.set_len(length), buffer)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.is_behind() {
            let mut buffered = self.lock_buffered();
            if self.is_behind() {
                if buffered.limit == 0 {
                    return Err(buffered.refusal());
                }
                buffered.epochs.push_back(Epoch::default());
                return Ok(());
            }
        }
        self.device.sync_data()
    }

    fn close(&self) -> io::Result<()> {
        self.device.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.device.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.device.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.device.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.device.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.device.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.device.query_lock_range(start, end)
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use std::{sync::Barrier, thread};

    use ::redb::backends::InMemoryBackend;

    use super::*;

    /// A device that is full until there is room.
    #[derive(Debug)]
    pub(in crate::redb) struct Device {
        bytes: InMemoryBackend,
        has_room: Arc<AtomicBool>,
    }

    impl Device {
        pub(in crate::redb) fn new(has_room: &Arc<AtomicBool>) -> Self {
            Self { bytes: InMemoryBackend::new(), has_room: Arc::clone(has_room) }
        }
    }

    impl StorageBackend for Device {
        fn len(&self) -> io::Result<u64> {
            self.bytes.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.bytes.read(offset, out)
        }

        fn set_len(&self, length: u64) -> io::Result<()> {
            self.bytes.set_len(length)
        }

        fn sync_data(&self) -> io::Result<()> {
            self.bytes.sync_data()
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            match self.has_room.load(Ordering::SeqCst) {
                true => self.bytes.write(offset, data),
                false => Err(io::ErrorKind::StorageFull.into()),
            }
        }
    }

    /// Readers evict dirty pages, and so write, at any time, even while the backlog is written out.
    #[test]
    fn a_write_beside_the_end_of_the_backlog_begins_no_other_one() {
        let has_room = Arc::new(AtomicBool::new(true));
        let backlog = Backlog::new(Device::new(&has_room));
        backlog.set_len(1 << 20).unwrap();
        backlog.buffer_up_to(1 << 20);
        for round in 0..3_000 {
            has_room.store(false, Ordering::SeqCst);
            backlog.write(0, &[1; 4096]).unwrap();
            assert!(backlog.is_behind());
            has_room.store(true, Ordering::SeqCst);
            let start = Barrier::new(2);
            thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    (1..20).for_each(|page| backlog.write(page << 12, &[2; 4096]).unwrap());
                });
                start.wait();
                assert!(matches!(backlog.clear(), Cleared::All));
            });
            assert!(!backlog.is_behind(), "in round {round}, although the device has room");
        }
    }
}
