//! Calls that take longer than the threshold are reported with what they did, and reporting cannot harm the call.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bson::{RawDocumentBuf, doc, rawdoc};
use slate_core::{Config, Database, DatabaseBuilder, ErrorKind, Index, OperationKind, SlowQuery, WriteOperation};

/// The reports of a database.
#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<SlowQuery>>>);

impl Reports {
    fn add_to(&self, builder: DatabaseBuilder) -> Database {
        let reports = self.clone();
        builder.on_slow_query(move |slow| reports.0.lock().unwrap().push(slow.clone())).open().unwrap()
    }

    fn take(&self) -> Vec<SlowQuery> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Returns a database that reports every call.
fn open() -> (Database, Reports) {
    let reports = Reports::default();
    let db = reports.add_to(Database::builder("memory:").slow_query_threshold(Duration::ZERO));
    let documents: Vec<_> = (0..100).map(|n| rawdoc! { "_id": n, "n": n, "rest": n % 10 }).collect();
    db.collection("numbers").insert_many(&documents).run().unwrap();
    db.collection::<RawDocumentBuf>("numbers").create_index(Index::on(doc! { "n": 1 })).run().unwrap();
    // Each transaction of an index build names the collection.
    let built = reports.take().into_iter().filter(|slow| slow.operation() == OperationKind::IndexBuild);
    let built: Vec<_> = built.map(|slow| slow.collection().map(String::from)).collect();
    assert!(built.len() > 1 && built.iter().all(|name| name.as_deref() == Some("numbers")), "{built:?}");
    (db, reports)
}

type Expected = (OperationKind, Option<&'static str>, Option<&'static str>, [u64; 3], Option<&'static str>);

#[test]
fn a_report_has_the_shape_of_the_filter_the_counts_and_the_plan() {
    let (db, reports) = open();
    let numbers = db.collection::<RawDocumentBuf>("numbers");
    let only = |work: &dyn Fn(), expected: Expected| {
        work();
        let reports: Vec<_> =
            reports.take().into_iter().filter(|slow| slow.operation() != OperationKind::Commit).collect();
        let [slow] = &*reports else { unreachable!("one report: {reports:?}") };
        let (operation, collection, filter, counts, stage) = expected;
        assert_eq!((slow.operation(), slow.collection(), slow.filter()), (operation, collection, filter));
        assert_eq!([slow.keys_examined(), slow.documents_examined(), slow.rows()], counts, "{slow}");
        assert_eq!(slow.plan().is_some(), stage.is_some(), "{slow}");
        let drawn = slow.to_string();
        assert!(drawn.contains(stage.unwrap_or_default()) && drawn.starts_with(operation.name()), "{drawn}");
        assert!(slow.duration() > Duration::ZERO && !slow.has_failed());
    };
    let name = Some("numbers");
    only(
        &|| drop(numbers.find(doc! { "n": { "$gte": 90 } }).collect().unwrap()),
        (OperationKind::Find, name, Some(r#"{ "n": { "$gte": ? } }"#), [10, 10, 10], Some("INDEX SCAN n_1")),
    );
    only(
        &|| drop(numbers.find(doc! { "n": { "$gte": 90 }, "rest": 3 }).sort(doc! { "n": -1 }).collect().unwrap()),
        (
            OperationKind::Find,
            name,
            Some(r#"{ "n": { "$gte": ? }, "rest": ? }"#),
            [10, 10, 1],
            Some("INDEX SCAN n_1 backward"),
        ),
    );
    only(
        &|| drop(numbers.find(doc! { "_id": 3 }).collect().unwrap()),
        (OperationKind::Find, name, Some(r#"{ "_id": ? }"#), [1, 1, 1], None),
    );
    only(
        &|| assert!(numbers.count_documents(doc! { "n": { "$lt": 20 } }).run().unwrap() > 0),
        (OperationKind::Count, name, Some(r#"{ "n": { "$lt": ? } }"#), [20, 0, 1], Some("COUNT")),
    );
    only(
        &|| drop(numbers.aggregate([doc! { "$group": { "_id": "$rest" } }]).collect().unwrap()),
        (OperationKind::Aggregate, name, Some("{}"), [0, 100, 10], Some("GROUP")),
    );
    let update = doc! { "$inc": { "rest": 1 } };
    only(
        &|| drop(numbers.update_many(doc! { "rest": { "$gte": 8 } }, update.clone()).run().unwrap()),
        (OperationKind::Update, name, Some(r#"{ "rest": { "$gte": ? } }"#), [0, 100, 20], Some("SCAN numbers")),
    );
    only(
        &|| drop(numbers.update_one(doc! { "_id": 1 }, update.clone()).run().unwrap()),
        (OperationKind::Update, name, Some(r#"{ "_id": ? }"#), [1, 1, 1], None),
    );
    only(
        &|| assert!(numbers.delete_many(doc! { "n": { "$gte": 95 } }).run().unwrap() > 0),
        (OperationKind::Delete, name, Some(r#"{ "n": { "$gte": ? } }"#), [5, 5, 5], Some("INDEX SCAN n_1")),
    );
    only(
        &|| drop(numbers.insert_many(&[rawdoc! { "_id": 200 }, rawdoc! { "_id": 201 }]).run().unwrap()),
        (OperationKind::Insert, name, None, [0, 0, 2], None),
    );
    let bulk = || {
        let delete = WriteOperation::delete_many(doc! { "n": { "$lt": 2 } });
        drop(numbers.bulk_write([WriteOperation::insert_one(doc! { "_id": 300 }), delete]).run().unwrap());
    };
    only(&bulk, (OperationKind::BulkWrite, name, None, [2, 2, 3], Some("INDEX SCAN n_1")));
}

#[test]
fn reads_and_writes_in_a_transaction_and_failures_are_reported() {
    let (db, reports) = open();
    let tx = db.begin().unwrap();
    let inside = tx.collection::<RawDocumentBuf>("numbers");
    inside.find(doc! { "rest": 3 }).collect().unwrap();
    assert_eq!(inside.insert_one(&rawdoc! { "_id": 1 }).unwrap_err().kind(), ErrorKind::DuplicateKey);
    let slow = reports.take();
    let [find, insert] = &*slow else { unreachable!("two reports: {slow:?}") };
    assert!(find.plan().unwrap().to_string().contains("SCAN numbers") && !find.has_failed());
    assert_eq!((find.rows(), find.documents_examined()), (10, 100));
    assert!(insert.has_failed() && insert.operation() == OperationKind::Insert);
    tx.commit().unwrap();
    assert_eq!(reports.take().iter().map(SlowQuery::operation).collect::<Vec<_>>(), [OperationKind::Commit]);
}

#[test]
fn faster_calls_are_not_reported() {
    let reports = Reports::default();
    let db = reports.add_to(Database::builder("memory:").slow_query_threshold(Duration::from_secs(3_600)));
    let numbers = db.collection::<RawDocumentBuf>("numbers");
    numbers.insert_one(&rawdoc! { "_id": 1 }).unwrap();
    numbers.find(doc! { "n": { "$gt": 1 } }).collect().unwrap();
    numbers.find_by_id(1).unwrap();
    assert!(reports.take().is_empty());
    let config: Config = toml::from_str("url = 'memory:'\nslow_query_threshold = '1h'").unwrap();
    assert_eq!(config.slow_query_threshold, Some(Duration::from_secs(3_600)));
    let db = reports.add_to(DatabaseBuilder::from(&config));
    db.collection("numbers").insert_one(&rawdoc! { "_id": 1 }).unwrap();
    assert!(reports.take().is_empty(), "a closure does not replace the threshold");
}

#[test]
fn a_report_that_panics_or_calls_the_database_does_not_harm_the_call() {
    let folder = tempfile::tempdir().unwrap();
    harmless("memory:");
    harmless(&format!("redb:{}", folder.path().join("slow.slate").display()));
}

fn harmless(url: &str) {
    // Set after the preparations. It is emptied at the end, because the database holds the closure.
    let opened: Arc<Mutex<Option<Database>>> = Arc::default();
    let written: Arc<Mutex<Vec<Result<(), ErrorKind>>>> = Arc::default();
    let (of_report, results) = (Arc::clone(&opened), Arc::clone(&written));
    let report = move |slow: &SlowQuery| {
        let Some(db) = of_report.lock().unwrap().clone() else { return };
        db.collection::<RawDocumentBuf>("numbers").find(doc! { "n": { "$gt": 0 } }).collect().unwrap();
        let logged = db.collection("log").insert_one(&doc! { "slow": slow.to_string() });
        results.lock().unwrap().push(logged.map(drop).map_err(|error| error.kind()));
        std::panic::resume_unwind(Box::new("a report that panics"));
    };
    let db = Database::builder(url).slow_query_threshold(Duration::ZERO).on_slow_query(report).open().unwrap();
    let numbers = db.collection::<RawDocumentBuf>("numbers");
    numbers.insert_one(&rawdoc! { "_id": 1, "n": 1 }).unwrap();
    db.collection("log").insert_one(&doc! { "_id": 1 }).unwrap();
    *opened.lock().unwrap() = Some(db.clone());
    numbers.insert_one(&rawdoc! { "_id": 2, "n": 2 }).unwrap();
    assert_eq!(numbers.find(doc! { "n": { "$gte": 1 } }).collect().unwrap().len(), 2);
    assert_eq!(numbers.update_many(doc! {}, doc! { "$inc": { "n": 1 } }).run().unwrap().modified, 2);
    *opened.lock().unwrap() = None;
    // The insertion, the find, the update, and two commits.
    let written = std::mem::take(&mut *written.lock().unwrap());
    assert_eq!(written.len(), 5, "{url}: {written:?}");
    assert_eq!(written, [Ok(()); 5], "{url}");
    assert_eq!(db.collection::<RawDocumentBuf>("numbers").count_documents(doc! {}).run().unwrap(), 2);
}
