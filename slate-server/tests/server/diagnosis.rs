//! What a server tells about its work: running commands with their plans, cursors, transactions, the profiler, times of collections.

use std::{
    thread,
    time::{Duration, Instant},
};

use bson::{Document, doc};
use slate_server::TestServer;

use crate::client::{Client, batch, session, within};

/// A condition that every document fulfils: those from 92 on after a while.
fn slow() -> Document {
    let all = doc! { "$filter": { "input": { "$range": [0, "$n"] }, "cond": { "$lt": ["$$this", 0] } } };
    doc! { "$gte": [{ "$size": all }, 0] }
}

/// Returns the documents that `$currentOp` shows and a filter chooses.
fn operations(client: &mut Client, options: Document, filter: Document) -> Vec<Document> {
    let pipeline = vec![doc! { "$currentOp": options }, doc! { "$match": filter }];
    batch(&client.ok(doc! { "aggregate": 1, "pipeline": pipeline, "cursor": {}, "$db": "admin" })).0
}

/// Waits for an operation that a filter chooses.
fn running(client: &mut Client, filter: &Document) -> Document {
    let began = Instant::now();
    loop {
        if let Some(found) = operations(client, doc! {}, filter.clone()).pop() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{filter} is not shown");
        thread::sleep(Duration::from_millis(5));
    }
}

fn with_index(client: &mut Client) {
    let documents: Vec<Document> =
        (0..100).map(|n| doc! { "_id": n, "a": n, "n": if n < 92 { 0 } else { 100_000 } }).collect();
    client.ok(doc! { "insert": "c", "documents": documents });
    client.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] });
}

#[test]
fn running_commands_show_their_plan_and_their_client() {
    let server = TestServer::start().unwrap();
    let (mut client, mut other) = (Client::connect(&server), Client::connect(&server));
    client.ok(doc! { "hello": 1, "client": { "application": { "name": "till" }, "driver": { "name": "own" } } });
    with_index(&mut client);
    let by_index = doc! { "a": { "$gte": 95, "$lt": 1000 }, "$expr": slow() };
    let commands = [
        ("query", "IXSCAN { a: 1 }", doc! { "find": "c", "filter": by_index.clone() }),
        ("query", "COLLSCAN", doc! { "find": "c", "filter": { "b": null, "$expr": slow() } }),
        ("command", "IXSCAN { a: 1 }", doc! { "count": "c", "query": by_index.clone() }),
        ("command", "IXSCAN { a: 1 }", doc! { "distinct": "c", "key": "b", "query": by_index.clone() }),
        (
            "command",
            "IXSCAN { a: 1 }",
            doc! { "aggregate": "c", "pipeline": [{ "$match": by_index.clone() }], "cursor": {} },
        ),
        (
            "update",
            "IXSCAN { a: 1 }",
            doc! { "update": "c", "updates": [{ "q": by_index.clone(), "u": { "$set": { "b": 1 } }, "multi": true }] },
        ),
        ("remove", "IXSCAN { a: 1 }", doc! { "delete": "c", "deletes": [{ "q": by_index.clone(), "limit": 0 }] }),
        (
            "command",
            "IXSCAN { a: 1 }",
            doc! { "findAndModify": "c", "query": by_index, "remove": true, "sort": { "b": 1 } },
        ),
    ];
    for (kind, plan, command) in commands {
        let name = command.keys().next().unwrap().clone();
        client.send(0, command);
        let found = running(&mut other, &doc! { "ns": "shop.c", "planSummary": { "$exists": true } });
        assert_eq!((found.get_str("op").unwrap(), found.get_str("planSummary").unwrap()), (kind, plan), "{found}");
        assert_eq!(found.get_str("appName").unwrap(), "till");
        assert_eq!(
            found.get_document("clientMetadata").unwrap().get_document("driver").unwrap(),
            &doc! { "name": "own" }
        );
        assert!(found.get_document("command").unwrap().contains_key(&name) && found.get_bool("active").unwrap());
        assert!(found.get_i64("microsecs_running").unwrap() > 0 && found.get_i64("connectionId").unwrap() > 0);
        other.ok(doc! { "killOp": 1, "op": found.get_i32("opid").unwrap(), "$db": "admin" });
        assert_eq!(client.receive().1.get_i32("code").unwrap(), 11601, "{name}");
    }
}

