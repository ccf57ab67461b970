//! What one client, and all together, may take of the server.

use std::{
    io::{self, Read, Write},
    thread,
    time::{Duration, Instant},
};

use bson::{DateTime, Document, RawArrayBuf, RawDocumentBuf, doc, raw::cstr, rawdoc};
use slate_core::Database;
use slate_server::{Server, TestServer};

use crate::{
    auth::{create, enter},
    client::{Client, batch, nested, session, within},
};

fn start(configure: impl FnOnce(Server) -> Server) -> TestServer {
    TestServer::with(Database::open("memory:").unwrap(), configure).unwrap()
}

/// Returns what a connection still gets, and whether the server has closed it.
fn is_closed(client: &mut Client) -> bool {
    client.stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    match client.stream.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn connections_above_the_limit_are_told_so() {
    let server = start(|server| server.max_connections(2));
    let (mut first, mut second) = (Client::connect(&server), Client::connect(&server));
    first.ok(doc! { "ping": 1 });
    second.ok(doc! { "ping": 1 });
    let mut third = Client::connect(&server);
    let refused = third.refused(doc! { "hello": 1 }, 264);
    assert!(refused.get_str("errmsg").unwrap().contains("2 connections"), "{refused}");
    assert!(is_closed(&mut third));
    drop((second, third));
    let end = Instant::now() + Duration::from_secs(5);
    while Client::connect(&server).run(doc! { "ping": 1 }).get_f64("ok").unwrap() < 1.0 {
        assert!(Instant::now() < end, "a place is free again");
    }
    first.ok(doc! { "ping": 1 });
}

#[test]
fn cursors_and_sessions_have_limits() {
    let server = start(|server| server.max_cursors(2).max_sessions(2));
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "c", "documents": [{}, {}, {}] });
    let find = doc! { "find": "c", "batchSize": 1 };
    let (_, id) = batch(&client.ok(find.clone()));
    client.ok(find.clone());
    let refused = client.refused(find.clone(), 146);
    assert_eq!(refused.get_str("codeName").unwrap(), "ExceededMemoryLimit");
    // One that ends with its first batch needs no place.
    client.ok(doc! { "find": "c" });
    client.ok(doc! { "killCursors": "c", "cursors": [id] });
    client.ok(find);
    for number in [1, 2, 1] {
        client.ok(doc! { "find": "c", "lsid": session(number) });
    }
    client.refused(doc! { "find": "c", "lsid": session(3) }, 261);
    client.refused(doc! { "startSession": 1 }, 261);
    client.ok(doc! { "endSessions": [session(1)] });
    client.ok(doc! { "find": "c", "lsid": session(3) });
}

#[test]
fn sorts_whose_cursors_wait_hold_a_limited_memory() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    let documents: Vec<Document> =
        (0..2_000).map(|n| doc! { "_id": n, "n": n * 7919 % 2_000, "text": "x".repeat(1_000) }).collect();
    client.ok(doc! { "insert": "c", "documents": documents });
    // Each sort fits into the memory of a query several times. All of them do not, nor those of a transaction.
    let sorted = doc! { "find": "c", "sort": { "n": 1 }, "batchSize": 10 };
    let grouped = doc! {
        "aggregate": "c", "cursor": { "batchSize": 10 },
        "pipeline": [{ "$set": { "m": "$n" } }, { "$sort": { "m": 1 } }, { "$unset": "m" }],
    };
    let mut cursors = Vec::new();
    for number in 0..60_u8 {
        let command = if number % 2 == 0 { sorted.clone() } else { grouped.clone() };
        let (first, id) = batch(&client.ok(command));
        cursors.push((first, id, None));
    }
    for number in 0..10 {
        let find = doc! { "find": "c", "sort": { "n": 1 }, "batchSize": 10 };
        let lsid = session(number);
        let (first, id) = batch(&client.ok(within(find, &lsid, 1, true)));
        cursors.push((first, id, Some(lsid)));
    }
    let metrics = server.database().metrics();
    assert!(metrics.spills > 20 && metrics.spilled_bytes > 20 << 20, "{} {}", metrics.spills, metrics.spilled_bytes);
    for (first, id, lsid) in cursors {
        let more = doc! { "getMore": id, "collection": "c" };
        let more = lsid.map_or_else(|| more.clone(), |lsid| within(more.clone(), &lsid, 1, false));
        let (rest, end) = batch(&client.ok(more));
        let read: Vec<i32> = first.iter().chain(&rest).map(|document| document.get_i32("n").unwrap()).collect();
        assert!(end == 0 && read == Vec::from_iter(0..2_000));
    }
}

