//! A database whose device is full refuses writes and answers queries, and goes on when there is room.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use bson::{Document, doc};
use slate_core::{Collection, Database, ErrorKind, Index, Isolation, Result, Transaction, TransactionOptions};
use slate_store::redb::{Options, RedbStore, StorageBackend};

/// A device in memory that takes a number of writes before it is full.
#[derive(Clone, Debug)]
struct Device {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: Arc<AtomicUsize>,
}

impl Device {
    fn new() -> Self {
        Self { bytes: Arc::default(), room: Arc::new(AtomicUsize::new(usize::MAX)) }
    }

    fn write_goes_well(&self) -> io::Result<()> {
        let taken = self.room.fetch_update(SeqCst, SeqCst, |room| room.checked_sub(1));
        taken.map(drop).map_err(|_| io::ErrorKind::StorageFull.into())
    }

    /// Returns what the device has after the process was killed.
    fn after_kill(&self) -> Self {
        Self { bytes: Arc::new(Mutex::new(self.bytes.lock().unwrap().clone())), ..Self::new() }
    }

    fn open(&self) -> Database {
        // A small cache, so that reads come from the device.
        let options = Options::default().cache_bytes(64 << 10);
        Database::with_store(RedbStore::open_over(self.clone(), &options).unwrap()).unwrap()
    }
}

impl StorageBackend for Device {
    fn len(&self) -> io::Result<u64> {
        Ok(u64::try_from(self.bytes.lock().unwrap().len()).unwrap())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        out.copy_from_slice(&self.bytes.lock().unwrap()[offset..offset + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.write_goes_well()?;
        self.bytes.lock().unwrap().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_goes_well()?;
        let offset = usize::try_from(offset).unwrap();
        self.bytes.lock().unwrap()[offset..offset + data.len()].copy_from_slice(data);
        Ok(())
    }
}

fn documents(range: std::ops::Range<i32>) -> Vec<Document> {
    range.map(|n| doc! { "_id": n, "n": n % 10, "text": "x".repeat(300) }).collect()
}

/// Checks what is stored, read by every way.
fn assert_stored(items: &Collection<Document>, stored: u64) {
    assert_eq!(items.count_documents(doc! { "text": { "$exists": true } }).run().unwrap(), stored);
    assert_eq!(items.count_documents(doc! { "n": 7 }).run().unwrap(), stored / 10);
    assert_eq!(items.estimated_document_count().unwrap(), stored);
    assert!(items.verify().run().unwrap().is_sound());
}

#[test]
fn a_database_on_a_full_device_answers_queries_and_writes_again_when_there_is_room() {
    for room in (0..60).step_by(3) {
        let device = Device::new();
        let db = device.open();
        let items = db.collection::<Document>("items");
        items.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
        items.insert_many(&documents(0..1_000)).run().unwrap();
        let cursor = items.find(doc! {}).run().unwrap();
        items.insert_many(&documents(1_000..1_100)).run().unwrap();

        device.room.store(room, SeqCst);
        let refused = |result: Result<()>| {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Full, "{error}");
        };
        refused(items.insert_many(&documents(1_100..1_200)).run().map(drop));
        refused(items.update_many(doc! {}, doc! { "$inc": { "n": 1 } }).run().map(drop));
        refused(items.delete_one(doc! { "_id": 1 }).run().map(drop));
        refused(items.create_index(Index::on(doc! { "text": 1 })).run().map(drop));
        refused(db.collection::<Document>("more").create());
        refused(
            db.transact(|tx| tx.collection::<Document>("items").insert_many(&documents(1_100..1_200)).run()).map(drop),
        );
        assert_stored(&items, 1_100);

        device.room.store(usize::MAX, SeqCst);
        items.insert_many(&documents(1_100..1_200)).run().unwrap();
        assert_stored(&items, 1_200);
        items.create_index(Index::on(doc! { "text": 1 })).run().unwrap();
        items.delete_many(doc! { "_id": { "$gte": 1_100 } }).run().unwrap();
        assert_eq!(cursor.count(), 1_000, "the cursor still shows its commit");
        assert_stored(&device.after_kill().open().collection("items"), 1_100);
        drop((items, db));
        assert_stored(&device.open().collection("items"), 1_100);
    }
}

/// Nothing of a commit that failed with `Full` is visible. So no transaction conflicts with it, for ever as with one of unknown outcome.
#[test]
fn a_commit_that_did_not_fit_makes_no_serializable_transaction_conflict() {
    let device = Device::new();
    let db = device.open();
    let items = db.collection::<Document>("items");
    items.insert_many(&documents(0..100)).run().unwrap();
    let count_and_insert = |tx: &Transaction| {
        let items = tx.collection::<Document>("items");
        let counted = items.count_documents(doc! { "n": { "$gte": 0 } }).run()?;
        items.insert_one(&doc! { "_id": i32::try_from(counted).unwrap(), "n": 0 })
    };
    device.room.store(5, SeqCst);
    let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
    for error in [
        db.transact_with(&serializable, count_and_insert).unwrap_err(),
        items.insert_one(&doc! { "_id": -1 }).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    }
    device.room.store(usize::MAX, SeqCst);
    db.transact_with(&serializable, count_and_insert).unwrap();
    assert_eq!(items.count_documents(doc! {}).run().unwrap(), 101);
}
