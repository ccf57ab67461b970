//! Work that one process at a time does on a store that several processes write to: two handles of a database stand for two processes.

use std::{
    path::Path,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use bson::{Document, doc};
use slate_core::{Collection, Database};
use slate_store::{
    Bounds, Capabilities, Keyspace, Result, Size, SizeDetail, Store, Version, View, memory::MemoryStore,
};

type Inner = <MemoryStore as Store>::Snapshot;

const MINUTE: Duration = Duration::from_secs(60);

/// A store that others also write to. Drops of keyspaces, and the threads that gather statistics, wait at its gate.
#[derive(Clone, Default)]
struct GatedStore {
    store: MemoryStore,
    watch: Arc<Watch>,
}

#[derive(Default)]
struct Watch {
    is_closed: Mutex<bool>,
    opened: Condvar,
    /// Whether the next drop of a keyspace fails.
    fails: Mutex<bool>,
    drops: AtomicUsize,
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
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < MINUTE, "what is waited for does not come");
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
        Ok(GatedView { view: self.store.snapshot()?, watch: Arc::clone(&self.watch) })
    }

    fn begin(&self, wait: Duration) -> Result<Self::Transaction> {
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

#[derive(Clone)]
struct GatedView {
    view: Inner,
    watch: Arc<Watch>,
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
        self.view.cursor(keyspace, bounds)
    }

    fn point_reader(&self) -> Result<Self::PointReader> {
        self.view.point_reader()
    }
}

const CATALOG: Keyspace = Keyspace(0);

impl GatedStore {
    fn open(&self) -> Database {
        Database::with_store(self.clone()).unwrap()
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
fn a_pending_drop_is_executed_by_one_process_at_a_time() {
    let store = GatedStore::default();
    let db = store.open();
    rows(&db).insert_one(&doc! { "_id": 1 }).unwrap();
    *store.watch.fails.lock().unwrap() = true;
    assert!(rows(&db).drop().unwrap());
    assert_eq!((store.pending_drops(), store.drops()), (1, 1), "it has failed, and was given up");
    store.watch.close();
    let first = store.open();
    wait_until(|| store.drops() == 2);
    let before = store.begun_beside();
    let second = store.open();
    // It looks for the lease, which the first one has.
    wait_until(|| store.begun_beside() > before);
    store.watch.open();
    wait_until(|| store.pending_drops() == 0);
    drop((first, second));
    assert_eq!(store.drops(), 2);
}

#[test]
fn a_process_that_opens_beside_a_drop_leaves_it_to_the_call_that_makes_it() {
    let store = GatedStore::default();
    let db = store.open();
    rows(&db).insert_one(&doc! { "_id": 1 }).unwrap();
    store.watch.close();
    let (dropped, is_dropped) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| dropped.send(rows(&db).drop().unwrap()).unwrap());
        wait_until(|| store.drops() == 1);
        let other = store.open();
        wait_until(|| store.begun_beside() > 0);
        // The collection is gone for it, and a new one can have its name.
        rows(&other).insert_one(&doc! { "_id": 2 }).unwrap();
        store.watch.open();
        assert!(is_dropped.recv_timeout(MINUTE).unwrap());
        assert_eq!((store.pending_drops(), store.drops()), (0, 1));
        assert_eq!(rows(&other).count_documents(doc! {}).run().unwrap(), 1);
    });
}
