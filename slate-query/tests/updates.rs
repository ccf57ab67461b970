//! Updates by example: the effect of each operator, and errors.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod random;

use bson::{Bson, Document, RawDocumentBuf, bson, doc, rawdoc};
use proptest::prelude::*;
use slate_query::{
    Code, Error,
    expression::Bindings,
    filter::Filter,
    path::Path,
    raw::{Doc, OwnedValue, validate},
    update::{Context, Update, UsesPosition, merge},
};

const NOW: i64 = 1_700_000_000_000;

fn parse(update: impl Into<Bson>, array_filters: &[Document]) -> Result<Update, Error> {
    let filters: Vec<_> = array_filters.iter().map(|filter| filter.to_vec().unwrap()).collect();
    let filters: Vec<_> = filters.iter().map(|filter| Doc::new(filter)).collect();
    Update::parse(OwnedValue::from(update.into()).as_value(), &filters, &Bindings::default())
}

fn apply(before: &Document, update: Document, filters: &[Document], at: Option<usize>) -> Result<Document, Error> {
    let before_bytes = before.to_vec().unwrap();
    let updated = parse(update, filters)?.apply(Doc::new(&before_bytes), &Context::modify(NOW, at))?;
    Ok(updated.map_or_else(
        || before.clone(),
        |bytes| {
            validate(&bytes).unwrap();
            Document::from_reader(bytes.as_slice()).unwrap()
        },
    ))
}

#[track_caller]
fn check(before: Document, update: Document, after: Document) {
    let found = apply(&before, update, &[], None).unwrap();
    assert_eq!(found.to_vec().unwrap(), after.to_vec().unwrap(), "found {found}, expected {after}");
}

#[track_caller]
fn refuse(before: Document, update: Document, code: i32) {
    match apply(&before, update, &[], None) {
        Err(error) => assert_eq!(error.code(), Code(code), "{error}"),
        Ok(after) => panic!("accepted: {after}"),
    }
}

/// Returns whether the update counts the document as modified.
fn modifies(before: Document, update: Document) -> bool {
    let before = before.to_vec().unwrap();
    parse(update, &[]).unwrap().apply(Doc::new(&before), &Context::modify(NOW, None)).unwrap().is_some()
}

#[test]
fn new_fields_are_appended_by_name_and_positions_by_number() {
    check(
        doc! { "_id": 1, "z": 1 },
        doc! { "$set": { "b": 1, "a": 1, "z": 2 } },
        doc! { "_id": 1, "z": 2, "a": 1, "b": 1 },
    );
    check(doc! { "_id": 1 }, doc! { "$set": { "10": 1, "9": 1, "a": 1 } }, doc! { "_id": 1, "9": 1, "10": 1, "a": 1 });
    check(
        doc! { "a": [0] },
        doc! { "$set": { "a.10": 10, "a.2": 2 } },
        doc! { "a": [0, null, 2, null, null, null, null, null, null, null, 10] },
    );
    check(doc! {}, doc! { "$set": { "a.1.b": 1, "a.x": 2 } }, doc! { "a": { "1": { "b": 1 }, "x": 2 } });
    check(doc! { "a": [] }, doc! { "$set": { "a.1.b": 1 } }, doc! { "a": [null, { "b": 1 }] });
}

#[test]
fn the_first_of_repeated_fields_is_updated() {
    let mut writer = slate_query::raw::Writer::new();
    for int in [1_i32, 2] {
        writer.append(b"a", OwnedValue::from(bson!(int)).as_value());
    }
    let before = writer.finish();
    let update = parse(doc! { "$inc": { "a": 10 } }, &[]).unwrap();
    let after = update.apply(Doc::new(&before), &Context::modify(NOW, None)).unwrap().unwrap();
    let ints: Vec<_> = Doc::new(&after).values().filter_map(|value| value.as_i32()).collect();
    assert_eq!(ints, [11, 2]);
}

