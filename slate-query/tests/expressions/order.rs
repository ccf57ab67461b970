//! What decides first: constants, nulls and types, in MongoDB's order.

use bson::{Bson, DateTime, bson, doc};

use super::{check, refused};

fn document() -> bson::Document {
    doc! { "zero": 0, "one": 1, "two": 2, "text": "x", "list": [1], "empty": [], "null": null, "day": DateTime::from_millis(0) }
}

/// Fails for each document.
fn failing() -> Bson {
    bson!({ "$divide": [1, "$zero"] })
}

#[test]
fn constants_decide_before_documents_are_read() {
    check(
        document(),
        &[
            (bson!({ "$or": [failing(), true] }), bson!(true)),
            (bson!({ "$or": [failing(), { "$and": [1, "a"] }] }), bson!(true)),
            (bson!({ "$or": [failing(), { "$or": ["$x", 1] }] }), bson!(true)),
            (bson!({ "$or": [failing(), { "$not": [0] }] }), bson!(true)),
            (bson!({ "$or": [failing(), { "$cond": [true, 1, "$x"] }] }), bson!(true)),
            (bson!({ "$or": [failing(), { "$ifNull": [null, 1, "$x"] }] }), bson!(true)),
            (bson!({ "$or": [failing(), { "$let": { "vars": {}, "in": true } }] }), bson!(true)),
            (
                bson!({ "$or": [failing(), { "$switch": { "branches": [
                    { "case": false, "then": "$x" }, { "case": 1, "then": 1 }, { "case": "$x", "then": 0 }
                ] } }] }),
                bson!(true),
            ),
            (
                bson!({ "$or": [failing(), { "$switch": { "branches": [{ "case": 0, "then": "$x" }], "default": 1 } }] }),
                bson!(true),
            ),
            (bson!({ "$and": [failing(), false] }), bson!(false)),
            (bson!({ "$and": [failing(), null] }), bson!(false)),
            (bson!({ "$and": [failing(), "$$REMOVE"] }), bson!(false)),
            (bson!({ "$and": [failing(), { "$eq": [1, 2] }] }), bson!(false)),
            (bson!({ "$and": ["$two", true] }), bson!(true)),
            (bson!({ "$or": ["$zero", false] }), bson!(false)),
            (bson!({ "$and": [] }), bson!(true)),
            (bson!({ "$or": [] }), bson!(false)),
            (bson!({ "$cond": [1, "$two", failing()] }), bson!(2)),
            (bson!({ "$cond": [null, failing(), "$two"] }), bson!(2)),
            (bson!({ "$ifNull": [null, "$two", failing()] }), bson!(2)),
            (bson!({ "$ifNull": ["$null", 5, failing()] }), bson!(5)),
            (bson!({ "$ifNull": ["$null", null] }), Bson::Null),
            (
                bson!({ "$switch": { "branches": [{ "case": true, "then": "$two" }, { "case": failing(), "then": 1 }] } }),
                bson!(2),
            ),
        ],
    );
    refused(
        document(),
        &[
            (bson!({ "$or": [failing(), false] }), 2),
            (bson!({ "$and": [failing(), true] }), 2),
            (bson!({ "$and": [false, { "$divide": [1, 0] }] }), 2),
            (bson!({ "$cond": [true, 1, { "$divide": [1, 0] }] }), 2),
            (bson!({ "$ifNull": [1, { "$divide": [1, 0] }] }), 2),
            (bson!({ "$switch": { "branches": [{ "case": 0, "then": 1 }] } }), 40069),
            // Constants are combined, and fail, although the first operand is missing.
            (bson!({ "$concat": ["$x", 1, "a"] }), 16702),
            (bson!({ "$concatArrays": ["$x", 7, null] }), 28664),
            (bson!({ "$setIntersection": ["$x", [1], 7] }), 17047),
            (bson!({ "$setIntersection": [7, "$x", [1]] }), 17047),
            (bson!({ "$bitAnd": ["$x", 1, "a"] }), 14),
            (bson!({ "$add": [1, "a", "$x"] }), 14),
            (bson!({ "$multiply": ["a", 1, "$x"] }), 14),
        ],
    );
}

