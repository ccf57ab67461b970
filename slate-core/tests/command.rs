//! Commands on every store: replies and errors.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{Database, Error};

use self::common::STORES;

/// Runs a test on every store.
fn on_every_store(behaviour: impl Fn(&Database)) {
    for store in STORES {
        behaviour(&store.open().db);
    }
}

fn command(db: &Database, command: &Document) -> Result<Document, Error> {
    let command = RawDocumentBuf::try_from(command).unwrap();
    db.command(&command).map(|reply| Document::try_from(reply.as_ref()).unwrap())
}

#[track_caller]
fn run(db: &Database, wanted: Document) -> Document {
    command(db, &wanted).unwrap_or_else(|error| panic!("{wanted}: {error}"))
}

/// Returns the documents of a cursor's only batch.
#[track_caller]
fn rows(db: &Database, wanted: Document) -> Vec<Document> {
    let reply = run(db, wanted);
    let cursor = reply.get_document("cursor").unwrap();
    assert_eq!(cursor.get_i64("id").unwrap(), 0);
    cursor.get_array("firstBatch").unwrap().iter().map(|row| row.as_document().unwrap().clone()).collect()
}

#[track_caller]
fn refused(db: &Database, wanted: Document, code: i32) {
    match command(db, &wanted) {
        Ok(reply) => panic!("{wanted}\ndid not fail: {reply}"),
        Err(error) => assert_eq!((error.code(), error.unsupported()), (code, None), "{wanted}: {error}"),
    }
}

#[track_caller]
fn unsupported(db: &Database, wanted: Document, name: &str) {
    match command(db, &wanted) {
        Ok(reply) => panic!("{wanted}\ndid not fail: {reply}"),
        Err(error) => assert_eq!(error.unsupported(), Some(name), "{wanted}: {error}"),
    }
}

fn write_error_codes(reply: &Document) -> Vec<(i32, i32)> {
    let errors = reply.get_array("writeErrors").map(Vec::as_slice).unwrap_or_default();
    let code = |error: &Bson| {
        let error = error.as_document().unwrap();
        (error.get_i32("index").unwrap(), error.get_i32("code").unwrap())
    };
    errors.iter().map(code).collect()
}

fn with_numbers(db: &Database) {
    let documents: Vec<Document> = (0..10).map(|n| doc! { "_id": n, "n": n, "tags": ["x", n % 3] }).collect();
    assert_eq!(run(db, doc! { "insert": "c", "documents": documents }), doc! { "n": 10, "ok": 1.0 });
}

#[test]
fn find_returns_all_documents_in_the_first_batch() {
    on_every_store(|db| {
        with_numbers(db);
        let reply = run(
            db,
            doc! { "find": "c", "filter": { "n": { "$gte": 3 } }, "sort": { "n": -1 }, "projection": { "n": 1, "_id": 0 },
            "skip": 1.9, "limit": 2_i64, "batchSize": 1, "$db": "shop", "comment": { "why": 1 } },
        );
        let batch = vec![doc! { "n": 8 }, doc! { "n": 7 }];
        assert_eq!(reply, doc! { "cursor": { "firstBatch": batch, "id": 0_i64, "ns": "shop.c" }, "ok": 1.0 });
        assert_eq!(rows(db, doc! { "find": "c", "batchSize": 3, "singleBatch": true }).len(), 3);
        assert_eq!(rows(db, doc! { "find": "c", "limit": 0 }).len(), 10);
        assert_eq!(rows(db, doc! { "find": "nowhere" }).len(), 0);
        assert_eq!(rows(db, doc! { "find": "c", "hint": "_id_", "let": {}, "min": {}, "returnKey": false }).len(), 10);
    });
}

#[test]
fn find_fails_where_mongodb_fails() {
    on_every_store(|db| {
        refused(db, doc! { "find": "c", "filter": 1 }, 14);
        refused(db, doc! { "find": "c", "filter": Bson::Null }, 14);
        refused(db, doc! { "find": "c", "sort": Bson::Null }, 14);
        refused(db, doc! { "find": "c", "skip": "1" }, 14);
        refused(db, doc! { "find": "c", "skip": -1 }, 2);
        refused(db, doc! { "find": "c", "limit": -2.5 }, 2);
        refused(db, doc! { "find": "c", "singleBatch": Bson::Null }, 14);
        refused(db, doc! { "find": "c", "hint": 1 }, 9);
        refused(db, doc! { "find": "c", "hint": "none" }, 2);
        refused(db, doc! { "find": "c", "tailable": true }, 2);
        refused(db, doc! { "find": "c", "awaitData": true }, 9);
        refused(db, doc! { "find": "c", "query": {} }, 40415);
        refused(db, doc! { "find": "c", "filter": {}, "maxTimeMS": -1 }, 2);
        refused(db, doc! { "find": "c", "maxTimeMS": 1.5 }, 9);
        refused(db, doc! { "find": "c", "writeConcern": { "w": 1 } }, 72);
        refused(db, doc! { "find": "c", "readConcern": { "level": "best" } }, 2);
        refused(db, doc! { "find": "c", "readConcern": { "depth": 1 } }, 40415);
        refused(db, doc! { "find": "c", "txnNumber": 1_i64 }, 20);
        refused(db, doc! { "find": 1 }, 73);
        refused(db, doc! { "find": "" }, 73);
        refused(db, doc! { "find": "a$b" }, 73);
        refused(db, doc! { "find": "c", "let": 1 }, 14);
        refused(db, doc! { "find": "c", "let": { "x": { "$divide": [1, 0] } } }, 2);
        let positional = doc! { "find": "c", "filter": { "a": 1, "$expr": true }, "projection": { "a.$": 1 } };
        refused(db, positional, 224);
        unsupported(db, doc! { "find": "c", "showRecordId": true }, "showRecordId");
    });
}

