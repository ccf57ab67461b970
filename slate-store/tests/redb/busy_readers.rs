//! A compaction in steps comes to its end beside readers that never pause.

use std::{
    ops::ControlFlow,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use slate_store::{Durability, Error, SizeDetail, Store, Transaction, TransactionExt, View};

use crate::tools::{A, LONG, begin, keys, open};

const ENTRIES: u32 = 60_000;

#[test]
fn a_compaction_in_steps_ends_beside_readers_that_never_pause() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let length = || path.metadata().unwrap().len();
    let store = open(&path);
    // Each commit inserts every hundredth key, which leaves pages sparse.
    for commit in 0..100 {
        let mut transaction = begin(&store);
        for key in 0..ENTRIES / 100 {
            transaction.put(A, &(key * 100 + commit * 37 % 100).to_be_bytes(), &[7; 150]).unwrap();
        }
        transaction.commit(Durability::Deferred).unwrap();
    }
    let bytes = u64::from(ENTRIES) * 154;
    let used = || {
        let size = store.size(SizeDetail::Measured(LONG)).unwrap();
        size.on_disk.unwrap() - size.free.unwrap()
    };
    let (loaded, sparse, longest) = (length(), used(), AtomicU64::new(0));
    assert!(sparse > bytes * 4 / 3, "{sparse} bytes for {bytes}");
    let (is_over, has_begun) = (AtomicBool::new(false), Barrier::new(3));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut snapshot = store.snapshot().unwrap();
                has_begun.wait();
                while !is_over.load(SeqCst) {
                    // Opened before the last one is dropped: one is always open.
                    let next = store.snapshot().unwrap();
                    thread::sleep(Duration::from_millis(3));
                    assert_eq!(next.get(A, &[0; 4], <[u8]>::len).unwrap(), Some(150));
                    snapshot = next;
                }
                drop(snapshot);
            });
        }
        has_begun.wait();
        let compacted = store.compact_while(LONG, &mut |_, _| {
            longest.fetch_max(length(), SeqCst);
            ControlFlow::Continue(())
        });
        is_over.store(true, SeqCst);
        assert!(compacted.unwrap().is_continue());
    });
    assert!(used() < bytes * 7 / 6, "{} bytes for {bytes}", used());
    // The pages of a step, twice.
    assert!(longest.load(SeqCst) <= loaded + (32 << 20), "{longest:?} bytes, {loaded} before");
    assert_eq!(keys(&store), (0..ENTRIES).map(u32::to_be_bytes).collect::<Vec<_>>());
}

#[test]
fn a_compaction_in_steps_fails_beside_a_snapshot_that_stays_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("db"));
    let mut transaction = begin(&store);
    (0..1_000_u32).for_each(|key| transaction.put(A, &key.to_be_bytes(), &[7; 150]).unwrap());
    transaction.commit(Durability::Sync).unwrap();
    let snapshot = store.snapshot().unwrap();
    let error = store.compact_while(Duration::from_millis(50), &mut |_, _| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error}");
    drop(snapshot);
    assert!(store.compact_while(LONG, &mut |_, _| ControlFlow::Continue(())).unwrap().is_continue());
}
