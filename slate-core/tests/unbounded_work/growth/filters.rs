//! Filters with many conditions, values or branches: planned for different indexes, and evaluated on large documents.

use bson::{Bson, Document, bson, doc};
use slate_core::ExplainVerbosity;

use super::{Call, Collections, common, fields, list, numbers};

/// Returns filters with n operands.
fn filters(n: usize) -> Vec<(&'static str, Document)> {
    let and = |each: &dyn Fn(i32) -> Bson| doc! { "$and": list(n, each) };
    let or = |each: &dyn Fn(i32) -> Bson| doc! { "$or": list(n, each) };
    let nor = |each: &dyn Fn(i32) -> Bson| doc! { "$nor": list(n, each) };
    let name = |at: i32| format!("f{at}");
    let three = |at: i32| ["v", "w", "x"][at.unsigned_abs() as usize % 3];
    vec![
        ("$in", doc! { "v": { "$in": numbers(n) } }),
        ("$in of texts", doc! { "v": { "$in": list(n, |at| name(at).into()) } }),
        ("$in of documents", doc! { "v": { "$in": list(n, |at| bson!({ "x": at })) } }),
        ("$in on two fields", doc! { "v": { "$in": numbers(n) }, "w": { "$in": numbers(n) } }),
        ("$in on an array", doc! { "a": { "$in": numbers(n) } }),
        ("$in of ids", doc! { "_id": { "$in": numbers(n) } }),
        ("$in collated", doc! { "x": { "$in": list(n, |at| name(at).into()) } }),
        ("$nin", doc! { "v": { "$nin": numbers(n) } }),
        ("$nin on an array", doc! { "a": { "$nin": numbers(n) } }),
        ("$not $in", doc! { "v": { "$not": { "$in": numbers(n) } } }),
        ("$all", doc! { "a": { "$all": numbers(n) } }),
        ("$all on a number", doc! { "v": { "$all": numbers(n) } }),
        ("$all of $elemMatch", doc! { "d": { "$all": list(n, |at| bson!({ "$elemMatch": { "x": at } })) } }),
        ("$eq of an array", doc! { "a": numbers(n) }),
        ("$eq of a document", doc! { "v": fields(n, |at| (name(at), at.into())) }),
        ("$gt of an array", doc! { "a": { "$gt": numbers(n) } }),
        ("$and of equalities", and(&|at| bson!({ "v": at }))),
        ("$and of equalities on an array", and(&|at| bson!({ "a": at }))),
        ("$and of $ne", and(&|at| bson!({ "v": { "$ne": at } }))),
        ("$and of $ne on an array", and(&|at| bson!({ "a": { "$ne": at } }))),
        ("$and of $gt", and(&|at| bson!({ "v": { "$gt": -at } }))),
        ("$and of $gt on an array", and(&|at| bson!({ "a": { "$gt": -at } }))),
        ("$and of several fields", and(&|at| bson!({ three(at): { "$ne": at } }))),
        ("$and of many fields", and(&|at| bson!({ name(at): at }))),
        ("$and of $or", and(&|at| bson!({ "$or": [{ "v": at }, { "w": at }] }))),
        ("$and of $or of two equalities", and(&|at| bson!({ "$or": [{ "v": at }, { "v": -at }] }))),
        ("$and of $in", and(&|at| bson!({ "v": { "$in": [at, 1] } }))),
        ("$and of $elemMatch", and(&|at| bson!({ "d": { "$elemMatch": { "x": at } } }))),
        ("$and of $exists", and(&|at| bson!({ name(at): { "$exists": true } }))),
        ("$and of $expr", and(&|at| bson!({ "$expr": { "$ne": ["$v", at] } }))),
        ("$and of $nor", and(&|at| bson!({ "$nor": [{ "v": at }, { "w": at }] }))),
        (
            "many operators",
            doc! { "v": fields(n, |at| (["$ne", "$gt", "$lt", "$gte"][at.unsigned_abs() as usize % 4].into(), at.into())) },
        ),
        ("many fields", fields(n, |at| (name(at), at.into()))),
        ("many paths", fields(n, |at| (format!("o.f{at}"), at.into()))),
        ("many fields with ranges", fields(n, |at| (name(at), bson!({ "$gt": at })))),
        ("many fields with $in", fields(n, |at| (name(at), bson!({ "$in": [at, 1] })))),
        ("$or of equalities", or(&|at| bson!({ "v": at }))),
        ("$or of equalities on an array", or(&|at| bson!({ "a": at }))),
        ("$or of texts", or(&|at| bson!({ "s": name(at) }))),
        ("$or of ids", or(&|at| bson!({ "_id": at }))),
        ("$or of several fields", or(&|at| bson!({ three(at): at }))),
        ("$or of documents", or(&|at| bson!({ "v": at, "w": at }))),
        (
            "$or of documents in two orders",
            or(&|at| if at % 2 == 0 { bson!({ "v": at, "w": at }) } else { bson!({ "w": at, "x": at }) }),
        ),
        ("$or of documents with ranges", or(&|at| bson!({ "v": at, "w": { "$gt": at, "$lt": at + 5 } }))),
        ("$or of $and", or(&|at| bson!({ "$and": [{ "v": at }, { "w": at }, { "x": at }] }))),
        ("$or of ranges", or(&|at| bson!({ "v": { "$gt": 2 * at, "$lt": 2 * at + 1 } }))),
        ("$or of growing ranges", or(&|at| bson!({ "v": { "$gt": at, "$lt": 100_000 + at } }))),
        ("$or of ranges on several fields", or(&|at| bson!({ three(at): { "$gt": 2 * at, "$lt": 2 * at + 1 } }))),
        ("$or of $gt", or(&|at| bson!({ "v": { "$gt": at } }))),
        ("$or of $ne", or(&|at| bson!({ "v": { "$ne": at } }))),
        ("$or of $in", or(&|at| bson!({ "v": { "$in": [at, at + 1] } }))),
        ("$or of $elemMatch", or(&|at| bson!({ "d": { "$elemMatch": { "x": at, "y": 1 } } }))),
        ("$or of $elemMatch of ranges", or(&|at| bson!({ "a": { "$elemMatch": { "$gt": at, "$lt": at + 2 } } }))),
        ("$or of $or", or(&|at| bson!({ "$or": [{ "v": at }, { "w": at }] }))),
        ("$or of many fields", or(&|at| bson!({ name(at): at }))),
        ("$or of many paths", or(&|at| bson!({ format!("o.f{at}"): at }))),
        ("$or of $expr", or(&|at| bson!({ "$expr": { "$eq": ["$v", at] } }))),
        ("$or beside a condition", {
            let mut filter = or(&|at| bson!({ "v": at }));
            filter.insert("w", 1);
            filter
        }),
        ("$or beside conditions", {
            let mut filter = or(&|at| bson!({ three(at): at }));
            filter.extend(doc! { "w": 1, "a": 2, "d.x": { "$gt": 1 } });
            filter
        }),
        ("$or beside $or", doc! { "$and": [or(&|at| bson!({ "v": at })), or(&|at| bson!({ "w": at }))] }),
        ("$or beside many conditions", {
            let mut filter = fields(n, |at| (name(at), at.into()));
            filter.extend(doc! { "$or": [{ "v": 1 }, { "w": 1 }] });
            filter
        }),
        ("$nor of equalities", nor(&|at| bson!({ "v": at }))),
        ("$nor of equalities on an array", nor(&|at| bson!({ "a": at }))),
        ("$nor of documents", nor(&|at| bson!({ "v": at, "w": at }))),
        ("$nor of many fields", nor(&|at| bson!({ name(at): at }))),
        ("$elemMatch of $in", doc! { "a": { "$elemMatch": { "$in": numbers(n) } } }),
        ("$elemMatch of $nin", doc! { "a": { "$elemMatch": { "$nin": numbers(n) } } }),
        ("$elemMatch of $or", doc! { "d": { "$elemMatch": or(&|at| bson!({ "x": at })) } }),
        ("$elemMatch of $and", doc! { "d": { "$elemMatch": and(&|at| bson!({ "x": { "$ne": at } })) } }),
        ("$elemMatch of many fields", doc! { "d": { "$elemMatch": fields(n, |at| (name(at), at.into())) } }),
        (
            "$elemMatch of fields with $in",
            doc! { "d": { "$elemMatch": { "x": { "$in": numbers(n) }, "y": { "$nin": numbers(n) } } } },
        ),
        ("$expr $in", doc! { "$expr": { "$in": ["$v", numbers(n)] } }),
        ("$expr $or", doc! { "$expr": { "$or": list(n, |at| bson!({ "$eq": ["$v", at] })) } }),
        (
            "$expr $or of fields",
            doc! { "$expr": { "$or": list(n, |at| bson!({ "$eq": [format!("${}", three(at)), at] })) } },
        ),
        ("$expr $and", doc! { "$expr": { "$and": list(n, |at| bson!({ "$ne": ["$v", at] })) } }),
        ("$expr $and of equalities", doc! { "$expr": { "$and": list(n, |at| bson!({ "$eq": ["$v", at] })) } }),
        ("$expr $and of fields", doc! { "$expr": { "$and": list(n, |at| bson!({ "$eq": [format!("$f{at}"), at] })) } }),
        ("$expr $setIsSubset", doc! { "$expr": { "$setIsSubset": [["$v"], numbers(n)] } }),
        ("$jsonSchema enum", doc! { "$jsonSchema": { "properties": { "v": { "enum": numbers(n) } } } }),
        (
            "$jsonSchema enum of items",
            doc! { "$jsonSchema": { "properties": { "a": { "items": { "enum": numbers(n) } } } } },
        ),
        (
            "$jsonSchema properties",
            doc! { "$jsonSchema": { "properties": fields(n, |at| (name(at), bson!({ "bsonType": "int" }))) } },
        ),
        ("$jsonSchema required", doc! { "$jsonSchema": { "required": list(n, |at| name(at).into()) } }),
        (
            "$jsonSchema allOf",
            doc! { "$jsonSchema": { "allOf": list(n, |at| bson!({ "properties": { "v": { "minimum": -at } } })) } },
        ),
        (
            "$jsonSchema anyOf",
            doc! { "$jsonSchema": { "anyOf": list(n, |at| bson!({ "properties": { "v": { "enum": [at] } } })) } },
        ),
        (
            "$jsonSchema oneOf",
            doc! { "$jsonSchema": { "oneOf": list(n, |at| bson!({ "properties": { "v": { "enum": [at] } } })) } },
        ),
        (
            "$jsonSchema dependencies",
            doc! { "$jsonSchema": { "dependencies": fields(n, |at| (name(at), bson!([format!("f{}", at + 1)]))) } },
        ),
        (
            "$jsonSchema dependencies of one field",
            doc! { "$jsonSchema": { "dependencies": { "f1": list(n, |at| name(at).into()) } } },
        ),
        (
            "$jsonSchema items",
            doc! { "$jsonSchema": { "properties": { "a": { "items": list(n, |_| bson!({ "bsonType": "int" })) } } } },
        ),
        (
            "$jsonSchema additionalProperties",
            doc! { "$jsonSchema": {
                "properties": fields(n, |at| (name(at), bson!({}))), "additionalProperties": { "bsonType": ["int", "array", "object", "string"] },
            } },
        ),
        (
            "$jsonSchema uniqueItems",
            doc! { "$jsonSchema": { "properties": { "a": { "uniqueItems": true }, "d": { "uniqueItems": true } } } },
        ),
        ("$type", doc! { "v": { "$type": list(n, |at| (1 + at % 10).into()) } }),
        ("$comment", doc! { "$comment": "x".repeat(n) }),
        ("$bitsAllSet", doc! { "v": { "$bitsAllSet": list(n, |at| (at % 60).into()) } }),
    ]
}

