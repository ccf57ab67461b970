//! Keyspaces are separate and can be dropped.

use super::{
    Fixture,
    tools::{A, B, LONG, Writes, all, begin, commit, get, put},
};
use slate_store::{Bounds, Cursor, Edge, Guard, Keyspace, SizeDetail, Store, Transaction, TransactionExt, View};

pub fn keyspaces_are_separate<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let numbers = [0, 1, 2, 0xff, 0x100, 0x1_0000, u32::MAX - 1, u32::MAX];
    for (number, key) in numbers.iter().zip("abcdefgh".chars()) {
        put(&store, Keyspace(*number), &[(&key.to_string(), ""), ("z", "")]);
    }
    let mut transaction = begin(&store);
    transaction.delete(Keyspace(1), b"z").unwrap();
    transaction.delete_each(Keyspace(2), Bounds::ALL);
    commit(transaction);
    let view = store.snapshot().unwrap();
    let found: Vec<_> = numbers.iter().map(|number| all(&view, Keyspace(*number))).collect();
    assert_eq!(found, ["az", "b", "", "dz", "ez", "fz", "gz", "hz"]);
}

pub fn a_dropped_keyspace_is_empty_at_once<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2")]);
    put(&store, B, &[("x", "1")]);
    store.drop_keyspace(A, LONG).unwrap();
    let view = store.snapshot().unwrap();
    assert_eq!((all(&view, A), all(&view, B)), (String::new(), "x".into()));
    assert_eq!(get(&view, A, "a"), None);
    let transaction = begin(&store);
    assert_eq!(all(&transaction.view(), A), "");
    drop(transaction);
    if store.capabilities().persistent {
        store.flush().unwrap();
        drop((view, store));
        let view = fixture.open().snapshot().unwrap();
        assert_eq!((all(&view, A), all(&view, B)), (String::new(), "x".into()));
    }
}

pub fn an_open_snapshot_shows_a_dropped_keyspace<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2")]);
    let view = store.snapshot().unwrap();
    let mut cursor = view.cursor(A, Bounds::ALL).unwrap();
    assert!(cursor.seek(Edge::First).unwrap());
    store.drop_keyspace(A, LONG).unwrap();
    assert!(cursor.step_forward().unwrap());
    assert_eq!(cursor.current().unwrap(), (&b"b"[..], &b"2"[..]));
    assert_eq!(all(&view, A), "ab");
}

pub fn dropping_a_missing_keyspace_does_nothing<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1")]);
    store.drop_keyspace(Keyspace(77), LONG).unwrap();
    store.drop_keyspace(Keyspace(77), LONG).unwrap();
    assert_eq!(all(&store.snapshot().unwrap(), A), "a");
}

/// A transaction that wrote to or guarded the keyspace conflicts with the drop, and one that only read it does not.
pub fn dropping_a_keyspace_conflicts_with_open_writers<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1")]);
    put(&store, B, &[("x", "1")]);
    for keyspace in [A, Keyspace(5)] {
        let (mut writer, mut deleter, mut reader) = (begin(&store), begin(&store), begin(&store));
        let mut guard = store.begin(LONG).unwrap();
        writer.put(keyspace, b"new", b"1").unwrap();
        deleter.delete(keyspace, b"a").unwrap();
        guard.guard(keyspace, b"a", Guard::Shared).unwrap();
        guard.put(B, b"guard", b"1").unwrap();
        assert_eq!(all(&reader.view(), A), "a");
        reader.put(B, b"reader", b"1").unwrap();
        // Creates and drops the second keyspace in between.
        put(&store, keyspace, &[("c", "1")]);
        store.drop_keyspace(keyspace, LONG).unwrap();
        for transaction in [writer, deleter, guard] {
            assert!(transaction.commit(slate_store::Durability::Sync).unwrap_err().is_retryable());
        }
        commit(reader);
        assert_eq!(all(&store.snapshot().unwrap(), keyspace), "", "dropped keys do not reappear");
        put(&store, A, &[("a", "1")]);
    }
    assert_eq!(all(&store.snapshot().unwrap(), B), "readerx");
}

pub fn the_size_of_a_database_is_reported<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("bb", "22")]);
    put(&store, A, &[("a", "123")]);
    let size = store.size(SizeDetail::Known).unwrap();
    assert!(size.data.is_none_or(|data| data == 8), "{size:?}");
    store.drop_keyspace(A, LONG).unwrap();
    assert!(store.size(SizeDetail::Known).unwrap().data.is_none_or(|data| data == 0));
    assert!(!store.capabilities().name.is_empty());
}
