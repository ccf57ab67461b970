//! Compares trees with the standard library's `BTreeMap`. Leaves are small in tests, so that small trees split and
//! merge like large ones.

use std::collections::BTreeMap;

use slate_store_conformance::Random;

use super::{
    super::{cursor::BorrowedCursor, leaf::MAX_INLINE},
    *,
};
use crate::{Cursor, Edge};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Kinds of keys: numbers; numbers with a prefix that is too long for an inline key; texts of all lengths, each a
/// prefix of the next.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Short,
    Long,
    Nested,
}

impl Keys {
    fn key(self, number: u64) -> Vec<u8> {
        match self {
            Self::Short => number.to_be_bytes()[4..].to_vec(),
            Self::Long => [&[7; 40][..], &number.to_be_bytes()].concat(),
            Self::Nested => {
                [vec![u8::try_from(number / 64 % 4).unwrap(); 1 + usize::try_from(number % 64).unwrap()], {
                    number.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect()
                }]
                .concat()
            }
        }
    }
}

/// Kinds of values: all empty, as in an index; none empty, as in a collection; some empty.
#[derive(Clone, Copy, Debug)]
enum Values {
    Empty,
    Full,
    Some,
}

impl Values {
    fn value(self, random: &mut Random) -> Vec<u8> {
        let full = match self {
            Self::Empty => false,
            Self::Full => true,
            Self::Some => random.below(8) == 0,
        };
        if full { vec![1; usize::try_from(1 + random.below(9)).unwrap()] } else { Vec::new() }
    }
}

fn check_structure(tree: &Tree) {
    let mut low = Some(Key::new(&[]));
    for (separator, leaf) in &tree.leaves {
        assert_eq!(Some(&separator.low), low.as_ref(), "each separator begins where the one before ends");
        assert!((1..=MAX_INLINE).contains(&leaf.entries().len()));
        assert!(leaf.entries().iter().all(|(key, _)| separator.contains(&Probe::from(key))));
        low = separator.end.clone();
    }
    assert!(tree.leaves.is_empty() || low.is_none(), "the last separator has no end");
}

fn check(tree: &Tree, model: &Model, keys: Keys, range: u64, random: &mut Random) {
    check_structure(tree);
    assert!(tree.entries().map(|(key, value)| (key.as_slice(), &**value)).eq(model.iter().map(|(k, v)| (&**k, &**v))));
    assert_eq!(tree.extent().entries, size(model.len()));
    assert_eq!(tree.extent().bytes, model.iter().map(|(key, value)| size(key.len() + value.len())).sum::<u64>());
    for _ in 0..40 {
        let key = keys.key(random.below(range));
        assert_eq!(tree.get(&key).map(|value| value.to_vec()), model.get(&key).cloned(), "{key:?}");
    }
    for _ in 0..10 {
        let (start, end) = (keys.key(random.below(range)), keys.key(random.below(range)));
        let bounds = Bounds { start: Some(&start), end: Some(&end).filter(|_| random.below(4) > 0).map(|end| &**end) };
        let within: Vec<_> = model.iter().filter(|(key, _)| bounds.contains(key)).collect();
        assert_eq!(tree.count(bounds, u64::MAX), size(within.len()), "{bounds:?}");
        assert_eq!(tree.count(bounds, u64::MAX), size(within.len()));
        let mut cursor = BorrowedCursor::new(Some(tree), bounds);
        let mut met = Vec::new();
        let mut more = cursor.seek(Edge::First).unwrap();
        while more {
            let (key, value) = cursor.current().unwrap();
            met.push((key.to_vec(), value.to_vec()));
            more = cursor.step_forward().unwrap();
        }
        assert!(met.iter().map(|(key, value)| (key, value)).eq(within.iter().copied()), "{bounds:?}");
        let mut back = Vec::new();
        let mut more = cursor.seek(Edge::Last).unwrap();
        while more {
            back.push(cursor.current().unwrap().0.to_vec());
            more = cursor.step_back().unwrap();
        }
        assert!(back.iter().rev().eq(within.iter().map(|(key, _)| *key)), "{bounds:?}");
    }
}

