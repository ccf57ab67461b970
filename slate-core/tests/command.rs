//! Commands on every store: replies and errors.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

#[path = "command/cursors.rs"]
mod cursors;
#[path = "command/databases.rs"]
mod databases;
#[path = "command/definitions.rs"]
mod definitions;
#[path = "command/find_by_id.rs"]
mod find_by_id;
#[path = "command/reads.rs"]
mod reads;
#[path = "command/writes.rs"]
mod writes;

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{Database, Error};

use self::common::STORES;

/// Runs a test on every store.
fn on_every_store(behaviour: impl Fn(&Database)) {
    for store in STORES {
        behaviour(&store.open().db);
    }
}

fn command(db: &Database, command: &Document) -> Result<Document, Error> {
    let command = RawDocumentBuf::try_from(command).unwrap();
    db.command(&command).map(|reply| Document::try_from(reply.as_ref()).unwrap())
}

#[track_caller]
fn run(db: &Database, wanted: Document) -> Document {
    command(db, &wanted).unwrap_or_else(|error| panic!("{wanted}: {error}"))
}

/// Returns the documents of a cursor's only batch.
#[track_caller]
fn rows(db: &Database, wanted: Document) -> Vec<Document> {
    let reply = run(db, wanted);
    let cursor = reply.get_document("cursor").unwrap();
    assert_eq!(cursor.get_i64("id").unwrap(), 0);
    cursor.get_array("firstBatch").unwrap().iter().map(|row| row.as_document().unwrap().clone()).collect()
}

#[track_caller]
fn refused(db: &Database, wanted: Document, code: i32) {
    match command(db, &wanted) {
        Ok(reply) => panic!("{wanted}\ndid not fail: {reply}"),
        Err(error) => assert_eq!((error.code(), error.unsupported()), (code, None), "{wanted}: {error}"),
    }
}

#[track_caller]
fn unsupported(db: &Database, wanted: Document, name: &str) {
    match command(db, &wanted) {
        Ok(reply) => panic!("{wanted}\ndid not fail: {reply}"),
        Err(error) => assert_eq!(error.unsupported(), Some(name), "{wanted}: {error}"),
    }
}

fn write_error_codes(reply: &Document) -> Vec<(i32, i32)> {
    let errors = reply.get_array("writeErrors").map(Vec::as_slice).unwrap_or_default();
    let code = |error: &Bson| {
        let error = error.as_document().unwrap();
        (error.get_i32("index").unwrap(), error.get_i32("code").unwrap())
    };
    errors.iter().map(code).collect()
}

fn with_numbers(db: &Database) {
    let documents: Vec<Document> = (0..10).map(|n| doc! { "_id": n, "n": n, "tags": ["x", n % 3] }).collect();
    assert_eq!(run(db, doc! { "insert": "c", "documents": documents }), doc! { "n": 10, "ok": 1.0 });
}

#[test]
fn unknown_commands_fail_by_name() {
    on_every_store(|db| {
        assert_eq!(run(db, doc! { "ping": 1 }), doc! { "ok": 1.0 });
        refused(db, doc! { "fetch": "c" }, 59);
        refused(db, doc! {}, 59);
        refused(db, doc! { "ping": 1, "loud": true }, 40415);
        unsupported(db, doc! { "currentOp": 1 }, "currentOp");
    });
}

#[test]
fn duplicate_fields_and_damaged_bytes_are_rejected() {
    on_every_store(|db| {
        let mut twice = bson::rawdoc! { "find": "c", "limit": 1 };
        twice.append(bson::cstr!("limit"), 2);
        assert_eq!(db.command(&twice).unwrap_err().code(), 40413);
        let mut variables = bson::rawdoc! { "x": 1, "y": 2 };
        variables.append(bson::cstr!("x"), 5);
        let find =
            bson::rawdoc! { "find": "c", "filter": { "$expr": { "$eq": ["$a", "$$x"] } }, "let": variables.clone() };
        assert_eq!(db.command(&find).unwrap_err().code(), 40413);
        let of_lookup =
            bson::rawdoc! { "$lookup": { "from": "c", "let": variables.clone(), "pipeline": [], "as": "all" } };
        let aggregate = bson::rawdoc! { "aggregate": "c", "pipeline": [of_lookup], "cursor": {} };
        assert_eq!(db.command(&aggregate).unwrap_err().code(), 40413);
        // As in MongoDB, the last one counts in `$let`.
        run(db, doc! { "insert": "c", "documents": [{ "_id": 1 }] });
        let of_let = bson::rawdoc! { "$project": { "x": { "$let": { "vars": variables, "in": "$$x" } } } };
        let aggregate = bson::rawdoc! { "aggregate": "c", "pipeline": [of_let], "cursor": {} };
        let reply = Document::try_from(db.command(&aggregate).unwrap()).unwrap();
        assert_eq!(
            reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap(),
            &[doc! { "_id": 1, "x": 5 }.into()]
        );
        let mut bytes = bson::rawdoc! { "find": "c", "limit": 1 }.into_bytes();
        // Changes the type of `limit` to one that BSON does not have.
        let limit = bytes.windows(6).position(|name| name == b"limit\0").unwrap();
        bytes[limit - 1] = 0x60;
        let damaged = RawDocumentBuf::from_bytes(bytes).unwrap();
        assert_eq!(db.command(&damaged).unwrap_err().code(), 22);
    });
}

#[test]
fn a_command_ends_at_its_time_limit() {
    on_every_store(|db| {
        let documents: Vec<Document> = (0..20_000).map(|n| doc! { "_id": n, "n": n }).collect();
        run(db, doc! { "insert": "c", "documents": documents });
        let slow = doc! { "find": "c", "filter": { "$or": (0..50).map(|n| doc! { "n": -n - 1 }).collect::<Vec<_>>() },
        "sort": { "n": -1 }, "maxTimeMS": 1 };
        // A write that runs out of time fails as a whole, not statement by statement.
        let update = doc! { "q": slow.get_document("filter").unwrap(), "u": { "$set": { "m": 1 } }, "multi": true };
        refused(db, slow, 50);
        refused(db, doc! { "update": "c", "updates": [update], "maxTimeMS": 1 }, 50);
    });
}
