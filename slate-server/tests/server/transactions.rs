//! Sessions, transactions and retryable writes over a real socket.

use std::{thread, time::Duration};

use crate::{
    client::{Client, batch, labels, session, within},
    unsure::UnsureStore,
};
use bson::{Document, doc};
use slate_core::Database;
use slate_server::{Server, TestServer};

fn count(client: &mut Client, collection: &str) -> i32 {
    client.ok(doc! { "count": collection }).get_i32("n").unwrap()
}

#[test]
fn a_transaction_spans_databases_and_is_seen_when_it_commits() {
    let server = TestServer::start().unwrap();
    let (mut client, mut other) = (Client::connect(&server), Client::connect(&server));
    let lsid = session(1);
    client.ok(within(doc! { "insert": "a", "documents": [{ "_id": 1 }] }, &lsid, 1, true));
    client.ok(within(doc! { "insert": "b", "documents": [{ "_id": 2 }], "$db": "archive" }, &lsid, 1, false));
    let seen = client.ok(within(doc! { "find": "a" }, &lsid, 1, false));
    assert_eq!(batch(&seen).0, [doc! { "_id": 1 }]);
    assert_eq!(count(&mut other, "a"), 0);
    let commit = within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 1, false);
    // From another connection, and once more, as drivers do when they hear nothing.
    other.ok(commit.clone());
    let mut by_two = commit.clone();
    by_two.insert("writeConcern", doc! { "w": 2 });
    assert_eq!(other.ok(by_two).get_document("writeConcernError").unwrap().get_i32("code").unwrap(), 100);
    client.ok(commit);
    assert_eq!(count(&mut other, "a"), 1);
    assert_eq!(other.ok(doc! { "count": "b", "$db": "archive" }).get_i32("n").unwrap(), 1);
    client.refused(within(doc! { "abortTransaction": 1, "$db": "admin" }, &lsid, 1, false), 256);
}

/// The driver sends the commit again. The record in the transaction says that it was made.
#[test]
fn a_commit_without_an_answer_has_the_label_of_an_unknown_result_and_can_be_sent_again() {
    let store = UnsureStore::default();
    let server = TestServer::of(Database::with_store(store.clone()).unwrap()).unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 1, "n": 0 }] });
    let lsid = session(1);
    let update = doc! { "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } };
    client.ok(within(doc! { "update": "a", "updates": [update] }, &lsid, 1, true));
    store.lose_an_answer();
    let commit = within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 1, false);
    let reply = client.refused(commit.clone(), 91);
    let labels = labels(&reply);
    assert!(labels.contains(&"UnknownTransactionCommitResult"), "{reply}");
    assert!(!labels.contains(&"TransientTransactionError"), "the transaction must not run again: {reply}");
    client.ok(commit);
    let (found, _) = batch(&client.ok(doc! { "find": "a" }));
    assert_eq!(found, [doc! { "_id": 1, "n": 1 }]);
}

#[test]
fn some_stages_are_refused_in_a_transaction() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "a", "documents": [{}] });
    let stages =
        [doc! { "$collStats": {} }, doc! { "$indexStats": {} }, doc! { "$unionWith": "a" }, doc! { "$out": "b" }];
    let nested = |stage: Document| {
        let lookup = doc! { "$lookup": { "from": "a", "pipeline": [stage.clone()], "as": "x" } };
        let union = doc! { "$lookup": { "from": "a", "pipeline": [{ "$unionWith": { "coll": "a", "pipeline": [stage.clone()] } }], "as": "x" } };
        [lookup, union, doc! { "$facet": { "x": [{ "$match": {} }, stage] } }]
    };
    let nested = nested(doc! { "$indexStats": {} });
    for (number, stage) in (1..).zip(stages.into_iter().chain(nested)) {
        let aggregate = doc! { "aggregate": "a", "pipeline": [{ "$match": {} }, stage], "cursor": {} };
        client.refused(within(aggregate, &session(1), number, true), 263);
    }
    client.refused(within(doc! { "nothing": 1 }, &session(1), 19, true), 59);
    client.refused(within(doc! { "find": "a", "readOnce": true }, &session(1), 20, true), 263);
    client.refused(within(doc! { "killCursors": "a", "cursors": [1_i64] }, &session(1), 20, true), 263);
    for end in ["commitTransaction", "abortTransaction"] {
        client.refused(within(doc! { end: 1, "$db": "admin" }, &session(1), 20, true), 263);
        client.refused(doc! { end: 1, "$db": "admin", "lsid": session(1), "txnNumber": 20_i64 }, 50768);
    }
}

