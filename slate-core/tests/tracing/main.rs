//! The spans and events that `docs/observability.md` lists, as a subscriber receives them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod capture;

use std::{
    sync::atomic::{AtomicBool, AtomicI32, Ordering},
    time::Duration,
};

use bson::{RawDocumentBuf, doc, rawdoc};
use capture::{Captured, Kind, capture};
use slate_core::{Collection, Database, Durability, Index, Transaction};

fn numbers(db: &Database, count: i32) -> Collection<RawDocumentBuf> {
    let numbers = db.collection::<RawDocumentBuf>("numbers");
    let documents: Vec<_> = (0..count).map(|n| rawdoc! { "_id": n, "n": n, "text": "x".repeat(100) }).collect();
    numbers.insert_many(&documents).run().unwrap();
    numbers
}

/// Returns the records with this target.
fn of<'r>(records: &'r [Captured], target: &str) -> Vec<&'r Captured> {
    records.iter().filter(|record| record.target == target).collect()
}

#[test]
fn each_call_is_a_span_with_its_collection_operation_and_counts() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 20);
    let check = |work: &dyn Fn(), operation: &str, fields: [(&str, &str); 3]| {
        let (_, records) = capture(work);
        let calls = of(&records, "slate::call");
        let call = calls.iter().find(|call| call.field("operation") == Some(operation)).unwrap();
        assert_eq!((call.kind, call.level, call.name), (Kind::Span, tracing::Level::DEBUG, "call"));
        assert_eq!(call.field("collection"), Some("numbers"), "{operation}");
        for (name, value) in fields {
            assert_eq!(call.field(name), Some(value), "{operation}: {name}");
        }
        assert!(call.is_closed, "{operation}");
        assert_eq!(call.field("error"), None);
    };
    let counts = |rows, keys, documents| [("rows", rows), ("keys_examined", keys), ("documents_examined", documents)];
    check(&|| drop(numbers.find_by_id(3).unwrap()), "find_by_id", counts("1", "1", "1"));
    check(&|| drop(numbers.find(doc! { "_id": 3 }).collect().unwrap()), "find", counts("1", "1", "1"));
    check(&|| drop(numbers.find(doc! { "n": { "$gte": 15 } }).collect().unwrap()), "find", counts("5", "0", "20"));
    check(&|| assert_eq!(numbers.count_documents(doc! { "n": 3 }).run().unwrap(), 1), "count", counts("1", "0", "20"));
    check(&|| drop(numbers.distinct("n", doc! {}).run().unwrap()), "distinct", counts("20", "0", "20"));
    check(
        &|| drop(numbers.update_many(doc! { "n": { "$lt": 3 } }, doc! { "$inc": { "a": 1 } }).run().unwrap()),
        "update",
        counts("3", "0", "20"),
    );
    check(&|| assert_eq!(numbers.delete_one(doc! { "_id": 19 }).run().unwrap(), 1), "delete", counts("1", "1", "1"));
    check(&|| drop(numbers.insert_one(&rawdoc! { "_id": 19 }).unwrap()), "insert", counts("1", "0", "0"));
}

#[test]
fn a_failed_call_has_its_error_and_a_commit_is_a_span_of_its_own() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 1);
    let (_, records) = capture(|| numbers.insert_one(&rawdoc! { "_id": 0 }).unwrap_err());
    let insert =
        of(&records, "slate::call").into_iter().find(|call| call.field("operation") == Some("insert")).unwrap();
    assert!(insert.field("rows").is_some_and(|rows| rows == "0"));
    let (_, records) = capture(|| numbers.find(doc! { "n": { "$eqq": 1 } }).run().map(drop).unwrap_err());
    assert!(of(&records, "slate::call").is_empty(), "a filter that is not valid is no call");
    let (_, records) = capture(|| numbers.insert_one(&rawdoc! { "_id": 1 }).unwrap());
    let commits: Vec<_> = of(&records, "slate::call")
        .into_iter()
        .filter(|call| call.field("operation") == Some("commit"))
        .map(|call| call.field("collection"))
        .collect();
    assert_eq!(commits, [None]);
}

#[test]
fn the_plan_of_a_query_is_an_event_in_its_span() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 50);
    numbers.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
    let (_, records) = capture(|| numbers.find(doc! { "n": { "$gte": 40 } }).collect().unwrap());
    let plans = of(&records, "slate::plan");
    let [plan] = &*plans else { unreachable!("one plan: {plans:?}") };
    assert_eq!((plan.kind, plan.level), (Kind::Event, tracing::Level::DEBUG));
    assert_eq!(plan.field("collection"), Some("numbers"));
    assert!(plan.field("plan").unwrap().contains("INDEX SCAN n_1 forward: n [40, …)"), "{plan:?}");
    let call = of(&records, "slate::call").into_iter().find(|call| call.field("operation") == Some("find")).unwrap();
    assert_eq!(plan.parent, Some(call.id));
}