#[test]
fn a_document_counts_as_modified_as_in_mongodb() {
    assert!(!modifies(doc! { "a": 1 }, doc! { "$set": { "a": 1 } }));
    assert!(modifies(doc! { "a": 1 }, doc! { "$set": { "a": 1_i64 } }), "another type");
    assert!(!modifies(doc! { "a": 1 }, doc! { "$inc": { "a": 0 } }));
    assert!(modifies(doc! { "a": 1 }, doc! { "$inc": { "a": 0_i64 } }), "another type");
    assert!(!modifies(doc! { "a": -0.0 }, doc! { "$inc": { "a": 0.0 } }), "zeros are identical");
    assert!(modifies(doc! { "a": f64::NAN }, doc! { "$inc": { "a": 1 } }), "NaN is identical to nothing");
    assert!(!modifies(doc! { "a": 1 }, doc! { "$max": { "a": 1.0 } }));
    assert!(!modifies(doc! { "a": [1, 2] }, doc! { "$push": { "a": { "$each": [], "$sort": 1 } } }));
    assert!(modifies(doc! { "a": [2, 1] }, doc! { "$push": { "a": { "$each": [], "$sort": 1 } } }));
    assert!(!modifies(doc! { "a": [2, 1] }, doc! { "$pull": { "a": 3 } }));
    assert!(!modifies(doc! { "a": 1 }, doc! { "$unset": { "b": 1, "a.b": 1 } }));
    assert!(!modifies(doc! { "a": 1 }, doc! { "$rename": { "b": "c" } }));
    assert!(!modifies(doc! { "_id": 1, "a": 1 }, doc! { "_id": 1, "a": 1 }));
    assert!(
        !modifies(doc! { "a": 1 }, doc! { "$setOnInsert": { "b": 1, "a.b": 1 } }),
        "even where it could not be set"
    );
}

#[test]
fn conflicts_are_detected_when_parsing_or_when_dynamic_steps_meet() {
    refuse(doc! {}, doc! { "$set": { "a": 1 }, "$inc": { "a.b": 1 } }, 40);
    refuse(doc! {}, doc! { "$set": { "a.b": 1, "a": 1 } }, 40);
    refuse(doc! {}, doc! { "$set": { "a.$[]": 1, "a.0": 1 } }, 40);
    refuse(doc! {}, doc! { "$rename": { "a": "b" }, "$set": { "a": 1 } }, 40);
    check(doc! {}, doc! { "$set": { "a.b": 1, "a.c": 1 } }, doc! { "a": { "b": 1, "c": 1 } });
    let update = doc! { "$set": { "a.$": 1, "a.0": 2 } };
    let before = doc! { "a": [5, 5] };
    assert_eq!(apply(&before, update.clone(), &[], Some(0)).unwrap_err().code(), Code(40));
    assert_eq!(apply(&before, update, &[], Some(1)).unwrap(), doc! { "a": [2, 1] });
    let update = doc! { "$set": { "a.$[x].b": 1, "a.$[y].c": 2 } };
    let filters = [doc! { "x.i": { "$lt": 3 } }, doc! { "y.i": { "$gt": 1 } }];
    let before = doc! { "a": [{ "i": 1 }, { "i": 2 }, { "i": 3 }] };
    let after = doc! { "a": [{ "i": 1, "b": 1 }, { "i": 2, "b": 1, "c": 2 }, { "i": 3, "c": 2 }] };
    assert_eq!(apply(&before, update, &filters, None).unwrap(), after);
    let update = doc! { "$set": { "a.$[x].b": 1, "a.$[y].b": 2 } };
    assert_eq!(apply(&before, update, &filters, None).unwrap_err().code(), Code(40));
}

#[test]
fn the_positional_operator_uses_the_filters_position() {
    let before = doc! { "a": [{ "b": [1, 2] }, { "b": [3] }] };
    let after = doc! { "a": [{ "b": [1, 2] }, { "b": [3, 9] }] };
    assert_eq!(apply(&before, doc! { "$push": { "a.$.b": 9 } }, &[], Some(1)).unwrap(), after);
    refuse(before.clone(), doc! { "$set": { "a.$": 1 } }, 2);
    refuse(before.clone(), doc! { "$set": { "a.$.b.$": 1 } }, 2);
    refuse(before, doc! { "$set": { "$": 1 } }, 2);
    assert_eq!(parse(doc! { "$set": { "a.$.b": 1 } }, &[]).unwrap().needs_position(), UsesPosition::Yes);
    assert_eq!(parse(doc! { "$set": { "a.0.b": 1 } }, &[]).unwrap().needs_position(), UsesPosition::No);
}