#[test]
fn a_cursor_belongs_to_its_transaction_and_ends_with_it() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let documents: Vec<Document> = (0..20).map(|n| doc! { "_id": n }).collect();
    client.ok(doc! { "insert": "a", "documents": documents });
    let (one, two) = (session(1), session(2));
    for (number, end) in [(1, "commitTransaction"), (2, "abortTransaction")] {
        let find = doc! { "find": "a", "batchSize": 2 };
        let (_, id) = batch(&client.ok(within(find.clone(), &one, number, true)));
        let more = doc! { "getMore": id, "collection": "a", "batchSize": 2 };
        // Not outside of it, not in the transaction of another session, and no cursor of another command in it.
        client.refused(doc! { "getMore": id, "collection": "a", "lsid": one.clone() }, 50740);
        client.refused(within(more.clone(), &two, 10 * number, true), 50738);
        let (_, plain) = batch(&client.ok(doc! { "find": "a", "batchSize": 2, "lsid": two.clone() }));
        client.refused(within(doc! { "getMore": plain, "collection": "a" }, &two, 10 * number + 1, true), 50739);
        client.ok(doc! { "getMore": plain, "collection": "a", "lsid": two.clone() });
        assert_eq!(batch(&client.ok(within(more, &one, number, false))).0.len(), 2);
        client.ok(within(doc! { end: 1, "$db": "admin" }, &one, number, false));
        client.refused(doc! { "getMore": id, "collection": "a", "lsid": one.clone() }, 43);
    }
    // A newer transaction ends the one before, with its cursors.
    let (_, id) = batch(&client.ok(within(doc! { "find": "a", "batchSize": 2 }, &one, 7, true)));
    let (_, newer) = batch(&client.ok(within(doc! { "find": "a", "batchSize": 2 }, &one, 8, true)));
    client.refused(doc! { "getMore": id, "collection": "a", "lsid": one.clone() }, 43);
    client.refused(within(doc! { "insert": "a", "documents": [{ "_id": 1 }], "ordered": 5 }, &one, 8, false), 14);
    client.refused(doc! { "getMore": newer, "collection": "a", "lsid": one.clone() }, 43);
    // The cursor of a retryable write has its number, and is read without it.
    let operations: Vec<Document> = (100..110).map(|n| doc! { "insert": 0, "document": { "_id": n } }).collect();
    let bulk = doc! {
        "bulkWrite": 1, "ops": operations, "nsInfo": [{ "ns": "shop.a" }], "cursor": { "batchSize": 1 },
        "lsid": one.clone(), "txnNumber": 9_i64, "$db": "admin",
    };
    let (_, id) = batch(&client.ok(bulk));
    client.ok(doc! { "getMore": id, "collection": "$cmd.bulkWrite", "lsid": one, "$db": "admin" });
}

#[test]
fn what_begins_a_transaction_is_complete() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let find = doc! { "find": "a", "lsid": session(1), "txnNumber": 1_i64 };
    let with = |more: Document| {
        let mut command = find.clone();
        command.extend(more);
        command
    };
    client.refused(with(doc! { "startTransaction": true }), 72);
    client.refused(with(doc! { "autocommit": false, "startTransaction": false }), 72);
    client.refused(with(doc! { "autocommit": true, "startTransaction": true }), 72);
    client.ok(with(doc! { "autocommit": false, "startTransaction": true }));
    let old = client.refused(doc! { "find": "a", "lsid": session(1), "txnNumber": 0_i64, "autocommit": false }, 225);
    assert!(old.get_str("errmsg").unwrap().contains("session 01010101-0101-0101-0101-010101010101"), "{old}");
}

