//! The suite, on every backend of this crate.

slate_store::conformance!(memory, |_| slate_store::memory::MemoryStore::new());

#[cfg(feature = "redb")]
slate_store::conformance!(redb, |folder| {
    slate_store::redb::RedbStore::open(&folder.join("db"), &slate_store::redb::Options::default()).unwrap()
});

#[cfg(feature = "redb")]
slate_store::conformance!(redb_with_quick_recovery, |folder| {
    use slate_store::redb::{Options, Recovery, RedbStore};
    let options = Options::default().recovery(Recovery::WithEachCommit).cache_bytes(1 << 20);
    RedbStore::open(&folder.join("db"), &options).unwrap()
});
