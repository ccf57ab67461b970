//! Handles that cannot write to an open database: every call that would is refused with one kind of error, and changes nothing.

use bson::{Document, doc, rawdoc};
use slate_core::{
    Database, ErrorKind, ExistingCollections, Index, Migrations, Result, Transaction, TransactionOptions,
    WriteOperation,
};

use crate::common::on_every_store;

fn filled(db: &Database) {
    db.collection("c").insert_many(&[doc! { "_id": 1, "n": 1 }, doc! { "_id": 2, "n": 2 }]).run().unwrap();
    db.collection::<Document>("c").create_index(Index::on(doc! { "n": 1 })).run().unwrap();
}

/// Returns all documents of all collections, with the definitions.
fn state(db: &Database) -> String {
    let names = db.list_collection_names().unwrap();
    let all = |name: &String| db.collection::<Document>(name).find(doc! {}).collect().unwrap();
    format!("{:?} {:?}", db.list_collections().unwrap(), names.iter().map(all).collect::<Vec<_>>())
}

fn refused<R>(result: Result<R>, what: &str) {
    let error = result.err().unwrap_or_else(|| panic!("{what} succeeded"));
    assert_eq!((error.kind(), error.code()), (ErrorKind::ReadOnly, 20), "{what}: {error}");
}

#[test]
fn commands_that_write_are_refused_and_others_are_not() {
    on_every_store(|database| {
        filled(&database.db);
        database.db.command(doc! { "create": "v", "viewOn": "c", "pipeline": [] }).unwrap();
        let before = state(&database.db);
        let reader = database.db.read_only();
        let writing = [
            doc! { "insert": "c", "documents": [{ "_id": 3 }] },
            doc! { "insert": "c", "documents": [{ "_id": 3 }], "ordered": false },
            doc! { "insert": "new", "documents": [{ "_id": 3 }] },
            doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "x": 1 } }, "multi": true }] },
            doc! { "update": "c", "updates": [{ "q": { "_id": 9 }, "u": { "x": 1 }, "upsert": true }] },
            doc! { "update": "c", "updates": [{ "q": { "_id": 9 }, "u": { "$set": { "x": 1 } } }] },
            doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] },
            doc! { "bulkWrite": 1, "ops": [{ "insert": 0, "document": { "_id": 3 } }], "nsInfo": [{ "ns": "test.c" }] },
            doc! { "findAndModify": "c", "query": {}, "update": { "$set": { "x": 1 } } },
            doc! { "findAndModify": "c", "query": {}, "remove": true },
            doc! { "aggregate": "c", "pipeline": [{ "$out": "d" }], "cursor": {} },
            doc! { "aggregate": "c", "pipeline": [{ "$merge": "d" }], "cursor": {} },
            doc! { "aggregate": "c", "pipeline": [{ "$match": { "_id": 9 } }, { "$merge": { "into": "c" } }], "cursor": {} },
            doc! { "aggregate": 1, "pipeline": [{ "$documents": [{ "_id": 1 }] }, { "$out": "d" }], "cursor": {} },
            doc! { "aggregate": "v", "pipeline": [{ "$out": "d" }], "cursor": {} },
            doc! { "aggregate": "v", "pipeline": [{ "$unionWith": "c" }, { "$merge": "d" }], "cursor": {} },
            doc! { "create": "d" },
            doc! { "create": "d", "viewOn": "c", "pipeline": [] },
            doc! { "collMod": "c", "validator": { "n": 1 } },
            doc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x" }] },
            doc! { "dropIndexes": "c", "index": "n_1" },
            doc! { "drop": "c" },
        ];
        for command in &writing {
            refused(reader.command(command), &command.to_string());
        }
        // Within another stage neither `$out` nor `$merge` is a stage.
        for nested in [
            doc! { "$facet": { "a": [{ "$out": "d" }] } },
            doc! { "$facet": { "a": [{ "$unionWith": { "coll": "c", "pipeline": [{ "$merge": "d" }] } }] } },
            doc! { "$unionWith": { "coll": "c", "pipeline": [{ "$out": "d" }] } },
            doc! { "$lookup": { "from": "c", "pipeline": [{ "$merge": "d" }], "as": "all" } },
        ] {
            for source in ["c", "v"] {
                let command = doc! { "aggregate": source, "pipeline": [nested.clone()], "cursor": {} };
                assert!(reader.command(&command).is_err(), "{command}");
                assert!(database.db.command(&command).is_err(), "{command}");
            }
        }
        let reading = [
            doc! { "find": "c" },
            doc! { "find": "v" },
            doc! { "explain": { "aggregate": "c", "pipeline": [{ "$out": "d" }], "cursor": {} } },
            doc! { "aggregate": "c", "pipeline": [{ "$group": { "_id": null, "n": { "$sum": "$n" } } }], "cursor": {} },
            doc! { "count": "c" },
            doc! { "distinct": "c", "key": "n" },
            doc! { "explain": { "find": "c" } },
            doc! { "listCollections": 1 },
            doc! { "listIndexes": "c" },
            doc! { "collStats": "c" },
            doc! { "dbStats": 1 },
            doc! { "ping": 1 },
        ];
        for command in &reading {
            reader.command(command).unwrap_or_else(|error| panic!("{command}: {error}"));
        }
        assert_eq!(state(&database.db), before);
    });
}

