//! A database that several processes share, on the cluster that `SLATE_TIKV` names: see slate-tikv-cluster/README.md. Two handles are
//! like two processes: they share nothing but the cluster.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Instant,
};

use bson::{Document, doc};
use slate_core::{ChangeLog, Collection, Database, ErrorKind, ExplainVerbosity, Hint, Index};

/// Returns the URL of an empty database; `None` without a cluster.
fn url() -> Option<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let driver = std::env::var("SLATE_TIKV").ok()?;
    Some(format!("tikv://{driver}/core-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
}

fn items(db: &Database) -> Collection<Document> {
    db.collection("items")
}

#[test]
fn writers_of_two_processes_maintain_the_indexes_that_a_third_one_builds_and_drops() {
    const EACH: i32 = 100;
    let Some(url) = url() else { return };
    let open = || Database::open(&url).unwrap();
    let (builder, writers) = (open(), [open(), open()]);
    items(&builder).insert_one(&doc! { "_id": "first", "a": 0, "u": "first" }).unwrap();
    thread::scope(|scope| {
        for (number, db) in writers.iter().enumerate() {
            let number = i32::try_from(number).unwrap();
            scope.spawn(move || {
                for n in 0..EACH {
                    let id = number * EACH + n;
                    items(db).insert_one(&doc! { "_id": id, "a": n % 7, "u": id }).unwrap();
                    if n % 5 == 4 {
                        items(db)
                            .update_one(doc! { "_id": id - 1 }, doc! { "$set": { "a": [n, 100 + n] } })
                            .run()
                            .unwrap();
                        items(db).delete_one(doc! { "_id": id - 2 }).run().unwrap();
                    }
                }
            });
        }
        let change = |what: &str, change: &dyn Fn()| {
            let (before, start) = (builder.metrics().retries, Instant::now());
            change();
            let attempts = builder.metrics().retries - before;
            println!("{what}: {attempts} more attempts, {:?}", start.elapsed());
            // Writers make way for a change that has conflicted. Those that were in flight can be in its way once more.
            assert!(attempts <= 10, "{what}: {attempts}");
        };
        for round in 0..3 {
            change("create a", &|| drop(items(&builder).create_index(Index::on(doc! { "a": 1 })).run().unwrap()));
            let unique = Index::on(doc! { "u": 1 }).unique();
            change("create u", &|| drop(items(&builder).create_index(unique.clone()).run().unwrap()));
            if round < 2 {
                change("drop a", &|| assert!(items(&builder).drop_index("a_1").unwrap()));
                change("drop u", &|| assert!(items(&builder).drop_index("u_1").unwrap()));
            }
        }
    });
    let expected = u64::try_from(1 + 2 * (EACH - EACH / 5)).unwrap();
    for db in writers.iter().chain([&builder]) {
        let report = items(db).verify().run().unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        assert_eq!(report.documents, expected);
        assert_eq!(
            items(db).count_documents(doc! { "a": { "$gte": 100 } }).run().unwrap(),
            u64::try_from(2 * EACH / 5).unwrap()
        );
        let refused = items(db).insert_one(&doc! { "u": 3 }).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::DuplicateKey);
    }
    assert!(items(&builder).drop().unwrap());
    assert_eq!(items(&writers[0]).count_documents(doc! {}).run().unwrap(), 0);
}