#[test]
fn constants_are_combined_first() {
    check(
        document(),
        &[
            // The sum of the leading constants is rounded: 1e16 + 1 is 1e16.
            (bson!({ "$add": [1e16, 1.0, { "$multiply": ["$one", -1e16] }] }), bson!(0.0)),
            // Of equal values the first counts; constants come last.
            (bson!({ "$max": [1.0, "$one"] }), bson!(1)),
            (bson!({ "$min": [1_i64, "$one"] }), bson!(1)),
            (bson!({ "$sum": [[5], "$one", 2] }), bson!(3)),
            (bson!({ "$sum": [[5, 6]] }), bson!(11)),
            (bson!({ "$sum": [{ "$sum": "$list" }, 1] }), bson!(2)),
            (bson!({ "$setUnion": [[3], "$list", [2, 3]] }), bson!([1, 2, 3])),
        ],
    );
}

#[test]
fn the_first_null_decides_before_later_types() {
    let null = [
        bson!({ "$concatArrays": ["$list", null, 7] }),
        bson!({ "$concatArrays": ["$list", "$x", "$two"] }),
        bson!({ "$concat": ["$text", null, 7] }),
        bson!({ "$concat": ["$x", failing()] }),
        bson!({ "$concat": ["$x", "$two"] }),
        bson!({ "$add": ["$one", "$null", "$text"] }),
        bson!({ "$add": ["$one", "$x", failing()] }),
        bson!({ "$multiply": ["$null", failing()] }),
        bson!({ "$bitOr": ["$one", "$null", "$text"] }),
        bson!({ "$bitAnd": ["$x", "$text"] }),
        bson!({ "$bitXor": ["$x", failing()] }),
        bson!({ "$setUnion": ["$list", "$x", "$two"] }),
        bson!({ "$setIntersection": ["$list", null, "$x"] }),
        bson!({ "$setDifference": ["$text", null] }),
        bson!({ "$subtract": ["$text", null] }),
        bson!({ "$divide": [null, "$text"] }),
        bson!({ "$mod": ["$text", "$x"] }),
        bson!({ "$pow": ["$text", "$null"] }),
        bson!({ "$log": ["$null", "$text"] }),
        bson!({ "$atan2": ["$text", "$null"] }),
        bson!({ "$round": ["$x", "$text"] }),
        bson!({ "$round": ["$x", failing()] }),
        bson!({ "$trunc": ["$null", 200] }),
        bson!({ "$arrayElemAt": ["$text", "$x"] }),
        bson!({ "$slice": ["$text", "$null"] }),
        bson!({ "$slice": ["$null", "$text", 0] }),
        bson!({ "$split": ["$one", "$null"] }),
        bson!({ "$indexOfCP": ["$x", 1] }),
        bson!({ "$indexOfBytes": ["$null", failing()] }),
        bson!({ "$indexOfArray": ["$x", 1, "$text"] }),
        bson!({ "$indexOfArray": ["$x", failing()] }),
        bson!({ "$trim": { "input": "$x", "chars": "$one" } }),
        bson!({ "$replaceOne": { "input": "$x", "find": "a", "replacement": "b" } }),
        bson!({ "$regexFind": { "input": "$x", "regex": "a" } }),
        bson!({ "$filter": { "input": "$x", "cond": true, "limit": 0 } }),
        bson!({ "$filter": { "input": "$null", "cond": true, "limit": failing() } }),
        bson!({ "$zip": { "inputs": ["$list", "$x", "$text"] } }),
        bson!({ "$setField": { "field": "a", "input": "$null", "value": failing() } }),
    ];
    check(document(), &null.map(|expression| (expression, Bson::Null)));
    check(
        document(),
        &[
            (bson!({ "$setEquals": ["$list", [2], "$text"] }), bson!(false)),
            (bson!({ "$filter": { "input": "$empty", "cond": true, "limit": 0 } }), bson!([])),
        ],
    );
    refused(
        document(),
        &[
            (bson!({ "$concatArrays": ["$text", "$null"] }), 28664),
            (bson!({ "$concatArrays": ["$text", null, 7] }), 28664),
            (bson!({ "$concat": ["$one", "$null"] }), 16702),
            (bson!({ "$add": ["$text", "$null"] }), 14),
            (bson!({ "$multiply": ["$text", "$null"] }), 14),
            (bson!({ "$bitOr": ["$text", "$null"] }), 14),
            (bson!({ "$setUnion": ["$text", "$null"] }), 17043),
            // Constants come last.
            (bson!({ "$setUnion": [null, "$text"] }), 17043),
            (bson!({ "$setIntersection": [null, "$text"] }), 17047),
            (bson!({ "$bitAnd": [null, "$text"] }), 14),
            (bson!({ "$setIntersection": ["$empty", "$text"] }), 17047),
            (bson!({ "$setEquals": ["$list", [1], "$text"] }), 17044),
            (bson!({ "$setEquals": ["$null", [1]] }), 17044),
            (bson!({ "$setIsSubset": ["$null", "$list"] }), 17046),
            (bson!({ "$range": ["$null", 1] }), 34443),
            (bson!({ "$round": ["$text", "$null"] }), 51081),
            (bson!({ "$indexOfCP": ["$text", "$null"] }), 40094),
            (bson!({ "$indexOfArray": ["$list", 1, "$null"] }), 9_711_600),
            (bson!({ "$substrCP": ["$text", "$null", 1] }), 34450),
            (bson!({ "$strcasecmp": ["$null", "$list"] }), 16007),
            (bson!({ "$trim": { "input": "$one", "chars": "$null" } }), 50699),
            (bson!({ "$filter": { "input": "$list", "cond": true, "limit": 0 } }), 327_392),
            (bson!({ "$zip": { "inputs": ["$text", "$x"] } }), 34468),
        ],
    );
}

