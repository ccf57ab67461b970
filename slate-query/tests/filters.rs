//! Single operators: semantics, printing, errors, and other information that a filter returns.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use bson::{Bson, Decimal128, Document, Regex, doc};
use slate_query::{
    Refusal,
    filter::{Filter, Ties, depth},
    raw::{Doc, OwnedValue},
};

fn parse(filter: &Document) -> Filter {
    Filter::parse(Doc::new(&filter.to_vec().unwrap())).unwrap_or_else(|error| panic!("{filter}: {error}"))
}

/// Checks which of the values match as field `a`. `None` is the missing field.
#[track_caller]
fn check(operators: impl Into<Bson>, matching: &[Option<Bson>], failing: &[Option<Bson>]) {
    let document = doc! { "a": operators.into() };
    let filter = parse(&document);
    for (values, expected) in [(matching, true), (failing, false)] {
        for value in values {
            let subject = value.as_ref().map_or(doc! {}, |value| doc! { "a": value });
            assert_eq!(filter.matches(Doc::new(&subject.to_vec().unwrap())), expected, "{document} of {subject}");
        }
    }
}

fn some(value: impl Into<Bson>) -> Option<Bson> {
    Some(value.into())
}

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse::<Decimal128>().unwrap())
}

#[test]
fn null_equals_a_missing_field_and_not_undefined() {
    let null = || some(Bson::Null);
    check(
        Bson::Null,
        &[null(), None, some(vec![Bson::Null])],
        &[some(Bson::Undefined), some(0), some(Vec::<Bson>::new())],
    );
    check(doc! {"$gte": Bson::Null}, &[null(), None], &[some(Bson::Undefined), some(1)]);
    check(doc! {"$gt": Bson::Null}, &[], &[null(), None, some(1)]);
    check(doc! {"$in": [Bson::Null, Bson::Int32(1)]}, &[null(), None, some(1)], &[some(2), some(Bson::Undefined)]);
    check(doc! {"$ne": Bson::Null}, &[some(1), some(Bson::Undefined), some(Vec::<Bson>::new())], &[null(), None]);
    check(doc! {"$exists": true}, &[null(), some(Bson::Undefined)], &[None]);
    check(doc! {"$exists": 0}, &[None], &[null()]);
    check(doc! {"$type": "null"}, &[null()], &[None, some(Bson::Undefined)]);
}

#[test]
fn null_in_the_middle_of_a_path_matches_as_in_mongodb() {
    for (path, subject, expected) in [
        ("a.b", doc! {"a": 5}, true),
        ("a.b", doc! {}, true),
        ("a.b", doc! {"a": {"b": Bson::Null}}, true),
        ("a.b", doc! {"a": []}, false),
        ("a.b", doc! {"a": [5]}, false),
        ("a.b", doc! {"a": [5, {"c": 1}]}, true),
        ("a.b", doc! {"a": [{"b": 1}, {"b": 2}]}, false),
        ("a.0.b", doc! {"a": [5]}, false),
        ("a.0", doc! {"a": []}, false),
    ] {
        let filter = parse(&doc! { path: Bson::Null });
        assert_eq!(filter.matches(Doc::new(&subject.to_vec().unwrap())), expected, "{path} of {subject}");
        let exists = parse(&doc! { path: {"$exists": false} });
        let value = subject == doc! {"a": {"b": Bson::Null}} || subject == doc! {"a": [{"b": 1}, {"b": 2}]};
        assert_eq!(exists.matches(Doc::new(&subject.to_vec().unwrap())), !value, "{path} exists in {subject}");
    }
}

