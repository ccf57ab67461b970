//! Commands to several databases of one store.

use bson::{Document, doc};
use slate_core::{Commands, Database};

use crate::on_every_store;

fn run(commands: &Commands, database: &str, mut command: Document) -> Document {
    command.insert("$db", database);
    let name = format!("{command}");
    let reply = commands.run(command).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    Document::try_from(&reply).unwrap()
}

fn code(commands: &Commands, database: &str, mut command: Document) -> i32 {
    command.insert("$db", database);
    commands.run(command).unwrap_err().code()
}

fn ids(reply: &Document) -> Vec<i32> {
    let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    batch.iter().map(|document| document.as_document().unwrap().get_i32("_id").unwrap()).collect()
}

/// Names of databases or collections in a reply.
fn names(reply: &Document, array: &str) -> Vec<String> {
    let listed = match reply.get_document("cursor") {
        Ok(cursor) => cursor.get_array("firstBatch").unwrap(),
        Err(_) => reply.get_array(array).unwrap(),
    };
    listed.iter().map(|entry| entry.as_document().unwrap().get_str("name").unwrap().to_owned()).collect()
}

fn insert(commands: &Commands, database: &str, collection: &str, id: i32) {
    run(commands, database, doc! { "insert": collection, "documents": [{ "_id": id, "of": database }] });
}

#[test]
fn a_collection_belongs_to_its_database() {
    on_every_store(|db| {
        let commands = db.commands();
        for (id, database) in ["test", "shop", "archive"].into_iter().enumerate() {
            insert(&commands, database, "items", id.try_into().unwrap());
        }
        for (id, database) in ["test", "shop", "archive"].into_iter().enumerate() {
            let found = run(&commands, database, doc! { "find": "items" });
            assert_eq!(ids(&found), [i32::try_from(id).unwrap()]);
            assert_eq!(found.get_document("cursor").unwrap().get_str("ns").unwrap(), format!("{database}.items"));
            assert_eq!(names(&run(&commands, database, doc! { "listCollections": 1 }), ""), ["items"]);
            assert_eq!(run(&commands, database, doc! { "dbStats": 1 }).get_i64("objects").unwrap(), 1);
        }
        assert_eq!(
            names(&run(&commands, "admin", doc! { "listDatabases": 1 }), "databases"),
            ["archive", "shop", "test"]
        );
        assert_eq!(db.list_collection_names().unwrap(), ["$archive.items", "$shop.items", "items"]);
        assert_eq!(db.collection::<Document>("$shop.items").count_documents(doc! { "of": "shop" }).run().unwrap(), 1);
        assert_eq!(run(&commands, "shop", doc! { "dropDatabase": 1 }), doc! { "dropped": "shop", "ok": 1.0 });
        assert_eq!(db.list_collection_names().unwrap(), ["$archive.items", "items"]);
        assert_eq!(run(&commands, "shop", doc! { "dropDatabase": 1 }), doc! { "ok": 1.0 });
    });
}

#[test]
fn pipelines_and_views_read_and_write_their_own_database() {
    let db = Database::open("memory:").unwrap();
    let commands = db.commands();
    insert(&commands, "test", "items", 1);
    insert(&commands, "shop", "items", 2);
    insert(&commands, "shop", "more", 3);
    let union = doc! { "aggregate": "items", "pipeline": [{ "$unionWith": "more" }], "cursor": {} };
    assert_eq!(ids(&run(&commands, "shop", union)), [2, 3]);
    run(
        &commands,
        "shop",
        doc! { "create": "all", "viewOn": "items", "pipeline": [{ "$unionWith": { "coll": "more" } }] },
    );
    assert_eq!(ids(&run(&commands, "shop", doc! { "find": "all" })), [2, 3]);
    let listed = run(&commands, "shop", doc! { "listCollections": 1, "filter": { "name": "all" } });
    let view = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap()[0].as_document().unwrap();
    let expected = doc! { "viewOn": "items", "pipeline": [{ "$unionWith": { "coll": "more" } }] };
    assert_eq!(view.get_document("options").unwrap(), &expected);
    let out = doc! { "aggregate": "all", "pipeline": [{ "$out": { "db": "test", "coll": "copy" } }], "cursor": {} };
    run(&commands, "shop", out);
    assert_eq!(ids(&run(&commands, "test", doc! { "find": "copy" })), [2, 3]);
    let merge = doc! { "aggregate": "items", "pipeline": [{ "$merge": "merged" }], "cursor": {} };
    run(&commands, "shop", merge);
    assert_eq!(ids(&run(&commands, "shop", doc! { "find": "merged" })), [2]);
    let explained = run(&commands, "shop", doc! { "explain": { "find": "items" } });
    assert_eq!(explained.get_document("queryPlanner").unwrap().get_str("namespace").unwrap(), "shop.items");
}

