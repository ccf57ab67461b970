//! The log of changes and what reads it, on every store.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "changes/acts.rs"]
mod acts;
mod common;
#[path = "changes/events.rs"]
mod events;
#[path = "changes/histories.rs"]
mod histories;
#[path = "changes/replay.rs"]
mod replay;

use std::{
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering},
    time::{Duration, Instant},
};

use bson::{Document, RawDocumentBuf, doc, rawdoc};
use slate_core::{ChangeEvent, ChangeLog, ChangeStream, Database, Durability, Index};

use common::{TestDatabase, on_every_store};

pub(crate) const NO_STAGES: [Document; 0] = [];

/// Runs a test on every store, with changes logged.
pub(crate) fn logged(test: impl Fn(TestDatabase)) {
    on_every_store(|database| {
        database.db.enable_changes(ChangeLog::new()).unwrap();
        test(database);
    });
}

/// Returns the events that are there.
pub(crate) fn events(stream: &mut ChangeStream) -> Vec<Document> {
    let next = || stream.next_within(Duration::ZERO).unwrap();
    std::iter::from_fn(next).map(|event| decoded(&event)).collect()
}

pub(crate) fn decoded(event: &ChangeEvent) -> Document {
    Document::try_from(event.as_raw()).unwrap()
}

pub(crate) fn kinds(events: &[Document]) -> Vec<&str> {
    events.iter().map(|event| event.get_str("operationType").unwrap()).collect()
}

pub(crate) fn refused<T: std::fmt::Debug>(result: slate_core::Result<T>, code: i32) {
    assert_eq!(result.unwrap_err().code(), code);
}

#[test]
fn nothing_is_logged_until_it_is_switched_on_and_after_it_is_switched_off() {
    on_every_store(|database| {
        let (db, users) = (&database.db, database.collection("users"));
        users.insert_one(&rawdoc! { "_id": 1 }).unwrap();
        refused(users.watch(NO_STAGES).run(), 40573);
        assert!(!db.logs_changes().unwrap() && db.stats().unwrap().changes.is_none());
        db.enable_changes(ChangeLog::new()).unwrap();
        let mut stream = users.watch(NO_STAGES).run().unwrap();
        users.insert_one(&rawdoc! { "_id": 2 }).unwrap();
        let token = stream.next().unwrap().unwrap().resume_token();
        assert!(db.stats().unwrap().changes.unwrap().bytes > 0);
        db.disable_changes().unwrap();
        assert!(!db.logs_changes().unwrap());
        refused(stream.next_within(Duration::ZERO), 40573);
        assert!(stream.next().is_none(), "it has ended");
        db.enable_changes(ChangeLog::new()).unwrap();
        refused(users.watch(NO_STAGES).resume_after(&token).run(), 286);
        let since = db.last_time();
        users.insert_one(&rawdoc! { "_id": 3 }).unwrap();
        assert_eq!(events(&mut users.watch(NO_STAGES).start_at(since).run().unwrap()).len(), 1);
        refused(users.watch(NO_STAGES).start_at(time(1)).run(), 286);
    });
}

#[test]
fn a_stream_does_not_begin_before_the_log_nor_show_what_is_before_its_start() {
    on_every_store(|database| {
        let (db, users) = (&database.db, database.collection("users"));
        users.insert_one(&rawdoc! { "_id": 0 }).unwrap();
        let before = db.next_time();
        db.enable_changes(ChangeLog::new()).unwrap();
        let after = db.last_time();
        refused(users.watch(NO_STAGES).start_at(before).run(), 286);
        refused(db.watch(NO_STAGES).start_at(time(0)).run(), 286);
        assert_eq!(events(&mut users.watch(NO_STAGES).start_at(after).run().unwrap()).len(), 0);
        users.insert_one(&rawdoc! { "_id": 1 }).unwrap();
        assert_eq!(events(&mut users.watch(NO_STAGES).start_at(after).run().unwrap()).len(), 1);
        refused(users.watch(NO_STAGES).start_at(before).run(), 286);
        let mut later = users.watch(NO_STAGES).start_at(time(u32::MAX)).run().unwrap();
        users.insert_one(&rawdoc! { "_id": 2 }).unwrap();
        assert_eq!(events(&mut later).len(), 0);
    });
}