#[test]
fn ranges_match_only_values_of_the_operands_class() {
    check(
        doc! {"$gt": 5},
        &[some(6), some(5.5), some(6_i64), some(decimal("5.1")), some(f64::INFINITY), some(vec![1, 7])],
        &[some(5), some("6"), some(f64::NAN), None, some(Bson::Null), some(Bson::MaxKey), some(vec![vec![6]])],
    );
    check(doc! {"$lt": 5}, &[some(4), some(f64::NEG_INFINITY)], &[some(f64::NAN), some(Bson::MinKey), some(false)]);
    check(doc! {"$gte": f64::NAN}, &[some(f64::NAN), some(decimal("NaN"))], &[some(1), some(f64::INFINITY)]);
    check(doc! {"$gt": f64::NAN}, &[], &[some(f64::NAN), some(1)]);
    check(f64::NAN, &[some(decimal("NaN"))], &[some(1)]);
    check(doc! {"$gte": "b"}, &[some("b"), some(Bson::Symbol("c".into()))], &[some("a"), some(7)]);
    check(doc! {"$gt": Bson::MinKey}, &[some(1), None, some(Bson::MaxKey)], &[some(Bson::MinKey)]);
    check(doc! {"$lte": Bson::MaxKey}, &[some("x"), None, some(Bson::MaxKey)], &[]);
    check(doc! {"$lt": Bson::MinKey}, &[], &[some(1), some(Bson::MinKey), None]);
    check(doc! {"$gt": {"x": 1}}, &[some(doc! {"x": 2}), some(doc! {"y": 0})], &[some(doc! {}), some(2)]);
    check(doc! {"$gt": [1, 2]}, &[some(vec![1, 3]), some(vec![vec![2]])], &[some(vec![1, 2]), some(9)]);
    check(doc! {"$gte": false}, &[some(true), some(false)], &[some(0), some(Bson::Null)]);
}

#[test]
fn equality_matches_elements_and_the_whole_array() {
    check(1, &[some(1.0), some(decimal("1.00")), some(vec![0, 1])], &[some(true), some(vec![vec![1]])]);
    check(vec![1, 2], &[some(vec![1, 2]), some(vec![vec![1, 2]])], &[some(vec![2, 1]), some(1)]);
    check(doc! {"x": 1, "y": 2}, &[some(doc! {"x": 1.0, "y": 2})], &[some(doc! {"y": 2, "x": 1})]);
    check(doc! {"$ne": 1}, &[some(vec![0, 2]), None], &[some(vec![0, 1]), some(1_i64)]);
    check(doc! {"$nin": [1, 2]}, &[some(3), None], &[some(vec![2, 3])]);
    check(doc! {"$in": [[1], 7]}, &[some(vec![1]), some(vec![vec![1]]), some(7.0)], &[some(1)]);
    check(doc! {"$all": [1, 2]}, &[some(vec![2, 1, 0])], &[some(vec![1]), some(1)]);
    check(doc! {"$all": [[1, 2]]}, &[some(vec![1, 2]), some(vec![vec![1, 2]])], &[some(vec![1])]);
    check(doc! {"$all": []}, &[], &[some(Vec::<Bson>::new()), None]);
    check(doc! {"$ref": "c", "$id": 1}, &[some(doc! {"$ref": "c", "$id": 1})], &[some(1)]);
}

#[test]
fn array_operators_match_by_size_and_element() {
    check(doc! {"$size": 0.0}, &[some(Vec::<Bson>::new())], &[None, some(vec![1])]);
    check(doc! {"$size": 2_i64}, &[some(vec![1, 2])], &[some(vec![1]), some(vec![vec![1, 2]]), some("ab")]);
    check(doc! {"$elemMatch": {"$gt": 1, "$lt": 3}}, &[some(vec![0, 2])], &[some(vec![1, 3]), some(2), None]);
    check(
        doc! {"$elemMatch": {"x": 1}},
        &[some(vec![doc! {"x": 1}]), some(vec![doc! {"x": [1]}])],
        &[some(doc! {"x": 1})],
    );
    check(doc! {"$elemMatch": {"0": 1}}, &[some(vec![vec![1]])], &[some(vec![1])]);
    check(doc! {"$elemMatch": {"$not": {"$gt": 1}}}, &[some(vec![1, 2])], &[some(vec![2, 3])]);
    check(
        doc! {"$elemMatch": {"$or": [{"x": 1}, {"y": 1}]}},
        &[some(vec![doc! {"y": 1}])],
        &[some(vec![doc! {"z": 1}])],
    );
    check(doc! {"$elemMatch": {}}, &[some(vec![doc! {}])], &[some(vec![1]), some(Vec::<Bson>::new())]);
    check(doc! {"$type": "array"}, &[some(vec![1]), some(Vec::<Bson>::new())], &[some(1)]);
    check(doc! {"$type": ["string", 16]}, &[some("x"), some(1), some(vec![1])], &[some(1_i64), None]);
    check(doc! {"$type": -1}, &[some(Bson::MinKey)], &[some(Bson::MaxKey)]);
    check(doc! {"$not": {"$gt": 1, "$lt": 3}}, &[some(5), None], &[some(2), some(vec![0, 5])]);
}

