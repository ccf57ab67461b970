//! Commit versions.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use super::{
    Fixture,
    tools::{A, B, LONG, begin, commit, count, number, transact},
};
use slate_store::{Bounds, Durability, Keyspace, Store, Transaction, TransactionExt, Version, View};

fn last(store: &impl Store) -> Version {
    store.snapshot().unwrap().version()
}

pub fn a_commit_returns_the_version_at_which_it_is_visible<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    // On a remote store versions are timestamps, which differ even between two views of one commit.
    let is_same = |version: Version, before: Version| match store.capabilities().remote {
        true => version >= before,
        false => version == before,
    };
    for round in 0..20_u64 {
        let before = store.snapshot().unwrap();
        let mut transaction = begin(&store);
        let began = transaction.view().version();
        assert!(is_same(began, before.version()));
        transaction.put(A, b"k", &round.to_be_bytes()).unwrap();
        assert_eq!(transaction.view().version(), began, "own writes change no version");
        let version = transaction.commit(Durability::Deferred).unwrap();
        assert!(version > before.version());
        assert!(last(&store) >= version);
    }
    let empty = begin(&store);
    let began = empty.view().version();
    assert!(is_same(last(&store), began));
    assert_eq!(empty.commit(Durability::Deferred).unwrap(), began, "nothing was written");
    let before = last(&store);
    let dropped = store.drop_keyspace(A, LONG).unwrap();
    assert!(dropped > before && last(&store) >= dropped);
    assert_eq!(count(&store.snapshot().unwrap(), A, Bounds::ALL), 0);
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

/// The last stage of a commit may write its version into keys and values, and an error of it undoes the commit.
pub fn the_last_stage_of_a_commit_knows_its_version<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    for round in 0..5_u64 {
        let mut transaction = begin(&store);
        transaction.put(A, b"round", &round.to_be_bytes()).unwrap();
        transaction.put(A, b"both", b"early").unwrap();
        let mut told = Version(0);
        let version = transaction
            .commit_with(Durability::Deferred, &mut |version, last| {
                told = version;
                let number = version.0.to_be_bytes();
                last.write(B, &[(&number, Some(&round.to_be_bytes()))])?;
                last.write(A, &[(b"both", Some(&number)), (b"version", Some(&number))])
            })
            .unwrap();
        // A store that assigns versions after the last stage passes it the version of the view.
        assert!(if store.capabilities().commit_versions { told == version } else { told < version });
        let view = store.snapshot().unwrap();
        assert_eq!(number(&view, B, &told.0.to_be_bytes()), round);
        assert_eq!([&b"round"[..], b"version", b"both"].map(|key| number(&view, A, key)), [round, told.0, told.0]);
    }
    let before = last(&store);
    let mut transaction = begin(&store);
    transaction.put(A, b"round", b"12345678").unwrap();
    let refused = transaction.commit_with(Durability::Deferred, &mut |_, last| {
        last.write(A, &[(b"version", None)])?;
        Err(slate_store::Error::Io(Box::new("on purpose".into())))
    });
    assert!(refused.unwrap_err().to_string().contains("on purpose"));
    let view = store.snapshot().unwrap();
    assert!(store.capabilities().remote || view.version() == before);
    assert_eq!((number(&view, A, b"round"), count(&view, B, Bounds::ALL)), (4, 5));
    transact(&store, Durability::Sync, |transaction| transaction.put(A, b"round", &5_u64.to_be_bytes()).unwrap());
}
