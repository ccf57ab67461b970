//! Statistics affect the plan but never the result of a query, and gathering them does not delay user commits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use bson::{RawDocumentBuf, doc, rawdoc};
use common::{elsewhere, on_every_store};
use slate_core::{Collection, Database, ErrorKind, ExplainVerbosity, Index};

type Documents = Collection<RawDocumentBuf>;

/// Documents whose `a` is `common`, except every tenth.
fn documents(count: i32) -> Vec<RawDocumentBuf> {
    let a = |id: i32| if id % 10 == 0 { "rare" } else { "common" };
    (0..count).map(|id| rawdoc! { "_id": id, "a": a(id), "b": id % 7 }).collect()
}

/// Returns the plan for a value that, by probes alone, is in at least as many documents as they count.
fn plan(collection: &Documents, a: &str) -> String {
    collection.find(doc! { "a": a, "b": 3 }).explain(ExplainVerbosity::QueryPlanner).unwrap().to_string()
}

#[test]
fn a_collection_that_has_grown_by_half_is_sampled_after_the_commit() {
    on_every_store(|test| {
        let c: Documents = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        c.insert_many(&documents(20_000)).run().unwrap();
        assert!(plan(&c, "common").contains("SCAN c forward"), "{}", plan(&c, "common"));
        assert!(plan(&c, "rare").contains("INDEX SCAN a_1"), "{}", plan(&c, "rare"));
    });
}

#[test]
fn analyze_detects_changes_without_growth() {
    on_every_store(|test| {
        let c: Documents = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        c.insert_many(&documents(20_000)).run().unwrap();
        c.update_many(doc! {}, doc! { "$set": { "a": "common" } }).run().unwrap();
        c.update_many(doc! { "_id": { "$lt": 1_500 } }, doc! { "$set": { "a": "few" } }).run().unwrap();
        c.analyze().unwrap();
        assert!(plan(&c, "few").contains("INDEX SCAN a_1"), "{}", plan(&c, "few"));
        assert!(plan(&c, "common").contains("SCAN c forward"), "{}", plan(&c, "common"));
        test.collection("none").analyze().unwrap();
    });
}

#[test]
fn a_rare_value_is_detected_although_outdated_statistics_show_it_as_common() {
    on_every_store(|test| {
        let c: Documents = test.collection("c");
        for field in ["a", "b"] {
            c.create_index(Index::on(doc! { field: 1 })).run().unwrap();
        }
        c.insert_many(&documents(5_000)).run().unwrap();
        c.analyze().unwrap();
        let plan = |find: slate_core::Find<RawDocumentBuf>| {
            find.sort(doc! { "b": 1 }).limit(20).explain(ExplainVerbosity::QueryPlanner).unwrap().to_string()
        };
        let common = || plan(c.find(doc! { "a": "common" }));
        assert!(common().contains("INDEX SCAN b_1"), "{}", common());
        c.update_many(doc! { "_id": { "$gt": 5 } }, doc! { "$set": { "a": "done" } }).run().unwrap();
        assert!(common().contains("INDEX SCAN a_1"), "{}", common());
    });
}

#[test]
fn statistics_conflict_with_no_transaction() {
    let db = Database::open("memory:").unwrap();
    let c: Documents = db.collection("c");
    c.insert_many(&documents(2_000)).run().unwrap();
    c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    let transaction = db.begin().unwrap();
    let within: Documents = transaction.collection("c");
    // The first array in an index changes the catalog.
    within.insert_one(&rawdoc! { "_id": -1, "a": ["x", "y"] }).unwrap();
    within.find(doc! { "b": 3 }).count().run().unwrap();
    elsewhere(|| c.analyze()).unwrap();
    assert_eq!(within.analyze().unwrap_err().kind(), ErrorKind::ReadOnly);
    transaction.commit().unwrap();
    assert_eq!(c.find(doc! { "a": "y" }).count().run().unwrap(), 1);
    // Statistics from before a change of the definition do not apply.
    c.drop().unwrap();
    c.insert_one(&rawdoc! { "a": 1 }).unwrap();
    assert_eq!(c.find(doc! { "a": 1 }).count().run().unwrap(), 1);
}
