//! Expressions: values, types, missing values and errors of each operator.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use bson::{Bson, DateTime, Document, bson, doc};
use proptest::prelude::*;
use slate_query::{
    Result,
    expression::{
        Env, Expression, Variables,
        accumulator::{AccumulatorSpec, Gathered},
    },
    raw::{Doc, OwnedValue},
    testing,
};

/// Evaluates an expression; `None`: missing.
fn evaluate(expression: &Bson, document: &Document) -> Result<Option<Bson>> {
    let expression = Expression::parse(OwnedValue::from(expression).as_value(), &Variables::default())?;
    let bytes = document.to_vec().unwrap();
    let value = expression.evaluate(&Env::new(Doc::new(&bytes), 1_000))?;
    Ok(value.as_value().map(|value| value.to_bson().unwrap()))
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
            (bson!({ "$objectToArray": { "k": 1 } }), bson!([{ "k": "k", "v": 1 }])),
            (bson!({ "$mergeObjects": [{ "a": 1, "b": 2 }, { "b": 3 }] }), bson!({ "a": 1, "b": 3 })),
            (bson!({ "$anyElementTrue": [["$n", 0]] }), bson!(false)),
        ],
    );
    missing(doc! { "e": [] }, &[bson!({ "$arrayElemAt": ["$e", 0] }), bson!({ "$last": "$e" })]);
}

#[test]
fn strings_and_conversions() {
    check(
        doc! { "s": "Añb", "p": " x ", "n": null },
        &[
            (bson!({ "$concat": ["$s", "!"] }), bson!("Añb!")),
            (bson!({ "$toUpper": "$s" }), bson!("AñB")),
            (bson!({ "$strLenCP": "$s" }), bson!(3)),
            (bson!({ "$strLenBytes": "$s" }), bson!(4)),
            (bson!({ "$substrCP": ["$s", 1, 2] }), bson!("ñb")),
            (bson!({ "$substrBytes": ["$s", 0, 1] }), bson!("A")),
            (bson!({ "$indexOfCP": ["$s", "b"] }), bson!(2)),
            (bson!({ "$indexOfBytes": ["$s", "b"] }), bson!(3)),
            (bson!({ "$split": ["a,b", ","] }), bson!(["a", "b"])),
            (bson!({ "$trim": { "input": "$p" } }), bson!("x")),
            (bson!({ "$ltrim": { "input": "xxa", "chars": "x" } }), bson!("a")),
            (bson!({ "$replaceAll": { "input": "aba", "find": "a", "replacement": "c" } }), bson!("cbc")),
            (bson!({ "$toInt": "12" }), bson!(12)),
            (bson!({ "$toDouble": true }), bson!(1.0)),
            (bson!({ "$toString": 1.5 }), bson!("1.5")),
            (
                bson!({ "$toDate": "2024-01-02T03:04:05Z" }),
                DateTime::parse_rfc3339_str("2024-01-02T03:04:05Z").unwrap().into(),
            ),
            (bson!({ "$toString": { "$toDate": 0_i64 } }), bson!("1970-01-01T00:00:00.000Z")),
            (bson!({ "$convert": { "input": "x", "to": "int", "onError": "no" } }), bson!("no")),
            (bson!({ "$type": "$none" }), bson!("missing")),
            (bson!({ "$strcasecmp": ["a", "B"] }), bson!(-1)),
            (bson!({ "$getField": { "field": "k.l", "input": { "$literal": { "k.l": 1 } } } }), bson!(1)),
            (bson!({ "$setField": { "field": "k", "input": { "a": 1 }, "value": 2 } }), bson!({ "a": 1, "k": 2 })),
        ],
    );
    refused(
        doc! { "s": "é" },
        &[
            (bson!({ "$toInt": "x" }), 241),
            (bson!({ "$substrBytes": ["$s", 1, 1] }), 28656),
            (bson!({ "$concat": [1] }), 16702),
        ],
    );
}

