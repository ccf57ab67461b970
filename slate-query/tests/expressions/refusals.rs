//! Expressions that are refused, with MongoDB's codes.

use super::{check, doc, refused};
use bson::{Binary, Bson, DateTime, bson, spec::BinarySubtype};

#[test]
fn names_of_fields_in_documents() {
    refused(
        doc! {},
        &[
            (bson!({ "": 1 }), 15998),
            (bson!({ "a": { "": "$b" } }), 15998),
            (bson!({ "a": 1, "": 1 }), 15998),
            (bson!({ "a": "$b", "$c": 1 }), 16410),
            (bson!({ "a.b": "$c" }), 16412),
        ],
    );
    check(doc! {}, &[(bson!({ "$literal": { "": 1 } }), bson!({ "": 1 }))]);
}

#[test]
fn the_name_of_a_field_that_is_set_is_a_literal() {
    let set = |field: Bson| bson!({ "$setField": { "field": field, "input": {}, "value": 1 } });
    let unset = |field: Bson| bson!({ "$unsetField": { "field": field, "input": {} } });
    for (field, code) in [
        (bson!("$x"), 4_161_108),
        (bson!("$$ROOT"), 4_161_108),
        (bson!({ "a": 1 }), 4_161_106),
        (bson!({ "$concat": ["a", "b"] }), 4_161_106),
        (bson!({ "$cond": [true, "a", "b"] }), 4_161_106),
        (bson!(["a"]), 4_161_106),
        (bson!({}), 4_161_107),
        (bson!(["$x"]), 4_161_106),
        (bson!(1), 4_161_107),
        (Bson::Null, 4_161_107),
        (bson!({ "$literal": 1 }), 4_161_107),
    ] {
        refused(doc! { "x": "y" }, &[(set(field.clone()), code), (unset(field), code)]);
    }
    check(doc! {}, &[(set(bson!({ "$literal": "$x" })), bson!({ "$x": 1 }))]);
}

#[test]
fn constants_that_are_no_sets() {
    refused(
        doc! { "a": [1] },
        &[
            (bson!({ "$setEquals": ["$a", 1] }), 5_887_502),
            (bson!({ "$setEquals": [[1], null, "$a"] }), 5_887_502),
            (bson!({ "$setEquals": ["$a", { "$add": [1, 1] }] }), 5_887_502),
            (bson!({ "$setEquals": ["$a", "$b"] }), 17044),
            (bson!({ "$setEquals": ["$a"] }), 17045),
        ],
    );
    check(doc! { "a": [1] }, &[(bson!({ "$setEquals": ["$a", [1, 1]] }), bson!(true))]);
}

#[test]
fn conversions() {
    let bytes = |length: usize| Bson::from(Binary { subtype: BinarySubtype::Generic, bytes: vec![0; length] });
    let late = || DateTime::from_millis(253_402_300_800_000);
    refused(
        doc! { "late": late() },
        &[
            (bson!({ "$toInt": bytes(8) }), 241),
            (bson!({ "$toInt": bytes(3) }), 241),
            (bson!({ "$toDouble": bytes(2) }), 241),
            (bson!({ "$toString": late() }), 18537),
            (bson!({ "$toString": "$late" }), 18537),
            (bson!({ "$convert": { "input": "$late", "to": "string", "onError": "caught" } }), 18537),
            (bson!({ "$toDate": "2024 -06-15T12:30:45Z" }), 241),
            (bson!({ "$toDate": "2024- 06-15" }), 241),
            (bson!({ "$toDate": "2024-06-15 12:30 :45Z" }), 241),
            (bson!({ "$dateFromString": { "dateString": "2024-06-1 5T12:30:45Z" } }), 241),
        ],
    );
    let noon = || Bson::from(DateTime::from_millis(1_718_454_645_000));
    check(
        doc! {},
        &[
            (bson!({ "$toLong": bytes(8) }), bson!(0_i64)),
            (bson!({ "$toDate": "2024-06-15T12:30:45 Z" }), noon()),
            (bson!({ "$toDate": "2024-06-15  12:30:45Z " }), noon()),
            (bson!({ "$toDate": "2024-06-15 17:30:45 +0500" }), noon()),
        ],
    );
}

#[test]
fn bins_that_are_too_large() {
    let truncated = |unit: &str, bin: i64| bson!({ "$dateTrunc": { "date": DateTime::from_millis(1_718_454_645_000), "unit": unit, "binSize": bin } });
    refused(
        doc! {},
        &[
            (truncated("second", i64::MAX), 5_439_002),
            (truncated("hour", i64::MAX / 1000), 5_439_002),
            (truncated("day", 100_000_000_001), 5_439_006),
            (truncated("year", i64::MAX), 5_439_006),
        ],
    );
}

#[test]
fn regular_expressions() {
    let find = |input: Bson, regex: Bson| bson!({ "$regexFind": { "input": input, "regex": regex } });
    refused(
        doc! { "n": 1 },
        &[
            (find(bson!("a"), bson!("a".repeat(16_385))), 51111),
            (find(bson!(1), bson!(1)), 51105),
            (find(bson!("$n"), bson!("(")), 51111),
            (find(bson!("$n"), bson!("$n")), 51104),
            (bson!({ "$sigmoid": [1] }), 14),
        ],
    );
    check(doc! {}, &[(find(bson!("a"), bson!("a".repeat(16_384))), Bson::Null)]);
}