#[test]
fn concerns_that_always_hold_and_collations_are_accepted() {
    on_every_store(|db| {
        for level in ["available", "linearizable", "local", "majority", "snapshot"] {
            assert_eq!(run(db, doc! { "count": "c", "readConcern": { "level": level } }), doc! { "n": 0, "ok": 1.0 });
        }
        run(db, doc! { "find": "c", "collation": { "locale": "simple" } });
        run(db, doc! { "count": "c", "collation": Bson::Null, "readConcern": Bson::Null });
        run(
            db,
            doc! { "insert": "c", "documents": [{}], "writeConcern": { "w": "majority", "j": true, "wtimeout": 5 } },
        );
        refused(db, doc! { "insert": "c", "documents": [{}], "writeConcern": { "w": 2 } }, 2);
        refused(db, doc! { "insert": "c", "documents": [{}], "writeConcern": 1.0 }, 14);
        refused(db, doc! { "insert": "c", "documents": [{}], "readConcern": { "level": "majority" } }, 72);
        refused(db, doc! { "find": "c", "collation": { "strength": 1 } }, 40414);
        refused(db, doc! { "find": "c", "collation": { "locale": "nowhere" } }, 2);
        refused(db, doc! { "find": "c", "collation": { "locale": "en", "strength": 6 } }, 2);
        refused(db, doc! { "find": "c", "collation": { "locale": "en", "case": true } }, 40415);
        refused(db, doc! { "find": "c", "collation": { "locale": "en", "caseLevel": 1 } }, 14);
        run(db, doc! { "create": "d", "collation": { "locale": "sv" } });
        run(db, doc! { "create": "d", "collation": { "locale": "sv", "strength": 3 } });
        refused(db, doc! { "create": "d" }, 48);
        refused(db, doc! { "create": "e", "collation": { "locale": "nowhere" } }, 2);
        let listed = run(db, doc! { "listCollections": 1, "filter": { "name": "d" } });
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let options = batch[0].as_document().unwrap().get_document("options").unwrap();
        assert_eq!(options.get_document("collation").unwrap().get_str("locale").unwrap(), "sv");
        let index = doc! { "key": { "a": 1 }, "name": "a" };
        let simple = doc! { "key": { "a": 1 }, "name": "simple", "collation": { "locale": "simple" } };
        run(db, doc! { "createIndexes": "d", "indexes": [index, simple] });
        let listed = run(db, doc! { "listIndexes": "d" });
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let collated = |index: &Bson| index.as_document().unwrap().contains_key("collation");
        assert_eq!(batch.iter().map(collated).collect::<Vec<_>>(), [false, true, false]);
        run(db, doc! { "insert": "d", "documents": [{ "_id": 1, "a": "z" }, { "_id": 2, "a": "ö" }] });
        let found = run(db, doc! { "find": "d", "sort": { "a": 1 } });
        let batch = found.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        assert_eq!(batch[0].as_document().unwrap().get_i32("_id").unwrap(), 1);
    });
}

#[test]
fn count_accepts_limits_of_either_sign_and_any_numeric_type() {
    on_every_store(|db| {
        with_numbers(db);
        let count = |options: Document| {
            let mut command = doc! { "count": "c" };
            command.extend(options);
            run(db, command).get_i32("n").unwrap()
        };
        assert_eq!(count(doc! {}), 10);
        assert_eq!(count(doc! { "query": { "n": { "$lt": 4 } }, "limit": -3 }), 3);
        assert_eq!(count(doc! { "limit": 0.0, "query": Bson::Null, "fields": 1 }), 10);
        assert_eq!(count(doc! { "skip": 2.9 }), 8);
        assert_eq!(count(doc! { "skip": "2.5".parse::<bson::Decimal128>().unwrap() }), 8);
        assert_eq!(count(doc! { "skip": "3.5".parse::<bson::Decimal128>().unwrap() }), 6);
        assert_eq!(count(doc! { "skip": f64::NAN }), 10);
        assert_eq!(count(doc! { "skip": f64::INFINITY }), 0);
        refused(db, doc! { "count": "c", "limit": 1.5 }, 9);
        refused(db, doc! { "count": "c", "limit": f64::NAN }, 9);
        refused(db, doc! { "count": "c", "limit": true }, 2);
        refused(db, doc! { "count": "c", "limit": i64::MIN }, 2);
        refused(db, doc! { "count": "c", "skip": -1 }, 2);
        refused(db, doc! { "count": "c", "skip": f64::NEG_INFINITY }, 2);
    });
}

#[test]
fn distinct_returns_values_in_order() {
    on_every_store(|db| {
        with_numbers(db);
        let reply = run(db, doc! { "distinct": "c", "key": "tags", "query": { "n": { "$lt": 5 } } });
        assert_eq!(reply, doc! { "values": [0, 1, 2, "x"], "ok": 1.0 });
        refused(db, doc! { "distinct": "c" }, 40414);
        refused(db, doc! { "distinct": "c", "key": Bson::Null }, 40414);
        refused(db, doc! { "distinct": "c", "key": 1 }, 14);
        refused(db, doc! { "distinct": "c", "key": "a\0b" }, 31032);
    });
}

#[test]
fn an_insert_stops_at_the_first_error_unless_it_is_unordered() {
    on_every_store(|db| {
        let documents = vec![doc! { "_id": 1 }, doc! { "_id": 1 }, doc! { "_id": [1] }, doc! { "_id": 2 }];
        let reply = run(db, doc! { "insert": "a", "documents": &documents });
        assert_eq!((reply.get_i32("n").unwrap(), write_error_codes(&reply)), (1, vec![(1, 11_000)]));
        let reply = run(db, doc! { "insert": "b", "documents": &documents, "ordered": false });
        assert_eq!((reply.get_i32("n").unwrap(), write_error_codes(&reply)), (2, vec![(1, 11_000), (2, 53)]));
        assert_eq!(run(db, doc! { "count": "a" }).get_i32("n").unwrap(), 1);
        assert_eq!(run(db, doc! { "count": "b" }).get_i32("n").unwrap(), 2);
        refused(db, doc! { "insert": "a" }, 40414);
        refused(db, doc! { "insert": "a", "documents": [] }, 16);
        refused(db, doc! { "insert": "a", "documents": [1] }, 14);
        refused(db, doc! { "insert": "a", "documents": [{}], "ordered": 1 }, 14);
    });
}

#[test]
fn an_update_executes_its_statements_in_order_and_reports_each() {
    on_every_store(|db| {
        with_numbers(db);
        let reply = run(
            db,
            doc! { "update": "c", "updates": [
                { "q": { "n": { "$lt": 3 } }, "u": { "$set": { "small": true } }, "multi": true },
                { "q": { "_id": 77 }, "u": { "n": 77 }, "upsert": true },
                { "q": {}, "u": { "$inc": { "n": 100 } }, "sort": { "n": -1 } },
                { "q": { "_id": 3 }, "u": { "$set": { "n": 3 } } },
            ] },
        );
        let upserted = vec![doc! { "index": 1, "_id": 77 }];
        assert_eq!(reply, doc! { "n": 6, "upserted": upserted, "nModified": 4, "ok": 1.0 });
        assert_eq!(rows(db, doc! { "find": "c", "filter": { "n": 177 } }), [doc! { "_id": 77, "n": 177 }]);
    });
}