#[test]
fn the_states_of_a_transaction_are_mongodbs() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let lsid = session(1);
    let find = || doc! { "find": "a" };
    let transient = ["TransientTransactionError"];
    assert_eq!(labels(&client.refused(within(find(), &lsid, 1, false), 251)), transient);
    assert_eq!(
        labels(&client.refused(within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 1, false), 251)),
        transient
    );
    client.ok(within(doc! { "insert": "a", "documents": [{ "_id": 1 }] }, &lsid, 1, true));
    client.refused(within(find(), &lsid, 1, true), 117);
    client.ok(within(doc! { "abortTransaction": 1, "$db": "admin" }, &lsid, 1, false));
    assert_eq!(count(&mut client, "a"), 0);
    client.refused(within(find(), &lsid, 1, false), 251);
    client.refused(within(doc! { "abortTransaction": 1, "$db": "admin" }, &lsid, 1, false), 251);
    // A newer number ends an open transaction; an older one is too old.
    client.ok(within(doc! { "insert": "a", "documents": [{ "_id": 1 }] }, &lsid, 5, true));
    client.ok(within(find(), &lsid, 6, true));
    client.refused(within(find(), &lsid, 5, false), 225);
    client.ok(within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 6, false));
    assert_eq!(count(&mut client, "a"), 0);
    client.refused(within(find(), &lsid, 6, false), 256);
}

#[test]
fn what_a_transaction_cannot_contain_is_refused_and_does_not_end_it() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let lsid = session(1);
    client.ok(within(doc! { "insert": "a", "documents": [{ "_id": 1 }] }, &lsid, 1, true));
    for command in [
        doc! { "count": "a" },
        doc! { "listCollections": 1 },
        doc! { "serverStatus": 1 },
        doc! { "find": "a", "$db": "config" },
    ] {
        client.refused(within(command, &lsid, 1, false), 263);
    }
    client.refused(within(doc! { "find": "a", "readConcern": { "level": "local" } }, &lsid, 1, false), 72);
    client.refused(within(doc! { "insert": "a", "documents": [{}], "writeConcern": { "w": 1 } }, &lsid, 1, false), 72);
    client.refused(doc! { "find": "a", "txnNumber": 1_i64, "autocommit": false }, 72);
    client.refused(doc! { "find": "a", "lsid": lsid.clone(), "txnNumber": 2_i64 }, 50768);
    client.ok(within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 1, false));
    assert_eq!(count(&mut client, "a"), 1);
}

#[test]
fn a_failed_statement_ends_its_transaction() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 1 }] });
    let lsid = session(1);
    client.ok(within(doc! { "insert": "a", "documents": [{ "_id": 2 }] }, &lsid, 1, true));
    let reply = client.ok(within(doc! { "insert": "a", "documents": [{ "_id": 1 }] }, &lsid, 1, false));
    assert_eq!(reply.get_array("writeErrors").unwrap().len(), 1);
    client.refused(within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 1, false), 251);
    assert_eq!(count(&mut client, "a"), 1);
    client.refused(within(doc! { "find": "a", "filter": { "$no": 1 } }, &lsid, 2, true), 2);
    client.refused(within(doc! { "find": "a" }, &lsid, 2, false), 251);
}

#[test]
fn of_two_transactions_that_write_a_document_one_is_told_to_repeat() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 1, "n": 0 }] });
    let add = || doc! { "update": "a", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }] };
    let (first, second) = (session(1), session(2));
    client.ok(within(add(), &first, 1, true));
    // The conflict shows with the statement or with the commit, as the store finds it.
    let second_add = client.run(within(add(), &second, 1, true));
    client.ok(within(doc! { "commitTransaction": 1, "$db": "admin" }, &first, 1, false));
    let lost = if second_add.get_f64("ok").unwrap() == 1.0 {
        client.run(within(doc! { "commitTransaction": 1, "$db": "admin" }, &second, 1, false))
    } else {
        second_add
    };
    assert_eq!((lost.get_i32("code").unwrap(), labels(&lost)), (112, vec!["TransientTransactionError"]), "{lost}");
    assert_eq!(batch(&client.ok(doc! { "find": "a" })).0, [doc! { "_id": 1, "n": 1 }]);
}

