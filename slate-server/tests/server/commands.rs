//! A server over a real socket: its commands, its connections, and clients that misbehave.

use std::{
    io::{Read, Write},
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use crate::client::{Client, batch, session, within};
use bson::{Document, RawDocumentBuf, doc};
use slate_core::Database;
use slate_server::TestServer;

#[test]
fn hello_presents_a_primary_at_the_address_of_the_client() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let hello = client.ok(doc! { "hello": 1, "$db": "admin", "compression": ["zlib", "lz4", "snappy"] });
    let address = client.stream.peer_addr().unwrap().to_string();
    for name in ["me", "primary"] {
        assert_eq!(hello.get_str(name).unwrap(), address);
    }
    assert_eq!(hello.get_array("hosts").unwrap(), &[address.into()]);
    assert_eq!(hello.get_array("compression").unwrap(), &["zlib".into(), "snappy".into()]);
    assert_eq!((hello.get_bool("isWritablePrimary").unwrap(), hello.get_i32("maxWireVersion").unwrap()), (true, 27));
    assert!(
        hello.contains_key("topologyVersion")
            && hello.contains_key("$clusterTime")
            && hello.contains_key("operationTime")
    );
    let old = client.ok(doc! { "isMaster": 1, "helloOk": true });
    assert!(old.get_bool("ismaster").unwrap() && old.get_bool("helloOk").unwrap());
    let named =
        TestServer::with(Database::open("memory:").unwrap(), |server| server.host("db.example.com:27017")).unwrap();
    let mut client = Client::connect(&named);
    let hello = client.ok(doc! { "hello": 1 });
    assert_eq!(hello.get_array("hosts").unwrap(), &["db.example.com:27017".into()]);
    assert_eq!(
        (hello.get_str("me").unwrap(), hello.get_str("primary").unwrap()),
        ("db.example.com:27017", "db.example.com:27017")
    );
    let config = client.ok(doc! { "replSetGetConfig": 1, "$db": "admin" });
    assert!(config.to_string().contains("db.example.com:27017"), "{config}");
}

#[test]
fn hello_waits_and_streams() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let topology = client.ok(doc! { "hello": 1 }).get_document("topologyVersion").unwrap().clone();
    let wait = doc! { "hello": 1, "topologyVersion": topology.clone(), "maxAwaitTimeMS": 100_i64 };
    let began = Instant::now();
    client.ok(wait.clone());
    assert!(began.elapsed() >= Duration::from_millis(100));
    client.send(1 << 16, wait);
    for _ in 0..3 {
        let (flags, reply) = client.receive();
        assert_eq!((flags, reply.get_document("topologyVersion").unwrap()), (2, &topology));
    }
    // Nothing streams without a wait: it would have no end.
    let mut client = Client::connect(&server);
    let mut old = topology.clone();
    old.insert("processId", bson::oid::ObjectId::new());
    for (known, wait) in [(&topology, 0_i64), (&topology, -1), (&old, 10_000)] {
        client.send(1 << 16, doc! { "hello": 1, "topologyVersion": known, "maxAwaitTimeMS": wait });
        assert_eq!(client.receive().0, 0, "{known} {wait}");
    }
    client.ok(doc! { "ping": 1 });
    client.refused(doc! { "hello": 1, "topologyVersion": topology }, 31368);
}

#[test]
fn a_command_that_wants_no_reply_gets_none_even_if_it_is_none() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let without_database = RawDocumentBuf::try_from(&doc! { "ping": 1 }).unwrap();
    client.send_raw(2, &without_database);
    client.ok(doc! { "ping": 1 });
    assert_eq!(client.run_raw(&without_database).get_i32("code").unwrap(), 40571);
}

