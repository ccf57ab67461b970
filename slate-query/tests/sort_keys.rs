//! Comparing a document with a bound gives the same order as comparing their keys.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod random;

use proptest::{collection::vec, prelude::*};
use slate_query::{Code, key::skip, raw::Doc, sort::Sort};

fn sort(fields: &[(String, bool)]) -> Option<Sort> {
    let mut pattern = bson::Document::new();
    for (path, ascending) in fields {
        pattern.insert(path, if *ascending { 1 } else { -1 });
    }
    Sort::parse(Doc::new(&pattern.to_vec().unwrap())).ok()
}

/// Returns the bytes of the first fields in a key.
fn shown<'k>(sort: &Sort, shown: usize, key: &'k [u8]) -> &'k [u8] {
    let mut rest = key;
    for (_, direction) in sort.fields().iter().take(shown) {
        rest = rest.get(skip(rest, *direction).unwrap()..).unwrap();
    }
    key.strip_suffix(rest).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_document_reported_above_a_bound_has_a_higher_key(
        fields in vec((random::path(), any::<bool>()), 1..4),
        document in random::document(),
        other in random::document(),
        first in 0..3_usize,
    ) {
        let Some(sort) = sort(&fields) else { return Ok(()) };
        let (mut key, mut bound) = (Vec::new(), Vec::new());
        if sort.key(Doc::new(&other), &mut bound).is_err() {
            return Ok(());
        }
        let whole = sort.key(Doc::new(&document), &mut key);
        if sort.is_above(Doc::new(&document), &sort.bound(&bound, first).unwrap()) {
            prop_assert_eq!(whole, Ok(()));
            prop_assert!(key > bound, "{:?} and {:?}", key, bound);
            prop_assert_eq!(shown(&sort, first, &key), shown(&sort, first, &bound));
        }
    }
}

#[test]
fn documents_without_arrays_are_reported_above_a_bound_exactly_if_they_are() {
    let values = [bson::Bson::Null, 1.into(), 2_i64.into(), 2.5.into(), "a".into(), "ab".into(), true.into()];
    let pairs = values.iter().flat_map(|a| values.iter().map(move |b| (a, b)));
    let mut documents: Vec<_> = pairs.map(|(a, b)| bson::doc! { "a": a, "n": { "b": b } }).collect();
    documents.push(bson::doc! { "n": 1 });
    let documents: Vec<_> = documents.iter().map(|document| document.to_vec().unwrap()).collect();
    for (a, b) in [(true, true), (true, false), (false, true), (false, false)] {
        let sort = sort(&[("a".into(), a), ("n.b".into(), b)]).unwrap();
        for (bound, document) in documents.iter().flat_map(|bound| documents.iter().map(move |other| (bound, other))) {
            let (mut bound_key, mut key) = (Vec::new(), Vec::new());
            sort.key(Doc::new(bound), &mut bound_key).unwrap();
            sort.key(Doc::new(document), &mut key).unwrap();
            let is_above = sort.is_above(Doc::new(document), &sort.bound(&bound_key, 0).unwrap());
            assert_eq!(is_above, key > bound_key, "{document:?} and {bound:?}");
        }
    }
}

#[test]
fn a_document_that_cannot_be_sorted_fails_even_if_its_first_field_is_above_the_bound() {
    for (sort, document, code) in [
        (bson::doc! { "a": 1, "b": 1, "c": 1 }, bson::doc! { "a": 9, "b": [1], "c": [1] }, Code::BAD_VALUE),
        (bson::doc! { "a": 1, "b.0": 1 }, bson::doc! { "a": 9, "b": [{ "0": 1 }] }, Code(16746)),
    ] {
        let sort = Sort::parse(Doc::new(&sort.to_vec().unwrap())).unwrap();
        let (mut bound, mut key) = (Vec::new(), Vec::new());
        sort.key(Doc::new(&bson::doc! { "a": 1 }.to_vec().unwrap()), &mut bound).unwrap();
        let document = document.to_vec().unwrap();
        assert!(!sort.is_above(Doc::new(&document), &sort.bound(&bound, 0).unwrap()));
        assert_eq!(sort.key(Doc::new(&document), &mut key).unwrap_err().code(), code);
    }
}
