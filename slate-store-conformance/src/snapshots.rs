//! A snapshot shows one complete commit for as long as it is open.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use super::{
    Fixture,
    tools::{
        A, B, LONG, Random, Writes, all, begin, commit, count, get, number, put, read_during_writes, scan, single,
        transact, within,
    },
};
use slate_store::{Bounds, Cursor, Durability, Edge, Keyspace, Store, Transaction, TransactionExt, View};

/// Tests small and large commits, because a store may apply them differently.
pub fn a_snapshot_is_never_torn<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    commit_beside_readers(&store, 4, 300);
    commit_beside_readers(&store, 200, 60);
}

/// Commits `rounds` times. Each round puts its number under `keys` keys of three keyspaces.
fn commit_beside_readers<S: Store>(store: &S, keys: u8, rounds: u64) {
    const KEYSPACES: [Keyspace; 3] = [Keyspace(1), Keyspace(7), Keyspace(300)];
    let write = |round: u64| {
        let (keys, value) = ((0..keys).map(|key| [key]).collect::<Vec<_>>(), round.to_be_bytes());
        let entries: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &value[..])).collect();
        transact(store, Durability::Deferred, |transaction| {
            for keyspace in KEYSPACES {
                transaction.put_many(keyspace, &entries).unwrap();
            }
        });
    };
    write(0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let view = store.snapshot().unwrap();
                    let round = number(&view, KEYSPACES[2], &[3]);
                    assert!(round >= last, "commits are seen in order");
                    last = round;
                    for keyspace in KEYSPACES {
                        let entries = scan(&view, keyspace, Bounds::ALL);
                        assert!(entries.iter().all(|(_, value)| **value == round.to_be_bytes()), "torn: {entries:?}");
                        assert_eq!(entries.len(), usize::from(keys));
                    }
                    drop(view);
                    // Leaves intervals in which no reader is active.
                    thread::yield_now();
                }
            });
        }
        (1..=rounds).for_each(write);
        done.store(true, Ordering::Relaxed);
    });
}

type Model = BTreeMap<(Keyspace, [u8; 1]), Vec<u8>>;

/// The keys of [`read_often`].
const FEW: u8 = 12;

/// Reads the same few keys repeatedly with every kind of read.
fn read_often(view: &impl View, model: &Model) {
    for keyspace in [A, B] {
        let keys: Vec<[u8; 1]> = (0..FEW).rev().map(|key| [key]).collect();
        let expected: Vec<_> = keys.iter().map(|key| model.get(&(keyspace, *key)).map(Vec::as_slice)).collect();
        for _ in 0..3 {
            let mut points = single(view, keyspace);
            for (key, expected) in keys.iter().zip(&expected) {
                assert_eq!(points.get(key), *expected);
                assert_eq!(view.get(keyspace, key, <[u8]>::to_vec).unwrap().as_deref(), *expected);
            }
            points.load(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>());
            let loaded: Vec<_> = (0..keys.len()).map(|index| points.loaded(index)).collect();
            assert_eq!(loaded, expected);
        }
    }
}

