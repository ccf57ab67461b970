//! How much a store grows while a snapshot is open, and what it says about that.
//!
//! `SLATE_UPDATES=20000 cargo test -p slate-core --features rocksdb --test memory beside_a_snapshot -- --nocapture` prints the table of
//! docs/tuning.md.

use std::{fs, path::Path};

use allocation_counter::measure;
use bson::{Document, doc};
use slate_core::Database;

use crate::common::Store;

const DOCUMENTS: u64 = 1_000;

/// The bytes of a document, about.
const DOCUMENT: u64 = 450;

fn documents() -> Vec<Document> {
    (0..1_000).map(|id| doc! { "_id": id, "n": 0, "text": "x".repeat(400) }).collect()
}

fn length(path: &Path) -> u64 {
    let Ok(metadata) = path.metadata() else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    // RocksDB removes files at any time.
    fs::read_dir(path).map_or(0, |entries| entries.flatten().map(|entry| length(&entry.path())).sum())
}

fn updates() -> u64 {
    std::env::var("SLATE_UPDATES").ok().and_then(|updates| updates.parse().ok()).unwrap_or(2_000)
}

/// Updates one document after the other beside a snapshot. Returns by how much the store has grown, and what it says that the snapshot holds.
fn grown(store: Store) -> [u64; 2] {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(&store.url_in(folder.path())).unwrap();
    let items = db.collection::<Document>("items");
    items.insert_many(&documents()).run().unwrap();
    db.flush().unwrap();
    let snapshot = db.snapshot().unwrap();
    let before = length(folder.path());
    let taken = measure(|| {
        for number in 0..updates() {
            let id = i64::try_from(number * 7 % DOCUMENTS).unwrap();
            items.update_one(doc! { "_id": id }, doc! { "$inc": { "n": 1 } }).run().unwrap();
        }
    });
    let oldest = db.metrics().oldest_snapshot.unwrap();
    let held = oldest.held_bytes.unwrap();
    assert_eq!(db.stats().unwrap().oldest_snapshot.unwrap().held_bytes, Some(held));
    let seen = snapshot.collection::<Document>("items").count_documents(doc! { "n": 0 }).run().unwrap();
    assert_eq!(seen, DOCUMENTS, "the snapshot shows its commit");
    let grown = match store {
        Store::Memory => u64::try_from(taken.bytes_current).unwrap(),
        _ => length(folder.path()) - before,
    };
    println!("{store:?}: {} updates, {grown} bytes more, {held} held by the snapshot", updates());
    drop(snapshot);
    assert_eq!(db.metrics().oldest_snapshot, None);
    [grown, held]
}

#[test]
fn memory_grows_by_what_the_snapshot_shows_at_most() {
    let [grown, held] = grown(Store::Memory);
    let shown = DOCUMENTS * (DOCUMENT + 100);
    assert!(grown <= 2 * shown, "{grown} bytes");
    assert!(held >= DOCUMENTS * 400 && held <= 2 * shown, "{held} bytes");
    // It is a bound: what was allocated beyond it are caches and counters.
    assert!(grown <= held + (256 << 10), "{held} of {grown} bytes");
}

#[cfg(feature = "redb")]
#[test]
fn redb_grows_by_the_pages_that_each_commit_replaces() {
    let [grown, held] = grown(Store::Redb);
    // A leaf, the root above it, two pages for the number of the commit, one about the pages that were replaced; the file is doubled when it
    // is full.
    assert!(grown <= 2 * 5 * 4096 * updates() + (16 << 20), "{grown} bytes");
    assert!(held >= grown / 4 && held <= 16 * 4096 * updates(), "{held} of {grown} bytes");
}

#[cfg(feature = "rocksdb")]
#[test]
fn rocksdb_grows_by_what_is_written() {
    let [grown, held] = grown(Store::RocksDb);
    let written = updates() * (DOCUMENT + 100);
    assert!(grown <= 3 * written + (8 << 20), "{grown} bytes");
    assert!(held >= DOCUMENTS * 400 && held <= 3 * written, "{held} bytes");
}