#[test]
fn a_failed_statement_is_reported_and_earlier_ones_remain() {
    on_every_store(|db| {
        with_numbers(db);
        let updates = vec![
            doc! { "q": { "_id": 0 }, "u": { "$set": { "seen": 1 } } },
            doc! { "q": { "_id": 1 }, "u": { "$set": { "_id": 5 } } },
            doc! { "q": {}, "u": { "a": 1 }, "multi": true },
            doc! { "q": { "_id": 2 }, "u": { "$set": { "seen": 1 } } },
        ];
        let reply = run(db, doc! { "update": "c", "updates": &updates });
        assert_eq!((reply.get_i32("n").unwrap(), write_error_codes(&reply)), (1, vec![(1, 66)]));
        let reply = run(db, doc! { "update": "c", "updates": &updates, "ordered": false });
        assert_eq!((reply.get_i32("n").unwrap(), write_error_codes(&reply)), (2, vec![(1, 66), (2, 9)]));
        assert_eq!(rows(db, doc! { "find": "c", "filter": { "seen": 1 } }).len(), 2);

        let one = |statement: Document| {
            let reply = run(db, doc! { "update": "c", "updates": [statement] });
            write_error_codes(&reply).first().map(|(_, code)| *code)
        };
        assert_eq!(one(doc! { "q": {}, "u": { "$set": { "a": 1 } }, "sort": { "n": 1 }, "multi": true }), Some(9));
        assert_eq!(one(doc! { "q": {}, "u": { "$set": { "a": 1 } }, "c": { "x": 1 } }), Some(51198));
        assert_eq!(one(doc! { "q": { "$nope": 1 }, "u": { "$set": { "a": 1 } } }), Some(2));
        assert_eq!(one(doc! { "q": {}, "u": [{ "$match": { "a": 1 } }] }), Some(72));
        assert_eq!(one(doc! { "q": {}, "u": [{ "$set": { "a": "$$x" } }], "c": { "X": 1 } }), Some(9));
    });
}

#[test]
fn pipelines_use_the_variables_of_let_and_c() {
    on_every_store(|db| {
        with_numbers(db);
        let set = doc! { "$set": { "sum": { "$add": ["$n", "$$more", "$$most"] } } };
        let filter = doc! { "$expr": { "$lt": ["$n", "$$more"] } };
        let update = doc! { "q": &filter, "u": [&set], "c": { "most": 100 }, "multi": true };
        let reply = run(db, doc! { "update": "c", "updates": [update], "let": { "more": 2 } });
        assert_eq!(reply, doc! { "n": 2, "nModified": 2, "ok": 1.0 });
        assert_eq!(rows(db, doc! { "find": "c", "filter": { "sum": { "$in": [102, 103] } } }).len(), 2);
        let modify = doc! {
            "findAndModify": "c", "query": filter, "update": [{ "$set": { "sum": "$$more" } }], "let": { "more": 1 }, "new": true,
        };
        assert_eq!(run(db, modify).get_document("value").unwrap().get_i32("sum").unwrap(), 1);
        let reply = run(
            db,
            doc! { "delete": "c", "deletes": [{ "q": { "$expr": { "$gte": ["$n", "$$from"] } }, "limit": 0 }], "let": { "from": 4 } },
        );
        assert_eq!(reply, doc! { "n": 6, "ok": 1.0 });
    });
}

#[test]
fn a_malformed_update_fails_as_a_whole() {
    on_every_store(|db| {
        let update = |statement: Document| doc! { "update": "c", "updates": [statement] };
        refused(db, update(doc! { "u": {} }), 40414);
        refused(db, update(doc! { "q": {} }), 40414);
        refused(db, update(doc! { "q": Bson::Null, "u": {} }), 40414);
        refused(db, update(doc! { "q": {}, "u": 1 }), 9);
        refused(db, update(doc! { "q": {}, "u": {}, "multi": 1 }), 14);
        refused(db, update(doc! { "q": {}, "u": {}, "limit": 1 }), 40415);
        refused(db, update(doc! { "q": {}, "u": {}, "arrayFilters": [1] }), 14);
        refused(db, doc! { "update": "c", "updates": [] }, 16);
    });
}

#[test]
fn a_delete_removes_one_or_all() {
    on_every_store(|db| {
        with_numbers(db);
        let reply = run(
            db,
            doc! { "delete": "c", "deletes": [
            { "q": { "n": { "$gte": 5 } }, "limit": 1 }, { "q": { "n": { "$gte": 8 } }, "limit": 0 } ] },
        );
        assert_eq!(reply, doc! { "n": 3, "ok": 1.0 });
        let left: Vec<i32> = rows(db, doc! { "find": "c" }).iter().map(|row| row.get_i32("n").unwrap()).collect();
        assert_eq!(left, [0, 1, 2, 3, 4, 6, 7]);
        refused(db, doc! { "delete": "c", "deletes": [{ "q": {} }] }, 40414);
        refused(db, doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 2 }] }, 9);
        refused(db, doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0.5 }] }, 9);
    });
}

#[test]
fn find_and_modify_returns_the_document_before_or_after() {
    on_every_store(|db| {
        with_numbers(db);
        let found = run(
            db,
            doc! { "findAndModify": "c", "query": { "n": { "$gt": 3 } }, "sort": { "n": -1 }, "update": { "$set": { "n": 50 } },
            "fields": { "n": 1 } },
        );
        let last = doc! { "n": 1, "updatedExisting": true };
        assert_eq!(found, doc! { "lastErrorObject": last.clone(), "value": { "_id": 9, "n": 9 }, "ok": 1.0 });
        let found = run(db, doc! { "findandmodify": "c", "query": { "_id": 9 }, "update": { "a": 1 }, "new": 1 });
        assert_eq!(found, doc! { "lastErrorObject": last, "value": { "_id": 9, "a": 1 }, "ok": 1.0 });
        let found =
            run(db, doc! { "findAndModify": "c", "query": { "_id": 10 }, "update": { "a": 1 }, "upsert": true });
        let last = doc! { "n": 1, "updatedExisting": false, "upserted": 10 };
        assert_eq!(found, doc! { "lastErrorObject": last, "value": Bson::Null, "ok": 1.0 });
        let found = run(db, doc! { "findAndModify": "c", "query": { "_id": 10 }, "remove": true });
        assert_eq!(found, doc! { "lastErrorObject": { "n": 1 }, "value": { "_id": 10, "a": 1 }, "ok": 1.0 });
        let found = run(db, doc! { "findAndModify": "c", "query": { "_id": 10 }, "remove": true });
        assert_eq!(found, doc! { "lastErrorObject": { "n": 0 }, "value": Bson::Null, "ok": 1.0 });
    });
}