#[test]
fn cursors_transactions_and_connections_that_wait_are_shown_if_wanted() {
    let server = TestServer::start().unwrap();
    let (mut client, mut other) = (Client::connect(&server), Client::connect(&server));
    with_index(&mut client);
    let find =
        doc! { "find": "c", "filter": { "a": { "$gt": 90 } }, "batchSize": 2, "lsid": session(1), "comment": "mine" };
    let (_, id) = batch(&client.ok(find));
    client.ok(doc! { "getMore": id, "collection": "c", "batchSize": 3, "lsid": session(1) });
    let idle = operations(&mut other, doc! { "idleCursors": true }, doc! { "type": "idleCursor" });
    let [cursor] = &*idle else { panic!("{idle:?}") };
    assert_eq!((cursor.get_str("ns").unwrap(), cursor.get_str("planSummary").unwrap()), ("shop.c", "IXSCAN { a: 1 }"));
    assert_eq!(cursor.get_document("lsid").unwrap(), &session(1));
    let cursor = cursor.get_document("cursor").unwrap();
    assert_eq!((cursor.get_i64("cursorId").unwrap(), cursor.get_i64("nDocsReturned").unwrap()), (id, 5));
    assert_eq!(cursor.get_i64("nBatchesReturned").unwrap(), 2);
    assert_eq!(cursor.get_document("originatingCommand").unwrap().get_str("comment").unwrap(), "mine");
    assert!(cursor.get_datetime("createdDate").unwrap() <= cursor.get_datetime("lastAccessDate").unwrap());
    assert!(operations(&mut other, doc! {}, doc! { "type": "idleCursor" }).is_empty());

    // Scans without an index on `a` are shown with their plans, too.
    for (plan, filter) in [("COLLSCAN", doc! { "b": null }), ("CLUSTERED_IXSCAN", doc! { "_id": { "$gt": 1 } })] {
        let (_, id) = batch(&client.ok(doc! { "find": "c", "filter": filter, "batchSize": 2 }));
        let found = operations(&mut other, doc! { "idleCursors": true }, doc! { "cursor.cursorId": id });
        assert_eq!(found[0].get_str("planSummary").unwrap(), plan);
        client.ok(doc! { "killCursors": "c", "cursors": [id] });
    }

    client.ok(within(doc! { "find": "c" }, &session(2), 7, true));
    let idle = operations(&mut other, doc! {}, doc! { "type": "idleSession" });
    let [open] = &*idle else { panic!("{idle:?}") };
    assert_eq!((open.get_document("lsid").unwrap(), open.get_bool("active").unwrap()), (&session(2), false));
    let parameters = open.get_document("transaction").unwrap().get_document("parameters").unwrap();
    assert_eq!(parameters, &doc! { "txnNumber": 7_i64, "autocommit": false });
    assert!(operations(&mut other, doc! { "idleSessions": false }, doc! { "type": "idleSession" }).is_empty());
    client.ok(
        doc! { "abortTransaction": 1, "lsid": session(2), "txnNumber": 7_i64, "autocommit": false, "$db": "admin" },
    );
    assert!(operations(&mut other, doc! {}, doc! { "type": "idleSession" }).is_empty());

    assert_eq!(operations(&mut other, doc! { "idleConnections": true }, doc! { "active": false }).len(), 1);
    let all = other.ok(doc! { "currentOp": 1, "$all": true, "$db": "admin" });
    assert_eq!(all.get_array("inprog").unwrap().len(), 2);
    for options in [doc! { "noSuchOption": true }, doc! { "idleCursors": 1 }] {
        let pipeline = vec![doc! { "$currentOp": options }];
        other.refused(doc! { "aggregate": 1, "pipeline": pipeline, "cursor": {}, "$db": "admin" }, 9);
    }
}