#[test]
fn deep_ids_are_refused_in_the_body_and_in_a_sequence() {
    const OVERFLOW: i32 = 15;
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    client.ok(doc! { "create": "c" });
    let body = rawdoc! { "insert": "c", "$db": "shop" };
    for levels in [200, 10_000, 300_000] {
        for kinds in [&[(3, "a")][..], &[(3, "a"), (4, "0")]] {
            let document = rawdoc! { "_id": nested(kinds, levels) };
            let documents: Vec<RawDocumentBuf> = vec![document];
            let in_body = rawdoc! { "insert": "c", "documents": documents[0].clone(), "$db": "shop" };
            let mut of_array = rawdoc! { "insert": "c", "$db": "shop" };
            of_array.append(cstr!("documents"), RawArrayBuf::from_iter(documents.clone()));
            let replies = [
                client.run_raw(&of_array),
                client.run_with_sequence(&body, "documents", &documents),
                client.run_with_sequence(&rawdoc! { "find": "c", "$db": "shop" }, "filter", &documents),
                client.run_raw(&in_body),
            ];
            for reply in &replies[..2] {
                let code = reply.get_i32("code").or_else(|_| {
                    let refused = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap();
                    refused.get_i32("code")
                });
                assert_eq!(code.ok(), Some(OVERFLOW), "{levels} levels: {reply}");
            }
            // Not where documents may be: refused, whatever the reason.
            assert!(replies[2..].iter().all(|reply| reply.get_f64("ok").unwrap() < 1.0), "{replies:?}");
        }
    }
    assert_eq!(client.ok(doc! { "count": "c" }).get_i32("n").unwrap(), 0);
}

#[test]
fn open_transactions_and_snapshots_have_limits() {
    let server = start(|server| server.max_transactions(2).max_snapshots(1));
    let mut client = Client::connect(&server);
    client.ok(doc! { "insert": "c", "documents": [{}] });
    let begin = |lsid: u8, number: i64| within(doc! { "find": "c" }, &session(lsid), number, true);
    let end =
        |name: &str, lsid: u8, number: i64| within(doc! { name: 1, "$db": "admin" }, &session(lsid), number, false);
    client.ok(begin(1, 1));
    client.ok(begin(2, 1));
    let refused = client.refused(begin(3, 1), 146);
    assert_eq!(refused.get_str("errmsg").unwrap(), "2 transactions are open, which is the limit");
    // A session that begins another one gives the place of its own back, as does each way to end.
    client.ok(begin(2, 2));
    client.ok(end("commitTransaction", 1, 1));
    client.ok(begin(3, 2));
    client.refused(begin(4, 1), 146);
    client.ok(end("abortTransaction", 2, 2));
    client.ok(begin(4, 2));
    client.ok(doc! { "endSessions": [session(3)] });
    client.ok(begin(5, 1));
    let status = client.ok(doc! { "serverStatus": 1 });
    assert_eq!(status.get_document("transactions").unwrap().get_i64("currentOpen").unwrap(), 2);

    let read = |lsid: u8| doc! { "find": "c", "lsid": session(lsid), "readConcern": { "level": "snapshot" } };
    client.ok(read(6));
    client.ok(read(6));
    let refused = client.refused(read(7), 146);
    assert_eq!(refused.get_str("errmsg").unwrap(), "1 snapshots are open, which is the limit");
    client.ok(doc! { "endSessions": [session(6)] });
    client.ok(read(7));
}

#[test]
fn a_client_that_does_not_log_in_is_closed_when_it_is_silent() {
    let server = start(|server| server.authentication().login_patience(Duration::from_millis(50)));
    let mut client = Client::connect(&server);
    client.ok(doc! { "hello": 1 });
    assert!(is_closed(&mut client));
    let server = start(|server| server.authentication().login_patience(Duration::MAX));
    let mut client = Client::connect(&server);
    client.ok(doc! { "hello": 1 });
    client.ok(doc! { "hello": 1 });
    // Without authentication nobody has to log in.
    let server = start(|server| server.login_patience(Duration::from_millis(50)));
    let mut client = Client::connect(&server);
    client.ok(doc! { "hello": 1 });
    thread::sleep(Duration::from_millis(150));
    client.ok(doc! { "hello": 1 });
}

#[test]
fn strangers_give_way_when_all_connections_are_taken() {
    let server = start(|server| server.authentication().max_connections(3));
    let mut strangers: Vec<Client> = (0..3).map(|_| Client::connect(&server)).collect();
    for stranger in &mut strangers {
        stranger.ok(doc! { "hello": 1 });
    }
    let mut late = Client::connect(&server);
    late.ok(doc! { "hello": 1 });
    assert!(is_closed(&mut strangers[0]));
    strangers[1].ok(doc! { "hello": 1 });
    strangers[2].ok(doc! { "hello": 1 });
}