#[test]
fn methods_that_write_are_refused() {
    on_every_store(|database| {
        filled(&database.db);
        let before = state(&database.db);
        // The limits of a handle and its rights do not depend on their order.
        for reader in [
            database.db.read_only(),
            database.db.read_only().with_deadline(std::time::Duration::from_secs(60)),
            database.db.with_deadline(std::time::Duration::from_secs(60)).read_only().clone(),
        ] {
            let c = reader.collection::<Document>("c");
            refused(c.insert_one(&doc! { "_id": 3 }), "insert_one");
            refused(c.insert_many(&[doc! { "_id": 3 }]).run(), "insert_many");
            refused(c.update_many(doc! {}, doc! { "$set": { "x": 1 } }).run(), "update_many");
            refused(c.delete_many(doc! {}).run(), "delete_many");
            refused(c.find_one_and_delete(doc! {}).run(), "find_one_and_delete");
            refused(c.aggregate([doc! { "$out": "d" }]).collect(), "$out");
            refused(c.aggregate([doc! { "$merge": "d" }]).run(), "$merge");
            refused(c.create_index(Index::on(doc! { "x": 1 })).run(), "create_index");
            refused(c.drop_index("n_1"), "drop_index");
            refused(c.drop(), "drop");
            refused(c.analyze(), "analyze");
            refused(reader.collection::<Document>("d").create(), "create_collection");
            refused(reader.bulk_write([("c", WriteOperation::delete_many(doc! {}))]).run(), "bulk_write");
            refused(reader.begin(), "begin");
            refused(reader.begin_with(&TransactionOptions::new()), "begin_with");
            refused(reader.transact(|tx| tx.collection("c").insert_one(&doc! { "_id": 3 }).map(drop)), "transact");
            refused(reader.drop_database(), "drop_database");
            refused(reader.compact(), "compact");
            let step = |tx: &Transaction| tx.collection("c").insert_one(&doc! { "_id": 3 }).map(drop);
            refused(reader.migrate(&Migrations::new().step("step", step)), "migrate");
            let other = Database::open("memory:").unwrap();
            other.collection("e").insert_one(&rawdoc! { "_id": 1 }).unwrap();
            refused(other.copy_to(&reader).existing(ExistingCollections::Keep).run(), "copy_to as the target");

            assert_eq!(c.count_documents(doc! { "n": { "$gte": 1 } }).run().unwrap(), 2);
            assert_eq!(c.distinct("n", doc! {}).run().unwrap().len(), 2);
            assert_eq!(reader.snapshot().unwrap().list_collection_names(), ["c"]);
            assert!(reader.verify().run().unwrap().is_sound());
            assert_eq!(state(&database.db), before);
        }
        // It shows what others commit.
        let reader = database.db.read_only();
        database.db.collection("c").insert_one(&rawdoc! { "_id": 3 }).unwrap();
        assert_eq!(reader.collection::<Document>("c").count_documents(doc! {}).run().unwrap(), 3);
    });
}

#[test]
fn the_async_handle_is_read_only_too() {
    on_every_store(|database| {
        filled(&database.db);
        let before = state(&database.db);
        let reader = slate_core::aio::Database::from(database.db.clone()).read_only();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let c = reader.collection::<Document>("c");
            refused(c.insert_one(&doc! { "_id": 3 }).await, "insert_one");
            refused(c.update_many(doc! {}, doc! { "$set": { "x": 1 } }).await, "update_many");
            refused(c.aggregate([doc! { "$merge": "d" }]).await, "$merge");
            refused(reader.begin().await, "begin");
            let insert = |tx: &Transaction| tx.collection("c").insert_one(&doc! { "_id": 3 }).map(drop);
            refused(reader.transact(insert).await, "transact");
            let merge = doc! { "aggregate": "c", "pipeline": [{ "$merge": "d" }], "cursor": {} };
            refused(reader.command(merge).await, "command");
            reader.command(doc! { "find": "c" }).await.unwrap();
            assert_eq!(c.count_documents(doc! {}).await.unwrap(), 2);
        });
        assert_eq!(state(&database.db), before);
    });
}