#[test]
fn dates_of_any_year_have_parts() {
    let date = |millis: i64| Bson::DateTime(DateTime::from_millis(millis));
    let text = |text: &str| Bson::DateTime(DateTime::parse_rfc3339_str(text).unwrap());
    check(
        doc! { "max": date(i64::MAX), "min": date(i64::MIN), "far": text("9999-12-31T23:59:59Z") },
        &[
            (bson!({ "$year": "$max" }), bson!(292_278_994)),
            (bson!({ "$month": "$min" }), bson!(5)),
            (bson!({ "$second": "$max" }), bson!(55)),
            (bson!({ "$isoWeekYear": "$min" }), bson!(-292_275_055_i64)),
            (bson!({ "$dayOfYear": "$far" }), bson!(365)),
            (bson!({ "$dateAdd": { "startDate": "$far", "unit": "second", "amount": 1 } }), date(253_402_300_800_000)),
            (bson!({ "$year": { "$dateAdd": { "startDate": "$far", "unit": "month", "amount": 25 } } }), bson!(10_002)),
            (
                bson!({ "$dateDiff": { "startDate": "$far", "endDate": "$max", "unit": "year" } }),
                bson!(292_268_995_i64),
            ),
            (
                bson!({ "$dateTrunc": { "date": "$max", "unit": "year" } }),
                Bson::DateTime(DateTime::from_millis(9_223_372_017_129_600_000)),
            ),
            (
                bson!({ "$dateFromParts": { "year": 9_999, "month": 13, "timezone": "-99:99" } }),
                date(253_402_300_800_000 + (99 * 60 + 99) * 60_000),
            ),
            (
                bson!({ "$dateFromParts": { "isoWeekYear": 2020, "isoWeek": 53, "isoDayOfWeek": 7 } }),
                text("2021-01-03T00:00:00Z"),
            ),
            (bson!({ "$hour": { "date": text("2024-07-01T00:00:00Z"), "timezone": "Europe/Berlin" } }), bson!(2)),
            (bson!({ "$hour": { "date": date(9_000_014_000_000_000), "timezone": "Europe/Berlin" } }), bson!(17)),
        ],
    );
    refused(
        doc! { "max": date(i64::MAX) },
        &[
            (bson!({ "$dateToString": { "date": "$max" } }), 18_537),
            (bson!({ "$dateAdd": { "startDate": "$max", "unit": "day", "amount": 1 } }), 5_166_406),
            (bson!({ "$dateAdd": { "startDate": "$max", "unit": "month", "amount": i64::MAX } }), 5_976_500),
            (bson!({ "$dateTrunc": { "date": "$max", "unit": "year", "binSize": i64::MAX } }), 5_166_406),
        ],
    );
}

#[test]
fn numbers_and_matches_are_found_in_text_as_in_mongodb() {
    let found = |text: &str, place: i32| bson!({ "match": text, "idx": place, "captures": [] });
    check(
        doc! {},
        &[
            (bson!({ "$toDouble": "+0x1.8p1" }), bson!(3.0)),
            (bson!({ "$regexFindAll": { "input": "ab", "regex": "" } }), bson!([found("", 0), found("", 1)])),
            (bson!({ "$regexFindAll": { "input": "", "regex": "" } }), bson!([found("", 0)])),
            (bson!({ "$regexFindAll": { "input": "ab", "regex": "b" } }), bson!([found("b", 1)])),
            (
                bson!({ "$regexFind": { "input": "john@example.com", "regex": "^(?<user>[a-z]+)@(?:www\\.)?([a-z]+)(:\\d+)?" } }),
                bson!({ "match": "john@example", "idx": 0, "captures": ["john", "example", null] }),
            ),
            (
                bson!({ "$regexFindAll": { "input": "a1b2", "regex": "([a-z])(\\d)" } }),
                bson!([{ "match": "a1", "idx": 0, "captures": ["a", "1"] }, { "match": "b2", "idx": 2, "captures": ["b", "2"] }]),
            ),
        ],
    );
    refused(doc! {}, &[(bson!({ "$toDouble": "1e-400" }), 241), (bson!({ "$toDouble": "0x" }), 241)]);
}

