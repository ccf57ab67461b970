//! Point readers.

use std::collections::BTreeMap;

use super::{
    Fixture,
    tools::{A, B, Random, Writes, begin, commit, put, scan, single},
};
use slate_store::{Bounds, Keyspace, PointReader, Store, Transaction, TransactionExt, View};

pub fn a_load_takes_duplicates_missing_keys_and_any_order<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let mut points = single(&store.snapshot().unwrap(), A);
    assert_eq!(points.loaded(0), None, "nothing was loaded yet");
    points.load(&[b"c", b"a", b"aa", b"a", b"c", b"", b"z", b"b"]);
    let loaded: Vec<_> = (0..9).map(|index| points.loaded(index)).collect();
    let [one, two, three] = [Some(&b"1"[..]), Some(&b"2"[..]), Some(&b"3"[..])];
    assert_eq!(loaded, [three, one, None, one, three, None, None, two, None]);
    points.load(&[b"b"]);
    assert_eq!((points.loaded(0), points.loaded(1)), (two, None));
    points.load(&[]);
    assert_eq!(points.loaded(0), None);
    let mut nowhere = single(&store.snapshot().unwrap(), Keyspace(99));
    nowhere.load(&[b"a", b"b"]);
    assert_eq!((nowhere.loaded(0), nowhere.loaded(1)), (None, None));
    assert_eq!(nowhere.get(b"a"), None);
}

pub fn point_reads_agree_with_a_cursor<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let mut random = Random::new(3);
    let mut transaction = begin(&store);
    for _ in 0..2_000 {
        let key = random.below(3_000).to_be_bytes();
        transaction.put(A, &key, &random.below(u64::MAX).to_be_bytes()).unwrap();
    }
    commit(transaction);
    let view = store.snapshot().unwrap();
    let entries = scan(&view, A, Bounds::ALL);
    let mut points = single(&view, A);
    for (key, value) in &entries {
        assert_eq!(points.get(key), Some(&value[..]));
        assert_eq!(view.get(A, key, <[u8]>::to_vec).unwrap().as_ref(), Some(value));
    }
    assert_eq!(view.get(A, b"", <[u8]>::to_vec).unwrap(), None);
    assert_eq!(view.get(Keyspace(99), &entries[0].0, <[u8]>::to_vec).unwrap(), None);
    // Loads keys at small and large distances, in ascending and descending order.
    for step in [1, 2, 7, 501, 1_999] {
        let mut keys: Vec<Vec<u8>> = (0..3_000).step_by(step).map(|key: u64| key.to_be_bytes().to_vec()).collect();
        for reversed in [false, true] {
            if reversed {
                keys.reverse();
            }
            let sought: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            points.load(&sought);
            for (index, key) in keys.iter().enumerate() {
                let found = entries.binary_search_by(|(at, _)| at.cmp(key)).ok();
                assert_eq!(points.loaded(index), found.map(|at| &entries[at].1[..]));
            }
        }
    }
}

pub fn point_reads_show_own_writes<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2"), ("c", "3")]);
    put(&store, B, &[("x", "1")]);
    let mut transaction = begin(&store);
    transaction.put(A, b"b", b"changed").unwrap();
    transaction.delete(A, b"c").unwrap();
    transaction.put(Keyspace(5), b"n", b"new").unwrap();
    let view = transaction.view();
    let mut points = single(&view, A);
    points.load(&[b"a", b"b", b"c"]);
    let loaded: Vec<_> = (0..3).map(|index| points.loaded(index)).collect();
    assert_eq!(loaded, [Some(&b"1"[..]), Some(&b"changed"[..]), None]);
    assert_eq!(points.get(b"c"), None);
    assert_eq!(view.get(A, b"b", <[u8]>::to_vec).unwrap().as_deref(), Some(&b"changed"[..]));
    assert_eq!(view.get(A, b"c", <[u8]>::to_vec).unwrap(), None);
    let (mut untouched, mut new) = (single(&view, B), single(&view, Keyspace(5)));
    untouched.load(&[b"x"]);
    assert_eq!((untouched.loaded(0), new.get(b"n")), (Some(&b"1"[..]), Some(&b"new"[..])));
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys for loads: close together and far apart, ascending and not, many and few.
const LOADS: [fn() -> Vec<u32>; 9] = [
    || (0..200).collect(),
    || (100..150).flat_map(|number| [number, number]).collect(),
    || (0..60).collect(),
    || (0..60).rev().collect(),
    || (0..3).collect(),
    || (2_900..3_100).collect(),
    || (0..3_000).step_by(97).collect(),
    || (0..200).collect(),
    Vec::new,
];

