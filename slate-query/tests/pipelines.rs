//! Stages: how they are parsed, drawn and refused, which fields they read, and the rows of `$unwind`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use bson::{Bson, Document, RawDocumentBuf, bson, doc};
use slate_query::{
    Code, Result,
    expression::{Bindings, Needs},
    pipeline::{Stage, Unwind, UnwoundRows, parse},
    raw::{Doc, with_value},
};

fn parsed(pipeline: Bson) -> Result<Vec<String>> {
    with_value(&pipeline, |value| {
        let stages = value.as_array().map(|stages| parse(stages.values(), &Bindings::default()));
        let draw = |stage: &Stage| format!("{} {stage}", stage.name());
        stages.unwrap().map(|stages| stages.iter().map(draw).collect())
    })
}

#[test]
fn stages_are_parsed_and_drawn() {
    for (stage, drawn) in [
        (bson!({"$match": {"a": 1}}), "$match { \"a\": 1 }"),
        (bson!({"$sort": {"a": -1}}), "$sort { a: -1 }"),
        (bson!({"$limit": 5.0}), "$limit 5"),
        (bson!({"$skip": 0}), "$skip 0"),
        (bson!({"$sample": {"size": 3}}), "$sample 3"),
        (bson!({"$count": "n"}), "$count n"),
        (bson!({"$collStats": {"count": {}}}), "$collStats { \"count\": {} }"),
        (bson!({"$indexStats": {}}), "$indexStats {}"),
        (bson!({"$unset": "a.b"}), "$project { \"a.b\": 0 }"),
        (bson!({"$unset": ["a", "b"]}), "$project { \"a\": 0, \"b\": 0 }"),
        (bson!({"$project": {"a": 1}}), "$project { \"a\": 1 }"),
        (bson!({"$unwind": "$a.b"}), "$unwind a.b"),
        (
            bson!({"$unwind": {"path": "$a", "includeArrayIndex": "i", "preserveNullAndEmptyArrays": true}}),
            "$unwind a, index i, preserving empty",
        ),
    ] {
        assert_eq!(parsed(bson!([stage.clone()])).unwrap(), [drawn], "{stage}");
    }
    assert_eq!(parsed(bson!([])).unwrap().len(), 0);
}

#[test]
fn a_stage_with_its_own_documents_comes_first() {
    for stage in [bson!({"$collStats": {}}), bson!({"$indexStats": {}}), bson!({"$documents": []})] {
        assert_eq!(parsed(bson!([stage.clone(), {"$limit": 1}])).unwrap().len(), 2);
        let refused = parsed(bson!([{"$match": {}}, stage.clone()])).unwrap_err();
        assert_eq!(refused.code(), Code(40_602), "{stage}");
    }
}