#[test]
fn selected_elements_nest() {
    let before = doc! { "a": [{ "b": [1, 5] }, { "b": [7] }] };
    let after = doc! { "a": [{ "b": [1, 0] }, { "b": [0] }] };
    let update = doc! { "$set": { "a.$[].b.$[big]": 0 } };
    assert_eq!(apply(&before, update, &[doc! { "big": { "$gt": 3 } }], None).unwrap(), after);
    check(doc! { "a": [1, 2] }, doc! { "$unset": { "a.$[]": 1 } }, doc! { "a": [null, null] });
    refuse(doc! { "a": 1 }, doc! { "$set": { "a.$[]": 1 } }, 2);
    refuse(doc! {}, doc! { "$set": { "a.$[]": 1 } }, 2);
    refuse(doc! { "a": [1] }, doc! { "$set": { "a.$[].b": 1 } }, 28);
    refuse(doc! { "a": [1] }, doc! { "$set": { "$[]": 1 } }, 2);
}

#[test]
fn array_filters_are_checked() {
    let code = |update: Document, filters: &[Document]| parse(update, filters).unwrap_err().code();
    let used = || doc! { "$set": { "a.$[x]": 1 } };
    assert_eq!(code(used(), &[]), Code(2), "missing");
    assert_eq!(code(used(), &[doc! { "x": 1 }, doc! { "y": 1 }]), Code(9), "unused");
    assert_eq!(code(used(), &[doc! { "x": 1 }, doc! { "x": 2 }]), Code(9), "twice");
    assert_eq!(code(used(), &[doc! { "x": 1, "y": 2 }]), Code(9), "two names");
    assert_eq!(code(used(), &[doc! {}]), Code(9), "no name");
    assert_eq!(code(used(), &[doc! { "X": 1 }]), Code(2), "a bad name");
    assert_eq!(code(used(), &[doc! { "$jsonSchema": {} }]), Code(224), "a schema");
    assert!(parse(used(), &[doc! { "$or": [{ "x": 1 }, { "x.y": 2 }] }]).is_ok());
}

#[test]
fn paths_that_are_not_viable_are_an_error_except_for_unset() {
    refuse(doc! { "a": 1 }, doc! { "$set": { "a.b": 1 } }, 28);
    refuse(doc! { "a": [] }, doc! { "$inc": { "a.b": 1 } }, 28);
    refuse(doc! { "a": 1 }, doc! { "$pull": { "a.b": 1 } }, 28);
    refuse(doc! { "a": 1 }, doc! { "$pop": { "a.b.c": 1 } }, 28);
    check(doc! { "a": 1 }, doc! { "$unset": { "a.b": 1 } }, doc! { "a": 1 });
    check(doc! { "a": {} }, doc! { "$pull": { "a.b": 1 } }, doc! { "a": {} });
    check(doc! { "a": [] }, doc! { "$pop": { "a.3": 1 } }, doc! { "a": [] });
    refuse(doc! { "a": [] }, doc! { "$set": { "a.1500001": 1 } }, 34);
    check(doc! { "a": [] }, doc! { "$unset": { "a.1500001": 1 } }, doc! { "a": [] });
}

#[test]
fn top_level_names_and_ids_are_checked() {
    refuse(doc! { "_id": 1 }, doc! { "$set": { "_id": 2 } }, 66);
    refuse(doc! { "_id": 1 }, doc! { "$set": { "_id": 1.0 } }, 66);
    check(doc! { "_id": 1 }, doc! { "$set": { "_id": 1 } }, doc! { "_id": 1 });
    refuse(doc! { "_id": { "a": 1 } }, doc! { "$set": { "_id.b": 2 } }, 66);
    refuse(doc! { "_id": 1, "a": 2 }, doc! { "$rename": { "a": "_id" } }, 66);
    refuse(doc! { "_id": 1, "a": 2 }, doc! { "$rename": { "_id": "a" } }, 66);
    refuse(doc! {}, doc! { "$set": { "$a": 1 } }, 52);
    check(doc! {}, doc! { "$set": { "a.$b": 1 } }, doc! { "a": { "$b": 1 } });
    check(doc! { "$a": 1 }, doc! { "$unset": { "$a": 1 } }, doc! {});
    refuse(doc! {}, doc! { "$set": { "": 1 } }, 56);
    refuse(doc! {}, doc! { "$set": { "a..b": 1 } }, 56);
    refuse(doc! {}, doc! { "$what": { "a": 1 } }, 9);
    refuse(doc! {}, doc! { "$set": { "a": 1 }, "b": 1 }, 9);
}

