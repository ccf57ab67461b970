//! Expressions: values, types, missing values and errors of each operator.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "expressions/accumulators.rs"]
mod accumulators;
#[path = "expressions/conversions.rs"]
mod conversions;
#[path = "expressions/dates.rs"]
mod dates;
#[path = "expressions/decimals.rs"]
mod decimals;
#[path = "expressions/order.rs"]
mod order;
mod random;
#[path = "expressions/refusals.rs"]
mod refusals;

use bson::{Bson, DateTime, Document, bson, doc};
use proptest::prelude::*;
use slate_query::{
    Result,
    expression::{Env, Expression, Variables},
    raw::{Doc, OwnedValue},
};

/// Evaluates an expression; `None`: missing.
fn evaluate(expression: &Bson, document: &Document) -> Result<Option<Bson>> {
    let expression = Expression::parse(OwnedValue::from(expression).as_value(), &Variables::default())?;
    let bytes = document.to_vec().unwrap();
    let value = expression.evaluate(&Env::new(Doc::new(&bytes), 1_000))?;
    Ok(value.as_value().map(|value| value.to_bson().unwrap()))
}

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse().unwrap())
}

#[track_caller]
fn check(document: Document, cases: &[(Bson, Bson)]) {
    for (expression, expected) in cases {
        let value = evaluate(expression, &document).unwrap_or_else(|error| panic!("{expression}: {error}"));
        assert_eq!(value.as_ref(), Some(expected), "{expression}");
    }
}

#[track_caller]
fn missing(document: Document, cases: &[Bson]) {
    for expression in cases {
        assert_eq!(evaluate(expression, &document).unwrap(), None, "{expression}");
    }
}

#[track_caller]
fn refused(document: Document, cases: &[(Bson, i32)]) {
    for (expression, code) in cases {
        match evaluate(expression, &document) {
            Ok(value) => panic!("{expression} gives {value:?}"),
            Err(error) => assert_eq!(error.code().0, *code, "{expression}: {error}"),
        }
    }
}

#[test]
fn paths_lead_through_documents_and_arrays_of_documents() {
    let document = || doc! { "a": { "b": 1 }, "c": [{ "d": 1 }, 5, { "e": 2 }, { "d": [2] }, [{ "d": 3 }]], "n": null };
    check(
        document(),
        &[
            (bson!("$a.b"), bson!(1)),
            (bson!("$$ROOT.a"), bson!({ "b": 1 })),
            (bson!("$$CURRENT.a.b"), bson!(1)),
            (bson!("$c.d"), bson!([1, [2]])),
            (bson!("$c.0"), bson!([])),
            (bson!("$n"), Bson::Null),
            (bson!("$$NOW"), DateTime::from_millis(1_000).into()),
            (bson!({ "x": "$a.b", "y": "$none", "z": ["$none", 2] }), bson!({ "x": 1, "z": [null, 2] })),
        ],
    );
    missing(document(), &[bson!("$x"), bson!("$a.x"), bson!("$n.x"), bson!("$$REMOVE")]);
    refused(
        document(),
        &[
            (bson!("$"), 16872),
            (bson!("$$x"), 17276),
            (bson!("$a..b"), 15998),
            (bson!("$a."), 40353),
            (bson!({ "$add": [1], "b": 1 }), 15983),
            (bson!({ "a.b": 1 }), 16412),
            (bson!({ "a": 1, "$b": 1 }), 16410),
            (bson!({ "$nonsense": 1 }), 168),
            (bson!({ "$eq": [1] }), 16020),
        ],
    );
}