#[test]
fn databases_of_the_server_stay_and_names_are_those_of_mongodb() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    for database in ["admin", "local"] {
        client.refused(doc! { "dropDatabase": 1, "$db": database }, 20);
    }
    client.refused(doc! { "dropDatabase": 2, "$db": "shop" }, 2);
    client.refused(doc! { "dropDatabase": "shop", "$db": "shop" }, 14);
    client.ok(doc! { "create": "x".repeat(250), "$db": "shop" });
    client.refused(doc! { "create": "x".repeat(251), "$db": "shop" }, 73);

    let two =
        doc! { "aggregate": 1, "pipeline": [{ "$documents": [{}, {}] }], "cursor": { "batchSize": 1 }, "$db": "shop" };
    let reply = client.ok(two);
    assert_eq!(reply.get_document("cursor").unwrap().get_str("ns").unwrap(), "shop.$cmd.aggregate");
    let (_, id) = batch(&reply);
    client.ok(doc! { "getMore": id, "collection": "$cmd.aggregate", "$db": "shop" });
    client.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "shop" });
    let counted =
        doc! { "aggregate": "c", "pipeline": [{ "$collStats": { "count": {} } }], "cursor": {}, "$db": "shop" };
    assert_eq!(batch(&client.ok(counted)).0[0].get_str("ns").unwrap(), "shop.c");
    client.refused(
        doc! { "aggregate": "c", "pipeline": [{ "$out": { "coll": "d" } }], "cursor": {}, "$db": "shop" },
        40414,
    );

    let converted = doc! { "aggregate": "c", "pipeline": [{ "$project": { "x": { "$toInt": "zz" } } }], "cursor": {}, "$db": "shop" };
    assert_eq!(client.refused(converted, 241).get_str("codeName").unwrap(), "ConversionFailure");
    let update = doc! { "update": 0, "filter": {}, "updateMods": { "x": 1 }, "multi": true };
    let reply = client.ok(doc! { "bulkWrite": 1, "ops": [update], "nsInfo": [{ "ns": "shop.c" }], "$db": "admin" });
    let (failed, _) = batch(&reply);
    assert_eq!((failed[0].get("n"), failed[0].get("nModified")), (Some(&0.into()), Some(&0.into())));
}

#[test]
fn filters_of_lists_end_with_their_commands() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "create": "c" });
    // Days of work.
    let long = (0..4).fold(doc! { "$sum": 1 }, |inner, _| {
        doc! { "$sum": { "$map": { "input": { "$range": [0, 2000] }, "in": inner } } }
    });
    for (name, database) in [("listDatabases", "admin"), ("listCollections", "shop")] {
        client.refused(doc! { name: 1, "filter": { "$expr": long.clone() }, "maxTimeMS": 20, "$db": database }, 50);
    }
    client.refused(doc! { "currentOp": 1, "$expr": long, "maxTimeMS": 20, "$db": "admin" }, 50);
}

#[test]
fn cursors_return_batches_and_stream_to_clients_that_allow_it() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let documents: Vec<Document> = (0..10).map(|n| doc! { "_id": n }).collect();
    client.ok(doc! { "insert": "c", "documents": documents });
    let (first, id) = batch(&client.ok(doc! { "find": "c", "batchSize": 4 }));
    assert_eq!(first.len(), 4);
    client.send(1 << 16, doc! { "getMore": id, "collection": "c", "batchSize": 4 });
    let (flags, reply) = client.receive();
    assert_eq!((flags, batch(&reply).0.len(), batch(&reply).1), (2, 4, id));
    let (flags, reply) = client.receive();
    assert_eq!((flags, batch(&reply).0.len(), batch(&reply).1), (0, 2, 0));
    client.refused(doc! { "getMore": id, "collection": "c" }, 43);
    let (_, id) = batch(&client.ok(doc! { "find": "c", "batchSize": 1 }));
    client.ok(doc! { "killCursors": "c", "cursors": [id] });
    client.refused(doc! { "getMore": id, "collection": "c" }, 43);
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    for n in 0..200 {
        client.send(0, doc! { "insert": "c", "documents": [{ "_id": n }] });
        // A write without a reply.
        client.send(2, doc! { "update": "c", "updates": [{ "q": { "_id": n }, "u": { "$set": { "n": n } } }] });
    }
    for _ in 0..200 {
        assert_eq!(client.receive().1.get_i32("n").unwrap(), 1);
    }
    assert_eq!(client.ok(doc! { "count": "c", "query": { "n": { "$gte": 0 } } }).get_i32("n").unwrap(), 200);
}

