//! The statements of retryable writes, and the records by which they are executed once.

use bson::{Document, doc};
use slate_core::Database;
use slate_server::TestServer;

use crate::client::{Client, batch, session, within};

fn numbered(mut command: Document, number: i64) -> Document {
    command.extend(doc! { "lsid": session(1), "txnNumber": number });
    command
}

fn errors(reply: &Document) -> Vec<(i32, i32)> {
    let errors = reply.get_array("writeErrors").map(Vec::as_slice).unwrap_or_default();
    let error = |error: &bson::Bson| {
        let error = error.as_document().unwrap();
        (error.get_i32("index").unwrap(), error.get_i32("code").unwrap())
    };
    errors.iter().map(error).collect()
}

#[test]
fn a_retryable_write_changes_one_document_with_each_statement() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 1, "n": 0 }, { "_id": 2, "n": 0 }] });
    let update = |multi: bool| doc! { "q": { "_id": { "$gt": 0 } }, "u": { "$inc": { "n": 1 } }, "multi": multi };
    let reply = client.ok(numbered(doc! { "update": "a", "updates": [update(false), update(true)] }, 1));
    assert_eq!((reply.get_i32("n").unwrap(), errors(&reply)), (1, vec![(1, 72)]), "{reply}");
    let delete = doc! { "delete": "a", "deletes": [{ "q": {}, "limit": 0 }] };
    assert_eq!(errors(&client.ok(numbered(delete.clone(), 2))), [(0, 72)]);
    let bulk = doc! {
        "bulkWrite": 1, "ops": [{ "delete": 0, "filter": {}, "multi": true }], "nsInfo": [{ "ns": "shop.a" }], "$db": "admin",
    };
    let (entries, _) = batch(&client.ok(numbered(bulk, 3)));
    assert_eq!(entries[0].get_i32("code").unwrap(), 72);
    // In a transaction both are possible.
    let deleted = client.ok(within(delete, &session(1), 4, true));
    assert_eq!(deleted.get_i32("n").unwrap(), 2);
}

#[test]
fn of_the_statements_of_a_repetition_those_that_are_new_are_executed() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("redb:{}", folder.path().join("data.slate").display());
    let insert = |ids: [i32; 3]| {
        let documents = ids.map(|id| doc! { "_id": id }).to_vec();
        numbered(doc! { "insert": "a", "documents": documents, "stmtIds": ids.to_vec() }, 1)
    };
    let add = |id: i32| doc! { "q": { "_id": id }, "u": { "$inc": { "n": 1 } }, "upsert": true };
    let update = |first: i32, ids: &[i32]| {
        let updates: Vec<Document> = ids.iter().copied().map(add).collect();
        numbered(doc! { "update": "b", "updates": updates, "stmtId": first }, 2)
    };
    for run in 0..2 {
        let server = TestServer::of(Database::open(&url).unwrap()).unwrap();
        let mut client = Client::connect(&server);
        if run == 0 {
            client.ok(insert([10, 11, 12]));
            assert_eq!(client.ok(insert([11, 12, 13])).get_i32("n").unwrap(), 3);
        }
        // All of them, from two commands, and from their record.
        let documents = (10..14).map(|id| doc! { "_id": id }).collect::<Vec<_>>();
        let all = doc! { "insert": "a", "documents": documents.clone(), "stmtIds": [10, 11, 12, 13] };
        if run == 0 {
            assert_eq!(client.ok(numbered(all, 1)).get_i32("n").unwrap(), 4);
            assert_eq!(client.ok(update(0, &[1, 2])).get_array("upserted").unwrap().len(), 2);
        }
        let reply = client.ok(update(1, &[2, 3]));
        let upserted = [doc! { "index": 0, "_id": 2 }.into(), doc! { "index": 1, "_id": 3 }.into()];
        assert_eq!(reply.get_array("upserted").unwrap(), &upserted, "{reply}");
        assert_eq!((reply.get_i32("n").unwrap(), reply.get_i32("nModified").unwrap()), (2, 0));
        assert_eq!(batch(&client.ok(doc! { "find": "a" })).0, documents);
        let (found, _) = batch(&client.ok(doc! { "find": "b", "sort": { "_id": 1 } }));
        assert_eq!(found, (1..4).map(|id| doc! { "_id": id, "n": 1 }).collect::<Vec<_>>());
    }
}

#[test]
fn a_statement_that_failed_is_executed_again() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 2 }] });
    let insert = numbered(doc! { "insert": "a", "documents": [{ "_id": 1 }, { "_id": 2 }, { "_id": 3 }] }, 1);
    for _ in 0..2 {
        let reply = client.ok(insert.clone());
        assert_eq!((reply.get_i32("n").unwrap(), errors(&reply)), (1, vec![(1, 11000)]), "{reply}");
    }
    client.ok(doc! { "delete": "a", "deletes": [{ "q": { "_id": 2 }, "limit": 1 }] });
    let reply = client.ok(insert);
    assert_eq!((reply.get_i32("n").unwrap(), errors(&reply)), (3, vec![]), "{reply}");
}