#[test]
fn a_connection_that_is_refused_gives_way_to_none() {
    let server = start(|server| server.authentication().max_connections(1));
    Client::connect(&server).ok(create("root", "admin", "root"));
    let mut root = enter(&server, "root", "admin");
    for _ in 0..10 {
        let mut refused = [Client::connect(&server), Client::connect(&server)];
        for client in &mut refused {
            client.refused(doc! { "hello": 1 }, 264);
        }
    }
    root.ok(doc! { "ping": 1 });
}

#[test]
fn strangers_give_way_while_they_wait_for_a_change_of_the_topology() {
    let server = start(|server| server.authentication().max_connections(1));
    let mut stranger = Client::connect(&server);
    let topology = stranger.ok(doc! { "hello": 1 }).get_document("topologyVersion").unwrap().clone();
    stranger.send(0, doc! { "hello": 1, "topologyVersion": topology, "maxAwaitTimeMS": 3_600_000 });
    let mut late = Client::connect(&server);
    late.ok(doc! { "hello": 1 });
    assert!(is_closed(&mut stranger));
}

#[test]
fn documents_that_are_due_disappear_by_themselves() {
    let server = start(|server| server.expire_every(Duration::from_millis(10)));
    let mut client = Client::connect(&server);
    let index = doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 60 };
    client.ok(doc! { "createIndexes": "c", "indexes": [index] });
    let (past, now) = (DateTime::from_millis(0), DateTime::now());
    client.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "at": past }, { "_id": 2, "at": now }, { "_id": 3 }] });
    let counts = |client: &mut Client| {
        let status = client.ok(doc! { "serverStatus": 1 });
        let ttl = status.get_document("metrics").unwrap().get_document("ttl").unwrap();
        (ttl.get_i64("passes").unwrap(), ttl.get_i64("deletedDocuments").unwrap())
    };
    let end = Instant::now() + Duration::from_secs(10);
    while counts(&mut client).1 == 0 {
        assert!(Instant::now() < end, "the first document is still there");
    }
    let (left, _) = batch(&client.ok(doc! { "find": "c", "projection": { "_id": 1 }, "sort": { "_id": 1 } }));
    assert_eq!(left, [doc! { "_id": 2 }, doc! { "_id": 3 }]);
    let (passes, deleted) = counts(&mut client);
    assert_eq!(deleted, 1);
    assert!(passes > 0);
}

#[test]
fn all_messages_together_have_a_limit() {
    let server = start(|server| server.max_message_memory(1 << 20));
    let mut client = Client::connect(&server);
    let insert = |length: usize| doc! { "insert": "c", "documents": [{ "text": "x".repeat(length) }] };
    client.ok(insert(900 << 10));
    client.ok(insert(900 << 10));
    let refused = client.refused(insert(2 << 20), 146);
    assert!(refused.get_str("errmsg").unwrap().contains("1048576 bytes"), "{refused}");
    assert!(is_closed(&mut client));
    Client::connect(&server).ok(insert(900 << 10));
}

#[test]
fn a_client_that_has_not_logged_in_sends_small_messages_only() {
    let server = start(Server::authentication);
    let mut client = Client::connect(&server);
    client.refused(doc! { "find": "c", "comment": "x".repeat(16_000) }, 13);
    let refused = client.refused(doc! { "ping": 1, "comment": "x".repeat(1_000_000) }, 13);
    assert!(refused.get_str("errmsg").unwrap().contains("at most 16384"), "{refused}");
    assert!(is_closed(&mut client));
    // The header alone is enough, and so is the announcement of a compressed message.
    let mut client = Client::connect(&server);
    client.stream.write_all(&[48_000_000_i32, 7, 0, 2013].map(i32::to_le_bytes).concat()).unwrap();
    assert_eq!(client.receive().1.get_i32("code").unwrap(), 13);
    let mut client = Client::connect(&server);
    let compressed = [34_i32, 7, 0, 2012, 2013, 40_000_000].map(i32::to_le_bytes).concat();
    client.stream.write_all(&[&*compressed, &[2], &[0; 9]].concat()).unwrap();
    assert!(is_closed(&mut client));
}

#[test]
fn a_client_that_has_not_logged_in_takes_no_place_among_the_sessions() {
    let server = start(|server| server.authentication().max_sessions(1));
    let mut client = Client::connect(&server);
    for number in 1..5 {
        client.ok(doc! { "ping": 1, "lsid": session(number) });
    }
    client.refused(doc! { "startSession": 1 }, 13);
    client.refused(doc! { "refreshSessions": [session(1)] }, 13);
}