#[test]
fn percentiles_are_values_of_the_input() {
    let percentile =
        |input: Bson, p: Bson| bson!({ "$percentile": { "input": input, "p": p, "method": "approximate" } });
    let median = |input: Bson| bson!({ "$median": { "input": input, "method": "approximate" } });
    check(
        doc! { "a": [5, 1, "x", 3.5, null, f64::NAN], "n": 7_i64, "p": [1] },
        &[
            (median("$a".into()), bson!(3.5)),
            (median(bson!([1, 2, 3, 4])), bson!(2.0)),
            (median("$n".into()), bson!(7.0)),
            (median("$none".into()), Bson::Null),
            (percentile("$a".into(), bson!([0, 0.34, 0.99, 1])), bson!([1.0, 3.5, 5.0, 5.0])),
            (percentile("$a".into(), "$p".into()), bson!([5.0])),
            (percentile(bson!([]), bson!([0.5])), bson!([null])),
        ],
    );
    refused(
        doc! {},
        &[
            (percentile(1.into(), bson!(0.5)), 7_750_300),
            (percentile(1.into(), bson!([])), 7_750_301),
            (percentile(1.into(), bson!(["x"])), 7_750_302),
            (percentile(1.into(), bson!([1.5])), 7_750_303),
            (bson!({ "$median": { "input": 1 } }), 40_414),
            (bson!({ "$median": { "input": 1, "method": "exact" } }), 2),
            (bson!({ "$median": { "input": 1, "method": "approximate", "p": [1] } }), 40_415),
        ],
    );
}

/// The first values are those of MongoDB's own tests. The others were computed with another implementation of MD5.
#[test]
fn hashes_of_index_keys_are_those_of_mongodb() {
    let oid = bson::oid::ObjectId::parse_str("47cc67093475061e3d95369d").unwrap();
    let mongodb = [
        (bson!("hashThisStringLiteral"), -5_776_344_739_422_278_694_i64),
        (bson!(123), -6_548_868_637_522_515_075),
        (Bson::Timestamp(bson::Timestamp { time: 0, increment: 0 }), -7_867_208_682_377_458_672),
        (Bson::ObjectId(oid), 1_576_265_281_381_834_298),
        (Bson::DateTime(DateTime::from_millis(0)), -1_178_696_894_582_842_035),
        (bson!("$missing"), 2_338_878_944_348_059_895),
        (Bson::Null, 2_338_878_944_348_059_895),
        (bson!({ "$pow": [2, 4] }), 2_598_032_665_634_823_220),
        (Bson::Undefined, 40_158_834_000_849_533),
    ];
    let scope =
        Bson::JavaScriptCodeWithScope(bson::JavaScriptCodeWithScope { code: "x".into(), scope: doc! { "y": 1 } });
    let others = [
        (bson!({ "a": [1, 2.9] }), 6_341_073_278_760_501_284),
        (bson!({ "$literal": { "a": [1.5, 2_i64] } }), 6_341_073_278_760_501_284),
        (bson!(9_223_372_036_854_775_808.0), 4_532_067_210_535_695_462),
        (Bson::Decimal128("9223372036854775808".parse().unwrap()), 921_523_596_458_303_250),
        (bson!(f64::INFINITY), 921_523_596_458_303_250),
        (bson!(f64::NAN), 4_854_801_880_128_277_513),
        (Bson::Decimal128("0.5".parse().unwrap()), 4_854_801_880_128_277_513),
        (bson!(-0.9), 4_854_801_880_128_277_513),
        (scope, -7_997_191_720_256_297_171),
        (bson!(true), 6_405_873_908_747_105_701),
    ];
    for (operand, hash) in mongodb.into_iter().chain(others) {
        check(doc! {}, &[(bson!({ "$toHashedIndexKey": operand }), Bson::Int64(hash))]);
    }
}

fn binary(subtype: u8, bytes: &[u8]) -> Bson {
    bson::Binary { subtype: subtype.into(), bytes: bytes.to_vec() }.into()
}