#[test]
fn parts_of_dates_are_read_in_order() {
    let null = [
        // A constant that is null decides, though the start of the week would not matter for days.
        bson!({ "$dateDiff": { "startDate": "$day", "endDate": "$day", "unit": "day", "startOfWeek": null } }),
        bson!({ "$dateTrunc": { "date": "$day", "unit": "hour", "startOfWeek": null } }),
        bson!({ "$dateTrunc": { "date": "$text", "unit": "hour", "binSize": null } }),
        bson!({ "$dateTrunc": { "date": "$day", "unit": "week", "startOfWeek": "$x" } }),
        bson!({ "$dateAdd": { "startDate": "$text", "unit": null, "amount": "$text" } }),
        bson!({ "$dateAdd": { "startDate": "$x", "unit": "$text", "amount": "$text" } }),
        bson!({ "$dateSubtract": { "startDate": "$text", "unit": "day", "amount": "$x" } }),
        bson!({ "$dateDiff": { "startDate": "$text", "endDate": "$x", "unit": "$text" } }),
        bson!({ "$dateFromParts": { "year": "$text", "hour": "$x" } }),
        bson!({ "$dateFromParts": { "year": "$text", "timezone": null } }),
        bson!({ "$dateFromParts": { "year": "$x", "month": "$text" } }),
        bson!({ "$dateToParts": { "date": "$text", "timezone": null } }),
        bson!({ "$dateToString": { "date": "$text", "timezone": null } }),
        // Only a date that is null has the value of `onNull`.
        bson!({ "$dateToString": { "date": "$day", "format": "$x", "onNull": 1 } }),
        bson!({ "$dateToString": { "date": "$day", "timezone": "$x", "onNull": 1 } }),
        bson!({ "$dateFromString": { "dateString": "$text", "timezone": null, "onError": 1 } }),
    ];
    check(document(), &null.map(|expression| (expression, Bson::Null)));
    let date = |millis| Bson::from(DateTime::from_millis(millis));
    check(
        document(),
        &[
            (
                bson!({ "$dateDiff": { "startDate": "$day", "endDate": "$day", "unit": "day", "startOfWeek": "$x" } }),
                bson!(0_i64),
            ),
            (bson!({ "$dateTrunc": { "date": date(5), "unit": "hour", "startOfWeek": null } }), date(0)),
            (bson!({ "$dateFromString": { "dateString": "$one", "format": "$x", "onError": "no" } }), bson!("no")),
            (bson!({ "$dateToString": { "date": "$x", "timezone": "$x", "onNull": 1 } }), bson!(1)),
        ],
    );
    refused(
        document(),
        &[
            // Constants that cannot be read are refused although the date is missing.
            (bson!({ "$dateAdd": { "startDate": "$x", "unit": "eon", "amount": 1 } }), 9),
            (bson!({ "$dateAdd": { "startDate": "$x", "unit": "day", "amount": 1, "timezone": "Mars" } }), 40485),
            (
                bson!({ "$dateDiff": { "startDate": "$x", "endDate": "$x", "unit": "day", "startOfWeek": 1 } }),
                5_439_015,
            ),
            (bson!({ "$dateTrunc": { "date": "$x", "unit": "day", "binSize": 0 } }), 5_439_018),
            (bson!({ "$dateFromParts": { "year": "$x", "timezone": 5 } }), 40517),
            (bson!({ "$dateToString": { "date": "$x", "timezone": "Mars" } }), 40485),
            (bson!({ "$dateAdd": { "startDate": "$day", "unit": "$text", "amount": "$x" } }), 9),
            (bson!({ "$dateFromParts": { "year": "$x", "hour": "$text" } }), 40515),
        ],
    );
}

