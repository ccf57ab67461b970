use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};
use slate_core::Database;
use slate_server::TestServer;

use crate::client::{Client, labels, session, within};

fn server() -> TestServer {
    TestServer::with(Database::open("memory:").unwrap(), |server| server.test_commands()).unwrap()
}

fn set(client: &mut Client, name: &str, mode: impl Into<Bson>, data: Document) -> Document {
    client.ok(doc! { "configureFailPoint": name, "mode": mode.into(), "data": data, "$db": "admin" })
}

#[test]
fn fail_points_are_offered_only_if_the_server_says_so() {
    let plain = TestServer::start().unwrap();
    let off = doc! { "configureFailPoint": "failCommand", "mode": "off", "$db": "admin" };
    Client::connect(&plain).refused(off.clone(), 59);
    let server = server();
    let mut client = Client::connect(&server);
    assert!(
        client
            .ok(doc! { "getParameter": 1, "enableTestCommands": 1, "$db": "admin" })
            .get_bool("enableTestCommands")
            .unwrap()
    );
    client.ok(off);
    client.refused(doc! { "configureFailPoint": "failCommand", "mode": "off" }, 13);
    client.refused(doc! { "configureFailPoint": "noSuchPoint", "mode": "off", "$db": "admin" }, 266);
    client.refused(doc! { "configureFailPoint": "failCommand", "mode": "on", "$db": "admin" }, 2);
    client.refused(doc! { "configureFailPoint": "failCommand", "mode": { "times": -1 }, "$db": "admin" }, 2);
}

#[test]
fn a_fail_point_counts_the_commands_that_it_is_about() {
    let server = server();
    let mut client = Client::connect(&server);
    let data = || doc! { "failCommands": ["ping"], "errorCode": 11 };
    set(&mut client, "failCommand", doc! { "times": 2 }, data());
    client.ok(doc! { "buildInfo": 1 });
    client.refused(doc! { "ping": 1 }, 11);
    client.refused(doc! { "ping": 1 }, 11);
    client.ok(doc! { "ping": 1 });
    let before = set(&mut client, "failCommand", doc! { "skip": 1 }, data());
    assert_eq!(before.get_i64("count").unwrap(), 2);
    client.ok(doc! { "ping": 1 });
    client.refused(doc! { "ping": 1 }, 11);
    client.refused(doc! { "ping": 1 }, 11);
    set(&mut client, "failCommand", "off", doc! {});
    client.ok(doc! { "ping": 1 });
    let data = doc! { "failCommands": ["find"], "errorCode": 11, "namespace": "shop.a" };
    set(&mut client, "failCommand", "alwaysOn", data);
    client.refused(doc! { "find": "a" }, 11);
    client.ok(doc! { "find": "b" });
    let data = doc! { "failCommands": ["isMaster", "ping"], "errorCode": 11, "appName": "shop" };
    set(&mut client, "failCommand", "alwaysOn", data);
    client.ok(doc! { "ping": 1 });
    let mut shop = Client::connect(&server);
    let client_fields = || doc! { "application": { "name": "shop" } };
    shop.refused(doc! { "ismaster": 1, "client": client_fields() }, 11);
    shop.refused(doc! { "ping": 1 }, 11);
}

