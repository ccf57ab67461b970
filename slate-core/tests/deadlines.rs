//! A handle with a deadline or a cancel token limits every call through it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use bson::{RawDocumentBuf, doc, rawdoc};
use common::{STORES, TestDatabase};
use slate_core::{
    CancelToken, Collection, CollectionOptions, Database, Error, ErrorKind, Index, RenameTarget, Result, Transaction,
    TransactionOptions, WriteOperation,
};

const ENOUGH: Duration = Duration::from_secs(3_600);

type Call<'c> = (&'static str, Box<dyn Fn() -> Result<()> + 'c>);

fn call<'c, R>(name: &'static str, call: impl Fn() -> Result<R> + 'c) -> Call<'c> {
    (name, Box::new(move || call().map(drop)))
}

/// Returns every call of a collection.
fn calls(users: &Collection<RawDocumentBuf>) -> Vec<Call<'_>> {
    let (one, set) = (|| doc! { "_id": 1 }, || doc! { "$set": { "a": 1 } });
    let document = || rawdoc! { "a": 5 };
    vec![
        call("find_by_id", move || users.find_by_id(1)),
        call("find", move || users.find(one()).run()),
        call("find_one", move || users.find_one(one()).run()),
        call("count_documents", move || users.count_documents(one()).run()),
        call("estimated_document_count", move || users.estimated_document_count()),
        call("distinct", move || users.distinct("a", doc! {}).run()),
        call("aggregate", move || users.aggregate([doc! { "$match": {} }]).run()),
        call("list_indexes", move || users.list_indexes()),
        call("stats", move || users.stats()),
        call("exists", move || users.exists()),
        call("verify", move || users.verify().run()),
        call("insert_one", move || users.insert_one(&document())),
        call("insert_many", move || users.insert_many(&[document()]).run()),
        call("upsert_many", move || users.upsert_many(&[document()])),
        call("merge_many", move || users.merge_many([document()])),
        call("update_one", move || users.update_one(one(), set()).run()),
        call("update_many", move || users.update_many(doc! {}, set()).run()),
        call("replace_one", move || users.replace_one(one(), &document()).run()),
        call("delete_one", move || users.delete_one(one()).run()),
        call("delete_many", move || users.delete_many(one()).run()),
        call("find_one_and_update", move || users.find_one_and_update(one(), set()).run()),
        call("find_one_and_replace", move || users.find_one_and_replace(one(), &document()).run()),
        call("find_one_and_delete", move || users.find_one_and_delete(one()).run()),
        call("bulk_write", move || users.bulk_write([WriteOperation::insert_one(document())]).run()),
        call("create_index", move || users.create_index(Index::on(doc! { "b": 1 })).run()),
        call("create_indexes", move || users.create_indexes([Index::on(doc! { "b": 1 })])),
        call("hide_index", move || users.hide_index("a_1")),
        call("show_index", move || users.show_index("a_1")),
        call("drop_index", move || users.drop_index("a_1")),
        call("create", move || users.with_type::<RawDocumentBuf>().create()),
        call("create_with", move || users.create_with(&CollectionOptions::new())),
        call("set_validator", move || users.set_validator(None)),
        call("rename", move || users.rename("others", RenameTarget::MustNotExist)),
        call("drop", move || users.drop()),
    ]
}

/// Calls of a database that limits end before they begin.
fn database_calls<'c>(db: &'c Database, copy: &'c Database) -> Vec<Call<'c>> {
    vec![
        call("snapshot", move || db.snapshot()),
        call("begin", move || db.begin().and_then(Transaction::commit)),
        call("transact", move || db.transact(|tx| tx.collection("users").insert_one(&rawdoc! { "_id": 9 }).map(drop))),
        call("bulk_write", move || db.bulk_write([("users", WriteOperation::delete_many(doc! {}))]).run()),
        call("aggregate", move || db.aggregate([doc! { "$documents": [{ "a": 1 }] }]).run()),
        call("list_collection_names", move || db.list_collection_names()),
        call("list_collections", move || db.list_collections()),
        call("command", move || db.command(&rawdoc! { "ping": 1 })),
        call("flush", move || db.flush()),
        call("compact", move || db.compact()),
        call("size", move || db.size()),
        call("stats", move || db.stats()),
        call("verify", move || db.verify().run()),
        call("copy_to", move || db.copy_to(copy).run()),
        call("drop_database", move || db.drop_database()),
    ]
}

fn open(store: common::Store) -> (TestDatabase, Collection<RawDocumentBuf>) {
    let db = store.open();
    let users = db.db.collection::<RawDocumentBuf>("users");
    users.insert_many(&[rawdoc! { "_id": 1, "a": 1 }, rawdoc! { "_id": 2, "a": 2 }]).run().unwrap();
    users.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    (db, users)
}

#[track_caller]
fn all_interrupted(calls: Vec<Call<'_>>, what: &str) {
    for (name, call) in calls {
        assert_eq!(call().map_err(|error| error.kind()), Err(ErrorKind::Interrupted), "{name}: {what}");
    }
}

#[test]
fn every_call_fails_after_the_deadline_or_the_cancellation_and_changes_nothing() {
    for store in STORES {
        let (test, users) = open(store);
        let copy = Database::open("memory:").unwrap();
        let cancelled = CancelToken::new();
        cancelled.cancel();
        for (what, users, db) in [
            ("deadline", users.with_deadline(Duration::ZERO), test.db.with_deadline(Duration::ZERO)),
            ("cancel", users.with_cancel(cancelled.clone()), test.db.with_cancel(cancelled.child())),
        ] {
            all_interrupted(calls(&users), what);
            all_interrupted(calls(&users.clone().with_type()), what);
            all_interrupted(calls(&db.collection("users")), what);
            all_interrupted(database_calls(&db, &copy), what);
        }
        assert_eq!(users.find(doc! {}).sort(doc! { "_id": 1 }).collect().unwrap().len(), 2);
        assert_eq!(users.list_indexes().unwrap().len(), 1);
        assert_eq!(test.db.list_collection_names().unwrap(), ["users"]);
    }
}