#[test]
fn a_transaction_whose_time_is_over_is_rolled_back() {
    let short = |server: slate_server::Server| server.transaction_lifetime(Duration::from_millis(100));
    let server = TestServer::with(Database::open("memory:").unwrap(), short).unwrap();
    let mut client = Client::connect(&server);
    let (lsid, insert) = (session(1), doc! { "insert": "a", "documents": [{ "_id": 1 }] });
    client.ok(within(insert.clone(), &lsid, 1, true));
    thread::sleep(Duration::from_millis(300));
    let reply = client.refused(within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 1, false), 251);
    assert_eq!(labels(&reply), ["TransientTransactionError"]);
    assert_eq!(count(&mut client, "a"), 0);
    client.ok(within(insert, &lsid, 2, true));
    client.ok(within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 2, false));
    assert_eq!(count(&mut client, "a"), 1);
    // A command that is executed when it is over.
    let range = doc! { "$reduce": { "input": { "$range": [0, { "$add": ["$_id", 300_000] }] }, "initialValue": 0, "in": { "$add": ["$$value", 1] } } };
    let forever: Vec<Document> = (0..100).map(|n| doc! { "$match": { "$expr": { "$gt": [&range, n] } } }).collect();
    let slow = doc! { "aggregate": "a", "pipeline": forever, "cursor": {} };
    client.refused(within(slow.clone(), &lsid, 3, true), 290);
    client.refused(within(doc! { "find": "a" }, &lsid, 3, false), 251);
    // Also where a transaction can only read, and for a batch that a cursor goes on with.
    let database = Database::open("memory:").unwrap();
    let numbers: Vec<Document> = (0..2).map(|n| doc! { "_id": n, "slow": n == 1 }).collect();
    database.collection("$shop.a").insert_many(&numbers).run().unwrap();
    let server = TestServer::with(database, |server| short(server.read_only())).unwrap();
    let mut client = Client::connect(&server);
    client.refused(within(slow, &lsid, 1, true), 290);
    client.refused(within(doc! { "find": "a" }, &lsid, 1, false), 251);
    let mut forever: Vec<Document> = (0..100).map(|n| doc! { "$gt": [&range, n] }).collect();
    forever.insert(0, doc! { "$eq": ["$slow", true] });
    let filter = doc! { "$expr": { "$not": { "$and": forever } } };
    let (_, id) = batch(&client.ok(within(doc! { "find": "a", "filter": filter, "batchSize": 1 }, &lsid, 2, true)));
    client.refused(within(doc! { "getMore": id, "collection": "a" }, &lsid, 2, false), 290);
}

#[test]
fn a_commit_whose_time_is_over_goes_on() {
    let server = TestServer::start().unwrap();
    let (mut client, mut other) = (Client::connect(&server), Client::connect(&server));
    let documents: Vec<Document> = (0..900).map(|n| doc! { "_id": n }).collect();
    client.ok(doc! { "insert": "a", "documents": documents });
    let lsid = session(1);
    client.ok(within(doc! { "insert": "b", "documents": [{ "_id": 1 }] }, &lsid, 1, true));
    // The commit waits for the command of its session.
    let lookup = doc! { "from": "a", "let": { "a": "$_id" }, "pipeline": [{ "$match": { "$expr": { "$lt": ["$_id", "$$a"] } } }], "as": "x" };
    let slow = doc! { "aggregate": "a", "pipeline": [{ "$lookup": lookup }, { "$count": "n" }], "cursor": {} };
    client.send(0, within(slow, &lsid, 1, false));
    thread::sleep(Duration::from_millis(20));
    let mut commit = within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 1, false);
    commit.insert("maxTimeMS", 5);
    other.refused(commit, 50);
    drop(client.receive());
    other.ok(within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 1, false));
    assert_eq!(count(&mut client, "b"), 1);
}

