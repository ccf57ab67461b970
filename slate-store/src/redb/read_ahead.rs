//! Reads ahead of scans.
//!
//! redb reads its file page by page. The pages of a table that was loaded in ascending order or compacted are in the file
//! in nearly ascending order, with pages of other tables in between. Linux takes reads with gaps for random ones and reads
//! nothing ahead, so a scan would wait for the device at every gap. Once [`SCAN`] reads have followed each other closely,
//! Linux is advised to read the next [`AHEAD`] bytes in the background. Other systems decide for themselves.

use std::{
    fs::File,
    io,
    ops::Bound,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use ::redb::{BackendError, StorageBackend, backends::FileBackend};

/// The bytes that are read ahead of a scan. At half of them the next ones are requested.
const AHEAD: u64 = 1 << 20;

/// The largest distance in bytes between two consecutive reads of a scan.
const NEAR: u64 = 128 << 10;

/// The number of reads in ascending order after which a scan is recognized. Lookups rarely make as many.
const SCAN: u32 = 8;

/// The number of scans that are recognized at the same time.
const SCANS: usize = 4;

/// A storage that counts the bytes that redb reads and reads ahead of scans.
#[derive(Debug)]
pub(super) struct ReadAhead<B> {
    storage: B,
    /// A handle of the storage's file, for advice. `None`: not a file.
    file: Option<File>,
    scans: Mutex<Scans>,
    bytes_read: Arc<AtomicU64>,
}

/// The recognized scans, the most recently used one last.
#[derive(Debug, Default)]
struct Scans(Vec<Scan>);

/// Reads in ascending order.
#[derive(Debug, Default)]
struct Scan {
    /// The end of the last read.
    end: u64,
    /// The number of reads.
    reads: u32,
    /// The end of the bytes that were requested.
    requested: u64,
}

impl Scans {
    /// Records a read. Returns the bytes to request now.
    fn read(&mut self, start: u64, length: u64) -> Option<(u64, u64)> {
        let follows = |scan: &Scan| start.checked_sub(scan.end).is_some_and(|distance| distance <= NEAR);
        let mut scan = match self.0.iter().position(follows) {
            Some(at) => self.0.remove(at),
            None if self.0.len() < SCANS => Scan::default(),
            None => {
                self.0.remove(0);
                Scan::default()
            }
        };
        (scan.reads, scan.end) = (scan.reads.saturating_add(1), start.saturating_add(length));
        let ahead = scan.end.saturating_add(AHEAD);
        let from = scan.requested.max(scan.end);
        let missing = ahead.saturating_sub(from);
        let request = (scan.reads > SCAN && missing >= AHEAD / 2).then_some((from, missing));
        if request.is_some() {
            scan.requested = ahead;
        }
        self.0.push(scan);
        request
    }
}

impl ReadAhead<FileBackend> {
    /// Takes a database file. Adds the bytes that redb reads to `bytes_read`.
    pub(super) fn of_file(file: File, bytes_read: &Arc<AtomicU64>) -> Result<Self, ::redb::DatabaseError> {
        let advised = file.try_clone()?;
        Ok(Self { file: Some(advised), ..Self::new(FileBackend::new(file)?, bytes_read) })
    }
}

impl<B: StorageBackend> ReadAhead<B> {
    /// Takes a storage that cannot read ahead.
    pub(super) fn new(storage: B, bytes_read: &Arc<AtomicU64>) -> Self {
        Self { storage, file: None, scans: Mutex::default(), bytes_read: Arc::clone(bytes_read) }
    }

    /// Requests the bytes that a scan will read. If another thread is doing so, this read is not recorded.
    fn read_ahead(&self, start: u64, length: u64) {
        let Some(file) = &self.file else { return };
        let request = self.scans.try_lock().ok().and_then(|mut scans| scans.read(start, length));
        if let Some((start, length)) = request {
            advise(file, start, length);
        }
    }
}

/// Tells the system to read a part of a file in the background. It may ignore the advice.
#[cfg(target_os = "linux")]
fn advise(file: &File, start: u64, length: u64) {
    use rustix::fs::{Advice, fadvise};
    let _ = fadvise(file, start, std::num::NonZeroU64::new(length), Advice::WillNeed);
}

#[cfg(not(target_os = "linux"))]
fn advise(_: &File, _: u64, _: u64) {}

impl<B: StorageBackend> StorageBackend for ReadAhead<B> {
    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let length = length(out);
        self.bytes_read.fetch_add(length, Ordering::Relaxed);
        self.read_ahead(offset, length);
        self.storage.read(offset, out)
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

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    /// Reads pages, and returns the requests.
    fn requests(scans: &mut Scans, pages: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
        pages.into_iter().filter_map(|page| scans.read(page * PAGE, PAGE)).collect()
    }

    #[test]
    fn ascending_reads_with_gaps_are_read_ahead_without_repetition() {
        let mut scans = Scans::default();
        assert_eq!(requests(&mut scans, (0..8).map(|page| page * 3)), []);
        let requested = requests(&mut scans, (8..2_000).map(|page| page * 3));
        // The first request begins after the ninth read, and each further one where the previous ended.
        assert_eq!(requested[0], ((8 * 3 + 1) * PAGE, AHEAD));
        assert!(requested.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0), "{requested:?}");
        let end = requested.last().map(|(start, length)| start + length).unwrap();
        assert!((2_000 * 3 * PAGE..2_000 * 3 * PAGE + AHEAD).contains(&end), "{requested:?}");
    }

    #[test]
    fn random_and_descending_reads_are_not_read_ahead() {
        let mut scans = Scans::default();
        assert_eq!(requests(&mut scans, (0..1_000).map(|n| n * 7_919 % 100_003)), []);
        assert_eq!(requests(&mut scans, (0..1_000).rev()), []);
    }

    #[test]
    fn interleaved_scans_are_recognized() {
        let mut scans = Scans::default();
        let starts = [0, 1_000_000, 2_000_000, 3_000_000];
        let pages = (0..20).flat_map(|page| starts.map(|start| start + page));
        let requested: Vec<u64> = requests(&mut scans, pages).iter().map(|(start, _)| start / PAGE).collect();
        assert_eq!(requested, starts.map(|start| start + 9));
    }

    #[test]
    fn a_file_is_read_the_same_and_counted() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..64 * PAGE).map(|at| u8::try_from(at / PAGE).unwrap()).collect();
        io::Write::write_all(&mut file, &bytes).unwrap();
        let bytes_read = Arc::default();
        let storage = ReadAhead::of_file(file, &bytes_read).unwrap();
        for page in 0..64 {
            let mut out = [0; 4096];
            storage.read(page * PAGE, &mut out).unwrap();
            assert_eq!(out, [u8::try_from(page).unwrap(); 4096]);
        }
        assert_eq!(bytes_read.load(Ordering::Relaxed), 64 * PAGE);
        let mut out = [0; 4096];
        assert!(storage.read(64 * PAGE, &mut out).is_err());
    }
}