#[test]
fn arithmetic_promotes_types() {
    check(
        doc! { "i": 7, "l": 3_i64, "d": 0.5, "t": DateTime::from_millis(500), "n": null },
        &[
            (bson!({ "$add": ["$i", 1] }), bson!(8)),
            (bson!({ "$add": ["$i", "$l"] }), bson!(10_i64)),
            (bson!({ "$add": ["$i", "$d"] }), bson!(7.5)),
            (bson!({ "$add": [2_147_483_647, 1] }), bson!(2_147_483_648_i64)),
            (bson!({ "$add": [9_223_372_036_854_775_807_i64, 1] }), bson!(9_223_372_036_854_775_808.0)),
            (bson!({ "$add": ["$t", 1.4] }), DateTime::from_millis(501).into()),
            (bson!({ "$add": ["$i", "$n"] }), Bson::Null),
            (bson!({ "$subtract": ["$t", 100] }), DateTime::from_millis(400).into()),
            (bson!({ "$subtract": ["$t", "$t"] }), bson!(0_i64)),
            (bson!({ "$multiply": ["$i", "$l"] }), bson!(21_i64)),
            (bson!({ "$divide": ["$i", 2] }), bson!(3.5)),
            (bson!({ "$divide": [6, 2] }), bson!(3.0)),
            (bson!({ "$mod": ["$i", 4] }), bson!(3)),
            (bson!({ "$mod": [-7.5, 2] }), bson!(-1.5)),
            (bson!({ "$abs": -5 }), bson!(5)),
            (bson!({ "$pow": [2, 10] }), bson!(1024)),
            (bson!({ "$pow": [2, -1] }), bson!(0.5)),
            (bson!({ "$pow": [2, 40] }), bson!(1_099_511_627_776_i64)),
            (bson!({ "$round": [2.5, 0] }), bson!(2.0)),
            (bson!({ "$round": [1234, -2] }), bson!(1200)),
            (bson!({ "$trunc": [-2.75, 1] }), bson!(-2.7)),
            (bson!({ "$ceil": 1.2 }), bson!(2.0)),
            (bson!({ "$sqrt": 16 }), bson!(4.0)),
        ],
    );
    refused(
        doc! { "s": "x" },
        &[
            (bson!({ "$add": ["$s", 1] }), 14),
            (bson!({ "$divide": [1, 0] }), 2),
            (bson!({ "$mod": [1, 0] }), 16610),
            (bson!({ "$mod": [1, decimal("0")] }), 5_733_415),
            (bson!({ "$mod": [decimal("1"), 0] }), 5_733_415),
            (bson!({ "$multiply": ["$s", null] }), 14),
            (bson!({ "$round": [1, f64::NAN] }), 31109),
            (bson!({ "$trunc": [1.5, f64::NEG_INFINITY] }), 31109),
            (bson!({ "$trunc": [1.5, 0.5] }), 51082),
            (bson!({ "$substrCP": ["abc", -1, "x"] }), 34452),
            (bson!({ "$substrCP": ["abc", -1, 1.5] }), 34453),
            (bson!({ "$substrCP": ["abc", -1, -1] }), 34454),
            (bson!({ "$substrCP": ["abc", -1, 1] }), 34455),
            (bson!({ "$sortArray": { "input": [1], "sortBy": 2 } }), 2_942_506),
            (bson!({ "$indexOfArray": [[1], 1, 0.5] }), 9_711_600),
            (bson!({ "$indexOfArray": [[1], 1, 0, "$missing"] }), 9_711_600),
            (bson!({ "$indexOfArray": [[1], 1, -1] }), 9_711_601),
            (bson!({ "$sortArray": { "input": [1], "sortBy": { "a": 2 } } }), 2_942_505),
            (bson!({ "$sqrt": -1 }), 28714),
            (bson!({ "$round": [1, 101] }), 51083),
        ],
    );
}

#[test]
fn conditions_evaluate_only_what_they_need() {
    check(
        doc! { "a": 5, "n": null },
        &[
            (bson!({ "$cond": [{ "$gt": ["$a", 3] }, "big", { "$divide": ["$a", "$n"] }] }), bson!("big")),
            (bson!({ "$and": ["$a", { "$eq": ["$a", 5.0] }] }), bson!(true)),
            (bson!({ "$or": ["$n", "$none"] }), bson!(false)),
            (bson!({ "$not": ["$n"] }), bson!(true)),
            (bson!({ "$ifNull": ["$n", "$none", 3] }), bson!(3)),
            (
                bson!({ "$switch": { "branches": [{ "case": "$n", "then": 1 }, { "case": "$a", "then": 2 }] } }),
                bson!(2),
            ),
            (bson!({ "$cmp": ["$none", null] }), bson!(-1)),
            (bson!({ "$gt": ["$n", "$none"] }), bson!(true)),
        ],
    );
    refused(
        doc! {},
        &[
            (bson!({ "$switch": { "branches": [{ "case": "$x", "then": 1 }] } }), 40066),
            (bson!({ "$cond": [1] }), 16020),
        ],
    );
}