#[test]
fn errors_have_mongodbs_shape() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let unknown = client.refused(doc! { "noSuchCommand": 1 }, 59);
    assert_eq!((unknown.get_f64("ok").unwrap(), unknown.get_str("codeName").unwrap()), (0.0, "CommandNotFound"));
    assert!(unknown.get_str("errmsg").unwrap().starts_with("no such command: 'noSuchCommand'"));
    client.refused(doc! { "mapReduce": "c" }, 238);
    client.refused(doc! { "createRole": "r" }, 238);
    client.refused(doc! { "find": "c", "filter": { "$no": 1 } }, 2);
    client.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "a": 1 }] });
    let modify = doc! { "findAndModify": "c", "query": { "_id": 2 }, "update": { "_id": 1 }, "upsert": true };
    client.refused(modify, 66);
    client.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1", "unique": true }] });
    let more = client.ok(doc! { "insert": "c", "documents": [{ "_id": 9 }], "writeConcern": { "w": 2 } });
    assert_eq!(more.get_document("writeConcernError").unwrap().get_i32("code").unwrap(), 100);
    // A command that fails has that error, too; and names are those of the client.
    client.ok(doc! { "create": "there" });
    let rename = doc! { "renameCollection": "shop.c", "to": "shop.there", "writeConcern": { "w": 2 }, "$db": "admin" };
    let failed = client.refused(rename, 48);
    assert_eq!(failed.get_document("writeConcernError").unwrap().get_i32("code").unwrap(), 100);
    assert!(!failed.get_str("errmsg").unwrap().contains('$'), "{failed}");
    assert_eq!(client.ok(doc! { "count": "c", "query": { "_id": 9 } }).get_i32("n").unwrap(), 1);
    let duplicate = client
        .refused(doc! { "findAndModify": "c", "query": { "_id": 2 }, "update": { "a": 1 }, "upsert": true }, 11000);
    assert!(duplicate.get_str("errmsg").unwrap().contains("collection: shop.c index: a_1"), "{duplicate}");
    assert_eq!(duplicate.get_document("keyPattern").unwrap(), &doc! { "a": 1 });
    assert_eq!(duplicate.get_document("keyValue").unwrap(), &doc! { "a": 1 });
}

#[test]
fn every_offered_command_about_the_server_answers() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "create": "c" });
    let commands = client.ok(doc! { "listCommands": 1 }).get_document("commands").unwrap().clone();
    for name in ["find", "hello", "commitTransaction"] {
        assert!(commands.contains_key(name), "{name}");
    }
    for command in [
        doc! { "ping": 1 },
        doc! { "buildInfo": 1 },
        doc! { "hostInfo": 1 },
        doc! { "serverStatus": 1 },
        doc! { "connectionStatus": 1 },
        doc! { "whatsmyuri": 1 },
        doc! { "getCmdLineOpts": 1, "$db": "admin" },
        doc! { "getLog": "*", "$db": "admin" },
        doc! { "getLog": "startupWarnings", "$db": "admin" },
        doc! { "getParameter": "*", "$db": "admin" },
        doc! { "getParameter": 1, "featureCompatibilityVersion": 1, "$db": "admin" },
        doc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" },
        doc! { "validate": "c" },
        doc! { "compact": "c" },
        doc! { "fsync": 1, "$db": "admin" },
        doc! { "profile": -1 },
        doc! { "usersInfo": 1 },
        doc! { "replSetGetStatus": 1, "$db": "admin" },
        doc! { "replSetGetConfig": 1, "$db": "admin" },
        doc! { "replSetInitiate": { "_id": "slate", "members": [{ "_id": 0, "host": "x" }] }, "$db": "admin" },
        doc! { "currentOp": 1, "$db": "admin" },
        doc! { "aggregate": 1, "pipeline": [{ "$currentOp": {} }, { "$match": { "ns": "admin.$cmd" } }], "cursor": {}, "$db": "admin" },
    ] {
        client.ok(command);
    }
    for command in ["currentOp", "fsync", "listDatabases", "renameCollection"] {
        client.refused(doc! { command: 1 }, 13);
    }
    client.refused(doc! { "getParameter": 1, "noSuchParameter": 1, "$db": "admin" }, 72);
    client.refused(doc! { "aggregate": 1, "pipeline": [{ "$currentOp": {} }], "cursor": {} }, 73);
    client.refused(doc! { "validate": "none" }, 26);
    client.refused(doc! { "fsync": 1, "lock": true, "$db": "admin" }, 238);
    client.refused(doc! { "replSetInitiate": { "_id": "other" }, "$db": "admin" }, 93);
}

