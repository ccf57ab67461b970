//! Failures of the device produce typed errors and, after reopening, complete commits only.
//!
//! `SLATE_POWER_CUTS=10000 cargo test -p slate-store --test redb power_cuts` cuts the power as often, at random moments.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    ops::ControlFlow,
};

use slate_store::{
    Access, Bounds, Durability, Error, Keyspace, Store, Transaction, TransactionExt, View,
    redb::{Options, Recovery, RedbStore},
};

use crate::{
    device::Device,
    tools::{A, LONG, begin, keys, put},
};

pub(crate) fn over(device: &Device) -> RedbStore {
    RedbStore::open_over(device.handle(), &Options::default()).unwrap()
}

/// Commits a transaction of many pages in two keyspaces. Every key begins with `round`.
pub(crate) fn write_round(store: &RedbStore, round: u8, durability: Durability) -> slate_store::Result<()> {
    let mut transaction = store.begin(LONG)?;
    for number in 0..200_u8 {
        transaction.put(A, &[round, number], &[round; 500])?;
        transaction.put(Keyspace(2), &[round, number], b"")?;
    }
    transaction.commit(durability).map(drop)
}

/// Checks that each round is complete or absent, without a gap. Returns the number of rounds.
pub(crate) fn whole_rounds(store: &RedbStore) -> usize {
    let keys = keys(store);
    assert_eq!(keys.len() % 200, 0, "a round is incomplete");
    let rounds: Vec<u8> = keys.chunks(200).map(|round| round[0][0]).collect();
    assert!(rounds.iter().zip(0_u8..).all(|(found, expected)| *found == expected), "a hole: {rounds:?}");
    let beside = store.snapshot().unwrap().count(Keyspace(2), Bounds::ALL, |_| true).unwrap();
    assert_eq!(beside, Some(u64::try_from(keys.len()).unwrap()), "a commit is complete in one keyspace only");
    rounds.len()
}

fn is_typed(error: &Error) -> bool {
    matches!(error, Error::OutcomeUnknown(_) | Error::Io(_)) && !error.is_retryable()
}

#[test]
fn caller_supplied_storage_can_be_reopened() {
    let device = Device::default();
    put(&over(&device), b"a", b"1", Durability::Sync).unwrap();
    assert_eq!(keys(&over(&device)), [b"a"]);
    let existing = Options::default().access(Access::Open);
    assert!(RedbStore::open_over(device.handle(), &existing).is_ok());
    let missing = RedbStore::open_over(Device::default(), &existing).err().unwrap();
    assert!(matches!(missing, Error::Missing(_)), "{missing}");
    let read_only = RedbStore::open_over(device, &Options::default().access(Access::ReadOnly)).err().unwrap();
    assert!(matches!(read_only, Error::Unsupported(_)), "{read_only}");
}

#[test]
fn a_failed_device_write_leaves_complete_commits() {
    for recovery in [Recovery::WhenOpened, Recovery::WithEachCommit] {
        let options = Options::default().recovery(recovery);
        for successes in 0..60 {
            let device = Device::default();
            let store = RedbStore::open_over(device.handle(), &options).unwrap();
            write_round(&store, 0, Durability::Sync).unwrap();
            device.fail_write_after(successes);
            let error = write_round(&store, 1, Durability::Sync).err();
            if let Some(error) = &error {
                assert!(is_typed(error), "{error}");
                device.heal();
                assert!(
                    is_typed(&put(&store, b"z", b"", Durability::Sync).unwrap_err()),
                    "writes fail until the database is reopened"
                );
                // Of a commit that failed after its last write, nobody knows whether it is visible.
                assert!((1..=2).contains(&whole_rounds(&store)), "reads go on");
                store.check(&mut |_| ControlFlow::Continue(())).unwrap();
            }
            let seed = u64::try_from(successes).unwrap();
            for device in [device.after_power_cut(), device.after_torn_power_cut(seed), device.after_kill()] {
                let rounds = whole_rounds(&over(&device));
                assert!(if error.is_some() { (1..=2).contains(&rounds) } else { rounds == 2 });
            }
        }
    }
}

