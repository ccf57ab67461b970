//! Commands whose replies come in batches, and commands in snapshots and transactions.

use std::time::{Duration, Instant};

use bson::{Document, RawDocumentBuf, doc};
use slate_core::{Activity, CancelToken, Commands, Database, OperationKind, TransactionOptions};

use crate::{on_every_store, with_numbers};

fn run(commands: &Commands, command: Document) -> Document {
    let name = format!("{command}");
    let reply = commands.run(command).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    Document::try_from(&reply).unwrap()
}

fn refused(commands: &Commands, command: Document, code: i32) {
    let name = format!("{command}");
    assert_eq!(commands.run(command).unwrap_err().code(), code, "{name}");
}

/// Returns the `_id`s of the batch and the id of the cursor.
fn batch(reply: &Document) -> (Vec<i32>, i64) {
    let cursor = reply.get_document("cursor").unwrap();
    let documents = cursor.get_array("firstBatch").or_else(|_| cursor.get_array("nextBatch")).unwrap();
    let ids = documents.iter().map(|document| document.as_document().unwrap().get_i32("_id").unwrap());
    (ids.collect(), cursor.get_i64("id").unwrap())
}

#[test]
fn a_cursor_returns_every_document_once_in_batches_of_the_given_sizes() {
    on_every_store(|db| {
        with_numbers(db);
        let commands = db.commands();
        let by_id = doc! { "_id": 1 };
        for first in [
            doc! { "find": "c", "sort": by_id.clone(), "batchSize": 4 },
            doc! { "aggregate": "c", "pipeline": [{ "$sort": by_id }], "cursor": { "batchSize": 4 } },
        ] {
            let (ids, id) = batch(&run(&commands, first));
            assert_eq!((ids, commands.open_cursors()), (vec![0, 1, 2, 3], 1));
            assert!(id > 0);
            let (ids, same) = batch(&run(&commands, doc! { "getMore": id, "collection": "c", "batchSize": 1 }));
            assert_eq!((ids, same), (vec![4], id));
            // The cursor reads one commit.
            db.collection::<Document>("c").insert_one(&doc! { "_id": 10 }).unwrap();
            let (ids, last) = batch(&run(&commands, doc! { "getMore": id, "collection": "c" }));
            assert_eq!((ids, last, commands.open_cursors()), (vec![5, 6, 7, 8, 9], 0, 0));
            db.collection::<Document>("c").delete_one(doc! { "_id": 10 }).run().unwrap();
            refused(&commands, doc! { "getMore": id, "collection": "c" }, 43);
        }
    });
}

#[test]
fn a_cursor_ends_with_its_limit_a_single_batch_or_the_last_document() {
    let db = Database::open("memory:").unwrap();
    with_numbers(&db);
    let commands = db.commands();
    for (ends, documents) in [
        (doc! { "find": "c", "limit": 3, "batchSize": 3 }, 3),
        (doc! { "find": "c", "limit": 3, "batchSize": 5 }, 3),
        (doc! { "find": "c", "batchSize": 3, "singleBatch": true }, 3),
        (doc! { "find": "c", "batchSize": 11 }, 10),
        (doc! { "find": "c" }, 10),
    ] {
        let (ids, id) = batch(&run(&commands, ends.clone()));
        assert_eq!((ids.len(), id), (documents, 0), "{ends}");
    }
    let (ids, id) = batch(&run(&commands, doc! { "find": "c", "batchSize": 0 }));
    assert_eq!(ids, [0; 0]);
    assert_eq!(batch(&run(&commands, doc! { "getMore": id, "collection": "c" })).0.len(), 10);
}

#[test]
fn a_batch_ends_before_it_exceeds_16_mebibytes() {
    let db = Database::open("memory:").unwrap();
    let large = "x".repeat(7 << 20);
    let documents: Vec<Document> = (0..5).map(|n| doc! { "_id": n, "text": &large }).collect();
    db.collection("c").insert_many(&documents).run().unwrap();
    let commands = db.commands();
    let (ids, id) = batch(&run(&commands, doc! { "find": "c" }));
    assert_eq!(ids, [0, 1]);
    let (ids, id) = batch(&run(&commands, doc! { "getMore": id, "collection": "c" }));
    assert_eq!(ids, [2, 3]);
    assert_eq!(batch(&run(&commands, doc! { "getMore": id, "collection": "c" })), (vec![4], 0));
}