#[test]
fn calls_make_few_round_trips() {
    let Some(url) = url() else { return };
    let db = Database::open(&url).unwrap();
    let counted = || {
        let metrics = db.metrics();
        (metrics.round_trips.unwrap(), metrics.requests.unwrap())
    };
    // In a larger database, whose keys are in several regions, both can be more. The least of up to five calls counts, because other tests share
    // the cluster: a node that splits a region because of them is not ready for some milliseconds, and commits are sent again.
    let measure = |what: &str, (most, most_requests): (u64, u64), call: &dyn Fn(i32)| {
        for attempt in 0..5 {
            let before = counted();
            call(attempt);
            let (spent, requests) = (counted().0 - before.0, counted().1 - before.1);
            println!("{what}: {spent} round trips, {requests} requests");
            assert!(requests >= spent, "each round trip has a request");
            if spent <= most && requests <= most_requests {
                return;
            }
        }
        panic!("{what}: expected at most {most} round trips and {most_requests} requests");
    };
    let spent = |what: &str, most: u64, call: &dyn Fn(i32)| measure(what, (most, u64::MAX), call);
    let items = items(&db);
    items.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    items.create_index(Index::on(doc! { "u": 1 }).unique()).run().unwrap();
    let many = |from: i32| (from..from + 1_000).map(|n| doc! { "_id": n, "a": n % 10, "u": n }).collect::<Vec<_>>();
    let inserted = Cell::new(0);
    measure("1,000 inserts with two indexes", (20, 120), &|part| {
        items.insert_many(&many(part * 1_000)).run().unwrap();
        inserted.set(part + 1);
    });
    for part in inserted.get()..5 {
        items.insert_many(&many(part * 1_000)).run().unwrap();
    }
    items.analyze().unwrap();
    // The statistics are part of the catalog, which the next call reads again.
    assert!(items.find_one(doc! { "_id": 1 }).run().unwrap().is_some());
    let new = |id: i32| doc! { "_id": id, "a": id, "u": id };
    measure("one insert", (3, 5), &|n| drop(items.insert_one(&new(-1 - n)).unwrap()));
    // As where its keys are in several regions: the first request has no room for all.
    measure("one insert in two phases", (5, 9), &|n| {
        let mut large = new(-10 - n);
        large.insert("text", "x".repeat(20_000));
        items.insert_one(&large).unwrap();
    });
    spent("an update by _id", 3, &|n| {
        let updated = items.update_one(doc! { "_id": 7 }, doc! { "$set": { "b": n } }).run().unwrap();
        assert_eq!(updated.modified, 1);
    });
    // The first one also asks for the address of the node.
    assert!(items.find_by_id(1).unwrap().is_some());
    measure("a read by _id", (1, 1), &|_| assert!(items.find_by_id(7).unwrap().is_some()));
    spent("a read of a missing _id", 1, &|_| assert!(items.find_by_id(-7).unwrap().is_none()));
    let command = bson::rawdoc! { "find": "items", "filter": { "_id": 7 }, "limit": 1 };
    spent("a find command by _id", 1, &|_| {
        let reply = db.command(&command).unwrap();
        let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        assert_eq!(batch.into_iter().count(), 1);
    });
    spent("a find of one document by _id", 1, &|_| assert!(items.find_one(doc! { "_id": 7 }).run().unwrap().is_some()));
    // Batches travel side by side.
    measure("5,000 documents through an index", (15, 30), &|_| {
        let found = items.find(doc! { "a": { "$gte": 0 } }).hint(Hint::Name("a_1".into())).run().unwrap();
        assert_eq!(found.count(), 5_000);
    });
    spent("an update of 500 documents", 20, &|n| {
        let updated = items.update_many(doc! { "a": 3 + n }, doc! { "$inc": { "a": 100 } }).run().unwrap();
        assert_eq!(updated.matched, 500);
    });
    let inputs = db.collection::<Document>("inputs");
    inputs.insert_many(&(0..2_000).map(|n| doc! { "_id": n, "k": n + 100 }).collect::<Vec<_>>()).run().unwrap();
    let joined = |limit: i32| {
        let lookup = doc! { "$lookup": { "from": "items", "localField": "k", "foreignField": "u", "as": "found" } };
        let rows = inputs.aggregate([doc! { "$limit": limit }, lookup]).run().unwrap().map(Result::unwrap);
        rows.filter(|row| row.get_array("found").unwrap().len() == 1).count()
    };
    assert_eq!(joined(1), 1);
    // The first 1,152 through the index, each value by a request, which travel side by side; then the collection is read.
    measure("$lookup of 2,000 documents", (50, 1_300), &|_| assert_eq!(joined(2_000), 2_000));
    let explained = items.find(doc! { "a": 9 }).explain(ExplainVerbosity::ExecutionStats).unwrap();
    let stats = explained.execution_stats().unwrap();
    assert!(stats.round_trips.is_some_and(|trips| trips > 0 && stats.requests >= Some(trips)), "{explained}");
    let drawn = explained.to_string();
    assert!(["round trips: ", ", requests: ", ", received: "].iter().all(|part| drawn.contains(part)), "{drawn}");
    // The nodes send what the plan reads: at least the documents and entries, with their keys.
    let stats = explained.execution_stats().unwrap();
    assert!(stats.bytes_read > 0 && stats.storage_bytes.is_some_and(|sent| sent >= stats.bytes_read), "{explained}");
}