fn put(tree: &mut Tree, model: &mut Model, entries: impl IntoIterator<Item = (Vec<u8>, Option<Vec<u8>>)>) {
    let entries: BTreeMap<_, _> = entries.into_iter().collect();
    let writes = entries.iter().map(|(key, value)| (Key::new(key), value.as_deref().map(Value::new)));
    tree.write_sorted(writes);
    for (key, value) in entries {
        match value {
            Some(value) => model.insert(key, value),
            None => model.remove(&key),
        };
    }
}

#[test]
fn a_tree_and_its_old_versions_equal_a_btree_map() {
    const RANGE: u64 = 4_000;
    for (keys, values, seed) in [
        (Keys::Short, Values::Empty, 1),
        (Keys::Short, Values::Full, 2),
        (Keys::Short, Values::Some, 3),
        (Keys::Long, Values::Some, 4),
        (Keys::Nested, Values::Full, 5),
        (Keys::Nested, Values::Empty, 6),
    ] {
        let random = &mut Random::new(seed);
        let (mut tree, mut model) = (Tree::default(), Model::new());
        let mut kept: Vec<(Tree, Model)> = Vec::new();
        for round in 0..120 {
            // The tree grows for a while and shrinks for a while.
            let shrinks = round % 40 >= 24;
            let (from, spread) = (random.below(RANGE), 1 + random.below(RANGE));
            let most = if random.below(3) == 0 { 300 } else { 5 };
            let many = random.below(most);
            let mut writes = Vec::new();
            for step in 0..many {
                let number = if spread % 2 == 0 { from + step } else { from + random.below(spread) } % RANGE;
                let deletes = random.below(8) < if shrinks { 7 } else { 1 };
                writes.push((keys.key(number), (!deletes).then(|| values.value(random))));
            }
            if shrinks && random.below(4) == 0 {
                writes.extend((from..from + spread).map(|number| (keys.key(number % RANGE), None)));
            }
            if random.below(2) == 0 {
                put(&mut tree, &mut model, writes);
            } else {
                writes.into_iter().for_each(|write| put(&mut tree, &mut model, [write]));
            }
            check(&tree, &model, keys, RANGE, random);
            if random.below(3) == 0 {
                kept.push((tree.clone(), model.clone()));
            }
            if kept.len() > 3 {
                let (tree, model) = kept.swap_remove(usize::try_from(random.below(4)).unwrap());
                check(&tree, &model, keys, RANGE, random);
            }
        }
        kept.iter().for_each(|(tree, model)| check(tree, model, keys, RANGE, random));
        put(&mut tree, &mut model, (0..RANGE).map(|number| (keys.key(number), None)));
        assert!(tree.leaves.is_empty() && tree.extent().bytes == 0, "{keys:?} {values:?}");
    }
}

/// Splits the leaves around a few keys repeatedly, so that `OrdMap` searches by outdated copies of separators.
#[test]
fn keys_are_found_despite_outdated_separators_in_the_map() {
    let (mut tree, mut model) = (Tree::default(), Model::new());
    let random = &mut Random::new(7);
    let group = |group: u64, number: u64| group * 100_000 + number;
    for number in 0..60 {
        put(&mut tree, &mut model, (0..40).map(|at| (Keys::Short.key(group(at, number)), Some(vec![]))));
    }
    for at in 0..40 {
        for number in 60..600 {
            put(&mut tree, &mut model, [(Keys::Short.key(group(at, number)), Some(vec![]))]);
        }
    }
    let all = model.keys().map(|key| Probe::new(key));
    let misled = all.filter(|key| tree.leaves.get(&Around(key)).is_none()).count();
    assert!(misled > 0, "no search of this tree is misled");
    for key in model.keys() {
        assert!(tree.get(key).is_some(), "{key:?}");
    }
    check(&tree, &model, Keys::Short, group(40, 0), random);
    // Writes and deletes are found in the same places.
    let again: Vec<_> = (0..600).step_by(7).map(|number| Keys::Short.key(group(number % 40, number))).collect();
    for key in &again {
        put(&mut tree, &mut model, [(key.clone(), Some(vec![1]))]);
    }
    check(&tree, &model, Keys::Short, group(40, 0), random);
    put(&mut tree, &mut model, again.into_iter().map(|key| (key, None)));
    check(&tree, &model, Keys::Short, group(40, 0), random);
}