#[test]
fn local_sessions_are_listed_and_checks_are_not_combined() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "a", "documents": [{ "_id": 1, "n": 2 }], "lsid": session(7) });
    let list = doc! { "aggregate": 1, "pipeline": [{ "$listLocalSessions": {} }, { "$limit": 1 }], "cursor": {} };
    let listed = batch(&client.ok(list)).0;
    assert_eq!(listed[0].get_document("_id").unwrap(), &session(7));
    let misplaced = doc! { "aggregate": "a", "pipeline": [{ "$listLocalSessions": {} }], "cursor": {} };
    client.refused(misplaced, 73);
    client.refused(doc! { "validate": "a", "full": true, "background": true }, 72);
    client.ok(doc! { "validate": "a", "full": true });
    // A duplicate that a pipeline finds has its key in the error.
    let merge = doc! { "$merge": { "into": "a", "whenMatched": "fail" } };
    let error = client.refused(doc! { "aggregate": "a", "pipeline": [merge], "cursor": {} }, 11000);
    assert_eq!(error.get_document("keyPattern").unwrap(), &doc! { "_id": 1 });
    assert_eq!(error.get_document("keyValue").unwrap(), &doc! { "_id": 1 });
    let explained = client.ok(doc! { "explain": { "find": "a" } });
    assert!(explained.get_document("serverInfo").unwrap().get_i32("port").unwrap() > 0, "{explained}");
    let databases = client.ok(doc! { "listDatabases": 1, "filter": { "name": "shop" }, "$db": "admin" });
    let shop = databases.get_array("databases").unwrap()[0].as_document().unwrap();
    assert!(shop.get_i64("sizeOnDisk").unwrap() > 0, "{shop}");
}

#[test]
fn a_running_command_is_shown_and_can_be_killed() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let documents: Vec<Document> = (0..1500).map(|n| doc! { "_id": n }).collect();
    client.ok(doc! { "insert": "c", "documents": documents });
    // Compares each document with each: far longer than the test.
    let lookup = doc! { "from": "c", "let": { "a": "$_id" }, "pipeline": [{ "$match": { "$expr": { "$lt": ["$_id", "$$a"] } } }], "as": "x" };
    let slow = doc! { "aggregate": "c", "pipeline": [{ "$lookup": lookup.clone() }, { "$unwind": "$x" }, { "$lookup": lookup }, { "$count": "n" }], "cursor": {} };
    client.send(0, slow.clone());
    let mut other = Client::connect(&server);
    let id = find_operation(&mut other).expect("the command runs");
    other.ok(doc! { "killOp": 1, "op": id, "$db": "admin" });
    assert_eq!(client.receive().1.get_i32("code").unwrap(), 11601);
    // A client that vanishes takes its command with it.
    client.send(0, slow);
    find_operation(&mut other).expect("the command runs");
    drop(client);
    let began = Instant::now();
    while find_once(&mut other).is_some() {
        assert!(began.elapsed() < Duration::from_secs(10), "the command goes on");
        thread::sleep(Duration::from_millis(20));
    }
}

