//! Whether a store makes use of its counts, which nobody can tell by its answers: for every store that has them.

use std::time::Duration;

use crate::{Bounds, Durability, Isolation, Keyspace, Store, Transaction, View};

const A: Keyspace = Keyspace(1);

pub(crate) fn what_was_counted_is_known<S: Store>(store: &S) {
    let write = |keys: &[u32]| {
        let mut transaction = store.begin(Isolation::Snapshot, Duration::ZERO).unwrap();
        keys.iter().for_each(|key| transaction.put(A, &key.to_be_bytes(), b"").unwrap());
        transaction.commit(Durability::Deferred).unwrap();
    };
    write(&(0..2_000).map(|key| key * 10).collect::<Vec<_>>());
    let (from, to) = (5_000_u32.to_be_bytes(), 15_000_u32.to_be_bytes());
    // The count, and the steps that it took.
    let count = || {
        let mut steps = 0_u64;
        let within = Bounds { start: Some(&from), end: Some(&to) };
        let keys = store.snapshot().unwrap().count(A, within, || {
            steps += 1;
            true
        });
        (keys.unwrap().unwrap(), steps)
    };
    assert_eq!(count(), (1_000, 1_000));
    assert_eq!(count(), (1_000, 0));
    write(&[7_001]);
    let (keys, steps) = count();
    assert!(keys == 1_001 && (1..100).contains(&steps), "what was written to is counted again: {keys}, {steps}");
    assert_eq!(count(), (1_001, 0));
    write(&[1]);
    assert_eq!(count(), (1_001, 0), "written elsewhere");
    // A commit of many keys, and whatever else does not tell them.
    write(&(0..1_000).map(|key| key * 20 + 1).collect::<Vec<_>>());
    assert_eq!(count(), (1_500, 1_500));
    assert_eq!(count(), (1_500, 0));
    store.drop_keyspace(A, Duration::ZERO).unwrap();
    assert_eq!(count(), (0, 0));
}
