//! A sort key that is written up to a bound only tells what the whole key tells.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use proptest::{collection::vec, prelude::*};
use slate_query::{Code, raw::Doc, sort::Sort, testing};

fn sort(fields: &[(String, bool)]) -> Option<Sort> {
    let mut pattern = bson::Document::new();
    for (path, ascending) in fields {
        pattern.insert(path, if *ascending { 1 } else { -1 });
    }
    Sort::parse(Doc::new(&pattern.to_vec().unwrap())).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_key_up_to_a_bound_is_the_key_or_above_it(
        fields in vec((testing::path(), any::<bool>()), 1..4),
        document in testing::document(),
        other in testing::document(),
    ) {
        let Some(sort) = sort(&fields) else { return Ok(()) };
        let (mut key, mut bound) = (Vec::new(), Vec::new());
        let whole = sort.key(Doc::new(&document), &mut key);
        if sort.key(Doc::new(&other), &mut bound).is_err() {
            return Ok(());
        }
        let mut written = Vec::new();
        match (whole, sort.key_up_to(Doc::new(&document), &bound, &mut written)) {
            (Ok(()), Ok(true)) => {
                prop_assert!(key <= bound);
                prop_assert_eq!(written, key);
            }
            (Ok(()), Ok(false)) => prop_assert!(key > bound),
            (Err(whole), Err(error)) => prop_assert_eq!(error.code(), whole.code()),
            (whole, up_to) => prop_assert!(false, "{whole:?} and {up_to:?} of {document:?}"),
        }
    }
}

#[test]
fn a_document_that_cannot_be_sorted_is_refused_though_its_first_field_is_above_the_bound() {
    for (sort, document, code) in [
        (bson::doc! { "a": 1, "b": 1, "c": 1 }, bson::doc! { "a": 9, "b": [1], "c": [1] }, Code::BAD_VALUE),
        (bson::doc! { "a": 1, "b.0": 1 }, bson::doc! { "a": 9, "b": [{ "0": 1 }] }, Code(16746)),
    ] {
        let sort = Sort::parse(Doc::new(&sort.to_vec().unwrap())).unwrap();
        let (mut bound, mut key) = (Vec::new(), Vec::new());
        sort.key(Doc::new(&bson::doc! { "a": 1 }.to_vec().unwrap()), &mut bound).unwrap();
        let document = document.to_vec().unwrap();
        let error = sort.key_up_to(Doc::new(&document), &bound, &mut key).unwrap_err();
        assert_eq!(error.code(), code);
    }
}