#[test]
fn refused_stages_have_mongodbs_codes() {
    for (stage, code) in [
        (bson!(7), 14),
        (bson!({}), 40_323),
        (bson!({"$limit": 1, "$skip": 1}), 40_323),
        (bson!({"$nothing": 1}), 40_324),
        (bson!({"limit": 1}), 40_324),
        (bson!({"$geoNear": {}}), 238),
        (bson!({"$collStats": 1}), 5_447_000),
        (bson!({"$collStats": []}), 5_447_000),
        (bson!({"$collStats": {"counts": {}}}), 40_415),
        (bson!({"$collStats": {"count": 1}}), 14),
        (bson!({"$collStats": {"count": {"a": 1}}}), 31_170),
        (bson!({"$collStats": {"queryExecStats": {"a": 1}}}), 31_170),
        (bson!({"$collStats": {"storageStats": []}}), 14),
        (bson!({"$collStats": {"storageStats": {"scale": "a"}}}), 14),
        (bson!({"$collStats": {"storageStats": {"scale": 0}}}), 2),
        (bson!({"$collStats": {"storageStats": {"scale": 0.5}}}), 2),
        (bson!({"$collStats": {"latencyStats": {}}}), 238),
        (bson!({"$indexStats": 1}), 28_803),
        (bson!({"$indexStats": []}), 28_803),
        (bson!({"$indexStats": {"a": 1}}), 28_803),
        (bson!({"$facet": {"a": [{"$collStats": {}}]}}), 40_600),
        (bson!({"$facet": {"a": [{"$indexStats": {}}]}}), 40_600),
        (bson!({"$facet": {"a": [{"$documents": []}]}}), 40_600),
        (bson!({"$facet": {"a": [{"$match": {}}, {"$changeStream": {}}]}}), 40_600),
        (bson!({"$facet": {"a": [{"$lookup": {"pipeline": [{"$documents": []}], "as": "b"}}]}}), 40_600),
        (bson!({"$facet": {"a": [{"$unionWith": {"pipeline": [{"$documents": []}]}}]}}), 40_600),
        (bson!({"$unionWith": {"coll": "c", "pipeline": [{"$documents": []}]}}), 9),
        (bson!({"$lookup": {"from": "c", "pipeline": [{"$documents": []}], "as": "a"}}), 9),
        (bson!({"$lookup": {"as": "a", "nothing": 1}}), 9),
        (bson!({"$lookup": {"from": "c", "nothing": 1, "as": "a", "pipeline": []}}), 40_415),
        (bson!({"$lookup": {"from": "c", "pipeline": []}}), 40_414),
        (bson!({"$lookup": {"from": "c", "as": null, "pipeline": []}}), 40_414),
        (bson!({"$lookup": {"from": "c", "as": 1, "pipeline": []}}), 14),
        (bson!({"$lookup": {"from": "c", "as": "a", "localField": 1, "foreignField": "b"}}), 14),
        (bson!({"$lookup": {"from": "c", "as": "a", "let": [], "pipeline": []}}), 14),
        (bson!({"$lookup": {"from": "", "as": "a", "pipeline": []}}), 73),
        (bson!({"$lookup": {"from": "$c", "as": "a", "pipeline": []}}), 73),
        (bson!({"$lookup": {"from": ".c", "as": "a", "pipeline": []}}), 73),
        (bson!({"$lookup": {"from": "c\0", "as": "a", "pipeline": []}}), 73),
        (bson!({"$unionWith": "c$d"}), 73),
        (bson!({"$unionWith": {"coll": ".c"}}), 73),
        (bson!({"$graphLookup": {"from": "$c"}}), 73),
        (bson!({"$group": {"_id": {"a": 1}}}), 17_390),
        (bson!({"$group": {"_id": {"a": "$b", "c": true}}}), 17_390),
        (bson!({"$group": {"_id": {"": "$b"}}}), 15_998),
        (bson!({"$group": {"_id": null, "a": {"$push": {"": "$b"}}}}), 15_998),
        (bson!({"$replaceRoot": {"newRoot": {"": "$b"}}}), 15_998),
        (bson!({"$replaceWith": {"a": {"": 1}}}), 15_998),
        (
            bson!({"$setWindowFields": {"sortBy": {"a": 1, "b": 1}, "output": {"n": {"$documentNumber": {}}}}}),
            5_371_602,
        ),
        (bson!({"$match": 1}), 15_959),
        (bson!({"$match": {"$nothing": 1}}), 2),
        (bson!({"$limit": "a"}), 5_107_201),
        (bson!({"$limit": 1.5}), 5_107_201),
        (bson!({"$limit": 0}), 15_958),
        (bson!({"$limit": -1}), 15_958),
        (bson!({"$skip": true}), 5_107_200),
        (bson!({"$skip": -1}), 5_107_200),
        (bson!({"$sort": 1}), 15_973),
        (bson!({"$sort": {}}), 15_976),
        (bson!({"$sort": {"$natural": 1}}), 16_410),
        (bson!({"$count": 1}), 40_156),
        (bson!({"$count": ""}), 40_157),
        (bson!({"$count": "$a"}), 40_158),
        (bson!({"$count": "a\0."}), 40_159),
        (bson!({"$count": "a.b"}), 40_160),
        (bson!({"$unset": 1}), 31_002),
        (bson!({"$unset": []}), 31_119),
        (bson!({"$unset": [1]}), 31_120),
        (bson!({"$unset": "a\0"}), 9_527_900),
        (bson!({"$unset": ["a", "a.b"]}), 31_249),
        (bson!({"$project": 1}), 15_969),
        (bson!({"$project": {}}), 51_272),
        (bson!({"$project": {"a": {"$elemMatch": {"b": 1}}}}), 168),
        (bson!({"$project": {"a.$": 1}}), 31_324),
        (bson!({"$sample": 1}), 28_745),
        (bson!({"$sample": {"size": "a"}}), 28_746),
        (bson!({"$sample": {"size": -1}}), 28_747),
        (bson!({"$sample": {"n": 1}}), 28_748),
        (bson!({"$sample": {}}), 28_749),
        (bson!({"$unwind": 1}), 15_981),
        (bson!({"$unwind": "a"}), 28_818),
        (bson!({"$unwind": "$"}), 40_352),
        (bson!({"$unwind": {"path": 1}}), 28_808),
        (bson!({"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": 1}}), 28_809),
        (bson!({"$unwind": {"path": "$a", "includeArrayIndex": ""}}), 28_810),
        (bson!({"$unwind": {"path": "$a", "other": ""}}), 28_811),
        (bson!({"$unwind": {}}), 28_812),
        (bson!({"$unwind": {"path": "$a", "includeArrayIndex": "$i"}}), 28_822),
    ] {
        assert_eq!(parsed(bson!([stage.clone()])).unwrap_err().code(), Code(code), "{stage}");
    }
}

