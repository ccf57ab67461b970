//! Counts: of what the view has, whoever counted before.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use super::{
    Fixture,
    tools::{A, B, LONG, Random, begin, commit, number, put, transact, within},
};
use crate::{Bounds, Durability, Keyspace, Store, Transaction, View};

fn count(view: &impl View, keyspace: Keyspace, bounds: Bounds<'_>) -> u64 {
    view.count(keyspace, bounds, || true).unwrap().unwrap()
}

pub fn a_count_is_of_the_keys_within_its_bounds<S: Store>(fixture: &Fixture<S>) {
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

pub fn a_count_that_is_broken_off_tells_nothing<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    transact(&store, Durability::Deferred, |transaction| {
        (0..5_000_u16).for_each(|key| transaction.put(A, &key.to_be_bytes(), b"").unwrap());
    });
    let view = store.snapshot().unwrap();
    let (from, to) = (1_000_u16.to_be_bytes(), 4_000_u16.to_be_bytes());
    let bounds = Bounds { start: Some(&from), end: Some(&to) };
    for most in [0, 1, 2_999] {
        let mut steps = 0;
        let counted = view.count(A, bounds, || {
            steps += 1;
            steps <= most
        });
        // Who knows without a step is never asked.
        assert!(counted.unwrap().is_none_or(|counted| counted == 3_000));
    }
    assert_eq!(count(&view, A, bounds), 3_000);
}

/// What is in two keyspaces.
type Model = [BTreeSet<[u8; 2]>; 2];

fn key(random: &mut Random) -> [u8; 2] {
    u16::try_from(random.below(8_000)).unwrap().to_be_bytes()
}

/// Counts within bounds that are asked for again and again, as those of an index's values are, and within others.
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

/// As many keys as stores may keep counts of, and as few as they may count each time.
pub fn each_snapshot_counts_what_it_has<S: Store>(fixture: &Fixture<S>) {
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
                transaction.delete_range(keyspace, Bounds { start: Some(&from), end: Some(&to) }).unwrap();
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

/// Two who each write to a keyspace of its own, and two who count what is in both.
pub fn counts_beside_writers_are_whole_and_never_old<S: Store>(fixture: &Fixture<S>) {
    const NUMBERS: Keyspace = Keyspace(9);
    const BEFORE: u32 = 3_000;
    const ROUNDS: u32 = 300;
    let store = fixture.open();
    // Spread, so that all parts of a keyspace are written to.
    let spread = |number: u32| number.wrapping_mul(0x9e37_79b1).to_be_bytes();
    transact(&store, Durability::Deferred, |transaction| {
        for keyspace in [A, B] {
            (0..BEFORE).for_each(|key| transaction.put(keyspace, &spread(key), b"").unwrap());
        }
    });
    let committed = [const { AtomicU64::new(0) }; 2];
    let done = AtomicBool::new(false);
    let middle = [0x80];
    let halves = [Bounds { start: Some(&[0]), end: Some(&middle) }, Bounds { start: Some(&middle), end: None }];
    let total = |view: &S::Snapshot, keyspace| halves.iter().map(|half| count(view, keyspace, *half)).sum::<u64>();
    let look = || {
        let mut old: Option<(S::Snapshot, [u64; 2])> = None;
        for turn in 0_u64.. {
            let at_least = committed.each_ref().map(|number| number.load(Ordering::Acquire));
            let view = store.snapshot().unwrap();
            let rounds = [0, 1].map(|writer: u8| number(&view, NUMBERS, &[writer]));
            for (writer, keyspace) in [A, B].into_iter().enumerate() {
                assert!(rounds[writer] >= at_least[writer], "what was committed before is seen");
                assert_eq!(total(&view, keyspace), u64::from(BEFORE) + rounds[writer]);
                if let Some((view, old)) = &old {
                    assert_eq!(total(view, keyspace), u64::from(BEFORE) + old[writer], "it stays as it is");
                }
            }
            if turn % 5 == 0 {
                old = Some((view, rounds));
            }
            if done.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    let write = |writer: u8| {
        let keyspace = [A, B][usize::from(writer)];
        for round in 1..=ROUNDS {
            transact(&store, Durability::Deferred, |transaction| {
                // One more than before: two come, and one goes.
                let [gone, first, second] = [round, BEFORE + 2 * round, BEFORE + 2 * round + 1].map(spread);
                transaction.delete(keyspace, &gone).unwrap();
                transaction.put(keyspace, &first, b"").unwrap();
                transaction.put(keyspace, &second, b"").unwrap();
                transaction.put(NUMBERS, &[writer], &u64::from(round).to_be_bytes()).unwrap();
            });
            committed[usize::from(writer)].store(round.into(), Ordering::Release);
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(look));
        let writers = [0, 1].map(|writer| scope.spawn(move || write(writer)));
        let wrote = writers.map(thread::ScopedJoinHandle::join);
        done.store(true, Ordering::Relaxed);
        wrote.into_iter().chain(readers.map(thread::ScopedJoinHandle::join)).for_each(Result::unwrap);
    });
    assert_eq!(total(&store.snapshot().unwrap(), A), u64::from(BEFORE + ROUNDS));
}