/// For each of [`LOADS`], makes it and all later ones with one reader, and compares each value with the model.
fn check_loads(view: &impl View, model: &Model) {
    for first in 0..LOADS.len() {
        let mut points = single(view, A);
        for numbers in &LOADS[first..] {
            let keys: Vec<[u8; 4]> = numbers().into_iter().map(u32::to_be_bytes).collect();
            points.load(&keys.iter().map(<[u8; 4]>::as_slice).collect::<Vec<_>>());
            for (index, key) in keys.iter().enumerate() {
                assert_eq!(points.loaded(index), model.get(&key[..]).map(Vec::as_slice), "{key:?} of {}", keys.len());
            }
            assert_eq!(points.loaded(keys.len()), None);
        }
    }
}

pub fn close_and_distant_keys_are_loaded<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let mut model = Model::new();
    let mut transaction = begin(&store);
    for number in (0..3_000_u32).filter(|number| number % 7 != 0) {
        let (key, value) = (number.to_be_bytes(), vec![7; number as usize % 50]);
        transaction.put(A, &key, &value).unwrap();
        model.insert(key.into(), value);
    }
    commit(transaction);
    check_loads(&store.snapshot().unwrap(), &model);
    // Some of the keys between are deleted, and some are deleted and put again.
    for step in [1, 2, 1, 3] {
        let mut transaction = begin(&store);
        for number in (20..190_u32).chain(2_900..3_000) {
            transaction.delete(A, &number.to_be_bytes()).unwrap();
            model.remove(&number.to_be_bytes()[..]);
        }
        commit(transaction);
        check_loads(&store.snapshot().unwrap(), &model);
        let mut transaction = begin(&store);
        for key in (20..190_u32).step_by(step).map(u32::to_be_bytes) {
            transaction.put(A, &key, b"again").unwrap();
            model.insert(key.into(), b"again".into());
        }
        commit(transaction);
        check_loads(&store.snapshot().unwrap(), &model);
    }
    let mut transaction = begin(&store);
    for number in (0..3_000_u32).step_by(5) {
        let key = number.to_be_bytes();
        if number % 2 == 0 {
            transaction.delete(A, &key).unwrap();
            model.remove(&key[..]);
        } else {
            transaction.put(A, &key, b"own").unwrap();
            model.insert(key.into(), b"own".into());
        }
    }
    check_loads(&transaction.view(), &model);
}

/// Single keys must be read and committed correctly for every order and number of writes.
pub fn own_writes_in_any_order_are_loaded_and_committed<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let mut model = Model::new();
    for (seed, steps) in [(1, 3), (2, 12), (3, 40), (4, 12), (5, 150), (6, 40)] {
        let mut random = Random::new(seed);
        let before = scan(&store.snapshot().unwrap(), A, Bounds::ALL);
        let reader = (seed % 2 == 0).then(|| store.snapshot().unwrap());
        let mut transaction = begin(&store);
        for _ in 0..steps {
            let first = random.below(2_000);
            match random.below(8) {
                0..3 => {
                    let (count, step) = (1 + random.below(150), 1 + random.below(4));
                    let keys: Vec<_> = (0..count).map(|at| (first + at * step).to_be_bytes()).collect();
                    let value = random.below(u64::MAX).to_string();
                    let entries: Vec<_> = keys.iter().map(|key| (&key[..], value.as_bytes())).collect();
                    transaction.put_many(A, &entries).unwrap();
                    model.extend(entries.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
                }
                3..5 => {
                    transaction.put(A, &first.to_be_bytes(), b"single").unwrap();
                    model.insert(first.to_be_bytes().into(), b"single".into());
                }
                5..7 => {
                    transaction.delete(A, &first.to_be_bytes()).unwrap();
                    model.remove(&first.to_be_bytes()[..]);
                }
                _ if seed == 6 => assert_eq!(scan(&transaction.view(), A, Bounds::ALL).len(), model.len()),
                _ => {}
            }
            let keys: Vec<_> = (0..50).map(|_| random.below(2_600).to_be_bytes()).collect();
            let view = transaction.view();
            let mut points = single(&view, A);
            points.load(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>());
            for (index, key) in keys.iter().enumerate() {
                let expected = model.get(&key[..]).map(Vec::as_slice);
                assert_eq!(points.loaded(index), expected, "loaded {key:?}");
            }
            for key in &keys {
                assert_eq!(points.get(key), model.get(&key[..]).map(Vec::as_slice), "{key:?}");
            }
        }
        commit(transaction);
        let after = scan(&store.snapshot().unwrap(), A, Bounds::ALL);
        assert!(after.iter().map(|(key, value)| (key, value)).eq(&model));
        assert!(reader.is_none_or(|reader| scan(&reader, A, Bounds::ALL) == before), "a snapshot is not changed");
    }
}