#[test]
fn an_interrupted_compaction_loses_nothing() {
    const SPARSE: Keyspace = Keyspace(3);
    for successes in 0.. {
        let device = Device::default();
        let store = over(&device);
        (0..12).for_each(|round| write_round(&store, round, Durability::Deferred).unwrap());
        let mut transaction = begin(&store);
        for (round, number) in (6..12).flat_map(|round| (0..200).map(move |number| (round, number))) {
            transaction.delete(A, &[round, number]).unwrap();
            transaction.delete(Keyspace(2), &[round, number]).unwrap();
        }
        transaction.commit(Durability::Sync).unwrap();
        // The second half of these entries goes between those of the first and leaves pages sparse.
        for half in 0..2 {
            let mut transaction = begin(&store);
            (half..4_000_u32).step_by(2).for_each(|key| transaction.put(SPARSE, &key.to_be_bytes(), &[3; 60]).unwrap());
            transaction.commit(Durability::Sync).unwrap();
        }
        device.fail_write_after(successes);
        let compacted = store.compact(LONG);
        let seed = u64::try_from(successes).unwrap();
        for device in [device.after_power_cut(), device.after_torn_power_cut(seed), device.after_kill()] {
            let store = over(&device);
            assert_eq!(whole_rounds(&store), 6, "after {successes} writes");
            let sparse = store.snapshot().unwrap().count(SPARSE, Bounds::ALL, |_| true).unwrap();
            assert_eq!(sparse, Some(4_000), "after {successes} writes");
        }
        match compacted {
            Ok(()) => {
                assert!(successes > 20, "the compaction wrote {successes} times");
                break;
            }
            Err(error) => assert!(is_typed(&error), "{error}"),
        }
    }
}

#[test]
fn a_sync_that_fails_leaves_the_outcome_unknown() {
    for successes in 0..3 {
        let device = Device::default();
        let store = over(&device);
        write_round(&store, 0, Durability::Sync).unwrap();
        device.fail_sync_after(successes);
        let (certain, error) = (1..9)
            .find_map(|round| Some((usize::from(round), write_round(&store, round, Durability::Sync).err()?)))
            .unwrap();
        use std::error::Error as _;
        assert!(error.source().is_some());
        drop(store);
        // A sync that makes a longer file durable fails before the commit: its outcome is known.
        let possible = match error {
            Error::OutcomeUnknown(_) => certain..=certain + 1,
            error => {
                assert!(matches!(error, Error::Io(_)), "{error}");
                certain..=certain
            }
        };
        assert!(possible.contains(&whole_rounds(&over(&device.after_power_cut()))));
        assert!(possible.contains(&whole_rounds(&over(&device.after_kill()))));
    }
}

#[test]
fn a_read_only_medium_is_distinguished_from_a_broken_one() {
    let device = Device::default();
    put(&over(&device), b"a", b"", Durability::Sync).unwrap();
    let medium = device.after_power_cut();
    medium.protect();
    let error = RedbStore::open_over(medium, &Options::default()).err().unwrap();
    assert!(matches!(error, Error::ReadOnly(_)), "{error}");
}

#[test]
fn a_power_cut_loses_only_the_last_deferred_commits() {
    let device = Device::default();
    let store = over(&device);
    write_round(&store, 0, Durability::Sync).unwrap();
    (1..4).for_each(|round| write_round(&store, round, Durability::Deferred).unwrap());
    write_round(&store, 4, Durability::Sync).unwrap();
    (5..9).for_each(|round| write_round(&store, round, Durability::Deferred).unwrap());
    assert_eq!(whole_rounds(&store), 9);
    for device in [device.after_power_cut(), device.after_torn_power_cut(0), device.after_kill()] {
        assert!((5..=9).contains(&whole_rounds(&over(&device))));
    }
    store.flush().unwrap();
    for device in [device.after_power_cut(), device.after_kill()] {
        assert_eq!(whole_rounds(&over(&device)), 9);
    }
}

#[test]
fn a_flush_without_new_commits_does_not_sync() {
    let device = Device::default();
    let store = over(&device);
    let before = device.syncs();
    store.flush().unwrap();
    begin(&store).commit(Durability::Sync).unwrap();
    assert_eq!(device.syncs(), before, "nothing was written");
    put(&store, b"a", b"", Durability::Deferred).unwrap();
    assert_eq!(device.syncs(), before);
    store.flush().unwrap();
    let flushed = device.syncs();
    assert!(flushed > before);
    store.flush().unwrap();
    assert_eq!(device.syncs(), flushed);
}

