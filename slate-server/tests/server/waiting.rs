//! Commands that wait for a thread.

use std::{
    io::{Read, Write},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use bson::{Document, RawDocumentBuf, doc};
use slate_core::Database;
use slate_server::{Listener, Server, Shutdown};
use tokio::{net::TcpListener, runtime};

use crate::client::{Client, session, within};

/// A server whose only thread for blocking work is taken until [`release`](Self::release).
struct BusyServer {
    database: Database,
    address: String,
    shutdown: Shutdown,
    release: Option<mpsc::Sender<()>>,
    serving: Option<thread::JoinHandle<()>>,
}

impl BusyServer {
    fn start() -> Self {
        let database = Database::open("memory:").unwrap();
        let documents: Vec<Document> = (0..1000).map(|n| doc! { "_id": n, "n": 0 }).collect();
        database.database("shop").collection("c").insert_many(&documents).run().unwrap();
        let runtime = runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = Server::new(database.clone()).test_commands();
        let shutdown = server.shutdown();
        let (release, released) = mpsc::channel::<()>();
        let (taken, is_taken) = mpsc::channel();
        runtime.spawn_blocking(move || {
            taken.send(()).unwrap();
            // Ends with the sender at the latest.
            let _ = released.recv();
        });
        is_taken.recv().unwrap();
        let serving = thread::spawn(move || runtime.block_on(server.serve(Listener::from(listener))).unwrap());
        Self { database, address, shutdown, release: Some(release), serving: Some(serving) }
    }

    fn client(&self) -> Client {
        Client::at(&self.address)
    }

    /// Gives the thread back.
    fn release(&mut self) {
        self.release = None;
    }
}

impl Drop for BusyServer {
    fn drop(&mut self) {
        self.release();
        self.shutdown.now();
        self.serving.take().unwrap().join().unwrap();
    }
}

/// Reads more rows than the awaiting task would.
fn long_find() -> Document {
    doc! { "find": "c", "filter": { "n": 7 } }
}

fn long_update() -> Document {
    doc! { "update": "c", "updates": [{ "q": {}, "u": { "$inc": { "n": 1 } }, "multi": true }] }
}

/// Returns the ids of the commands on the collection that run.
fn running(client: &mut Client) -> Vec<i32> {
    let reply = client.ok(doc! { "currentOp": 1, "ns": "shop.c", "$db": "admin" });
    let running = reply.get_array("inprog").unwrap();
    running.iter().map(|operation| operation.as_document().unwrap().get_i32("opid").unwrap()).collect()
}

/// Waits until this many commands run.
fn wait_for(client: &mut Client, number: usize) -> Vec<i32> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let found = running(client);
        if found.len() == number {
            return found;
        }
        assert!(Instant::now() < end, "{found:?} run, and not {number}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_time_in_the_queue_is_part_of_the_time_of_a_command() {
    let mut server = BusyServer::start();
    let mut client = server.client();
    for mut command in [long_find(), long_update()] {
        command.insert("maxTimeMS", 30);
        client.refused(command.clone(), 50);
        let number = i64::from(command.contains_key("update")) + 1;
        client.refused(within(command.clone(), &session(1), number, true), 50);
        command.extend(doc! { "lsid": session(2), "txnNumber": 1_i64 });
        if command.contains_key("update") {
            client.refused(command, 50);
        } else {
            command.remove("txnNumber");
            command.insert("readConcern", doc! { "level": "snapshot" });
            client.refused(command, 50);
        }
    }
    server.release();
    let counted = client.ok(doc! { "count": "c", "query": { "n": 0 } });
    assert_eq!(counted.get_i32("n").unwrap(), 1000, "no update was made");
}

#[test]
fn a_later_batch_has_the_time_of_its_cursor() {
    let server = BusyServer::start();
    let mut client = server.client();
    let find = doc! { "find": "c", "batchSize": 2, "maxTimeMS": 30 };
    let cursor = client.ok(find).get_document("cursor").unwrap().get_i64("id").unwrap();
    client.refused(doc! { "getMore": cursor, "collection": "c" }, 50);
}

#[test]
fn a_command_that_waits_is_killed() {
    let mut server = BusyServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    let mut retryable = long_update();
    retryable.extend(doc! { "lsid": session(3), "txnNumber": 1_i64 });
    let mut snapshot = long_find();
    snapshot.insert("readConcern", doc! { "level": "snapshot" });
    for command in [long_find(), long_update(), retryable, snapshot, within(long_find(), &session(1), 1, true)] {
        client.send(0, command);
        let id = wait_for(&mut other, 1)[0];
        other.ok(doc! { "killOp": 1, "op": id, "$db": "admin" });
        let reply = client.receive().1;
        assert_eq!(reply.get_i32("code").unwrap(), 11601, "{reply}");
    }
    server.release();
    let counted = client.ok(doc! { "count": "c", "query": { "n": 0 } });
    assert_eq!(counted.get_i32("n").unwrap(), 1000, "no update was made");
}

#[test]
fn a_command_that_waits_for_its_session_is_killed_and_has_a_time() {
    let server = BusyServer::start();
    let (mut client, mut other, mut third) = (server.client(), server.client(), server.client());
    client.send(0, within(long_find(), &session(1), 1, true));
    let first = wait_for(&mut other, 1)[0];
    let mut command = within(long_find(), &session(1), 1, false);
    command.insert("maxTimeMS", 30);
    third.refused(command, 50);
    third.send(0, within(long_find(), &session(1), 1, false));
    let second = wait_for(&mut other, 2).into_iter().find(|id| *id != first).unwrap();
    other.ok(doc! { "killOp": 1, "op": second, "$db": "admin" });
    assert_eq!(third.receive().1.get_i32("code").unwrap(), 11601);
    assert_eq!(running(&mut other), [first]);
}

#[test]
fn a_commit_that_waits_for_its_session_is_killed_and_has_a_time() {
    let server = BusyServer::start();
    let (mut client, mut other, mut third) = (server.client(), server.client(), server.client());
    client.send(0, within(long_find(), &session(1), 1, true));
    wait_for(&mut other, 1);
    let commit = within(doc! { "commitTransaction": 1, "$db": "admin" }, &session(1), 1, false);
    let mut short = commit.clone();
    short.insert("maxTimeMS", 30);
    third.refused(short, 50);
    third.send(0, commit);
    let end = Instant::now() + Duration::from_secs(10);
    let found = loop {
        let reply = other.ok(doc! { "currentOp": 1, "command.commitTransaction": 1, "$db": "admin" });
        if let Some(found) = reply.get_array("inprog").unwrap().first() {
            break found.as_document().unwrap().get_i32("opid").unwrap();
        }
        assert!(Instant::now() < end, "the commit runs");
    };
    other.ok(doc! { "killOp": 1, "op": found, "$db": "admin" });
    assert_eq!(third.receive().1.get_i32("code").unwrap(), 11601);
    assert_eq!(running(&mut other).len(), 1);
}

#[test]
fn the_time_of_a_commit_begins_when_it_arrives() {
    let server = BusyServer::start();
    let [mut holder, mut other, mut waiting, mut committer] = [(); 4].map(|()| server.client());
    holder.send(0, within(long_find(), &session(1), 1, true));
    wait_for(&mut other, 1);
    let block = doc! { "failCommands": ["commitTransaction"], "blockConnection": true, "blockTimeMS": 1_000 };
    other.ok(doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": block, "$db": "admin" });
    let mut find = long_find();
    find.insert("maxTimeMS", 2_000);
    waiting.send(0, find);
    // It waits for the fail point, and then for its session: longer than the find if its time began only then.
    let mut commit = within(doc! { "commitTransaction": 1, "$db": "admin" }, &session(1), 1, false);
    commit.insert("maxTimeMS", 1_500);
    committer.refused(commit, 50);
    waiting.stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    assert!(waiting.stream.read(&mut [0; 1]).is_err(), "the find has ended before");
    waiting.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(waiting.receive().1.get_i32("code").unwrap(), 50);
}

/// Sends a command as a compressed message, by the compressor that leaves the bytes as they are.
fn send_compressed(client: &mut Client, id: i32, command: &Document) {
    let body = RawDocumentBuf::try_from(command).unwrap();
    let plain = [&[0; 5], body.as_bytes()].concat();
    let length = i32::try_from(plain.len()).unwrap();
    let header = [length + 25, id, 0, 2012, 2013, length].map(i32::to_le_bytes).concat();
    client.stream.write_all(&[&*header, &[0], &plain].concat()).unwrap();
}

/// Returns the id of the request that the next reply answers, and the length of the reply.
fn receive_compressed(client: &mut Client) -> (i32, usize) {
    let mut header = [0; 25];
    client.stream.read_exact(&mut header).unwrap();
    let int = |place: usize| i32::from_le_bytes(header[place..place + 4].try_into().unwrap());
    assert_eq!((int(12), int(16), header[24]), (2012, 2013, 0));
    let length = usize::try_from(int(0)).unwrap();
    client.stream.read_exact(&mut vec![0; length - 25]).unwrap();
    (int(8), length)
}

#[test]
fn long_messages_are_compressed_and_decompressed_by_threads_of_the_pool_and_answered_in_order() {
    let mut server = BusyServer::start();
    let text = "x".repeat(300 << 10);
    server.database.database("shop").collection("long").insert_one(&doc! { "_id": 1, "text": &text }).unwrap();
    let (mut reader, mut writer, mut other) = (server.client(), server.client(), server.client());
    let ping = doc! { "ping": 1, "$db": "shop" };
    send_compressed(&mut reader, 7, &doc! { "find": "long", "filter": { "_id": 1 }, "$db": "shop" });
    send_compressed(&mut reader, 8, &ping);
    send_compressed(&mut writer, 7, &doc! { "ping": 1, "comment": &text, "$db": "shop" });
    send_compressed(&mut writer, 8, &ping);
    for client in [&mut reader, &mut writer] {
        client.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(client.stream.read(&mut [0; 1]).is_err(), "it waits for the thread");
        client.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    other.ok(ping);
    server.release();
    let (first, length) = receive_compressed(&mut reader);
    assert!(first == 7 && length > text.len());
    assert_eq!(receive_compressed(&mut reader).0, 8);
    assert_eq!([receive_compressed(&mut writer).0, receive_compressed(&mut writer).0], [7, 8]);
}

#[test]
fn a_command_that_waits_ends_with_its_client() {
    let server = BusyServer::start();
    let mut other = server.client();
    for command in [long_find(), long_update(), within(long_find(), &session(1), 1, true)] {
        let mut client = server.client();
        client.send(0, command);
        wait_for(&mut other, 1);
        drop(client);
        wait_for(&mut other, 0);
    }
}

#[test]
fn a_command_that_waits_ends_when_the_server_stops() {
    let mut server = BusyServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.send(0, long_update());
    wait_for(&mut other, 1);
    server.shutdown.now();
    let reply = client.receive().1;
    assert_eq!(reply.get_i32("code").unwrap(), 11601, "{reply}");
    server.release();
    let count = doc! { "count": "c", "query": { "n": 0 }, "$db": "shop" };
    let counted = server.database.command(count).unwrap().get_i32("n").unwrap();
    assert_eq!(counted, 1000, "no update was made");
}
