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

/// Where folders are made: in a folder of the caller's, or where the system has its temporary files.
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

/// A folder that is gone with this.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The bytes that its files take on the device, those in its folders included.
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

/// What a file takes: some make theirs longer than what they wrote, and leave the rest a hole.
#[cfg(unix)]
fn allocated(metadata: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    metadata.blocks() * 512
}

#[cfg(not(unix))]
fn allocated(metadata: &std::fs::Metadata) -> u64 {
    metadata.len()
}

/// Writes in one transaction that nobody disturbs.
pub(crate) fn commit<S: Subject>(
    store: &S,
    durability: Durability,
    work: impl FnMut(&mut S::Writer<'_>) -> Result<()>,
) -> Result<()> {
    match store.write(durability, work)? {
        Outcome::Committed => Ok(()),
        Outcome::Conflict => Err("a commit conflicts where there is no other".into()),
    }
}

/// Puts entries in the order of their keys, in one commit to the device.
pub(crate) fn load<S: Subject>(store: &S, entries: &Entries) -> Result<()> {
    let entries: Vec<_> = entries.iter().collect();
    commit(store, Durability::Sync, |writer| writer.put_sorted(&entries))
}

/// A store in a folder of its own. The store goes before the folder does.
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

/// Runs `work` on as many threads at once, and tells how long that took, from the first to begin to the last to end, and the
/// sum of what they gave back.
pub(crate) fn at_once(threads: u64, work: impl Fn(u64) -> Result<u64> + Sync) -> Result<(Duration, u64)> {
    let start = Barrier::new(usize::try_from(threads)?);
    thread::scope(|scope| {
        let (work, start) = (&work, &start);
        let run = move |thread| {
            start.wait();
            // By the threads themselves: whoever started them may get its core back only when they are done.
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

/// Runs `work` while `beside` runs on another thread, which is told to stop once `work` is done.
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
        other.join().map_err(|_| "the thread beside panicked")??;
        done
    })
}