#[test]
fn replacements_put_the_id_first() {
    check(doc! { "_id": 1, "a": 1 }, doc! { "b": 2 }, doc! { "_id": 1, "b": 2 });
    check(doc! { "_id": 1, "a": 1 }, doc! { "b": 2, "_id": 1 }, doc! { "_id": 1, "b": 2 });
    check(doc! { "_id": 1, "a": 1 }, doc! { "_id": 1_i64 }, doc! { "_id": 1_i64 });
    let (empty, now) =
        (bson::Timestamp { time: 0, increment: 0 }, bson::Timestamp { time: 1_700_000_000, increment: 1 });
    check(doc! { "_id": 1 }, doc! { "a": empty, "b": [empty] }, doc! { "_id": 1, "a": now, "b": [empty] });
    refuse(doc! { "_id": 1 }, doc! { "_id": 2 }, 66);
    refuse(doc! { "_id": 1 }, doc! { "_id": [1] }, 53);
    refuse(doc! { "_id": 1 }, doc! { "a": 1, "$b": 1 }, 52);
    check(doc! { "_id": 1 }, doc! { "a": { "$b": 1 } }, doc! { "_id": 1, "a": { "$b": 1 } });
}

#[test]
fn sizes_and_depths_are_bounded() {
    let big = "x".repeat(9 << 20);
    refuse(doc! { "a": &big }, doc! { "$set": { "b": &big } }, 17419);
    let path = vec!["a"; 181].join(".");
    refuse(doc! {}, doc! { "$set": { &path: 1 } }, 15);
    let path = vec!["a"; 180].join(".");
    assert!(apply(&doc! {}, doc! { "$set": { &path: 1 } }, &[], None).is_ok());
    refuse(doc! {}, doc! { "$set": { &path: { "b": 1 } } }, 15);
}

#[test]
fn renames_move_values_outside_arrays() {
    check(doc! { "a": 1, "b": 2 }, doc! { "$rename": { "a": "c.d" } }, doc! { "b": 2, "c": { "d": 1 } });
    check(doc! { "a": 1, "b": 2 }, doc! { "$rename": { "a": "b" } }, doc! { "b": 1 });
    check(doc! { "a": { "x": [1] } }, doc! { "$rename": { "a.x": "a.y" } }, doc! { "a": { "y": [1] } });
    refuse(doc! { "a": [1] }, doc! { "$rename": { "a.0": "b" } }, 2);
    refuse(doc! { "a": 1, "b": [1] }, doc! { "$rename": { "a": "b.0" } }, 2);
    refuse(doc! { "a": 1, "b": 1 }, doc! { "$rename": { "a": "b.c" } }, 28);
    check(doc! { "b": 1 }, doc! { "$rename": { "a": "b.c" } }, doc! { "b": 1 });
    refuse(doc! {}, doc! { "$rename": { "a": "a" } }, 2);
    refuse(doc! {}, doc! { "$rename": { "a": "a.b" } }, 2);
    refuse(doc! {}, doc! { "$rename": { "a.b": "a" } }, 2);
    refuse(doc! {}, doc! { "$rename": { "a": 1 } }, 2);
    refuse(doc! {}, doc! { "$rename": { "a": "b.$.c" } }, 2);
}