pub fn a_load_reads_keys_of_several_keyspaces<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2")]);
    put(&store, B, &[("a", "3")]);
    let keys: [(Keyspace, &[u8]); 6] =
        [(A, b"a"), (B, b"a"), (Keyspace(99), b"a"), (B, b"b"), (A, b"b"), (A, b"missing")];
    let expected = |values: [Option<&str>; 6]| values.map(|value| value.map(String::from));
    let loaded = load_all(&store.snapshot().unwrap(), &keys);
    assert_eq!(loaded, expected([Some("1"), Some("3"), None, None, Some("2"), None]));
    let mut transaction = begin(&store);
    transaction.put(B, b"b", b"own").unwrap();
    transaction.delete(A, b"a").unwrap();
    let loaded = load_all(&transaction.view(), &keys);
    assert_eq!(loaded, expected([None, Some("3"), None, Some("own"), Some("2"), None]));
}

pub fn a_load_that_was_sent_ahead_has_what_a_load_has<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let view = store.snapshot().unwrap();
    let mut own = begin(&store);
    own.put(A, b"b", b"own").unwrap();
    own.delete(A, b"c").unwrap();
    check_ahead(&view);
    check_ahead(&own.view());
    put(&store, A, &[("a", "later")]);
    check_ahead(&view);
    check_ahead(&own.view());
}

/// Sends several loads ahead and awaits them in reverse order; then sends one ahead and loads other keys.
fn check_ahead(view: &impl View) {
    let loads: [&[(Keyspace, &[u8])]; 4] =
        [&[(A, b"a"), (A, b"missing")], &[(A, b"c"), (A, b"b"), (A, b"c")], &[(B, b"a")], &[]];
    let mut readers: Vec<_> = loads.iter().map(|_| view.point_reader().unwrap()).collect();
    for (reader, keys) in readers.iter_mut().zip(loads) {
        assert_eq!(reader.load_ahead(keys).unwrap(), view.round_trips().is_some());
        assert_eq!(reader.loaded(0), None, "nothing was loaded yet");
    }
    for (mut reader, keys) in readers.into_iter().zip(loads).rev() {
        assert_eq!(load_with(&mut reader, keys), load_all(view, keys));
    }
    let mut reader = view.point_reader().unwrap();
    reader.load_ahead(&[(A, b"a")]).unwrap();
    for keys in loads {
        assert_eq!(load_with(&mut reader, keys), load_all(view, keys));
    }
}

fn load_all(view: &impl View, keys: &[(Keyspace, &[u8])]) -> Vec<Option<String>> {
    load_with(&mut view.point_reader().unwrap(), keys)
}

fn load_with(reader: &mut impl PointReader, keys: &[(Keyspace, &[u8])]) -> Vec<Option<String>> {
    reader.load(keys).unwrap();
    let text = |index| reader.loaded(index).map(|value| String::from_utf8(value.to_vec()).unwrap());
    (0..keys.len()).map(text).collect()
}
