//! On a full device writes fail with `Full`, reads go on, and writes work again when there is room, without reopening.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use slate_store::{
    Bounds, Checked, Durability, Error, Keyspace, LastWrites, Store, Transaction, TransactionExt, Version, View,
    redb::{Options, Recovery, RedbSnapshot, RedbStore},
};

use crate::{
    device::Device,
    faults::{over, whole_rounds, write_round},
    tools::{A, LONG, begin, keys, put},
};

/// Room for a page or two, so that most pages are not in the cache.
fn over_with_small_cache(device: &Device, recovery: Recovery) -> RedbStore {
    RedbStore::open_over(device.handle(), &Options::default().cache_bytes(64 << 10).recovery(recovery)).unwrap()
}

fn rounds_of(snapshot: &RedbSnapshot) -> u64 {
    snapshot.count(A, Bounds { start: Some(b""), end: None }, |_| true).unwrap().unwrap() / 200
}

fn assert_sound(store: &RedbStore) {
    let mut damage = Vec::new();
    store
        .check(&mut |checked| {
            damage.extend((!matches!(checked, Checked::Bytes(_))).then(|| format!("{checked:?}")));
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert!(damage.is_empty(), "{damage:?}");
}

fn assert_full(result: slate_store::Result<()>) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Full(_)), "{error}");
    assert!(!error.to_string().contains("reopen"), "{error}");
}

/// Checks what the device has as if the process or the power ended here.
fn assert_recovers(device: &Device, seed: u64, rounds: std::ops::RangeInclusive<usize>) {
    for device in [device.after_power_cut(), device.after_torn_power_cut(seed), device.after_kill()] {
        let found = whole_rounds(&over(&device));
        assert!(rounds.contains(&found), "{found} rounds of {rounds:?}");
    }
}

/// Whatever write of a commit is the first that does not fit, with and without a large cache: the commit fails as a whole, reads go on, and
/// writes work again.
#[test]
fn writes_work_again_when_there_is_room() {
    for recovery in [Recovery::WithEachCommit, Recovery::WhenOpened] {
        for cache in [64 << 10, 256 << 20] {
            let mut failed = 0;
            for room in (0..100).step_by(3) {
                let device = Device::default();
                let options = Options::default().cache_bytes(cache).recovery(recovery);
                let store = RedbStore::open_over(device.handle(), &options).unwrap();
                write_round(&store, 0, Durability::Sync).unwrap();
                let old = store.snapshot().unwrap();
                write_round(&store, 1, Durability::Sync).unwrap();
                let last = store.snapshot().unwrap();
                device.fill_up_after(room);
                let Err(error) = write_round(&store, 2, Durability::Sync) else { continue };
                assert!(matches!(error, Error::Full(_)), "{error}");
                failed += 1;
                for durability in [Durability::Sync, Durability::Deferred] {
                    assert_full(write_round(&store, 2, durability));
                }
                store.flush().unwrap();
                assert_eq!(whole_rounds(&store), 2);
                assert_eq!(store.snapshot().unwrap().version(), last.version());
                assert_eq!([rounds_of(&old), rounds_of(&last)], [1, 2]);
                let seed = u64::try_from(room).unwrap();
                assert_recovers(&device, seed, 2..=2);

                // Only some of the backlog fits.
                device.fill_up_after(room % 7);
                assert_full(write_round(&store, 2, Durability::Sync));
                assert_recovers(&device, seed, 2..=3);
                device.heal();
                for round in 2..5 {
                    write_round(&store, round, Durability::Sync).unwrap();
                    assert_recovers(&device, seed, usize::from(round) + 1..=usize::from(round) + 1);
                }
                assert_eq!(whole_rounds(&store), 5);
                assert_eq!([rounds_of(&old), rounds_of(&last)], [1, 2]);
                assert_sound(&store);
                drop((old, last, store));
                assert_eq!(whole_rounds(&over(&device)), 5);
            }
            assert!(failed > 5, "{failed} commits did not fit");
        }
    }
}

#[test]
fn deferred_commits_stay_and_are_on_the_device_when_there_is_room() {
    for room in 0..40 {
        let device = Device::default();
        let store = over(&device);
        write_round(&store, 0, Durability::Sync).unwrap();
        (1..4).for_each(|round| write_round(&store, round, Durability::Deferred).unwrap());
        let snapshot = store.snapshot().unwrap();
        device.fill_up_after(room);
        if write_round(&store, 4, Durability::Sync).is_ok() {
            continue;
        }
        for _ in 0..2 {
            let error = store.flush().unwrap_err();
            assert!(matches!(error, Error::OutcomeUnknown(_)), "{error}");
        }
        assert_full(write_round(&store, 4, Durability::Sync));
        assert_eq!(whole_rounds(&store), 4, "what was acknowledged is still there");
        assert_recovers(&device, 1, 1..=4);
        device.heal();
        store.flush().unwrap();
        assert_recovers(&device, 2, 4..=4);
        write_round(&store, 4, Durability::Deferred).unwrap();
        store.flush().unwrap();
        assert_recovers(&device, 3, 5..=5);
        assert_eq!(rounds_of(&snapshot), 4);
    }
}

