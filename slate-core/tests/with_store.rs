//! A custom backend passes the conformance suite and serves a database.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "with_store/ahead.rs"]
mod ahead;
#[path = "with_store/btree.rs"]
mod btree;
#[cfg(feature = "tikv")]
#[path = "with_store/cluster.rs"]
mod cluster;
#[path = "with_store/distant.rs"]
mod distant;
#[cfg(feature = "redb")]
#[path = "with_store/full_device.rs"]
mod full_device;
#[path = "with_store/leases.rs"]
mod leases;
#[path = "with_store/unsure.rs"]
mod unsure;

use bson::{Document, doc};
use btree::BTreeStore;
use distant::{DistantStore, LocalDistant};
use slate_core::{CancelToken, Database, ErrorKind, Hint, Index, RenameTarget};
use slate_store::{
    Bounds, Capabilities, Durability, Keyspace, Result, Size, SizeDetail, Store, Transaction, TransactionExt, Version,
    View, memory::MemoryStore,
};
use std::{
    ops::ControlFlow,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

slate_store_conformance::conformance!(btree_store, |_| crate::btree::BTreeStore::default());
slate_store_conformance::conformance!(distant_store, |_| crate::distant::DistantStore::default());

#[test]
fn a_database_over_a_custom_store_works_like_any_other() {
    let db = Database::with_store(BTreeStore::default()).unwrap();
    let films = db.collection::<Document>("films");
    films.create_index(Index::on(doc! { "year": 1 })).run().unwrap();
    films.create_index(Index::on(doc! { "title": 1 }).unique()).run().unwrap();
    let many: Vec<Document> = (0..500)
        .map(|n| doc! { "_id": n, "title": format!("t{n}"), "year": 1950 + n % 70, "tags": ["a", "b"] })
        .collect();
    films.insert_many(&many).run().unwrap();
    assert_eq!(films.count_documents(doc! { "year": { "$gte": 2000 } }).run().unwrap(), 140);
    let refused = films.insert_one(&doc! { "title": "t7" }).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::DuplicateKey);
    films.update_many(doc! { "year": 1951 }, doc! { "$inc": { "year": 1 } }).run().unwrap();
    assert_eq!(films.count_documents(doc! { "year": 1951 }).run().unwrap(), 0);
    db.transact(|tx| tx.collection::<Document>("films").delete_many(doc! { "tags": "a" }).run()).unwrap();
    assert_eq!(films.estimated_document_count().unwrap(), 0);
}

/// Of a single write, a transaction, and a change of definitions.
#[test]
fn a_commit_without_an_answer_is_an_unknown_outcome_that_is_not_repeated() {
    let store = unsure::UnsureStore::default();
    let db = Database::with_store(store.clone()).unwrap();
    let rows = db.collection::<Document>("rows");
    rows.insert_one(&doc! { "_id": 1, "n": 0 }).unwrap();
    let increments = |expected: i32| {
        let found = rows.find_by_id(1).unwrap().unwrap();
        assert_eq!(found.get_i32("n").unwrap(), expected, "it is made, once");
    };
    let unknown = |error: slate_core::Error| {
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        assert!(!error.is_retryable(), "{error}");
    };
    store.lose_an_answer();
    unknown(rows.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run().unwrap_err());
    increments(1);
    store.lose_an_answer();
    let mut runs = 0;
    let committed = db.transact(|tx| {
        runs += 1;
        tx.collection::<Document>("rows").update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run().map(drop)
    });
    unknown(committed.unwrap_err());
    assert_eq!(runs, 1);
    increments(2);
    assert_eq!(db.metrics().retries, 0);
    // The catalog that the process knows is that of the store, whatever became of the change.
    store.lose_an_answer();
    unknown(db.collection::<Document>("new").insert_one(&doc! { "_id": 1 }).unwrap_err());
    assert_eq!(db.collection::<Document>("new").count_documents(doc! {}).run().unwrap(), 1);
    let twice = db.collection::<Document>("new").insert_one(&doc! { "_id": 1 }).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::DuplicateKey);
}

/// What others do once, at a chosen time.
type Act = Box<dyn FnOnce() + Send>;

/// The memory store, which lets others act right before it reads a key for a point read.
#[derive(Clone, Default)]
struct RacingStore {
    store: MemoryStore,
    act: Arc<Mutex<Option<Act>>>,
}

