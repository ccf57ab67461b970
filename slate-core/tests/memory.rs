//! Memory of the engine while it loads, streams and sorts, measured as the peak of allocated bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "memory/arguments.rs"]
mod arguments;
#[path = "memory/beside_a_snapshot.rs"]
mod beside_a_snapshot;
#[path = "memory/commands.rs"]
mod commands;
mod common;
#[path = "memory/expressions.rs"]
mod expressions;
#[path = "memory/lookups.rs"]
mod lookups;

use allocation_counter::{AllocationInfo, measure};
use bson::{RawDocumentBuf, doc};
use common::{Store, records::record};
use slate_core::{Collection, Database, Durability, ExplainVerbosity, Find, Hint, Index};

type Documents = Collection<RawDocumentBuf>;

fn in_memory() -> Documents {
    Database::open("memory:").unwrap().collection("c")
}

/// The number of records per insert.
const BATCH: usize = 1_000;

/// Inserts records. Returns their total size, and the memory that the insert allocated.
fn load(collection: &Documents, count: i32) -> (u64, AllocationInfo) {
    let documents: Vec<_> = (0..count).map(record).collect();
    let bytes: usize = documents.iter().map(|document| document.as_bytes().len()).sum();
    let taken = measure(|| {
        for batch in documents.chunks(BATCH) {
            collection.insert_many(batch).run().unwrap();
        }
    });
    (bytes as u64, taken)
}

/// Reads all rows in place.
fn read(find: Find<RawDocumentBuf>) -> usize {
    let mut cursor = find.cursor().unwrap();
    let mut bytes = 0;
    while cursor.advance().unwrap() {
        bytes += cursor.current().unwrap().as_bytes().len();
    }
    bytes
}

#[test]
fn a_collection_in_memory_with_two_indexes_takes_at_most_twice_its_size() {
    let collection = in_memory();
    for keys in [doc! { "status": 1 }, doc! { "contacts_count": 1 }] {
        collection.create_index(Index::on(keys)).run().unwrap();
    }
    let (bytes, taken) = load(&collection, 50_000);
    let held = taken.bytes_current.unsigned_abs();
    assert!(held <= 2 * bytes, "{bytes} bytes were loaded, {taken:?}");
    // Copies of a batch: the encoded records, their entries, and the tree nodes that the batch changes.
    let batch = bytes / (50_000 / BATCH as u64);
    assert!(taken.bytes_max <= held + 6 * batch, "{bytes} bytes were loaded, {taken:?}");
}

#[test]
fn streaming_from_disk_takes_the_same_memory_for_any_collection_size() {
    let cache = 1 << 20;
    let peak = |count: i32| {
        let folder = tempfile::tempdir().unwrap();
        let url = Store::Redb.url_in(folder.path());
        let open = || Database::builder(&url).durability(Durability::Deferred).cache(cache).open().unwrap();
        let db = open();
        let collection = db.collection::<RawDocumentBuf>("c");
        load(&collection, count);
        collection.create_index(Index::on(doc! { "number": 1 })).run().unwrap();
        drop((collection, db));
        // Reopens the database to empty its caches.
        let db = open();
        let collection = db.collection::<RawDocumentBuf>("c");
        let scan = measure(|| {
            read(collection.find(doc! {}));
        });
        let owned = measure(|| {
            collection.find(doc! {}).run().unwrap().for_each(|document| drop(document.unwrap()));
        });
        let index = measure(|| {
            read(collection.find(doc! { "number": { "$gte": 0 } }).hint(Hint::Name("number_1".into())));
        });
        [scan.bytes_max, owned.bytes_max, index.bytes_max]
    };
    let (small, large) = (peak(10_000), peak(40_000));
    for (small, large) in small.into_iter().zip(large) {
        // The store's cache, and one batch of fetched records.
        assert!(large <= 2 * small && large <= (cache + (256 << 10)) as u64, "{small} and {large} bytes");
    }
}

#[test]
fn a_sort_holds_rows_up_to_its_memory_limit_and_spills_the_rest() {
    let collection = in_memory();
    let (bytes, _) = load(&collection, 20_000);
    let limit = 1 << 20;
    let sort = || collection.find(doc! {}).sort(doc! { "name": 1 }).memory_limit(limit);
    let taken = measure(|| {
        read(sort());
    });
    // Buffers exist beside the rows while a run is written or runs are merged.
    assert!(taken.bytes_max <= 3 * limit as u64 && taken.bytes_max < bytes, "{bytes} bytes were sorted, {taken:?}");
    assert!(
        sort().explain(ExplainVerbosity::ExecutionStats).unwrap().execution_stats().unwrap().spilled_bytes > bytes / 2
    );
}