#[test]
fn pushes_insert_sort_and_slice() {
    let push = |clauses: Document| doc! { "$push": { "a": clauses } };
    let a = || doc! { "a": [3, 1, 2] };
    check(a(), push(doc! { "$each": [9, 8], "$position": -1 }), doc! { "a": [3, 1, 9, 8, 2] });
    check(a(), push(doc! { "$each": [9], "$position": -9 }), doc! { "a": [9, 3, 1, 2] });
    check(a(), push(doc! { "$each": [9], "$sort": -1, "$slice": 2 }), doc! { "a": [9, 3] });
    check(a(), push(doc! { "$each": [9], "$slice": -2 }), doc! { "a": [2, 9] });
    check(a(), push(doc! { "$each": [9], "$slice": 0 }), doc! { "a": [] });
    check(
        doc! { "a": [{ "k": { "b": 2 } }, 5, { "k.b": 1 }, { "k": { "b": null } }] },
        push(doc! { "$each": [], "$sort": { "k.b": 1 } }),
        doc! { "a": [5, { "k": { "b": null } }, { "k.b": 1 }, { "k": { "b": 2 } }] },
    );
    check(doc! {}, push(doc! { "$each": [] }), doc! { "a": [] });
    check(doc! {}, doc! { "$addToSet": { "a": { "$each": [] } } }, doc! { "a": [] });
    refuse(a(), push(doc! { "$each": [], "$what": 1 }), 2);
    refuse(a(), push(doc! { "$each": [], "$sort": { "a..b": 1 } }), 2);
    refuse(a(), push(doc! { "$each": [], "$sort": {} }), 2);
    refuse(a(), push(doc! { "$each": 1 }), 2);
}

#[test]
fn sets_of_many_values_behave_as_sets_of_few() {
    let numbers = |range: std::ops::Range<i32>| range.map(Bson::from).collect::<Vec<_>>();
    let mixed = |range: std::ops::Range<i32>| range.map(|n| Bson::from(f64::from(n))).rev().collect::<Vec<_>>();
    for count in [1, 3, 20, 300] {
        // Equal values of other types are present already; new ones keep their order and the type of the first.
        let mut values = mixed(0..count + 2);
        values.extend(numbers(0..count + 3));
        let mut expected = numbers(0..count);
        expected.extend([Bson::from(f64::from(count + 1)), Bson::from(f64::from(count)), Bson::from(count + 2)]);
        let add = doc! { "$addToSet": { "a": { "$each": &values } } };
        check(doc! { "a": numbers(0..count) }, add, doc! { "a": expected });
        let present = doc! { "$addToSet": { "a": { "$each": mixed(0..count) } } };
        check(doc! { "a": numbers(0..count) }, present, doc! { "a": numbers(0..count) });

        let mut array = numbers(0..count + 1);
        array.extend(["x".into(), f64::from(count - 1).into(), (count + 5).into()]);
        let pull = doc! { "$pullAll": { "a": mixed(0..count) } };
        check(doc! { "a": array }, pull, doc! { "a": [count, "x", count + 5] });
    }
}

#[test]
fn pulls_match_elements_as_filters_match_fields() {
    let pull = |condition: Bson| doc! { "$pull": { "a": condition } };
    check(doc! { "a": [1, [6], 7] }, pull(bson!({ "$gt": 5 })), doc! { "a": [1] });
    check(doc! { "a": [1, [1], 1.0] }, pull(bson!(1)), doc! { "a": [[1]] });
    check(doc! { "a": [{ "x": 1, "y": 2 }, { "x": 1 }, 1] }, pull(bson!({ "x": 1 })), doc! { "a": [1] });
    let regex =
        Bson::RegularExpression(bson::Regex { pattern: "^b".try_into().unwrap(), options: "".try_into().unwrap() });
    check(doc! { "a": ["ab", "ba"] }, pull(regex), doc! { "a": ["ab"] });
    refuse(doc! { "a": 1 }, pull(bson!(1)), 2);
    refuse(doc! { "a": null }, doc! { "$pullAll": { "a": [1] } }, 2);
    refuse(doc! {}, pull(bson!({ "$what": 1 })), 2);
}

#[test]
fn arithmetic_promotes_types_and_detects_overflow() {
    check(doc! { "a": i32::MAX }, doc! { "$inc": { "a": 1 } }, doc! { "a": i64::from(i32::MAX) + 1 });
    check(doc! { "a": 2 }, doc! { "$mul": { "a": 1.5 } }, doc! { "a": 3.0 });
    check(doc! {}, doc! { "$mul": { "a": 2_i64 } }, doc! { "a": 0_i64 });
    refuse(doc! { "a": i64::MAX }, doc! { "$inc": { "a": 1 } }, 2);
    refuse(doc! { "a": "1" }, doc! { "$inc": { "a": 1 } }, 14);
    refuse(doc! { "a": 1 }, doc! { "$mul": { "a": "2" } }, 14);
    check(doc! { "a": 6 }, doc! { "$bit": { "a": { "and": 3, "or": 8_i64 } } }, doc! { "a": 10_i64 });
}