#[test]
fn conflicts_and_retries_are_events() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 2);
    let mut attempts = 0;
    let (_, records) = capture(|| {
        db.transact(|tx: &Transaction| {
            attempts += 1;
            let inside = tx.collection::<RawDocumentBuf>("numbers");
            inside.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run()?;
            if attempts == 1 {
                let other = numbers.clone();
                let update = move || other.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run();
                std::thread::spawn(update).join().unwrap()?;
            }
            Ok::<_, slate_core::Error>(())
        })
        .unwrap();
    });
    let conflicts = of(&records, "slate::conflict");
    let [conflict, retry] = &*conflicts else { unreachable!("a conflict and a retry: {conflicts:?}") };
    assert_eq!((conflict.message(), conflict.field("collection")), (Some("conflict"), Some("numbers")));
    assert!(conflict.field("error").unwrap().contains("document { \"_id\": 1 } of collection numbers"), "{conflict:?}");
    assert_eq!((retry.message(), retry.field("attempt")), (Some("retry"), Some("2")));
    assert!(retry.field("pause_us").unwrap().parse::<u64>().unwrap() > 0);
}

#[test]
fn spills_index_builds_statistics_and_storage_operations_are_reported() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 3_000);
    let (_, records) =
        capture(|| numbers.find(doc! {}).sort(doc! { "text": 1, "n": -1 }).memory_limit(100_000).collect().unwrap());
    let spills = of(&records, "slate::spill");
    assert!(!spills.is_empty());
    assert!(spills.iter().all(|spill| spill.field("bytes").unwrap().parse::<u64>().unwrap() > 0));

    let (_, records) = capture(|| numbers.create_index(Index::on(doc! { "n": 1 })).run().unwrap());
    let builds = of(&records, "slate::index");
    let (last, rounds) = builds.split_last().unwrap();
    assert_eq!((last.message(), last.level), (Some("index built"), tracing::Level::INFO));
    assert!(rounds.len() > 1 && rounds.iter().all(|round| round.message() == Some("index build round")));
    for build in &builds {
        assert_eq!((build.field("collection"), build.field("index")), (Some("numbers"), Some("n_1")));
    }

    let (_, records) = capture(|| numbers.analyze().unwrap());
    let statistics = of(&records, "slate::statistics");
    assert_eq!(statistics.iter().map(|event| event.field("collection")).collect::<Vec<_>>(), [Some("numbers")]);

    let (_, records) = capture(|| db.compact().unwrap());
    let storage = of(&records, "slate::storage");
    assert_eq!(
        storage.iter().map(|span| (span.kind, span.field("operation"))).collect::<Vec<_>>(),
        [(Kind::Span, Some("compact"))]
    );
}

#[test]
fn a_slow_query_is_a_warning_with_its_plan() {
    let db = Database::builder("memory:").slow_query_threshold(Duration::ZERO).open().unwrap();
    let numbers = numbers(&db, 10);
    let (_, records) = capture(|| numbers.find(doc! { "n": { "$gt": 4 } }).collect().unwrap());
    let slow = of(&records, "slate::slow");
    let [slow] = &*slow else { unreachable!("one slow query: {slow:?}") };
    assert_eq!((slow.level, slow.message()), (tracing::Level::WARN, Some("slow query")));
    for (field, value) in [
        ("operation", "find"),
        ("collection", "numbers"),
        ("filter", r#"{ "n": { "$gt": ? } }"#),
        ("rows", "5"),
        ("documents_examined", "10"),
    ] {
        assert_eq!(slow.field(field), Some(value), "{field}");
    }
    assert!(slow.field("plan").unwrap().contains("SCAN numbers"), "{slow:?}");
}

/// Returns a file that is longer than its data explains: redb doubles it when it is full.
fn loaded_redb(path: &std::path::Path) -> Database {
    let db = Database::open(&format!("redb:{}", path.display())).unwrap();
    let documents = db.collection::<RawDocumentBuf>("documents");
    for round in 0..8 {
        let batch: Vec<_> = (0..500).map(|n| rawdoc! { "_id": round * 500 + n, "text": "x".repeat(9_000) }).collect();
        documents.insert_many(&batch).run().unwrap();
    }
    db
}

fn compactions(records: &[Captured]) -> Vec<(Option<&str>, Option<&str>)> {
    let storage = of(records, "slate::storage").into_iter().filter(|record| record.kind == Kind::Event);
    storage.map(|event| (event.message(), event.field("occasion"))).collect()
}

#[test]
fn compactions_of_a_file_are_events_also_without_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let db = loaded_redb(&path);
    let (_, records) = capture(|| db.flush().unwrap());
    assert_eq!(compactions(&records), [(Some("file compacted"), Some("flush"))], "{records:?}");
    let event = records.iter().find(|record| record.message() == Some("file compacted")).unwrap();
    assert_eq!(event.level, tracing::Level::INFO);
    let number = |name: &str| event.field(name).unwrap().parse::<u64>().unwrap();
    assert!(number("bytes_after") < number("bytes_before"), "{event:?}");
    assert_eq!(number("bytes_after"), path.metadata().unwrap().len());
    assert!(number("duration_us") > 0);
    let flush = of(&records, "slate::storage").into_iter().find(|record| record.kind == Kind::Span).unwrap();
    assert_eq!((flush.field("operation"), event.parent), (Some("flush"), Some(flush.id)));

    let (_, records) = capture(|| db.compact().unwrap());
    assert_eq!(compactions(&records), [(Some("file compacted"), Some("call"))]);

    let snapshot = db.snapshot().unwrap();
    let (_, records) = capture(|| db.compact().unwrap_err());
    assert_eq!(compactions(&records), [(Some("file not compacted"), Some("call"))]);
    let event = records.iter().find(|record| record.message() == Some("file not compacted")).unwrap();
    assert_eq!(event.level, tracing::Level::DEBUG);
    assert!(event.field("error").unwrap().contains("while a snapshot is open"), "{event:?}");
    drop(snapshot);

    assert!(db.collection::<RawDocumentBuf>("documents").drop().unwrap());
    let (_, records) = capture(|| db.close().unwrap());
    assert_eq!(compactions(&records), [(Some("file compacted"), Some("close"))], "{records:?}");
}

