use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::Store;

/// A folder of one test's own, and how to open a store in it. The folder goes when this does.
#[derive(Debug)]
pub struct Fixture<S> {
    folder: PathBuf,
    open: fn(&Path) -> S,
}

impl<S: Store> Fixture<S> {
    /// Makes the folder.
    ///
    /// # Panics
    ///
    /// If it cannot be made.
    pub fn new(open: fn(&Path) -> S) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("slate-conformance-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self { folder, open }
    }

    /// The folder.
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
        // What is left of a failed test is of use to somebody who looks; an error here would hide it.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
