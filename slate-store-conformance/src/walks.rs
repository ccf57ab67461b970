//! Random puts, deletes and walks, compared with a `BTreeMap`.

use std::{
    collections::BTreeMap,
    ops::{Bound, ControlFlow},
};

use super::{
    Fixture,
    tools::{A, Random, Writes, begin, scan, single},
};
use slate_store::{Bounds, Cursor, Durability, Edge, Store, Transaction, TransactionExt, View};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns a random key: lengths vary from 0 to 40 bytes, keys can differ in one byte, and long ones end with a run of
/// 0xff.
fn key(random: &mut Random) -> Vec<u8> {
    let letters = [0x00, b'a', b'b', 0xfe, 0xff];
    let length = match random.below(8) {
        0 => 0,
        7 => 40, // Too long to lie in a tree's node.
        length => length,
    };
    (0..length).map(|at| if at > 3 { 0xff } else { letters[usize::try_from(random.below(5)).unwrap()] }).collect()
}

fn bounds(random: &mut Random) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let mut end = || (random.below(3) > 0).then(|| key(random));
    (end(), end())
}

/// Returns the model's entries within the bounds; none if the bounds are inverted.
fn entries<'m>(model: &'m Model, bounds: Bounds<'_>) -> Vec<(&'m [u8], &'m [u8])> {
    if bounds.is_empty() {
        return Vec::new();
    }
    let start = bounds.start.map_or(Bound::Unbounded, Bound::Included);
    let end = bounds.end.map_or(Bound::Unbounded, Bound::Excluded);
    model.range::<[u8], _>((start, end)).map(|(key, value)| (&key[..], &value[..])).collect()
}

/// Seeks and steps at random within random bounds, and compares each position with the model.
fn walk<V: View>(view: &V, model: &Model, random: &mut Random) {
    let (start, end) = bounds(random);
    let bounds = Bounds { start: start.as_deref(), end: end.as_deref() };
    let expected = entries(model, bounds);
    let most = usize::try_from(1 + random.below(6)).unwrap();
    let mut seen = Vec::new();
    let visitor = |key: &[u8], value: &[u8]| {
        seen.push((key.to_vec(), value.to_vec()));
        if seen.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(key.to_vec()) }
    };
    let broken = view.scan(A, bounds, visitor).unwrap();
    let seen: Vec<_> = seen.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    assert_eq!(seen, expected[..most.min(expected.len())], "a scan that breaks in {bounds:?}");
    assert_eq!(broken.as_deref(), expected.get(most - 1).map(|(key, _)| *key), "a scan that breaks in {bounds:?}");
    let mut cursor = view.cursor(A, bounds).unwrap();
    for _ in 0..3 {
        let target = key(random);
        let (edge, mut at) = match random.below(4) {
            0 => (Edge::First, (!expected.is_empty()).then_some(0)),
            1 => (Edge::Last, expected.len().checked_sub(1)),
            2 => (Edge::AtOrAfter(&target), expected.iter().position(|(key, _)| *key >= &target[..])),
            _ => (Edge::Before(&target), expected.iter().rposition(|(key, _)| *key < &target[..])),
        };
        assert_eq!(cursor.seek(edge).unwrap(), at.is_some(), "{edge:?} in {bounds:?}");
        for _ in 0..12 {
            assert_eq!(cursor.current(), at.map(|at| expected[at]), "{edge:?} in {bounds:?}");
            let forward = random.below(3) > 0;
            let next = at.and_then(|at| if forward { at.checked_add(1) } else { at.checked_sub(1) });
            at = next.filter(|at| *at < expected.len());
            let moved = if forward { cursor.step_forward() } else { cursor.step_back() };
            assert_eq!(moved.unwrap(), at.is_some());
        }
    }
    assert_eq!(view.count(A, bounds, |_| true).unwrap(), Some(expected.len().try_into().unwrap()), "{bounds:?}");
    let sought: Vec<Vec<u8>> = (0..6).map(|_| key(random)).collect();
    let sought: Vec<&[u8]> = sought.iter().map(|key| &key[..]).collect();
    let mut points = single(view, A);
    points.load(&sought);
    for (index, key) in sought.iter().enumerate() {
        let value = model.get(*key).map(|value| &value[..]);
        assert_eq!(points.loaded(index), value);
        assert_eq!(view.get(A, key, <[u8]>::to_vec).unwrap().as_deref(), value);
    }
}

/// Applies one random change to the transaction and to the model.
fn change(transaction: &mut impl Transaction, model: &mut Model, random: &mut Random, round: u32) {
    let at = key(random);
    match random.below(16) {
        0 => {
            let (start, end) = bounds(random);
            let bounds = Bounds { start: start.as_deref(), end: end.as_deref() };
            match random.below(2) {
                0 => transaction.delete_each(A, bounds),
                _ => transaction.delete_range(A, bounds).unwrap(),
            }
            let deleted: Vec<Vec<u8>> = entries(model, bounds).into_iter().map(|(key, _)| key.to_vec()).collect();
            deleted.iter().for_each(|key| drop(model.remove(key)));
        }
        1..=4 => {
            transaction.delete(A, &at).unwrap();
            model.remove(&at);
        }
        _ => {
            // From an empty value to one larger than a page.
            let value = vec![round.to_be_bytes()[3]; usize::try_from(random.below(10).pow(4)).unwrap()];
            transaction.put(A, &at, &value).unwrap();
            model.insert(at, value);
        }
    }
}

pub fn random_walks_over_uncommitted_writes_agree_with_a_btree_map<S: Store>(fixture: &Fixture<S>) {
    for seed in 1..=4 {
        let mut random = Random::new(seed);
        let store = fixture.open();
        store.drop_keyspace(A, super::tools::LONG).unwrap();
        let (mut model, mut committed) = (Model::new(), Model::new());
        let mut transaction = begin(&store);
        for round in 0..600 {
            change(&mut transaction, &mut model, &mut random, round);
            // Even seeds compare after each change, others only after several.
            if seed % 2 == 0 || random.below(20) == 0 {
                walk(&transaction.view(), &model, &mut random);
            }
            match random.below(60) {
                0 => {
                    transaction.commit(Durability::Deferred).unwrap();
                    committed = model.clone();
                    transaction = begin(&store);
                }
                1 => {
                    drop(transaction);
                    model = committed.clone();
                    transaction = begin(&store);
                }
                _ => {}
            }
        }
    }
}

pub fn random_walks_agree_with_a_btree_map<S: Store>(fixture: &Fixture<S>) {
    let mut random = Random::new(9);
    let store = fixture.open();
    let mut model = Model::new();
    let mut kept = Vec::new();
    for round in 0..60 {
        let mut transaction = begin(&store);
        for _ in 0..20 {
            change(&mut transaction, &mut model, &mut random, round);
        }
        transaction.commit(if round % 5 == 0 { Durability::Sync } else { Durability::Deferred }).unwrap();
        let view = store.snapshot().unwrap();
        for _ in 0..10 {
            walk(&view, &model, &mut random);
        }
        if round % 10 == 0 {
            kept.push((view, model.clone()));
        }
    }
    for (view, model) in kept {
        let found = scan(&view, A, Bounds::ALL);
        assert!(found.into_iter().eq(model), "an old snapshot does not change");
    }
}