#[test]
fn an_index_that_cannot_be_built_is_a_warning_and_a_failed_backup_has_its_error() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 2);
    let unique = Index::on(doc! { "text": 1 }).unique();
    let (_, records) = capture(|| numbers.create_index(unique).run().unwrap_err());
    let builds = of(&records, "slate::index");
    let event = builds.last().unwrap();
    assert_eq!((event.message(), event.level), (Some("index not built"), tracing::Level::WARN));
    assert_eq!((event.field("collection"), event.field("index")), (Some("numbers"), Some("text_1")));
    assert!(event.field("error").unwrap().contains("E11000") && event.field("duration_us").is_some(), "{event:?}");

    let (_, records) = capture(|| numbers.create_index(Index::on(doc! { "n": 1 })).run().unwrap());
    let builds: Vec<_> = of(&records, "slate::index").into_iter().map(Captured::message).collect();
    assert_eq!(builds, [Some("index built")], "a small collection has no rounds");

    let (_, records) = capture(|| db.backup("/no such folder/copy").unwrap_err());
    let spans = of(&records, "slate::storage");
    let [backup] = &*spans else { unreachable!("one span: {spans:?}") };
    assert_eq!((backup.field("operation"), backup.level), (Some("backup"), tracing::Level::INFO));
    assert!(backup.field("error").is_some(), "{backup:?}");
}

/// Ends the other writers, also if the test has failed.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A writer that takes long conflicts with every commit of the others meanwhile, until it has its turn.
#[test]
fn no_writer_of_a_hot_document_is_starved() {
    const WRITERS: i32 = 31;
    const SLOW: i32 = 3;
    let folder = tempfile::tempdir().unwrap();
    let url = |store: &str| format!("{store}:{}", folder.path().join(store).display());
    let mut urls = vec!["memory:".to_owned(), url("redb")];
    if cfg!(feature = "rocksdb") {
        urls.push(url("rocksdb"));
    }
    for url in urls {
        let (deferred, minute) = (Durability::Deferred, Duration::from_secs(60));
        let db = Database::builder(&url).durability(deferred).lock_timeout(minute).open().unwrap();
        let counters = numbers(&db, 1);
        let is_over = AtomicBool::new(false);
        let increments = AtomicI32::new(0);
        let most = std::thread::scope(|scope| {
            let _over = Over(&is_over);
            for _ in 0..WRITERS {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        counters.update_one(doc! { "_id": 0 }, doc! { "$inc": { "n": 1 } }).run().unwrap();
                        increments.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let sum = doc! { "$sum": { "$range": [0, 10_000] } };
            let slow = vec![doc! { "$set": { "n": { "$add": ["$n", 1] }, "sum": sum } }];
            let mut most = 1;
            for _ in 0..SLOW {
                let update = || counters.update_one(doc! { "_id": 0 }, slow.clone()).run().unwrap();
                let (_, records) = capture(update);
                let retries = of(&records, "slate::conflict");
                let attempts = retries.iter().filter_map(|retry| retry.field("attempt")?.parse::<u32>().ok());
                most = most.max(attempts.max().unwrap_or(1));
            }
            most
        });
        assert!(most < 50, "{url}: {most} attempts beside {increments:?} increments");
        let counter = counters.find_by_id(0).unwrap().unwrap();
        assert_eq!(counter.get_i32("n").unwrap(), SLOW + increments.load(Ordering::Relaxed), "{url}");
    }
}
