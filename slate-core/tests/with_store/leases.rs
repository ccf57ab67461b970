//! Work that one process at a time does on a store that several processes write to: two handles of a database stand for two processes.

use std::{
    ops::ControlFlow,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bson::{Document, doc};
use slate_core::{Collection, Database};
use slate_store::{
    Bounds, Capabilities, Durability, Keyspace, Result, Store, Transaction, TransactionExt, Version, View,
    memory::MemoryStore,
};

use super::passed_on::passed_on;

type Inner = <MemoryStore as Store>::Snapshot;

const MINUTE: Duration = Duration::from_secs(60);

/// A store that others also write to. Drops of keyspaces, and the threads that gather statistics, wait at its gate.
#[derive(Clone, Default)]
struct GatedStore {
    store: MemoryStore,
    watch: Arc<Watch>,
    /// Whether the process of this handle has ended: nothing that it does succeeds any more.
    has_ended: Arc<AtomicBool>,
}

/// The keys that are deleted together by a drop of a keyspace.
const STEP: usize = 1_000;

#[derive(Default)]
struct Watch {
    is_closed: Mutex<bool>,
    opened: Condvar,
    /// Whether the next drop of a keyspace fails.
    fails: Mutex<bool>,
    /// After how many steps of a drop which process ends.
    ends_after: Mutex<Option<(usize, Arc<AtomicBool>)>>,
    drops: AtomicUsize,
    /// The keys that drops have deleted.
    deleted: AtomicUsize,
    gatherings: AtomicUsize,
    /// The transactions of the threads that work beside calls.
    begun_beside: AtomicUsize,
}

impl Watch {
    fn pass(&self) {
        let closed = self.is_closed.lock().unwrap();
        let (closed, waited) = self.opened.wait_timeout_while(closed, MINUTE, |closed| *closed).unwrap();
        drop(closed);
        assert!(!waited.timed_out(), "the gate stays closed");
    }

    fn close(&self) {
        *self.is_closed.lock().unwrap() = true;
    }

    fn open(&self) {
        *self.is_closed.lock().unwrap() = false;
        self.opened.notify_all();
    }
}

fn is_beside(name: &str) -> bool {
    thread::current().name() == Some(name)
}

fn wait_until(condition: impl Fn() -> bool) {
    wait_within(MINUTE, condition);
}

fn wait_within(longest: Duration, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < longest, "what is waited for does not come");
        thread::sleep(Duration::from_millis(1));
    }
}

impl Store for GatedStore {
    type Snapshot = GatedView;
    type Transaction = <MemoryStore as Store>::Transaction;

    fn capabilities(&self) -> Capabilities {
        Capabilities { exclusive: false, ..self.store.capabilities() }
    }

    fn snapshot(&self) -> Result<GatedView> {
        check_alive(&self.has_ended)?;
        let (watch, has_ended) = (Arc::clone(&self.watch), Arc::clone(&self.has_ended));
        Ok(GatedView { view: self.store.snapshot()?, watch, has_ended })
    }

