//! Commands that write documents.

use bson::{Bson, Document, Timestamp, doc};

use super::{on_every_store, refused, rows, run, with_numbers, write_error_codes};

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
    });
}

#[test]
fn a_duplicate_key_is_reported_with_its_index() {
    on_every_store(|db| {
        let index = doc! { "key": { "a": 1, "b": -1 }, "name": "ab", "unique": true };
        run(db, doc! { "createIndexes": "c", "indexes": [index] });
        let reply = run(db, doc! { "insert": "c", "documents": [{ "a": 1, "b": 2 }, { "a": 1, "b": 2 }] });
        let errors = reply.get_array("writeErrors").unwrap();
        let error = errors[0].as_document().unwrap();
        assert_eq!(error.keys().collect::<Vec<_>>(), ["index", "code", "keyPattern", "keyValue", "errmsg"]);
        assert_eq!(error.get_document("keyPattern").unwrap(), &doc! { "a": 1, "b": -1 });
        assert_eq!(error.get_document("keyValue").unwrap(), &doc! { "a": 1, "b": 2 });
        let reply = run(db, doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 1 }] });
        let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap();
        assert_eq!(error.get_document("keyPattern").unwrap(), &doc! { "_id": 1 });
        assert_eq!(error.get_document("keyValue").unwrap(), &doc! { "_id": 1 });
    });
}

#[test]
fn a_hint_restricts_counts_and_writes_to_the_documents_of_a_sparse_index() {
    on_every_store(|db| {
        let documents = vec![doc! { "_id": 1, "s": 1 }, doc! { "_id": 2 }, doc! { "_id": 3, "s": [2, 3] }];
        run(db, doc! { "insert": "c", "documents": documents });
        let index = doc! { "key": { "s": 1 }, "name": "s", "sparse": true };
        run(db, doc! { "createIndexes": "c", "indexes": [index] });
        let count =
            |filter: Document| run(db, doc! { "count": "c", "query": filter, "hint": "s" }).get_i32("n").unwrap();
        assert_eq!((count(doc! {}), count(doc! { "_id": 2 })), (2, 0));
        let update = doc! { "q": {}, "u": { "$set": { "seen": true } }, "multi": true, "hint": { "s": 1 } };
        assert_eq!(run(db, doc! { "update": "c", "updates": [update] }).get_i32("n").unwrap(), 2);
        let upsert = doc! { "q": { "_id": 2 }, "u": { "$set": { "_id": 4 } }, "upsert": true, "hint": "s" };
        assert_eq!(write_error_codes(&run(db, doc! { "update": "c", "updates": [upsert] })), [(0, 66)]);
        let modify = doc! { "findAndModify": "c", "query": { "_id": 2 }, "remove": true, "hint": "s" };
        assert_eq!(run(db, modify).get("value"), Some(&Bson::Null));
        let delete = doc! { "q": {}, "limit": 0, "hint": "s" };
        assert_eq!(run(db, doc! { "delete": "c", "deletes": [delete] }).get_i32("n").unwrap(), 2);
        assert_eq!(rows(db, doc! { "find": "c" }), [doc! { "_id": 2 }]);
    });
}

#[test]
fn empty_timestamps_stay_empty_if_their_replacement_is_bypassed() {
    on_every_store(|db| {
        let empty = || Bson::Timestamp(Timestamp { time: 0, increment: 0 });
        let are_kept = |bypass: bool| {
            run(db, doc! { "drop": "c" });
            let with = |mut command: Document| {
                command.insert("bypassEmptyTsReplacement", bypass);
                run(db, command)
            };
            with(doc! { "insert": "c", "documents": [{ "_id": 1, "t": empty() }, { "_id": 2 }, { "_id": 3 }] });
            with(doc! { "update": "c", "updates": [
                { "q": { "_id": 2 }, "u": { "t": empty() } },
                { "q": { "_id": 4 }, "u": { "t": empty() }, "upsert": true },
            ] });
            let replace = |id: i32, upsert: bool| doc! { "findAndModify": "c", "query": { "_id": id }, "update": { "t": empty() }, "upsert": upsert };
            with(replace(3, false));
            with(replace(5, true));
            with(doc! { "bulkWrite": 1, "nsInfo": [{ "ns": "test.c" }], "ops": [
                { "insert": 0, "document": { "_id": 6, "t": empty() } },
                { "insert": 0, "document": { "_id": 7 } },
                { "update": 0, "filter": { "_id": 7 }, "updateMods": { "t": empty() } },
                { "update": 0, "filter": { "_id": 8 }, "updateMods": { "t": empty() }, "upsert": true },
                { "update": 0, "filter": { "_id": empty() }, "updateMods": { "_id": empty(), "n": 9 }, "upsert": true },
            ] });
            assert_eq!(rows(db, doc! { "find": "c", "filter": { "_id": empty(), "n": 9 } }).len(), 1);
            rows(db, doc! { "find": "c", "filter": { "t": empty() } }).len()
        };
        assert_eq!((are_kept(true), are_kept(false)), (8, 0));
        for command in [doc! { "insert": "c", "documents": [{}] }, doc! { "findAndModify": "c", "remove": true }] {
            for wrong in [Bson::Int32(1), Bson::Null] {
                let mut command = command.clone();
                command.insert("bypassEmptyTsReplacement", wrong);
                refused(db, command, 14);
            }
        }
        refused(db, doc! { "aggregate": "c", "pipeline": [], "cursor": {}, "bypassEmptyTsReplacement": true }, 40415);
        refused(db, doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 1 }], "bypassEmptyTsReplacement": 1 }, 14);
    });
}
