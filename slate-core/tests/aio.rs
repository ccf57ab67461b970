//! The async API on every store: which thread executes a call, dropped futures, streams and transactions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "aio/commands.rs"]
mod commands;
mod common;
#[path = "aio/deadlines.rs"]
mod deadlines;
#[path = "aio/every_action.rs"]
mod every_action;
#[path = "aio/transact_async.rs"]
mod transact_async;
#[path = "aio/transactions.rs"]
mod transactions;

use std::{
    cell::Cell,
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bson::{RawDocumentBuf, doc, rawdoc};
use common::{Store, on_every_store};
use futures_core::Stream;
use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};
use slate_core::{
    CancelToken, Config, Durability, ErrorKind, ExplainVerbosity, Hint, Index, Isolation, RenameTarget, ReturnDocument,
    TransactionOptions, WriteOperation,
    aio::{Collection, Database},
};
use tokio::{runtime, time::sleep};

type Documents = Collection<RawDocumentBuf>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct User {
    #[serde(rename = "_id")]
    id: i32,
    name: String,
    age: i32,
}

/// Runs a test on every store, on a runtime with one thread, which a blocking call would block completely.
fn on_one_thread<F: Future<Output = ()>>(test: impl Fn(Database, Store) -> F) {
    on_every_store(|database| {
        let runtime = runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(test(Database::from(database.db.clone()), database.store));
    });
}

/// Runs a test on every store, on a runtime with two threads and a pool of `blocking_threads`.
fn on_two_threads<F: Future<Output = ()>>(blocking_threads: usize, test: impl Fn(Database, Store) -> F) {
    on_every_store(|database| {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(blocking_threads)
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(test(Database::from(database.db.clone()), database.store));
    });
}

/// Documents `_id: 0..count`, each with `n: 0`.
async fn fill(documents: &Documents, count: i32) {
    let all: Vec<RawDocumentBuf> = (0..count).map(|id| rawdoc! { "_id": id, "n": 0 }).collect();
    documents.insert_many(&all).run().await.unwrap();
}