#[test]
fn current_dates_come_from_the_context() {
    let after =
        apply(&doc! {}, doc! { "$currentDate": { "a": true, "b": { "$type": "timestamp" } } }, &[], None).unwrap();
    let time = bson::Timestamp { time: 1_700_000_000, increment: 1 };
    assert_eq!(after, doc! { "a": bson::DateTime::from_millis(NOW), "b": time });
    refuse(doc! {}, doc! { "$currentDate": { "a": 1 } }, 2);
    refuse(doc! {}, doc! { "$currentDate": { "a": { "$type": "what" } } }, 2);
    refuse(doc! {}, doc! { "$currentDate": { "a": { "type": "date" } } }, 2);
}

#[test]
fn a_pipeline_makes_the_document_anew_stage_by_stage() {
    for (before, pipeline, after) in [
        (
            doc! { "_id": 1, "a": 2 },
            bson!([{ "$set": { "b": { "$add": ["$a", 1] } } }]),
            doc! { "_id": 1, "a": 2, "b": 3 },
        ),
        (
            doc! { "_id": 1, "a": 2 },
            bson!([{ "$set": { "b": "$a" } }, { "$unset": "a" }, { "$addFields": { "c": "$b" } }]),
            doc! { "_id": 1, "b": 2, "c": 2 },
        ),
        (doc! { "_id": 1, "a": 2, "b": 3 }, bson!([{ "$project": { "_id": 0, "a": 1 } }]), doc! { "_id": 1, "a": 2 }),
        (doc! { "_id": 1, "a": { "x": 2 } }, bson!([{ "$replaceWith": "$a" }]), doc! { "_id": 1, "x": 2 }),
        (doc! { "a": 5, "_id": 1 }, bson!([{ "$set": { "a": "$$REMOVE" } }]), doc! { "_id": 1 }),
        (
            doc! { "_id": 1 },
            bson!([{ "$set": { "t": "$$NOW" } }]),
            doc! { "_id": 1, "t": bson::DateTime::from_millis(0) },
        ),
        (doc! { "_id": 1, "a": 2 }, bson!([]), doc! { "_id": 1, "a": 2 }),
        (doc! { "_id": 1, "a": 2 }, bson!([{ "$set": { "a": 2 } }]), doc! { "_id": 1, "a": 2 }),
        (doc! { "_id": 1 }, bson!([{ "$replaceWith": { "_id": 1.0, "a": 1 } }]), doc! { "_id": 1.0, "a": 1 }),
        (
            doc! { "_id": 1 },
            bson!([{ "$replaceWith": { "$setField": { "field": { "$literal": "$x" }, "input": "$$ROOT", "value": 1 } } }]),
            doc! { "_id": 1, "$x": 1 },
        ),
    ] {
        let update = parse(pipeline.clone(), &[]).unwrap();
        let bytes = before.to_vec().unwrap();
        let changed = update.apply(Doc::new(&bytes), &Context::modify(NOW, None)).unwrap();
        assert_eq!(changed.is_none(), before == after, "{pipeline}");
        let found = Document::from_reader(changed.unwrap_or(bytes).as_slice()).unwrap();
        assert_eq!(found.to_string(), after.to_string(), "{pipeline}");
    }
}

#[test]
fn refused_pipelines_have_mongodbs_codes() {
    for (pipeline, code) in [
        (bson!([{ "$lookup": {} }]), 72),
        (bson!([{ "$match": {} }]), 72),
        (bson!([{ "$geoNear": {} }]), 72),
        (bson!([{ "$nothing": {} }]), 40_324),
        (bson!([1]), 14),
        (bson!([{ "$set": { "a": 1 }, "$unset": "b" }]), 40_323),
        (bson!([{ "$set": { "a": { "$nothing": 1 } } }]), 168),
        (bson!([{ "$set": { "a": "$$x" } }]), 17_276),
        (bson!(1), 9),
    ] {
        assert_eq!(parse(pipeline.clone(), &[]).unwrap_err().code(), Code(code), "{pipeline}");
    }
    assert_eq!(parse(bson!([{ "$set": { "a": 1 } }]), &[doc! { "x": 1 }]).unwrap_err().code(), Code(9));
    let bytes = doc! { "_id": 1, "a": 0 }.to_vec().unwrap();
    for (pipeline, code) in [
        (bson!([{ "$set": { "_id": 2 } }]), 66),
        (bson!([{ "$set": { "a": { "$divide": [1, "$a"] } } }]), 2),
        (bson!([{ "$replaceWith": "$a" }]), 40_228),
    ] {
        let update = parse(pipeline.clone(), &[]).unwrap();
        let error = update.apply(Doc::new(&bytes), &Context::modify(NOW, None)).unwrap_err();
        assert_eq!(error.code(), Code(code), "{pipeline}: {error}");
    }
}