impl Store for RacingStore {
    type Snapshot = <MemoryStore as Store>::Snapshot;
    type Transaction = <MemoryStore as Store>::Transaction;

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn snapshot(&self) -> Result<Self::Snapshot> {
        self.store.snapshot()
    }

    fn try_get<R>(
        &self,
        keyspace: Keyspace,
        key: &[u8],
        visitor: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<Option<R>>> {
        let act = self.act.lock().unwrap().take();
        act.into_iter().for_each(|act| act());
        self.store.try_get(keyspace, key, visitor)
    }

    fn begin(&self, wait: Duration) -> Result<Self::Transaction> {
        self.store.begin(wait)
    }

    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<Version> {
        self.store.drop_keyspace(keyspace, wait)
    }

    fn flush(&self) -> Result<()> {
        self.store.flush()
    }

    fn backup(&self, to: &Path) -> Result<()> {
        self.store.backup(to)
    }

    fn size(&self, detail: SizeDetail) -> Result<Size> {
        self.store.size(detail)
    }
}

#[test]
fn a_point_read_finds_no_document_that_was_written_after_its_collection_was_renamed() {
    let store = RacingStore::default();
    let db = Database::with_store(store.clone()).unwrap();
    for id in [1, 2] {
        let a = db.collection::<Document>("a");
        a.insert_one(&doc! { "_id": 1 }).unwrap();
        assert!(a.find_by_id(1).unwrap().is_some());
        let other = db.clone();
        let act = move || {
            let rename = other.collection::<Document>("a").rename("b", RenameTarget::DropExisting);
            rename.unwrap();
            let b = other.collection::<Document>("b");
            // It is inserted, or the one that `a` had is deleted after `a` has another one.
            if id == 2 {
                b.insert_one(&doc! { "_id": 2 }).unwrap();
            } else {
                other.collection::<Document>("a").insert_one(&doc! { "_id": 1 }).unwrap();
                b.delete_one(doc! { "_id": 1 }).run().unwrap();
            }
        };
        *store.act.lock().unwrap() = Some(Box::new(act));
        assert_eq!(a.find_by_id(id).unwrap().is_some(), id == 1, "{id}");
        assert!(store.act.lock().unwrap().is_none(), "the read was a point read");
        db.collection::<Document>("a").drop().unwrap();
    }
}

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

    fn flush(&self) -> Result<()> {
        self.0.flush()
    }

    fn backup(&self, to: &Path) -> Result<()> {
        self.0.backup(to)
    }

