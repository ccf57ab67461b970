//! Snapshots: one commit, whole, for as long as they live.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use super::{
    Fixture,
    tools::{A, B, LONG, all, begin, commit, get, number, put, scan, transact, within},
};
use crate::{Bounds, Cursor, Durability, Edge, Keyspace, Points, Store, Transaction, View};

/// Not by small commits, nor by larger ones: stores may make them in ways of their own.
pub fn a_snapshot_is_never_torn<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    commit_beside_readers(&store, 4, 300);
    commit_beside_readers(&store, 200, 60);
}

/// Commits so many rounds, each of which puts its number under so many keys of three keyspaces.
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
                    // So that there are moments in which nobody reads.
                    thread::yield_now();
                }
            });
        }
        (1..=rounds).for_each(write);
        done.store(true, Ordering::Relaxed);
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
    assert_eq!(all(&view, A), "bd", "nor for a cursor opened later");
    assert_eq!(get(&view, A, "c"), None);
    assert_eq!(all(&store.snapshot().unwrap(), A), "acde");
}

pub fn a_snapshot_outlives_what_is_deleted_after_it<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2"), ("c", "3")]);
    put(&store, B, &[("x", "1")]);
    let view = store.snapshot().unwrap();
    let mut points = view.points(A).unwrap();
    let mut transaction = begin(&store);
    transaction.delete_range(A, within("a", "c")).unwrap();
    commit(transaction);
    store.drop_keyspace(B, LONG).unwrap();
    store.flush().unwrap();
    // Whatever freed room may hold, it is written over.
    for round in 0..20 {
        let value = [round; 4_000];
        transact(&store, Durability::Sync, |transaction| {
            (0..20_u8).for_each(|key| transaction.put(Keyspace(9), &[key], &value).unwrap());
        });
    }
    assert_eq!((all(&view, A), all(&view, B)), ("abc".into(), "x".into()));
    assert_eq!(points.get(b"b").unwrap(), Some(&b"2"[..]));
    assert_eq!(all(&store.snapshot().unwrap(), A), "c");
}

pub fn a_snapshot_outlives_the_store_and_its_own_handle<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2")]);
    let view = store.snapshot().unwrap();
    let mut points = view.points(A).unwrap();
    let mut cursor = view.cursor(A, Bounds::ALL).unwrap();
    let mut open = begin(&store);
    open.put(A, b"c", b"3").unwrap();
    drop(view);
    drop(store);
    let moved = thread::spawn(move || {
        assert!(cursor.seek(Edge::First).unwrap());
        assert_eq!(cursor.current().unwrap(), (&b"a"[..], &b"1"[..]));
        assert_eq!(points.get(b"b").unwrap(), Some(&b"2"[..]));
        points.load(&[b"b", b"c"]).unwrap();
        assert_eq!((points.loaded(0), points.loaded(1)), (Some(&b"2"[..]), None));
        commit(open);
        assert!(cursor.step_forward().unwrap() && !cursor.step_forward().unwrap());
    });
    moved.join().unwrap();
}
