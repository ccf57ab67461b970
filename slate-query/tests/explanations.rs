//! Explanations of the conditions that a document violates, as MongoDB's validation errors have them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bson::{Bson, Document, RawDocumentBuf, Regex, doc};
use slate_query::{
    expression::Bindings,
    filter::{Filter, explain},
    held,
    raw::{Doc, Writer},
};

fn regex(pattern: &str) -> Bson {
    Bson::RegularExpression(Regex { pattern: pattern.try_into().unwrap(), options: "".try_into().unwrap() })
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

#[track_caller]
fn explained(filter: &Document, document: &Document) -> Document {
    let (filter, document, bindings) = (raw(filter), raw(document), Bindings::default().lenient());
    let parsed = held::uncounted(|| Filter::parse_with(Doc::from(&filter), &bindings)).unwrap();
    assert!(!parsed.evaluate(Doc::from(&document)).unwrap_or(false), "{filter:?} holds for {document:?}");
    let mut out = Writer::new();
    explain(Doc::from(&filter), &bindings, Doc::from(&document), &mut out);
    Document::try_from(RawDocumentBuf::from_bytes(out.finish()).unwrap()).unwrap()
}

/// Checks the explanation of a condition on a path, which begins with the operator and the condition.
#[track_caller]
fn check(operator: &str, filter: Document, document: Document, rest: Document) {
    let mut expected = doc! { "operatorName": operator, "specifiedAs": filter.clone() };
    expected.extend(rest);
    assert_eq!(explained(&filter, &document), expected);
}

#[test]
fn comparisons_show_the_values_that_were_compared() {
    let failed = |values: Document| {
        let mut rest = doc! { "reason": "comparison failed" };
        rest.extend(values);
        rest
    };
    for (operator, filter) in [
        ("$eq", doc! { "n": 7 }),
        ("$eq", doc! { "n": { "$eq": 7 } }),
        ("$gt", doc! { "n": { "$gt": 7 } }),
        ("$gte", doc! { "n": { "$gte": 7 } }),
    ] {
        check(operator, filter.clone(), doc! { "n": 2 }, failed(doc! { "consideredValue": 2 }));
        check(operator, filter.clone(), doc! { "n": [1, "x"] }, failed(doc! { "consideredValues": [1, "x"] }));
        check(operator, filter.clone(), doc! { "n": [] }, failed(doc! { "consideredValues": [] }));
        check(operator, filter, doc! { "m": 8 }, doc! { "reason": "field was missing" });
    }
    check("$lt", doc! { "n": { "$lt": 1 } }, doc! { "n": [[0]] }, failed(doc! { "consideredValue": [0] }));
    let nested = doc! { "n": [{ "m": [1, 2] }, 5, { "m": 3 }, {}, { "m": 4 }] };
    check("$lt", doc! { "n.m": { "$lt": 0 } }, nested, failed(doc! { "consideredValues": [1, 2, 3] }));
    check("$eq", doc! { "n.m": 1 }, doc! { "n": [{}, { "m": 3 }] }, doc! { "reason": "field was missing" });
    check("$eq", doc! { "n.1": 1 }, doc! { "n": [1, [1]] }, failed(doc! { "consideredValue": [1] }));
    let many: Vec<i32> = (1..20).collect();
    let some = doc! { "consideredValues": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "consideredValuesTruncated": true };
    check("$eq", doc! { "n": 0 }, doc! { "n": &many }, failed(some));
    check("$eq", doc! { "n": 0 }, doc! { "n": &many[..10] }, failed(doc! { "consideredValues": &many[..10] }));
}

#[test]
fn negated_comparisons_say_that_they_succeeded() {
    let succeeded = || doc! { "reason": "comparison succeeded", "consideredValue": 7 };
    check("$ne", doc! { "n": { "$ne": 7 } }, doc! { "n": 7 }, succeeded());
    let found = doc! { "reason": "matching value found in array", "consideredValue": 7 };
    check("$nin", doc! { "n": { "$nin": [6, 7] } }, doc! { "n": 7 }, found);
    let missing = doc! { "reason": "no matching value found in array", "consideredValue": 8 };
    check("$in", doc! { "n": { "$in": [6, 7] } }, doc! { "n": 8 }, missing);
    check("$exists", doc! { "n": { "$exists": false } }, doc! { "n": 7 }, doc! { "reason": "path does exist" });
    check("$exists", doc! { "n": { "$exists": 1 } }, doc! { "m": 7 }, doc! { "reason": "path does not exist" });
    // The negation of a negation.
    let filter = doc! { "$nor": [{ "n": { "$ne": 7 } }, { "n": { "$exists": 0 } }] };
    let clause = doc! {
        "operatorName": "$ne", "specifiedAs": { "n": { "$ne": 7 } }, "reason": "comparison failed", "consideredValue": 8,
    };
    let expected = doc! { "operatorName": "$nor", "clausesSatisfied": [{ "index": 0, "details": clause }] };
    assert_eq!(explained(&filter, &doc! { "n": 8 }), expected);
}

#[test]
fn operators_on_some_types_name_the_types() {
    let of_type = |kind: &str, expected: Document, value: Bson| {
        let mut rest = doc! { "reason": "type did not match", "consideredType": kind };
        rest.extend(expected);
        rest.insert("consideredValue", value);
        rest
    };
    let numbers = || doc! { "expectedTypes": ["decimal", "double", "int", "long"] };
    let bits = || doc! { "expectedTypes": ["binData", "decimal", "double", "int", "long"] };
    let array = || doc! { "expectedType": "array" };
    check("$mod", doc! { "n": { "$mod": [3, 1] } }, doc! { "n": "x" }, of_type("string", numbers(), "x".into()));
    check("$bitsAllSet", doc! { "n": { "$bitsAllSet": 2 } }, doc! { "n": true }, of_type("bool", bits(), true.into()));
    check("$size", doc! { "n": { "$size": 2 } }, doc! { "n": 5 }, of_type("int", array(), 5.into()));
    check(
        "$elemMatch",
        doc! { "n": { "$elemMatch": { "$gt": 2 } } },
        doc! { "n": 5 },
        of_type("int", array(), 5.into()),
    );
    let strings = doc! { "expectedTypes": ["regex", "string", "symbol"] };
    check(
        "$regex",
        doc! { "n": { "$regex": "a", "$options": "i" } },
        doc! { "n": 5 },
        of_type("int", strings, 5.into()),
    );

    let no_remainder = "$mod did not evaluate to expected remainder";
    let rest = doc! { "reason": no_remainder, "consideredValues": ["x", 3] };
    check("$mod", doc! { "n": { "$mod": [3, 1] } }, doc! { "n": ["x", 3] }, rest);
    let rest = doc! { "reason": "type did not match", "consideredTypes": ["bool", "string"], "expectedTypes": ["decimal", "double", "int", "long"], "consideredValues": ["x", true] };
    check("$mod", doc! { "n": { "$mod": [3, 1] } }, doc! { "n": ["x", true] }, rest);
    let rest = doc! { "reason": "bitwise operator failed to match", "consideredValue": 5 };
    check("$bitsAnyClear", doc! { "n": { "$bitsAnyClear": 5 } }, doc! { "n": 5 }, rest);
    let rest = doc! { "reason": "array length was not equal to given size", "consideredValue": [5] };
    check("$size", doc! { "n": { "$size": 2 } }, doc! { "n": [5] }, rest);
    let rest = doc! { "reason": "array did not satisfy the child predicate", "consideredValue": [{ "a": 1 }] };
    check("$elemMatch", doc! { "n": { "$elemMatch": { "a": 2 } } }, doc! { "n": [{ "a": 1 }] }, rest);
    let rest = doc! { "reason": "regular expression did not match", "consideredValue": "B" };
    check("$regex", doc! { "n": { "$regex": "b" } }, doc! { "n": "B" }, rest.clone());
    let literal = regex("b");
    check("$regex", doc! { "n": literal }, doc! { "n": "B" }, rest);
}

#[test]
fn the_type_operator_shows_types_of_values() {
    let int = || doc! { "n": { "$type": "int" } };
    let rest = doc! { "reason": "type did not match", "consideredValue": "x", "consideredType": "string" };
    check("$type", int(), doc! { "n": "x" }, rest);
    let rest = doc! {
        "reason": "type did not match", "consideredValues": ["x", true, "y"], "consideredTypes": ["bool", "string"],
    };
    check("$type", int(), doc! { "n": ["x", true, "y"] }, rest);
    check("$type", int(), doc! { "n": [] }, doc! { "reason": "type did not match", "consideredValues": [] });
    check("$type", int(), doc! {}, doc! { "reason": "field was missing" });
}

#[test]
fn all_is_explained_as_one_operator() {
    let rest = || doc! { "reason": "array did not contain all specified values", "consideredValue": [1, 3] };
    check("$all", doc! { "n": { "$all": [1, 2] } }, doc! { "n": [1, 3] }, rest());
    let parts = doc! { "n": { "$all": [{ "$elemMatch": { "$gt": 5 } }] } };
    check("$all", parts, doc! { "n": [1, 3] }, rest());
    let rest = doc! { "reason": "expression always evaluates to false" };
    check("$all", doc! { "n": { "$all": [] } }, doc! { "n": [1] }, rest.clone());
    check("$alwaysFalse", doc! { "$alwaysFalse": 1 }, doc! {}, rest);
}

#[test]
fn lists_name_the_clauses_to_blame_by_their_positions() {
    let leaf = |operator: &str, condition: Document, reason: &str, value: i32| {
        doc! { "operatorName": operator, "specifiedAs": condition, "reason": reason, "consideredValue": value }
    };
    let at = |index: i32, details: Document| doc! { "index": index, "details": details };
    let list =
        |operator: &str, outcome: &str, clauses: Vec<Document>| doc! { "operatorName": operator, outcome: clauses };
    let (failed, succeeded) = ("comparison failed", "comparison succeeded");

    // Conditions side by side, and operators side by side, are a conjunction.
    let expected = list(
        "$and",
        "clausesNotSatisfied",
        vec![at(1, leaf("$lt", doc! { "a": { "$lt": 5 } }, failed, 9)), at(2, leaf("$eq", doc! { "b": 1 }, failed, 2))],
    );
    assert_eq!(
        explained(&doc! { "a": { "$gt": 0, "$lt": 5 }, "b": 1, "$comment": "no condition" }, &doc! { "a": 9, "b": 2 }),
        expected
    );

    // A list of one clause, and lists within lists, stay as written.
    let or = doc! { "$or": [{ "$and": [{ "a": 1 }, { "$and": [{ "a": 2 }] }] }] };
    let inner = list("$and", "clausesNotSatisfied", vec![at(0, leaf("$eq", doc! { "a": 2 }, failed, 1))]);
    let expected =
        list("$or", "clausesNotSatisfied", vec![at(0, list("$and", "clausesNotSatisfied", vec![at(1, inner)]))]);
    assert_eq!(explained(&or, &doc! { "a": 1 }), expected);

    // Within a negation, those that match are to blame.
    let nor = doc! { "$nor": [{ "a": 2 }, { "$or": [{ "a": 3 }, { "a": { "$lt": 5 } }] }, { "a": 1, "b": 1 }] };
    let expected = list(
        "$nor",
        "clausesSatisfied",
        vec![
            at(1, list("$or", "clausesSatisfied", vec![at(1, leaf("$lt", doc! { "a": { "$lt": 5 } }, succeeded, 1))])),
            at(
                2,
                list(
                    "$and",
                    "clausesSatisfied",
                    vec![
                        at(0, leaf("$eq", doc! { "a": 1 }, succeeded, 1)),
                        at(1, leaf("$eq", doc! { "b": 1 }, succeeded, 1)),
                    ],
                ),
            ),
        ],
    );
    assert_eq!(explained(&nor, &doc! { "a": 1, "b": 1 }), expected);

    // A negation within a negation.
    let twice = doc! { "$nor": [{ "$nor": [{ "a": 2 }, { "a": 3 }] }] };
    let expected = list(
        "$nor",
        "clausesSatisfied",
        vec![at(
            0,
            list(
                "$nor",
                "clausesNotSatisfied",
                vec![at(0, leaf("$eq", doc! { "a": 2 }, failed, 1)), at(1, leaf("$eq", doc! { "a": 3 }, failed, 1))],
            ),
        )],
    );
    assert_eq!(explained(&twice, &doc! { "a": 1 }), expected);

    let not = |details: Document| doc! { "operatorName": "$not", "details": details };
    let one = doc! { "a": { "$not": { "$lt": 5 } } };
    assert_eq!(explained(&one, &doc! { "a": 1 }), not(leaf("$lt", doc! { "a": { "$lt": 5 } }, succeeded, 1)));
    let several = doc! { "a": { "$not": { "$gt": 0, "$lt": 5 } } };
    let expected = list(
        "$and",
        "clausesSatisfied",
        vec![
            at(0, leaf("$gt", doc! { "a": { "$gt": 0 } }, succeeded, 1)),
            at(1, leaf("$lt", doc! { "a": { "$lt": 5 } }, succeeded, 1)),
        ],
    );
    assert_eq!(explained(&several, &doc! { "a": 1 }), not(expected));
    let twice = doc! { "a": { "$not": { "$not": { "$lt": 5 } } } };
    assert_eq!(explained(&twice, &doc! { "a": 9 }), not(not(leaf("$lt", doc! { "a": { "$lt": 5 } }, failed, 9))));
    let text = doc! { "a": { "$not": regex("^x") } };
    let details = explained(&text, &doc! { "a": "xy" });
    assert_eq!(details.get_document("details").unwrap().get_str("reason").unwrap(), "regular expression did match");
}

#[test]
fn expressions_show_their_result_or_their_error() {
    let rest = doc! { "reason": "expression did not match", "expressionResult": false };
    check("$expr", doc! { "$expr": { "$gt": ["$a", "$b"] } }, doc! { "a": 1, "b": 2 }, rest.clone());
    check(
        "$expr",
        doc! { "$expr": "$a" },
        doc! { "a": 0 },
        doc! { "reason": "expression did not match", "expressionResult": 0 },
    );
    check("$expr", doc! { "$expr": "$a" }, doc! {}, doc! { "reason": "expression did not match" });
    check("$sampleRate", doc! { "$sampleRate": 0.0 }, doc! {}, rest);
    let filter = doc! { "$nor": [{ "$expr": { "$add": ["$a", 1] } }, { "$expr": "$b" }] };
    let failing = explained(&filter, &doc! { "a": "x", "b": 0 });
    let clauses = failing.get_array("clausesSatisfied").unwrap();
    let details = clauses.first().and_then(Bson::as_document).unwrap().get_document("details").unwrap();
    assert_eq!((clauses.len(), details.get_str("reason").unwrap()), (1, "failed to evaluate aggregation expression"));
    let error = details.get_document("details").unwrap();
    assert_eq!((error.get_i32("code").unwrap(), error.get_str("codeName").unwrap()), (14, "TypeMismatch"));
}

#[test]
fn explanations_are_bounded() {
    let text = "x".repeat(100 << 10);
    let names: Document = (0..30_000).map(|at| (format!("a rather long name {at}"), Bson::Null)).collect();
    let violated: Vec<Document> = (0..500).map(|_| doc! { "bsonType": "int" }).collect();
    for (filter, document) in [
        (doc! { "$jsonSchema": { "properties": { "a": { "allOf": &violated } } } }, doc! { "a": &text }),
        (doc! { "$jsonSchema": { "additionalProperties": false } }, names.clone()),
        (doc! { "$jsonSchema": { "required": names.keys().collect::<Vec<_>>() } }, doc! {}),
        (doc! { "$and": (0..500).map(|at| doc! { "a": at }).collect::<Vec<_>>() }, doc! { "a": &text }),
        (doc! { "a": text.repeat(10) }, doc! { "a": 1 }),
        (doc! { "a": 1 }, doc! { "a": text.repeat(10) }),
        (doc! { "a": { "$in": [1] } }, doc! { "a": (1..4).map(|times| text.repeat(times)).collect::<Vec<_>>() }),
    ] {
        let explanation = explained(&filter, &document);
        let bytes = raw(&explanation).as_bytes().len();
        assert!((50..600 << 10).contains(&bytes), "{bytes}");
    }
    let considered = explained(
        &doc! { "a": { "$in": [1] } },
        &doc! { "a": (1..5).map(|times| text.repeat(times)).collect::<Vec<_>>() },
    );
    assert_eq!(considered.get_array("consideredValues").unwrap().len(), 1, "100 KiB and 200 KiB are too much");
    assert!(considered.get_bool("consideredValuesTruncated").unwrap());
}

#[test]
fn many_violations_are_cut_where_they_are_too_many() {
    let flat: Vec<Document> = (0..10_000).map(|at| doc! { "a": at }).collect();
    let nested = flat.chunks(100).map(|clauses| doc! { "$and": clauses }).collect::<Vec<_>>();
    for (filter, least) in [(doc! { "$and": flat }, 1_000), (doc! { "$and": nested }, 10)] {
        let explanation = explained(&filter, &doc! { "a": "x" });
        let bytes = raw(&explanation).as_bytes().len();
        assert!((400 << 10..800 << 10).contains(&bytes), "{bytes}");
        let clauses = explanation.get_array("clausesNotSatisfied").unwrap();
        assert!(clauses.len() >= least, "{}", clauses.len());
        let indexes: Vec<i32> =
            clauses.iter().map(|clause| clause.as_document().unwrap().get_i32("index").unwrap()).collect();
        assert!((0..).zip(&indexes).all(|(at, index)| at == *index), "{indexes:?}");
    }
}

#[test]
fn explaining_many_documents_takes_nothing_of_the_limit() {
    let filter = doc! { "$and": [{ "a": regex("^x") }, { "b": 1 }] };
    let all: Vec<Document> =
        held::within(Some(1 << 20), || (0..200).map(|_| explained(&filter, &doc! { "a": "x", "b": 2 })).collect());
    assert!(all.iter().all(|explanation| *explanation == all[0]), "{:?}", all.last());
    assert_eq!(all[0].get_array("clausesNotSatisfied").unwrap().len(), 1);
}

#[test]
fn a_schema_within_a_list_is_annotated() {
    let schema = doc! { "title": "named", "required": ["name"] };
    let filter = doc! { "$or": [{ "$jsonSchema": schema.clone() }, { "a": 1 }] };
    let explained_or = explained(&filter, &doc! { "a": 2 });
    let first = explained_or.get_array("clausesNotSatisfied").unwrap().first().and_then(Bson::as_document).unwrap();
    let keys: Vec<&String> = first.keys().collect();
    assert_eq!(keys, ["index", "title", "details"]);
    let rules = first.get_document("details").unwrap().get_array("schemaRulesNotSatisfied").unwrap();
    assert_eq!(rules.len(), 1);
    let clause = doc! { "operatorName": "$jsonSchema", "reason": "schema matched" };
    let expected = doc! {
        "operatorName": "$nor",
        "clausesSatisfied": [{ "index": 0, "title": "named", "details": clause }],
    };
    assert_eq!(explained(&doc! { "$nor": [{ "$jsonSchema": schema }] }, &doc! { "name": 1 }), expected);
}