#[test]
fn find_and_modify_rejects_contradictory_options_without_changes() {
    on_every_store(|db| {
        with_numbers(db);
        let with = |options: Document| {
            let mut command = doc! { "findAndModify": "c", "query": { "_id": 1 } };
            command.extend(options);
            command
        };
        refused(db, with(doc! {}), 9);
        refused(db, with(doc! { "update": Bson::Null }), 9);
        refused(db, with(doc! { "update": 1 }), 9);
        refused(db, with(doc! { "update": {}, "remove": true }), 9);
        refused(db, with(doc! { "remove": true, "new": true }), 9);
        refused(db, with(doc! { "remove": true, "upsert": true }), 9);
        refused(db, with(doc! { "remove": true, "arrayFilters": [] }), 9);
        refused(db, with(doc! { "update": { "$set": { "_id": 2 } } }), 66);
        refused(db, with(doc! { "update": { "n": 5 }, "fields": { "tags.$": 1 }, "new": true }), 2);
        refused(db, with(doc! { "update": { "n": 5 }, "fields": { "tags.$": 1 } }), 51246);
        assert_eq!(
            rows(db, doc! { "find": "c", "filter": { "_id": 1 } }),
            [doc! { "_id": 1, "n": 1, "tags": ["x", 1] }]
        );
    });
}

#[test]
fn collections_are_created_listed_and_dropped() {
    on_every_store(|db| {
        assert_eq!(run(db, doc! { "create": "b" }), doc! { "ok": 1.0 });
        run(db, doc! { "create": "b" });
        run(db, doc! { "create": "a" });
        let listed = rows(db, doc! { "listCollections": 1, "nameOnly": true });
        assert_eq!(listed, ["a", "b"].map(|name| doc! { "name": name, "type": "collection" }));
        let listed = rows(db, doc! { "listCollections": 1, "filter": { "name": "b" } });
        assert_eq!(listed[0].get_document("idIndex").unwrap().get_str("name").unwrap(), "_id_");
        assert_eq!(run(db, doc! { "drop": "b" }), doc! { "nIndexesWas": 1, "ns": "test.b", "ok": 1.0 });
        assert_eq!(run(db, doc! { "drop": "b" }), doc! { "ok": 1.0 });
        unsupported(db, doc! { "create": "d", "capped": true }, "capped");
        unsupported(db, doc! { "create": "d", "timeseries": {} }, "timeseries");
        refused(db, doc! { "create": "d", "validator": 1 }, 14);
        run(db, doc! { "create": "d", "validator": {}, "capped": false });
        refused(db, doc! { "create": "d", "shape": 1 }, 40415);
        refused(db, doc! { "create": "system.d" }, 73);
    });
}

#[test]
fn create_indexes_is_atomic() {
    on_every_store(|db| {
        with_numbers(db);
        let index = |spec: Document| doc! { "createIndexes": "c", "indexes": [spec] };
        let made =
            run(db, index(doc! { "key": { "n": 1 }, "name": "n_1", "unique": true, "v": 2, "background": true }));
        assert_eq!(
            made,
            doc! { "numIndexesBefore": 1, "numIndexesAfter": 2, "createdCollectionAutomatically": false, "ok": 1.0 }
        );
        let again = run(db, index(doc! { "key": { "n": 1 }, "name": "n_1", "unique": true }));
        assert_eq!(again.get_str("note").unwrap(), "all indexes already exist");
        let partial = doc! { "n": { "$gt": 3 } };
        run(db, index(doc! { "key": { "tags": 1 }, "name": "t", "partialFilterExpression": &partial }));
        let two = vec![doc! { "key": { "z": 1 }, "name": "z" }, doc! { "key": { "n": -1 }, "name": "n_1" }];
        refused(db, doc! { "createIndexes": "c", "indexes": two }, 86);

        let listed = rows(db, doc! { "listIndexes": "c" });
        assert_eq!(
            listed,
            [
                doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
                doc! { "v": 2, "key": { "n": 1 }, "name": "n_1", "unique": true },
                doc! { "v": 2, "key": { "tags": 1 }, "name": "t", "partialFilterExpression": partial },
            ]
        );
        refused(db, doc! { "listIndexes": "nowhere" }, 26);
    });
}

#[test]
fn create_indexes_fails_where_mongodb_fails() {
    on_every_store(|db| {
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] });
        let index = |spec: Document| doc! { "createIndexes": "c", "indexes": [spec] };
        let on = |options: Document| {
            let mut spec = doc! { "key": { "b": 1 }, "name": "b" };
            spec.extend(options);
            index(spec)
        };
        refused(db, index(doc! { "key": { "a": 1 }, "name": "other" }), 85);
        refused(db, index(doc! { "key": { "a": 1 }, "name": "a", "unique": true }), 86);
        refused(db, index(doc! { "key": { "a": 1 } }), 9);
        refused(db, index(doc! { "name": "a" }), 9);
        refused(db, index(doc! { "key": {}, "name": "none" }), 67);
        refused(db, index(doc! { "key": { "b": 0 }, "name": "b" }), 67);
        refused(db, index(doc! { "key": { "b": 1 }, "name": "_id_" }), 2);
        refused(db, index(doc! { "key": { "_id": 1 }, "name": "_id_", "sparse": true }), 197);
        refused(db, on(doc! { "unique": "yes" }), 14);
        refused(db, on(doc! { "lonely": true }), 197);
        refused(db, on(doc! { "v": 3 }), 67);
        refused(db, on(doc! { "sparse": true, "partialFilterExpression": { "b": 1 } }), 67);
        refused(db, on(doc! { "partialFilterExpression": { "b": { "$ne": 1 } } }), 67);
        refused(db, on(doc! { "wildcardProjection": { "a": 1 } }), 2);
        let wildcard = |options: Document| {
            let mut spec = doc! { "key": { "$**": 1 }, "name": "all" };
            spec.extend(options);
            index(spec)
        };
        refused(db, wildcard(doc! { "unique": true }), 67);
        refused(db, wildcard(doc! { "sparse": true }), 67);
        refused(db, wildcard(doc! { "wildcardProjection": {} }), 9);
        refused(db, wildcard(doc! { "wildcardProjection": { "a": 1, "b": 0 } }), 31254);
        refused(db, wildcard(doc! { "wildcardProjection": 1 }), 14);
        unsupported(db, wildcard(doc! { "expireAfterSeconds": 60 }), "expireAfterSeconds");
        refused(db, doc! { "createIndexes": "c", "indexes": [] }, 2);
        refused(db, doc! { "createIndexes": "c" }, 40414);
        unsupported(db, on(doc! { "expireAfterSeconds": 60 }), "expireAfterSeconds");
        unsupported(db, on(doc! { "expireAfterSeconds": 0 }), "expireAfterSeconds");
        run(db, on(doc! { "hidden": false, "storageEngine": {} }));
        unsupported(db, index(doc! { "key": { "b": "text" }, "name": "b" }), "text");
        run(db, index(doc! { "key": { "a": 1 }, "name": "sparse", "sparse": true }));
        run(db, index(doc! { "key": { "_id": 1 }, "name": "whatever" }));
    });
}