    fn begin(&self, wait: Duration) -> Result<Self::Transaction> {
        check_alive(&self.has_ended)?;
        let begun = self.store.begin(wait);
        if is_beside("slate-statistics") || is_beside("slate-drops") {
            self.watch.begun_beside.fetch_add(1, Ordering::SeqCst);
        }
        begun
    }

    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<Version> {
        self.watch.drops.fetch_add(1, Ordering::SeqCst);
        if std::mem::take(&mut *self.watch.fails.lock().unwrap()) {
            return Err(slate_store::Error::Io(Box::new("the process ends".into())));
        }
        self.watch.pass();
        for step in 1.. {
            check_alive(&self.has_ended)?;
            let mut transaction = self.store.begin(wait)?;
            let mut keys: Vec<Vec<u8>> = Vec::new();
            transaction.view().scan(keyspace, Bounds::ALL, |key, _| {
                keys.push(key.to_vec());
                if keys.len() < STEP { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            if keys.is_empty() {
                break;
            }
            keys.iter().try_for_each(|key| transaction.delete(keyspace, key))?;
            transaction.commit(Durability::Deferred)?;
            self.watch.deleted.fetch_add(keys.len(), Ordering::SeqCst);
            let mut ends_after = self.watch.ends_after.lock().unwrap();
            if let Some((_, has_ended)) = ends_after.take_if(|(last, _)| *last == step) {
                has_ended.store(true, Ordering::SeqCst);
            }
        }
        Ok(self.store.snapshot()?.version())
    }

    passed_on!(store);
}

#[derive(Clone)]
struct GatedView {
    view: Inner,
    watch: Arc<Watch>,
    has_ended: Arc<AtomicBool>,
}

fn check_alive(has_ended: &AtomicBool) -> Result<()> {
    match has_ended.load(Ordering::SeqCst) {
        true => Err(slate_store::Error::Io(Box::new("the process has ended".into()))),
        false => Ok(()),
    }
}

impl View for GatedView {
    type Cursor = <Inner as View>::Cursor;
    type PointReader = <Inner as View>::PointReader;

    fn version(&self) -> Version {
        self.view.version()
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Self::Cursor> {
        // Statistics are gathered by walks over whole keyspaces.
        if keyspace != CATALOG && bounds.end.is_none() && is_beside("slate-statistics") {
            self.watch.gatherings.fetch_add(1, Ordering::SeqCst);
            self.watch.pass();
        }
        check_alive(&self.has_ended)?;
        self.view.cursor(keyspace, bounds)
    }

    fn point_reader(&self) -> Result<Self::PointReader> {
        self.view.point_reader()
    }
}

const CATALOG: Keyspace = Keyspace(0);

impl GatedStore {
    fn open(&self) -> Database {
        self.process().0
    }

    /// Opens the database as another process, which the flag ends.
    fn process(&self) -> (Database, Arc<AtomicBool>) {
        let process = Self { has_ended: Arc::default(), ..self.clone() };
        let has_ended = Arc::clone(&process.has_ended);
        (Database::with_store(process).unwrap(), has_ended)
    }

    /// Returns the number of keys of the catalog of a kind.
    fn catalog_keys(&self, kind: u8) -> u64 {
        let bounds = Bounds { start: Some(&[kind]), end: Some(&[kind + 1]) };
        self.store.snapshot().unwrap().count(CATALOG, bounds, |_| true).unwrap().unwrap()
    }

    fn pending_drops(&self) -> u64 {
        self.catalog_keys(b'd')
    }

    fn begun_beside(&self) -> usize {
        self.watch.begun_beside.load(Ordering::SeqCst)
    }

    fn drops(&self) -> usize {
        self.watch.drops.load(Ordering::SeqCst)
    }
}

fn rows(db: &Database) -> Collection<Document> {
    db.collection("rows")
}

#[test]
fn statistics_are_gathered_by_one_process_at_a_time_beside_its_calls() {
    let store = GatedStore::default();
    let (here, there) = (store.open(), store.open());
    let many = |from: i32| (from..from + 2_000).map(|n| doc! { "_id": n }).collect::<Vec<_>>();
    let gatherings = || store.watch.gatherings.load(Ordering::SeqCst);
    store.watch.close();
    // The call returns while its statistics wait at the gate.
    rows(&here).insert_many(&many(0)).run().unwrap();
    wait_until(|| gatherings() == 1);
    assert_eq!((store.catalog_keys(b'h'), store.catalog_keys(b's')), (1, 0), "a lease, and no statistics");
    let before = store.begun_beside();
    rows(&there).insert_many(&many(2_000)).run().unwrap();
    // The other process looks for the lease.
    wait_until(|| store.begun_beside() > before);
    store.watch.open();
    wait_until(|| store.catalog_keys(b's') == 1);
    assert_eq!((store.catalog_keys(b'h'), gatherings()), (0, 1));
    // Both go on: the lease was given up.
    rows(&there).insert_many(&many(10_000)).run().unwrap();
    rows(&there).insert_many(&many(20_000)).run().unwrap();
    wait_until(|| gatherings() >= 2 && store.catalog_keys(b'h') == 0);
}

#[test]
fn a_process_does_not_gather_what_another_one_has_gathered() {
    let store = GatedStore::default();
    let (here, there) = (store.open(), store.open());
    let many = |from: i32, count: i32| (from..from + count).map(|n| doc! { "_id": n }).collect::<Vec<_>>();
    rows(&here).insert_one(&doc! { "_id": -1 }).unwrap();
    // It sees no statistics, and the 2,000 documents that it adds make them stale.
    let transaction = there.begin().unwrap();
    transaction.collection::<Document>("rows").insert_many(&many(0, 2_000)).run().unwrap();
    // The other process has gathered them meanwhile, with more documents than that would change by half.
    rows(&here).insert_many(&many(10_000, 5_000)).run().unwrap();
    wait_until(|| (store.catalog_keys(b's'), store.catalog_keys(b'h')) == (1, 0));
    let (gathered, begun) = (store.watch.gatherings.load(Ordering::SeqCst), store.begun_beside());
    transaction.commit().unwrap();
    // What is gathered next in that process is another collection, by two transactions: that of the lease, and that of the statistics.
    there.collection::<Document>("others").insert_many(&many(0, 2_000)).run().unwrap();
    wait_until(|| (store.catalog_keys(b's'), store.catalog_keys(b'h')) == (2, 0));
    assert_eq!(store.watch.gatherings.load(Ordering::SeqCst), gathered + 1);
    assert_eq!(store.begun_beside(), begun + 2, "no lease is taken to find that nothing is to be done");
}

#[test]
fn a_drop_returns_before_its_keys_are_deleted_by_one_process_at_a_time() {
    let store = GatedStore::default();
    let (db, other) = (store.open(), store.open());
    rows(&db).insert_one(&doc! { "_id": 1 }).unwrap();
    store.watch.close();
    assert!(rows(&db).drop().unwrap());
    wait_until(|| store.drops() == 1);
    // One that opens meanwhile looks for the lease, and so does one that finds the collection gone. A new one can have its name.
    let before = store.begun_beside();
    let opened = store.open();
    rows(&other).insert_one(&doc! { "_id": 2 }).unwrap();
    wait_until(|| store.begun_beside() >= before + 2);
    assert_eq!((store.pending_drops(), store.drops()), (1, 1));
    store.watch.open();
    wait_until(|| store.pending_drops() == 0);
    assert_eq!(rows(&opened).count_documents(doc! {}).run().unwrap(), 1);
    drop((db, other, opened));
    assert_eq!(store.drops(), 1);
}

#[test]
fn a_drop_that_fails_is_tried_again_by_the_process_that_has_it_open() {
    let store = GatedStore::default();
    let db = store.open();
    rows(&db).insert_one(&doc! { "_id": 1 }).unwrap();
    *store.watch.fails.lock().unwrap() = true;
    assert!(rows(&db).drop().unwrap());
    wait_until(|| store.pending_drops() == 0);
    assert_eq!(store.drops(), 2);
}

/// The two processes are open before the drop.
#[test]
fn a_drop_whose_process_ends_half_way_is_completed_by_another_one_after_its_lease() {
    let store = GatedStore::default();
    let (here, has_ended) = store.process();
    let there = store.open();
    rows(&here).insert_many(&(0..5_000).map(|n| doc! { "_id": n }).collect::<Vec<_>>()).run().unwrap();
    assert_eq!(rows(&there).count_documents(doc! {}).run().unwrap(), 5_000);
    *store.watch.ends_after.lock().unwrap() = Some((2, has_ended));
    assert!(rows(&here).drop().unwrap());
    wait_until(|| store.watch.ends_after.lock().unwrap().is_none());
    assert!(rows(&here).estimated_document_count().is_err(), "the process has ended");
    let deleted = || store.watch.deleted.load(Ordering::SeqCst);
    assert_eq!((store.pending_drops(), deleted()), (1, 2 * STEP));
    // The collection is gone for the other one, which thereby learns of the drop.
    assert_eq!(rows(&there).count_documents(doc! {}).run().unwrap(), 0);
    wait_within(4 * MINUTE, || store.pending_drops() == 0);
    assert_eq!((deleted(), store.drops()), (5_000, 2), "no key is deleted twice");
    let records = Keyspace(1);
    assert_eq!(store.store.snapshot().unwrap().count(records, Bounds::ALL, |_| true).unwrap(), Some(0));
}

#[test]
fn statistics_whose_process_ends_half_way_are_gathered_by_another_one_after_its_lease() {
    let store = GatedStore::default();
    let (here, has_ended) = store.process();
    let there = store.open();
    let next = std::cell::Cell::new(0);
    // As many as make statistics stale.
    let insert = |db: &Database| {
        let from = next.replace(next.get() + 2_000);
        rows(db).insert_many(&(from..from + 2_000).map(|n| doc! { "_id": n }).collect::<Vec<_>>()).run().unwrap();
    };
    let gatherings = || store.watch.gatherings.load(Ordering::SeqCst);
    store.watch.close();
    insert(&here);
    wait_until(|| gatherings() == 1);
    has_ended.store(true, Ordering::SeqCst);
    store.watch.open();
    let stored = || (store.catalog_keys(b'h'), store.catalog_keys(b's'));
    let before = store.begun_beside();
    insert(&there);
    wait_until(|| store.begun_beside() > before);
    assert_eq!((stored(), gatherings()), ((1, 0), 1), "the lease of the process that has ended stands");
    wait_within(4 * MINUTE, || {
        insert(&there);
        thread::sleep(Duration::from_secs(2));
        stored() == (0, 1)
    });
    assert_eq!(gatherings(), 2);
    assert_eq!(rows(&there).count_documents(doc! {}).run().unwrap(), u64::try_from(next.get()).unwrap());
}
