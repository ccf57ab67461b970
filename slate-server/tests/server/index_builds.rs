//! `createIndexes` beside writers.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use bson::{Document, doc};
use slate_server::TestServer;

use crate::client::{Client, batch};

fn with_documents(client: &mut Client, number: i32) {
    let documents: Vec<Document> = (0..number).map(|n| doc! { "_id": n, "a": n, "u": n / 2 }).collect();
    client.ok(doc! { "insert": "c", "documents": documents });
}

fn names(client: &mut Client) -> Vec<String> {
    let (indexes, _) = batch(&client.ok(doc! { "listIndexes": "c" }));
    indexes.iter().map(|index| index.get_str("name").unwrap().to_owned()).collect()
}

#[test]
fn an_index_is_built_while_others_write() {
    let server = TestServer::start().unwrap();
    let (mut client, mut writer) = (Client::connect(&server), Client::connect(&server));
    with_documents(&mut client, 20_000);
    let is_built = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let written = scope.spawn(|| {
            let mut written = 0_i32;
            while !is_built.load(Ordering::Relaxed) {
                let update = doc! { "q": { "_id": written % 20_000 }, "u": { "$set": { "a": -written } } };
                writer.ok(doc! { "update": "c", "updates": [update] });
                written += 1;
            }
            written
        });
        let created = client.run(doc! {
            "createIndexes": "c",
            "indexes": [{ "key": { "a": 1 }, "name": "a_1" }, { "key": { "u": -1 }, "name": "u_-1" }],
        });
        is_built.store(true, Ordering::Relaxed);
        assert_eq!(created.get_f64("ok").unwrap(), 1.0, "{created}");
        assert_eq!(
            (created.get_i32("numIndexesBefore").ok(), created.get_i32("numIndexesAfter").ok()),
            (Some(1), Some(3))
        );
        written.join().unwrap()
    });
    assert!(written > 0);
    assert_eq!(names(&mut client), ["_id_", "a_1", "u_-1"]);
    let sound = client.ok(doc! { "validate": "c" });
    assert!(sound.get_bool("valid").unwrap(), "{sound}");
}

#[test]
fn all_indexes_are_created_or_none() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    with_documents(&mut client, 5_000);
    let wanted = doc! {
        "createIndexes": "c",
        "indexes": [
            { "key": { "a": 1 }, "name": "a_1" },
            { "key": { "u": 1 }, "name": "u_1", "unique": true },
            { "key": { "b": 1 }, "name": "b_1" },
        ],
    };
    client.refused(wanted, 11_000);
    assert_eq!(names(&mut client), ["_id_"]);
    let same_name = doc! {
        "createIndexes": "c",
        "indexes": [{ "key": { "a": 1 }, "name": "x" }, { "key": { "b": 1 }, "name": "x" }],
    };
    client.refused(same_name, 86);
    assert_eq!(names(&mut client), ["_id_"]);
}

#[test]
fn an_index_that_another_command_also_builds_stays_or_all_of_its_builds_are_dropped() {
    let server = TestServer::start().unwrap();
    let (mut client, mut other) = (Client::connect(&server), Client::connect(&server));
    with_documents(&mut client, 5_000);
    let a = doc! { "key": { "a": 1 }, "name": "a_1" };
    let both =
        doc! { "createIndexes": "c", "indexes": [a.clone(), { "key": { "u": 1 }, "name": "u_1", "unique": true }] };
    let sound = doc! { "createIndexes": "c", "indexes": [a, { "key": { "b": 1 }, "name": "b_1" }] };
    for _ in 0..10 {
        let reply = thread::scope(|scope| {
            let failing = scope.spawn(|| client.refused(both.clone(), 11_000));
            let reply = other.run(sound.clone());
            failing.join().unwrap();
            reply
        });
        // The other command may join the build and fail because it was dropped, but not the contrary.
        if reply.get_f64("ok").unwrap() == 1.0 {
            assert_eq!(names(&mut client), ["_id_", "a_1", "b_1"]);
            client.ok(doc! { "dropIndexes": "c", "index": "*" });
        } else {
            assert_eq!(reply.get_i32("code").unwrap(), 276, "{reply}");
            assert_eq!(names(&mut client), ["_id_"]);
        }
        assert_eq!(server.database().resume_index_builds().unwrap(), 0, "no index remains as being built");
    }
}

#[test]
fn an_index_that_is_named_twice_counts_once() {
    let server = TestServer::start().unwrap();
    let mut client = Client::connect(&server);
    with_documents(&mut client, 5_000);
    let a = doc! { "key": { "a": 1 }, "name": "a_1" };
    let created = client.ok(doc! { "createIndexes": "c", "indexes": [a.clone(), a] });
    assert_eq!(created.get_i32("numIndexesAfter").unwrap(), 2);
    assert_eq!(names(&mut client), ["_id_", "a_1"]);
}