#[test]
fn a_repetition_counts_what_its_first_execution_has_changed() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 1 }] });
    let set = |id: i32, value: Document| doc! { "q": { "_id": id }, "u": { "$set": value } };
    // The first statement finds no document, the second one fails.
    let update = numbered(doc! { "update": "a", "updates": [set(404, doc! { "n": 1 }), set(1, doc! { "_id": 2 })] }, 1);
    let first = client.ok(update.clone());
    let repeated = client.ok(update);
    for reply in [first, repeated] {
        let counts = ["n", "nModified"].map(|name| reply.get_i32(name).unwrap());
        assert_eq!((counts, errors(&reply)), ([0, 0], vec![(1, 66)]), "{reply}");
    }
    // A second statement of the same number.
    let add = |id: i32| {
        let add = doc! { "findAndModify": "a", "query": { "_id": 1 }, "update": { "$inc": { "n": 1 } }, "new": 1 };
        numbered([add, doc! { "stmtId": id }].into_iter().flatten().collect(), 2)
    };
    for (id, n) in [(0, 1), (1, 2), (0, 1), (1, 2)] {
        let reply = client.ok(add(id));
        assert_eq!(reply.get_document("value").unwrap().get_i32("n").unwrap(), n, "{reply}");
    }
    // Every second document is a duplicate: of a long command each statement is found at once.
    let documents: Vec<Document> = (0..20_000).map(|n| doc! { "_id": n / 2 + 10 }).collect();
    let insert = numbered(doc! { "insert": "long", "documents": documents, "ordered": false }, 3);
    for _ in 0..2 {
        let reply = client.ok(insert.clone());
        assert_eq!((reply.get_i32("n").unwrap(), errors(&reply).len()), (10_000, 10_000));
    }
}

#[test]
fn another_kind_of_write_is_no_repetition() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 1, "n": 0 }] });
    let remove = doc! { "findAndModify": "a", "query": { "_id": 1 }, "remove": true };
    let change = doc! { "findAndModify": "a", "query": { "_id": 1 }, "update": { "$inc": { "n": 1 } } };
    let mut with_new = change.clone();
    with_new.insert("new", true);
    let delete = doc! { "delete": "a", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] };
    let update = doc! { "update": "a", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }] };
    client.ok(numbered(change.clone(), 1));
    client.refused(numbered(with_new, 1), 40611);
    client.refused(numbered(delete.clone(), 1), 40606);
    client.ok(numbered(update.clone(), 2));
    client.refused(numbered(change.clone(), 2), 40612);
    client.ok(numbered(remove, 3));
    client.refused(numbered(change, 3), 40606);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 1 }] });
    client.ok(numbered(delete, 4));
    client.refused(numbered(update.clone(), 4), 40638);
    client.ok(within(doc! { "find": "a" }, &session(1), 5, true));
    client.refused(numbered(update, 5), 217);
}

#[test]
fn the_ids_of_statements_are_checked() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let insert = doc! { "insert": "a", "documents": [{}] };
    let with = |more: Document| {
        let mut command = insert.clone();
        command.extend(more);
        command
    };
    client.refused(with(doc! { "stmtIds": [0, 1] }), 16);
    client.refused(with(doc! { "stmtIds": [0], "stmtId": 0 }), 72);
    client.refused(with(doc! { "stmtIds": ["0"] }), 14);
    client.refused(numbered(with(doc! { "stmtIds": [0, 1] }), 1), 16);
    client.refused(numbered(with(doc! { "stmtIds": [0.0] }), 1), 14);
    client.refused(numbered(with(doc! { "stmtId": 1_i64 << 32 }), 1), 14);
    client.refused(numbered(with(doc! { "stmtId": i32::MAX }), 1), 72);
    client.ok(with(doc! { "stmtIds": [7] }));
}

#[test]
fn clients_do_not_change_the_databases_of_the_server() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let config = |mut command: Document| {
        command.insert("$db", "config");
        command
    };
    let index = doc! { "key": { "x": 1 }, "name": "x", "unique": true };
    client.refused(config(doc! { "createIndexes": "transactions", "indexes": [index] }), 20);
    client.refused(config(doc! { "createIndexes": "transactions", "indexes": [] }), 20);
    client.refused(config(doc! { "create": "transactions", "viewOn": "a" }), 20);
    for rename in [("config.transactions", "config.b"), ("shop.a", "config.transactions")] {
        client.refused(doc! { "renameCollection": rename.0, "to": rename.1, "$db": "admin" }, 20);
    }
    client.ok(doc! { "insert": "a", "documents": [{}] });
    for database in ["admin", "config", "local"] {
        let with = |name: &str| doc! { name: "transactions", "validator": { "x": 1 }, "$db": database };
        client.refused(with("create"), 72);
        client.refused(with("collMod"), 72);
        let into = doc! { "db": database, "coll": "x" };
        for (stage, code) in
            [(doc! { "$merge": { "into": into.clone() } }, 31320), (doc! { "$out": into.clone() }, 31321)]
        {
            client.refused(doc! { "aggregate": "a", "pipeline": [stage], "cursor": {} }, code);
        }
    }
    for (stage, code) in [(doc! { "$merge": "system.users" }, 31319), (doc! { "$out": "system.views" }, 17385)] {
        client.refused(doc! { "aggregate": "a", "pipeline": [stage], "cursor": {} }, code);
    }
    client.ok(numbered(doc! { "insert": "a", "documents": [{}] }, 1));
    client.ok(config(doc! { "drop": "transactions" }));
    client.ok(numbered(doc! { "insert": "a", "documents": [{}] }, 2));
}

/// An index that a program has created beside the server.
#[test]
fn a_duplicate_in_the_records_is_not_taken_for_a_repetition() {
    let database = Database::open("memory:").unwrap();
    let index = doc! { "key": { "nothing": 1 }, "name": "x", "unique": true };
    database.command(doc! { "createIndexes": "transactions", "indexes": [index], "$db": "config" }).unwrap();
    let server = TestServer::of(database).unwrap();
    let mut client = Client::connect(&server);
    client.ok(numbered(doc! { "insert": "a", "documents": [{}] }, 1));
    let mut other = numbered(doc! { "insert": "a", "documents": [{}] }, 1);
    other.insert("lsid", session(2));
    client.refused(other, 11000);
}