#[test]
fn a_running_get_more_shows_the_plan_of_its_cursor_and_ends_with_its_client() {
    let server = TestServer::start().unwrap();
    let (mut client, mut other) = (Client::connect(&server), Client::connect(&server));
    with_index(&mut client);
    let find = doc! { "find": "c", "filter": { "a": { "$gte": 90 }, "$expr": slow() }, "batchSize": 2 };
    let (_, id) = batch(&client.ok(find.clone()));
    client.send(0, doc! { "getMore": id, "collection": "c" });
    let found = running(&mut other, &doc! { "op": "getmore", "planSummary": { "$exists": true } });
    assert_eq!((found.get_str("ns").unwrap(), found.get_str("planSummary").unwrap()), ("shop.c", "IXSCAN { a: 1 }"));
    let cursor = found.get_document("cursor").unwrap();
    assert_eq!((cursor.get_i64("cursorId").unwrap(), cursor.get_i64("nDocsReturned").unwrap()), (id, 2));
    assert_eq!(cursor.get_i64("operationUsingCursorId").unwrap(), i64::from(found.get_i32("opid").unwrap()));
    other.ok(doc! { "killOp": 1, "op": found.get_i32("opid").unwrap(), "$db": "admin" });
    assert_eq!(client.receive().1.get_i32("code").unwrap(), 11601);
    client.refused(doc! { "getMore": id, "collection": "c" }, 43);
    // A client that vanishes takes its command with it.
    let (_, id) = batch(&client.ok(find));
    client.send(0, doc! { "getMore": id, "collection": "c" });
    running(&mut other, &doc! { "op": "getmore", "planSummary": { "$exists": true } });
    drop(client);
    let began = Instant::now();
    while !operations(&mut other, doc! {}, doc! { "op": "getmore" }).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(5), "the command goes on");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the entries of the profiler that a filter chooses, the latest first.
fn entries(client: &mut Client, filter: Document) -> Vec<Document> {
    batch(&client.ok(doc! { "find": "system.profile", "filter": filter, "sort": { "$natural": -1 } })).0
}

