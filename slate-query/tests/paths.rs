//! The values to which a path leads, and the distinct ones among them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::ops::ControlFlow;

use bson::{Bson, doc};
use slate_query::{
    distinct::values,
    path::{Found, Path, Step},
    raw::{Doc, OwnedValue},
};

fn ends(path: &str, document: bson::Document) -> Vec<String> {
    let owned = OwnedValue::from(bson::Bson::Document(document));
    let mut ends = Vec::new();
    let _ = Path::parse(path).unwrap().walk(owned.as_value().as_document().unwrap(), &mut |end| {
        let found = match end.found {
            Found::Value(value) => format!("{value:?}"),
            Found::Missing => "missing".into(),
            Found::Blocked => "blocked".into(),
        };
        let position = end.position.map(|position| format!(" at {position}")).unwrap_or_default();
        let step = if end.step == Step::Position { " by position" } else { "" };
        ends.push(format!("{found}{position}{step}"));
        ControlFlow::Continue(())
    });
    ends
}

#[test]
fn a_walk_visits_documents_in_arrays_and_positions() {
    for (path, document, expected) in [
        ("a", doc! {"a": [1, 2]}, vec!["[1, 2]"]),
        ("a.b", doc! {"a": {"b": 1}}, vec!["1"]),
        ("a.b", doc! {"a": 5}, vec!["missing"]),
        ("a.b", doc! {"a": []}, vec!["blocked"]),
        ("a.b", doc! {"a": [{"b": 1}, 5, {"c": 1}]}, vec!["1 at 0", "blocked at 1", "missing at 2"]),
        ("a.b", doc! {"a": [[{"b": 1}]]}, vec!["blocked at 0"]),
        ("a.1", doc! {"a": [5, [2, 4]]}, vec!["blocked at 0", "[2, 4] by position"]),
        ("a.0.b", doc! {"a": [{"b": 1}]}, vec!["missing at 0", "1"]),
        ("a.0.b", doc! {"a": [[{"b": 1}]]}, vec!["1 at 0"]),
        ("a.0.b", doc! {"a": [7]}, vec!["blocked"]),
        ("a.0", doc! {"a": [{"0": 1}]}, vec!["1 at 0", "{ \"0\": 1 } by position"]),
    ] {
        assert_eq!(ends(path, document.clone()), expected, "{path} in {document}");
    }
}

fn seen(path: &str, document: bson::Document) -> Vec<Bson> {
    let bytes = document.to_vec().unwrap();
    let mut seen = Vec::new();
    values(&Path::parse(path).unwrap(), Doc::new(&bytes), &mut |value| seen.push(value.to_bson().unwrap()));
    seen
}

#[test]
fn an_array_at_the_end_contributes_its_elements_one_level_deep() {
    assert_eq!(seen("a", doc! { "a": [1, [2, 3]] }), [Bson::from(1), Bson::from(vec![2, 3])]);
    assert_eq!(seen("a", doc! { "a": [] }), []);
}

#[test]
fn documents_in_arrays_are_gone_through_and_arrays_in_arrays_are_not() {
    assert_eq!(seen("a.b", doc! { "a": [{ "b": 1 }, 7, [{ "b": 2 }], { "b": [3, 4] }] }), [1, 3, 4].map(Bson::from));
}

#[test]
fn a_position_means_the_element_and_not_a_field_of_the_elements() {
    assert_eq!(seen("a.0", doc! { "a": [5, { "0": 6 }] }), [Bson::from(5)]);
    assert_eq!(seen("a.0.b", doc! { "a": [{ "b": 5 }, { "b": 6 }] }), [Bson::from(5)]);
    assert_eq!(seen("a.00", doc! { "a": [5, { "00": 6 }] }), []);
    assert_eq!(seen("a.0", doc! { "a": { "0": 6 } }), [Bson::from(6)]);
}

#[test]
fn missing_fields_contribute_nothing_and_null_is_a_value() {
    assert_eq!(seen("a.b", doc! { "a": 1 }), []);
    assert_eq!(seen("b", doc! { "a": 1 }), []);
    assert_eq!(seen("a", doc! { "a": null }), [Bson::Null]);
}