#[test]
fn number_operators_match_by_remainder_and_bits() {
    check(
        doc! {"$mod": [4, 0]},
        &[some(8), some(8.9), some(-4_i64), some(decimal("8.5")), some(vec![1, 4])],
        &[some(f64::NAN), some(f64::INFINITY), some(1e300), some("8"), None],
    );
    check(doc! {"$mod": [4.9, -1]}, &[some(-5)], &[some(5)]);
    check(doc! {"$mod": [-1, 0]}, &[some(i64::MIN)], &[]);
    check(doc! {"$bitsAllSet": [0, 2]}, &[some(5), some(-1), some(7.0)], &[some(1), some(5.5), some("5")]);
    check(doc! {"$bitsAnyClear": 3}, &[some(1)], &[some(3), some(-1)]);
    check(doc! {"$bitsAllClear": [200]}, &[some(5)], &[some(-5)]);
    check(doc! {"$bitsAnySet": []}, &[], &[some(1)]);
    let binary = |bytes: &[u8]| {
        Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: bytes.to_vec() })
    };
    // Stored with its inner length: 1, 0, 0, 0, and the byte.
    let old =
        |byte: u8| Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::BinaryOld, bytes: vec![byte] });
    check(doc! {"$bitsAllSet": [0, 33]}, &[some(old(2))], &[some(old(1))]);
    check(doc! {"$bitsAllClear": [1, 32]}, &[some(old(2))], &[some(old(1))]);
    check(doc! {"$bitsAnySet": old(8)}, &[some(old(8)), some(1)], &[some(8)]);
    check(doc! {"$bitsAllSet": binary(&[0, 1])}, &[some(256), some(binary(&[7, 1]))], &[some(1), some(binary(&[1]))]);
}

#[test]
fn regular_expressions_match_strings_and_themselves() {
    let regex = |pattern: &str, options: &str| {
        Bson::RegularExpression(Regex { pattern: pattern.try_into().unwrap(), options: options.try_into().unwrap() })
    };
    check(
        regex("^a", ""),
        &[some("ab"), some(Bson::Symbol("a".into())), some(regex("^a", "")), some(vec!["b", "a"])],
        &[some("ba"), some(regex("^a", "i")), some(1), None],
    );
    check(doc! {"$eq": regex("^a", "")}, &[some(regex("^a", ""))], &[some("a")]);
    check(doc! {"$options": "i", "$regex": "^A"}, &[some("ab")], &[some("b")]);
    check(doc! {"$in": [regex("^a", "i"), Bson::Int32(5)]}, &[some("A"), some(5)], &[some("b")]);
    check(doc! {"$not": regex("^a", "")}, &[some("b"), None, some(1)], &[some("a"), some(vec!["b", "a"])]);
    check(doc! {"$all": [regex("a", ""), Bson::from("b")]}, &[some(vec!["xa", "b"])], &[some("b")]);
}

