//! Single transactions: own writes and atomicity.

use super::{
    Fixture,
    tools::{A, B, Writes, all, begin, commit, get, keys, put, scan, single, within},
};
use slate_store::{Bounds, Cursor, Edge, Error, Keyspace, Store, Transaction, TransactionExt, View};

pub fn a_transaction_reads_its_own_writes<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
    let mut transaction = begin(&store);
    assert_eq!(all(&transaction.view(), A), "abcd", "before its first write");
    transaction.put(A, b"bb", b"new").unwrap();
    transaction.put(A, b"c", b"changed").unwrap();
    transaction.delete(A, b"a").unwrap();
    transaction.delete(A, b"nothing there").unwrap();
    transaction.put(B, b"x", b"elsewhere").unwrap();
    transaction.delete(Keyspace(9), b"nor there").unwrap();
    let view = transaction.view();
    assert_eq!((all(&view, A), all(&view, B), all(&view, Keyspace(9))), ("bbbcd".into(), "x".into(), String::new()));
    assert_eq!(keys(&view, A, within("a", "c")), "bbb");
    let mut cursor = view.cursor(A, Bounds::ALL).unwrap();
    assert!(cursor.seek(Edge::Before(b"d")).unwrap());
    assert_eq!(cursor.current().unwrap(), (&b"c"[..], &b"changed"[..]));
    assert!(cursor.step_back().unwrap());
    assert_eq!(cursor.current().unwrap(), (&b"bb"[..], &b"new"[..]));
    assert_eq!((get(&view, A, "a"), get(&view, A, "c")), (None, Some("changed".into())));
    drop((cursor, view));
    assert_eq!(all(&store.snapshot().unwrap(), A), "abcd", "uncommitted writes are invisible to snapshots");
    commit(transaction);
    assert_eq!(all(&store.snapshot().unwrap(), A), "bbbcd");
}

pub fn a_range_delete_covers_own_writes_and_ends_at_its_bounds<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
    put(&store, B, &[("b", "other keyspace")]);
    let mut transaction = begin(&store);
    transaction.put(A, b"bb", b"new").unwrap();
    transaction.delete_each(A, within("b", "d"));
    assert_eq!(all(&transaction.view(), A), "ad");
    transaction.put(A, b"c", b"again").unwrap();
    assert_eq!(all(&transaction.view(), A), "acd");
    transaction.delete_each(A, Bounds { start: Some(b"d"), end: None });
    transaction.delete_each(A, Bounds { start: None, end: Some(b"b") });
    transaction.delete_each(Keyspace(50), Bounds::ALL);
    commit(transaction);
    let view = store.snapshot().unwrap();
    assert_eq!((all(&view, A), all(&view, B)), ("c".into(), "b".into()));
}

pub fn deleting_everything_and_writing_again_shows_the_new_only<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2")]);
    let mut transaction = begin(&store);
    transaction.delete_each(A, Bounds::ALL);
    assert_eq!(all(&transaction.view(), A), "");
    assert_eq!(get(&transaction.view(), A, "a"), None);
    transaction.put(A, b"b", b"new").unwrap();
    transaction.put(A, b"c", b"new").unwrap();
    transaction.delete_each(A, Bounds::ALL);
    transaction.put(A, b"c", b"newest").unwrap();
    assert_eq!(all(&transaction.view(), A), "c");
    commit(transaction);
    assert_eq!(scan(&store.snapshot().unwrap(), A, Bounds::ALL), [(b"c".to_vec(), b"newest".to_vec())]);
}

pub fn a_commit_spans_keyspaces<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let mut transaction = begin(&store);
    for number in 0..50 {
        transaction.put(Keyspace(number), b"key", &number.to_be_bytes()).unwrap();
    }
    let before = store.snapshot().unwrap();
    commit(transaction);
    let after = store.snapshot().unwrap();
    for number in 0..50 {
        assert_eq!(all(&before, Keyspace(number)), "");
        let mut points = single(&after, Keyspace(number));
        assert_eq!(points.get(b"key"), Some(&number.to_be_bytes()[..]));
    }
}

pub fn a_dropped_transaction_leaves_nothing<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2")]);
    let mut transaction = begin(&store);
    transaction.put(A, b"c", b"3").unwrap();
    transaction.put(A, b"a", b"changed").unwrap();
    transaction.delete(A, b"b").unwrap();
    transaction.delete_each(A, within("a", "b"));
    transaction.put(B, b"x", b"1").unwrap();
    drop(transaction);
    let view = store.snapshot().unwrap();
    assert_eq!((all(&view, A), all(&view, B), get(&view, A, "a")), ("ab".into(), String::new(), Some("1".into())));
    put(&store, A, &[("c", "3")]);
    assert_eq!(all(&store.snapshot().unwrap(), A), "abc", "a dropped transaction does not conflict");
}

pub fn a_transaction_stays_usable_after_an_error<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1")]);
    let mut transaction = begin(&store);
    transaction.put(A, b"b", b"2").unwrap();
    let long = vec![b'k'; store.capabilities().max_key + 1];
    assert!(matches!(transaction.put(A, &long, b""), Err(Error::TooLarge(_))));
    assert!(matches!(transaction.put_many(A, &[(b"c", b"3"), (&long, b"")]), Err(Error::TooLarge(_))));
    assert!(transaction.put(Keyspace(8), &long, b"").is_err(), "in a keyspace without earlier writes");
    assert_eq!(all(&transaction.view(), A), "ab", "earlier writes remain, and failed ones have no effect");
    transaction.put(A, b"d", b"4").unwrap();
    commit(transaction);
    assert_eq!(all(&store.snapshot().unwrap(), A), "abd");
}

pub fn one_call_with_many_puts_equals_single_puts<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("b", "1"), ("m", "1")]);
    let mut transaction = begin(&store);
    transaction.put_many(A, &[]).unwrap();
    // Keys above all existing ones, ascending; an existing key; unsorted keys; one key twice.
    transaction.put_many(A, &[(b"n", b"2"), (b"o", b"2"), (b"p", b"2")]).unwrap();
    transaction.put_many(A, &[(b"q", b"3"), (b"b", b"3"), (b"r", b"3"), (b"r", b"4")]).unwrap();
    transaction.put_many(A, &[(b"d", b"5"), (b"c", b"5"), (b"a", b"5"), (b"z", b"5")]).unwrap();
    transaction.put_many(B, &[(b"y", b"6"), (b"x", b"6")]).unwrap();
    assert_eq!(all(&transaction.view(), A), "abcdmnopqrz");
    commit(transaction);
    let view = store.snapshot().unwrap();
    assert_eq!((all(&view, A), all(&view, B)), ("abcdmnopqrz".into(), "xy".into()));
    let values: String = "abcdmnopqrz".chars().filter_map(|key| get(&view, A, &key.to_string())).collect();
    assert_eq!(values, "53551222345");
    // More keys than fit into one page, in a keyspace that has others.
    let keys: Vec<[u8; 4]> = (0..5_000_u32).map(u32::to_be_bytes).collect();
    let entries: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &key[..])).collect();
    let mut transaction = begin(&store);
    entries.chunks(700).for_each(|chunk| transaction.put_many(Keyspace(3), chunk).unwrap());
    transaction.put_many(Keyspace(3), &entries[100..200]).unwrap();
    commit(transaction);
    let found = scan(&store.snapshot().unwrap(), Keyspace(3), Bounds::ALL);
    assert!(found.iter().map(|(key, value)| (&key[..], &value[..])).eq(entries));
}