/// Polls once to start the operation.
async fn begin<F: Future>(mut operation: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|context| match operation.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[test]
fn every_async_call_agrees_with_the_blocking_one() {
    on_one_thread(|db, store| async move {
        let ada = User { id: 1, name: "Ada".into(), age: 36 };
        let bob = User { id: 2, name: "Bob".into(), age: 17 };
        let users = db.collection::<User>("users");
        assert!(!users.exists().await.unwrap());
        assert_eq!(users.insert_one(&ada).await.unwrap(), bson::Bson::Int32(1));
        assert_eq!(users.insert_many([&bob]).await.unwrap().inserted_ids.len(), 1);
        assert_eq!(users.insert_one(&ada).await.unwrap_err().kind(), ErrorKind::DuplicateKey);
        assert_eq!(users.insert_many([&ada, &bob]).ordered(false).run().await.unwrap().errors.len(), 2);

        assert_eq!(users.create_index(Index::on(doc! { "age": 1 })).run().await.unwrap(), "age_1");
        let seen = Arc::new(AtomicUsize::new(0));
        let progress = {
            let seen = Arc::clone(&seen);
            move |_| {
                seen.fetch_add(1, Ordering::Relaxed);
            }
        };
        let by_name = users.create_index(Index::on(doc! { "name": 1 }).unique()).progress(progress);
        by_name.deadline(Duration::from_secs(60)).run().await.unwrap();
        assert_eq!(users.list_indexes().await.unwrap().len(), 2);
        assert!(users.drop_index("name_1").await.unwrap());
        let others = [Index::on(doc! { "a": 1 }), Index::on(doc! { "b": 1 }).named("second")];
        assert_eq!(users.create_indexes(others).await.unwrap(), ["a_1", "second"]);
        assert!(users.drop_index("a_1").await.unwrap() && users.drop_index("second").await.unwrap());

        assert_eq!(users.find_by_id(1).await.unwrap(), Some(ada.clone()));
        assert_eq!(users.find_one(doc! { "name": "Bob" }).await.unwrap(), Some(bob.clone()));
        let young = users.find(doc! { "age": { "$lt": 18 } }).hint(Hint::Name("age_1".into()));
        assert!(young.clone().explain(ExplainVerbosity::QueryPlanner).await.unwrap().uses_index());
        assert!(young.clone().count().explain(ExplainVerbosity::QueryPlanner).await.unwrap().uses_index());
        assert!(
            users.find(doc! {}).distinct("age").explain(ExplainVerbosity::QueryPlanner).await.unwrap().uses_index()
        );
        let stats = young.clone().explain(ExplainVerbosity::ExecutionStats).await.unwrap().execution_stats().unwrap();
        assert_eq!((stats.rows, stats.documents_examined), (1, 1));
        assert_eq!(young.collect().await.unwrap().first(), Some(&bob));
        let oldest = users.find(doc! {}).sort(doc! { "age": -1 });
        assert_eq!(oldest.clone().first().await.unwrap(), Some(ada.clone()));
        assert_eq!(oldest.skip(1).limit(5).collect().await.unwrap(), [bob]);
        assert_eq!(users.count_documents(doc! {}).run().await.unwrap(), 2);
        assert_eq!(users.distinct("age", doc! {}).run().await.unwrap(), [17.into(), 36.into()]);
        assert_eq!(users.distinct("age", doc! {}).run_as::<u8>().await.unwrap(), [17, 36]);
        let refused = users.distinct("age", doc! {}).run_as::<String>().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conversion);
        assert!(refused.to_string().contains("a value at age of collection users"), "{refused}");

        let grown = users.update_one(doc! { "_id": 2 }, doc! { "$inc": { "age": 1 } }).run().await.unwrap();
        assert_eq!((grown.matched, grown.modified), (1, 1));
        let elements = users.update_many(doc! {}, doc! { "$set": { "marks.$[low]": 5 } });
        let refused = elements.array_filters([doc! { "low": { "$lt": 5 } }]).run().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        let eve = User { id: 3, name: "Eve".into(), age: 50 };
        users.replace_one(doc! { "_id": 3 }, &eve).upsert().run().await.unwrap();
        let older = users.find_one_and_update(doc! { "_id": 3 }, doc! { "$inc": { "age": 1 } });
        assert_eq!(older.return_document(ReturnDocument::After).run().await.unwrap().unwrap().age, 51);
        assert_eq!(users.find_one_and_replace(doc! { "_id": 3 }, &eve).run().await.unwrap().unwrap().age, 51);
        assert_eq!(users.find_one_and_delete(doc! {}).sort(doc! { "age": -1 }).run().await.unwrap(), Some(eve));
        assert_eq!(users.upsert_many([&ada]).await.unwrap().matched, 1);
        assert_eq!(users.merge_many([doc! { "_id": 1, "age": 37 }]).await.unwrap().modified, 1);

        let operations = || [WriteOperation::insert_one(doc! { "_id": 1 }), WriteOperation::delete_many(doc! {})];
        let bulk =
            db.bulk_write(operations().map(|operation| ("users", operation))).ordered(false).run().await.unwrap();
        assert_eq!((bulk.deleted, bulk.errors.len()), (2, 1));
        assert_eq!(users.bulk_write(operations()).run().await.unwrap().deleted, 1);

        assert_eq!(users.stats().await.unwrap().documents, 0);
        let moved = users.rename("moved", RenameTarget::MustNotExist).await.unwrap();
        assert_eq!(moved.rename("users", RenameTarget::DropExisting).await.unwrap().name(), "users");
        assert!(users.verify().deadline(Duration::from_secs(60)).run().await.unwrap().is_sound());
        assert!(db.verify().progress(|_| {}).run().await.unwrap().is_sound());
        assert_eq!(db.list_collections().await.unwrap().len(), 1);
        let documents = db.collection::<RawDocumentBuf>("documents");
        documents.insert_many(&[rawdoc! { "n": 1 }, rawdoc! { "n": 1 }]).await.unwrap();
        let groups = documents.aggregate([doc! { "$sortByCount": "$n" }]).collect().await.unwrap();
        assert_eq!(groups, [doc! { "_id": 1, "count": 2 }]);
        documents.drop().await.unwrap();

        db.collection::<User>("others").create().await.unwrap();
        assert_eq!(db.list_collection_names().await.unwrap(), ["others", "users"]);
        assert!(db.collection::<User>("others").drop().await.unwrap());
        assert!(db.command(&rawdoc! { "ping": 1 }).await.is_ok());
        assert_eq!(db.run_blocking(|db| db.list_collection_names()).await.unwrap(), ["users"]);
        db.flush().await.unwrap();
        db.size().await.unwrap();
        assert_eq!(db.store(), db.as_blocking().store());
        assert_eq!(db.store() == "memory", store == Store::Memory);
        db.compact().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        db.backup(&copy).await.unwrap();
        let restored = Database::open(&format!("{}:{}", db.store(), copy.display())).await.unwrap();
        assert_eq!(restored.list_collection_names().await.unwrap(), ["users"]);
        db.clone().close().await.unwrap();
        assert_eq!(users.count_documents(doc! {}).run().await.unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn databases_are_opened_by_url_settings_and_builder() {
    let runtime = runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        Database::open("memory:").await.unwrap();
        Database::open_config(&Config::new("memory:")).await.unwrap();
        let builder = slate_core::Database::builder("memory:").durability(Durability::Deferred);
        Database::open_with(builder).await.unwrap();
        assert_eq!(Database::open("nosuch:").await.unwrap_err().kind(), ErrorKind::Invalid);
    });
}

#[test]
fn a_waiting_call_does_not_block_the_callers_thread() {
    on_one_thread(|db, _| async move {
        // With one writer at a time, this transaction blocks the insert until the runtime's thread ends it.
        let open = common::elsewhere(|| db.as_blocking().begin()).unwrap();
        let documents = db.collection("documents");
        let insertion = documents.insert_one(&rawdoc! { "_id": 1 });
        let give_up = async {
            sleep(Duration::from_millis(20)).await;
            drop(open);
        };
        let (inserted, ()) = tokio::join!(insertion, give_up);
        inserted.unwrap();
    });
}

#[test]
fn only_short_calls_without_waiting_run_on_the_awaiting_thread() {
    thread_local!(static HERE: Cell<bool> = const { Cell::new(false) });
    /// Whether it was deserialized by the thread that awaits it.
    struct IsHere(bool);
    impl<'de> Deserialize<'de> for IsHere {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            IgnoredAny::deserialize(deserializer).map(|_| Self(HERE.get()))
        }
    }
    on_one_thread(|db, store| async move {
        HERE.set(true);
        fill(&db.collection("documents"), 1_000).await;
        let documents = db.collection::<IsHere>("documents");
        documents.create_index(Index::on(doc! { "n": 1 })).await.unwrap();
        let in_memory = store == Store::Memory;
        for _ in 0..3 {
            assert!(documents.find_by_id(7).await.unwrap().is_some());
        }
        assert!(documents.find_by_id(7).await.unwrap().unwrap().0, "in memory, or cached");
        assert!(documents.find_by_id(-1).await.unwrap().is_none());
        assert_eq!(documents.find_one(doc! { "_id": 8 }).await.unwrap().unwrap().0, in_memory);
        let page = documents.find(doc! { "n": 0 }).limit(20);
        assert!(page.clone().collect().await.unwrap().iter().all(|read| read.0 == in_memory));
        assert_eq!(page.count().await.unwrap(), 20);
        assert_eq!(documents.stats().await.unwrap().documents, 1_000);
        let last = documents.find(doc! { "_id": { "$mod": [1_000, 999] } });
        assert!(!last.first().await.unwrap().unwrap().0, "a scan of many rows runs on another thread");
        let all = documents.find(doc! {}).collect().await.unwrap();
        assert_eq!((all.len(), all.iter().any(|read| read.0)), (1_000, false));

        let change = |filter| documents.find_one_and_update(filter, doc! { "$inc": { "n": 1 } });
        assert_eq!(change(doc! { "_id": 7 }).await.unwrap().unwrap().0, in_memory);
        let deleted = documents.find_one_and_delete(doc! { "_id": 8 }).await.unwrap().unwrap();
        assert_eq!(deleted.0, in_memory);
        let last = change(doc! { "_id": { "$mod": [1_000, 999] } }).await.unwrap().unwrap();
        assert!(!last.0, "a write that reads many rows runs on another thread");
        let mut counts = documents.find(doc! {}).sort(doc! { "_id": 1 }).run().await.unwrap();
        let mut here = Vec::new();
        while let Some(read) = counts.next().await {
            here.push(read.unwrap().0);
        }
        assert_eq!(
            (here.len(), here.iter().all(|here| *here)),
            (999, true),
            "a stream deserializes where it is awaited"
        );
        assert_eq!(documents.count_documents(doc! { "n": 1 }).await.unwrap(), 2);
    });
}

#[test]
fn a_stream_returns_every_document_of_one_commit() {
    on_one_thread(|db, _| async move {
        let documents: Documents = db.collection("documents");
        fill(&documents, 5_000).await;
        let mut rows = documents.find(doc! {}).sort(doc! { "_id": 1 }).run().await.unwrap();
        assert!(rows.next().await.is_some());
        documents.delete_many(doc! {}).run().await.unwrap();
        let mut next = 1;
        while let Some(row) = poll_fn(|context| Pin::new(&mut rows).poll_next(context)).await {
            assert_eq!(row.unwrap().get_i32("_id").unwrap(), next);
            next += 1;
        }
        assert_eq!(next, 5_000);
        assert!(rows.next().await.is_none(), "it stays at the end");
    });
}

#[test]
fn a_cursor_lends_each_document_of_a_query() {
    on_one_thread(|db, _| async move {
        let documents: Documents = db.collection("documents");
        fill(&documents, 100).await;
        let mut cursor = documents.find(doc! {}).sort(doc! { "_id": -1 }).cursor().await.unwrap();
        let mut next = 100;
        while cursor.advance().await.unwrap() {
            next -= 1;
            assert_eq!(cursor.current().unwrap().get_i32("_id").unwrap(), next);
        }
        assert_eq!((next, cursor.current()), (0, None));
    });
}

#[test]
fn a_stream_deserializes_a_document_when_it_returns_it() {
    static READ: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl<'de> Deserialize<'de> for Counted {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            READ.fetch_add(1, Ordering::Relaxed);
            IgnoredAny::deserialize(deserializer).map(|_| Self)
        }
    }
    on_one_thread(|db, _| async move {
        READ.store(0, Ordering::Relaxed);
        fill(&db.collection("documents"), 5_000).await;
        let mut rows = db.collection::<Counted>("documents").find(doc! {}).run().await.unwrap();
        rows.next().await.unwrap().unwrap();
        drop(rows);
        sleep(Duration::from_millis(20)).await;
        assert_eq!(READ.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_stream_returns_deserialization_errors_in_place_and_query_errors_at_once() {
    on_one_thread(|db, _| async move {
        let documents: Documents = db.collection("documents");
        let ada = rawdoc! { "_id": 1, "name": "Ada", "age": 36 };
        documents.insert_many(&[ada.clone(), rawdoc! { "_id": 2 }]).run().await.unwrap();
        documents
            .update_one(doc! { "_id": 3 }, doc! { "$set": { "name": "Eve", "age": 50 } })
            .upsert()
            .run()
            .await
            .unwrap();
        let users = documents.with_type::<User>();
        let mut found = users.find(doc! {}).sort(doc! { "_id": 1 }).run().await.unwrap();
        assert_eq!(found.next().await.unwrap().unwrap().id, 1);
        assert_eq!(found.next().await.unwrap().unwrap_err().kind(), ErrorKind::Conversion);
        assert_eq!(found.next().await.unwrap().unwrap().id, 3);
        assert!(found.next().await.is_none());
        assert_eq!(users.find(doc! {}).collect().await.unwrap_err().kind(), ErrorKind::Conversion);
        assert_eq!(users.find(doc! { "$no": 1 }).run().await.unwrap_err().kind(), ErrorKind::Invalid);
    });
}

#[test]
fn a_dropped_write_is_atomic() {
    on_two_threads(512, |db, _| async move {
        let documents: Documents = db.collection("documents");
        fill(&documents, 2_000).await;
        for microseconds in (0..24).map(|step| 1_u64 << step.min(14)) {
            let write = documents.update_many(doc! {}, doc! { "$inc": { "n": 1 } }).run();
            let _ = tokio::time::timeout(Duration::from_micros(microseconds), write).await;
            let snapshot = db.snapshot().await.unwrap().collection::<RawDocumentBuf>("documents");
            assert_eq!(snapshot.distinct("n", doc! {}).run().await.unwrap().len(), 1, "after {microseconds} µs");
            assert_eq!(snapshot.count_documents(doc! {}).run().await.unwrap(), 2_000);
        }
    });
}

#[test]
fn a_write_dropped_before_it_starts_has_no_effect() {
    on_one_thread(|db, _| async move {
        let documents: Documents = db.collection("documents");
        drop(documents.insert_one(&rawdoc! { "_id": "never polled" }));
        assert!(documents.find_by_id("never polled").await.unwrap().is_none());
    });
}

#[test]
fn deadlines_and_cancellation_end_calls_without_changes() {
    on_one_thread(|db, _| async move {
        let documents: Documents = db.collection("documents");
        fill(&documents, 5_000).await;
        let interrupted = |error: slate_core::Error| assert_eq!(error.kind(), ErrorKind::Interrupted);
        let cancelled = CancelToken::new();
        let token = cancelled.child();
        let mut rows = documents.find(doc! {}).cancel(token.clone()).run().await.unwrap();
        rows.next().await.unwrap().unwrap();
        cancelled.cancel();
        let mut last = None;
        while let Some(row) = rows.next().await {
            last = Some(row);
        }
        interrupted(last.unwrap().unwrap_err());

        let change = || documents.update_many(doc! {}, doc! { "$set": { "n": 1 } });
        interrupted(change().cancel(token.clone()).run().await.unwrap_err());
        interrupted(change().deadline(Duration::ZERO).run().await.unwrap_err());
        interrupted(documents.delete_many(doc! {}).cancel(token.clone()).run().await.unwrap_err());
        interrupted(documents.find(doc! { "n": 1 }).deadline(Duration::ZERO).collect().await.unwrap_err());
        interrupted(documents.find(doc! { "n": 1 }).cancel(token.clone()).count().await.unwrap_err());
        interrupted(documents.create_index(Index::on(doc! { "n": 1 })).cancel(token.clone()).run().await.unwrap_err());

        let ended = TransactionOptions::new().cancel(token.clone());
        interrupted(
            db.transact_with(&ended, |tx| tx.collection("documents").insert_one(&rawdoc! {})).await.unwrap_err(),
        );
        let token = CancelToken::new();
        let tx = db.begin_with(&TransactionOptions::new().cancel(token.clone())).await.unwrap();
        tx.collection("documents").insert_one(&rawdoc! { "_id": -1 }).await.unwrap();
        token.cancel();
        interrupted(tx.commit().await.unwrap_err());
        assert_eq!(documents.count_documents(doc! { "n": 0 }).run().await.unwrap(), 5_000);
        assert_eq!(documents.count_documents(doc! {}).run().await.unwrap(), 5_000);
    });
}

#[test]
fn handles_are_sync_and_futures_and_streams_are_send() {
    fn shared<T: Send + Sync + 'static>() {}
    fn sent<T: Send + 'static>(_: T) {}
    shared::<Database>();
    shared::<Documents>();
    shared::<slate_core::aio::Transaction>();
    shared::<slate_core::aio::Snapshot>();
    shared::<slate_core::aio::ReadCollection<User>>();
    let db = Database::from(slate_core::Database::open("memory:").unwrap());
    let users = db.collection::<User>("users");
    sent(async move {
        let user = User { id: 1, name: "Ada".into(), age: 36 };
        users.insert_one(&user).await?;
        let mut found = users.find(doc! {}).run().await?;
        while let Some(user) = found.next().await {
            users.update_one(doc! { "_id": user?.id }, doc! { "$inc": { "age": 1 } }).run().await?;
        }
        db.begin().await?.commit().await
    });
}

#[test]
fn a_call_outside_a_runtime_fails_with_the_reason() {
    let db = Database::from(slate_core::Database::open("memory:").unwrap());
    let mut call = pin!(db.collection::<RawDocumentBuf>("documents").count_documents(doc! {}).run());
    let Poll::Ready(Err(error)) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("it must not wait without a runtime");
    };
    assert!(error.to_string().contains("tokio runtime"), "{error}");
}

#[test]
fn a_write_that_waits_behind_a_runtime_that_shuts_down_ends() {
    let db = Database::from(slate_core::Database::open("memory:").unwrap());
    let ending = runtime::Builder::new_current_thread().max_blocking_threads(1).enable_time().build().unwrap();
    let other = runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (release, released) = std::sync::mpsc::channel::<()>();
    // Occupies the only thread of the pool, so that no write of this runtime starts.
    ending.spawn_blocking(move || released.recv());
    let write = |id: i32| {
        let documents = db.collection("documents");
        async move { documents.insert_one(&rawdoc! { "_id": id }).await }
    };
    // More than 32 threads execute before each of them queues again, which a runtime that shuts down refuses.
    ending.block_on(async {
        (1_000..3_100).for_each(|id| drop(tokio::spawn(write(id))));
        sleep(Duration::from_millis(200)).await;
    });
    let ended = other.block_on(async {
        let waiting = tokio::spawn(write(100));
        sleep(Duration::from_millis(20)).await;
        ending.shutdown_background();
        drop(release);
        tokio::time::timeout(Duration::from_secs(30), waiting).await
    });
    let inserted = ended.expect("the write ends").unwrap();
    let found = db.as_blocking().collection::<RawDocumentBuf>("documents").find_by_id(100).unwrap();
    assert_eq!(inserted.is_ok(), found.is_some());
    // The pool works on.
    other.block_on(write(101)).unwrap();
}

#[test]
fn an_aggregation_is_awaited() {
    on_one_thread(async |db, _| {
        let films = db.collection::<RawDocumentBuf>("films");
        let three = [rawdoc! { "_id": 1, "g": "a" }, rawdoc! { "_id": 2, "g": "b" }, rawdoc! { "_id": 3, "g": "a" }];
        films.insert_many(&three).await.unwrap();
        let by_genre = || films.aggregate([doc! { "$sortByCount": "$g" }]);
        assert_eq!(by_genre().first().await.unwrap(), Some(doc! { "_id": "a", "count": 2 }));
        assert_eq!(by_genre().collect().await.unwrap().len(), 2);
        let own = [doc! { "$documents": [{ "n": 1 }, { "n": 2 }] }, doc! { "$match": { "n": "$$x" } }];
        assert!(db.aggregate(own).first().await.unwrap().is_none());
        let own =
            [doc! { "$documents": [{ "n": 1 }, { "n": 2 }] }, doc! { "$match": { "$expr": { "$eq": ["$n", "$$x"] } } }];
        let found = db.aggregate(own).let_variables(doc! { "x": 2 }).first().await.unwrap();
        assert_eq!(found, Some(doc! { "n": 2 }));
    });
}