/// Also if the events before that time have left the log, and in another process.
#[test]
fn a_stream_that_begins_later_is_resumed_without_what_is_before_its_start() {
    on_every_store(|database| {
        let (db, users) = (&database.db, database.collection("users"));
        db.enable_changes(ChangeLog::new().bytes(2_000)).unwrap();
        let insert = |id: i32| users.insert_one(&rawdoc! { "_id": id, "pad": "x".repeat(100) }).unwrap();
        insert(0);
        let mut start = db.next_time();
        start.time += 10;
        let mut stream = users.watch(NO_STAGES).start_at(start).run().unwrap();
        let mut tokens = vec![stream.resume_token()];
        insert(1);
        tokens.push(stream.resume_token());
        assert_eq!(events(&mut stream).len(), 0);
        tokens.push(stream.resume_token());
        assert!(tokens[2].as_bytes() > tokens[0].as_bytes(), "what was read is not read again");
        insert(2);
        let opened: Vec<_> =
            tokens.iter().map(|token| users.watch(NO_STAGES).resume_after(token).run().unwrap()).collect();
        tokens.extend(opened.iter().map(ChangeStream::resume_token));
        (0..40).for_each(|_| drop(users.update_one(doc! {}, doc! { "$inc": { "n": 1 } }).run().unwrap()));
        refused(users.watch(NO_STAGES).start_at(time(1)).run(), 286);
        let resumed = |token: &RawDocumentBuf, after: bool| {
            let watch = users.watch(NO_STAGES);
            let watch = if after { watch.start_after(token) } else { watch.resume_after(token) };
            events(&mut watch.run().unwrap())
        };
        assert!(tokens.iter().all(|token| resumed(token, false).is_empty()));
        db.advance_time(start);
        insert(3);
        insert(4);
        for token in &tokens {
            for after in [false, true] {
                let found = resumed(token, after);
                assert_eq!(found.len(), 2, "{found:?}");
                let time = found[0].get_timestamp("clusterTime").unwrap();
                assert!((time.time, time.increment) > (start.time, start.increment));
            }
        }
        let found = events(&mut stream);
        assert_eq!(found.len(), 2);
        let mark = stream.resume_token();
        assert_eq!(mark.get_str("_data").unwrap().len(), 42, "the time has passed");
        assert_eq!(resumed(&mark, false).len(), 0);
        let first = RawDocumentBuf::try_from(found[0].get_document("_id").unwrap()).unwrap();
        assert_eq!(resumed(&first, false), found[1..]);
    });
}

#[test]
fn a_view_is_not_watched() {
    logged(|database| {
        let db = &database.db;
        let view =
            doc! { "create": "adults", "viewOn": "users", "pipeline": [{ "$match": { "age": { "$gte": 18 } } }] };
        db.command(view).unwrap();
        refused(database.collection("adults").watch(NO_STAGES).run(), 166);
        let watch = doc! { "aggregate": "adults", "pipeline": [{ "$changeStream": {} }], "cursor": {} };
        refused(db.commands().run(watch), 166);
        let behind =
            doc! { "aggregate": "users", "pipeline": [{ "$match": {} }, { "$changeStream": {} }], "cursor": {} };
        refused(db.commands().run(behind), 40602);
    });
}

#[test]
fn a_change_stream_within_another_pipeline_is_refused() {
    let db = Database::open("memory:").unwrap();
    let within = |stage: bson::Document| db.command(doc! { "aggregate": "users", "pipeline": [stage], "cursor": {} });
    let stream = [doc! { "$changeStream": {} }];
    refused(within(doc! { "$facet": { "a": stream.as_slice() } }), 40600);
    refused(within(doc! { "$lookup": { "from": "users", "pipeline": stream.as_slice(), "as": "a" } }), 51047);
    refused(within(doc! { "$unionWith": { "coll": "users", "pipeline": stream.as_slice() } }), 31441);
    refused(db.collection::<bson::Document>("users").aggregate(stream).run(), 40602);
}

