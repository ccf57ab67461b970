//! Commit versions.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use super::{
    Fixture,
    tools::{A, B, LONG, begin, commit, count, number, transact},
};
use crate::{Bounds, Durability, Keyspace, Store, Transaction, TransactionExt, Version, View};

fn last(store: &impl Store) -> Version {
    store.snapshot().unwrap().version()
}

pub fn a_commit_returns_the_version_at_which_it_is_visible<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    for round in 0..20_u64 {
        let before = store.snapshot().unwrap();
        let mut transaction = begin(&store);
        assert_eq!(transaction.view().version(), before.version());
        transaction.put(A, b"k", &round.to_be_bytes()).unwrap();
        assert_eq!(transaction.view().version(), before.version(), "own writes change no version");
        let version = transaction.commit(Durability::Deferred).unwrap();
        assert!(version > before.version());
        assert_eq!(last(&store), version);
    }
    let empty = begin(&store);
    assert_eq!(empty.view().version(), last(&store));
    assert_eq!(empty.commit(Durability::Deferred).unwrap(), last(&store), "nothing was written");
    let before = last(&store);
    let dropped = store.drop_keyspace(A, LONG).unwrap();
    assert!(dropped > before);
    assert_eq!((last(&store), count(&store.snapshot().unwrap(), A, Bounds::ALL)), (dropped, 0));
}

pub fn versions_grow_across_reopening<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    if !store.capabilities().persistent {
        return;
    }
    let mut transaction = begin(&store);
    transaction.put(A, b"k", b"1").unwrap();
    let version = transaction.commit(Durability::Sync).unwrap();
    drop(store);
    let store = fixture.open();
    assert!(last(&store) >= version);
    let mut transaction = begin(&store);
    transaction.put(A, b"k", b"2").unwrap();
    assert!(transaction.commit(Durability::Sync).unwrap() > version);
}

/// Each writer stores the number of its commit. The contents of a view must depend on its version only.
pub fn a_view_shows_exactly_the_commits_up_to_its_version<S: Store>(fixture: &Fixture<S>) {
    const ROUNDS: u64 = 200;
    let store = fixture.open();
    let done = AtomicBool::new(false);
    let write = |keyspace: Keyspace| {
        let mut commits = Vec::new();
        for round in 1..=ROUNDS {
            let mut transaction = begin(&store);
            transaction.put(keyspace, b"k", &round.to_be_bytes()).unwrap();
            commits.push(transaction.commit(Durability::Deferred).unwrap());
        }
        assert!(commits.is_sorted_by(|a, b| a < b));
        commits
    };
    let look = || {
        let mut seen = Vec::new();
        while !done.load(Ordering::Relaxed) {
            let view = store.snapshot().unwrap();
            seen.push((view.version(), [A, B].map(|keyspace| number(&view, keyspace, b"k"))));
        }
        seen
    };
    let (commits, seen) = thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(look));
        let writers = [A, B].map(|keyspace| scope.spawn(move || write(keyspace)));
        let commits = writers.map(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        (commits, readers.map(|reader| reader.join().unwrap()).concat())
    });
    for (version, rounds) in seen {
        for (commits, round) in commits.iter().zip(rounds) {
            let expected = commits.partition_point(|commit| *commit <= version);
            assert_eq!(u64::try_from(expected).unwrap(), round, "at {version:?}");
        }
    }
    transact(&store, Durability::Deferred, |transaction| transaction.put(A, b"end", b"").unwrap());
    commit(begin(&store));
}