fn unwind(stage: &Bson) -> Unwind {
    let stages = with_value(&bson!([{ "$unwind": stage.clone() }]), |stages| {
        parse(stages.as_array().unwrap().values(), &Bindings::default()).unwrap()
    });
    let [Stage::Unwind(unwind)] = &*stages else { panic!("not an unwind") };
    unwind.clone()
}

fn unwound(stage: &Bson, document: &Document) -> Vec<Document> {
    let unwind = unwind(stage);
    let document = RawDocumentBuf::try_from(document).unwrap();
    let mut rows = UnwoundRows::default();
    let mut found = Vec::new();
    let mut more = rows.begin(&unwind, Doc::from(&document));
    while more {
        found.push(Document::from_reader(rows.current()).unwrap());
        more = rows.advance(&unwind);
    }
    found
}

#[test]
fn each_element_makes_a_row() {
    let rows = unwound(&bson!("$a"), &doc! {"_id": 1, "a": [1, "x", [2], null], "b": 2});
    let row = |a: Bson| doc! {"_id": 1, "a": a, "b": 2};
    assert_eq!(rows, [row(1.into()), row("x".into()), row(bson!([2])), row(Bson::Null)]);
    assert_eq!(unwound(&bson!("$a.b"), &doc! {"a": {"b": [1], "c": 2}}), [doc! {"a": {"b": 1, "c": 2}}]);
    assert_eq!(unwound(&bson!("$a"), &doc! {"a": 5}), [doc! {"a": 5}]);
    for empty in [doc! {}, doc! {"a": null}, doc! {"a": []}] {
        assert!(unwound(&bson!("$a"), &empty).is_empty(), "{empty}");
    }
    assert!(unwound(&bson!("$a.b"), &doc! {"a": [{"b": [1]}]}).is_empty(), "no walk through arrays");
}

#[test]
fn rows_have_the_fields_that_are_needed() {
    let document = RawDocumentBuf::try_from(&doc! {"x": 1, "a": [7, "y"], "b": 2, "c": 3}).unwrap();
    for (stage, needs, expected) in [
        (bson!("$a"), Needs::Fields(["b".into()].into()), [doc! {"a": 7, "b": 2}, doc! {"a": "y", "b": 2}]),
        (
            bson!("$a"),
            Needs::Fields(["x".into(), "c".into()].into()),
            [doc! {"x": 1, "a": 7, "c": 3}, doc! {"x": 1, "a": "y", "c": 3}],
        ),
        (bson!("$a"), Needs::NOTHING, [doc! {"a": 7}, doc! {"a": "y"}]),
        (
            bson!({"path": "$a", "includeArrayIndex": "i"}),
            Needs::NOTHING,
            [doc! {"a": 7, "i": 0_i64}, doc! {"a": "y", "i": 1_i64}],
        ),
        (bson!({"path": "$a", "includeArrayIndex": "a"}), Needs::NOTHING, [doc! {"a": 0_i64}, doc! {"a": 1_i64}]),
    ] {
        let mut unwind = unwind(&stage);
        unwind.keep(needs);
        let mut rows = UnwoundRows::default();
        assert!(rows.begin(&unwind, Doc::from(&document)));
        let first = Document::from_reader(rows.current()).unwrap();
        assert!(rows.advance(&unwind));
        assert_eq!([first, Document::from_reader(rows.current()).unwrap()], expected);
        assert!(!rows.advance(&unwind));
    }
}