#[test]
fn the_reply_of_a_retryable_write_may_be_as_long_as_a_document() {
    let database = Database::open("memory:").unwrap();
    let add = || doc! { "findAndModify": "a", "query": { "_id": 1 }, "update": { "$inc": { "n": 1 } }, "lsid": session(1), "txnNumber": 1_i64 };
    let length = (16 << 20) - 100;
    let document = doc! { "_id": 1, "n": 0, "text": "x".repeat(length) };
    database.collection("$shop.a").insert_one(&document).unwrap();
    for _ in 0..2 {
        // The second run of the server reads the record.
        let server = TestServer::of(database.clone()).unwrap();
        let mut client = Client::connect(&server);
        // The session does not hold so long a reply in memory.
        for _ in 0..2 {
            let reply = client.ok(add());
            let value = reply.get_document("value").unwrap();
            assert_eq!((value.get_i32("n").unwrap(), value.get_str("text").unwrap().len()), (0, length));
        }
    }
    let once = database.command(doc! { "count": "a", "query": { "n": 1 }, "$db": "shop" }).unwrap();
    assert_eq!(once.get_i32("n").unwrap(), 1);
}

#[test]
fn a_transaction_creates_only_new_collections() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "create": "a" });
    client.ok(doc! { "create": "a" });
    client.refused(within(doc! { "create": "a" }, &session(1), 1, true), 48);
    client.ok(within(doc! { "create": "b" }, &session(1), 2, true));
    client.refused(within(doc! { "create": "b" }, &session(1), 2, false), 48);
    // So it is with indexes; and its pipelines write nothing.
    let index =
        |collection: &str| doc! { "createIndexes": collection, "indexes": [{ "key": { "x": 1 }, "name": "x_1" }] };
    client.refused(within(index("a"), &session(1), 3, true), 263);
    client.ok(within(doc! { "create": "c" }, &session(1), 4, true));
    client.ok(within(index("c"), &session(1), 4, false));
    client.ok(within(doc! { "commitTransaction": 1, "$db": "admin" }, &session(1), 4, false));
    client.ok(within(index("c"), &session(1), 5, true));
    let out = doc! { "aggregate": "a", "pipeline": [{ "$out": "b" }], "cursor": {} };
    client.refused(within(out, &session(1), 5, false), 263);
}

#[test]
fn a_retryable_write_is_applied_once() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let lsid = session(1);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 1, "n": 0 }] });
    let add = |number: i64| {
        doc! {
            "findAndModify": "a", "query": { "_id": 1 }, "update": { "$inc": { "n": 1 } }, "new": true, "lsid": lsid.clone(), "txnNumber": number,
        }
    };
    let first = client.ok(add(1));
    let again = client.ok(add(1));
    assert_eq!(first.get_document("value").unwrap(), again.get_document("value").unwrap());
    client.ok(add(2));
    client.refused(add(1), 225);
    assert_eq!(batch(&client.ok(doc! { "find": "a" })).0, [doc! { "_id": 1, "n": 2 }]);
    // A command that failed as a whole may be sent again.
    let insert =
        doc! { "insert": "a", "documents": [{ "$no": 1 }], "lsid": lsid.clone(), "txnNumber": 3_i64, "noSuchField": 1 };
    client.refused(insert, 40415);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 3 }], "lsid": lsid, "txnNumber": 3_i64 });
}

#[test]
fn retryable_writes_of_many_sessions_lose_nothing() {
    let server = TestServer::start().unwrap();
    Client::connect(&server).ok(doc! { "insert": "a", "documents": [{ "_id": 1, "n": 0 }] });
    thread::scope(|scope| {
        for writer in 0..8_u8 {
            let mut client = Client::connect(&server);
            scope.spawn(move || {
                for number in 0..25_i64 {
                    let update = doc! { "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } };
                    let reply = client
                        .ok(doc! { "update": "a", "updates": [update], "lsid": session(writer), "txnNumber": number });
                    assert_eq!(reply.get_i32("nModified").unwrap(), 1, "{reply}");
                }
            });
        }
    });
    assert_eq!(batch(&Client::connect(&server).ok(doc! { "find": "a" })).0, [doc! { "_id": 1, "n": 200 }]);
}

#[test]
fn records_of_writes_and_commits_survive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("redb:{}", folder.path().join("data.slate").display());
    let (write, lsid) =
        (doc! { "insert": "a", "documents": [{ "_id": 1 }], "lsid": session(1), "txnNumber": 4_i64 }, session(2));
    let commit = within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 7, false);
    for run in 0..2 {
        let database = Database::open(&url).unwrap();
        let server = TestServer::of(database).unwrap();
        let mut client = Client::connect(&server);
        // The second run answers from the records.
        assert_eq!(client.ok(write.clone()).get_i32("n").unwrap(), 1);
        if run == 0 {
            client.ok(within(doc! { "insert": "a", "documents": [{ "_id": 2 }] }, &lsid, 7, true));
        }
        client.ok(commit.clone());
        assert_eq!(count(&mut client, "a"), 2);
    }
}