#[test]
fn arrays_and_sets() {
    check(
        doc! { "a": [3, 1, 2, 1.0], "e": [], "n": null },
        &[
            (bson!({ "$size": "$a" }), bson!(4)),
            (bson!({ "$arrayElemAt": ["$a", -1] }), bson!(1.0)),
            (bson!({ "$first": "$a" }), bson!(3)),
            (bson!({ "$slice": ["$a", 1, 2] }), bson!([1, 2])),
            (bson!({ "$slice": ["$a", -2] }), bson!([2, 1.0])),
            (bson!({ "$concatArrays": ["$a", [9]] }), bson!([3, 1, 2, 1.0, 9])),
            (bson!({ "$reverseArray": "$a" }), bson!([1.0, 2, 1, 3])),
            (bson!({ "$in": [1.0, "$a"] }), bson!(true)),
            (bson!({ "$indexOfArray": ["$a", 2] }), bson!(2)),
            (bson!({ "$range": [0, 10, 4] }), bson!([0, 4, 8])),
            (bson!({ "$setUnion": ["$a", [4, 1]] }), bson!([1, 2, 3, 4])),
            (bson!({ "$setIntersection": ["$a", [1, 3, 9]] }), bson!([1, 3])),
            (bson!({ "$setDifference": ["$a", [3]] }), bson!([1, 2])),
            (bson!({ "$setEquals": ["$a", [1, 2, 3]] }), bson!(true)),
            (bson!({ "$setIsSubset": [[1], "$a"] }), bson!(true)),
            (bson!({ "$map": { "input": "$a", "as": "x", "in": { "$multiply": ["$$x", 2] } } }), bson!([6, 2, 4, 2.0])),
            (bson!({ "$filter": { "input": "$a", "cond": { "$gt": ["$$this", 1] }, "limit": 1 } }), bson!([3])),
            (
                bson!({ "$reduce": { "input": "$a", "initialValue": 0, "in": { "$add": ["$$value", "$$this"] } } }),
                bson!(7.0),
            ),
            (bson!({ "$sortArray": { "input": "$a", "sortBy": -1 } }), bson!([3, 2, 1, 1.0])),
            (bson!({ "$zip": { "inputs": ["$a", [7, 8]] } }), bson!([[3, 7], [1, 8]])),
            (bson!({ "$let": { "vars": { "x": 2, "y": "$a" }, "in": { "$arrayElemAt": ["$$y", "$$x"] } } }), bson!(2)),
            (bson!({ "$arrayToObject": [[["k", 1], ["l", 2]]] }), bson!({ "k": 1, "l": 2 })),
            (bson!({ "$expr": { "$expr": { "$add": [1, 2] } } }), bson!(3)),
            (bson!({ "$objectToArray": { "k": 1 } }), bson!([{ "k": "k", "v": 1 }])),
            (bson!({ "$mergeObjects": [{ "a": 1, "b": 2 }, { "b": 3 }] }), bson!({ "a": 1, "b": 3 })),
            (bson!({ "$anyElementTrue": [["$n", 0]] }), bson!(false)),
        ],
    );
    missing(doc! { "e": [] }, &[bson!({ "$arrayElemAt": ["$e", 0] }), bson!({ "$last": "$e" })]);
}

#[test]
fn names_and_options_contain_no_nul() {
    refused(
        doc! { "nul": "a\0", "s": "a" },
        &[
            (bson!({ "$arrayToObject": [[["$nul", 1]]] }), 4_940_400),
            (bson!({ "$arrayToObject": [[{ "k": "$nul", "v": 1 }]] }), 4_940_401),
            (bson!({ "$regexMatch": { "input": "$s", "regex": "$nul" } }), 51109),
            (bson!({ "$regexMatch": { "input": "$s", "regex": "a", "options": "$nul" } }), 51110),
        ],
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_operator_panics_whatever_its_operands(document in random::document(), name in operator(), count in 0..4_usize) {
        let fields: Vec<_> = Doc::new(&document).elements().map(|element| element.display_name().into_owned()).collect();
        let operands: Vec<Bson> = fields.iter().filter(|name| !name.is_empty() && !name.starts_with('$'))
            .map(|name| Bson::String(format!("${name}"))).cycle().take(if fields.is_empty() { 0 } else { count }).collect();
        let expression = bson!({ name: operands });
        if let Ok(expression) = Expression::parse(OwnedValue::from(&expression).as_value(), &Variables::default()) {
            let _ = expression.evaluate(&Env::new(Doc::new(&document), 0));
        }
    }
}

fn operator() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "$abs",
        "$add",
        "$arrayElemAt",
        "$arrayToObject",
        "$bitAnd",
        "$ceil",
        "$cmp",
        "$concat",
        "$concatArrays",
        "$divide",
        "$eq",
        "$exp",
        "$first",
        "$floor",
        "$in",
        "$indexOfArray",
        "$indexOfBytes",
        "$indexOfCP",
        "$ln",
        "$log",
        "$mergeObjects",
        "$mod",
        "$multiply",
        "$objectToArray",
        "$pow",
        "$range",
        "$reverseArray",
        "$round",
        "$setUnion",
        "$setDifference",
        "$size",
        "$slice",
        "$split",
        "$sqrt",
        "$strLenCP",
        "$strcasecmp",
        "$substrBytes",
        "$substrCP",
        "$subtract",
        "$toBool",
        "$toDate",
        "$toDecimal",
        "$toDouble",
        "$toInt",
        "$toLong",
        "$toLower",
        "$toString",
        "$trunc",
        "$type",
    ])
    .prop_map(str::to_owned)
}

#[test]
fn values_beyond_64_mib_are_refused() {
    let document = || doc! { "s": "x".repeat(1 << 20), "a": vec![0; 100] };
    let doubled =
        bson!({ "$reduce": { "input": "$a", "initialValue": "$s", "in": { "$concat": ["$$value", "$$value"] } } });
    let copies = bson!({ "$map": { "input": "$a", "in": "$s" } });
    let replaced = bson!({ "$replaceAll": { "input": "$s", "find": "x", "replacement": "$s" } });
    let listed = Bson::Array(vec![bson!("$s"); 100]);
    let fields = Bson::Document((0..100).map(|place| (format!("f{place}"), bson!("$s"))).collect());
    refused(document(), &[(doubled, 10334), (copies, 10334), (replaced, 10334), (listed, 10334), (fields, 10334)]);
}
