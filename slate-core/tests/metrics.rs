//! `Database::metrics` counts what was done, on every kind of path.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![allow(clippy::cast_precision_loss, reason = "the counts of the tests are small")]

#[path = "metrics/prometheus.rs"]
mod prometheus;

use std::{collections::BTreeMap, time::Duration};

use bson::{RawDocumentBuf, doc, rawdoc};
use slate_core::{
    Collection, Database, ErrorKind, ExplainVerbosity, Histogram, Index, Metrics, OperationKind, Transaction,
    TransactionOptions,
};

fn numbers(db: &Database, count: i32) -> Collection<RawDocumentBuf> {
    let numbers = db.collection::<RawDocumentBuf>("numbers");
    let documents: Vec<_> = (0..count).map(|n| rawdoc! { "_id": n, "n": n, "rest": n % 10 }).collect();
    numbers.insert_many(&documents).run().unwrap();
    numbers
}

/// Returns the operations, keys, documents, rows and bytes that `work` adds.
fn added(db: &Database, work: impl FnOnce()) -> (BTreeMap<OperationKind, u64>, [u64; 3], u64) {
    let before = db.metrics();
    work();
    let after = db.metrics();
    let calls = |kind| after.operation(kind).calls - before.operation(kind).calls;
    let calls = OperationKind::ALL.into_iter().map(|kind| (kind, calls(kind))).filter(|(_, calls)| *calls > 0);
    let of = |metrics: &Metrics| [metrics.keys_examined, metrics.documents_examined, metrics.rows_returned];
    let examined = of(&after).iter().zip(of(&before)).map(|(after, before)| after - before).collect::<Vec<_>>();
    (calls.collect(), examined.try_into().unwrap(), after.bytes_returned - before.bytes_returned)
}

#[test]
fn reads_are_counted_by_kind_with_what_they_examine() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 100);
    numbers.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
    let length = rawdoc! { "_id": 1, "n": 1, "rest": 1 }.as_bytes().len() as u64;
    let all = |filter: bson::Document| {
        let mut cursor = numbers.find(filter).cursor().unwrap();
        while cursor.advance().unwrap() {
            assert!(cursor.current().is_some());
        }
    };
    type Read<'a> = &'a dyn Fn();
    let cases: [(&str, Read<'_>, OperationKind, [u64; 3], u64); 10] = [
        ("by _id", &|| drop(numbers.find_by_id(5).unwrap()), OperationKind::FindById, [1, 1, 1], length),
        ("by _id, missing", &|| drop(numbers.find_by_id(-5).unwrap()), OperationKind::FindById, [1, 0, 0], 0),
        ("express", &|| all(doc! { "_id": 5 }), OperationKind::Find, [1, 1, 1], length),
        ("express by an index", &|| all(doc! { "n": 5 }), OperationKind::Find, [1, 1, 1], length),
        ("scan", &|| all(doc! { "rest": 3 }), OperationKind::Find, [0, 100, 10], 10 * length),
        ("index", &|| all(doc! { "n": { "$gte": 90 } }), OperationKind::Find, [10, 10, 10], 10 * length),
        (
            "some of the _ids are missing",
            &|| all(doc! { "_id": { "$in": [1, 2, 500] } }),
            OperationKind::Find,
            [3, 2, 2],
            2 * length,
        ),
        (
            "count",
            &|| assert_eq!(numbers.count_documents(doc! { "n": { "$lt": 20 } }).run().unwrap(), 20),
            OperationKind::Count,
            [20, 0, 1],
            rawdoc! { "n": 20_i64 }.as_bytes().len() as u64,
        ),
        (
            "distinct",
            &|| drop(numbers.distinct("rest", doc! {}).run().unwrap()),
            OperationKind::Distinct,
            [0, 100, 10],
            10 * rawdoc! { "v": 1 }.as_bytes().len() as u64,
        ),
        (
            "aggregate",
            &|| drop(numbers.aggregate([doc! { "$group": { "_id": "$rest" } }]).collect().unwrap()),
            OperationKind::Aggregate,
            [0, 100, 10],
            10 * rawdoc! { "_id": 1 }.as_bytes().len() as u64,
        ),
    ];
    for (name, read, kind, examined, bytes) in cases {
        assert_eq!(added(&db, read), (BTreeMap::from([(kind, 1)]), examined, bytes), "{name}");
        let snapshot = db.snapshot().unwrap().collection::<RawDocumentBuf>("numbers");
        assert_eq!(snapshot.count_documents(doc! {}).run().unwrap(), 100);
    }
    let explained = || drop(numbers.find(doc! {}).explain(ExplainVerbosity::QueryPlanner).unwrap());
    assert_eq!(added(&db, explained).0, BTreeMap::from([(OperationKind::Explain, 1)]));
    let in_transaction = || {
        db.transact(|tx: &Transaction| {
            let numbers = tx.collection::<RawDocumentBuf>("numbers");
            numbers.find(doc! { "rest": 3 }).collect()?;
            numbers.find_by_id(3).map(drop)
        })
        .unwrap();
    };
    let kinds = [(OperationKind::Find, 1), (OperationKind::FindById, 1), (OperationKind::Commit, 1)];
    assert_eq!(added(&db, in_transaction), (BTreeMap::from(kinds), [1, 101, 11], 11 * length));
}

