//! A document's index keys contain every value that a filter can match, and sorts use the least of them.

#![expect(clippy::unwrap_used, reason = "in helpers of tests, too, a panic is the failure")]

mod random;

use std::{collections::BTreeSet, ops::ControlFlow};

use bson::{Bson, Document, doc};
use proptest::prelude::*;
use slate_query::{
    Code,
    key::{Decoded, Direction, TypeReader, decode, encode_directed, skip},
    path::{Found, Path, Step},
    pattern::{KeyPattern, Keys},
    raw::{Doc, OwnedValue, Value},
    sort::Sort,
};

fn raw(document: &Document) -> Vec<u8> {
    document.to_vec().unwrap()
}

fn pattern(fields: &[(String, Direction)]) -> KeyPattern {
    let document: Document = fields
        .iter()
        .map(|(path, direction)| (path.clone(), Bson::Int32(if *direction == Direction::Ascending { 1 } else { -1 })))
        .collect();
    KeyPattern::parse(Doc::new(&raw(&document))).unwrap()
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Ascending), Just(Direction::Descending)]
}

fn fields(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(String, Direction)>> {
    prop::collection::vec((random::path(), direction()), count).prop_map(|mut fields| {
        let mut seen = BTreeSet::new();
        fields.retain(|(path, _)| seen.insert(path.clone()));
        fields
    })
}

/// Returns the components of each key as bytes.
fn components(keys: &Keys, fields: &[(String, Direction)]) -> Vec<Vec<Vec<u8>>> {
    keys.iter()
        .map(|(mut key, _)| {
            let parts = fields
                .iter()
                .map(|(_, direction)| {
                    let (part, rest) = key.split_at(skip(key, *direction).unwrap());
                    key = rest;
                    part.to_vec()
                })
                .collect();
            assert!(key.is_empty());
            parts
        })
        .collect()
}

/// Returns the values that a filter on the path sees: values, array elements, null for missing fields.
fn seen(path: &str, doc: Doc<'_>) -> Vec<OwnedValue> {
    let mut seen = Vec::new();
    let _ = Path::parse(path).unwrap().walk(doc, &mut |end| {
        match end.found {
            Found::Value(value) => match value.as_array() {
                Some(array) if end.step == Step::Name => seen.extend(array.values().map(Value::to_owned)),
                _ => seen.push(value.to_owned()),
            },
            Found::Missing => seen.push(Value::NULL.to_owned()),
            Found::Blocked => {}
        }
        ControlFlow::Continue(())
    });
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, ..ProptestConfig::default() })]

    #[test]
    fn no_index_loses_a_value_that_a_filter_can_match(fields in fields(1..4), document in random::document()) {
        let doc = Doc::new(&document);
        let mut keys = Keys::new();
        match pattern(&fields).keys(doc, &mut keys) {
            Ok(()) => {}
            Err(error) => {
                prop_assert!(matches!(error.code(), Code::CANNOT_INDEX_PARALLEL_ARRAYS | Code(16746)));
                return Ok(());
            }
        }
        let components = components(&keys, &fields);
        prop_assert!(!components.is_empty());
        for (field, (path, direction)) in fields.iter().enumerate() {
            for value in seen(path, doc) {
                let mut expected = Vec::new();
                encode_directed(Some(value.as_value()), *direction, &mut expected);
                let found = components.iter().any(|entry| entry[field] == expected);
                prop_assert!(found, "{:?} of {} in {:?}", value, path, doc);
            }
        }
    }

    #[test]
    fn entries_are_distinct_and_in_order(fields in fields(1..4), document in random::document()) {
        let mut keys = Keys::new();
        if pattern(&fields).keys(Doc::new(&document), &mut keys).is_ok() {
            let entries: Vec<_> = keys.iter().map(|(key, _)| key).collect();
            prop_assert!(entries.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn only_a_multikey_index_has_several_entries(fields in fields(1..4), document in random::document()) {
        let mut keys = Keys::new();
        if pattern(&fields).keys(Doc::new(&document), &mut keys).is_ok() {
            let multikey = keys.multikey().iter().any(|mask| *mask != 0);
            prop_assert_eq!(keys.multikey().len(), fields.len());
            prop_assert!(multikey || keys.len() == 1);
        }
    }

    #[test]
    fn an_entry_that_is_not_multikey_contains_the_values_at_its_paths(
        fields in fields(1..4), document in random::document(),
    ) {
        let doc = Doc::new(&document);
        let mut keys = Keys::new();
        if pattern(&fields).keys(doc, &mut keys).is_ok() && keys.multikey().iter().all(|mask| *mask == 0) {
            let (mut key, bits) = keys.iter().next().unwrap();
            let mut reader = TypeReader::new(bits);
            for (path, direction) in &fields {
                let value = Path::parse(path).unwrap().get(doc).map(Value::to_owned);
                let expected = value.map_or(Decoded::Missing, Decoded::Value);
                prop_assert_eq!(decode(&mut key, *direction, &mut reader), Some(expected));
            }
        }
    }

    #[test]
    fn a_sort_uses_the_least_key_of_an_index_on_the_same_paths(
        fields in fields(1..4), document in random::document(),
    ) {
        let doc = Doc::new(&document);
        let pattern = pattern(&fields);
        let sort: Document =
            fields.iter().map(|(path, direction)| (path.clone(), Bson::Int32(if *direction == Direction::Ascending { 1 } else { -1 }))).collect();
        let sort = Sort::parse(Doc::new(&raw(&sort))).unwrap();
        let (mut keys, mut key) = (Keys::new(), b"before".to_vec());
        match (pattern.keys(doc, &mut keys), sort.key(doc, &mut key)) {
            (Ok(()), Ok(())) => {
                // For a path component that is a number, an index contains more than a sort uses.
                if !fields.iter().any(|(path, _)| Path::parse(path).unwrap().has_position()) {
                    prop_assert_eq!(&key[6..], keys.iter().next().unwrap().0);
                }
            }
            (Err(index), Err(sort)) => {
                let parallel = index.code() == Code::CANNOT_INDEX_PARALLEL_ARRAYS;
                prop_assert_eq!(sort.code(), if parallel { Code::BAD_VALUE } else { index.code() });
                prop_assert_eq!(key, b"before".to_vec());
            }
            (index, sort) => prop_assert!(false, "{:?} {:?}", index, sort),
        }
    }
}

fn entries(pattern: Document, document: Document) -> Result<Vec<String>, i32> {
    let parsed = KeyPattern::parse(Doc::new(&raw(&pattern))).unwrap();
    let mut keys = Keys::new();
    parsed.keys(Doc::new(&raw(&document)), &mut keys).map_err(|error| error.code().0)?;
    Ok(keys
        .iter()
        .map(|(mut key, bits)| {
            let mut bits = TypeReader::new(bits);
            let values: Vec<_> = parsed
                .fields()
                .iter()
                .map(|(_, direction)| match decode(&mut key, *direction, &mut bits).unwrap() {
                    Decoded::Value(value) => format!("{value:?}"),
                    Decoded::Missing => "missing".into(),
                })
                .collect();
            values.join(", ")
        })
        .collect())
}

#[test]
fn documents_have_the_same_keys_as_in_mongodb() {
    for (pattern, document, expected) in [
        (doc! {"a": 1}, doc! {}, Ok(vec!["missing"])),
        (doc! {"a": 1}, doc! {"a": null}, Ok(vec!["null"])),
        (doc! {"a": 1}, doc! {"a": []}, Ok(vec!["undefined"])),
        (doc! {"a": 1}, doc! {"a": [3, 1, 3.0, [2]]}, Ok(vec!["1", "3", "[2]"])),
        (doc! {"a": -1}, doc! {"a": [3, 1]}, Ok(vec!["3", "1"])),
        (doc! {"a.b": 1}, doc! {"a": []}, Ok(vec!["missing"])),
        (doc! {"a.b": 1}, doc! {"a": [5, {"b": 2}, [{"b": 7}]]}, Ok(vec!["missing", "2"])),
        (doc! {"a.b": 1}, doc! {"a": [{"b": [1, 2]}, {"b": []}]}, Ok(vec!["undefined", "1", "2"])),
        (doc! {"a.b": 1}, doc! {"a": 5}, Ok(vec!["missing"])),
        (doc! {"a.b": 1, "a.c": 1}, doc! {"a": [{"b": 1, "c": 2}, {"b": 3}]}, Ok(vec!["1, 2", "3, missing"])),
        (doc! {"a.b": 1, "c": -1}, doc! {"a": [{"b": 1}, {"b": 2}], "c": "x"}, Ok(vec!["1, \"x\"", "2, \"x\""])),
        (doc! {"a": 1, "a.b": 1}, doc! {"a": [{"b": 1}]}, Ok(vec!["{ \"b\": 1 }, 1"])),
        (doc! {"a": 1, "b": 1}, doc! {"a": [1], "b": [2]}, Err(171)),
        (doc! {"a": 1, "b": 1}, doc! {"a": [], "b": []}, Err(171)),
        (doc! {"a.b": 1, "a.c": 1}, doc! {"a": [{"b": [1], "c": [2]}]}, Err(171)),
        (doc! {"a.0": 1}, doc! {"a": [5, 6]}, Ok(vec!["5"])),
        (doc! {"a.0": 1}, doc! {"a": [[1, 2], 6]}, Ok(vec!["[1, 2]"])),
        (doc! {"a.5": 1}, doc! {"a": [5, 6]}, Ok(vec!["missing"])),
        (doc! {"a.0.b": 1}, doc! {"a": [{"b": 5}]}, Ok(vec!["missing", "5"])),
        (doc! {"a.0": 1}, doc! {"a": [{"0": 5}]}, Err(16746)),
        (doc! {"a.b": 1, "a.b.0": 1}, doc! {"a": {"b": [1, 2]}}, Ok(vec!["1, 1", "2, 1"])),
    ] {
        let expected = expected.map(|keys| keys.into_iter().map(String::from).collect());
        assert_eq!(entries(pattern.clone(), document.clone()), expected, "{pattern} on {document}");
    }
}

#[test]
fn sparse_indexes_omit_documents_without_the_fields() {
    let parsed = KeyPattern::parse(Doc::new(&raw(&doc! {"a.b": 1, "a.c": 1}))).unwrap();
    let mut keys = Keys::new();
    for (document, left) in [(doc! {"a": {}}, 0), (doc! {"a": {"b": null}}, 1), (doc! {"a": [{"c": 1}, {"d": 1}]}, 1)] {
        parsed.keys(Doc::new(&raw(&document)), &mut keys).unwrap();
        keys.drop_absent();
        assert_eq!(keys.len(), left, "{document}");
    }
}

#[test]
fn multikey_masks_locate_the_array() {
    let parsed = KeyPattern::parse(Doc::new(&raw(&doc! {"a.b.c": 1, "d": 1}))).unwrap();
    let mut keys = Keys::new();
    parsed.keys(Doc::new(&raw(&doc! {"a": [{"b": {"c": [1]}}], "d": 1})), &mut keys).unwrap();
    assert_eq!(keys.multikey(), [0b101, 0]);
}

#[test]
fn invalid_key_patterns_fail_as_in_mongodb() {
    for (pattern, code) in [
        (doc! {}, 67),
        (doc! {"a": 0}, 67),
        (doc! {"a": -0.0}, 67),
        (doc! {"a": f64::NAN}, 67),
        (doc! {"a": true}, 67),
        (doc! {"a": null}, 67),
        (doc! {"a": "wrong"}, 67),
        (doc! {"a": ""}, 67),
        (doc! {"": 1}, 67),
        (doc! {"a.": 1}, 67),
        (doc! {"a..b": 1}, 67),
        (doc! {"$a": 1}, 67),
        (doc! {"a.$b": 1}, 67),
        (doc! {"a": "text"}, 238),
        (doc! {"a": "hashed"}, 238),
        (doc! {"a": "2dsphere"}, 238),
        (doc! {"$**": 1}, 67),
        (doc! {"a.$**": 1}, 67),
    ] {
        let error = KeyPattern::parse(Doc::new(&raw(&pattern))).expect_err(&pattern.to_string());
        assert_eq!(error.code().0, code, "{pattern}");
    }
    let taken = KeyPattern::parse(Doc::new(&raw(&doc! {"a": 2.5, "b.$id": -7_i64, "c.0": 0.1}))).unwrap();
    let directions: Vec<_> = taken.fields().iter().map(|(path, direction)| (path.as_str(), *direction)).collect();
    use Direction::{Ascending, Descending};
    assert_eq!(directions, [("a", Ascending), ("b.$id", Descending), ("c.0", Ascending)]);
}

#[test]
fn invalid_sorts_fail_as_in_mongodb() {
    let many: Document = (0..33).map(|field| (format!("f{field}"), Bson::Int32(1))).collect();
    for (sort, code) in [
        (doc! {"v": "asc"}, 15974),
        (doc! {"v": [1]}, 15974),
        (doc! {"v": true}, 15974),
        (doc! {"v": 0}, 15975),
        (doc! {"v": 0.5}, 15975),
        (doc! {"v": 2_i64}, 15975),
        (doc! {"v": f64::INFINITY}, 15975),
        (doc! {"v": f64::NAN}, 15975),
        (doc! {"v": {"$foo": 1}}, 17312),
        (doc! {"v": {}}, 17312),
        (doc! {"v": {"$meta": "textScore"}}, 238),
        (doc! {"a": 0, "b": "asc"}, 15975),
        (doc! {"": 1}, 40352),
        (doc! {"a.": 1}, 40353),
        (doc! {"a..b": 1}, 15998),
        (doc! {"$a": 1}, 16410),
        (doc! {"$": 1}, 16410),
        (doc! {"$natural": 2}, 2),
        (doc! {"$natural": 1, "a": 1}, 2),
        (many, 13103),
    ] {
        let error = Sort::parse(Doc::new(&raw(&sort))).expect_err(&sort.to_string());
        assert_eq!(error.code().0, code, "{sort}");
    }
    assert!(Sort::parse(Doc::new(&raw(&doc! {}))).unwrap().is_empty());
    let natural = Sort::parse(Doc::new(&raw(&doc! {"$natural": -1}))).unwrap();
    assert_eq!(natural.natural(), Some(Direction::Descending));
    assert_eq!(Sort::parse(Doc::new(&raw(&doc! {"a": 1.9}))).unwrap().fields()[0].1, Direction::Ascending);
}