fn upsert(filter: Document, update: impl Into<Bson>) -> Result<Document, Error> {
    let filter = filter.to_vec().unwrap();
    let filter = Filter::parse(Doc::new(&filter)).unwrap();
    let bytes = parse(update, &[])?.upsert(&filter, &Context::insert(NOW))?;
    validate(&bytes).unwrap();
    Ok(Document::from_reader(bytes.as_slice()).unwrap())
}

#[test]
fn upserts_start_from_the_filters_equalities() {
    let after = upsert(doc! { "b.c": 1, "a": { "$gt": 3 } }, doc! { "$set": { "x": 1 }, "$setOnInsert": { "_id": 7 } });
    assert_eq!(after.unwrap().to_string(), doc! { "_id": 7, "b": { "c": 1 }, "x": 1 }.to_string());
    assert_eq!(upsert(doc! { "_id": 1, "a": 2 }, doc! { "$inc": { "a": 3 } }).unwrap(), doc! { "_id": 1, "a": 5 });
    assert_eq!(upsert(doc! { "_id": 1, "a": 2 }, doc! { "b": 3 }).unwrap(), doc! { "_id": 1, "b": 3 });
    assert_eq!(upsert(doc! { "_id": 1 }, doc! { "$set": { "_id": 2 } }).unwrap_err().code(), Code(66));
    assert_eq!(upsert(doc! { "_id": 1 }, doc! { "_id": 2 }).unwrap_err().code(), Code(66));
    let summed = upsert(doc! { "a": 1, "_id": 7 }, bson!([{ "$set": { "b": { "$add": ["$a", 1] } } }]));
    assert_eq!(summed.unwrap().to_string(), doc! { "_id": 7, "a": 1, "b": 2 }.to_string());
    assert_eq!(upsert(doc! { "_id": 1 }, bson!([{ "$set": { "_id": 2 } }])).unwrap_err().code(), Code(66));
    assert_eq!(upsert(doc! { "_id.a": 1 }, doc! { "b": 2 }).unwrap_err().code(), Code(111));
    assert_eq!(upsert(doc! { "_id.a": 1 }, doc! { "$set": { "b": 2 } }).unwrap(), doc! { "_id": { "a": 1 }, "b": 2 });
    assert_eq!(upsert(doc! {}, doc! { "_id": [1] }).unwrap_err().code(), Code(53));
    assert_eq!(upsert(doc! { "a": 1 }, doc! { "$set": { "a.b": 1 } }).unwrap_err().code(), Code(28));
    assert_eq!(upsert(doc! { "a": 1 }, doc! { "$set": { "a.$": 1 } }).unwrap_err().code(), Code(2));
    assert_eq!(upsert(doc! { "a": [1] }, doc! { "$set": { "a.$[]": 2 } }).unwrap(), doc! { "a": [2] });
}