#[test]
fn one_bulk_write_one_rename_and_one_transaction_span_databases() {
    let db = Database::open("memory:").unwrap();
    let commands = db.commands();
    let ops = doc! {
        "bulkWrite": 1,
        "ops": [{ "insert": 0, "document": { "_id": 1 } }, { "insert": 1, "document": { "_id": 2 } }],
        "nsInfo": [{ "ns": "shop.a" }, { "ns": "test.a" }],
    };
    assert_eq!(run(&commands, "admin", ops).get_i32("nInserted").unwrap(), 2);
    run(&commands, "admin", doc! { "renameCollection": "shop.a", "to": "archive.b" });
    assert_eq!(ids(&run(&commands, "archive", doc! { "find": "b" })), [1]);
    assert_eq!(ids(&run(&commands, "shop", doc! { "find": "a" })), [0; 0]);
    let rename = doc! { "renameCollection": "archive.b", "to": "test.a" };
    assert_eq!(code(&commands, "admin", rename.clone()), 48);
    let transaction = db.begin().unwrap();
    let within = commands.in_transaction(&transaction);
    insert(&within, "shop", "a", 5);
    insert(&within, "archive", "b", 6);
    transaction.rollback();
    assert_eq!(ids(&run(&commands, "archive", doc! { "find": "b" })), [1]);
}

#[test]
fn names_in_errors_are_the_clients() {
    let db = Database::open("memory:").unwrap();
    let commands = db.commands();
    insert(&commands, "shop", "items", 1);
    let again = run(&commands, "shop", doc! { "insert": "items", "documents": [{ "_id": 1 }] });
    let error = again.get_array("writeErrors").unwrap()[0].as_document().unwrap().get_str("errmsg").unwrap();
    assert!(error.starts_with("E11000 duplicate key error collection: shop.items index: _id_"), "{error}");
    let merge = doc! { "$merge": { "into": "items", "whenMatched": "fail" } };
    let mut failing =
        doc! { "aggregate": "items", "pipeline": [merge], "cursor": {}, "$db": "shop", "writeConcern": { "w": 1 } };
    let error = commands.run(failing.clone()).unwrap_err();
    assert!(
        error.code() == 11000 && !error.message().contains("$shop") && error.message().contains("shop.items"),
        "{error}"
    );
    failing.insert("readConcern", doc! { "level": "linearizable" });
    assert_eq!(commands.run(failing).unwrap_err().code(), 72);
    let own =
        commands.run(doc! { "findAndModify": "items", "query": { "_id": 1 }, "update": { "_id": 1 }, "upsert": true });
    assert!(own.is_ok());
    let again = run(&commands, "test", doc! { "insert": "items", "documents": [{ "_id": 1 }] });
    let error = again.get_array("writeErrors").unwrap()[0].as_document().unwrap().get_str("errmsg").unwrap();
    assert!(error.starts_with("E11000 duplicate key error collection: test.items index: _id_"), "{error}");
    let explained = run(
        &commands,
        "shop",
        doc! { "explain": { "find": "items", "filter": { "a": 1 } }, "verbosity": "executionStats" },
    );
    assert!(!explained.to_string().contains("$shop"), "{explained}");
    for (database, command) in [
        ("test", doc! { "find": "$shop.items" }),
        ("shop", doc! { "find": "a$b" }),
        ("a b", doc! { "find": "items" }),
        ("a.b", doc! { "find": "items" }),
        ("", doc! { "find": "items" }),
        ("test", doc! { "aggregate": "a", "pipeline": [{ "$unionWith": "$shop.items" }], "cursor": {} }),
        ("admin", doc! { "renameCollection": "shop.items", "to": "test.$shop.x" }),
        ("admin", doc! { "renameCollection": "items", "to": "test.x" }),
        (
            "admin",
            doc! { "bulkWrite": 1, "ops": [{ "insert": 0, "document": {} }], "nsInfo": [{ "ns": "test.$shop.x" }] },
        ),
    ] {
        assert_eq!(code(&commands, database, command.clone()), 73, "{command}");
    }
}