#[test]
fn a_flush_to_a_full_device_reports_that_the_outcome_is_unknown_until_there_is_room() {
    for room in 0..10 {
        let device = Device::default();
        let store = over(&device);
        write_round(&store, 0, Durability::Sync).unwrap();
        write_round(&store, 1, Durability::Deferred).unwrap();
        device.fill_up_after(room);
        for _ in 0..2 {
            let error = store.flush().unwrap_err();
            assert!(matches!(error, Error::OutcomeUnknown(_)), "{error}");
        }
        assert_full(write_round(&store, 2, Durability::Sync));
        assert_full(write_round(&store, 2, Durability::Deferred));
        assert_recovers(&device, 1, 1..=2);
        device.heal();
        store.flush().unwrap();
        assert_recovers(&device, 2, 2..=2);
        write_round(&store, 2, Durability::Sync).unwrap();
        assert_eq!(whole_rounds(&store), 3);
    }
}

/// redb reads nothing from a file after a write to it has failed, so it must not learn of it.
#[test]
fn pages_that_are_not_in_the_cache_are_read_while_the_device_is_full() {
    for recovery in [Recovery::WithEachCommit, Recovery::WhenOpened] {
        let device = Device::default();
        let store = over_with_small_cache(&device, recovery);
        (0..10).for_each(|round| write_round(&store, round, Durability::Sync).unwrap());
        device.fill_up();
        assert_full(put(&store, b"z", b"", Durability::Sync).map(drop));
        for _ in 0..3 {
            assert_eq!(whole_rounds(&store), 10);
        }
        // The pages, as they are in the backlog, have their checksums.
        assert_sound(&store);
    }
}

#[test]
fn a_transaction_that_is_larger_than_the_cache_is_not_kept_in_memory() {
    let device = Device::default();
    let store = over_with_small_cache(&device, Recovery::default());
    write_round(&store, 0, Durability::Sync).unwrap();
    let before = device.writes();
    for round in 0..40 {
        device.fill_up_after(round * 5);
        let mut transaction = begin(&store);
        (0..20_000_u32).for_each(|key| transaction.put(Keyspace(7), &key.to_be_bytes(), &[7; 400]).unwrap());
        assert_full(transaction.commit(Durability::Sync).map(drop));
        device.heal();
        put(&store, &[0, 0], &[0; 500], Durability::Sync).unwrap();
    }
    // Each one has ended soon after its first page that did not fit.
    let written = device.writes() - before;
    assert!(written < 40 * (200 + 100), "{written} writes");
    assert_eq!(whole_rounds(&store), 1);
    assert_eq!(store.snapshot().unwrap().count(Keyspace(7), Bounds::ALL, |_| true).unwrap(), Some(0));
}

/// The backlog is written when the database is closed, if there is room by then; otherwise the device has all `Sync` commits.
#[test]
fn a_database_can_be_closed_while_the_device_is_full() {
    for has_room in [false, true] {
        let device = Device::default();
        let store = over(&device);
        write_round(&store, 0, Durability::Sync).unwrap();
        write_round(&store, 1, Durability::Deferred).unwrap();
        device.fill_up_after(2);
        assert_full(write_round(&store, 2, Durability::Sync));
        if has_room {
            device.heal();
        }
        drop(store);
        device.heal();
        let found = whole_rounds(&over(&device));
        assert!(if has_room { found == 2 } else { (1..=2).contains(&found) }, "{found} rounds");
    }
}

#[test]
fn a_sync_that_fails_for_lack_of_space_is_final_until_the_database_is_reopened() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        let device = Device::default();
        let store = over(&device);
        write_round(&store, 0, Durability::Sync).unwrap();
        device.fill_up();
        assert_full(write_round(&store, 1, Durability::Sync));
        device.heal();
        // Nobody knows which of the writes before it the device has.
        device.fail_sync_after_with(0, kind);
        let error = write_round(&store, 1, Durability::Sync).unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown(_)), "{error}");
        device.heal();
        let error = write_round(&store, 1, Durability::Sync).unwrap_err();
        assert!(matches!(error, Error::Io(_)), "{error}");
        drop(store);
        assert_recovers(&device, 1, 1..=2);
    }
}

#[test]
fn a_flush_whose_sync_has_failed_is_not_tried_again() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        let device = Device::default();
        let store = over_with_small_cache(&device, Recovery::WhenOpened);
        write_round(&store, 0, Durability::Sync).unwrap();
        write_round(&store, 1, Durability::Deferred).unwrap();
        device.fill_up_after(3);
        let error = store.flush().unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown(_)), "{error}");
        device.heal();
        device.fail_sync_after_with(0, kind);
        for _ in 0..2 {
            let error = store.flush().unwrap_err();
            assert!(matches!(error, Error::OutcomeUnknown(_)), "{error}");
            // A second sync would succeed, although a device may have lost what the first one was to sync.
            device.heal();
        }
        let before = device.syncs();
        assert!(matches!(store.flush(), Err(Error::OutcomeUnknown(_))));
        assert_eq!(whole_rounds(&store), 2, "reads go on");
        drop(store);
        assert_eq!(device.syncs(), before, "closing it does not write out the rest, and does not mark it as closed");
        assert_recovers(&device, 1, 1..=2);
    }
}