/// Reads often enough to use all caches of a store.
pub fn repeated_reads_agree_with_each_snapshot<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let mut random = Random::new(11);
    let mut model = Model::new();
    let mut kept = vec![(store.snapshot().unwrap(), model.clone())];
    for round in 0..250_u32 {
        let mut transaction = begin(&store);
        let mut after = model.clone();
        for _ in 0..1 + random.below(4) {
            let (keyspace, key) = ([A, B][random.index(2)], u8::try_from(random.below(FEW.into())).unwrap());
            match random.below(12) {
                0..6 => {
                    transaction.put(keyspace, &[key], &round.to_be_bytes()).unwrap();
                    after.insert((keyspace, [key]), round.to_be_bytes().into());
                }
                6..8 => {
                    let many: Vec<[u8; 1]> = (key..FEW).map(|key| [key]).collect();
                    let entries: Vec<(&[u8], &[u8])> = many.iter().map(|key| (&key[..], &b"many"[..])).collect();
                    transaction.put_many(keyspace, &entries).unwrap();
                    after.extend(many.iter().map(|key| ((keyspace, *key), b"many".to_vec())));
                }
                8..10 => {
                    transaction.delete(keyspace, &[key]).unwrap();
                    after.remove(&(keyspace, [key]));
                }
                10 => {
                    transaction.delete_each(keyspace, Bounds { start: Some(&[key]), end: Some(&[key + 3]) });
                    after.retain(|(of, [at]), _| *of != keyspace || !(key..key + 3).contains(at));
                }
                _ => {
                    transaction.delete_range(keyspace, Bounds::ALL).unwrap();
                    after.retain(|(of, _), _| *of != keyspace);
                }
            }
        }
        read_often(&transaction.view(), &after);
        match random.below(8) {
            0 => drop(transaction),
            1 => {
                let mut other = begin(&store);
                other.put(A, &[0], b"first").unwrap();
                transaction.put(A, &[0], b"second").unwrap();
                commit(other);
                assert!(transaction.commit(Durability::Sync).unwrap_err().is_retryable());
                model.insert((A, [0]), b"first".into());
            }
            _ => {
                commit(transaction);
                model = after;
            }
        }
        match random.below(20) {
            0 => store.flush().unwrap(),
            // A backend may be unable to compact while snapshots are open.
            1 => assert!(store.compact(LONG).err().is_none_or(|error| error.is_retryable())),
            2 => {
                let mut steps = random.below(4);
                let compacted = store.compact_while(Duration::ZERO, &mut |_, _| {
                    steps = steps.saturating_sub(1);
                    if steps > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                });
                assert!(compacted.err().is_none_or(|error| error.is_retryable()));
            }
            _ => {}
        }
        if random.below(30) == 0 {
            store.drop_keyspace(B, LONG).unwrap();
            model.retain(|(keyspace, _), _| *keyspace != B);
        }
        let place = random.index(6);
        match kept.get_mut(place) {
            Some(old) => *old = (store.snapshot().unwrap(), model.clone()),
            None => kept.push((store.snapshot().unwrap(), model.clone())),
        }
        for _ in 0..3 {
            let (view, model) = &kept[random.index(kept.len())];
            read_often(view, model);
        }
    }
}

pub fn repeated_reads_during_writes_are_consistent_and_current<S: Store>(fixture: &Fixture<S>) {
    const KEYS: [u8; 3] = [1, 2, 3];
    let store = fixture.open();
    let round = |view: &S::Snapshot, keyspace| {
        let value = |key: u8| number(view, keyspace, &[key]);
        let round = value(KEYS[0]);
        assert!((0..9).all(|at| value(KEYS[at % 3]) == round), "torn");
        round
    };
    read_during_writes(&store, 400, round, |transaction, keyspace, round| {
        KEYS.iter().for_each(|key| transaction.put(keyspace, &[*key], &round.to_be_bytes()).unwrap());
    });
}

pub fn a_snapshot_has_no_phantoms<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("b", "1"), ("d", "1")]);
    let view = store.snapshot().unwrap();
    let mut cursor = view.cursor(A, within("a", "z")).unwrap();
    assert!(cursor.seek(Edge::First).unwrap());
    put(&store, A, &[("a", "2"), ("c", "2"), ("d", "2"), ("e", "2")]);
    transact(&store, Durability::Sync, |transaction| transaction.delete(A, b"b").unwrap());
    assert_eq!(cursor.current().unwrap(), (&b"b"[..], &b"1"[..]));
    assert!(cursor.step_forward().unwrap());
    assert_eq!(cursor.current().unwrap(), (&b"d"[..], &b"1"[..]));
    assert!(!cursor.step_forward().unwrap());
    assert_eq!(all(&view, A), "bd", "a cursor opened later shows no phantom either");
    assert_eq!(get(&view, A, "c"), None);
    assert_eq!(all(&store.snapshot().unwrap(), A), "acde");
}

