//! Estimates: counted up to the cap.

use super::{
    Fixture,
    tools::{A, begin, put, within},
};
use crate::{Bounds, Estimate, Keyspace, Store, Transaction, View};

pub fn an_estimate_is_exact_up_to_its_cap_and_at_least_beyond<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", ""), ("b", ""), ("c", ""), ("d", "")]);
    let view = store.snapshot().unwrap();
    for (bounds, count) in [(Bounds::ALL, 4), (within("b", "d"), 2), (within("b", "z"), 3), (within("x", "z"), 0)] {
        for cap in 0..6 {
            let expected = if count <= cap { Estimate::Exact(count) } else { Estimate::AtLeast(cap) };
            assert_eq!(view.estimate(A, bounds, cap).unwrap(), expected, "{bounds:?} up to {cap}");
        }
    }
    assert_eq!(view.estimate(A, within("d", "b"), 10).unwrap(), Estimate::Exact(0));
    assert_eq!(view.estimate(Keyspace(99), Bounds::ALL, 10).unwrap(), Estimate::Exact(0));
    assert_eq!(view.estimate(A, Bounds::ALL, u64::MAX).unwrap(), Estimate::Exact(4));
}

pub fn an_estimate_counts_own_writes<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", ""), ("b", ""), ("c", "")]);
    let mut transaction = begin(&store);
    assert_eq!(transaction.view().estimate(A, Bounds::ALL, 10).unwrap(), Estimate::Exact(3));
    transaction.put(A, b"d", b"").unwrap();
    transaction.put(A, b"e", b"").unwrap();
    transaction.delete(A, b"a").unwrap();
    let view = transaction.view();
    assert_eq!(view.estimate(A, Bounds::ALL, 10).unwrap(), Estimate::Exact(4));
    assert_eq!(view.estimate(A, Bounds::ALL, 3).unwrap(), Estimate::AtLeast(3));
    assert_eq!(view.estimate(A, within("c", "e"), 3).unwrap(), Estimate::Exact(2));
}
