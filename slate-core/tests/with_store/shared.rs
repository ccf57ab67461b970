//! A store on a network that several processes write to: what each sees of the others' definitions, drops and commits.

use std::{
    ops::ControlFlow,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use bson::{Document, doc};
use slate_core::{Database, ErrorKind, Hint, Index};
use slate_store::{
    Bounds, Capabilities, Durability, Keyspace, Result, Store, Transaction, TransactionExt, Version, View,
};

use super::{
    distant::{DistantStore, LocalDistant},
    passed_on::passed_on,
};

/// What happens in place of a drop of a keyspace, or before it.
type OnDrop = Box<dyn FnOnce() -> Result<()> + Send>;

/// A store on a network that other processes also write to.
#[derive(Clone, Default)]
struct SharedStore(DistantStore, Arc<Mutex<Option<OnDrop>>>);

impl Store for SharedStore {
    type Snapshot = <DistantStore as Store>::Snapshot;
    type Transaction = <DistantStore as Store>::Transaction;

    fn capabilities(&self) -> Capabilities {
        Capabilities { exclusive: false, ..self.0.capabilities() }
    }

    fn snapshot(&self) -> Result<Self::Snapshot> {
        self.0.snapshot()
    }

    fn begin(&self, wait: Duration) -> Result<Self::Transaction> {
        self.0.begin(wait)
    }

    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<Version> {
        let on_drop = self.1.lock().unwrap().take();
        on_drop.map_or(Ok(()), |on_drop| on_drop())?;
        self.0.drop_keyspace(keyspace, wait)
    }

    passed_on!(0);
}

#[test]
fn catalog_changes_of_another_process_are_visible_at_once() {
    let store = SharedStore::default();
    let open = || Database::with_store(store.clone()).unwrap();
    let (here, there) = (open(), open());
    let (mine, theirs) = (here.collection::<Document>("c"), there.collection::<Document>("c"));
    mine.insert_one(&doc! { "_id": 1, "a": 1 }).unwrap();
    assert_eq!(theirs.count_documents(doc! {}).run().unwrap(), 1);
    theirs.create_index(Index::on(doc! { "a": 1 }).unique()).run().unwrap();
    // The index is maintained by the process that did not create it.
    mine.insert_one(&doc! { "_id": 2, "a": 2 }).unwrap();
    assert_eq!(theirs.count_documents(doc! { "a": 2 }).run().unwrap(), 1);
    assert_eq!(mine.insert_one(&doc! { "_id": 3, "a": 2 }).unwrap_err().kind(), ErrorKind::DuplicateKey);
    // So is its multikey flag: a multikey index cannot serve every query that another one can.
    assert_eq!(theirs.distinct("a", doc! {}).run().unwrap().len(), 2);
    mine.insert_one(&doc! { "_id": 4, "a": [3, 30] }).unwrap();
    let filter = doc! { "a": { "$elemMatch": { "$gt": 1, "$lt": 10 } } };
    assert_eq!(theirs.count_documents(filter).run().unwrap(), 1);
    let both = doc! { "a": { "$gt": 20, "$lt": 5 } };
    assert_eq!(theirs.count_documents(both).run().unwrap(), 1);
}

#[test]
fn a_database_opens_beside_the_drops_that_another_process_has_pending() {
    const MINUTE: Duration = Duration::from_secs(60);
    let store = SharedStore::default();
    let open = || Database::with_store(store.clone()).unwrap();
    let db = open();
    let c = db.collection::<Document>("c");
    c.insert_one(&doc! { "_id": 1 }).unwrap();
    let ends = || Err(slate_store::Error::Io(Box::new("the process ends".into())));
    *store.1.lock().unwrap() = Some(Box::new(ends));
    assert!(c.drop().unwrap());
    let pending = || {
        let drops = Bounds { start: Some(b"d"), end: Some(b"e") };
        store.snapshot().unwrap().count(Keyspace(0), drops, |_| true).unwrap()
    };
    // It has failed, and its lease was given up.
    let is_released = || {
        let drops = Bounds { start: Some(b"d"), end: Some(b"e") };
        let released = |_: &[u8], lease: &[u8]| {
            if lease.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        store.snapshot().unwrap().scan(Keyspace(0), drops, released).unwrap().is_some()
    };
    while !is_released() {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(pending(), Some(1));
    let ((begins, begun), (go_on, waits)) = (mpsc::channel(), mpsc::channel::<()>());
    let takes_long = move || {
        begins.send(()).unwrap();
        waits.recv_timeout(MINUTE).map_err(|_| slate_store::Error::Io(Box::new("the database does not open".into())))
    };
    *store.1.lock().unwrap() = Some(Box::new(takes_long));
    let opened = open();
    begun.recv_timeout(MINUTE).unwrap();
    opened.collection::<Document>("c").insert_one(&doc! { "_id": 2 }).unwrap();
    assert_eq!(pending(), Some(1));
    go_on.send(()).expect("the drop waits, and the database is open");
    while pending() != Some(0) {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(opened.collection::<Document>("c").count_documents(doc! {}).run().unwrap(), 1);
}

/// The version of the catalog travels beside the first reads of a call, which uses the catalog that it knows.
#[test]
fn a_call_that_used_an_outdated_catalog_is_repeated_whatever_it_found() {
    let store = SharedStore::default();
    let open = || Database::with_store(store.clone()).unwrap();
    let (here, there) = (open(), open());
    let (mine, theirs) = (here.collection::<Document>("c"), there.collection::<Document>("c"));
    let know = || {
        mine.insert_one(&doc! { "_id": 1, "a": 1 }).unwrap();
        assert!(theirs.find_by_id(1).unwrap().is_some());
    };
    // What is missing by the old catalog.
    assert!(theirs.find_by_id(1).unwrap().is_none());
    know();
    // What is there by the old catalog.
    mine.drop().unwrap();
    assert!(theirs.find_by_id(1).unwrap().is_none());
    know();
    mine.drop().unwrap();
    know();
    // The documents of the old collection are gone, those of the new one have other keys.
    let renew = || {
        mine.drop().unwrap();
        mine.insert_one(&doc! { "_id": 2, "a": 1 }).unwrap();
    };
    renew();
    assert_eq!(theirs.find(doc! { "a": 1 }).run().unwrap().count(), 1);
    renew();
    assert_eq!(theirs.update_one(doc! { "_id": 2 }, doc! { "$set": { "a": 2 } }).run().unwrap().matched, 1);
    mine.drop().unwrap();
    // A document that the old collection would refuse, and an index that only the old one has.
    theirs.insert_one(&doc! { "_id": 1, "a": 5 }).unwrap();
    assert_eq!(mine.find_by_id(1).unwrap().unwrap().get_i32("a").unwrap(), 5);
    mine.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    assert_eq!(theirs.find(doc! { "a": 5 }).hint(Hint::Name("a_1".into())).run().unwrap().count(), 1);
    mine.drop_index("a_1").unwrap();
    assert!(theirs.find(doc! { "a": 5 }).hint(Hint::Name("a_1".into())).run().is_err());
    // A view in place of a collection, and the other way round.
    mine.drop().unwrap();
    here.collection::<Document>("base").insert_one(&doc! { "_id": 9, "a": 9 }).unwrap();
    let view = doc! { "create": "c", "viewOn": "base", "pipeline": [{ "$match": { "a": 9 } }] };
    here.commands().run(view).unwrap();
    assert_eq!(theirs.find(doc! {}).run().unwrap().count(), 1);
    assert!(theirs.insert_one(&doc! { "_id": 1 }).is_err());
    mine.drop().unwrap();
    theirs.insert_one(&doc! { "_id": 1 }).unwrap();
}

type Call = dyn Fn(&slate_core::Collection<Document>) -> slate_core::Result<()>;

/// As a newer version of Slate does that is started beside it.
#[test]
fn a_process_that_runs_refuses_a_newer_format_from_the_next_call_on() {
    let store = SharedStore::default();
    let open = || Database::with_store(store.clone()).unwrap();
    let (old, other) = (open(), open());
    let rows = old.collection::<Document>("rows");
    rows.insert_one(&doc! { "_id": 1, "a": 1 }).unwrap();
    assert!(rows.find_by_id(1).unwrap().is_some());
    let snapshot = old.snapshot().unwrap();
    // The format, and the version of the catalog, which each call compares.
    let mut newer = store.begin(Duration::ZERO).unwrap();
    newer.put(Keyspace(0), b"f", &99_u32.to_be_bytes()).unwrap();
    let version = newer.view().get(Keyspace(0), b"v", |stored| u64::from_be_bytes(stored.try_into().unwrap()));
    newer.put(Keyspace(0), b"v", &(version.unwrap().unwrap() + 1).to_be_bytes()).unwrap();
    newer.commit(Durability::Sync).unwrap();
    let calls: [&Call; 6] = [
        &|rows| rows.find_by_id(1).map(drop),
        &|rows| rows.find(doc! { "a": 1 }).run().map(drop),
        &|rows| rows.insert_one(&doc! { "_id": 2 }).map(drop),
        &|rows| rows.update_one(doc! { "_id": 1 }, doc! { "$set": { "a": 2 } }).run().map(drop),
        &|rows| rows.create_index(Index::on(doc! { "a": 1 })).run().map(drop),
        &|rows| rows.drop().map(drop),
    ];
    for (number, call) in calls.iter().enumerate() {
        for db in [&old, &other] {
            let refused = call(&db.collection("rows")).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::NewerVersion, "{number}: {refused}");
        }
    }
    assert_eq!(old.begin().map(drop).unwrap_err().kind(), ErrorKind::NewerVersion);
    assert_eq!(snapshot.collection::<Document>("rows").count_documents(doc! {}).run().unwrap(), 1, "an earlier commit");
}

/// The version of the catalog travels beside the first reads of a call.
#[test]
fn calls_of_a_shared_store_make_few_rounds() {
    let local = LocalDistant::default();
    let rounds = local.rounds.clone();
    let store = SharedStore(DistantStore::over(local), Arc::default());
    let db = Database::with_store(store.clone()).unwrap();
    let rows = db.collection::<Document>("rows");
    rows.create_index(Index::on(doc! { "u": 1 }).unique()).run().unwrap();
    let insert = |id: i32| rows.insert_one(&doc! { "_id": id, "u": id }).unwrap();
    insert(1);
    insert(2);
    // Nothing is gathered beside the calls that follow, and the catalog is read.
    rows.analyze().unwrap();
    assert!(rows.find_by_id(2).unwrap().is_some());
    let spent = |call: &dyn Fn()| {
        rounds.take();
        call();
        rounds.take()
    };
    assert_eq!(spent(&|| assert!(rows.find_by_id(1).unwrap().is_some())), 1);
    assert_eq!(spent(&|| assert!(rows.find_one(doc! { "_id": 2 }).run().unwrap().is_some())), 1);
    // What is read together, and the commit.
    assert_eq!(spent(&|| drop(insert(3))), 2);
    let increment = || rows.update_one(doc! { "_id": 3 }, doc! { "$inc": { "n": 1 } }).run().unwrap().modified;
    assert_eq!(spent(&|| assert_eq!(increment(), 1)), 2);
}

/// Ends threads also if the test fails meanwhile.
struct SetOnDrop<'b>(&'b AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writers that never pause, in two processes, while a third one changes definitions.
#[test]
fn a_change_of_a_definition_beside_steady_writers_needs_few_attempts() {
    let store = SharedStore::default();
    let open = || Database::with_store(store.clone()).unwrap();
    let (changer, writers) = (open(), [open(), open()]);
    let rows = |db: &Database| db.collection::<Document>("rows");
    // A build takes far longer than a write, so that its first attempt always conflicts, and without an announcement every other one.
    let row = |n: i32| doc! { "_id": -n, "a": (0..20).map(|at| n * 20 + at).collect::<Vec<_>>() };
    rows(&changer).insert_many(&(0..1_000).map(row).collect::<Vec<_>>()).run().unwrap();
    let (done, written) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let _ends = SetOnDrop(&done);
        for (number, db) in writers.iter().enumerate() {
            let (done, written) = (&done, &written);
            scope.spawn(move || {
                let rows = db.collection::<Document>("rows");
                for n in 0.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let id = format!("{number}-{n}");
                    rows.insert_one(&doc! { "_id": &id, "a": n % 7 }).unwrap();
                    rows.delete_one(doc! { "_id": &id }).run().unwrap();
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..2 {
            for create in [true, false] {
                let before = (written.load(Ordering::Relaxed), changer.metrics().retries);
                match create {
                    true => drop(rows(&changer).create_index(Index::on(doc! { "a": 1 })).run().unwrap()),
                    false => assert!(rows(&changer).drop_index("a_1").unwrap()),
                }
                let attempts = changer.metrics().retries - before.1;
                assert!(attempts <= 20, "{attempts} more attempts");
                while written.load(Ordering::Relaxed) <= before.0 {
                    thread::yield_now();
                }
            }
        }
    });
    assert!(rows(&changer).verify().run().unwrap().is_sound());
}

/// Streams of a process beside others are woken by one thread of the pool together, which also serves other calls.
#[test]
fn streams_wait_for_the_commits_of_another_process_on_one_thread() {
    let store = SharedStore::default();
    let there = Database::with_store(store.clone()).unwrap();
    there.enable_changes(slate_core::ChangeLog::new()).unwrap();
    there.collection::<Document>("c").insert_one(&doc! { "_id": 0 }).unwrap();
    let here = slate_core::aio::Database::from(Database::with_store(store).unwrap());
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).max_blocking_threads(2).enable_time().build().unwrap();
    let within = Duration::from_secs(20);
    runtime.block_on(async {
        let mut streams = tokio::task::JoinSet::new();
        let (told, mut opened) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..200 {
            let (here, told) = (here.clone(), told.clone());
            streams.spawn(async move {
                let watched = here.collection::<Document>(if number % 100 == 0 { "c" } else { "others" });
                let mut stream = watched.watch([] as [Document; 0]).await.unwrap();
                told.send(()).unwrap();
                stream.next().await.unwrap().unwrap();
            });
        }
        for _ in 0..200 {
            opened.recv().await.unwrap();
        }
        // Longer than a few looks, so that all wait.
        tokio::time::sleep(Duration::from_millis(50)).await;
        there.collection::<Document>("c").insert_one(&doc! { "_id": 1 }).unwrap();
        for _ in 0..2 {
            tokio::time::timeout(within, streams.join_next()).await.unwrap().unwrap().unwrap();
        }
        assert_eq!(streams.len(), 198);
        assert_eq!(here.collection::<Document>("c").find(doc! {}).collect().await.unwrap().len(), 2);
        // A cursor of the commands is woken, too.
        let commands = here.commands();
        let watch = doc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {} };
        let reply = commands.run(watch).await.unwrap();
        let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
        let changed = commands.changed(id);
        there.collection::<Document>("c").insert_one(&doc! { "_id": 2 }).unwrap();
        tokio::time::timeout(within, changed).await.unwrap();
    });
    runtime.shutdown_background();
}

#[test]
fn a_get_more_looks_for_the_commits_of_another_process() {
    let store = SharedStore::default();
    let there = Database::with_store(store.clone()).unwrap();
    there.enable_changes(slate_core::ChangeLog::new()).unwrap();
    let here = Database::with_store(store).unwrap();
    let commands = here.commands();
    let watch = doc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {} };
    let reply = commands.run(watch).unwrap();
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let reply = commands.run(doc! { "getMore": id, "collection": "c", "maxTimeMS": 600_000 }).unwrap();
            reply.get_document("cursor").unwrap().get_array("nextBatch").unwrap().into_iter().count()
        });
        std::thread::sleep(Duration::from_millis(20));
        there.collection::<Document>("c").insert_one(&doc! { "_id": 1 }).unwrap();
        assert_eq!(waiting.join().unwrap(), 1);
    });
}