pub fn a_snapshot_shows_values_that_were_deleted_later<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2"), ("c", "3")]);
    put(&store, B, &[("x", "1")]);
    let view = store.snapshot().unwrap();
    let mut points = single(&view, A);
    let mut transaction = begin(&store);
    transaction.delete_each(A, within("a", "c"));
    commit(transaction);
    store.drop_keyspace(B, LONG).unwrap();
    store.flush().unwrap();
    // Overwrites any space that was freed.
    for round in 0..20 {
        let value = [round; 4_000];
        transact(&store, Durability::Sync, |transaction| {
            (0..20_u8).for_each(|key| transaction.put(Keyspace(9), &[key], &value).unwrap());
        });
    }
    assert_eq!((all(&view, A), all(&view, B)), ("abc".into(), "x".into()));
    assert_eq!(points.get(b"b"), Some(&b"2"[..]));
    assert_eq!(all(&store.snapshot().unwrap(), A), "c");
}

pub fn a_snapshot_outlives_the_store_and_its_own_handle<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2")]);
    let view = store.snapshot().unwrap();
    let mut points = single(&view, A);
    let mut cursor = view.cursor(A, Bounds::ALL).unwrap();
    let mut open = begin(&store);
    open.put(A, b"c", b"3").unwrap();
    drop(view);
    drop(store);
    let moved = thread::spawn(move || {
        assert!(cursor.seek(Edge::First).unwrap());
        assert_eq!(cursor.current().unwrap(), (&b"a"[..], &b"1"[..]));
        assert_eq!(points.get(b"b"), Some(&b"2"[..]));
        points.load(&[b"b", b"c"]);
        assert_eq!((points.loaded(0), points.loaded(1)), (Some(&b"2"[..]), None));
        commit(open);
        assert!(cursor.step_forward().unwrap() && !cursor.step_forward().unwrap());
    });
    moved.join().unwrap();
}

pub fn a_read_that_does_not_wait_shows_the_last_commit<S: Store>(fixture: &Fixture<S>) {
    const COMMITS: u64 = 500;
    let store = fixture.open();
    let committed = AtomicU64::new(0);
    let number = |value: &[u8]| u64::from_be_bytes(value.try_into().unwrap());
    let commit_number = |number: u64| {
        let mut transaction = begin(&store);
        transaction.put(A, b"a", &number.to_be_bytes()).unwrap();
        commit(transaction);
        committed.store(number, Ordering::SeqCst);
    };
    let check = || {
        let before = committed.load(Ordering::SeqCst);
        let read = store.snapshot().unwrap().get(A, b"a", number).unwrap();
        let tried = store.try_get(A, b"a", number).unwrap();
        let snapshot = store.try_snapshot().map(|view| view.get(A, b"a", number).unwrap());
        for read in [Some(read), tried, snapshot].into_iter().flatten() {
            assert!(read.unwrap_or_default() >= before, "{read:?} of {before}");
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(|| (1..=COMMITS).for_each(commit_number));
        threads.spawn(|| {
            while committed.load(Ordering::SeqCst) < COMMITS {
                check();
            }
        });
    });
    // Several reads, so that a cache holds the value.
    (0..3).for_each(|_| check());
    let mut transaction = begin(&store);
    transaction.delete(A, b"a").unwrap();
    commit(transaction);
    assert_eq!(store.try_get(A, b"a", number).unwrap().flatten(), None);
}

/// Commits between the steps, when the compaction must not hold a lock that a commit needs.
pub fn a_compaction_in_steps_lets_commits_pass_and_can_be_ended<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let (mut commits, mut is_complete) = (0_u8, false);
    for most_steps in 1..20 {
        let mut steps = 0;
        let compacted = store.compact_while(LONG, &mut |examined, total| {
            assert!(examined <= total);
            steps += 1;
            commits += 1;
            put(&store, A, &[(&commits.to_string(), "beside")]);
            if steps < most_steps { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        is_complete |= compacted.unwrap().is_continue();
        commits += 1;
        put(&store, A, &[(&commits.to_string(), "between")]);
    }
    assert!(is_complete);
    assert_eq!(count(&store.snapshot().unwrap(), A, Bounds::ALL), u64::from(commits));
}