#[test]
fn of_repeated_fields_the_first_counts() {
    let element = |name: &str, value: u8| [&[0x10], name.as_bytes(), &[0, value, 0, 0, 0]].concat();
    let body = [element("a", 1), element("a", 2), element("b", 3)].concat();
    let length = u8::try_from(body.len() + 5).unwrap();
    let document = [&[length, 0, 0, 0], body.as_slice(), &[0]].concat();
    for (filter, expected) in [
        (doc! {"a": 1}, true),
        (doc! {"a": 2}, false),
        (doc! {"a": 1, "b": 3}, true),
        (doc! {"a": 2, "b": 3}, false),
        (doc! {"b": 3, "a": {"$ne": 2}}, true),
    ] {
        assert_eq!(parse(&filter).matches(Doc::new(&document)), expected, "{filter}");
    }
}

#[test]
fn errors_have_mongodbs_codes() {
    for (filter, code) in [
        (doc! {"$foo": 1}, 2),
        (doc! {"$not": {"a": 1}}, 2),
        (doc! {"a": {"$foo": 1}}, 2),
        (doc! {"a": {"$gt": 1, "b": 2}}, 2),
        (doc! {"a": {"$comment": 1}}, 2),
        (doc! {"a": {"$options": "i"}}, 2),
        (doc! {"a": {"$where": "1"}}, 2),
        (doc! {"a": {"$gt": Bson::Undefined}}, 2),
        (doc! {"a": {"$in": [Bson::Undefined]}}, 2),
        (doc! {"a": {"$type": []}}, 9),
        (doc! {"a": {"$type": "missing"}}, 2),
        (doc! {"a": {"$size": 1_i64 << 40}}, 2),
        (doc! {"a": {"$elemMatch": {"$expr": 1}}}, 2),
        (doc! {"$expr": true}, 224),
        (doc! {"a": {"$elemMatch": {"$gt": 1, "b": 1}}}, 2),
        (doc! {"$alwaysTrue": 2}, 9),
        (doc! {"$alwaysFalse": "1"}, 9),
        (doc! {"$jsonSchema": 1}, 14),
        (doc! {"$sampleRate": 2}, 2),
        (doc! {"$sampleRate": "a"}, 2),
        (doc! {"a": {"$elemMatch": {"$sampleRate": 0.5}}}, 2),
        (doc! {"$or": [{"a": {"$bitsAllSet": -1}}]}, 9),
        (
            doc! {"a": {"$options": "i", "$regex": Regex { pattern: "a".try_into().unwrap(), options: "m".try_into().unwrap() }}},
            51074,
        ),
        (doc! {["a"; 201].join("."): 1}, 5_729_100),
    ] {
        let error = Filter::parse(Doc::new(&filter.to_vec().unwrap())).expect_err(&filter.to_string());
        assert_eq!(error.code().0, code, "{filter}: {error}");
    }
}

#[test]
fn unsupported_operators_fail_by_name_and_path() {
    for (filter, name, path) in [
        (doc! {"$where": "1"}, "$where", None),
        (doc! {"$text": {"$search": "x"}}, "$text", None),
        (doc! {"a.b": {"$near": [1, 2]}}, "$near", Some("a.b")),
        (doc! {"a": {"$geoWithin": {}}}, "$geoWithin", Some("a")),
        (doc! {"a": {"$_internalSchemaType": 1}}, "$_internalSchemaType", Some("a")),
    ] {
        let error = Filter::parse(Doc::new(&filter.to_vec().unwrap())).expect_err(&filter.to_string());
        assert_eq!(*error.refusal(), Refusal::Unsupported(name.into()), "{filter}");
        assert_eq!(error.path(), path, "{filter}");
    }
}

