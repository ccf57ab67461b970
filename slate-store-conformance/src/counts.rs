//! Counts of keys within bounds.

use std::collections::BTreeSet;

use super::{
    Fixture,
    tools::{A, B, LONG, Random, Writes, begin, commit, count, number, put, read_during_writes, transact, within},
};
use slate_store::{Bounds, Durability, Keyspace, Store, Transaction, TransactionExt, View};

pub fn a_count_is_the_number_of_keys_within_bounds<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", ""), ("b", ""), ("c", ""), ("d", "")]);
    let view = store.snapshot().unwrap();
    let expected = [(Bounds::ALL, 4), (within("b", "d"), 2), (within("b", "z"), 3), (within("x", "z"), 0)];
    for (bounds, expected) in expected.into_iter().chain([(within("d", "b"), 0), (within("", "b"), 1)]) {
        assert_eq!(count(&view, A, bounds), expected, "{bounds:?}");
    }
    assert_eq!((count(&view, B, Bounds::ALL), count(&view, B, within("a", "c"))), (0, 0));
    let mut transaction = begin(&store);
    transaction.put(A, b"e", b"").unwrap();
    transaction.delete(A, b"a").unwrap();
    transaction.put(A, b"bb", b"").unwrap();
    let view = transaction.view();
    assert_eq!((count(&view, A, Bounds::ALL), count(&view, A, within("b", "d"))), (5, 3), "with its own writes");
    assert_eq!(count(&view, B, Bounds::ALL), 0);
}

pub fn a_stopped_count_returns_none<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    transact(&store, Durability::Deferred, |transaction| {
        (0..5_000_u16).for_each(|key| transaction.put(A, &key.to_be_bytes(), b"").unwrap());
    });
    let view = store.snapshot().unwrap();
    let (from, to) = (1_000_u16.to_be_bytes(), 4_000_u16.to_be_bytes());
    let bounds = Bounds { start: Some(&from), end: Some(&to) };
    for most in [0, 1, 2_999] {
        let counted = view.count(A, bounds, |counted| counted < most);
        // A backend that counts without stepping never calls the closure.
        assert!(counted.unwrap().is_none_or(|counted| counted == 3_000));
    }
    assert_eq!(count(&view, A, bounds), 3_000);
}

/// The keys of two keyspaces.
type Model = [BTreeSet<[u8; 2]>; 2];

fn key(random: &mut Random) -> [u8; 2] {
    u16::try_from(random.below(8_000)).unwrap().to_be_bytes()
}

/// Compares counts with the model, within bounds that repeat, like those of an index's values, and within random
/// bounds.
fn check_counts(view: &impl View, model: &Model, random: &mut Random) {
    let usual = [[0, 0], [3, 0], [8, 0], [30, 0]];
    for (keyspace, keys) in [A, B].into_iter().zip(model) {
        let mut ends = [usual[random.index(4)], usual[random.index(4)]];
        if random.below(3) == 0 {
            ends[random.index(2)] = key(random);
        }
        let [from, to] = ends;
        let size =
            |within: &dyn Fn(&[u8; 2]) -> bool| keys.iter().filter(|key| within(key)).count().try_into().unwrap();
        let bounds = Bounds { start: Some(&from), end: Some(&to) };
        assert_eq!(count(view, keyspace, bounds), size(&|key| (from..to).contains(key)), "{bounds:?}");
        let bounds = Bounds { start: Some(&from), end: None };
        assert_eq!(count(view, keyspace, bounds), size(&|key| *key >= from), "{bounds:?}");
        assert_eq!(count(view, keyspace, Bounds::ALL), size(&|_| true));
    }
}

/// Uses enough keys for a store to cache counts, and few enough for a store to count them each time.
pub fn each_snapshot_counts_its_own_keys<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let mut random = Random::new(17);
    let mut model = Model::default();
    let mut kept = vec![(store.snapshot().unwrap(), model.clone())];
    for round in 0..120_u32 {
        let mut after = model.clone();
        let mut transaction = begin(&store);
        let (at, from, to) = (random.index(2), key(&mut random), key(&mut random));
        let keyspace = [A, B][at];
        match if round < 2 { 0 } else { random.below(10) } {
            0 => {
                let keys: Vec<[u8; 2]> = (0..6_000).map(|_| key(&mut random)).collect();
                let entries: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &b""[..])).collect();
                transaction.put_many(keyspace, &entries).unwrap();
                after[at].extend(keys);
            }
            1 => {
                transaction.delete_each(keyspace, Bounds { start: Some(&from), end: Some(&to) });
                after[at].retain(|key| !(from..to.max(from)).contains(key));
            }
            _ => {
                for _ in 0..random.below(6) {
                    let key = key(&mut random);
                    if random.below(2) == 0 {
                        transaction.put(keyspace, &key, b"1").unwrap();
                        after[at].insert(key);
                    } else {
                        transaction.delete(keyspace, &key).unwrap();
                        after[at].remove(&key);
                    }
                }
            }
        }
        check_counts(&transaction.view(), &after, &mut random);
        if random.below(6) == 0 {
            drop(transaction);
        } else {
            commit(transaction);
            model = after;
        }
        if random.below(25) == 0 {
            store.drop_keyspace(B, LONG).unwrap();
            model[1].clear();
        }
        let place = random.index(5);
        match kept.get_mut(place) {
            Some(old) => *old = (store.snapshot().unwrap(), model.clone()),
            None => kept.push((store.snapshot().unwrap(), model.clone())),
        }
        for _ in 0..4 {
            let (view, model) = &kept[random.index(kept.len())];
            check_counts(view, model, &mut random);
        }
    }
}

pub fn counts_during_writes_are_consistent_and_current<S: Store>(fixture: &Fixture<S>) {
    const ROUNDS: Keyspace = Keyspace(9);
    const BEFORE: u32 = 3_000;
    let store = fixture.open();
    // Scatters the numbers, so that all parts of a keyspace are written to.
    let spread = |number: u32| number.wrapping_mul(0x9e37_79b1).to_be_bytes();
    transact(&store, Durability::Deferred, |transaction| {
        for keyspace in [A, B] {
            (0..BEFORE).for_each(|key| transaction.put(keyspace, &spread(key), b"").unwrap());
        }
    });
    let middle = [0x80];
    let halves = [Bounds { start: Some(&[0]), end: Some(&middle) }, Bounds { start: Some(&middle), end: None }];
    let round = |view: &S::Snapshot, keyspace: Keyspace| {
        let round = number(view, ROUNDS, &keyspace.0.to_be_bytes());
        let counted: u64 = halves.iter().map(|half| count(view, keyspace, *half)).sum();
        assert_eq!(counted, u64::from(BEFORE) + round);
        round
    };
    read_during_writes(&store, 300, round, |transaction, keyspace, round| {
        let number = u32::try_from(round).unwrap();
        // Increases the number of keys by one: puts two and deletes one.
        let [gone, first, second] = [number, BEFORE + 2 * number, BEFORE + 2 * number + 1].map(spread);
        transaction.delete(keyspace, &gone).unwrap();
        transaction.put(keyspace, &first, b"").unwrap();
        transaction.put(keyspace, &second, b"").unwrap();
        transaction.put(ROUNDS, &keyspace.0.to_be_bytes(), &round.to_be_bytes()).unwrap();
    });
}