#[test]
fn every_call_succeeds_before_the_deadline() {
    for store in STORES {
        let (test, users) = open(store);
        let limited = test.db.with_cancel(CancelToken::new()).with_deadline(ENOUGH);
        for (name, call) in calls(&limited.collection("users")) {
            let result = call();
            let may_exist = matches!(name, "create" | "create_with");
            let kind = result.as_ref().err().map(Error::kind);
            assert!(result.is_ok() || (may_exist && kind == Some(ErrorKind::Exists)), "{name}: {result:?}");
            if name == "rename" {
                test.db.collection::<RawDocumentBuf>("others").rename("users", RenameTarget::MustNotExist).unwrap();
            }
        }
        assert!(!users.exists().unwrap());
        assert!(limited.snapshot().unwrap().collection::<RawDocumentBuf>("users").find_by_id(1).unwrap().is_none());
    }
}

#[test]
fn the_limits_of_a_call_replace_those_of_its_handle() {
    let (test, users) = open(common::Store::Memory);
    let late = users.with_deadline(Duration::ZERO);
    assert_eq!(late.find(doc! {}).deadline(ENOUGH).collect().unwrap().len(), 2);
    assert_eq!(late.update_many(doc! {}, doc! { "$inc": { "a": 1 } }).deadline(ENOUGH).run().unwrap().modified, 2);
    assert_eq!(late.with_deadline(ENOUGH).count_documents(doc! {}).run().unwrap(), 2);
    let db = test.db.with_deadline(Duration::ZERO);
    let options = TransactionOptions::new().deadline(ENOUGH);
    db.transact_with(&options, |tx| tx.collection("users").insert_one(&rawdoc! { "_id": 3 }).map(drop)).unwrap();
}

#[test]
fn a_call_in_a_transaction_has_its_own_deadline_and_leaves_the_transaction_open() {
    for store in STORES {
        let (test, users) = open(store);
        let tx = test.db.begin().unwrap();
        let inside = tx.collection::<RawDocumentBuf>("users");
        inside.delete_one(doc! { "_id": 1 }).run().unwrap();
        all_interrupted(calls(&inside.with_deadline(Duration::ZERO)), "in a transaction");
        tx.commit().unwrap();
        assert_eq!(users.count_documents(doc! {}).run().unwrap(), 1);
    }
}

#[test]
fn an_open_transaction_keeps_no_other_writer_waiting() {
    let (test, users) = open(common::Store::Redb);
    let (begun, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    let other = test.db.clone();
    let writer = std::thread::spawn(move || {
        let tx = other.begin().unwrap();
        tx.collection("users").insert_one(&rawdoc! { "_id": "of the transaction" }).unwrap();
        begun.send(()).unwrap();
        may_end.recv().unwrap();
        tx.rollback();
    });
    has_begun.recv().unwrap();
    // The transaction ends only after these.
    let limited = users.with_deadline(ENOUGH);
    limited.insert_one(&rawdoc! { "_id": 7 }).unwrap();
    users.update_one(doc! {}, doc! { "$inc": { "a": 1 } }).deadline(ENOUGH).run().unwrap();
    limited.analyze().unwrap();
    end.send(()).unwrap();
    writer.join().unwrap();
}

#[test]
fn regular_expressions_that_backtrack_end_with_their_call() {
    let db = Database::open("memory:").unwrap();
    let texts = db.collection::<bson::Document>("texts");
    // Each match takes some hundred thousand steps and finds nothing.
    let text = format!("{}b", "a".repeat(17));
    texts.insert_many(&(0..1_000).map(|n| doc! { "_id": n, "s": &text }).collect::<Vec<_>>()).run().unwrap();
    let matches = || doc! { "s": { "$regex": "^(?:(?=a)a+)+$" } };
    let computed = || doc! { "$regexMatch": { "input": "$s", "regex": "^(?:(?=a)a+)+$" } };
    let set = || doc! { "$set": { "a": 1 } };
    let within = Duration::from_millis(100);
    let hasty = texts.with_deadline(within);
    let calls = [
        call("find", || hasty.find(matches()).run()?.collect::<Result<Vec<_>>>()),
        call("count_documents", || hasty.count_documents(matches()).run()),
        call("$expr", || hasty.count_documents(doc! { "$expr": computed() }).run()),
        call("update_many", || hasty.update_many(matches(), set()).run()),
        call("$match", || {
            let pipeline =
                [doc! { "$group": { "_id": "$_id", "s": { "$first": "$s" } } }, doc! { "$match": matches() }];
            hasty.aggregate(pipeline).run()?.collect::<Result<Vec<_>>>()
        }),
        call("$project", || {
            hasty.aggregate([doc! { "$project": { "m": computed() } }]).run()?.collect::<Result<Vec<_>>>()
        }),
    ];
    for (name, call) in calls {
        let start = Instant::now();
        assert_eq!(call().unwrap_err().kind(), ErrorKind::Interrupted, "{name}");
        // All matches together take a minute without optimization.
        assert!(start.elapsed() < within + Duration::from_secs(5), "{name}: {:?}", start.elapsed());
    }
}
