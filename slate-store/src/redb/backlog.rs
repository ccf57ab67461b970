//! A storage that goes on when the device is full: what does not fit is buffered in memory, in the order of syncs, and written to the device
//! when there is room.
//!
//! redb accepts nothing after a write that failed, not even reads of pages that are not in its cache. So it does not learn that the device
//! is full: it completes the commit, [`Writer`](super::writer::Writer) undoes the commit by another one and returns
//! [`Full`](crate::Error::Full), and both are in the backlog. The device has the commit before, and every snapshot is read as before.
//!
//! ```text
//! device         epoch 1             epoch 2              epoch 3 (open)
//! commit 7   ←   pages of 8, sync ←  header of 8, sync ←  pages of 9, which undoes 8, …
//! ```
//!
//! Writing out one epoch after the other, each with its sync, is what redb would have done. So a crash in between leaves a complete commit,
//! as any crash does.
//!
//! A sync that fails is an error for redb: which of the writes before it the device has is not known, also of those that were not buffered.
//! So the backlog is never written out any more, and the file is not marked as closed properly.

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

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Backlog {
    device: Arc<dyn StorageBackend>,
    /// Whether anything is buffered in memory. Set and cleared under the lock of `buffered`.
    is_behind: AtomicBool,
    buffered: RwLock<Buffered>,
    /// Odd while redb may show a commit that is going to be undone.
    undoing: AtomicU64,
    /// Held by [`Undoable`]. Its holder takes no lock of the layer above, whose callers wait for it.
    undoable: Mutex<()>,
}

#[derive(Debug, Default)]
struct Buffered {
    /// The oldest first. All but the last one end with a sync.
    epochs: VecDeque<Epoch>,
    /// The length of the storage, while anything is buffered.
    length: u64,
    /// The most bytes that are buffered. 0 while the storage is opened or closed: then redb gets the errors of the device.
    limit: u64,
    /// Whether a commit is being made that is undone if it does not fit.
    is_undoable: bool,
    /// The system's number of the error that the device was full.
    full: Option<i32>,
    /// The kind of the error that ended writing to the device; after it nothing is written any more.
    failed: Option<io::ErrorKind>,
}

/// A commit that is undone if it does not fit. When this is dropped, also after an error or a panic, the commit is undone or has failed, and
/// snapshots are opened again.
#[derive(Debug)]
pub(super) struct Undoable<'b> {
    backlog: &'b Backlog,
    _held: MutexGuard<'b, ()>,
}

impl Undoable<'_> {
    /// Ends the commit. Returns whether it has to be undone.
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

/// What has become of the backlog.
#[derive(Debug)]
pub(super) enum Cleared {
    /// The device has everything.
    All,
    /// There is still no room.
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

    /// From now on buffers up to `limit` bytes that do not fit. 0: redb gets the errors of the device.
    pub(super) fn buffer_up_to(&self, limit: u64) {
        self.lock_buffered().limit = limit;
    }

    /// Returns whether the device lacks something that redb has written.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::SeqCst)
    }

    /// Returns the error of the device that was full.
    pub(super) fn full(&self) -> io::Error {
        self.read_buffered().full.map_or_else(|| io::ErrorKind::StorageFull.into(), io::Error::from_raw_os_error)
    }

    /// Begins a commit that is undone if it does not fit; `None` while there is a backlog, beside which it must not be made.
    pub(super) fn begin_undoable(&self) -> Option<Undoable<'_>> {
        let held = self.lock_undoable();
        let mut buffered = self.lock_buffered();
        buffered.is_undoable = !self.is_behind();
        buffered.is_undoable.then_some(Undoable { backlog: self, _held: held })
    }

    /// Returns when no commit is being undone, which happens in memory.
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

    /// Writes what is buffered to the device. To be called by one thread at a time. Reads go on meanwhile.
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
            // Readers make room in redb's cache, and thereby write, at any time.
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

    /// Calls `direct`, unless something is buffered. If it finds the device full, or something is buffered, calls `buffer`.
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
        // Again under the lock: the backlog may have been written out meanwhile.
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

    /// Returns the error of a write that is not buffered.
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
            // The rest of the first block and of the last one is what they have now.
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

    /// Readers write pages out at any time, also while the backlog is written out.
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