#[test]
fn the_position_is_the_outermost_and_the_last_in_mongodbs_order() {
    for (filter, document, expected) in [
        (doc! {"a": 2}, doc! {"a": [1, 2]}, Some(Some(1))),
        (doc! {"a": 2}, doc! {"a": 2}, Some(None)),
        (doc! {"a": 3}, doc! {"a": [1, 2]}, None),
        (doc! {"a.b": 6}, doc! {"a": [{"b": [1]}, {"b": [5, 6]}]}, Some(Some(1))),
        (doc! {"a.0.b": 6}, doc! {"a": [{"b": [5, 6]}]}, Some(Some(1))),
        (doc! {"a.1": 2}, doc! {"a": [1, 2]}, Some(None)),
        (doc! {"a": {"$elemMatch": {"b": 2}}}, doc! {"a": [{"b": 1}, {"b": 2}]}, Some(Some(1))),
        (doc! {"a": [1, 2]}, doc! {"a": [1, 2]}, Some(None)),
        (doc! {"$and": [{"a": {"$gt": 1}}, {"a": {"$lt": 5}}]}, doc! {"a": [1, 2, 3]}, Some(Some(1))),
        (doc! {"a": 1, "b": 2}, doc! {"a": [1], "b": [1, 2]}, Some(Some(1))),
        (doc! {"b": 2, "a": 1}, doc! {"a": [1], "b": [1, 2]}, Some(Some(1))),
        (doc! {"a": {"$all": [5, 6]}}, doc! {"a": [4, 5, 6]}, Some(Some(1))),
        (doc! {"$or": [{"a": 1}, {"b": 2}]}, doc! {"a": [0, 1]}, Some(None)),
        (doc! {"$or": [{"a": 5}, {"a": 6}]}, doc! {"a": [4, 5, 6]}, Some(Some(1))),
        (doc! {"$or": [{"a": 1}]}, doc! {"a": [0, 1]}, Some(Some(1))),
        (doc! {"a": {"$ne": 7}}, doc! {"a": [0, 1]}, Some(None)),
    ] {
        assert_eq!(
            parse(&filter).positional(Doc::new(&document.to_vec().unwrap()), Ties::First),
            expected,
            "{filter} of {document}"
        );
    }
}

#[test]
fn the_position_of_a_projection_is_that_of_the_last_value_of_all() {
    let document = doc! {"a": [4, 5, 6]}.to_vec().unwrap();
    for (filter, expected) in [(doc! {"a": {"$all": [5, 6]}}, 2), (doc! {"a": {"$all": [6, 5]}}, 1)] {
        assert_eq!(parse(&filter).positional(Doc::new(&document), Ties::Last), Some(Some(expected)), "{filter}");
    }
}

#[test]
fn upserts_start_from_equalities() {
    for (filter, expected) in [
        (doc! {"a": 1, "b.c": {"$eq": "x"}}, Some(doc! {"a": 1, "b.c": "x"})),
        (doc! {"a": {"$gt": 1}, "b": Bson::Null}, Some(doc! {"b": Bson::Null})),
        (doc! {"$and": [{"a": 1}, {"$or": [{"b": 2}]}]}, Some(doc! {"a": 1, "b": 2})),
        (doc! {"$or": [{"a": 1}, {"a": 2}]}, Some(doc! {})),
        (doc! {"a": {"$in": [1]}, "b": {"$all": [2]}}, Some(doc! {"a": 1, "b": 2})),
        (doc! {"a": {"$ne": 1}, "b": {"$not": {"$eq": 2}}}, Some(doc! {})),
        (doc! {"a": 1, "$and": [{"a": 2}]}, None),
        (doc! {"a": {"$all": [1, 2]}}, None),
        (doc! {"a": 1, "a.b": 2}, None),
        (doc! {"ab": 1, "a": 2}, Some(doc! {"ab": 1, "a": 2})),
    ] {
        let found = parse(&filter).equalities(|_| Ok(true));
        let found = found
            .map(|fields| fields.into_iter().map(|(path, value)| format!("{path}: {value:?}")).collect::<Vec<_>>());
        match expected {
            None => assert_eq!(found.unwrap_err().code().0, 54, "{filter}"),
            Some(expected) => {
                let expected: Vec<_> =
                    expected.iter().map(|(path, value)| format!("{path}: {:?}", OwnedValue::from(value))).collect();
                assert_eq!(found.unwrap(), expected, "{filter}");
            }
        }
    }
}