#[test]
fn indexes_are_dropped_by_name_by_keys_and_all_at_once() {
    on_every_store(|db| {
        let specs = ["a", "b", "d", "e"].map(|name| doc! { "key": { name: 1 }, "name": name });
        run(db, doc! { "createIndexes": "c", "indexes": specs.to_vec() });
        assert_eq!(run(db, doc! { "dropIndexes": "c", "index": "a" }), doc! { "nIndexesWas": 5, "ok": 1.0 });
        run(db, doc! { "deleteIndexes": "c", "index": { "b": 1 } });
        refused(db, doc! { "dropIndexes": "c", "index": "a" }, 27);
        refused(db, doc! { "dropIndexes": "c", "index": { "b": 1 } }, 27);
        refused(db, doc! { "dropIndexes": "c", "index": ["d", "a"] }, 27);
        refused(db, doc! { "dropIndexes": "c", "index": "_id_" }, 72);
        refused(db, doc! { "dropIndexes": "c", "index": { "_id": 1 } }, 72);
        refused(db, doc! { "dropIndexes": "nowhere", "index": "*" }, 26);
        refused(db, doc! { "dropIndexes": "c" }, 40414);
        assert_eq!(run(db, doc! { "dropIndexes": "c", "index": "*" }).get_i32("nIndexesWas").unwrap(), 3);
        assert_eq!(rows(db, doc! { "listIndexes": "c" }).len(), 1);
    });
}

#[test]
fn explain_returns_the_plan_without_executing_it() {
    on_every_store(|db| {
        with_numbers(db);
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "n": 1 }, "name": "n_1" }] });
        for command in [
            doc! { "find": "c", "filter": { "n": 3 } },
            doc! { "count": "c", "query": { "n": 3 } },
            doc! { "distinct": "c", "key": "n", "query": { "n": 3 } },
        ] {
            let reply = run(db, doc! { "explain": &command, "verbosity": "queryPlanner" });
            let planner = reply.get_document("queryPlanner").unwrap();
            assert_eq!(planner.get_str("namespace").unwrap(), "test.c");
            assert!(planner.get_i32("candidates").unwrap() >= 2, "{reply}");
            assert!(planner.get_document("winningPlan").unwrap().to_string().contains("n_1"), "{reply}");
            assert_eq!(reply.get_document("command").unwrap(), &command);
        }
        refused(db, doc! { "explain": { "find": "c", "filter": 1 } }, 14);
        refused(db, doc! { "explain": { "find": "c" }, "verbosity": "loud" }, 2);
        unsupported(db, doc! { "explain": { "find": "c" }, "verbosity": "allPlansExecution" }, "allPlansExecution");
        unsupported(db, doc! { "explain": { "delete": "c" } }, "explain of delete");
    });
}

