use std::path::Path;

use slate_bench_harness::Result;
use slate_store::{Store, memory::MemoryStore};

use crate::Feature;

/// A Slate backend with its default settings.
pub trait Backend: Send + Sync + 'static {
    /// The type of the backend's store.
    type Store: Store;

    /// Name in reports.
    const NAME: &'static str;

    /// Features that the backend does not have.
    const LACKS: &'static [Feature];

    /// Opens a store in a directory.
    ///
    /// # Errors
    /// Fails with the store's errors.
    fn open(folder: &Path) -> Result<Self::Store>;

    /// Returns the URL of a database in a directory.
    fn url(folder: &Path) -> String;
}

/// The memory store.
pub struct Memory;

impl Backend for Memory {
    type Store = MemoryStore;

    const NAME: &'static str = "slate memory";
    const LACKS: &'static [Feature] = &[Feature::Files];

    fn open(_: &Path) -> Result<MemoryStore> {
        Ok(MemoryStore::new())
    }

    fn url(_: &Path) -> String {
        "memory:".into()
    }
}

/// The redb store.
#[cfg(feature = "redb")]
pub struct Redb;

#[cfg(feature = "redb")]
impl Backend for Redb {
    type Store = slate_store::redb::RedbStore;

    const NAME: &'static str = "slate redb";
    const LACKS: &'static [Feature] = &[];

    fn open(folder: &Path) -> Result<Self::Store> {
        Ok(Self::Store::open(&folder.join("store.slate"), &slate_store::redb::Options::default())?)
    }

    fn url(folder: &Path) -> String {
        format!("redb:{}", folder.join("database.slate").display())
    }
}

/// The RocksDB store.
#[cfg(feature = "rocksdb")]
pub struct RocksDb;

#[cfg(feature = "rocksdb")]
impl Backend for RocksDb {
    type Store = slate_store::rocksdb::RocksStore;

    const NAME: &'static str = "slate rocksdb";
    const LACKS: &'static [Feature] = &[];

    fn open(folder: &Path) -> Result<Self::Store> {
        Ok(Self::Store::open(&folder.join("store"), &slate_store::rocksdb::Options::default())?)
    }

    fn url(folder: &Path) -> String {
        format!("rocksdb:{}", folder.join("database").display())
    }
}
