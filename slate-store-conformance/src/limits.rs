//! Small and large keys and values, and the limits that the capabilities state.

use super::{
    Fixture,
    tools::{A, B, all, begin, commit, single},
};
use slate_store::{Error, Store, Transaction, TransactionExt};

/// Puts the entry and checks that its own transaction and a snapshot show it.
fn check_entry<S: Store>(store: &S, key: &[u8], value: &[u8]) {
    let mut transaction = begin(store);
    transaction.put(A, key, value).unwrap();
    assert!(single(&transaction.view(), A).get(key) == Some(value));
    commit(transaction);
    let found = super::tools::scan(&store.snapshot().unwrap(), A, slate_store::Bounds::ALL);
    assert!(found.iter().any(|(at, found)| at == key && found == value));
    let mut single = single(&store.snapshot().unwrap(), A);
    assert!(single.get(key) == Some(value));
}

pub fn long_keys_and_empty_keys_and_values_are_stored<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    // The backend's own limit, at most 4 KiB: another test covers larger keys.
    let length = store.capabilities().max_key.min(4096);
    let long: Vec<u8> = (0_u8..=255).cycle().take(length).collect();
    for key in [&b""[..], b"\0", b"k", &long] {
        for value in [&b""[..], b"\0", b"v", &long] {
            check_entry(&store, key, value);
        }
    }
    let mut points = single(&store.snapshot().unwrap(), A);
    assert_eq!(points.get(&long[..length - 1]), None);
}

pub fn a_value_of_16_mb_is_stored<S: Store>(fixture: &Fixture<S>) {
    let value: Vec<u8> = (0..4 << 20_u32).flat_map(u32::to_be_bytes).collect();
    assert_eq!(value.len(), 16 << 20);
    let store = fixture.open();
    check_entry(&store, b"large", &value);
    if store.capabilities().persistent {
        drop(store);
        let mut points = single(&fixture.open().snapshot().unwrap(), A);
        assert!(points.get(b"large") == Some(&value[..]));
    }
}

pub fn the_largest_key_and_value_are_stored<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let capabilities = store.capabilities();
    assert!(capabilities.max_value >= 16 << 20, "a value holds the longest BSON document");
    check_entry(&store, &vec![0xff; capabilities.max_key], b"small");
    // A backend may have no practical limit.
    check_entry(&store, b"largest", &vec![7; capabilities.max_value.min(32 << 20)]);
}

pub fn writes_over_a_limit_fail_and_the_transaction_stays_usable<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let capabilities = store.capabilities();
    let mut transaction = begin(&store);
    transaction.put(A, b"before", b"").unwrap();
    let long = vec![0; capabilities.max_key + 1];
    let Err(Error::TooLarge(excess)) = transaction.put(A, &long, b"") else { panic!("the write succeeded") };
    assert_eq!((excess.what, excess.size, excess.limit), ("key", long.len(), capabilities.max_key));
    if capabilities.max_value <= 64 << 20 {
        let large = vec![0; capabilities.max_value + 1];
        let Err(error @ Error::TooLarge(_)) = transaction.put(B, b"k", &large) else { panic!("the write succeeded") };
        assert!(!error.is_retryable() && error.to_string().contains(&large.len().to_string()), "{error}");
    }
    // Loading a key that is too long succeeds and finds nothing.
    assert!(single(&transaction.view(), A).get(&long).is_none());
    assert!(matches!(transaction.delete(A, &long), Err(Error::TooLarge(_))));
    transaction.put(A, b"later", b"").unwrap();
    commit(transaction);
    let view = store.snapshot().unwrap();
    assert_eq!((all(&view, A), all(&view, B)), ("beforelater".into(), String::new()));
}