#[test]
fn reads_of_a_snapshot_session_see_one_time() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 1 }] });
    let find = |concern: Document| doc! { "find": "a", "readConcern": concern, "lsid": session(1) };
    let first = client.ok(find(doc! { "level": "snapshot" }));
    let time = first.get_document("cursor").unwrap().get_timestamp("atClusterTime").unwrap();
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 2 }] });
    let then = client.ok(find(doc! { "level": "snapshot", "atClusterTime": time }));
    assert_eq!(batch(&then).0.len(), 1);
    let now = client.ok(find(doc! { "level": "snapshot" }));
    assert_eq!(batch(&now).0.len(), 2);
    client.refused(find(doc! { "level": "snapshot", "atClusterTime": bson::Timestamp { time: 1, increment: 1 } }), 239);
    // Causal consistency: the time has always come.
    let after = now.get_timestamp("operationTime").unwrap();
    client.ok(find(doc! { "afterClusterTime": after }));
    let insert = doc! {
        "insert": "a", "documents": [{ "_id": 3 }], "readConcern": { "afterClusterTime": after }, "lsid": session(1), "txnNumber": 1_i64,
    };
    client.ok(insert);
}

#[test]
fn ending_a_session_ends_what_it_holds() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 1 }, { "_id": 2 }] });
    let lsid = session(1);
    client.ok(within(doc! { "insert": "a", "documents": [{ "_id": 3 }] }, &lsid, 1, true));
    let (_, id) = batch(&client.ok(doc! { "find": "a", "batchSize": 1, "lsid": lsid.clone() }));
    client.ok(doc! { "endSessions": [lsid.clone()], "$db": "admin" });
    client.refused(doc! { "getMore": id, "collection": "a", "lsid": lsid.clone() }, 43);
    client.refused(within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 1, false), 251);
    assert_eq!(count(&mut client, "a"), 2);
    let started = client.ok(doc! { "startSession": 1 });
    client.ok(doc! { "killSessions": [started.get_document("id").unwrap().clone()] });
    client.refused(doc! { "find": "a", "lsid": { "id": 5 } }, 14);
}

#[test]
fn a_read_only_server_refuses_writes() {
    let database = Database::open("memory:").unwrap();
    database.collection("$shop.a").insert_one(&doc! { "_id": 1 }).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::new(database.clone()).read_only();
    let shutdown = server.shutdown();
    let running = thread::spawn(move || runtime.block_on(server.serve(listener)).unwrap());
    let mut client = Client::at(&address.to_string());
    assert_eq!(count(&mut client, "a"), 1);
    for command in [
        doc! { "insert": "a", "documents": [{}] },
        doc! { "insert": "a", "documents": [{}], "lsid": session(1), "txnNumber": 1_i64 },
        within(doc! { "insert": "a", "documents": [{}] }, &session(1), 2, true),
        doc! { "drop": "a" },
    ] {
        assert_eq!(client.run(command.clone()).get_f64("ok").unwrap(), 0.0, "{command}");
    }
    // The process itself writes, and clients see it; a transaction reads what was there when it began.
    let read = |is_first: bool| within(doc! { "find": "a" }, &session(2), 1, is_first);
    assert_eq!(batch(&client.ok(read(true))).0.len(), 1);
    database.collection("$shop.a").insert_one(&doc! { "_id": 2 }).unwrap();
    assert_eq!(count(&mut client, "a"), 2);
    assert_eq!(batch(&client.ok(read(false))).0.len(), 1);
    client.ok(within(doc! { "commitTransaction": 1, "$db": "admin" }, &session(2), 1, false));
    let (_, id) = batch(&client.ok(within(doc! { "find": "a", "batchSize": 1 }, &session(2), 2, true)));
    let more = doc! { "getMore": id, "collection": "a", "batchSize": 1 };
    assert_eq!(batch(&client.ok(within(more, &session(2), 2, false))).0.len(), 1);
    let (_, id) = batch(&client.ok(within(doc! { "find": "a", "batchSize": 1 }, &session(2), 2, false)));
    client.ok(within(doc! { "abortTransaction": 1, "$db": "admin" }, &session(2), 2, false));
    // Its cursor ends with it.
    client.ok(within(doc! { "find": "a" }, &session(2), 3, true));
    client.refused(within(doc! { "getMore": id, "collection": "a" }, &session(2), 3, false), 43);
    client.refused(within(doc! { "find": "a" }, &session(2), 3, false), 251);
    client.ok(within(doc! { "find": "a" }, &session(2), 4, true));
    client.refused(within(doc! { "insert": "a", "documents": [{}] }, &session(2), 4, false), 20);
    client.refused(within(doc! { "find": "a" }, &session(2), 4, false), 251);
    shutdown.now();
    running.join().unwrap();
    thread::sleep(Duration::from_millis(10));
    assert!(client.try_receive().is_err());
}