#[test]
fn a_serializable_transaction_conflicts_with_writes_of_another_process() {
    use slate_core::{Isolation, TransactionOptions};

    let store = SharedStore::default();
    let (here, there) = (Database::with_store(store.clone()).unwrap(), Database::with_store(store.clone()).unwrap());
    let (mine, theirs) = (here.collection::<Document>("c"), there.collection::<Document>("c"));
    mine.insert_one(&doc! { "_id": 1, "a": 1 }).unwrap();
    let options = TransactionOptions::new().isolation(Isolation::Serializable);
    let transaction = here.begin_with(&options).unwrap();
    let inside = transaction.collection::<Document>("c");
    assert_eq!(inside.count_documents(doc! { "a": { "$gt": 0 } }).run().unwrap(), 1);
    transaction.collection::<Document>("log").insert_one(&doc! { "counted": 1 }).unwrap();
    theirs.insert_one(&doc! { "_id": 2, "a": 2 }).unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

/// Three handles stand for three processes: each has its own catalog and shares only the store.
#[test]
fn indexes_built_and_dropped_beside_writers_of_other_processes_have_all_entries() {
    let store = SharedStore::default();
    let open = || Database::with_store(store.clone()).unwrap();
    let databases = [open(), open(), open()];
    let rows = |at: usize| databases[at].collection::<Document>("rows");
    rows(0).insert_many(&(0..3_000).map(|n| doc! { "_id": n, "a": n % 10 }).collect::<Vec<_>>()).run().unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 1..3 {
            let (databases, done) = (&databases, &done);
            scope.spawn(move || {
                let mut next = writer * 1_000_000;
                while !done.load(Ordering::Relaxed) {
                    next += 1;
                    // Some transactions begin before a definition changes and commit after it.
                    let written = (|| {
                        let transaction = databases[writer].begin()?;
                        let rows = transaction.collection::<Document>("rows");
                        let id = i64::try_from(next).unwrap();
                        rows.insert_one(&doc! { "_id": id, "a": id % 10 })?;
                        rows.update_one(doc! { "_id": id % 200 }, doc! { "$inc": { "a": 1 } }).run()?;
                        rows.delete_one(doc! { "_id": id - 7 }).run()?;
                        thread::sleep(Duration::from_millis(if next % 8 == 0 { 30 } else { 1 }));
                        transaction.commit()
                    })();
                    if let Err(error) = written {
                        assert!(error.is_retryable(), "{error}");
                    }
                }
            });
        }
        let built = (|| {
            rows(0).create_index(Index::on(doc! { "a": 1 })).run()?;
            rows(0).drop_index("a_1")?;
            rows(1).create_index(Index::on(doc! { "a": -1 })).run()?;
            rows(2).create_index(Index::on(doc! { "a": 1, "_id": 1 })).run()
        })();
        done.store(true, Ordering::Relaxed);
        built.unwrap();
    });
    for database in &databases {
        let report = database.collection::<Document>("rows").verify().run().unwrap();
        assert!(report.is_sound(), "{report:?}");
    }
    assert_eq!(rows(2).list_indexes().unwrap().len(), 2);
}