#[test]
fn the_plan_of_a_change_stream_is_its_stages() {
    logged(|database| {
        let stages = vec![
            doc! { "$changeStream": { "fullDocument": "updateLookup" } },
            doc! { "$match": { "operationType": "insert" } },
        ];
        let watch = doc! { "aggregate": "users", "pipeline": stages.clone(), "cursor": {} };
        let explained = database.db.command(doc! { "explain": watch.clone(), "verbosity": "executionStats" }).unwrap();
        let explained = Document::try_from(&*explained).unwrap();
        let shown: Vec<_> = stages.into_iter().map(bson::Bson::from).collect();
        assert_eq!(explained.get_array("stages").unwrap(), &shown);
        assert_eq!(explained.get_document("command").unwrap(), &watch);
        let wrong = doc! { "aggregate": "users", "pipeline": [{ "$changeStream": { "unknown": 1 } }], "cursor": {} };
        refused(database.db.command(doc! { "explain": wrong }), 40415);
    });
}

#[test]
fn the_stages_of_a_stream_use_its_collation_and_its_variables() {
    logged(|database| {
        let (db, users) = (&database.db, database.collection("users"));
        let stages = [doc! { "$match": { "fullDocument.name": "ada" } }, doc! { "$set": { "tag": "$$tag" } }];
        let (collation, variables) = (doc! { "locale": "en", "strength": 2 }, doc! { "tag": { "$toUpper": "x" } });
        let mut stream =
            users.watch(stages.clone()).collation(collation.clone()).let_variables(variables.clone()).run().unwrap();
        let mut pipeline = vec![doc! { "$changeStream": {} }];
        pipeline.extend(stages.clone());
        let watch = doc! {
            "aggregate": "users", "pipeline": pipeline, "cursor": {}, "collation": collation, "let": variables
        };
        let commands = db.commands();
        let opened = Document::try_from(&*commands.run(watch.clone()).unwrap()).unwrap();
        let id = opened.get_document("cursor").unwrap().get_i64("id").unwrap();
        users.insert_many(&[rawdoc! { "_id": 1, "name": "ADA" }, rawdoc! { "_id": 2, "name": "Bob" }]).run().unwrap();
        let found = events(&mut stream);
        assert_eq!((found.len(), found[0].get_str("tag").unwrap()), (1, "X"));
        let next = commands.run(doc! { "getMore": id, "collection": "users" }).unwrap();
        let next = Document::try_from(&*next).unwrap();
        let batch = next.get_document("cursor").unwrap().get_array("nextBatch").unwrap().clone();
        assert_eq!(batch, [bson::Bson::from(found[0].clone())]);
        refused(users.watch(stages.clone()).run(), 17276);
        let wrong = |name: &str, value: Document| {
            let mut wrong = watch.clone();
            wrong.insert(name, value);
            db.commands().run(wrong)
        };
        refused(wrong("collation", doc! { "locale": "none of that name" }), 2);
        refused(wrong("let", doc! { "Tag": 1 }), 9);
    });
}

/// Collections of MongoDB's internal databases are not logged.
#[test]
fn a_rename_into_or_out_of_an_unlogged_database_is_logged() {
    logged(|database| {
        let db = &database.db;
        let mut stream = db.watch(NO_STAGES).run().unwrap();
        let rename = |from: &str, to: &str| {
            db.database("admin").command(doc! { "renameCollection": from, "to": to }).unwrap();
        };
        db.database("admin").collection("a").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        rename("admin.a", "shop.b");
        rename("shop.b", "admin.c");
        rename("admin.c", "admin.d");
        let found = events(&mut stream);
        assert_eq!(kinds(&found), ["rename", "rename"]);
        let namespace = |event: &Document, name: &str| {
            let namespace = event.get_document(name).unwrap();
            format!("{}.{}", namespace.get_str("db").unwrap(), namespace.get_str("coll").unwrap())
        };
        assert_eq!((namespace(&found[0], "ns"), namespace(&found[0], "to")), ("admin.a".into(), "shop.b".into()));
        assert_eq!((namespace(&found[1], "ns"), namespace(&found[1], "to")), ("shop.b".into(), "admin.c".into()));
    });
}