#[test]
fn servers_over_one_store_repeat_no_write() {
    let database = Database::open("memory:").unwrap();
    let (a, b) = (TestServer::of(database.clone()).unwrap(), TestServer::of(database).unwrap());
    let (mut a, mut b) = (Client::connect(&a), Client::connect(&b));
    let lsid = session(1);
    let increment = |number: i64| {
        let update = doc! { "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } }, "upsert": true };
        doc! { "update": "c", "updates": [update], "lsid": lsid.clone(), "txnNumber": number }
    };
    b.ok(increment(4));
    let written = a.ok(increment(5));
    let repeated = b.ok(increment(5));
    assert_eq!(
        (repeated.get_i32("n").unwrap(), repeated.get_i32("nModified").unwrap()),
        (written.get_i32("n").unwrap(), written.get_i32("nModified").unwrap())
    );
    a.refused(increment(4), 225);
    b.ok(increment(6));
    a.ok(increment(5));
    let (found, _) = batch(&a.ok(doc! { "find": "c" }));
    assert_eq!(found, [doc! { "_id": 1, "n": 3 }]);
    // A commit, too.
    a.ok(within(doc! { "insert": "c", "documents": [{ "_id": 2 }] }, &lsid, 7, true));
    let commit = within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 7, false);
    a.ok(commit.clone());
    b.ok(commit);
    // Another server has gone on before a transaction begins.
    b.ok(increment(9));
    a.ok(within(doc! { "insert": "c", "documents": [{ "_id": 3 }] }, &lsid, 8, true));
    a.refused(within(doc! { "commitTransaction": 1, "$db": "admin" }, &lsid, 8, false), 225);
    assert_eq!(a.ok(doc! { "count": "c", "query": { "_id": 3 } }).get_i32("n").unwrap(), 0);
}

#[test]
fn an_operation_that_a_bulk_write_refuses_ends_its_transaction_whatever_the_batch() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] });
    let bulk = doc! {
        "bulkWrite": 1, "$db": "admin", "nsInfo": [{ "ns": "shop.c" }], "cursor": { "batchSize": 1 },
        "ops": [{ "insert": 0, "document": { "_id": 2 } }, { "insert": 0, "document": { "_id": 1 } }],
    };
    let reply = client.ok(within(bulk, &session(1), 1, true));
    assert_eq!(reply.get_i32("nErrors").unwrap(), 1);
    client.refused(within(doc! { "commitTransaction": 1, "$db": "admin" }, &session(1), 1, false), 251);
    assert_eq!(client.ok(doc! { "count": "c" }).get_i32("n").unwrap(), 1);
}

#[test]
fn a_transaction_that_only_reads_leaves_no_record() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] });
    let aggregate = doc! { "aggregate": "c", "pipeline": [{ "$count": "n" }], "cursor": {} };
    client.ok(within(aggregate, &session(1), 1, true));
    client.ok(within(doc! { "commitTransaction": 1, "$db": "admin" }, &session(1), 1, false));
    assert_eq!(client.ok(doc! { "count": "transactions", "$db": "config" }).get_i32("n").unwrap(), 0);
}
