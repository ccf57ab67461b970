//! Many keys at once, whether they lie close together or not.

use std::collections::BTreeMap;

use slate_store::{Durability, Points, Store, Transaction, View};

use crate::tools::{A, begin, made, open};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Loads keys of many kinds, one after the other by the same reader, and compares each value with the model's.
fn check_loads(points: &mut impl Points, model: &Model) {
    let loads: [Vec<u32>; 9] = [
        (0..200).collect(),
        (100..150).flat_map(|number| [number, number]).collect(),
        (0..60).collect(),
        (0..60).rev().collect(),
        (0..3).collect(),
        (2_900..3_100).collect(),
        (0..3_000).step_by(97).collect(),
        (0..200).collect(),
        Vec::new(),
    ];
    for numbers in loads {
        let keys: Vec<Vec<u8>> = numbers.into_iter().map(key).collect();
        points.load(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(points.loaded(index), model.get(key).map(Vec::as_slice), "{key:?} of {} keys", keys.len());
        }
        assert_eq!(points.loaded(keys.len()), None);
    }
}

#[test]
fn keys_near_and_far_are_loaded_alike() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&made(folder.path()));
    let mut model = Model::from([(b"a".to_vec(), b"1".to_vec())]);
    let mut transaction = begin(&store);
    for number in (0..3_000).filter(|number| number % 7 != 0) {
        let value = vec![7; usize::try_from(number % 50).unwrap()];
        transaction.put(A, &key(number), &value).unwrap();
        model.insert(key(number), value);
    }
    transaction.commit(Durability::Deferred).unwrap();
    let view = store.snapshot().unwrap();
    check_loads(&mut view.points(A).unwrap(), &model);

    let mut transaction = begin(&store);
    for number in (0..3_000).step_by(5) {
        if number % 2 == 0 {
            transaction.delete(A, &key(number)).unwrap();
            model.remove(&key(number));
        } else {
            transaction.put(A, &key(number), b"own").unwrap();
            model.insert(key(number), b"own".to_vec());
        }
    }
    check_loads(&mut transaction.view().points(A).unwrap(), &model);
}