#[test]
fn a_batch_without_a_size_ends_after_50_000_documents() {
    let db = Database::open("memory:").unwrap();
    db.collection("c").insert_many(&vec![doc! {}; 250]).run().unwrap();
    let commands = db.commands();
    let rows = doc! { "$unwind": "$all" };
    let all = doc! { "$set": { "all": { "$range": [0, 250] } } };
    let count = |reply: &bson::RawDocumentBuf, batch: &str| {
        let cursor = reply.get_document("cursor").unwrap();
        (cursor.get_array(batch).unwrap().into_iter().count(), cursor.get_i64("id").unwrap())
    };
    let (none, id) = count(
        &commands.run(doc! { "aggregate": "c", "pipeline": [all, rows], "cursor": { "batchSize": 0 } }).unwrap(),
        "firstBatch",
    );
    let next = || count(&commands.run(doc! { "getMore": id, "collection": "c" }).unwrap(), "nextBatch");
    assert_eq!((none, next(), next()), (0, (50_000, id), (12_500, 0)));
}

#[test]
fn a_cursor_belongs_to_its_collection_and_its_session() {
    let db = Database::open("memory:").unwrap();
    with_numbers(&db);
    let commands = db.commands();
    let session = |name: &str| doc! { "id": name };
    let open = |lsid: Option<Document>| {
        let mut find = doc! { "find": "c", "batchSize": 1 };
        find.extend(lsid.map(|lsid| ("lsid".to_owned(), lsid.into())));
        batch(&run(&commands, find)).1
    };
    let (free, owned) = (open(None), open(Some(session("a"))));
    refused(&commands, doc! { "getMore": free, "collection": "d" }, 13);
    refused(&commands, doc! { "getMore": free, "collection": "c", "lsid": session("a") }, 50_736);
    refused(&commands, doc! { "getMore": owned, "collection": "c" }, 50_737);
    refused(&commands, doc! { "getMore": owned, "collection": "c", "lsid": session("b") }, 50_738);
    refused(&commands, doc! { "getMore": owned, "collection": "c", "lsid": session("a"), "maxTimeMS": 5 }, 2);
    refused(&commands, doc! { "getMore": 5, "collection": "c" }, 14);
    // What was refused has not closed the cursors.
    run(&commands, doc! { "getMore": owned, "collection": "c", "lsid": session("a"), "batchSize": 1 });
    let lsid = RawDocumentBuf::try_from(&session("a")).unwrap();
    assert_eq!((commands.close_session_cursors([&*lsid]), commands.open_cursors()), (1, 1));
    let killed = run(&commands, doc! { "killCursors": "c", "cursors": [free, owned] });
    assert_eq!(killed.get_array("cursorsKilled").unwrap(), &[free.into()]);
    assert_eq!(killed.get_array("cursorsNotFound").unwrap(), &[owned.into()]);
    assert_eq!(commands.open_cursors(), 0);
}

#[test]
fn idle_cursors_are_closed_unless_their_command_says_otherwise() {
    let db = Database::open("memory:").unwrap();
    with_numbers(&db);
    let commands = db.commands();
    run(&commands, doc! { "find": "c", "batchSize": 1 });
    run(&commands, doc! { "find": "c", "batchSize": 1, "noCursorTimeout": true });
    assert_eq!(commands.close_idle_cursors(Duration::from_secs(600)), 0);
    assert_eq!((commands.close_idle_cursors(Duration::ZERO), commands.open_cursors()), (1, 1));
}

#[test]
fn the_time_limit_begins_again_with_each_batch() {
    let db = Database::open("memory:").unwrap();
    let documents: Vec<Document> = (0..1_000).map(|n| doc! { "_id": n }).collect();
    db.collection("c").insert_many(&documents).run().unwrap();
    let commands = db.commands();
    let limit = 200_i64;
    let (_, id) = batch(&run(&commands, doc! { "find": "c", "batchSize": 1, "maxTimeMS": limit }));
    std::thread::sleep(Duration::from_millis(250));
    assert_eq!(batch(&run(&commands, doc! { "getMore": id, "collection": "c" })).0.len(), 999);
}