fn find_once(client: &mut Client) -> Option<i32> {
    let running = client.ok(doc! { "currentOp": 1, "$or": [{ "ns": "shop.c" }, { "op": "none" }], "$db": "admin" });
    let others = client.ok(doc! { "currentOp": 1, "ns": "none", "$db": "admin" });
    assert!(others.get_array("inprog").unwrap().is_empty(), "{others}");
    let running = running.get_array("inprog").unwrap().iter().filter_map(|operation| operation.as_document());
    let mut slow = running.filter(|operation| operation.get_str("ns").unwrap() == "shop.c");
    slow.next().map(|operation| operation.get_i32("opid").unwrap())
}

fn find_operation(client: &mut Client) -> Option<i32> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        if let Some(id) = find_once(client) {
            return Some(id);
        }
    }
    None
}

#[test]
fn damaged_messages_close_only_their_connection() {
    let server = TestServer::start().unwrap();
    let mut steady = Client::connect(&server);
    steady.ok(doc! { "ping": 1 });
    for bytes in [
        &[0xff_u8; 64][..],
        &[15, 0, 0, 0],
        &[20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0, 0, 0, 0, 0],
        &[16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 9, 0, 0],
    ] {
        let mut client = Client::connect(&server);
        client.stream.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        // The end of the connection, or its reset.
        let _ = client.stream.read_to_end(&mut rest);
        assert!(rest.is_empty());
        steady.ok(doc! { "ping": 1 });
    }
    // Half a message, and a client that does not read its replies.
    let mut half = Client::connect(&server);
    half.stream.write_all(&[0, 0, 0, 2, 1]).unwrap();
    steady.ok(doc! { "ping": 1 });
}

#[test]
fn a_million_bytes_of_requests_ahead_wait_without_being_read() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let topology = client.ok(doc! { "hello": 1 }).get_document("topologyVersion").unwrap().clone();
    client.send(0, doc! { "hello": 1, "topologyVersion": topology, "maxAwaitTimeMS": 300_i64 });
    for _ in 0..100 {
        client.send(0, doc! { "ping": 1, "comment": "x".repeat(5_000) });
    }
    for _ in 0..101 {
        assert_eq!(client.receive().1.get_f64("ok").unwrap(), 1.0);
    }
}

#[test]
fn a_change_stream_awaits_events() {
    let server = TestServer::start().unwrap();
    let (mut client, mut writer) = (Client::connect(&server), Client::connect(&server));
    let stream =
        |options: Document| doc! { "aggregate": "c", "pipeline": [{ "$changeStream": options }], "cursor": {} };
    let opened = client.ok(stream(doc! {}));
    let token = opened.get_document("cursor").unwrap().get_document("postBatchResumeToken").unwrap().clone();
    let (first, id) = batch(&opened);
    assert!(first.is_empty() && id != 0);
    let more = move |wait: i32| doc! { "getMore": id, "collection": "c", "maxTimeMS": wait };
    let began = Instant::now();
    assert!(batch(&client.ok(more(50))).0.is_empty() && began.elapsed() >= Duration::from_millis(50));
    let waiting = thread::spawn(move || {
        let reply = client.ok(more(20_000));
        (client, reply)
    });
    thread::sleep(Duration::from_millis(20));
    let inserted = writer.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] });
    let (mut client, reply) = waiting.join().unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "the insert has ended the wait");
    let (events, _) = batch(&reply);
    assert_eq!(events[0].get_str("operationType").unwrap(), "insert");
    assert!(events[0].get_timestamp("clusterTime").unwrap() <= inserted.get_timestamp("operationTime").unwrap());
    let (again, _) = batch(&client.ok(stream(doc! { "resumeAfter": &token })));
    assert_eq!(again, events);
    let (at, _) =
        batch(&client.ok(stream(doc! { "startAtOperationTime": events[0].get_timestamp("clusterTime").unwrap() })));
    assert_eq!(at, events);
    for (options, code) in [
        (doc! { "fullDocument": "no" }, 2),
        (doc! { "resumeAfter": {} }, 40647),
        (doc! { "resumeAfter": &token, "startAfter": &token }, 50865),
        (doc! { "resumeAfter": &token, "startAtOperationTime": bson::Timestamp { time: 1, increment: 1 } }, 40674),
        (doc! { "allChangesForCluster": true }, 72),
        (doc! { "nothing": 1 }, 40415),
    ] {
        client.refused(stream(options), code);
    }
    let mut local = stream(doc! {});
    local.insert("readConcern", doc! { "level": "local" });
    client.refused(local, 72);
    let all = doc! { "aggregate": 1, "pipeline": [{ "$changeStream": { "allChangesForCluster": true } }], "cursor": {}, "$db": "admin" };
    let (_, cluster) = batch(&client.ok(all));
    writer.ok(doc! { "drop": "c" });
    let (events, _) = batch(&client.ok(doc! { "getMore": cluster, "collection": "$cmd.aggregate", "$db": "admin" }));
    assert_eq!(events.last().unwrap().get_str("operationType").unwrap(), "drop");
    let (events, next) = batch(&client.ok(more(1_000)));
    assert_eq!((events.last().unwrap().get_str("operationType").unwrap(), next), ("invalidate", 0));
    client.refused(more(1), 43);
}