#[test]
fn a_failed_flush_returns_an_error() {
    let device = Device::default();
    let store = over(&device);
    write_round(&store, 0, Durability::Deferred).unwrap();
    device.fail_sync_after(0);
    assert!(matches!(store.flush(), Err(Error::OutcomeUnknown(_))));
    assert!(whole_rounds(&over(&device.after_power_cut())) <= 1);
}

#[test]
fn a_power_cut_during_creation_leaves_a_database_or_none() {
    for successes in 0..40 {
        let device = Device::default();
        device.fail_write_after(successes);
        let made = RedbStore::open_over(device.handle(), &Options::default());
        let after = device.after_power_cut();
        drop(made);
        match RedbStore::open_over(after.handle(), &Options::default()) {
            Ok(store) => {
                put(&store, b"a", b"", Durability::Sync).unwrap();
                assert_eq!(keys(&store), [b"a"], "after {successes} writes");
            }
            Err(error) => assert!(matches!(error, Error::WrongFormat(_)), "after {successes} writes: {error}"),
        }
    }
}

/// Returns a number that depends on a seed and on a place in its sequence, below `most`.
fn drawn(seed: u64, place: u64, most: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, place).hash(&mut hasher);
    hasher.finish() % most
}

#[test]
fn power_cuts_at_random_moments_lose_no_acknowledged_commit() {
    let cuts = std::env::var("SLATE_POWER_CUTS").map_or(25, |cuts| cuts.parse().unwrap());
    for seed in 0..cuts {
        let device = Device::default();
        let recovery = if seed % 2 == 0 { Recovery::WhenOpened } else { Recovery::WithEachCommit };
        let store = RedbStore::open_over(device.handle(), &Options::default().recovery(recovery)).unwrap();
        write_round(&store, 0, Durability::Sync).unwrap();
        // Half of the devices fail before the cut, at a write or at a sync.
        match drawn(seed, 0, 4) {
            0 => device.fail_write_after(usize::try_from(drawn(seed, 1, 200)).unwrap()),
            1 => device.fail_sync_after(usize::try_from(drawn(seed, 1, 12)).unwrap()),
            _ => {}
        }
        // The rounds that are on the device, those that are visible, and those that may be there.
        let (mut certain, mut visible, mut possible) = (1, 1, 1);
        for place in 2..2 + drawn(seed, 2, 12) {
            match drawn(seed, place + 10, 8) {
                0 => certain = if store.flush().is_ok() { visible } else { certain },
                1 => drop(store.compact(LONG)),
                kind => {
                    let durability = if kind < 4 { Durability::Deferred } else { Durability::Sync };
                    possible = visible + 1;
                    if write_round(&store, u8::try_from(visible).unwrap(), durability).is_ok() {
                        visible += 1;
                        certain = if durability == Durability::Sync { visible } else { certain };
                    }
                }
            }
        }
        let cut = [
            device.after_power_cut(),
            device.after_torn_power_cut(seed),
            device.after_torn_power_cut(seed + 1_000_000),
            device.after_kill(),
        ];
        for device in cut {
            let store = over(&device);
            let rounds = whole_rounds(&store);
            assert!((certain..=possible).contains(&rounds), "seed {seed}: {rounds} of {certain} to {possible}");
            write_round(&store, u8::try_from(rounds).unwrap(), Durability::Sync).unwrap();
            assert_eq!(whole_rounds(&store), rounds + 1, "seed {seed}");
        }
    }
}

#[test]
fn a_failed_read_is_an_error_of_the_call_that_needs_the_page() {
    let device = Device::default();
    (0..8).for_each(|round| write_round(&over(&device), round, Durability::Sync).unwrap());
    let mut failed = 0;
    for successes in 0..60 {
        device.heal();
        // Without a cache, so that each page is read from the device.
        let store = RedbStore::open_over(device.handle(), &Options::default().cache_bytes(0)).unwrap();
        device.fail_read_after(successes);
        let counted = store.snapshot().and_then(|snapshot| {
            let mut entries = 0;
            snapshot.scan(A, Bounds::ALL, |_, _| {
                entries += 1;
                ControlFlow::<()>::Continue(())
            })?;
            Ok(entries)
        });
        match counted {
            Ok(entries) => assert_eq!(entries, 1_600),
            Err(error) => {
                assert!(matches!(error, Error::Io(_) | Error::Corrupt(_)), "{error}");
                failed += 1;
            }
        }
    }
    assert!(failed > 0);
    device.heal();
    assert_eq!(whole_rounds(&over(&device)), 8);
}