#[test]
fn the_profiler_records_commands_that_can_be_read_as_a_collection() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    with_index(&mut client);
    assert!(entries(&mut client, doc! {}).is_empty());
    let off = doc! { "was": 0, "slowms": 100, "sampleRate": 1.0 };
    let settings = |reply: Document| -> Document {
        let shown = |name: &str| matches!(name, "was" | "slowms" | "sampleRate" | "filter");
        reply.into_iter().filter(|(name, _)| shown(name)).collect()
    };
    assert_eq!(settings(client.ok(doc! { "profile": 2 })), off);
    client.ok(doc! { "find": "c", "filter": { "a": { "$gt": 96 } }, "comment": "seen" });
    client.ok(doc! { "find": "c", "filter": { "_id": 4 } });
    client.ok(doc! { "find": "c", "filter": { "a": 4 } });
    client.ok(doc! { "update": "c", "updates": [{ "q": { "b": 1 }, "u": { "$set": { "b": 2 } }, "upsert": true }] });
    client.ok(doc! { "delete": "c", "deletes": [{ "q": { "a": { "$lt": 2 } }, "limit": 0 }] });
    client.ok(doc! { "insert": "d", "documents": [{ "_id": 1 }, { "_id": 2 }] });
    client.refused(doc! { "find": "c", "filter": { "$no": 1 } }, 2);
    let (_, id) = batch(&client.ok(
        doc! { "aggregate": "c", "pipeline": [{ "$match": { "a": { "$gte": 90 } } }], "cursor": { "batchSize": 3 } },
    ));
    client.ok(doc! { "getMore": id, "collection": "c", "batchSize": 2 });
    client.ok(doc! { "ping": 1, "$db": "other" });

    let found = entries(&mut client, doc! { "ns": { "$ne": "shop.system.profile" } });
    let shown: Vec<(&str, &str, Option<&str>)> = found
        .iter()
        .rev()
        .map(|entry| (entry.get_str("op").unwrap(), entry.get_str("ns").unwrap(), entry.get_str("planSummary").ok()))
        .collect();
    assert_eq!(
        shown,
        [
            ("query", "shop.c", Some("IXSCAN { a: 1 }")),
            ("query", "shop.c", Some("EXPRESS_IXSCAN { _id: 1 }")),
            ("query", "shop.c", Some("EXPRESS_IXSCAN { a: 1 }")),
            ("update", "shop.c", Some("COLLSCAN")),
            ("remove", "shop.c", Some("IXSCAN { a: 1 }")),
            ("insert", "shop.d", None),
            ("query", "shop.c", None),
            ("command", "shop.c", Some("IXSCAN { a: 1 }")),
            ("getmore", "shop.c", Some("IXSCAN { a: 1 }")),
        ]
    );
    let first = entries(&mut client, doc! { "command.comment": "seen" }).pop().unwrap();
    for (name, expected) in [("keysExamined", 3), ("docsExamined", 3), ("nreturned", 3)] {
        assert_eq!(first.get_i64(name).unwrap(), expected, "{first}");
    }
    let stages = first.get_document("execStats").unwrap();
    let scan = stages.get_document("inputStage").unwrap();
    assert_eq!((stages.get_str("stage").unwrap(), scan.get_str("stage").unwrap()), ("FETCH", "IXSCAN"), "{stages}");
    assert_eq!(scan.get_str("indexName").unwrap(), "a_1");
    let lookup = entries(&mut client, doc! { "planSummary": "EXPRESS_IXSCAN { _id: 1 }" }).pop().unwrap();
    let stages = doc! { "stage": "EXPRESS_IXSCAN", "keyPattern": "{ _id: 1 }" };
    assert_eq!(lookup.get_document("execStats").unwrap(), &stages);
    assert!(first.get_bool("cursorExhausted").unwrap() && first.get_i64("responseLength").unwrap() > 50);
    assert!(first.get_datetime("ts").is_ok() && first.get_i64("millis").is_ok(), "{first}");
    assert_eq!((first.get_str("client").unwrap(), first.get_str("user").unwrap()), ("127.0.0.1", ""));
    let update = entries(&mut client, doc! { "op": "update" }).pop().unwrap();
    assert_eq!(update.get_document("command").unwrap().get_document("q").unwrap(), &doc! { "b": 1 });
    assert_eq!((update.get_i64("nMatched").unwrap(), update.get_i64("nUpserted").unwrap()), (0, 1));
    let more = entries(&mut client, doc! { "op": "getmore" }).pop().unwrap();
    assert_eq!((more.get_i64("cursorid").unwrap(), more.get_i64("nreturned").unwrap()), (id, 2));
    let failed = entries(&mut client, doc! { "errCode": 2 }).pop().unwrap();
    assert_eq!((failed.get_f64("ok").unwrap(), failed.get_str("errName").unwrap()), (0.0, "BadValue"));

    // Other commands read the collection as any other, and it can be dropped, but not while it is written.
    assert!(client.ok(doc! { "count": "system.profile", "query": { "op": "query" } }).get_i32("n").unwrap() >= 4);
    let kinds = client.ok(doc! { "distinct": "system.profile", "key": "op" });
    assert_eq!(kinds.get_array("values").unwrap().len(), 6, "{kinds}");
    let grouped = doc! { "$group": { "_id": "$ns", "n": { "$sum": 1 } } };
    let grouped = batch(&client.ok(
        doc! { "aggregate": "system.profile", "pipeline": [{ "$match": { "ns": "shop.d" } }, grouped], "cursor": {} },
    ));
    assert_eq!(grouped.0, [doc! { "_id": "shop.d", "n": 1 }]);
    let (some, id) = batch(&client.ok(doc! { "find": "system.profile", "batchSize": 2, "sort": { "ts": -1 } }));
    assert_eq!(some.len(), 2);
    assert_eq!(batch(&client.ok(doc! { "getMore": id, "collection": "system.profile", "batchSize": 2 })).0.len(), 2);
    client.refused(doc! { "insert": "system.profile", "documents": [{}] }, 73);
    client.refused(within(doc! { "find": "system.profile" }, &session(1), 1, true), 263);
    client.refused(within(doc! { "drop": "system.profile" }, &session(1), 2, true), 263);
    client.refused(doc! { "drop": "system.profile" }, 20);
    client.ok(doc! { "profile": 0 });
    client.ok(doc! { "drop": "system.profile" });
    assert!(entries(&mut client, doc! {}).is_empty());
}