#[test]
fn implication_stays_within_the_class() {
    let implies = |a: &Document, b: &Document| parse(a).implies(&parse(b));
    for (query, condition) in [
        (doc! {"a": 7}, doc! {"a": {"$gt": 5}}),
        (doc! {"a": {"$gt": 6, "$lt": 9}, "b": 1}, doc! {"a": {"$gte": 5}}),
        (doc! {"a": {"$in": [6, 7]}}, doc! {"a": {"$gt": 5}}),
        (doc! {"a": "x"}, doc! {"a": {"$exists": true}}),
        (doc! {"a": {"$ne": Bson::Null}}, doc! {"a": {"$exists": true}}),
        (doc! {"a": {"$gt": 5}}, doc! {"a": {"$type": "number"}}),
        (doc! {"a": Bson::Null}, doc! {"a": {"$in": [Bson::Int32(1), Bson::Null]}}),
        (doc! {"$or": [{"a": 6}, {"a": 7, "b": 1}]}, doc! {"a": {"$gt": 5}}),
        (doc! {"a": 1}, doc! {"$or": [{"a": 1}, {"b": 1}]}),
        (doc! {"a": {"$regex": "x"}}, doc! {"a": {"$regex": "x"}}),
        (doc! {"a": 1}, doc! {}),
    ] {
        assert!(implies(&query, &condition), "{query} implies {condition}");
    }
    for (query, condition) in [
        (doc! {"a": 5}, doc! {"a": {"$gt": 5}}),
        (doc! {"a": "7"}, doc! {"a": {"$gt": 5}}),
        (doc! {"a": Bson::Null}, doc! {"a": {"$exists": true}}),
        (doc! {"a": {"$exists": false}}, doc! {"a": {"$exists": true}}),
        (doc! {"a.b": {"$ne": Bson::Null}}, doc! {"a.b": {"$exists": true}}),
        (doc! {"a": 6}, doc! {"a": {"$ne": 5}}),
        (doc! {"a": {"$gt": 5}, "b": {"$lt": 9}}, doc! {"b": {"$lt": 5}}),
        (doc! {"$or": [{"a": 6}, {"b": 1}]}, doc! {"a": {"$gt": 5}}),
        (doc! {}, doc! {"a": 1}),
    ] {
        assert!(!implies(&query, &condition), "{query} does not imply {condition}");
    }
}