#[test]
fn a_read_by_id_in_one_round_trip_sees_what_other_processes_have_done() {
    let Some(url) = url() else { return };
    let [db, other] = [(); 2].map(|()| Database::open(&url).unwrap());
    let read = |id: i32| items(&db).find_by_id(id).unwrap().map(|found| found.get_str("text").unwrap().len());
    assert_eq!(read(1), None, "there is no collection");
    items(&other).insert_one(&doc! { "_id": 1, "text": "x" }).unwrap();
    assert_eq!(read(1), Some(1));
    for length in [2, 100_000, 3 << 20, 5] {
        items(&other).replace_one(doc! { "_id": 1 }, &doc! { "_id": 1, "text": "x".repeat(length) }).run().unwrap();
        assert_eq!(read(1), Some(length));
    }
    // A transaction in two phases: each read sees the last one that was acknowledged, or the next one.
    let large = |n: usize| doc! { "_id": 2, "text": "x".repeat(20_000 + n) };
    items(&other).insert_one(&large(0)).unwrap();
    let acknowledged = std::sync::atomic::AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..40 {
                items(&other).replace_one(doc! { "_id": 2 }, &large(n)).run().unwrap();
                acknowledged.store(n, Ordering::SeqCst);
            }
        });
        let mut last = 0;
        while last < 39 {
            let before = acknowledged.load(Ordering::SeqCst);
            let found = read(2).unwrap() - 20_000;
            assert!(found >= before.max(last), "{found} after {before} was acknowledged and {last} was read");
            last = found;
        }
    });
    // Other definitions.
    drop(items(&other).rename("old", slate_core::RenameTarget::MustNotExist).unwrap());
    assert_eq!(read(1), None);
    assert_eq!(db.collection::<Document>("old").find_by_id(1).unwrap().unwrap().get_str("text").unwrap().len(), 5);
    items(&other).insert_one(&doc! { "_id": 1, "text": "new" }).unwrap();
    assert_eq!(read(1), Some(3));
    assert!(items(&other).drop().unwrap());
    assert_eq!(read(1), None);
}

#[test]
fn what_the_cluster_cannot_give_is_refused_by_name() {
    let Some(url) = url() else { return };
    let db = Database::open(&url).unwrap();
    items(&db).insert_one(&doc! { "_id": 1 }).unwrap();
    let log = db.enable_changes(ChangeLog::new()).unwrap_err();
    assert!(log.kind() == ErrorKind::Unsupported && log.to_string().contains("tikv"), "{log}");
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(db.backup(folder.path().join("copy")).unwrap_err().kind(), ErrorKind::Unsupported);
    let many: Vec<Document> = (0..40_000).map(|n| doc! { "_id": n }).collect();
    let large = db.collection("many").insert_many(&many).run().unwrap_err();
    assert_eq!(large.kind(), ErrorKind::TooLarge, "{large}");
    // The longest `_id` with the longest indexed values, and the longest document.
    items(&db).create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    items(&db).insert_one(&doc! { "_id": "x".repeat(1_990), "a": "y".repeat(5_000) }).unwrap();
    let longest = "x".repeat((16 << 20) - 100);
    items(&db).insert_one(&doc! { "_id": 2, "long": &longest }).unwrap();
    let found = items(&db).find_one(doc! { "_id": 2 }).run().unwrap().unwrap();
    assert!(found.get_str("long").unwrap() == longest);
}