#[test]
fn min_and_max_limit_the_keys_of_the_hinted_index() {
    on_every_store(|db| {
        let ids = |command: Document| -> Vec<i32> {
            rows(db, command).iter().map(|row| row.get_i32("_id").unwrap()).collect()
        };
        let keys = || (0..4).flat_map(|a| (0..4).rev().map(move |b| (a, b)));
        let documents: Vec<Document> =
            (0..).zip(keys()).map(|(id, (a, b))| doc! { "_id": id, "a": a, "b": b }).collect();
        run(db, doc! { "insert": "c", "documents": &documents });
        let index = |keys: Document, name: &str| doc! { "key": keys, "name": name };
        let indexes = [index(doc! { "a": 1, "b": -1 }, "ab"), index(doc! { "a": -1, "b": 1 }, "ba")];
        run(db, doc! { "createIndexes": "c", "indexes": indexes.to_vec() });
        let limit = |(a, b): (i32, i32)| doc! { "a": a, "b": b };
        // The _ids are in the order of the index `ab`, and against that of `ba`.
        for (low, min) in (0..).zip(keys()) {
            for (high, max) in (0..16).zip(keys()).skip(usize::try_from(low).unwrap() + 1) {
                let find = doc! { "find": "c", "hint": "ab", "min": limit(min), "max": limit(max) };
                assert_eq!(ids(find), (low..high).collect::<Vec<_>>(), "{min:?} {max:?}");
                let find = doc! { "find": "c", "hint": "ba", "min": limit(max), "max": limit(min) };
                assert_eq!(ids(find), (low + 1..=high).rev().collect::<Vec<_>>(), "{min:?} {max:?}");
            }
        }
        let find = |rest: Document| {
            let mut find =
                doc! { "find": "c", "hint": { "a": 1, "b": -1 }, "min": limit((1, 2)), "max": limit((3, 1)) };
            find.extend(rest);
            find
        };
        assert_eq!(ids(find(doc! {})), [5, 6, 7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(ids(find(doc! { "filter": { "b": { "$gte": 2 } } })), [5, 8, 9, 12, 13]);
        assert_eq!(ids(find(doc! { "filter": { "a": 2 }, "skip": 1, "limit": 2 })), [9, 10]);
        assert_eq!(ids(find(doc! { "sort": { "a": -1, "b": 1 }, "limit": 2 })), [13, 12]);
        assert_eq!(ids(find(doc! { "sort": { "_id": -1 }, "limit": 2 })), [13, 12]);
        assert_eq!(ids(find(doc! { "max": {} })), (5..16).collect::<Vec<_>>());
        assert_eq!(ids(find(doc! { "min": {} })), (0..14).collect::<Vec<_>>());
        let covered = rows(db, find(doc! { "projection": { "_id": 0, "b": 1 }, "limit": 2 }));
        assert_eq!(covered, [doc! { "b": 2 }, doc! { "b": 1 }]);
        let explained =
            run(db, doc! { "explain": find(doc! { "projection": { "_id": 0, "b": 1 } }), "verbosity": "queryPlanner" });
        assert!(explained.to_string().contains("PROJECTION_COVERED"), "{explained}");
        let by_id = |rest: Document| {
            let mut find = doc! { "find": "c", "hint": "_id_" };
            find.extend(rest);
            ids(find)
        };
        assert_eq!(by_id(doc! { "min": { "_id": 3.0 }, "max": { "_id": 6 } }), [3, 4, 5]);
        assert_eq!(by_id(doc! { "min": { "_id": 13 }, "sort": { "_id": -1 } }), [15, 14, 13]);
        assert_eq!(by_id(doc! { "max": { "_id": 2 } }), [0, 1]);

        // A document with several keys is returned once, and sorted by all of them.
        run(
            db,
            doc! { "insert": "t", "documents": [{ "_id": 1, "t": [5, 1] }, { "_id": 2, "t": [3, 4] }, { "_id": 3, "t": "x" }] },
        );
        run(db, doc! { "createIndexes": "t", "indexes": [index(doc! { "t": 1 }, "t")] });
        let tagged = doc! { "find": "t", "hint": "t", "min": { "t": 2 }, "max": { "t": 6 } };
        assert_eq!(ids(tagged.clone()), [2, 1]);
        let mut sorted = tagged;
        sorted.insert("sort", doc! { "t": 1 });
        assert_eq!(ids(sorted), [1, 2]);
        assert_eq!(ids(doc! { "find": "t", "hint": "t", "min": { "t": "a" } }), [3]);

        refused(db, doc! { "find": "c", "min": { "a": 1, "b": 1 } }, 51173);
        for limits in [doc! { "a": 1 }, doc! { "b": 1, "a": 1 }, doc! { "a": 1, "b": 1, "_id": 1 }] {
            refused(db, doc! { "find": "c", "hint": "ab", "min": limits }, 51174);
        }
        refused(db, doc! { "find": "c", "hint": "ab", "min": limit((2, 0)), "max": limit((1, 0)) }, 51175);
        refused(db, doc! { "find": "c", "hint": "ab", "min": limit((2, 0)), "max": limit((2, 0)) }, 51175);
        refused(db, doc! { "find": "c", "hint": "ab", "min": limit((1, 0)), "max": { "b": 1, "a": 2 } }, 51176);
        refused(db, doc! { "find": "c", "hint": { "$natural": 1 }, "min": limit((1, 0)) }, 291);
        refused(db, doc! { "find": "c", "hint": "ab", "min": 1 }, 14);
        refused(db, doc! { "find": "t", "hint": "t", "min": { "t": "x".repeat(2_000) } }, 2);
        let collated = doc! { "locale": "en", "strength": 2 };
        refused(db, doc! { "find": "t", "hint": "t", "min": { "t": "a" }, "collation": &collated }, 51174);
        assert_eq!(ids(doc! { "find": "t", "hint": "t", "min": { "t": 4 }, "collation": &collated }), [2, 1, 3]);
        run(db, doc! { "createIndexes": "t", "indexes": [{ "key": { "$**": 1 }, "name": "all" }] });
        refused(db, doc! { "find": "t", "hint": "all", "min": { "t": 1 } }, 51174);
        run(db, doc! { "create": "v", "viewOn": "c", "pipeline": [] });
        refused(db, doc! { "find": "v", "hint": "ab", "min": limit((1, 0)) }, 168);
    });
}

#[test]
fn return_key_returns_the_keys_of_the_index_that_is_read() {
    on_every_store(|db| {
        let documents =
            [doc! { "_id": 1, "a": 1, "b": { "c": 5 } }, doc! { "_id": 2, "a": 2 }, doc! { "_id": 3, "a": 3, "b": 1 }];
        run(db, doc! { "insert": "c", "documents": documents.to_vec() });
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "a": -1, "b.c": 1 }, "name": "ac" }] });
        let keys = |rest: Document| {
            let mut find = doc! { "find": "c", "returnKey": true };
            find.extend(rest);
            rows(db, find)
        };
        let key = |a: i32, c: Bson| doc! { "a": a, "b.c": c };
        assert_eq!(
            keys(doc! { "filter": { "a": { "$lte": 2 } }, "hint": "ac" }),
            [key(2, Bson::Null), key(1, 5.into())]
        );
        assert_eq!(keys(doc! { "hint": "ac", "skip": 1, "limit": 1 }), [key(2, Bson::Null)]);
        assert_eq!(keys(doc! { "filter": { "a": 1 }, "hint": "ac", "projection": { "b": 1 } }), [key(1, 5.into())]);
        assert_eq!(
            keys(doc! { "hint": "ac", "min": { "a": 2, "b.c": Bson::MinKey }, "max": { "a": 1, "b.c": Bson::MinKey } }),
            [key(2, Bson::Null)]
        );
        assert_eq!(keys(doc! { "filter": { "_id": 2 } }), [doc! { "_id": 2 }]);
        assert_eq!(keys(doc! { "filter": { "_id": { "$gt": 1 } } }), [doc! { "_id": 2 }, doc! { "_id": 3 }]);
        assert_eq!(keys(doc! { "sort": { "_id": -1 }, "limit": 1 }), [doc! { "_id": 3 }]);
        assert_eq!(keys(doc! { "hint": { "_id": 1 }, "limit": 1 }), [doc! { "_id": 1 }]);
        assert_eq!(keys(doc! {}), [doc! {}, doc! {}, doc! {}]);
        assert_eq!(keys(doc! { "filter": { "b": 1 } }), [doc! {}]);
        assert_eq!(keys(doc! { "filter": { "$or": [{ "a": 1 }, { "_id": 3 }] } }), [doc! {}, doc! {}]);
        refused(db, doc! { "find": "c", "returnKey": 1 }, 14);
        run(db, doc! { "create": "v", "viewOn": "c", "pipeline": [] });
        refused(db, doc! { "find": "v", "returnKey": true }, 168);
        run(db, doc! { "insert": "c", "documents": [{ "_id": 4, "a": [7, 8] }] });
        unsupported(
            db,
            doc! { "find": "c", "hint": "ac", "returnKey": true },
            "returnKey of an index with several keys of a document",
        );
    });
}

#[test]
fn sizes_of_a_collection_and_of_the_database() {
    on_every_store(|db| {
        let none = doc! {
            "ns": "test.c", "size": 0, "count": 0, "storageSize": 0, "nindexes": 0, "totalIndexSize": 0, "totalSize": 0,
            "indexSizes": {}, "scaleFactor": 1, "ok": 1.0,
        };
        assert_eq!(run(db, doc! { "collStats": "c" }), none);
        let empty = run(db, doc! { "dbStats": 1 });
        assert_eq!((empty.get_i64("objects").unwrap(), empty.get_f64("avgObjSize").unwrap()), (0, 0.0), "{empty}");

        run(db, doc! { "insert": "c", "documents": [{ "_id": 1, "a": 1 }, { "_id": 2, "a": 2 }] });
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] });
        run(db, doc! { "create": "v", "viewOn": "c", "pipeline": [] });
        let bytes = db.collection::<Document>("c").stats().unwrap();
        let length = |bytes: u64| i32::try_from(bytes).unwrap();
        let (stored, entries) = (length(bytes.bytes), length(bytes.indexes[0].bytes));
        let expected = doc! {
            "ns": "shop.c", "size": 42, "count": 2, "avgObjSize": 21, "storageSize": stored, "capped": false, "nindexes": 2,
            "indexBuilds": [], "totalIndexSize": entries, "totalSize": stored + entries,
            "indexSizes": { "_id_": 0, "a_1": entries }, "scaleFactor": 1, "ok": 1.0,
        };
        assert_eq!(run(db, doc! { "collStats": "c", "$db": "shop" }), expected);
        let scaled = run(db, doc! { "collStats": "c", "scale": 10 });
        let sizes =
            ["size", "count", "avgObjSize", "storageSize", "scaleFactor"].map(|name| scaled.get_i32(name).unwrap());
        assert_eq!(sizes, [4, 2, 21, stored / 10, 10], "{scaled}");

        let expected = doc! {
            "db": "shop", "collections": 1_i64, "views": 1_i64, "objects": 2_i64, "avgObjSize": 21.0, "dataSize": 42.0,
            "storageSize": f64::from(stored), "indexes": 2_i64, "indexSize": f64::from(entries),
            "totalSize": f64::from(stored + entries), "scaleFactor": 1_i64, "ok": 1.0,
        };
        assert_eq!(run(db, doc! { "dbStats": 1, "$db": "shop" }), expected);
        let scaled = run(db, doc! { "dbStats": 1, "scale": 10, "freeStorage": 1 });
        assert_eq!(
            (scaled.get_f64("dataSize").unwrap(), scaled.get_i64("scaleFactor").unwrap()),
            (4.2, 10),
            "{scaled}"
        );
        let free = db.stats().unwrap().storage.free;
        assert_eq!(scaled.contains_key("totalFreeStorageSize"), free.is_some(), "{scaled}");

        refused(db, doc! { "collStats": "v" }, 166);
        refused(db, doc! { "collStats": 1 }, 73);
        refused(db, doc! { "collStats": "c", "scale": 0 }, 2);
        refused(db, doc! { "collStats": "c", "scale": "a" }, 14);
        refused(db, doc! { "collStats": "c", "verbose": true }, 40415);
        refused(db, doc! { "dbStats": 1, "scale": -1 }, 2);
        refused(db, doc! { "dbStats": 1, "free": 1 }, 40415);
        refused(db, doc! { "aggregate": 1, "pipeline": [{ "$collStats": {} }], "cursor": {} }, 73);
    });
}