#[test]
fn the_time_between_batches_is_not_latency() {
    let db = Database::open("memory:").unwrap();
    with_numbers(&db);
    let commands = db.commands();
    let timed = |command| {
        let start = Instant::now();
        (batch(&run(&commands, command)).1, start.elapsed())
    };
    let (id, first) = timed(doc! { "find": "c", "batchSize": 1 });
    std::thread::sleep(Duration::from_millis(300));
    let (_, second) = timed(doc! { "getMore": id, "collection": "c" });
    let find = db.metrics().operation(OperationKind::Find).clone();
    // A histogram rounds up.
    let most = 2 * (first + second);
    assert_eq!(find.calls, 1);
    assert!(find.latency.quantile(1.0).unwrap() <= most, "{:?}, {most:?}", find.latency);
}

#[test]
fn commands_read_a_snapshot_and_cannot_write_to_it() {
    on_every_store(|db| {
        with_numbers(db);
        let (commands, snapshot) = (db.commands(), db.snapshot().unwrap());
        let then = commands.at_snapshot(&snapshot);
        run(&commands, doc! { "delete": "c", "deletes": [{ "q": { "_id": { "$gt": 0 } }, "limit": 0 }] });
        assert_eq!(run(&then, doc! { "count": "c" }), doc! { "n": 10, "ok": 1.0 });
        assert_eq!(run(&commands, doc! { "count": "c" }), doc! { "n": 1, "ok": 1.0 });
        let (_, id) = batch(&run(&then, doc! { "find": "c", "batchSize": 9 }));
        assert_eq!(batch(&run(&commands, doc! { "getMore": id, "collection": "c" })), (vec![9], 0));
        refused(&then, doc! { "insert": "c", "documents": [{}] }, 20);
        refused(&then, doc! { "dbStats": 1 }, 263);
        assert_eq!(run(&then, doc! { "collStats": "c" }).get_i32("count").unwrap(), 10);
    });
}

#[test]
fn commands_in_a_transaction_are_committed_together_from_any_thread() {
    on_every_store(|db| {
        with_numbers(db);
        let commands = db.commands();
        let transaction = db.begin_with(&TransactionOptions::new().detached()).unwrap();
        let within = commands.in_transaction(&transaction);
        let opened = doc! { "txnNumber": 1_i64, "autocommit": false, "startTransaction": true };
        let mut insert = doc! { "insert": "c", "documents": [{ "_id": 10 }] };
        insert.extend(opened);
        run(&within, insert);
        let update = doc! { "update": "c", "updates": [{ "q": { "_id": 0 }, "u": { "$set": { "n": 5 } } }] };
        run(&within, update);
        refused(&within, doc! { "listCollections": 1 }, 263);
        let (ids, id) = batch(&run(&within, doc! { "find": "c", "batchSize": 2 }));
        assert_eq!(ids, [0, 1]);
        // The thread that has begun it can write outside of it.
        run(&commands, doc! { "insert": "other", "documents": [{}] });
        let more = doc! { "getMore": id, "collection": "c" };
        let rest = {
            let within = within.clone();
            std::thread::spawn(move || batch(&run(&within, more)).0.len()).join().unwrap()
        };
        assert_eq!((rest, run(&commands, doc! { "count": "c" })), (9, doc! { "n": 10, "ok": 1.0 }));
        std::thread::spawn(move || transaction.commit().unwrap()).join().unwrap();
        assert_eq!(run(&commands, doc! { "count": "c", "query": { "n": 5 } }), doc! { "n": 2, "ok": 1.0 });
        refused(&within, doc! { "count": "c" }, 251);
    });
}

#[test]
fn a_cancelled_token_ends_commands_and_their_cursors() {
    let db = Database::open("memory:").unwrap();
    let documents: Vec<Document> = (0..1_000).map(|n| doc! { "_id": n }).collect();
    db.collection("c").insert_many(&documents).run().unwrap();
    let (commands, token) = (db.commands(), CancelToken::new());
    let cancelled = commands.with_cancel(token.clone());
    let (_, id) = batch(&run(&cancelled, doc! { "find": "c", "batchSize": 1 }));
    token.cancel();
    refused(&cancelled, doc! { "insert": "c", "documents": [{}] }, 11601);
    refused(&commands, doc! { "getMore": id, "collection": "c" }, 237);
    assert_eq!(commands.open_cursors(), 0);
}

