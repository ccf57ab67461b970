//! The conformance suite on every backend of this crate.

slate_store_conformance::conformance!(memory, |_| slate_store::memory::MemoryStore::new());

#[cfg(feature = "redb")]
slate_store_conformance::conformance!(redb, |folder| {
    slate_store::redb::RedbStore::open(&folder.join("db"), &slate_store::redb::Options::default()).unwrap()
});

#[cfg(feature = "redb")]
slate_store_conformance::conformance!(redb_recovered_when_opened, |folder| {
    use slate_store::redb::{Options, Recovery, RedbStore};
    let options = Options::default().recovery(Recovery::WhenOpened).cache_bytes(1 << 20);
    RedbStore::open(&folder.join("db"), &options).unwrap()
});

#[cfg(feature = "redb")]
slate_store_conformance::conformance!(redb_shared_with_readers, |folder| {
    use slate_store::redb::{Options, RedbStore, Sharing};
    RedbStore::open(&folder.join("db"), &Options::default().sharing(Sharing::WithReaders)).unwrap()
});

#[cfg(feature = "rocksdb")]
slate_store_conformance::conformance!(rocksdb, |folder| {
    slate_store::rocksdb::RocksStore::open(&folder.join("db"), &slate_store::rocksdb::Options::default()).unwrap()
});

// Small buffers, so that most data are in files and compaction runs constantly.
#[cfg(feature = "rocksdb")]
slate_store_conformance::conformance!(rocksdb_with_small_buffers, |folder| {
    use slate_store::rocksdb::{Options, RocksStore};
    let options = Options::default().write_buffer_bytes(64 << 10).cache_bytes(1 << 20);
    RocksStore::open(&folder.join("db"), &options).unwrap()
});

// A small cache that evicts constantly, over a store with concurrent writers and one with a single writer.
slate_store_conformance::conformance!(cached_memory, |_| {
    slate_store::Cached::new(slate_store::memory::MemoryStore::new(), 256 << 10)
});

#[cfg(feature = "redb")]
slate_store_conformance::conformance!(cached_redb, |folder| {
    let options = slate_store::redb::Options::default();
    slate_store::Cached::new(slate_store::redb::RedbStore::open(&folder.join("db"), &options).unwrap(), 4 << 20)
});

#[cfg(feature = "rocksdb")]
slate_store_conformance::conformance!(cached_rocksdb, |folder| {
    let options = slate_store::rocksdb::Options::default();
    slate_store::Cached::new(slate_store::rocksdb::RocksStore::open(&folder.join("db"), &options).unwrap(), 4 << 20)
});

// On the cluster that the variable `SLATE_TIKV` names: slate-tikv-cluster/README.md says how one is started for the tests.
#[cfg(feature = "tikv")]
slate_store_conformance::conformance!(tikv if std::env::var_os("SLATE_TIKV").is_some(), |folder| {
    use slate_store::tikv::{Address, Options, TikvStore};
    let driver = std::env::var("SLATE_TIKV").unwrap();
    let database = folder.file_name().unwrap().to_str().unwrap().trim_start_matches('.');
    TikvStore::open(&Address::parse(&format!("tikv://{driver}/{database}")).unwrap(), &Options::default()).unwrap()
});