#[test]
fn a_cursor_is_counted_when_it_is_dropped() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 100);
    let mut cursor = numbers.find(doc! {}).cursor().unwrap();
    for _ in 0..3 {
        assert!(cursor.advance().unwrap());
    }
    assert_eq!(db.metrics().operation(OperationKind::Find).calls, 0);
    drop(cursor);
    let metrics = db.metrics();
    assert_eq!((metrics.operation(OperationKind::Find).calls, metrics.rows_returned), (1, 3));
    assert_eq!(metrics.bytes_returned, 0, "the caller has not looked at the rows");
}

#[test]
fn writes_commits_and_failures_are_counted() {
    let db = Database::open("memory:").unwrap();
    let users = db.collection::<RawDocumentBuf>("users");
    users.insert_one(&rawdoc! { "_id": 1 }).unwrap();
    assert_eq!(users.insert_one(&rawdoc! { "_id": 1 }).unwrap_err().kind(), ErrorKind::DuplicateKey);
    users.update_one(doc! { "_id": 1 }, doc! { "$set": { "a": 1 } }).run().unwrap();
    users.upsert_many(&[rawdoc! { "_id": 2 }]).unwrap();
    users.delete_many(doc! {}).run().unwrap();
    users.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    users.drop().unwrap();
    let metrics = db.metrics();
    let calls = |kind: OperationKind| metrics.operation(kind).calls;
    assert_eq!(calls(OperationKind::Insert), 2);
    for kind in [OperationKind::Update, OperationKind::Upsert, OperationKind::Delete, OperationKind::Definition] {
        assert_eq!(calls(kind), 1, "{kind}");
    }
    assert!(calls(OperationKind::IndexBuild) > 0);
    for (kind, operation) in &metrics.operations {
        assert_eq!(operation.failures, u64::from(*kind == OperationKind::Insert), "{kind}");
        assert_eq!(operation.latency.count(), operation.calls, "{kind}");
        assert_eq!(operation.latency.sum() > Duration::ZERO, operation.calls > 0, "{kind}");
    }
    assert!(metrics.commits() >= 6);
    assert_eq!((metrics.conflicts, metrics.retries), (0, 0));
}

#[test]
fn conflicts_and_retries_are_counted() {
    let db = Database::open("memory:").unwrap();
    let users = db.collection::<RawDocumentBuf>("users");
    users.insert_one(&rawdoc! { "_id": 1, "n": 0 }).unwrap();
    let increment = |tx: &Transaction| {
        tx.collection::<RawDocumentBuf>("users").update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run()
    };
    let (first, second) = (db.begin().unwrap(), db.begin().unwrap());
    increment(&first).unwrap();
    let lost = increment(&second).and_then(|_| {
        first.commit().unwrap();
        second.commit()
    });
    assert!(lost.unwrap_err().is_retryable());
    assert_eq!((db.metrics().conflicts, db.metrics().retries), (1, 0), "nobody has retried");

    let mut attempts = 0;
    let retried = db.transact_with(&TransactionOptions::new(), |tx| {
        attempts += 1;
        increment(tx)?;
        if attempts == 1 {
            let db = db.clone();
            let other = std::thread::spawn(move || {
                let users = db.collection::<RawDocumentBuf>("users");
                users.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run().map(drop)
            });
            // Whichever of the two loses, one attempt is repeated.
            return other.join().unwrap();
        }
        Ok(())
    });
    retried.unwrap();
    let metrics = db.metrics();
    assert!(metrics.retries >= 1 && metrics.conflicts > metrics.retries, "{metrics:?}");
}

