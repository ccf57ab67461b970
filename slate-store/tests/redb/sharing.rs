//! Committers that meet share trips to the device, and each is told the truth about his own commit.

use std::{
    sync::{Barrier, mpsc},
    thread,
    time::Duration,
};

use slate_store::{
    Durability, Error, Store, Transaction, TransactionExt,
    redb::{Options, RedbStore},
};

use crate::{
    device::Device,
    tools::{A, LONG, begin, keys, put},
};

fn over(device: &Device) -> RedbStore {
    RedbStore::open_over(device.handle(), &Options::default()).unwrap()
}

#[test]
fn committers_that_meet_share_trips_to_the_device() {
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
                        // What was acknowledged is there whenever the power is cut.
                        let survived = keys(&over(&device.after_power_cut()));
                        assert!((0..=round).all(|round| survived.contains(&vec![own, round])));
                    }
                }
            });
        }
    });
    let (trips, commits) = (device.syncs() - before, usize::from(THREADS * EACH));
    assert!(trips < commits * 2 / 3, "{trips} trips for {commits} commits");
    assert_eq!(keys(&over(&device.after_power_cut())).len(), commits);
}

#[test]
fn a_lone_committer_goes_to_the_device_each_time() {
    let device = Device::default();
    let store = over(&device);
    let before = device.syncs();
    (0..10_u8).for_each(|number| put(&store, &[number], b"", Durability::Sync).unwrap());
    assert_eq!(device.syncs() - before, 10);
}

#[test]
fn who_was_to_be_covered_learns_that_the_device_failed() {
    let device = Device::default();
    let store = over(&device);
    put(&store, b"before", b"", Durability::Sync).unwrap();
    let mut first = begin(&store);
    first.put(A, b"first", b"").unwrap();
    let (queued, waits) = mpsc::channel();
    thread::scope(|scope| {
        let (store, device) = (&store, &device);
        let second = scope.spawn(move || {
            queued.send(()).unwrap();
            let mut second = store.begin(LONG).unwrap();
            second.put(A, b"second", b"").unwrap();
            device.fail_sync_after(0);
            second.commit(Durability::Sync).unwrap_err()
        });
        waits.recv().unwrap();
        thread::sleep(Duration::from_millis(50));
        let first = first.commit(Durability::Sync).unwrap_err();
        for error in [first, second.join().unwrap()] {
            assert!(matches!(error, Error::OutcomeUnknown(_)) && !error.is_retryable(), "{error}");
        }
    });
    assert!(keys(&over(&device.after_power_cut())).contains(&b"before".to_vec()));
}

#[test]
fn who_was_to_be_covered_goes_himself_when_the_writer_behind_gives_up() {
    let device = Device::default();
    let store = over(&device);
    let mut first = begin(&store);
    first.put(A, b"first", b"").unwrap();
    let (queued, waits) = mpsc::channel();
    thread::scope(|scope| {
        let store = &store;
        scope.spawn(move || {
            queued.send(()).unwrap();
            let mut second = store.begin(LONG).unwrap();
            second.put(A, b"second", b"").unwrap();
            drop(second);
        });
        waits.recv().unwrap();
        thread::sleep(Duration::from_millis(50));
        first.commit(Durability::Sync).unwrap();
        assert_eq!(keys(&over(&device.after_power_cut())), [b"first"], "when it returns, it is on the device");
    });
}

#[test]
fn a_transaction_may_be_committed_by_another_thread() {
    let device = Device::default();
    let store = over(&device);
    let mut moved = begin(&store);
    moved.put(A, b"a", b"").unwrap();
    assert!(matches!(store.begin(LONG), Err(Error::Reentrant(_))));
    thread::spawn(move || moved.commit(Durability::Sync).unwrap()).join().unwrap();
    put(&store, b"b", b"", Durability::Sync).unwrap();
    assert_eq!(keys(&store).len(), 2);
}

#[test]
fn a_transaction_dropped_in_a_panic_gives_up_its_turn() {
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