#[test]
fn a_bulk_write_is_recorded_in_each_database_with_what_it_writes_there() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    for database in ["shop", "stock", "admin"] {
        client.ok(doc! { "profile": 2, "$db": database });
    }
    let operations = [doc! { "insert": 1, "document": { "_id": 1 } }, doc! { "insert": 0, "document": { "_id": 2 } }];
    let namespaces = [doc! { "ns": "stock.a" }, doc! { "ns": "shop.b" }];
    client.ok(doc! { "bulkWrite": 1, "ops": &operations[..], "nsInfo": &namespaces[..], "$db": "admin" });
    // A database that is only named has no part.
    let one = doc! { "insert": 0, "document": { "_id": 3 } };
    client.ok(doc! { "bulkWrite": 1, "ops": [one], "nsInfo": &namespaces[..], "$db": "admin" });
    let mut recorded = |database: &str| -> Vec<Document> {
        let filter = doc! { "command.bulkWrite": 1 };
        batch(&client.ok(doc! { "find": "system.profile", "filter": filter, "$db": database })).0
    };
    let shop = recorded("shop");
    assert_eq!((shop.len(), shop[0].get_str("ns").unwrap()), (1, "shop.b"), "{shop:?}");
    let command = shop[0].get_document("command").unwrap();
    assert_eq!(
        (command.get_array("ops").unwrap(), command.get_array("nsInfo").unwrap()),
        (&vec![doc! { "insert": 0, "document": { "_id": 1 } }.into()], &vec![doc! { "ns": "shop.b" }.into()])
    );
    assert!(shop[0].get("ninserted").is_none(), "{shop:?}");
    let stock = recorded("stock");
    assert_eq!(stock.iter().map(|entry| entry.get_str("ns").unwrap()).collect::<Vec<_>>(), ["stock.a"; 2]);
    assert_eq!(stock[1].get_i64("ninserted").unwrap(), 1);
    assert_eq!(recorded("admin").len(), 2);
}

#[test]
fn no_command_empties_the_profile_or_shows_its_password() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "profile": 2 });
    client.ok(doc! { "find": "c" });
    // The stages of its plan would make the entry too long.
    client.ok(doc! { "find": "c", "filter": { "a": "x".repeat(40_000) }, "comment": "long" });
    let long = entries(&mut client, doc! { "command.comment": "long" });
    assert!(long.len() == 1 && long[0].contains_key("planSummary") && !long[0].contains_key("execStats"));
    client.refused(doc! { "find": "x".repeat(2_000_000) }, 73);
    client.refused(doc! { "find": "c", "filter": { "$no": "x".repeat(2_000_000) }, "comment": "y".repeat(10_000) }, 2);
    client.refused(doc! { "createuser": "bob", "pwd": "s3cret" }, 59);
    client.run(doc! { "explain": { "createUser": "bob", "pwd": "s3cret" } });
    client.run(doc! { "createUser": "bob", "Password": "s3cret" });
    client.ok(doc! { "hello": 1, "speculativeAuthenticate": { "saslStart": 1, "payload": "s3cret" } });
    let found = entries(&mut client, doc! {});
    assert_eq!(found.len(), 8);
    assert_eq!(found[7].get_document("command").unwrap().get_str("find").unwrap(), "c");
    for entry in found {
        assert!(entry.get_str("ns").unwrap().len() < 300 && !entry.to_string().contains("s3cret"), "{entry}");
    }
}

#[test]
fn a_long_command_is_shown_by_its_beginning() {
    let server = TestServer::start().unwrap();
    let (mut client, mut other) = (Client::connect(&server), Client::connect(&server));
    with_index(&mut client);
    client.send(0, doc! { "find": "c", "filter": { "$expr": slow() }, "comment": "x".repeat(1_000_000) });
    let found = running(&mut other, &doc! { "ns": "shop.c", "planSummary": "COLLSCAN" });
    let command = found.get_document("command").unwrap();
    assert!(command.get_str("$truncated").unwrap().starts_with("{ find: \"c\", filter: {"), "{command}");
    assert_eq!(command.get_str("comment").unwrap().len(), 1000);
    other.ok(doc! { "killOp": 1, "op": found.get_i32("opid").unwrap(), "$db": "admin" });
    assert_eq!(client.receive().1.get_i32("code").unwrap(), 11601);
}