#[test]
fn a_bulk_write_reports_each_operation() {
    on_every_store(|db| {
        with_numbers(db);
        let ops = vec![
            doc! { "insert": 1, "document": { "_id": 1 } },
            doc! { "update": 0, "filter": { "_id": 1 }, "updateMods": { "$set": { "a": 1 } } },
            doc! { "update": 0, "filter": { "_id": 90 }, "updateMods": [{ "$set": { "b": "$$c" } }], "constants": { "c": 5 }, "upsert": true },
            doc! { "insert": 1, "document": { "_id": 1 } },
            doc! { "delete": 0, "filter": { "_id": { "$in": [1, 90] } }, "multi": true },
        ];
        let bulk = |options: Document| {
            let mut command =
                doc! { "bulkWrite": 1, "ops": ops.clone(), "nsInfo": [{ "ns": "test.c" }, { "ns": "test.others" }] };
            command.extend(options);
            command
        };
        let reply = run(db, bulk(doc! { "ordered": false }));
        let entries = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let entries: Vec<Document> = entries.iter().map(|entry| entry.as_document().unwrap().clone()).collect();
        assert_eq!(entries[0], doc! { "ok": 1.0, "idx": 0, "n": 1 });
        assert_eq!(entries[1], doc! { "ok": 1.0, "idx": 1, "n": 1, "nModified": 1 });
        assert_eq!(entries[2], doc! { "ok": 1.0, "idx": 2, "n": 1, "nModified": 0, "upserted": { "_id": 90 } });
        assert_eq!((entries[3].get_i32("idx").unwrap(), entries[3].get_i32("code").unwrap()), (3, 11000));
        assert_eq!(entries[3].get_f64("ok").unwrap(), 0.0);
        assert_eq!(entries[4], doc! { "ok": 1.0, "idx": 4, "n": 2 });
        let sums = doc! { "nErrors": 1, "nInserted": 1, "nMatched": 1, "nModified": 1, "nUpserted": 1, "nDeleted": 2 };
        sums.iter().for_each(|(name, sum)| assert_eq!(reply.get(name), Some(sum), "{name}"));

        // In order, it stops at the first error, which is all that is listed.
        let reply = run(db, bulk(doc! { "errorsOnly": true }));
        let entries = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(reply.get_i32("nErrors").unwrap(), 1);
        assert_eq!((reply.get_i32("nInserted").unwrap(), reply.get_i32("nMatched").unwrap()), (0, 0));

        refused(db, doc! { "bulkWrite": 1, "ops": [], "nsInfo": [{ "ns": "test.c" }] }, 16);
        refused(db, doc! { "bulkWrite": 1, "ops": [{ "delete": 1, "filter": {} }], "nsInfo": [{ "ns": "test.c" }] }, 2);
        refused(db, doc! { "bulkWrite": 1, "ops": [{ "delete": 0, "filter": {} }], "nsInfo": [{ "ns": "c" }] }, 73);
        refused(db, doc! { "bulkWrite": 1, "ops": [{ "replace": 0 }], "nsInfo": [{ "ns": "test.c" }] }, 40415);
        refused(db, doc! { "bulkWrite": 1, "ops": [{ "insert": 0 }], "nsInfo": [{ "ns": "test.c" }] }, 40414);
        refused(db, doc! { "bulkWrite": 1, "ops": [{ "insert": 0, "document": {} }] }, 40414);
        let several = doc! { "bulkWrite": 1, "ops": [{ "insert": 0, "document": {} }], "nsInfo": [{ "ns": "a.c" }, { "ns": "b.c" }] };
        unsupported(db, several, "bulkWrite over several databases");
    });
}

#[test]
fn unknown_commands_fail_by_name() {
    on_every_store(|db| {
        assert_eq!(run(db, doc! { "ping": 1 }), doc! { "ok": 1.0 });
        refused(db, doc! { "fetch": "c" }, 59);
        refused(db, doc! {}, 59);
        refused(db, doc! { "ping": 1, "loud": true }, 40415);
        unsupported(db, doc! { "getMore": 1_i64, "collection": "c" }, "getMore");
    });
}

#[test]
fn duplicate_fields_and_damaged_bytes_are_rejected() {
    on_every_store(|db| {
        let mut twice = bson::rawdoc! { "find": "c", "limit": 1 };
        twice.append(bson::cstr!("limit"), 2);
        assert_eq!(db.command(&twice).unwrap_err().code(), 40413);
        let mut bytes = bson::rawdoc! { "find": "c", "limit": 1 }.into_bytes();
        // Changes the type of `limit` to one that BSON does not have.
        let limit = bytes.windows(6).position(|name| name == b"limit\0").unwrap();
        bytes[limit - 1] = 0x60;
        let damaged = RawDocumentBuf::from_bytes(bytes).unwrap();
        assert_eq!(db.command(&damaged).unwrap_err().code(), 22);
    });
}

#[test]
fn a_command_ends_at_its_time_limit() {
    on_every_store(|db| {
        let documents: Vec<Document> = (0..20_000).map(|n| doc! { "_id": n, "n": n }).collect();
        run(db, doc! { "insert": "c", "documents": documents });
        let slow = doc! { "find": "c", "filter": { "$or": (0..50).map(|n| doc! { "n": -n - 1 }).collect::<Vec<_>>() },
        "sort": { "n": -1 }, "maxTimeMS": 1 };
        refused(db, slow, 50);
    });
}

