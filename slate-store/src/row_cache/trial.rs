//! Whether a store makes use of its cache, which nobody can tell by its answers: for every store that has one.

use std::time::Duration;

use super::{Lookup, RowCache};
use crate::{Durability, Isolation, Keyspace, Points, Store, Transaction, View};

const A: Keyspace = Keyspace(1);

pub(crate) fn keys_asked_for_again_are_cached<S: Store>(store: &S, rows: &RowCache) {
    let keys: Vec<[u8; 4]> = (0..2_000_u32).map(u32::to_be_bytes).collect();
    let mut transaction = store.begin(Isolation::Snapshot, Duration::ZERO).unwrap();
    keys.iter().for_each(|key| transaction.put(A, key, b"stored").unwrap());
    transaction.commit(Durability::Deferred).unwrap();
    let snapshot = store.snapshot().unwrap();
    // Apart and in no order, as a sort names them.
    let mut apart = rows.undisturbed(A, (0..200).map(|at| &keys[at * 731 % 2_000][..]));
    let single = apart.pop().unwrap();
    apart.truncate(40);
    let mut points = snapshot.points(A).unwrap();
    // The first time it may be tried whether they lie close together.
    for _ in 0..4 {
        points.load(&apart).unwrap();
        assert!((0..40).all(|at| points.loaded(at) == Some(b"stored")));
        assert_eq!(points.get(single).unwrap(), Some(&b"stored"[..]));
    }
    let mut reader = rows.reader(A, rows.moment());
    assert!(apart.iter().chain([&single]).all(|key| matches!(reader.find(key), Lookup::Found(_))));
    // What is read then is what is cached, for some keys and for all.
    apart.iter().chain([&single]).for_each(|key| rows.forge(A, key, b"cached"));
    let mut some = apart.clone();
    some.extend([&keys[1_000][..], b"missing"]);
    for asked in [apart, some] {
        points.load(&asked).unwrap();
        assert!((0..40).all(|at| points.loaded(at) == Some(b"cached")));
    }
    assert_eq!((points.loaded(40), points.loaded(41), points.loaded(42)), (Some(&b"stored"[..]), None, None));
    assert_eq!(points.get(single).unwrap(), Some(&b"cached"[..]));
    assert_eq!(snapshot.get(A, single, <[u8]>::to_vec).unwrap().unwrap(), b"cached");
}