#[test]
fn the_profiler_chooses_by_time_rate_and_filter() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    with_index(&mut client);
    client.ok(doc! { "profile": 1, "slowms": 60_000 });
    client.ok(doc! { "find": "c" });
    assert!(entries(&mut client, doc! { "ns": "shop.c" }).is_empty());
    client.ok(doc! { "profile": 1, "slowms": -1 });
    client.ok(doc! { "find": "c" });
    assert_eq!(entries(&mut client, doc! { "ns": "shop.c" }).len(), 1);
    client.ok(doc! { "profile": 1, "sampleRate": 0.0 });
    client.ok(doc! { "find": "c" });
    assert_eq!(entries(&mut client, doc! { "ns": "shop.c" }).len(), 1);
    let filter = doc! { "op": "query", "docsExamined": { "$gt": 5 } };
    client.ok(doc! { "profile": 1, "filter": filter.clone() });
    client.ok(doc! { "find": "c", "filter": { "_id": 1 } });
    client.ok(doc! { "find": "c", "filter": { "a": { "$gt": 1 } } });
    let recorded = entries(
        &mut client,
        doc! { "ns": "shop.c", "docsExamined": { "$gt": 5 }, "command.filter.a": { "$exists": true } },
    );
    assert_eq!((recorded.len(), entries(&mut client, doc! { "ns": "shop.c" }).len()), (1, 2));
    let now = client.ok(doc! { "profile": -1 });
    assert_eq!((now.get_i32("was").unwrap(), now.get_document("filter").unwrap()), (1, &filter));
    assert_eq!((now.get_i32("slowms").unwrap(), now.get_f64("sampleRate").unwrap()), (-1, 0.0));
    assert!(now.contains_key("note"));
    assert!(client.ok(doc! { "profile": 0, "filter": "unset" }).contains_key("note"));
    let now = client.ok(doc! { "profile": -1, "slowms": 30, "filter": filter.clone() });
    assert!(!now.contains_key("filter") && !now.contains_key("note"), "{now}");
    let now = client.ok(doc! { "profile": -1 });
    assert!(now.get_i32("slowms").unwrap() == 30 && !now.contains_key("filter"), "{now}");
    let now = client.ok(doc! { "profile": 0, "filter": filter });
    assert!(!now.contains_key("filter") && now.contains_key("note"), "{now}");
    client.refused(doc! { "profile": 1, "filter": { "$no": 1 } }, 2);
    client.refused(doc! { "profile": 1, "filter": "no" }, 2);
    client.refused(doc! { "profile": 1, "sampleRate": 2.0 }, 2);
    client.refused(doc! { "profile": 1, "slowms": "x" }, 14);
}

#[test]
fn top_counts_commands_by_collection() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    with_index(&mut client);
    let (_, id) = batch(&client.ok(doc! { "find": "c", "batchSize": 1 }));
    client.ok(doc! { "getMore": id, "collection": "c" });
    client.ok(doc! { "count": "c" });
    client.ok(doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "b": 1 } } }] });
    client.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] });
    let top = client.ok(doc! { "top": 1, "$db": "admin" });
    let totals = top.get_document("totals").unwrap();
    assert_eq!(totals.get_str("note").unwrap(), "all times in microseconds");
    let times = totals.get_document("shop.c").unwrap();
    let counts: Vec<(&str, i64)> =
        times.iter().map(|(part, times)| (&**part, times.as_document().unwrap().get_i64("count").unwrap())).collect();
    let expected = [
        ("total", 7),
        ("readLock", 3),
        ("writeLock", 4),
        ("queries", 1),
        ("getmore", 1),
        ("insert", 1),
        ("update", 1),
        ("remove", 1),
        ("commands", 2),
    ];
    assert_eq!(counts, expected);
    assert!(times.get_document("insert").unwrap().get_i64("time").unwrap() > 0);
    // What fails is not counted: a client could fill the table with names that no collection has.
    client.refused(doc! { "find": "x".repeat(100_000) }, 73);
    client.refused(doc! { "find": "d", "filter": { "$no": 1 } }, 2);
    let top = client.ok(doc! { "top": 1, "$db": "admin" });
    assert_eq!(top.get_document("totals").unwrap().keys().collect::<Vec<_>>(), ["note", "shop.c"]);
    client.ok(doc! { "drop": "c" });
    let top = client.ok(doc! { "top": 1, "$db": "admin" });
    assert!(!top.get_document("totals").unwrap().contains_key("shop.c"), "{top}");
    client.refused(doc! { "top": 1 }, 13);
}