#[test]
fn no_snapshot_shows_a_commit_that_did_not_fit() {
    let device = Device::default();
    let store = over(&device);
    write_round(&store, 0, Durability::Sync).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let snapshot = store.snapshot().unwrap();
                    let refused = snapshot.get(A, b"refused", |_| ()).unwrap();
                    assert_eq!(refused, None, "shown in version {}", snapshot.version().0);
                }
            });
        }
        for room in 0..150 {
            device.fill_up_after(room % 15);
            let mut transaction = begin(&store);
            transaction.put(A, b"refused", b"").unwrap();
            transaction.put(A, &[0, 1], &[0; 500]).unwrap();
            // More than 15 writes.
            assert_full(transaction.commit(Durability::Sync).map(drop));

            device.heal();
            put(&store, &[0, 2], &[0; 500], Durability::Sync).unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(keys(&store).len(), 200);
}

/// Half of the commits have a last stage, which takes the log of commits while it has the permit to write, and transactions begin all the time,
/// which take their snapshot while they have the log. None may wait for another for ever.
#[test]
fn of_concurrent_commits_to_a_full_device_exactly_those_are_there_that_were_acknowledged() {
    const COMMITS: u8 = 120;
    let device = Device::default();
    let store = over(&device);
    let commit = |key: [u8; 2]| {
        let mut transaction = store.begin(LONG)?;
        transaction.put(A, &key, &[key[0]; 500])?;
        if key[1].is_multiple_of(2) {
            return transaction.commit(Durability::Sync);
        }
        let mut last = |_: Version, writes: &mut dyn LastWrites| writes.write(Keyspace(2), &[(&key, Some(b""))]);
        transaction.commit_with(Durability::Sync, &mut last)
    };
    let writer = |own: u8| {
        let mut outcomes = Vec::new();
        for number in 0..COMMITS {
            if number % 4 == own {
                device.fill_up_after(usize::from(number) * 7 % 23);
            }
            let made = commit([own, number]);
            if made.is_err() {
                device.heal();
            }
            outcomes.push(([own, number], made));
        }
        outcomes
    };
    let is_over = AtomicBool::new(false);
    let outcomes: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                drop(store.begin(LONG).unwrap());
            }
        });
        let writers = [0, 1].map(|own| scope.spawn(move || writer(own)));
        let outcomes = writers.map(|writer| writer.join());
        // Also if a writer has panicked: the scope waits for the other thread.
        is_over.store(true, Ordering::SeqCst);
        outcomes.into_iter().flat_map(|written| written.unwrap()).collect()
    });
    device.heal();
    let (mut acknowledged, mut visible, mut refused) = (Vec::new(), Vec::new(), 0);
    for (key, made) in outcomes {
        match made {
            Ok(_) => acknowledged.push(key.to_vec()),
            // Another commit that was to sync it did not fit.
            Err(Error::OutcomeUnknown(_)) => visible.push(key.to_vec()),
            Err(Error::Full(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(acknowledged.len() > 50 && refused > 20, "{} acknowledged, {refused} refused", acknowledged.len());
    for device in [device.after_power_cut(), device.after_kill()] {
        let found = keys(&over(&device));
        assert!(acknowledged.iter().all(|key| found.contains(key)), "before what did not fit is written out");
    }
    store.flush().unwrap();
    visible.extend(acknowledged);
    visible.sort();
    assert_eq!(keys(&store), visible);
    let in_last_stages: Vec<_> = visible.iter().filter(|key| key[1] % 2 == 1).cloned().collect();
    drop(store);
    for device in [device.handle(), device.after_power_cut(), device.after_kill()] {
        let store = over(&device);
        assert_eq!(keys(&store), visible);
        let last = store.snapshot().unwrap().count(Keyspace(2), Bounds::ALL, |_| true).unwrap();
        assert_eq!(last, Some(u64::try_from(in_last_stages.len()).unwrap()));
        assert_sound(&store);
    }
}

#[test]
fn a_compaction_fails_on_a_full_device_and_succeeds_when_there_is_room() {
    for room in (0..200).step_by(7) {
        let device = Device::default();
        let store = over(&device);
        (0..10).for_each(|round| write_round(&store, round, Durability::Sync).unwrap());
        device.fill_up_after(room);
        let compacted = store.compact(LONG);
        if let Err(error) = &compacted {
            assert!(matches!(error, Error::Full(_)), "{error}");
        }
        assert_eq!(whole_rounds(&store), 10);
        assert_recovers(&device, 3, 10..=10);
        device.heal();
        write_round(&store, 10, Durability::Sync).unwrap();
        store.compact(LONG).unwrap();
        assert_recovers(&device, 4, 11..=11);
    }
}