#[test]
fn validators_are_created_changed_listed_and_reported() {
    on_every_store(|db| {
        let validator = doc! { "a": { "$gt": 5 } };
        run(db, doc! { "create": "c", "validator": &validator, "validationLevel": "moderate" });
        run(db, doc! { "create": "c", "validator": &validator, "validationLevel": "moderate" });
        refused(db, doc! { "create": "c", "validator": { "a": 1 } }, 48);
        refused(db, doc! { "create": "d", "validator": { "a": { "$nothing": 1 } } }, 2);
        refused(db, doc! { "create": "d", "validationLevel": "some" }, 2);
        let reply = run(
            db,
            doc! { "insert": "c", "documents": [{ "_id": 1, "a": 3 }, { "_id": 2, "a": 9 }], "ordered": false },
        );
        assert_eq!(reply.get_i32("n").unwrap(), 1);
        let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().clone();
        assert_eq!((error.get_i32("index").unwrap(), error.get_i32("code").unwrap()), (0, 121));
        let details = error.get_document("errInfo").unwrap();
        assert_eq!(details.get_i32("failingDocumentId").unwrap(), 1);
        assert_eq!(details.get_document("details").unwrap().get_str("operatorName").unwrap(), "$gt");
        let update = doc! { "q": { "_id": 2 }, "u": { "$set": { "a": 0 } } };
        let reply = run(db, doc! { "update": "c", "updates": [&update] });
        assert_eq!(reply.get_array("writeErrors").unwrap().len(), 1);
        run(db, doc! { "insert": "c", "documents": [{ "_id": 1, "a": 3 }], "bypassDocumentValidation": true });
        run(db, doc! { "collMod": "c", "validationAction": "warn" });
        let reply = run(db, doc! { "update": "c", "updates": [update] });
        assert_eq!(reply.get_i32("nModified").unwrap(), 1);
        let listed = run(db, doc! { "listCollections": 1 });
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let options = batch[0].as_document().unwrap().get_document("options").unwrap();
        let expected = doc! { "validator": validator, "validationLevel": "moderate", "validationAction": "warn" };
        assert_eq!(options, &expected);
        run(db, doc! { "collMod": "c", "validator": {} });
        let listed = run(db, doc! { "listCollections": 1 });
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        assert!(batch[0].as_document().unwrap().get_document("options").unwrap().is_empty());
        refused(db, doc! { "collMod": "nowhere", "validator": {} }, 26);
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a", "hidden": true }] });
        let listed = run(db, doc! { "listIndexes": "c" });
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        assert!(batch[1].as_document().unwrap().get_bool("hidden").unwrap());
        let wildcard = doc! { "key": { "$**": 1 }, "name": "all", "wildcardProjection": { "a": 1 } };
        run(db, doc! { "createIndexes": "c", "indexes": [wildcard] });
        let listed = run(db, doc! { "listIndexes": "c" });
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let projection = batch[2].as_document().unwrap().get_document("wildcardProjection").unwrap();
        assert_eq!(projection, &doc! { "a": 1 });
        let show = doc! { "collMod": "c", "index": { "keyPattern": { "a": 1 }, "hidden": false } };
        assert_eq!(run(db, show), doc! { "hidden_old": true, "hidden_new": false, "ok": 1.0 });
        refused(db, doc! { "collMod": "c", "index": { "name": "b", "hidden": true } }, 27);
        refused(db, doc! { "collMod": "c", "index": { "name": "_id_", "hidden": true } }, 72);
        refused(db, doc! { "collMod": "c", "index": { "hidden": true } }, 72);
    });
}

#[test]
fn views_are_created_changed_listed_and_dropped() {
    on_every_store(|db| {
        run(db, doc! { "insert": "c", "documents": [{ "_id": 1, "n": 1 }, { "_id": 2, "n": 2 }] });
        let pipeline = vec![doc! { "$match": { "n": { "$gt": 1 } } }];
        run(db, doc! { "create": "v", "viewOn": "c", "pipeline": &pipeline });
        run(db, doc! { "create": "v", "viewOn": "c", "pipeline": &pipeline });
        run(db, doc! { "create": "e", "viewOn": "c" });
        let listed = rows(db, doc! { "listCollections": 1, "filter": { "type": "view" } });
        let expected = doc! {
            "name": "v", "type": "view", "options": { "viewOn": "c", "pipeline": &pipeline }, "info": { "readOnly": true },
        };
        assert_eq!(listed[1], expected);
        assert_eq!(rows(db, doc! { "find": "v" }), [doc! { "_id": 2, "n": 2 }]);
        assert_eq!(run(db, doc! { "count": "v", "query": { "n": 2 } }), doc! { "n": 1, "ok": 1.0 });
        assert_eq!(run(db, doc! { "distinct": "v", "key": "n" }), doc! { "values": [2], "ok": 1.0 });
        run(db, doc! { "explain": { "find": "v" }, "verbosity": "executionStats" });
        run(db, doc! { "collMod": "v", "pipeline": [{ "$match": { "n": 1 } }] });
        assert_eq!(rows(db, doc! { "aggregate": "v", "pipeline": [], "cursor": {} }), [doc! { "_id": 1, "n": 1 }]);
        run(db, doc! { "collMod": "v", "viewOn": "e" });
        refused(db, doc! { "collMod": "v", "viewOn": "v" }, 5);
        refused(db, doc! { "collMod": "v", "validator": {} }, 72);
        refused(db, doc! { "collMod": "c", "viewOn": "v" }, 72);
        refused(db, doc! { "collMod": "nothing", "viewOn": "v" }, 26);
        refused(db, doc! { "create": "w", "pipeline": [] }, 72);
        refused(db, doc! { "create": "w", "viewOn": "" }, 2);
        refused(db, doc! { "create": "w", "viewOn": "c", "validator": { "a": 1 } }, 72);
        refused(db, doc! { "create": "w", "viewOn": "c", "pipeline": [{ "$merge": "d" }] }, 167);
        refused(db, doc! { "create": "w", "viewOn": "c", "pipeline": [1] }, 14);
        refused(db, doc! { "create": "v", "viewOn": "c" }, 48);
        refused(db, doc! { "listIndexes": "v" }, 166);
        refused(db, doc! { "createIndexes": "v", "indexes": [{ "key": { "n": 1 }, "name": "n_1" }] }, 166);
        refused(db, doc! { "dropIndexes": "v", "index": "n_1" }, 166);
        refused(db, doc! { "findAndModify": "v", "remove": true }, 166);
        assert_eq!(run(db, doc! { "drop": "v" }), doc! { "ns": "test.v", "ok": 1.0 });
        assert_eq!(rows(db, doc! { "find": "v" }), Vec::<Document>::new());
    });
}