    fn size(&self, detail: SizeDetail) -> Result<Size> {
        self.0.size(detail)
    }
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

/// Joins documents with those of another collection that have the same value of `k` in a field. Returns how many have one.
fn joined(inputs: &slate_core::Collection<Document>, from: &str, field: &str) -> usize {
    let lookup = doc! { "$lookup": { "from": from, "localField": "k", "foreignField": field, "as": "found" } };
    let found = inputs.aggregate([lookup]).run().unwrap().map(Result::unwrap);
    found.filter(|row| row.get_array("found").unwrap().len() == 1).count()
}

#[test]
fn a_lookup_at_a_distance_finds_the_matches_of_many_documents_together() {
    let local = LocalDistant::default();
    let rounds = local.rounds.clone();
    let db = Database::with_store(DistantStore::over(local)).unwrap();
    let inputs = db.collection::<Document>("inputs");
    inputs.insert_many(&(0..2_000).map(|n| doc! { "_id": n, "k": n * 7 }).collect::<Vec<_>>()).run().unwrap();
    for (name, rows) in [("wide", 20_000), ("narrow", 4_000)] {
        let rows = (0..rows).map(|n| doc! { "_id": n, "k": n }).collect::<Vec<_>>();
        db.collection::<Document>(name).create_index(Index::on(doc! { "k": 1 })).run().unwrap();
        db.collection::<Document>(name).insert_many(&rows).run().unwrap();
    }
    assert!(inputs.find_by_id(1).unwrap().is_some());
    let spent = |from: &str, expected: usize| {
        rounds.take();
        assert_eq!(joined(&inputs, from, "k"), expected);
        rounds.take()
    };
    // Of 128, then of 1,024 documents together: the store opens forty cursors in a round, and their documents follow.
    let through_index = spent("wide", 2_000);
    assert!(through_index <= 170, "{through_index}");
    // After the first two batches the collection is small enough to be read as a whole.
    let read_as_a_whole = spent("narrow", 4_000_usize.div_ceil(7));
    assert!(read_as_a_whole <= 77, "{read_as_a_whole}");
}

#[test]
fn a_store_at_a_distance_is_asked_in_few_rounds() {
    let local = LocalDistant::default();
    let rounds = local.rounds.clone();
    let db = Database::with_store(DistantStore::over(local)).unwrap();
    let rows = db.collection::<Document>("rows");
    rows.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    rows.create_index(Index::on(doc! { "b": 1 }).unique()).run().unwrap();
    let many: Vec<Document> = (0..3_000).map(|n| doc! { "_id": n, "a": n % 300, "b": n }).collect();
    rows.insert_many(&many).run().unwrap();
    // The next write gathers statistics, because the collection has grown; then they are read.
    rows.insert_one(&doc! { "_id": 5_000, "a": 5_000, "b": 5_000 }).unwrap();
    assert!(rows.find_by_id(1).unwrap().is_some());
    let mut seen = Vec::new();
    let mut count = |what: &'static str, call: &dyn Fn() -> usize, rows: usize| {
        rounds.take();
        assert_eq!(call(), rows, "{what}");
        seen.push((what, rounds.take()));
    };
    let found = |filter: Document| rows.find(filter).run().unwrap().count();
    let even: Vec<i32> = (0..100).step_by(2).collect();
    count("find by _id", &|| usize::from(rows.find_by_id(5).unwrap().is_some()), 1);
    count("find of one document by an index", &|| found(doc! { "b": 5 }), 1);
    count("find of 10 documents by an index", &|| found(doc! { "a": 5 }), 10);
    count("find of 500 documents by 50 values of an index", &|| found(doc! { "a": { "$in": &even } }), 500);
    count(
        "count by 50 values of an index",
        &|| rows.count_documents(doc! { "a": { "$in": &even } }).run().unwrap().try_into().unwrap(),
        500,
    );
    count(
        "insert of one document",
        &|| rows.insert_one(&doc! { "_id": 4_000, "a": 1, "b": 4_000 }).map(|_| 1).unwrap(),
        1,
    );
    let more: Vec<Document> = (6_000..7_000).map(|n| doc! { "_id": n, "a": n % 300, "b": n }).collect();
    count(
        "update of one document by an index",
        &|| {
            usize::try_from(rows.update_one(doc! { "b": 7 }, doc! { "$set": { "a": 8 } }).run().unwrap().modified)
                .unwrap()
        },
        1,
    );
    count("insert of 1,000 documents", &|| rows.insert_many(&more).run().unwrap().inserted_ids.len(), 1_000);
    let expected = [
        ("find by _id", 1),
        ("find of one document by an index", 2),
        ("find of 10 documents by an index", 3),
        ("find of 500 documents by 50 values of an index", 4),
        ("count by 50 values of an index", 2),
        ("insert of one document", 2),
        ("update of one document by an index", 3),
        ("insert of 1,000 documents", 2),
    ];
    assert_eq!(seen, expected);

    // A cursor that is cancelled while it passes regions without keys does not find that it has passed all; of a query, and of a write.
    let nothing = || doc! { "a": { "$gt": 100_000 } };
    for write in [false, true] {
        let token = CancelToken::new();
        rounds.cancel_in(1, token.clone());
        let ended = match write {
            false => {
                let mut found = rows.find(nothing()).hint(Hint::Name("a_1".into())).cancel(token).run().unwrap();
                found.next().transpose().map(drop)
            }
            true => rows.delete_many(nothing()).hint(Hint::Name("a_1".into())).cancel(token).run().map(drop),
        };
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Interrupted, "{write}");
    }

    // A count that is cancelled in its first round does not return what it has counted.
    let token = CancelToken::new();
    rounds.cancel_in(1, token.clone());
    let counted = rows.count_documents(doc! { "a": { "$in": &even } }).cancel(token).run();
    assert_eq!(counted.unwrap_err().kind(), ErrorKind::Interrupted);
}