#[test]
fn a_killed_cursor_ends_the_wait_for_events() {
    let server = TestServer::start().unwrap();
    let (mut client, mut other) = (Client::connect(&server), Client::connect(&server));
    let opened = client.ok(doc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {} });
    let (_, id) = batch(&opened);
    // Without the kill, the reply after twenty seconds would be an empty batch.
    let waiting = thread::spawn(move || {
        client.refused(doc! { "getMore": id, "collection": "c", "maxTimeMS": 20_000 }, 43);
    });
    thread::sleep(Duration::from_millis(20));
    other.ok(doc! { "killCursors": "c", "cursors": [id] });
    waiting.join().unwrap();
}

#[test]
fn a_collection_is_dropped_only_if_its_uuid_is_the_one_that_is_given() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "create": "a" });
    client.ok(doc! { "create": "b" });
    let mut uuid = |name: &str| {
        let (listed, _) = batch(&client.ok(doc! { "listCollections": 1, "filter": { "name": name } }));
        listed[0].get_document("info").unwrap().get("uuid").unwrap().clone()
    };
    let (a, b) = (uuid("a"), uuid("b"));
    client.refused(doc! { "drop": "a", "collectionUUID": &b }, 361);
    client.refused(doc! { "drop": "missing", "collectionUUID": &b }, 361);
    client.refused(doc! { "drop": "a", "collectionUUID": "text" }, 14);
    // A rename keeps the identity.
    client.ok(doc! { "renameCollection": "shop.a", "to": "shop.c", "$db": "admin" });
    client.ok(doc! { "drop": "c", "collectionUUID": &a });
    client.ok(doc! { "drop": "b", "collectionUUID": b });
    assert!(batch(&client.ok(doc! { "listCollections": 1 })).0.is_empty());
}

#[test]
fn databases_do_not_differ_in_case_alone() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "c", "documents": [{}], "$db": "shop" });
    client.ok(doc! { "insert": "c", "documents": [{}], "$db": "test" });
    for command in [
        doc! { "insert": "d", "documents": [{}], "$db": "Shop" },
        doc! { "create": "d", "$db": "SHOP" },
        doc! { "create": "v", "viewOn": "c", "pipeline": [], "$db": "Shop" },
        doc! { "createIndexes": "d", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }], "$db": "Shop" },
        doc! { "renameCollection": "shop.c", "to": "Shop.c", "$db": "admin" },
        doc! { "insert": "d", "documents": [{}], "$db": "Test" },
    ] {
        let refused = client.refused(command, 13297);
        assert_eq!(refused.get_str("codeName").unwrap(), "DatabaseDifferCase");
    }
    // Reading does not create one. Once the other one is gone, the name is free.
    assert_eq!(client.ok(doc! { "count": "c", "$db": "Shop" }).get_i32("n").unwrap(), 0);
    client.ok(doc! { "insert": "e", "documents": [{}], "$db": "shop" });
    client.ok(doc! { "dropDatabase": 1, "$db": "shop" });
    client.ok(doc! { "insert": "d", "documents": [{}], "$db": "Shop" });
    client.ok(doc! { "insert": "x", "documents": [{}], "$db": "test" });
}