/// The rows of a cursor are made by the command that has opened it, which has another token than the later ones.
#[test]
fn the_token_of_a_get_more_ends_it_and_its_cursor() {
    let db = Database::open("memory:").unwrap();
    let documents: Vec<Document> = (0..100).map(|n| doc! { "_id": n, "n": if n < 10 { 0 } else { 300_000 } }).collect();
    db.collection("c").insert_many(&documents).run().unwrap();
    let (commands, token) = (db.commands(), CancelToken::new());
    let long = doc! { "$size": { "$filter": { "input": { "$range": [0, "$n"] }, "cond": { "$lt": ["$$this", 0] } } } };
    let find = doc! { "find": "c", "filter": { "$expr": { "$gte": [long, 0] } }, "batchSize": 1 };
    let opener = commands.with_cancel(CancelToken::new()).with_activity(&Activity::default());
    let (_, id) = batch(&run(&opener, find.clone()));
    let activity = Activity::default();
    let reader = commands.with_cancel(token.clone()).with_activity(&activity);
    let more = std::thread::spawn(move || refused(&reader, doc! { "getMore": id, "collection": "c" }, 11601));
    while activity.plan_summary().is_none() {
        std::thread::yield_now();
    }
    assert!(commands.cursors().iter().all(|cursor| cursor.is_in_use()));
    token.cancel();
    more.join().unwrap();
    assert_eq!(commands.open_cursors(), 0);
    assert!(activity.documents_examined() < 90, "it does not read to its end");
    // One that was cancelled before reads nothing.
    let (_, id) = batch(&run(&commands, find));
    let unread = Activity::default();
    let reader = commands.with_cancel(token).with_activity(&unread);
    refused(&reader, doc! { "getMore": id, "collection": "c" }, 11601);
    assert_eq!((commands.open_cursors(), unread.documents_examined()), (0, 0));
}

#[test]
fn an_activity_keeps_the_stages_of_the_last_plan_if_it_is_asked_to() {
    let db = Database::open("memory:").unwrap();
    let numbers = db.collection("c");
    numbers.insert_many(&(0..200).map(|n| doc! { "_id": n, "n": n }).collect::<Vec<_>>()).run().unwrap();
    let commands = db.commands();
    run(&commands, doc! { "createIndexes": "c", "indexes": [{ "key": { "n": 1 }, "name": "n_1" }] });
    let scan = doc! { "find": "c", "filter": { "n": { "$gt": 190 } }, "batchSize": 2 };
    let forgets = Activity::default();
    run(&commands.with_activity(&forgets), scan.clone());
    assert_eq!((forgets.plan_summary().as_deref(), forgets.plan()), (Some("IXSCAN { n: 1 }"), None));
    let opened = Activity::with_plan();
    let (_, id) = batch(&run(&commands.with_activity(&opened), scan));
    let continued = Activity::with_plan();
    run(&commands.with_activity(&continued), doc! { "getMore": id, "collection": "c" });
    for activity in [&opened, &continued] {
        let plan = activity.plan().unwrap();
        let scan = plan.get_document("inputStage").unwrap();
        assert_eq!((plan.get_str("stage").unwrap(), scan.get_str("stage").unwrap()), ("FETCH", "IXSCAN"), "{plan}");
    }
    // A lookup replaces the plan.
    run(&commands.with_activity(&opened), doc! { "find": "c", "filter": { "_id": 4 } });
    assert_eq!(opened.plan(), Some(doc! { "stage": "EXPRESS_IXSCAN", "keyPattern": "{ _id: 1 }" }));
}

#[test]
fn a_command_without_a_place_for_cursors_returns_everything() {
    let db = Database::open("memory:").unwrap();
    let documents: Vec<Document> = (0..1_000).map(|n| doc! { "_id": n }).collect();
    db.collection("c").insert_many(&documents).run().unwrap();
    let reply = Document::try_from(&db.command(doc! { "find": "c", "batchSize": 2 }).unwrap()).unwrap();
    let (ids, id) = batch(&reply);
    assert_eq!((ids.len(), id), (1_000, 0));
    let error = db.command(doc! { "getMore": 5_i64, "collection": "c" }).unwrap_err();
    assert_eq!(error.code(), 43);
    assert!(error.message().contains("Database::commands"), "{error}");
}
