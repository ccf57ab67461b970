//! Operations on sets of intervals equal those on sets of keys.

use proptest::{collection::vec, prelude::*};
use slate_query::{
    interval::{Interval, IntervalSet, Place},
    key::{Direction, encode},
    raw::OwnedValue,
};

fn key(int: i32) -> Vec<u8> {
    let mut out = Vec::new();
    encode(OwnedValue::from(bson::Bson::Int32(int)).as_value(), &mut out);
    out
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        6 => (0..8_i32).prop_map(|int| Place::before(key(int))),
        6 => (0..8_i32).prop_map(|int| Place::after(key(int))),
        1 => Just(Place::before([])),
        1 => Just(Place::after([])),
    ]
}

fn set() -> impl Strategy<Value = IntervalSet> {
    vec((place(), place()).prop_map(|(low, high)| Interval::new(low, high)), 0..4).prop_map(IntervalSet::from)
}

/// Returns whether a compound key that starts with `component` is in the set, by its bytes.
fn holds(set: &IntervalSet, component: &[u8]) -> bool {
    let compound = [component, &key(3)].concat();
    set.iter().any(|interval| *interval.low().to_bytes(&[]) <= *compound && *compound < *interval.high().to_bytes(&[]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn operations_on_sets_are_those_on_their_keys(a in set(), b in set()) {
        for int in -1..9 {
            let key = key(int);
            let (in_a, in_b) = (holds(&a, &key), holds(&b, &key));
            prop_assert_eq!(a.contains(&key), in_a);
            prop_assert_eq!(holds(&a.union(&b), &key), in_a || in_b);
            prop_assert_eq!(holds(&a.intersect(&b), &key), in_a && in_b);
            prop_assert_eq!(holds(&a.complement(), &key), !in_a);
            let mut inverted = key.clone();
            Direction::Descending.apply(&mut inverted);
            prop_assert_eq!(holds(&a.inverted(), &inverted), in_a);
        }
    }

    #[test]
    fn sets_are_sorted_disjoint_and_canonical(a in set(), b in set()) {
        for set in [a.union(&b), a.intersect(&b), a.complement(), a.inverted()] {
            let intervals: Vec<_> = set.iter().collect();
            prop_assert!(intervals.iter().all(|interval| interval.low() < interval.high()));
            prop_assert!(intervals.windows(2).all(|pair| pair[0].high() < pair[1].low()));
        }
        prop_assert_eq!(a.complement().complement(), a.clone());
        prop_assert_eq!(a.inverted().inverted(), a.clone());
        prop_assert!(a.union(&a.complement()).is_all());
        prop_assert!(a.intersect(&a.complement()).is_empty());
    }
}

#[test]
fn a_point_is_recognized() {
    let point: IntervalSet = Interval::point(key(5)).into();
    assert_eq!(point.as_point(), Some(&key(5)[..]));
    assert!(point.is_points());
    assert_eq!(IntervalSet::all().as_point(), None);
    assert_eq!(point.union(&Interval::point(key(7)).into()).as_point(), None);
    assert!(point.union(&Interval::point(key(7)).into()).is_points());
}