#[test]
fn threads_count_together_and_their_counts_outlive_them() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 100);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..1_000 {
                    assert!(numbers.find_by_id(n % 100).unwrap().is_some());
                }
            });
        }
    });
    let metrics = db.metrics();
    assert_eq!(metrics.operation(OperationKind::FindById).calls, 4_000);
    assert_eq!(metrics.rows_returned, 4_000);
    // One in 32 is timed; threads that do not overlap share their counters.
    assert!((125..=128).contains(&metrics.operation(OperationKind::FindById).latency.count()));
    let other = Database::open("memory:").unwrap();
    assert_eq!(other.metrics(), Metrics::default(), "databases count apart");
}

#[test]
fn spills_are_counted() {
    let db = Database::builder("memory:").memory_limit(10_000).open().unwrap();
    let numbers = numbers(&db, 2_000);
    let before = db.metrics();
    let stats = numbers.find(doc! {}).sort(doc! { "rest": 1 }).explain(ExplainVerbosity::ExecutionStats).unwrap();
    let after = db.metrics();
    let stats = stats.execution_stats().unwrap();
    assert!(stats.spills > 0);
    assert_eq!(after.spills - before.spills, stats.spills);
    assert_eq!(after.spilled_bytes - before.spilled_bytes, stats.spilled_bytes);
}

#[test]
fn buckets_hold_all_measured_calls() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 10);
    for _ in 0..50 {
        numbers.find(doc! { "rest": 1 }).collect().unwrap();
    }
    let latency: Histogram = db.metrics().operation(OperationKind::Find).latency;
    assert_eq!(latency.buckets().map(|(_, count)| count).sum::<u64>(), 50);
    assert!(latency.quantile(0.0) <= latency.quantile(0.5) && latency.quantile(0.5) <= latency.quantile(1.0));
    assert!(latency.sum() <= latency.quantile(1.0).unwrap() * 50);
}

#[test]
fn written_documents_are_counted() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 100);
    let written = |work: &dyn Fn()| {
        let before = db.metrics().documents_written;
        work();
        db.metrics().documents_written - before
    };
    assert_eq!(db.metrics().documents_written, 100);
    let increment = || doc! { "$inc": { "n": 1 } };
    assert_eq!(written(&|| drop(numbers.update_many(doc! { "rest": 3 }, increment()).run().unwrap())), 10);
    assert_eq!(written(&|| drop(numbers.update_one(doc! { "_id": 500 }, increment()).upsert().run().unwrap())), 1);
    assert_eq!(written(&|| drop(numbers.upsert_many(&[rawdoc! { "_id": 1 }, rawdoc! { "_id": 600 }]).unwrap())), 2);
    assert_eq!(written(&|| assert_eq!(numbers.delete_many(doc! { "rest": 4 }).run().unwrap(), 10)), 10);
    assert_eq!(written(&|| drop(numbers.insert_one(&rawdoc! { "_id": 600 }).unwrap_err())), 0);
    assert_eq!(written(&|| drop(numbers.find(doc! {}).collect().unwrap())), 0);
    // The keys of updates and deletions by _id are counted as those of reads.
    let by_id = || drop(numbers.update_one(doc! { "_id": 2 }, increment()).run().unwrap());
    assert_eq!(added(&db, by_id).1, [1, 1, 0]);
}