#[test]
fn a_date_text_with_an_offset_takes_no_time_zone_but_utc() {
    let of = |text: &str, zone: &str| bson!({ "$dateFromString": { "dateString": text, "timezone": zone } });
    let date = |millis: i64| Bson::from(DateTime::from_millis(millis));
    check(
        document(),
        &[
            (of("1970-01-01T01:00:00+02:00", "UTC"), date(-3_600_000)),
            (of("1970-01-01T01:00:00Z", "UTC"), date(3_600_000)),
            (of("1970-01-01T01:00:00-0100", "+00:00"), date(7_200_000)),
            (of("1970-01-01 01:00 EST", "UTC"), date(21_600_000)),
            (of("1970-01-01T01:00:00", "+01:00"), date(0)),
            (
                bson!({ "$dateFromString": { "dateString": "1970-01-01 +0200", "format": "%Y-%m-%d %z", "timezone": "UTC" } }),
                date(-7_200_000),
            ),
            (bson!({ "$dateToString": { "date": "$day", "timezone": "UTC" } }), bson!("1970-01-01T00:00:00.000Z")),
            (bson!({ "$dateToString": { "date": "$day", "timezone": "GMT" } }), bson!("1970-01-01T00:00:00.000")),
        ],
    );
    refused(
        document(),
        &[
            (of("1970-01-01T01:00:00Z", "GMT"), 241),
            (of("1970-01-01T01:00:00+02:00", "Europe/Berlin"), 241),
            (of("1970-01-01T01:00:00+01:00", "+01:00"), 241),
            (of("9999-12-31T23:59:59+01:00", "+01:00"), 241),
            (of("1970-01-01T01:00:00", "Z"), 40485),
        ],
    );
}

#[test]
fn a_text_that_is_found_begins_before_the_end() {
    check(
        document(),
        &[
            (bson!({ "$indexOfCP": ["añbc", "ñb", 0, 2] }), bson!(1)),
            (bson!({ "$indexOfCP": ["añbc", "ñb", 0, 1] }), bson!(-1)),
            (bson!({ "$indexOfCP": ["añbc", "bc", 0, 3] }), bson!(2)),
            (bson!({ "$indexOfCP": ["abc", "", 3] }), bson!(-1)),
            (bson!({ "$indexOfCP": ["abc", "", 2] }), bson!(2)),
            (bson!({ "$indexOfCP": ["abc", "", 1, 1] }), bson!(-1)),
            (bson!({ "$indexOfCP": ["abc", "", 1, 2] }), bson!(1)),
            (bson!({ "$indexOfCP": ["abc", "", 9] }), bson!(-1)),
            (bson!({ "$indexOfCP": ["", ""] }), bson!(0)),
            (bson!({ "$indexOfCP": ["", "", 0, 0] }), bson!(0)),
            (bson!({ "$indexOfCP": ["", "", 1] }), bson!(-1)),
            (bson!({ "$indexOfCP": ["", "a"] }), bson!(-1)),
            (bson!({ "$indexOfBytes": ["abc", "bc", 0, 2] }), bson!(-1)),
            (bson!({ "$indexOfBytes": ["abc", "", 3] }), bson!(3)),
            (bson!({ "$indexOfBytes": ["abc", "", 4] }), bson!(-1)),
            (bson!({ "$indexOfBytes": ["abc", "", 2, 1] }), bson!(-1)),
            (bson!({ "$indexOfBytes": ["abc", "", 1, 1] }), bson!(1)),
            (bson!({ "$indexOfArray": [[1, 2], 2, 0, 1] }), bson!(-1)),
            (bson!({ "$indexOfArray": [[1, 2], 2, 1, 9] }), bson!(1)),
        ],
    );
}

#[test]
fn a_path_has_at_most_200_names() {
    let path = |names: usize| Bson::from(format!("${}", vec!["a"; names].join(".")));
    super::missing(document(), &[path(200)]);
    refused(document(), &[(path(201), 15)]);
}

#[test]
fn the_name_of_set_field_is_written_as_a_constant() {
    let of = |field: Bson| bson!({ "$setField": { "field": field, "input": {}, "value": 1 } });
    check(document(), &[(of(bson!({ "$literal": "$a" })), bson!({ "$a": 1 }))]);
    refused(
        document(),
        &[
            (of(bson!({ "$cond": [true, "a", "b"] })), 4_161_106),
            (of(bson!({ "$concat": ["a", "b"] })), 4_161_106),
            (of(bson!(["a"])), 4_161_106),
            (of(bson!("$text")), 4_161_108),
            (of(bson!(5)), 4_161_107),
            (of(bson!({})), 4_161_107),
        ],
    );
}