#[test]
fn documents_without_elements_are_preserved_on_request() {
    let stage = bson!({"path": "$a", "preserveNullAndEmptyArrays": true, "includeArrayIndex": "i.n"});
    for (document, expected) in [
        (doc! {}, doc! {"i": {"n": null}}),
        (doc! {"a": null}, doc! {"a": null, "i": {"n": null}}),
        (doc! {"a": [], "b": 1}, doc! {"b": 1, "i": {"n": null}}),
        (doc! {"a": 5}, doc! {"a": 5, "i": {"n": null}}),
        (doc! {"a": [7]}, doc! {"a": 7, "i": {"n": 0_i64}}),
    ] {
        assert_eq!(unwound(&stage, &document), [expected], "{document}");
    }
}

/// Returns the needed fields, separated by blanks; `*` for the whole document.
fn needs(pipeline: Bson) -> String {
    let stages =
        with_value(&pipeline, |value| parse(value.as_array().unwrap().values(), &Bindings::default()).unwrap());
    match Needs::of(&stages).fields() {
        None => "*".into(),
        Some(fields) => fields.iter().map(|name| &**name).collect::<Vec<_>>().join(" "),
    }
}

#[test]
fn a_stage_that_makes_new_documents_reads_only_what_it_names() {
    for (pipeline, expected) in [
        (bson!([]), "*"),
        (bson!([{"$match": {"a": 1}}]), "*"),
        (bson!([{"$count": "n"}]), ""),
        (bson!([{"$match": {"a.b": 1, "$or": [{"c": 1}, {"d": 1}]}}, {"$count": "n"}]), "a c d"),
        (bson!([{"$project": {"a.b": 1, "c": "$d.e", "_id": 0}}]), "a d"),
        (bson!([{"$project": {"a": 0}}]), "*"),
        (bson!([{"$project": {"a": 0}}, {"$group": {"_id": "$b"}}]), "b"),
        (bson!([{"$group": {"_id": {"x": "$a"}, "n": {"$sum": {"$add": ["$b.c", "$d"]}}}}]), "a b d"),
        (bson!([{"$group": {"_id": null, "all": {"$push": "$$ROOT"}}}]), "*"),
        (bson!([{"$group": {"_id": null, "top": {"$top": {"output": "$a", "sortBy": {"b": 1}}}}}]), "a b"),
        (bson!([{"$addFields": {"a": "$b", "c.d": 1}}, {"$group": {"_id": "$a", "c": {"$max": "$c"}}}]), "b c"),
        (bson!([{"$sort": {"a": 1, "b": 1}}, {"$limit": 1}, {"$group": {"_id": "$c"}}]), "a b c"),
        (bson!([{"$unwind": {"path": "$a.b", "includeArrayIndex": "i"}}, {"$group": {"_id": "$i"}}]), "a i"),
        (bson!([{"$replaceRoot": {"newRoot": {"x": "$a"}}}]), "a"),
        (bson!([{"$facet": {"x": [{"$group": {"_id": "$a"}}], "y": [{"$sortByCount": "$b"}]}}]), "a b"),
        (bson!([{"$facet": {"x": [{"$group": {"_id": "$a"}}], "y": [{"$limit": 1}]}}]), "*"),
        (bson!([{"$sample": {"size": 1}}, {"$group": {"_id": "$a"}}]), "a"),
        // A field that is written keeps its place among those that are returned.
        (bson!([{"$addFields": {"a": "$c"}}, {"$project": {"a": 1, "b": 1, "_id": 0}}]), "a b c"),
        (bson!([{"$addFields": {"a": "$c"}}, {"$project": {"a": 1, "_id": 0}}]), "c"),
        (bson!([{"$addFields": {"a": "$c"}}, {"$project": {"a": 1, "b": 1}}, {"$sortByCount": "$a"}]), "_id b c"),
    ] {
        assert_eq!(needs(pipeline.clone()), expected, "{pipeline}");
    }
}
