use std::{
    path::{Path, PathBuf},
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use slate_bench_harness::Result;
use tempfile::TempDir;

use crate::{Durability, Outcome, Subject, Writer as _, keys::Entries};

/// Where stores are created: in the given directory or in the system's temporary directory.
#[derive(Clone, Debug)]
pub(crate) struct Folders(Option<PathBuf>);

impl Folders {
    pub(crate) fn within(folder: Option<PathBuf>) -> Self {
        Self(folder)
    }

    pub(crate) fn make(&self) -> Result<Folder> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("slate-store-bench-");
        Ok(Folder(match &self.0 {
            Some(folder) => builder.tempdir_in(folder)?,
            None => builder.tempdir()?,
        }))
    }
}

/// A directory that is deleted when dropped.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the bytes that the files in the directory and its subdirectories use on the device.
    pub(crate) fn bytes(&self) -> Result<u64> {
        let (mut folders, mut bytes) = (vec![PathBuf::from(self.path())], 0);
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir()? {
                let entry = entry?;
                let metadata = entry.metadata()?;
                if metadata.is_dir() {
                    folders.push(entry.path());
                } else {
                    bytes += allocated(&metadata);
                }
            }
        }
        Ok(bytes)
    }
}

/// Returns the allocated size of a file: sparse files are smaller than their length.
#[cfg(unix)]
fn allocated(metadata: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    metadata.blocks() * 512
}

#[cfg(not(unix))]
fn allocated(metadata: &std::fs::Metadata) -> u64 {
    metadata.len()
}

/// Writes in one transaction without concurrent writers.
pub(crate) fn commit<S: Subject>(
    store: &S,
    durability: Durability,
    work: impl FnMut(&mut S::Writer<'_>) -> Result<()>,
) -> Result<()> {
    match store.write(durability, work)? {
        Outcome::Committed => Ok(()),
        Outcome::Conflict => Err("unexpected conflict".into()),
    }
}

/// Inserts entries in key order in one commit that waits for the device.
pub(crate) fn load<S: Subject>(store: &S, entries: &Entries) -> Result<()> {
    let entries: Vec<_> = entries.iter().collect();
    commit(store, Durability::Sync, |writer| writer.put_sorted(&entries))
}

/// A store in its own directory. The store is dropped before the directory.
pub(crate) struct Opened<S> {
    pub(crate) store: S,
    pub(crate) folder: Folder,
}

impl<S: Subject> Opened<S> {
    pub(crate) fn empty(folders: &Folders) -> Result<Self> {
        let folder = folders.make()?;
        Ok(Self { store: S::open(folder.path())?, folder })
    }
}

/// Runs `work` on several threads at the same time. Returns the time from the first start to the last end, and the sum
/// of the results.
pub(crate) fn at_once(threads: u64, work: impl Fn(u64) -> Result<u64> + Sync) -> Result<(Duration, u64)> {
    let start = Barrier::new(usize::try_from(threads)?);
    thread::scope(|scope| {
        let (work, start) = (&work, &start);
        let run = move |thread| {
            start.wait();
            // The threads take the times themselves, because the starting thread may get its core back only after they
            // end.
            let begin = Instant::now();
            let given = work(thread);
            (begin, Instant::now(), given)
        };
        let spawned: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        let (mut first, mut last, mut sum) = (None::<Instant>, None::<Instant>, 0_u64);
        for thread in spawned {
            let (begin, end, given) = thread.join().map_err(|_| "a thread panicked")?;
            first = Some(first.map_or(begin, |first| first.min(begin)));
            last = last.max(Some(end));
            sum = sum.wrapping_add(given?);
        }
        let elapsed = first.zip(last).map(|(first, last)| last.duration_since(first));
        Ok((elapsed.unwrap_or_default(), sum))
    })
}

/// Runs `work` while `beside` runs on another thread until `work` has ended.
pub(crate) fn beside<T>(
    beside: impl FnOnce(&dyn Fn() -> bool) -> Result<()> + Send,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let over = &over;
        let other = scope.spawn(move || beside(&|| over.load(Ordering::Relaxed)));
        let done = work();
        over.store(true, Ordering::Relaxed);
        other.join().map_err(|_| "the concurrent thread panicked")??;
        done
    })
}
