//! A device in memory that can fail, and that loses unsynced writes when its power is cut.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use slate_store::redb::StorageBackend;

/// The bytes that a device writes as a whole.
const SECTOR: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Device(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    bytes: Mutex<Bytes>,
    /// Each counts down to the first operation that fails; all later ones fail, too. 0 disables it.
    write_fails_at: AtomicUsize,
    sync_fails_at: AtomicUsize,
    /// The kind of error of these syncs, if it matters.
    sync_fails_with: Mutex<Option<io::ErrorKind>>,
    read_fails_at: AtomicUsize,
    refusal: Mutex<Option<io::ErrorKind>>,
    /// As the counts above, until the device is full.
    room: AtomicUsize,
    writes: AtomicUsize,
    syncs: AtomicUsize,
    sync_takes: Mutex<Duration>,
}

#[derive(Debug, Default)]
struct Bytes {
    cached: Vec<u8>,
    synced: Vec<u8>,
}

impl Device {
    /// Returns another handle on the same device.
    pub(crate) fn handle(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Returns a device with the contents after a power cut: everything that was synced.
    pub(crate) fn after_power_cut(&self) -> Self {
        Self::holding(self.0.bytes.lock().unwrap().synced.clone())
    }

    /// Returns a device with the contents after a power cut that some of the unsynced sectors survived. `seed` selects them.
    pub(crate) fn after_torn_power_cut(&self, seed: u64) -> Self {
        let bytes = self.0.bytes.lock().unwrap();
        let mut torn = bytes.synced.clone();
        torn.resize(torn.len().max(bytes.cached.len()), 0);
        for (number, (torn, cached)) in torn.chunks_mut(SECTOR).zip(bytes.cached.chunks(SECTOR)).enumerate() {
            let mut hasher = DefaultHasher::new();
            (seed, number).hash(&mut hasher);
            if hasher.finish().is_multiple_of(2) {
                torn[..cached.len()].copy_from_slice(cached);
            }
        }
        Self::holding(torn)
    }

    /// Returns a device with the contents after the process was killed: everything that was written.
    pub(crate) fn after_kill(&self) -> Self {
        Self::holding(self.0.bytes.lock().unwrap().cached.clone())
    }

    fn holding(bytes: Vec<u8>) -> Self {
        let inner = Inner::default();
        *inner.bytes.lock().unwrap() = Bytes { cached: bytes.clone(), synced: bytes };
        Self(Arc::new(inner))
    }

    pub(crate) fn fail_write_after(&self, successes: usize) {
        self.0.write_fails_at.store(successes + 1, Relaxed);
    }

    pub(crate) fn fail_sync_after(&self, successes: usize) {
        self.0.sync_fails_at.store(successes + 1, Relaxed);
    }

    pub(crate) fn fail_sync_after_with(&self, successes: usize, kind: io::ErrorKind) {
        *self.0.sync_fails_with.lock().unwrap() = Some(kind);
        self.fail_sync_after(successes);
    }

    pub(crate) fn fail_read_after(&self, successes: usize) {
        self.0.read_fails_at.store(successes + 1, Relaxed);
    }

    pub(crate) fn fill_up(&self) {
        *self.0.refusal.lock().unwrap() = Some(io::ErrorKind::StorageFull);
    }

    /// Takes that many writes before it is full.
    pub(crate) fn fill_up_after(&self, writes: usize) {
        self.0.room.store(writes + 1, Relaxed);
    }

    pub(crate) fn protect(&self) {
        *self.0.refusal.lock().unwrap() = Some(io::ErrorKind::ReadOnlyFilesystem);
    }

    pub(crate) fn heal(&self) {
        self.0.write_fails_at.store(0, Relaxed);
        self.0.sync_fails_at.store(0, Relaxed);
        *self.0.sync_fails_with.lock().unwrap() = None;
        self.0.read_fails_at.store(0, Relaxed);
        self.0.room.store(0, Relaxed);
        *self.0.refusal.lock().unwrap() = None;
    }

    pub(crate) fn slow_down(&self, sync_takes: Duration) {
        *self.0.sync_takes.lock().unwrap() = sync_takes;
    }

    pub(crate) fn writes(&self) -> usize {
        self.0.writes.load(Relaxed)
    }

    pub(crate) fn syncs(&self) -> usize {
        self.0.syncs.load(Relaxed)
    }

    fn write_goes_well(&self) -> io::Result<()> {
        match *self.0.refusal.lock().unwrap() {
            Some(kind) => Err(kind.into()),
            None => {
                count_down(&self.0.room).map_err(|_| io::ErrorKind::StorageFull)?;
                count_down(&self.0.write_fails_at)
            }
        }
    }
}

fn count_down(fails_at: &AtomicUsize) -> io::Result<()> {
    match fails_at.load(Relaxed) {
        0 => Ok(()),
        1 => Err(io::Error::other("injected")),
        left => {
            fails_at.store(left - 1, Relaxed);
            Ok(())
        }
    }
}

impl StorageBackend for Device {
    fn len(&self) -> io::Result<u64> {
        Ok(u64::try_from(self.0.bytes.lock().unwrap().cached.len()).unwrap())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        count_down(&self.0.read_fails_at)?;
        let offset = usize::try_from(offset).unwrap();
        let bytes = self.0.bytes.lock().unwrap();
        out.copy_from_slice(bytes.cached.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.write_goes_well()?;
        self.0.bytes.lock().unwrap().cached.resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let kind = *self.0.sync_fails_with.lock().unwrap();
        count_down(&self.0.sync_fails_at).map_err(|error| kind.map_or(error, io::Error::from))?;
        self.0.syncs.fetch_add(1, Relaxed);
        thread::sleep(*self.0.sync_takes.lock().unwrap());
        let mut bytes = self.0.bytes.lock().unwrap();
        bytes.synced = bytes.cached.clone();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_goes_well()?;
        self.0.writes.fetch_add(1, Relaxed);
        let offset = usize::try_from(offset).unwrap();
        self.0.bytes.lock().unwrap().cached[offset..offset + data.len()].copy_from_slice(data);
        Ok(())
    }
}