#[test]
fn filters_print_as_filters() {
    for (filter, printed) in [
        (doc! {}, "{}"),
        (doc! {"a": 1, "b": "x"}, r#"{ "a": 1, "b": "x" }"#),
        (
            doc! {"a": {"$gt": 1, "$lt": 5}, "b": {"$ne": 2}},
            r#"{ "a": { "$gt": 1, "$lt": 5 }, "b": { "$not": { "$eq": 2 } } }"#,
        ),
        (doc! {"$or": [{"a": 1}, {"b": 2, "c": 3}]}, r#"{ "$or": [{ "a": 1 }, { "b": 2, "c": 3 }] }"#),
        (
            doc! {"a": 1, "$or": [{"b": 2}, {"c": 3}]},
            r#"{ "$and": [{ "a": 1 }, { "$or": [{ "b": 2 }, { "c": 3 }] }] }"#,
        ),
        (doc! {"a": {"$all": [1, 2]}}, r#"{ "$and": [{ "a": 1 }, { "a": 2 }] }"#),
        (
            doc! {"a": {"$elemMatch": {"$gt": 1, "$not": {"$lt": 3}}}},
            r#"{ "a": { "$elemMatch": { "$gt": 1, "$not": { "$lt": 3 } } } }"#,
        ),
        (doc! {"a": {"$eq": {"b": 1}}}, r#"{ "a": { "$eq": { "b": 1 } } }"#),
    ] {
        assert_eq!(parse(&filter).to_string(), printed, "{filter}");
    }
    let without = parse(&doc! {"a": 1, "b": 2, "c": 3}).without(|place| place != 1).unwrap();
    assert_eq!(without.to_string(), r#"{ "b": 2 }"#);
    assert!(without.without(|place| place == 0).is_none());
}

#[test]
fn a_shape_has_paths_and_operators_but_no_values() {
    for (filter, shape) in [
        (doc! {}, "{}"),
        (doc! { "org": "acme" }, r#"{ "org": ? }"#),
        (doc! { "a.b": { "$gte": 21, "$lt": 30 } }, r#"{ "a.b": { "$gte": ?, "$lt": ? } }"#),
        (doc! { "a": { "b": 1 } }, r#"{ "a": { "$eq": ? } }"#),
        (doc! { "a": { "$in": [1, 2, 3] } }, r#"{ "a": { "$in": ? } }"#),
        (
            doc! { "$or": [{ "a": 1 }, { "b": { "$ne": 2 } }] },
            r#"{ "$or": [{ "a": ? }, { "b": { "$not": { "$eq": ? } } }] }"#,
        ),
        (doc! { "a": { "$elemMatch": { "b": 1, "c": 2 } } }, r#"{ "a": { "$elemMatch": { "b": ?, "c": ? } } }"#),
        (doc! { "a": { "$not": { "$gt": 1 } } }, r#"{ "a": { "$not": { "$gt": ? } } }"#),
    ] {
        assert_eq!(parse(&filter).shape(), shape);
    }
    let secret =
        doc! { "a": "secret", "b": { "$regex": "secret" }, "c": { "$in": ["secret"] }, "d": { "e": "secret" } };
    assert!(!parse(&secret).shape().contains("secret"));
}

#[track_caller]
fn check_partial(filter: Document, may: bool) {
    assert_eq!(parse(&filter).may_limit_an_index(), may, "{filter}");
}

#[test]
fn conditions_that_can_limit_an_index() {
    check_partial(doc! { "a": { "$gt": 0, "$lte": 9 }, "b": null }, true);
    check_partial(
        doc! { "$or": [{ "a": { "$in": [1, 2] } }, { "b": { "$exists": true }, "c": { "$type": "int" } }] },
        true,
    );
    check_partial(doc! {}, true);
}

#[test]
fn the_depth_counts_lists_of_conditions() {
    let depth_of = |filter: Document| depth(Doc::new(&filter.to_vec().unwrap()));
    assert_eq!(depth_of(doc! {}), 0);
    assert_eq!(depth_of(doc! { "a": 1 }), 1);
    assert_eq!(depth_of(doc! { "a": { "b": 1, "c": 2 } }), 1);
    assert_eq!(depth_of(doc! { "a": { "$gt": 1, "$lt": 5 } }), 2);
    assert_eq!(depth_of(doc! { "a": 1, "b": 2 }), 2);
    assert_eq!(depth_of(doc! { "a": 1, "$comment": "one" }), 1);
    assert_eq!(depth_of(doc! { "$or": [{ "a": 1 }] }), 2);
    assert_eq!(depth_of(doc! { "$or": [{ "a": 1 }, { "a": 2, "$and": [{ "b": 1 }] }] }), 4);
    assert_eq!(depth_of(doc! { "$and": [{ "$and": [{ "$and": [{ "a": 3 }] }] }] }), 4);
}

#[test]
fn conditions_that_cannot_limit_an_index() {
    check_partial(doc! { "a": { "$ne": 1 } }, false);
    check_partial(doc! { "a": { "$exists": false } }, false);
    check_partial(doc! { "$nor": [{ "a": 1 }] }, false);
    check_partial(doc! { "a": { "$regex": "^x" } }, false);
    check_partial(doc! { "a": { "$mod": [2, 0] } }, false);
    check_partial(doc! { "b": 1, "$or": [{ "a": { "$size": 1 } }, { "a": 2 }] }, false);
}