/// A stream that has read everything that was trimmed has lost nothing.
#[test]
fn a_stream_that_stopped_at_the_last_trimmed_event_continues() {
    on_every_store(|database| {
        let (db, users) = (&database.db, database.collection("users"));
        db.enable_changes(ChangeLog::new().bytes(20_000)).unwrap();
        let mut stream = users.watch(NO_STAGES).run().unwrap();
        let pad = "x".repeat(500);
        // Each commit has two events, of which a stream may have read the first alone.
        let mut tokens = Vec::new();
        for id in 0..100 {
            let two = [rawdoc! { "_id": id, "pad": &*pad }, rawdoc! { "_id": id + 1_000, "pad": &*pad }];
            users.insert_many(&two).run().unwrap();
            while let Some(event) = stream.next_within(Duration::ZERO).unwrap() {
                tokens.push((event.resume_token(), stream.resume_token(), event));
            }
        }
        assert_eq!(tokens.len(), 200);
        let left =
            |token: &RawDocumentBuf| users.watch(NO_STAGES).resume_after(token).run().map(|mut s| events(&mut s));
        let first = tokens.iter().position(|(token, ..)| left(token).is_ok()).unwrap();
        assert!(first > 0 && first % 2 == 1, "the second event of the last commit that was trimmed: {first}");
        for (at, (token, mark, event)) in tokens.iter().enumerate() {
            match left(token) {
                Ok(found) => assert_eq!(found.len(), 199 - at),
                Err(error) => assert_eq!((error.code(), at < first), (286, true)),
            }
            assert_eq!(left(mark).is_ok(), at >= first);
            let time = event.as_raw().get_timestamp("clusterTime").unwrap();
            let started = users.watch(NO_STAGES).start_at(time).run().map(|mut stream| events(&mut stream));
            match started {
                Ok(found) => assert_eq!(found.len(), 200 - at / 2 * 2),
                Err(error) => assert_eq!((error.code(), at <= first), (286, true)),
            }
        }
        // The invalidation after such an event is not in the log.
        let mut ended = database.collection("ended").watch(NO_STAGES).run().unwrap();
        database.collection("ended").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        database.collection("ended").drop().unwrap();
        let tokens: Vec<_> = std::iter::from_fn(|| ended.next_within(Duration::ZERO).unwrap()).collect();
        for id in 200..300 {
            users.insert_one(&rawdoc! { "_id": id, "pad": &*pad }).unwrap();
            let resumed = database.collection("ended").watch(NO_STAGES).resume_after(tokens[1].resume_token()).run();
            match resumed {
                Ok(mut resumed) => assert_eq!(kinds(&events(&mut resumed)), ["invalidate"]),
                Err(error) => assert_eq!(error.code(), 286),
            }
        }
    });
}

pub(crate) fn time(seconds: u32) -> bson::Timestamp {
    bson::Timestamp { time: seconds, increment: 0 }
}

#[test]
fn an_open_transaction_conflicts_with_switching_the_log_on() {
    on_every_store(|database| {
        let users = database.collection("users");
        users.insert_one(&rawdoc! { "_id": 1 }).unwrap();
        let transaction = database.db.begin_with(&slate_core::TransactionOptions::new().detached()).unwrap();
        transaction.collection("users").insert_one(&rawdoc! { "_id": 2 }).unwrap();
        database.db.enable_changes(ChangeLog::new()).unwrap();
        let error = transaction.commit().unwrap_err();
        assert!(error.is_retryable(), "{error}");
    });
}

