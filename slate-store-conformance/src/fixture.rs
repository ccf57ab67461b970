use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use slate_store::Store;

/// A directory for one test, and how to open a store in it. The directory is deleted when the fixture is dropped.
#[derive(Debug)]
pub struct Fixture<S> {
    folder: PathBuf,
    open: fn(&Path) -> S,
}

impl<S: Store> Fixture<S> {
    /// Creates the directory, below the system's temporary directory.
    ///
    /// # Panics
    ///
    /// If it cannot be created.
    pub fn new(open: fn(&Path) -> S) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("slate-conformance-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self { folder, open }
    }

    /// Returns the directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the store.
    pub fn open(&self) -> S {
        (self.open)(&self.folder)
    }
}

impl<S> Drop for Fixture<S> {
    fn drop(&mut self) {
        // The files of a failed test can help to find the error; a second error here would hide it.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