fn collated(name: &str) -> bool {
    [
        "$in of texts",
        "$in collated",
        "$or of equalities",
        "$or of texts",
        "$all",
        "$nin",
        "$nor of equalities",
        "many fields",
        "$or of documents",
    ]
    .contains(&name)
}

/// Returns the calls with each filter.
pub(super) fn calls(n: usize, collections: &Collections) -> Vec<Call> {
    let mut calls = Vec::new();
    for (name, filter) in filters(n) {
        let filter = common::raw(&filter);
        for (place, (indexes, _)) in collections.small.iter().enumerate() {
            let (filter_, name_) = (filter.clone(), format!("find with {indexes}: {name}"));
            calls.push(Call::new(name_, move |c| {
                c.small[place].1.find(&filter_).run()?.try_for_each(|row| row.map(drop))
            }));
        }
        let small = |call: &str, run: fn(&super::Documents, &bson::RawDocumentBuf) -> slate_core::Result<()>| {
            let filter = filter.clone();
            Call::new(format!("{call} by {name}"), move |c| run(&c.small[2].1, &filter))
        };
        calls.push(small("explain", |c, filter| c.find(filter).explain(ExplainVerbosity::QueryPlanner).map(drop)));
        calls.push(small("aggregate", |c, filter| {
            c.aggregate([
                doc! { "$project": { "v": 1, "a": 1 } },
                doc! { "$match": bson::Document::try_from(filter.as_ref()).unwrap() },
            ])
            .run()?
            .try_for_each(|row| row.map(drop))
        }));
        calls.push(small("sorted", |c, filter| {
            c.find(filter)
                .sort(doc! { "w": 1, "v": 1 })
                .projection(doc! { "v": 1, "_id": 0 })
                .run()?
                .try_for_each(|row| row.map(drop))
        }));
        if collated(name) {
            calls.push(small("collated", |c, filter| {
                c.find(filter)
                    .collation(doc! { "locale": "en", "strength": 2 })
                    .run()?
                    .try_for_each(|row| row.map(drop))
            }));
        }
        if name.ends_with("of texts") {
            let filter = filter.clone();
            calls.push(Call::new(format!("find in large documents, collated: {name}"), move |c| {
                c.large
                    .find(&filter)
                    .collation(doc! { "locale": "en", "strength": 2 })
                    .run()?
                    .try_for_each(|row| row.map(drop))
            }));
        }
        calls.push(Call::new(format!("find in large documents: {name}"), move |c| {
            c.large.find(&filter).run()?.try_for_each(|row| row.map(drop))
        }));
    }
    calls
}