#[test]
fn a_log_beyond_its_limits_loses_its_oldest_commits() {
    on_every_store(|database| {
        let (db, users) = (&database.db, database.collection("users"));
        db.enable_changes(ChangeLog::new().bytes(20_000)).unwrap();
        let mut slow = users.watch(NO_STAGES).run().unwrap();
        let first = users.watch(NO_STAGES).run().unwrap().resume_token();
        let mut quick = users.watch(NO_STAGES).run().unwrap();
        let pad = "x".repeat(500);
        for id in 0..200 {
            users.insert_one(&rawdoc! { "_id": id, "pad": pad.as_str() }).unwrap();
            assert_eq!(events(&mut quick).len(), 1);
        }
        let log = db.stats().unwrap().changes.unwrap();
        assert!((10_000..24_000).contains(&log.bytes), "{log:?}");
        refused(slow.next_within(Duration::ZERO), 286);
        refused(users.watch(NO_STAGES).resume_after(&first).run(), 286);
        refused(users.watch(NO_STAGES).start_at(time(1)).run(), 286);
        users.watch(NO_STAGES).resume_after(quick.resume_token()).run().unwrap();
        // By age.
        db.enable_changes(ChangeLog::new().age(Duration::ZERO)).unwrap();
        let later = bson::DateTime::now().saturating_add_duration(Duration::from_secs(60));
        db.expire().at(later).run().unwrap();
        let log = db.stats().unwrap().changes.unwrap();
        assert!(log.bytes < 1_000, "{log:?}: the last commit stays");
    });
}

/// What is due at once is deleted by several commits, each of a bounded size.
#[test]
fn a_log_that_is_far_beyond_its_limits_is_trimmed_at_once() {
    on_every_store(|database| {
        let (db, users) = (&database.db, database.collection("users"));
        db.enable_changes(ChangeLog::new()).unwrap();
        let pad = "x".repeat(1 << 20);
        for id in 0..14 {
            users.insert_one(&rawdoc! { "_id": id, "pad": pad.as_str() }).unwrap();
        }
        assert!(db.stats().unwrap().changes.unwrap().bytes > 14 << 20);
        db.enable_changes(ChangeLog::new().bytes(20_000)).unwrap();
        db.expire().run().unwrap();
        users.insert_one(&rawdoc! { "_id": 14 }).unwrap();
        db.expire().run().unwrap();
        let log = db.stats().unwrap().changes.unwrap();
        assert!(log.bytes < 20_000, "{log:?}");
    });
}

#[test]
fn a_stream_resumes_after_a_restart_in_a_backup_and_where_another_ended() {
    logged(|database| {
        let users = database.collection("users");
        let mut stream = users.watch(NO_STAGES).run().unwrap();
        for id in 0..5 {
            users.insert_one(&rawdoc! { "_id": id }).unwrap();
        }
        let all = events(&mut stream);
        let token = bson::RawDocumentBuf::try_from(all[1].get_document("_id").unwrap()).unwrap();
        drop((stream, users));
        let database = database.reopen();
        let resumed = |database: &TestDatabase| {
            let users = database.collection("users");
            let mut resumed = users.watch(NO_STAGES).resume_after(&token).run().unwrap();
            assert_eq!(events(&mut resumed), all[2..]);
            users.insert_one(&rawdoc! { "_id": "later" }).unwrap();
            assert_eq!(events(&mut resumed).len(), 1, "versions go on");
            let mut at = users.watch(NO_STAGES).start_at(all[3].get_timestamp("clusterTime").unwrap()).run().unwrap();
            assert_eq!(events(&mut at)[..2], all[3..]);
        };
        let copy = database.restored();
        resumed(&copy);
        resumed(&database);
    });
}

/// A restored backup, like a file after a crash, lacks commits that streams have seen.
#[test]
fn a_stream_that_saw_lost_commits_sees_the_new_ones() {
    logged(|database| {
        let users = database.collection("users");
        let mut stream = users.watch(NO_STAGES).run().unwrap();
        users.insert_one(&rawdoc! { "_id": 1 }).unwrap();
        let restored = database.restored();
        for id in 2..5 {
            users.insert_one(&rawdoc! { "_id": id }).unwrap();
        }
        assert_eq!(events(&mut stream).len(), 4);
        let users = restored.collection("users");
        let mut resumed = users.watch(NO_STAGES).resume_after(stream.resume_token()).run().unwrap();
        for id in 5..7 {
            users.insert_one(&rawdoc! { "_id": id }).unwrap();
        }
        assert_eq!(kinds(&events(&mut resumed)), ["insert", "insert"]);
    });
}