#[test]
fn reads_of_the_caches_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(&format!("redb:{}", folder.path().join("db.slate").display())).unwrap();
    let numbers = numbers(&db, 10);
    // Reads the catalog, whose version is read by key.
    numbers.find_by_id(1).unwrap();
    let before = db.metrics();
    for _ in 0..10 {
        assert!(numbers.find_by_id(5).unwrap().is_some());
    }
    let metrics = db.metrics();
    let (hits, misses) = (metrics.cache_hits - before.cache_hits, metrics.cache_misses - before.cache_misses);
    // A value is cached when its key is read for the second time.
    assert_eq!((hits, misses), (8, 2));
    assert_eq!(metrics.catalog_reads, before.catalog_reads, "the catalog is cached");
    numbers.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
    numbers.find_by_id(5).unwrap();
    assert!(db.metrics().catalog_reads > metrics.catalog_reads);
    let memory = Database::open("memory:").unwrap();
    memory.collection("c").insert_one(&rawdoc! { "_id": 1 }).unwrap();
    assert_eq!((memory.metrics().cache_hits, memory.metrics().cache_misses), (0, 0));
}

#[test]
fn bytes_read_from_the_files_are_counted() {
    const CACHE: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("redb:{}", folder.path().join("db.slate").display());
    numbers(&Database::open(&url).unwrap(), 100_000);
    let bytes_of_a_scan = |db: &Database| {
        let before = db.metrics().storage_bytes.unwrap();
        assert_eq!(db.collection::<RawDocumentBuf>("numbers").find(doc! {}).collect().unwrap().len(), 100_000);
        db.metrics().storage_bytes.unwrap() - before
    };
    let small = Database::builder(&url).cache(CACHE.try_into().unwrap()).open().unwrap();
    let documents = small.collection::<RawDocumentBuf>("numbers").stats().unwrap().document_bytes;
    let read = bytes_of_a_scan(&small);
    assert!(read > documents - CACHE, "{read} bytes of files for {documents} of documents");
    drop(small);
    let large = Database::open(&url).unwrap();
    bytes_of_a_scan(&large);
    assert_eq!(bytes_of_a_scan(&large), 0, "the cache has the documents");
    assert_eq!(Database::open("memory:").unwrap().metrics().storage_bytes, None);
}

/// Returns the uses of each index according to `$indexStats`.
fn uses(numbers: &Collection<RawDocumentBuf>) -> BTreeMap<String, i64> {
    let described = numbers.aggregate([doc! { "$indexStats": {} }]).with_type::<bson::Document>().collect().unwrap();
    let uses = |index: &bson::Document| {
        let accesses = index.get_document("accesses").unwrap();
        assert!(accesses.get_datetime("since").unwrap().timestamp_millis() > 0);
        (index.get_str("name").unwrap().to_owned(), accesses.get_i64("ops").unwrap())
    };
    described.iter().map(uses).collect()
}

#[test]
fn each_operation_counts_as_one_use_of_each_index_that_it_reads() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 100);
    numbers.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
    numbers.create_index(Index::on(doc! { "rest": 1 })).run().unwrap();
    type Work<'a> = &'a dyn Fn();
    let union = doc! { "$or": [{ "n": { "$gt": 95 } }, { "n": { "$lt": 3 } }, { "rest": 4 }] };
    let joined = [
        doc! { "$match": { "_id": { "$lt": 2 } } },
        doc! { "$lookup": { "from": "numbers", "localField": "n", "foreignField": "n", "as": "same" } },
    ];
    let cases: [(&str, Work<'_>, [i64; 3]); 12] = [
        ("nothing", &|| {}, [0, 0, 0]),
        ("by _id", &|| drop(numbers.find_by_id(5).unwrap()), [1, 0, 0]),
        ("by _id, missing", &|| drop(numbers.find_by_id(-5).unwrap()), [1, 0, 0]),
        ("express", &|| drop(numbers.find(doc! { "n": 5 }).collect().unwrap()), [0, 1, 0]),
        ("a range", &|| drop(numbers.find(doc! { "n": { "$gt": 95 } }).collect().unwrap()), [0, 1, 0]),
        ("a scan", &|| drop(numbers.find(doc! {}).collect().unwrap()), [0, 0, 0]),
        ("a union of three scans", &|| drop(numbers.find(union.clone()).collect().unwrap()), [0, 1, 1]),
        ("a count", &|| assert_eq!(numbers.count_documents(doc! { "rest": 5 }).run().unwrap(), 10), [0, 0, 1]),
        ("distinct values", &|| drop(numbers.distinct("rest", doc! {}).run().unwrap()), [0, 0, 1]),
        (
            "an update",
            &|| drop(numbers.update_many(doc! { "n": 5 }, doc! { "$set": { "a": 1 } }).run().unwrap()),
            [0, 1, 0],
        ),
        ("a delete by _id", &|| assert_eq!(numbers.delete_one(doc! { "_id": 99 }).run().unwrap(), 1), [1, 0, 0]),
        ("a join", &|| drop(numbers.aggregate(joined.clone()).collect().unwrap()), [1, 1, 0]),
    ];
    for (what, work, expected) in cases {
        let before = uses(&numbers);
        work();
        let after = uses(&numbers);
        let added = ["_id_", "n_1", "rest_1"].map(|name| after[name] - before[name]);
        assert_eq!(added, expected, "{what}");
    }
    // Another index and new statistics change the catalog, not the counts.
    let before = uses(&numbers);
    numbers.create_index(Index::on(doc! { "other": 1 })).run().unwrap();
    numbers.analyze().unwrap();
    let mut after = uses(&numbers);
    assert_eq!(after.remove("other_1"), Some(0));
    assert_eq!(after, before);
    // An index of the same name is another one.
    numbers.drop_index("n_1").unwrap();
    numbers.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
    assert_eq!(uses(&numbers)["n_1"], 0);
}