#[test]
fn failures_have_the_labels_of_their_commands() {
    let server = server();
    let mut client = Client::connect(&server);
    let lsid = session(1);
    let insert = |id: i32| doc! { "insert": "a", "documents": [{ "_id": id }] };
    let retryable = |id: i32, number: i64| {
        let mut insert = insert(id);
        insert.extend(doc! { "lsid": session(1), "txnNumber": number });
        insert
    };
    let passing = |code: i32| doc! { "failCommands": ["insert", "commitTransaction"], "errorCode": code };
    set(&mut client, "failCommand", "alwaysOn", passing(91));
    assert!(labels(&client.refused(insert(1), 91)).is_empty());
    assert_eq!(labels(&client.refused(retryable(1, 1), 91)), ["RetryableWriteError"]);
    assert_eq!(labels(&client.refused(within(insert(1), &lsid, 2, true), 91)), ["TransientTransactionError"]);
    set(&mut client, "failCommand", "alwaysOn", passing(11));
    assert!(labels(&client.refused(retryable(1, 3), 11)).is_empty());
    let mut with_labels = passing(91);
    with_labels.insert("errorLabels", ["MyLabel"].as_slice());
    set(&mut client, "failCommand", "alwaysOn", with_labels);
    assert_eq!(labels(&client.refused(retryable(1, 4), 91)), ["MyLabel"]);
    // A transaction whose commit has failed so is still open.
    set(
        &mut client,
        "failCommand",
        doc! { "times": 1 },
        doc! { "failCommands": ["commitTransaction"], "errorCode": 91 },
    );
    client.ok(within(insert(1), &lsid, 5, true));
    let commit = || within(doc! { "commitTransaction": 1, "$db": "admin" }, &session(1), 5, false);
    assert_eq!(labels(&client.refused(commit(), 91)), ["RetryableWriteError"]);
    client.ok(commit());
    // The write is done, and its concern is not satisfied.
    let error = doc! { "code": 91, "errmsg": "stopping" };
    let data = doc! { "failCommands": ["insert"], "writeConcernError": error.clone() };
    set(&mut client, "failCommand", doc! { "times": 1 }, data);
    let reply = client.ok(retryable(2, 6));
    assert_eq!(
        (reply.get_document("writeConcernError").unwrap(), labels(&reply)),
        (&error, vec!["RetryableWriteError"])
    );
    assert_eq!(client.ok(doc! { "count": "a" }).get_i32("n").unwrap(), 2);
}

#[test]
fn a_fail_point_blocks_and_closes_connections() {
    let server = server();
    let mut client = Client::connect(&server);
    let block = |millis: i32| doc! { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": millis };
    set(&mut client, "failCommand", doc! { "times": 1 }, block(50));
    let began = Instant::now();
    client.ok(doc! { "ping": 1 });
    assert!(began.elapsed() >= Duration::from_millis(50));
    set(&mut client, "failCommand", doc! { "times": 1 }, block(60_000));
    client.refused(doc! { "ping": 1, "maxTimeMS": 20 }, 50);
    set(&mut client, "failCommand", doc! { "times": 1 }, doc! { "failCommands": ["ping"], "closeConnection": true });
    client.send(0, doc! { "ping": 1 });
    assert!(client.try_receive().is_err());
    Client::connect(&server).ok(doc! { "ping": 1 });
}

#[test]
fn a_retryable_write_that_has_lost_its_reply_is_not_repeated() {
    let server = server();
    let mut client = Client::connect(&server);
    let insert = |id: i32, number: i64| {
        doc! { "insert": "a", "documents": [{ "_id": id }], "lsid": session(1), "txnNumber": number }
    };
    set(&mut client, "onPrimaryTransactionalWrite", "alwaysOn", doc! {});
    client.send(0, insert(1, 1));
    assert!(client.try_receive().is_err());
    let mut client = Client::connect(&server);
    assert_eq!(client.ok(insert(1, 1)).get_i32("n").unwrap(), 1);
    // Neither is one whose client is gone before it was executed: the repetition executes it.
    set(&mut client, "onPrimaryTransactionalWrite", "off", doc! {});
    let update = doc! {
        "update": "a", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }], "lsid": session(2), "txnNumber": 1_i64,
    };
    let block = doc! { "failCommands": ["update"], "blockConnection": true, "blockTimeMS": 10_000 };
    set(&mut client, "failCommand", doc! { "times": 1 }, block);
    client.send(0, update.clone());
    std::thread::sleep(Duration::from_millis(50));
    drop(client);
    let mut client = Client::connect(&server);
    let again = client.ok(update);
    assert_eq!((again.get_i32("nModified").unwrap(), again.get("writeErrors")), (1, None), "{again}");
    set(&mut client, "maxTimeAlwaysTimeOut", "alwaysOn", doc! {});
    client.refused(doc! { "ping": 1, "maxTimeMS": 60_000 }, 50);
    client.ok(doc! { "ping": 1 });
    set(&mut client, "maxTimeAlwaysTimeOut", "off", doc! {});
    let fails = doc! { "failBeforeCommitExceptionCode": 1, "closeConnection": false };
    set(&mut client, "onPrimaryTransactionalWrite", doc! { "times": 1 }, fails);
    client.refused(insert(2, 2), 1);
    assert_eq!(client.ok(doc! { "count": "a" }).get_i32("n").unwrap(), 1);
    client.ok(insert(2, 2));
    assert_eq!(client.ok(doc! { "count": "a" }).get_i32("n").unwrap(), 2);
}
