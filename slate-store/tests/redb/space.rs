//! The file stays near the size of its data without an explicit compaction.

use std::path::Path;

use slate_store::{Durability, Store, Transaction, TransactionExt, redb::RedbStore};

use crate::tools::{A, LONG, begin, open};

/// Writes entries of about a kilobyte under these keys.
fn fill(store: &RedbStore, keys: impl Iterator<Item = u32>) {
    let keys: Vec<u32> = keys.collect();
    for keys in keys.chunks(2_000) {
        let mut transaction = begin(store);
        for key in keys {
            transaction.put(A, &key.wrapping_mul(0x9E37_79B9).to_be_bytes(), &[7; 1_000]).unwrap();
        }
        transaction.commit(Durability::Deferred).unwrap();
    }
}

fn length(path: &Path) -> u64 {
    path.metadata().unwrap().len()
}

/// Returns the length after an explicit compaction.
fn compacted(path: &Path) -> u64 {
    open(path).compact(LONG).unwrap();
    length(path)
}

#[test]
fn a_flush_after_loading_compacts_the_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    fill(&store, 0..40_000);
    let loaded = length(&path);
    store.flush().unwrap();
    let flushed = length(&path);
    assert!(flushed < loaded * 3 / 4, "{flushed} of {loaded} bytes");
    store.flush().unwrap();
    assert_eq!(length(&path), flushed);
    drop(store);
    assert!(flushed <= compacted(&path) * 11 / 10);
}

#[test]
fn a_snapshot_prevents_it_until_the_database_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    fill(&store, 0..40_000);
    let loaded = length(&path);
    let snapshot = store.snapshot().unwrap();
    store.flush().unwrap();
    assert!(length(&path) >= loaded * 9 / 10);
    drop(snapshot);
    drop(store);
    let closed = length(&path);
    assert!(closed <= compacted(&path) * 11 / 10);
}

#[test]
fn what_a_dropped_keyspace_took_is_returned_when_the_database_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    fill(&store, 0..40_000);
    store.flush().unwrap();
    store.drop_keyspace(A, LONG).unwrap();
    drop(store);
    assert!(length(&path) < 8 << 20, "{} bytes", length(&path));
}

#[test]
fn deferred_commits_use_the_pages_that_earlier_ones_freed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    fill(&store, 0..10_000);
    store.flush().unwrap();
    let flushed = length(&path);
    // Each round rewrites every page, and none is synced.
    (0..10).for_each(|_| fill(&store, 0..10_000));
    assert!(length(&path) <= flushed * 6, "{} of {flushed} bytes", length(&path));
}