#[test]
fn a_read_that_is_repeated_on_another_path_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(&format!("redb:{}", folder.path().join("numbers.slate").display())).unwrap();
    let numbers = numbers(&db, 100);
    let before = uses(&numbers)["_id_"];
    for id in 0..100 {
        assert!(numbers.find_by_id(id).unwrap().is_some());
    }
    assert_eq!(uses(&numbers)["_id_"] - before, 100);
}

#[test]
fn the_oldest_snapshot_is_shown_with_its_age_and_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let urls = ["memory:".to_owned(), format!("redb:{}", folder.path().join("db.slate").display())];
    for url in urls {
        let db = Database::open(&url).unwrap();
        let numbers = numbers(&db, 100);
        assert_eq!(db.metrics().oldest_snapshot, None, "{url}");
        let (first, mut cursor) = (db.snapshot().unwrap(), numbers.find(doc! {}).cursor().unwrap());
        assert!(cursor.advance().unwrap());
        assert_eq!(db.metrics().oldest_snapshot, None, "{url}: it shows the last commit");
        for n in 0..100 {
            numbers.update_one(doc! { "_id": n }, doc! { "$inc": { "n": 1 } }).run().unwrap();
        }
        let second = db.snapshot().unwrap();
        numbers.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run().unwrap();

        let oldest = db.metrics().oldest_snapshot.unwrap();
        // On redb 100 commits of at least a page each; in memory not more than a hundred small documents and the index on their `_id`s.
        let held = oldest.held_bytes.unwrap();
        let possible = if url.starts_with("redb") { 100 * 4096..100 << 20 } else { 100 * 16..40_000 };
        assert!(possible.contains(&held), "{url}: {held}");
        std::thread::sleep(Duration::from_millis(2));
        let stats = db.stats().unwrap();
        let measured = stats.oldest_snapshot.unwrap();
        assert!(measured.age >= oldest.age + Duration::from_millis(2), "{url}");
        assert_eq!(measured.version, oldest.version, "{url}");
        assert!(stats.to_string().contains("held by the oldest snapshot"), "{stats}");
        let text = db.metrics().prometheus().to_string();
        assert!(text.contains("\nslate_oldest_snapshot_seconds "), "{text}");
        assert!(text.contains("\nslate_oldest_snapshot_held_bytes "), "{text}");

        drop(first);
        assert_eq!(db.metrics().oldest_snapshot.unwrap().version, oldest.version, "{url}: the cursor reads it, too");
        drop(cursor);
        assert!(db.metrics().oldest_snapshot.unwrap().version > oldest.version, "{url}");
        drop(second);
        assert_eq!(db.metrics().oldest_snapshot, None, "{url}");
    }
}