#[test]
fn of_two_databases_that_differ_in_case_one_is_created() {
    let server = TestServer::start().unwrap();
    let (mut client, mut other) = (Client::connect(&server), Client::connect(&server));
    // Neither transaction sees what the other one creates.
    let create = |database: &str, lsid: u8| {
        let insert = doc! { "insert": "c", "documents": [{}], "$db": database };
        within(insert, &session(lsid), 1, true)
    };
    let commit = |lsid: u8| within(doc! { "commitTransaction": 1, "$db": "admin" }, &session(lsid), 1, false);
    client.ok(create("shop", 1));
    other.ok(create("Shop", 2));
    client.ok(commit(1));
    other.refused(commit(2), 112);
    other.refused(doc! { "insert": "c", "documents": [{}], "$db": "Shop" }, 13297);
    // Each in a transaction of its own, at the same time.
    let start = Barrier::new(2);
    for round in 0..10 {
        let names = [format!("race{round}"), format!("Race{round}")];
        let insert = |client: &mut Client, name: &str| {
            start.wait();
            client.run(doc! { "insert": "c", "documents": [{}], "$db": name }).get_i32("code").unwrap_or_default()
        };
        let codes = thread::scope(|scope| {
            let [one, two] = &names;
            let other = scope.spawn(|| insert(&mut other, two));
            let code = insert(&mut client, one);
            [code, other.join().unwrap()]
        });
        assert!(matches!(codes, [0, 13297] | [13297, 0]), "{codes:?}");
    }
}

#[test]
fn explain_reads_the_database_that_it_is_sent_to() {
    let database = Database::open("memory:").unwrap().database("shop");
    let server = TestServer::of(database).unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "c", "documents": [{}, {}], "$db": "shop" });
    let explain = |database: &str, inner: Option<&str>| {
        let mut find = doc! { "find": "c" };
        inner.iter().for_each(|inner| drop(find.insert("$db", *inner)));
        doc! { "explain": find, "verbosity": "executionStats", "$db": database }
    };
    for (outer, inner) in [("other", "shop"), ("shop", "other")] {
        client.refused(explain(outer, Some(inner)), 73);
    }
    for (outer, inner, expected) in [("other", None, 0), ("shop", None, 2), ("shop", Some("shop"), 2)] {
        let reply = client.ok(explain(outer, inner));
        let returned = reply.get_document("executionStats").unwrap().get("nReturned").unwrap();
        let returned = returned.as_i64().or_else(|| returned.as_i32().map(i64::from));
        assert_eq!(returned, Some(expected), "{outer}, {inner:?}: {reply}");
    }
}

#[test]
fn the_sessions_of_a_set_of_one_member_are_those_of_the_server() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "find": "c", "lsid": session(1) });
    let list = |database: &str, stage: &str| doc! { "aggregate": "system.sessions", "pipeline": [{ stage: {} }], "cursor": {}, "$db": database };
    let (found, _) = batch(&client.ok(list("config", "$listSessions")));
    assert_eq!(found.len(), 1);
    assert!(found[0].get_document("_id").is_ok() && found[0].get_datetime("lastUse").is_ok(), "{}", found[0]);
    client.refused(list("shop", "$listSessions"), 73);
}

#[test]
fn a_command_names_a_limited_number_of_sessions() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.refused(doc! { "refreshSessions": vec![session(1); 10_001] }, 2);
    client.ok(doc! { "refreshSessions": vec![session(1); 10_000] });
}