#[test]
fn indexes_are_touched_by_prefixes_longer_paths_and_appended_elements() {
    let touches = |update: Document, path: &str| {
        let filters = if update.to_string().contains("[x]") { vec![doc! { "x": 1 }] } else { Vec::new() };
        parse(update, &filters).unwrap().touches(&Path::parse(path).unwrap())
    };
    assert!(touches(doc! { "$set": { "a": 1 } }, "a.b"));
    assert!(touches(doc! { "$set": { "a.b.c": 1 } }, "a.b"));
    assert!(touches(doc! { "$set": { "a.0.b": 1 } }, "a.b"));
    assert!(touches(doc! { "$set": { "a.$.b": 1 } }, "a.b"));
    assert!(touches(doc! { "$set": { "a.$[].b": 1 } }, "a.3.b"));
    assert!(touches(doc! { "$set": { "a.$[x]": 1 } }, "a.b"));
    assert!(touches(doc! { "$rename": { "a": "b" } }, "a"));
    assert!(touches(doc! { "$rename": { "a": "b" } }, "b.c"));
    assert!(touches(doc! { "a": 1 }, "b"));
    assert!(!touches(doc! { "$set": { "a.c": 1 } }, "a.b"));
    assert!(touches(doc! { "$set": { "a.0.c": 1 } }, "a.b"), "it may append an element");
    assert!(!touches(doc! { "$unset": { "a.0.c": 1 } }, "a.b"));
    assert!(!touches(doc! { "$set": { "a.$[].c": 1 } }, "a.b"));
    assert!(!touches(doc! { "$set": { "ab": 1 } }, "a"));
    assert!(!touches(doc! {  "$set": { "b": 1 } }, "a"));
}

#[test]
fn merging_retains_the_order_and_takes_names_literally() {
    let merged = |doc: Document, patch: Document| {
        let (doc, patch) = (doc.to_vec().unwrap(), patch.to_vec().unwrap());
        let bytes = merge(Doc::new(&doc), Doc::new(&patch))?;
        Ok::<_, Error>(bytes.map(|bytes| Document::from_reader(bytes.as_slice()).unwrap().to_string()))
    };
    let after = doc! { "_id": 1, "a": { "y": 1 }, "b": 2, "a.b": 5 }.to_string();
    let before = || doc! { "_id": 1, "a": { "x": 1 }, "b": 2 };
    assert_eq!(merged(before(), doc! { "a.b": 5, "a": { "y": 1 } }).unwrap(), Some(after));
    assert_eq!(merged(before(), doc! { "b": 2 }).unwrap(), None);
    assert_eq!(merged(before(), doc! { "_id": 2 }).unwrap_err().code(), Code(66));
}

#[test]
fn a_merge_replaces_the_first_of_repeated_fields() {
    let merged = |doc: RawDocumentBuf, patch: RawDocumentBuf| {
        let bytes = merge(Doc::from(&doc), Doc::from(&patch)).unwrap();
        bytes.map(|bytes| RawDocumentBuf::from_bytes(bytes).unwrap())
    };
    let twice = || rawdoc! { "a": 1, "b": 2, "a": 3 };
    assert_eq!(merged(twice(), rawdoc! { "a": 4 }), Some(rawdoc! { "a": 4, "b": 2, "a": 3 }));
    assert_eq!(merged(twice(), rawdoc! { "a": 1, "a": 5 }), None);
    assert_eq!(merged(rawdoc! { "c": 1 }, twice()), Some(rawdoc! { "c": 1, "a": 1, "b": 2 }));
    assert_eq!(merged(rawdoc! {}, rawdoc! {}), None);
}

proptest! {
    #[test]
    fn a_merge_agrees_with_merging_field_by_field(
        doc in random::document(),
        patch in random::document(),
        shared in any::<prop::sample::Index>(),
    ) {
        let fields = |bytes: &[u8]| -> Vec<(String, OwnedValue)> {
            Doc::new(bytes).elements().map(|field| (field.display_name().into(), field.value.to_owned())).collect()
        };
        // One field of the document is unchanged by the patch.
        let before = fields(&doc);
        let mut given = fields(&patch);
        given.extend((!before.is_empty()).then(|| shared.get(&before).clone()));
        let mut after = before.clone();
        for (at, (name, value)) in given.iter().enumerate() {
            if given[..at].iter().all(|(earlier, _)| earlier != name) {
                match after.iter_mut().find(|(there, _)| there == name) {
                    Some((_, there)) => there.clone_from(value),
                    None => after.push((name.clone(), value.clone())),
                }
            }
        }
        match merge(Doc::new(&doc), Doc::new(&random::document_of(&given))).unwrap() {
            Some(merged) => {
                prop_assert!(validate(&merged).is_ok());
                prop_assert_eq!(fields(&merged), &*after);
                prop_assert_ne!(before, after);
            }
            None => prop_assert_eq!(before, after),
        }
    }
}
