//! The log of changes and what reads it, on every store.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "changes/events.rs"]
mod events;
#[path = "changes/histories.rs"]
mod histories;

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
        users.insert_one(&rawdoc! { "_id": 3 }).unwrap();
        assert_eq!(events(&mut users.watch(NO_STAGES).start_at(time(1)).run().unwrap()).len(), 1);
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
