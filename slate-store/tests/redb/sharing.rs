//! Group commit: concurrent commits share syncs, and each returns its own outcome.

use std::{sync::Barrier, thread, time::Duration};

use slate_store::{
    Durability, Error, Transaction, TransactionExt,
    redb::{Options, Recovery, RedbStore},
};

use crate::{
    device::Device,
    tools::{A, begin, keys, put},
};

/// Returns a store whose commits sync once.
fn over(device: &Device) -> RedbStore {
    let options = Options::default().recovery(Recovery::WhenOpened);
    RedbStore::open_over(device.handle(), &options).unwrap()
}

#[test]
fn concurrent_commits_share_syncs() {
    const THREADS: u8 = 8;
    const EACH: u8 = 10;
    let device = Device::default();
    let store = over(&device);
    device.slow_down(Duration::from_millis(3));
    let before = device.syncs();
    let start = Barrier::new(usize::from(THREADS));
    thread::scope(|scope| {
        for own in 0..THREADS {
            let (store, start, device) = (&store, &start, &device);
            scope.spawn(move || {
                start.wait();
                for round in 0..EACH {
                    put(store, &[own, round], b"", Durability::Sync).unwrap();
                    if round == EACH / 2 {
                        // Acknowledged commits survive a power cut at any time.
                        let survived = keys(&over(&device.after_power_cut()));
                        assert!((0..=round).all(|round| survived.contains(&vec![own, round])));
                    }
                }
            });
        }
    });
    let (trips, commits) = (device.syncs() - before, usize::from(THREADS * EACH));
    assert!(trips < commits * 2 / 3, "{trips} syncs for {commits} commits");
    assert_eq!(keys(&over(&device.after_power_cut())).len(), commits);
}

#[test]
fn a_single_committer_syncs_each_commit() {
    let device = Device::default();
    let store = over(&device);
    let before = device.syncs();
    (0..10_u8).for_each(|number| put(&store, &[number], b"", Durability::Sync).unwrap());
    assert_eq!(device.syncs() - before, 10);
}

/// The commits that have waited for the failing sync do not know their outcome; those after it are refused.
#[test]
fn commits_fail_if_the_sync_that_includes_them_fails() {
    let device = Device::default();
    let store = over(&device);
    put(&store, b"before", b"", Durability::Sync).unwrap();
    device.slow_down(Duration::from_millis(20));
    let start = Barrier::new(6);
    let commit = |own: u8| {
        start.wait();
        if own == 0 {
            device.fail_sync_after(1);
        }
        (0..20_u8).find_map(|round| put(&store, &[own, round], b"", Durability::Sync).err()).unwrap()
    };
    let unknown: usize = thread::scope(|scope| {
        let commit = &commit;
        let writers: Vec<_> = (0..6).map(|own| scope.spawn(move || commit(own))).collect();
        let errors = writers.into_iter().map(|writer| writer.join().unwrap());
        errors
            .map(|error| {
                assert!(matches!(error, Error::OutcomeUnknown(_) | Error::Io(_)) && !error.is_retryable(), "{error}");
                usize::from(matches!(error, Error::OutcomeUnknown(_)))
            })
            .sum()
    });
    assert!(unknown > 0);
    assert!(keys(&over(&device.after_power_cut())).contains(&b"before".to_vec()));
}

#[test]
fn a_transaction_may_be_committed_by_another_thread() {
    let device = Device::default();
    let store = over(&device);
    let mut moved = begin(&store);
    moved.put(A, b"a", b"").unwrap();
    thread::spawn(move || moved.commit(Durability::Sync).unwrap()).join().unwrap();
    put(&store, b"b", b"", Durability::Sync).unwrap();
    assert_eq!(keys(&store).len(), 2);
}

#[test]
fn a_transaction_dropped_in_a_panic_leaves_nothing() {
    let device = Device::default();
    let store = over(&device);
    let panicked = thread::scope(|scope| {
        let panics = || {
            let mut open = begin(&store);
            open.put(A, b"a", b"").unwrap();
            panic!("on purpose");
        };
        scope.spawn(panics).join().is_err()
    });
    assert!(panicked);
    put(&store, b"b", b"", Durability::Sync).unwrap();
    drop(store);
    assert_eq!(keys(&over(&device)), [b"b"]);
}