#[test]
fn binaries_are_converted_from_and_to_numbers_and_text() {
    let to =
        |input: Bson, to: Bson, format: &str| bson!({ "$convert": { "input": input, "to": to, "format": format } });
    let ordered =
        |input: Bson, to: &str, order: &str| bson!({ "$convert": { "input": input, "to": to, "byteOrder": order } });
    let uuid = || bson!({ "type": "binData", "subtype": 4 });
    let id: Vec<u8> = (1..=16).collect();
    let id_text = "01020304-0506-0708-090a-0b0c0d0e0f10";
    check(
        doc! {},
        &[
            (to("aGk=".into(), "binData".into(), "base64"), binary(0, b"hi")),
            (to("_-8".into(), "binData".into(), "base64url"), binary(0, &[255, 239])),
            (to("_-8=".into(), "binData".into(), "base64url"), binary(0, &[255, 239])),
            (to("6869".into(), 5.into(), "hex"), binary(0, b"hi")),
            (to("é".into(), "binData".into(), "utf8"), binary(0, "é".as_bytes())),
            (to(id_text.into(), uuid(), "auto"), binary(4, &id)),
            (bson!({ "$toUUID": id_text }), binary(4, &id)),
            (to(binary(4, &id), "string".into(), "auto"), id_text.into()),
            (to(binary(0, b"hi"), "string".into(), "hex"), "6869".into()),
            (to(binary(0, &[255, 239]), "string".into(), "base64url"), "_-8".into()),
            (bson!({ "$toString": binary(0, b"hi") }), "aGk=".into()),
            (ordered(258.into(), "binData", "little"), binary(0, &[2, 1, 0, 0])),
            (ordered(258_i64.into(), "binData", "big"), binary(0, &[0, 0, 0, 0, 0, 0, 1, 2])),
            (ordered(1.5.into(), "binData", "big"), binary(0, &1.5_f64.to_be_bytes())),
            (ordered(binary(0, &[255]), "int", "big"), bson!(-1)),
            (ordered(binary(0, &[2, 1]), "int", "little"), bson!(258)),
            (ordered(binary(0, &[1, 2]), "long", "big"), bson!(258_i64)),
            (ordered(binary(0, &1.5_f32.to_le_bytes()), "double", "little"), bson!(1.5)),
            (
                bson!({ "$convert": { "input": 1, "to": { "type": "binData", "subtype": 2 } } }),
                binary(2, &[1, 0, 0, 0]),
            ),
            (bson!({ "$convert": { "input": null, "to": { "type": "binData", "subtype": "x" } } }), Bson::Null),
        ],
    );
    refused(
        doc! {},
        &[
            (to("aGk".into(), "binData".into(), "base64"), 241),
            (to("696".into(), "binData".into(), "hex"), 241),
            (to("aGk=".into(), uuid(), "base64"), 241),
            (to(id_text.into(), "binData".into(), "uuid"), 241),
            (to(binary(0, &[255]), "string".into(), "utf8"), 241),
            (to(binary(4, b"hi"), "string".into(), "uuid"), 241),
            (to(true.into(), "binData".into(), "hex"), 241),
            (to("".into(), "binData".into(), "HEX"), 4_341_125),
            (bson!({ "$convert": { "input": "", "to": "binData", "format": 1 } }), 4_341_114),
            (bson!({ "$convert": { "input": "", "to": "binData" } }), 4_341_115),
            (bson!({ "$convert": { "input": 1, "to": { "type": "binData", "subtype": 1.5 } } }), 4_341_106),
            (bson!({ "$convert": { "input": 1, "to": { "type": "binData", "subtype": 10 } } }), 4_341_107),
            (bson!({ "$convert": { "input": 1, "to": { "type": "binData", "subtype": "x" } } }), 4_341_108),
            (bson!({ "$convert": { "input": 1, "to": "binData", "byteOrder": 1 } }), 9_130_001),
            (ordered(1.into(), "binData", "middle"), 9_130_002),
            (ordered(binary(0, &[1; 8]), "int", "little"), 241),
            (ordered(binary(0, &[1; 3]), "long", "little"), 241),
            (bson!({ "$convert": { "input": binary(0, b"hi"), "to": { "type": "binData", "subtype": 5 } } }), 241),
            (bson!({ "$toUUID": "0102" }), 241),
        ],
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_operator_panics_whatever_its_operands(document in testing::document(), name in operator(), count in 0..4_usize) {
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

/// Accumulates the documents.
fn accumulate(name: &str, operand: &Bson, documents: &[Document]) -> Result<Bson> {
    let operand = OwnedValue::from(operand);
    let accumulator = AccumulatorSpec::parse(name, operand.as_value(), &Variables::default())?;
    let mut gathered = Gathered::default();
    for document in documents {
        let bytes = document.to_vec().unwrap();
        accumulator.add(&mut gathered, &Env::new(Doc::new(&bytes), 0), 1)?;
    }
    Ok(accumulator.finish(&mut gathered).as_value().unwrap().to_bson().unwrap())
}

#[test]
fn accumulators_gather_values_of_documents() {
    let documents = [
        doc! { "a": 3, "s": "x", "l": [1] },
        doc! { "a": null },
        doc! { "a": 1.5, "s": "y", "l": [2, 1] },
        doc! { "a": 3_i64, "s": "x" },
    ];
    for (name, operand, expected) in [
        ("$sum", bson!("$a"), bson!(7.5)),
        ("$avg", bson!("$a"), bson!(2.5)),
        ("$min", bson!("$a"), bson!(1.5)),
        ("$max", bson!("$a"), bson!(3)),
        ("$first", bson!("$s"), bson!("x")),
        ("$last", bson!("$s"), bson!("x")),
        ("$push", bson!("$s"), bson!(["x", "y", "x"])),
        ("$addToSet", bson!("$a"), bson!([3, null, 1.5])),
        ("$count", bson!({}), bson!(4)),
        ("$firstN", bson!({ "input": "$s", "n": 2 }), bson!(["x", null])),
        ("$lastN", bson!({ "input": "$s", "n": 2 }), bson!(["y", "x"])),
        ("$minN", bson!({ "input": "$a", "n": 2 }), bson!([1.5, 3])),
        ("$maxN", bson!({ "input": "$a", "n": 9 }), bson!([3, 3_i64, 1.5])),
        ("$top", bson!({ "output": "$a", "sortBy": { "a": -1 } }), bson!(3)),
        ("$bottomN", bson!({ "output": "$s", "sortBy": { "a": 1 }, "n": 2 }), bson!(["x", "x"])),
        ("$mergeObjects", bson!({ "s": "$s" }), bson!({ "s": "x" })),
        ("$concatArrays", bson!("$l"), bson!([1, 2, 1])),
        ("$setUnion", bson!("$l"), bson!([1, 2])),
    ] {
        assert_eq!(accumulate(name, &operand, &documents).unwrap(), expected, "{name}");
    }
    for (name, operand, expected) in [
        ("$sum", bson!("$a"), bson!(0)),
        ("$avg", bson!("$a"), Bson::Null),
        ("$stdDevSamp", bson!("$a"), Bson::Null),
        ("$push", bson!("$a"), bson!([])),
        ("$top", bson!({ "output": "$a", "sortBy": { "a": 1 } }), Bson::Null),
    ] {
        assert_eq!(accumulate(name, &operand, &[]).unwrap(), expected, "{name} of nothing");
    }
    let numbers: Vec<_> = [2, 4, 4, 4, 5, 5, 7, 9].iter().map(|n| doc! { "a": n }).collect();
    assert_eq!(accumulate("$stdDevPop", &bson!("$a"), &numbers).unwrap(), bson!(2.0));
    for (name, operand, code) in [
        ("$none", bson!(1), 15952),
        ("$sum", bson!([1, 2]), 40237),
        ("$firstN", bson!({ "input": 1, "n": 0 }), 5_787_908),
        ("$mergeObjects", bson!("$s"), 40400),
    ] {
        assert_eq!(accumulate(name, &operand, &documents).unwrap_err().code().0, code, "{name}");
    }
}

#[test]
fn accumulators_are_also_expressions() {
    check(
        doc! { "a": [1, 2.5, "x"], "b": 4 },
        &[
            (bson!({ "$sum": "$a" }), bson!(3.5)),
            (bson!({ "$sum": ["$a", "$b"] }), bson!(4)),
            (bson!({ "$avg": ["$b", 2] }), bson!(3.0)),
            (bson!({ "$max": "$a" }), bson!("x")),
            (bson!({ "$min": ["$b", "$none"] }), bson!(4)),
            (bson!({ "$firstN": { "input": "$a", "n": 1 } }), bson!([1])),
            (bson!({ "$maxN": { "input": "$a", "n": 2 } }), bson!(["x", 2.5])),
        ],
    );
}

#[test]
fn dates_in_time_zones() {
    let date = |text: &str| Bson::DateTime(DateTime::parse_rfc3339_str(text).unwrap());
    let d =
        || doc! { "d": date("2024-03-10T07:30:15.250Z"), "s": date("2023-12-31T23:00:00Z"), "z": "America/New_York" };
    check(
        d(),
        &[
            (bson!({ "$year": "$d" }), bson!(2024)),
            (bson!({ "$month": ["$d"] }), bson!(3)),
            (bson!({ "$hour": { "date": "$d", "timezone": "$z" } }), bson!(3)),
            (bson!({ "$hour": { "date": "$d", "timezone": "+05:30" } }), bson!(13)),
            (bson!({ "$millisecond": "$d" }), bson!(250)),
            (bson!({ "$dayOfWeek": "$d" }), bson!(1)),
            (bson!({ "$dayOfYear": "$d" }), bson!(70)),
            (bson!({ "$week": "$d" }), bson!(10)),
            (bson!({ "$isoWeek": "$s" }), bson!(52)),
            (bson!({ "$isoWeekYear": "$s" }), bson!(2023_i64)),
            (bson!({ "$isoDayOfWeek": "$d" }), bson!(7)),
            (bson!({ "$year": "$none" }), Bson::Null),
            (bson!({ "$year": { "date": "$d", "timezone": "$none" } }), Bson::Null),
            (bson!({ "$dateToString": { "date": "$d" } }), bson!("2024-03-10T07:30:15.250Z")),
            (
                bson!({ "$dateToString": { "date": "$d", "format": "%d %b %Y %H:%M %z", "timezone": "$z" } }),
                bson!("10 Mar 2024 03:30 -0400"),
            ),
            (bson!({ "$dateToString": { "date": "$none", "onNull": "no" } }), bson!("no")),
            (bson!({ "$dateFromParts": { "year": 2024, "month": 14, "day": -1 } }), date("2025-01-30T00:00:00Z")),
            (
                bson!({ "$dateFromParts": { "isoWeekYear": 2024, "isoWeek": 1, "timezone": "$z" } }),
                date("2024-01-01T05:00:00Z"),
            ),
            (bson!({ "$dateFromString": { "dateString": "2024-02-08" } }), date("2024-02-08T00:00:00Z")),
            (
                bson!({ "$dateFromString": { "dateString": "08/02/2024 13", "format": "%d/%m/%Y %H", "timezone": "$z" } }),
                date("2024-02-08T18:00:00Z"),
            ),
            (bson!({ "$dateFromString": { "dateString": "x", "onError": 1 } }), bson!(1)),
            (bson!({ "$dateAdd": { "startDate": "$s", "unit": "month", "amount": 2 } }), date("2024-02-29T23:00:00Z")),
            (
                bson!({ "$dateAdd": { "startDate": "$d", "unit": "day", "amount": 1, "timezone": "$z" } }),
                date("2024-03-11T07:30:15.250Z"),
            ),
            (
                bson!({ "$dateSubtract": { "startDate": "$d", "unit": "hour", "amount": 8 } }),
                date("2024-03-09T23:30:15.250Z"),
            ),
            (bson!({ "$dateDiff": { "startDate": "$s", "endDate": "$d", "unit": "year" } }), bson!(1_i64)),
            (
                bson!({ "$dateDiff": { "startDate": "$s", "endDate": "$d", "unit": "week", "startOfWeek": "monday" } }),
                bson!(10_i64),
            ),
            (
                bson!({ "$dateDiff": { "startDate": "$s", "endDate": "$d", "unit": "day", "timezone": "Asia/Tokyo" } }),
                bson!(69_i64),
            ),
            (bson!({ "$dateTrunc": { "date": "$d", "unit": "quarter" } }), date("2024-01-01T00:00:00Z")),
            (bson!({ "$dateTrunc": { "date": "$d", "unit": "hour", "binSize": 6 } }), date("2024-03-10T06:00:00Z")),
            (bson!({ "$dateTrunc": { "date": "$d", "unit": "day", "timezone": "$z" } }), date("2024-03-10T05:00:00Z")),
            (
                bson!({ "$dateTrunc": { "date": "$d", "unit": "week", "startOfWeek": "monday" } }),
                date("2024-03-04T00:00:00Z"),
            ),
            (
                bson!({ "$dateToParts": { "date": "$s", "iso8601": true } }),
                bson!({ "isoWeekYear": 2023, "isoWeek": 52, "isoDayOfWeek": 7, "hour": 23, "minute": 0, "second": 0, "millisecond": 0 }),
            ),
        ],
    );
    refused(
        d(),
        &[
            (bson!({ "$year": "x" }), 16006),
            (bson!({ "$year": { "date": "$d", "timezone": "No/Where" } }), 40485),
            (bson!({ "$year": { "date": "$d", "zone": 1 } }), 40535),
            (bson!({ "$dateToString": { "date": "$d", "format": "%Q" } }), 18536),
            (bson!({ "$dateAdd": { "startDate": "$d", "unit": "eon", "amount": 1 } }), 9),
            (bson!({ "$dateFromParts": {} }), 40516),
            (bson!({ "$dateFromString": { "dateString": "x" } }), 241),
        ],
    );
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