#[test]
fn switching_the_log_off_ends_waiting_streams() {
    logged(|database| {
        let mut stream = database.collection("users").watch(NO_STAGES).run().unwrap();
        let waiting = std::thread::spawn(move || stream.next().unwrap());
        std::thread::sleep(Duration::from_millis(20));
        database.db.disable_changes().unwrap();
        refused(waiting.join().unwrap(), 40573);
    });
}

#[test]
fn a_waiting_iterator_is_woken_by_the_commit() {
    logged(|database| {
        let users = database.collection("users");
        let mut stream = users.watch(NO_STAGES).run().unwrap();
        assert!(stream.next_within(Duration::from_millis(1)).unwrap().is_none());
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || stream.next().unwrap().unwrap());
            std::thread::sleep(Duration::from_millis(5));
            database.collection("others").insert_one(&rawdoc! { "_id": 1 }).unwrap();
            users.insert_one(&rawdoc! { "_id": 2 }).unwrap();
            assert_eq!(reader.join().unwrap().document_key(), Some(&*rawdoc! { "_id": 2 }));
        });
    });
}

#[test]
fn closing_the_database_ends_waiting_streams() {
    logged(|database| {
        let mut stream = database.collection("users").watch(NO_STAGES).run().unwrap();
        let (db, _folder) = database.into_parts();
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || stream.next().unwrap().map(drop));
            std::thread::sleep(Duration::from_millis(5));
            db.close().unwrap();
            assert_eq!(reader.join().unwrap().unwrap_err().kind(), slate_core::ErrorKind::Closed);
        });
    });
}

/// Opens that many streams of as many collections and of one, and wakes some of them.
fn many_streams(count: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let db = Database::builder("memory:").durability(Durability::Deferred).open().unwrap();
    db.enable_changes(ChangeLog::new()).unwrap();
    let db = slate_core::aio::Database::from(db);
    runtime.block_on(async {
        let (woken, opened) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = Vec::new();
        for number in 0..count {
            let (db, woken, opened) = (db.clone(), Arc::clone(&woken), Arc::clone(&opened));
            tasks.push(tokio::spawn(async move {
                let users = db.collection::<RawDocumentBuf>(&format!("c{}", number % 100));
                let mut stream = users.watch(NO_STAGES).await.unwrap();
                opened.fetch_add(1, Ordering::SeqCst);
                while let Some(event) = stream.next().await {
                    event.unwrap();
                    woken.fetch_add(1, Ordering::SeqCst);
                }
            }));
        }
        let until = async |counter: &AtomicUsize, wanted: usize| {
            let start = Instant::now();
            while counter.load(Ordering::SeqCst) < wanted {
                assert!(start.elapsed() < Duration::from_secs(60), "{} of {wanted}", counter.load(Ordering::SeqCst));
                tokio::task::yield_now().await;
            }
        };
        until(&opened, count).await;
        let write = async |name: &str| {
            let collection = db.collection::<RawDocumentBuf>(name);
            collection.insert_one(&rawdoc! {}).await.unwrap();
        };
        write("c7").await;
        until(&woken, count / 100).await;
        for _ in 0..10 {
            write("unwatched").await;
        }
        write("c8").await;
        until(&woken, count / 50).await;
        assert_eq!(woken.load(Ordering::SeqCst), count / 50);
        tasks.iter().for_each(|task| task.abort());
    });
}

#[test]
fn a_commit_wakes_the_streams_of_its_collection_among_many() {
    many_streams(1_000);
}

#[test]
#[ignore = "takes seconds in a debug build"]
fn a_commit_wakes_the_streams_of_its_collection_among_ten_thousand() {
    many_streams(10_000);
}

#[test]
fn documents_that_expire_are_deletes() {
    logged(|database| {
        let users = database.collection("users");
        users.create_index(Index::on(doc! { "at": 1 }).expire_after(Duration::ZERO)).run().unwrap();
        users.insert_one(&rawdoc! { "_id": 1, "at": bson::DateTime::from_millis(0) }).unwrap();
        let mut stream = users.watch(NO_STAGES).run().unwrap();
        database.db.expire().run().unwrap();
        assert_eq!(kinds(&events(&mut stream)), ["delete"]);
    });
}
