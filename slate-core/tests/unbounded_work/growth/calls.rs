//! Updates, projections, sorts, stages, writes and index definitions.

use bson::{Document, RawDocumentBuf, bson, doc};
use slate_core::{Index, Result, WriteOperation};

use super::{Call, Collections, Documents, common, fields, list, numbers, shuffled};

/// Returns updates of large documents, and their array filters.
fn updates(n: usize) -> Vec<(&'static str, Document, Vec<Document>)> {
    let name = |at: i32| format!("f{at}");
    let inner = |at: i32| format!("o.f{at}");
    let of = |name: &str, fields: Document| doc! { name: fields };
    let each = |modifiers: Document| {
        let mut each = doc! { "$each": numbers(n) };
        each.extend(modifiers);
        each
    };
    let many_filters =
        |field: &str| -> Vec<Document> { shuffled(n).map(|at| doc! { format!("e{at}{field}"): at }).collect() };
    vec![
        ("$set", of("$set", fields(n, |at| (name(at), 1.into()))), vec![]),
        ("$set of paths", of("$set", fields(n, |at| (inner(at), (-at).into()))), vec![]),
        ("$set of new paths", of("$set", fields(n, |at| (format!("new.f{at}.g"), 1.into()))), vec![]),
        ("$set of elements", of("$set", fields(n, |at| (format!("a.{at}"), (-at).into()))), vec![]),
        ("$set of fields of elements", of("$set", fields(n, |at| (format!("d.{at}.x"), (-at).into()))), vec![]),
        ("$set of an array", of("$set", doc! { "a": numbers(n) }), vec![]),
        ("$setOnInsert", of("$setOnInsert", fields(n, |at| (inner(at), 1.into()))), vec![]),
        ("$unset", of("$unset", fields(n, |at| (name(at), 1.into()))), vec![]),
        ("$unset of paths", of("$unset", fields(n, |at| (inner(at), 1.into()))), vec![]),
        ("$rename", of("$rename", fields(n, |at| (name(at), format!("g{at}").into()))), vec![]),
        ("$rename of paths", of("$rename", fields(n, |at| (inner(at), format!("o.g{at}").into()))), vec![]),
        ("$rename out of a document", of("$rename", fields(n, |at| (inner(at), format!("g{at}").into()))), vec![]),
        ("$rename into a document", of("$rename", fields(n, |at| (name(at), format!("g.g{at}").into()))), vec![]),
        ("$inc", of("$inc", fields(n, |at| (inner(at), at.into()))), vec![]),
        ("$mul", of("$mul", fields(n, |at| (inner(at), at.into()))), vec![]),
        ("$min", of("$min", fields(n, |at| (inner(at), (-at).into()))), vec![]),
        ("$max", of("$max", fields(n, |at| (inner(at), (2 * at).into()))), vec![]),
        ("$bit", of("$bit", fields(n, |at| (inner(at), bson!({ "or": at })))), vec![]),
        ("$currentDate", of("$currentDate", fields(n, |at| (inner(at), true.into()))), vec![]),
        ("$push", of("$push", doc! { "a": each(doc! {}) }), vec![]),
        ("$push at a position", of("$push", doc! { "a": each(doc! { "$position": 1 }) }), vec![]),
        ("$push sorted", of("$push", doc! { "a": each(doc! { "$sort": -1 }) }), vec![]),
        (
            "$push sorted and sliced",
            of(
                "$push",
                doc! { "d": { "$each": list(n, |at| bson!({ "x": at })), "$sort": { "x": -1 }, "$slice": -(n as i32) } },
            ),
            vec![],
        ),
        ("$push to many", of("$push", fields(n, |at| (format!("new.f{at}"), at.into()))), vec![]),
        ("$addToSet", of("$addToSet", doc! { "b": each(doc! {}) }), vec![]),
        (
            "$addToSet of documents",
            of("$addToSet", doc! { "d": { "$each": list(n, |at| bson!({ "x": at, "y": -at, "z": [at] })) } }),
            vec![],
        ),
        ("$addToSet of one", of("$addToSet", doc! { "a": -1 }), vec![]),
        ("$pull", of("$pull", doc! { "a": { "$in": numbers(n) } }), vec![]),
        ("$pull of $nin", of("$pull", doc! { "a": { "$nin": numbers(n) } }), vec![]),
        ("$pull of documents", of("$pull", doc! { "d": { "x": { "$in": numbers(n) } } }), vec![]),
        ("$pull of $or", of("$pull", doc! { "d": { "$or": list(n, |at| bson!({ "x": at })) } }), vec![]),
        ("$pull of a range", of("$pull", doc! { "a": { "$gt": 3 } }), vec![]),
        ("$pullAll", of("$pullAll", doc! { "a": numbers(n) }), vec![]),
        (
            "$pullAll of documents",
            of("$pullAll", doc! { "d": list(n, |at| bson!({ "x": at, "y": -at, "z": [at] })) }),
            vec![],
        ),
        ("$pop", of("$pop", doc! { "a": 1 }), vec![]),
        ("$[]", of("$inc", doc! { "a.$[]": 1 }), vec![]),
        ("$[] of documents", of("$set", doc! { "d.$[].w": 1 }), vec![]),
        ("$[] of many fields", of("$set", fields(n, |at| (format!("e.$[].f{at}"), 1.into()))), vec![]),
        ("array filter of $in", of("$set", doc! { "a.$[e]": -1 }), vec![doc! { "e": { "$in": numbers(n) } }]),
        ("array filter of $nin", of("$set", doc! { "a.$[e]": -1 }), vec![doc! { "e": { "$nin": numbers(n) } }]),
        (
            "array filter of $or",
            of("$set", doc! { "a.$[e]": -1 }),
            vec![doc! { "$or": list(n, |at| bson!({ "e": at })) }],
        ),
        (
            "array filter of $nor",
            of("$set", doc! { "a.$[e]": -1 }),
            vec![doc! { "$nor": list(n, |at| bson!({ "e": at })) }],
        ),
        (
            "array filter of $and",
            of("$set", doc! { "a.$[e]": -1 }),
            vec![doc! { "$and": list(n, |at| bson!({ "e": { "$ne": at } })) }],
        ),
        ("array filter of a field", of("$set", doc! { "d.$[e].w": 1 }), vec![doc! { "e.x": { "$in": numbers(n) } }]),
        (
            "array filter with many fields",
            of("$set", fields(n, |at| (format!("e.$[e].f{at}"), 1.into()))),
            vec![doc! { "e.x": 1 }],
        ),
        ("many array filters", of("$set", fields(n, |at| (format!("m.f{at}.$[e{at}]"), 1.into()))), many_filters("")),
        (
            "many array filters of fields",
            of("$set", fields(n, |at| (format!("m.f{at}.$[e{at}].y"), 1.into()))),
            many_filters(".x"),
        ),
        (
            "many array filters of one array",
            of("$set", fields(n, |at| (format!("e.$[e{at}].f{at}"), 1.into()))),
            many_filters(".x"),
        ),
    ]
}

/// Updates by pipelines.
fn pipelines(n: usize) -> Vec<(&'static str, Vec<Document>)> {
    let name = |at: i32| format!("f{at}");
    vec![
        ("$set", vec![doc! { "$set": fields(n, |at| (name(at), "$v".into())) }]),
        ("$set of paths", vec![doc! { "$set": fields(n, |at| (format!("o.f{at}"), "$v".into())) }]),
        ("$unset", vec![doc! { "$unset": list(n, |at| format!("o.f{at}").into()) }]),
        ("$project", vec![doc! { "$project": fields(n, |at| (name(at), 1.into())) }]),
        (
            "$replaceWith",
            vec![doc! { "$replaceWith": { "$mergeObjects": ["$$ROOT", fields(n, |at| (name(at), "$v".into()))] } }],
        ),
    ]
}

/// Returns projections.
fn projections(n: usize) -> Vec<(&'static str, Document)> {
    let name = |at: i32| format!("f{at}");
    vec![
        ("included fields", fields(n, |at| (name(at), 1.into()))),
        ("included paths", fields(n, |at| (format!("o.f{at}"), 1.into()))),
        ("included paths in arrays", fields(n, |at| (format!("e.f{at}"), 1.into()))),
        ("excluded fields", fields(n, |at| (name(at), 0.into()))),
        ("excluded paths", fields(n, |at| (format!("o.f{at}"), 0.into()))),
        ("computed fields", fields(n, |at| (name(at), format!("$o.f{at}").into()))),
        ("computed paths", fields(n, |at| (format!("o.f{at}"), bson!({ "$add": [format!("$f{at}"), 1] })))),
        ("a part of an array", doc! { "a": { "$slice": [1, n as i32] } }),
        ("an element of an array", doc! { "d": { "$elemMatch": { "x": { "$in": numbers(n) } } } }),
        ("parts of many arrays", fields(n, |at| (name(at), bson!({ "$slice": 1 })))),
        ("elements of many arrays", fields(n, |at| (name(at), bson!({ "$elemMatch": { "x": at } })))),
    ]
}

/// Returns pipelines over n rows.
fn of_rows(n: usize) -> Vec<(&'static str, Vec<Document>)> {
    let size = n as i32;
    let name = |at: i32| format!("f{at}");
    let mut names: Vec<String> = (0..size).map(name).collect();
    names.sort();
    let mut sums = doc! { "_id": "$t" };
    sums.extend(fields(n, |at| (name(at), bson!({ "$sum": "$v" }))));
    vec![
        ("$sort", vec![doc! { "$sort": { "t": 1, "u": -1 } }]),
        ("$sort and $limit", vec![doc! { "$sort": { "t": 1, "u": -1 } }, doc! { "$limit": size / 2 }]),
        ("$sort by an index", vec![doc! { "$sort": { "v": 1, "u": 1 } }]),
        ("$group", vec![doc! { "$group": { "_id": "$u" } }]),
        ("$group by documents", vec![doc! { "$group": { "_id": { "a": "$u", "b": "$t" } } }]),
        ("$group in order", vec![doc! { "$sort": { "v": 1 } }, doc! { "$group": { "_id": "$v", "n": { "$sum": 1 } } }]),
        ("$sortByCount", vec![doc! { "$sortByCount": "$u" }]),
        ("$bucket", vec![doc! { "$bucket": { "groupBy": "$u", "boundaries": (0..=size).collect::<Vec<_>>() } }]),
        ("$bucket of texts", vec![doc! { "$bucket": { "groupBy": "$f", "boundaries": names, "default": "z" } }]),
        ("$bucketAuto", vec![doc! { "$bucketAuto": { "groupBy": "$u", "buckets": size / 2 } }]),
        (
            "$bucketAuto rounded",
            vec![doc! { "$bucketAuto": { "groupBy": "$u", "buckets": size / 2, "granularity": "R5" } }],
        ),
        ("$unwind", vec![doc! { "$unwind": "$a" }, doc! { "$group": { "_id": "$a", "n": { "$sum": 1 } } }]),
        ("$densify", vec![doc! { "$densify": { "field": "u", "range": { "step": 0.5, "bounds": "full" } } }]),
        (
            "$densify of partitions",
            vec![
                doc! { "$densify": { "field": "u", "partitionByFields": ["t"], "range": { "step": 1, "bounds": "partition" } } },
            ],
        ),
        ("$fill", vec![doc! { "$fill": { "sortBy": { "u": 1 }, "output": { "none": { "method": "locf" } } } }]),
        (
            "$fill of partitions",
            vec![
                doc! { "$fill": { "partitionByFields": ["u"], "sortBy": { "t": 1 }, "output": { "t": { "method": "linear" } } } },
            ],
        ),
        (
            "$setWindowFields of partitions",
            vec![
                doc! { "$setWindowFields": { "partitionBy": "$u", "sortBy": { "t": 1 }, "output": { "x": { "$sum": "$t" } } } },
            ],
        ),
        (
            "$lookup by an index",
            vec![doc! { "$lookup": { "from": "rows", "localField": "next", "foreignField": "v", "as": "l" } }],
        ),
        (
            "$lookup without an index",
            vec![doc! { "$lookup": { "from": "rows", "localField": "next", "foreignField": "u", "as": "l" } }],
        ),
        (
            "$lookup of arrays",
            vec![doc! { "$lookup": { "from": "rows", "localField": "a", "foreignField": "a", "as": "l" } }],
        ),
        (
            "$lookup with a pipeline",
            vec![doc! { "$lookup": {
                "from": "rows", "localField": "next", "foreignField": "u", "as": "l", "pipeline": [{ "$project": { "t": 1 } }],
            } }],
        ),
        (
            "$lookup with a condition",
            vec![doc! { "$lookup": {
                "from": "rows", "let": { "next": "$next" }, "as": "l", "pipeline": [{ "$match": { "$expr": { "$eq": ["$v", "$$next"] } } }],
            } }],
        ),
        (
            "$graphLookup of a chain",
            vec![
                doc! { "$match": { "_id": 0 } },
                doc! { "$graphLookup": {
                    "from": "rows", "startWith": "$next", "connectFromField": "next", "connectToField": "v", "as": "l",
                } },
            ],
        ),
        (
            "$graphLookup of arrays",
            vec![
                doc! { "$match": { "_id": 0 } },
                doc! { "$graphLookup": {
                    "from": "rows", "startWith": "$a", "connectFromField": "a", "connectToField": "v", "as": "l",
                } },
            ],
        ),
        ("$unionWith", vec![doc! { "$unionWith": "rows" }, doc! { "$sort": { "u": 1 } }]),
        ("$facet", vec![doc! { "$facet": { "x": [{ "$sort": { "u": 1 } }], "y": [{ "$sortByCount": "$u" }] } }]),
        ("$merge", vec![doc! { "$merge": { "into": "merged" } }]),
        (
            "$merge of fields",
            vec![doc! { "$project": { "u": 1 } }, doc! { "$merge": { "into": "rows", "whenMatched": "merge" } }],
        ),
        (
            "$merge by a pipeline",
            vec![doc! { "$merge": { "into": "merged", "whenMatched": [{ "$set": { "m": "$$new.u" } }] } }],
        ),
        ("$out", vec![doc! { "$out": "written" }]),
        ("$sample", vec![doc! { "$sample": { "size": size / 2 } }]),
        ("$skip", vec![doc! { "$skip": size / 2 }]),
        ("$count", vec![doc! { "$count": "n" }]),
        ("$group with many fields on few rows", vec![doc! { "$limit": 3 }, doc! { "$group": sums }]),
        (
            "$group by many fields on few rows",
            vec![doc! { "$limit": 3 }, doc! { "$group": { "_id": fields(n, |at| (name(at), "$v".into())) } }],
        ),
        (
            "$setWindowFields with many fields on few rows",
            vec![
                doc! { "$limit": 3 },
                doc! { "$setWindowFields": {
                    "sortBy": { "v": 1 }, "output": fields(n, |at| (name(at), bson!({ "$sum": "$v" }))),
                } },
            ],
        ),
        (
            "$fill of many fields on few rows",
            vec![
                doc! { "$limit": 3 },
                doc! { "$fill": { "sortBy": { "v": 1 }, "output": fields(n, |at| (name(at), bson!({ "method": "locf" }))) } },
            ],
        ),
    ]
}

/// Returns pipelines over few large documents.
fn of_large(n: usize) -> Vec<(&'static str, Vec<Document>)> {
    let size = n as i32;
    let name = |at: i32| format!("f{at}");
    let unwound = |stage: Document| vec![doc! { "$project": { "a": 1 } }, doc! { "$unwind": "$a" }, stage];
    vec![
        ("$addFields", vec![doc! { "$addFields": fields(n, |at| (name(at), "$v".into())) }]),
        ("$addFields of paths", vec![doc! { "$addFields": fields(n, |at| (format!("o.f{at}"), "$v".into())) }]),
        ("$addFields to elements", vec![doc! { "$addFields": { "d.w": "$v" } }]),
        ("$project", vec![doc! { "$project": fields(n, |at| (name(at), 1.into())) }]),
        ("$project of paths", vec![doc! { "$project": fields(n, |at| (format!("o.f{at}"), 1.into())) }]),
        ("$project of excluded paths", vec![doc! { "$project": fields(n, |at| (format!("o.f{at}"), 0.into())) }]),
        (
            "$project of computed fields",
            vec![doc! { "$project": fields(n, |at| (name(at), format!("$o.f{at}").into())) }],
        ),
        ("$unset", vec![doc! { "$unset": list(n, |at| format!("o.f{at}").into()) }]),
        (
            "many $addFields",
            list(n.min(900), |at| bson!({ "$addFields": { name(at): "$v" } }))
                .iter()
                .map(|stage| stage.as_document().unwrap().clone())
                .collect(),
        ),
        ("$redact", vec![doc! { "$redact": { "$cond": [{ "$eq": ["$x", 3] }, "$$PRUNE", "$$DESCEND"] } }]),
        ("$replaceRoot", vec![doc! { "$replaceRoot": { "newRoot": { "$mergeObjects": ["$o", { "x": "$a" }] } } }]),
        (
            "$unwind",
            vec![
                doc! { "$unwind": { "path": "$a", "includeArrayIndex": "i" } },
                doc! { "$project": { "a": 1, "i": 1 } },
            ],
        ),
        (
            "$unwind of documents",
            vec![doc! { "$unwind": "$d" }, doc! { "$group": { "_id": "$d.x", "n": { "$sum": "$d.y" } } }],
        ),
        ("$group of unwound", unwound(doc! { "$group": { "_id": "$a" } })),
        (
            "$lookup of an array",
            vec![
                doc! { "$project": { "a": 1 } },
                doc! { "$lookup": { "from": "rows", "localField": "a", "foreignField": "v", "as": "l" } },
            ],
        ),
        (
            "$lookup of an array, no index",
            vec![
                doc! { "$project": { "a": 1 } },
                doc! { "$lookup": { "from": "rows", "localField": "a", "foreignField": "u", "as": "l" } },
            ],
        ),
        (
            "$graphLookup of an array",
            vec![
                doc! { "$project": { "a": 1 } },
                doc! { "$graphLookup": { "from": "rows", "startWith": "$a", "connectFromField": "none", "connectToField": "v", "as": "l" } },
            ],
        ),
        ("$match of $in", unwound(doc! { "$match": { "a": { "$in": numbers(n) } } })),
        (
            "$facet of many",
            vec![
                doc! { "$project": { "v": 1 } },
                doc! { "$facet": fields(n, |at| (name(at), bson!([{ "$limit": 1 }]))) },
            ],
        ),
        ("$merge of large documents", vec![doc! { "$merge": { "into": "merged large", "whenMatched": "merge" } }]),
        ("$sort of documents by arrays", vec![doc! { "$sort": { "a": 1 } }, doc! { "$project": { "v": 1 } }]),
        ("$sort of documents by documents", vec![doc! { "$sort": { "d.x": 1 } }, doc! { "$project": { "v": 1 } }]),
        (
            "$bucket of many",
            vec![
                doc! { "$project": { "v": 1 } },
                doc! { "$bucket": { "groupBy": "$v", "boundaries": (0..=size.max(5)).collect::<Vec<_>>() } },
            ],
        ),
        (
            "many fields of $match",
            vec![doc! { "$project": { "v": 1 } }, doc! { "$match": fields(n, |at| (name(at), at.into())) }],
        ),
    ]
}

type Run = fn(&super::Collections, usize) -> Result<()>;

fn documents(n: usize, each: impl Fn(i32) -> Document) -> Vec<RawDocumentBuf> {
    shuffled(n).map(|at| common::raw(&each(at))).collect()
}

fn written(c: &super::Collections) -> Documents {
    let written = c.db.collection::<RawDocumentBuf>("written by a call");
    written.drop().unwrap();
    written.create_index(Index::on(doc! { "v": 1 }).unique()).run().unwrap();
    written.create_index(Index::on(doc! { "$**": 1 }).wildcard_projection(doc! { "t": 1, "w": 1 })).run().unwrap();
    written
}

fn build(c: &super::Collections, index: Index) -> Result<()> {
    c.rows.create_index(index.named("built")).run()?;
    c.rows.drop_index("built").map(drop)
}

/// Other calls.
fn others() -> Vec<(&'static str, Run)> {
    vec![
        ("insert_many", |c, n| written(c).insert_many(&documents(n, |at| doc! { "_id": at, "v": at })).run().map(drop)),
        ("insert_many without ids", |c, n| {
            written(c).insert_many(&documents(n, |at| doc! { "v": at })).run().map(drop)
        }),
        ("upsert_many", |c, n| {
            written(c).upsert_many(&documents(n, |at| doc! { "_id": at / 2, "v": at / 2 })).map(drop)
        }),
        ("merge_many", |c, n| written(c).merge_many(documents(n, |at| doc! { "_id": at, "v": at })).map(drop)),
        ("bulk_write", |c, n| {
            let c = written(c);
            c.insert_many(&documents(n, |at| doc! { "_id": at, "v": at })).run()?;
            let updates =
                shuffled(n).map(|at| WriteOperation::update_one(doc! { "_id": at }, doc! { "$set": { "w": at } }));
            c.bulk_write(updates).run().map(drop)
        }),
        ("bulk_write of upserts", |c, n| {
            let upserts = shuffled(n)
                .map(|at| WriteOperation::update_one(doc! { "v": at }, doc! { "$set": { "w": at } }).upsert());
            written(c).bulk_write(upserts).run().map(drop)
        }),
        ("bulk_write of inserts", |c, n| {
            written(c).bulk_write(shuffled(n).map(|at| WriteOperation::insert_one(doc! { "v": at }))).run().map(drop)
        }),
        ("bulk_write of deletes", |c, n| {
            let c = written(c);
            c.insert_many(&documents(n, |at| doc! { "_id": at, "v": at })).run()?;
            c.bulk_write(shuffled(n).map(|at| WriteOperation::delete_one(doc! { "v": at }))).run().map(drop)
        }),
        ("insert of an array into indexes", |c, n| {
            let c = written(c);
            c.create_index(Index::on(doc! { "a": 1 })).run()?;
            c.insert_one(&common::raw(&doc! { "a": numbers(n), "t": numbers(n) })).map(drop)
        }),
        ("insert of fields into a wildcard index", |c, n| {
            written(c).insert_one(&common::raw(&doc! { "t": fields(n, |at| (format!("f{at}"), at.into())) })).map(drop)
        }),
        ("replace", |c, n| {
            let c = written(c);
            c.insert_one(&common::raw(&doc! { "_id": 1, "t": numbers(n) }))?;
            c.replace_one(doc! { "_id": 1 }, &common::raw(&doc! { "t": list(n, |at| (at + 1).into()) })).run().map(drop)
        }),
        ("upsert by many fields", |c, n| {
            let filter = fields(n, |at| (format!("f{at}"), at.into()));
            written(c).update_one(filter, doc! { "$set": { "w": 1 } }).upsert().run().map(drop)
        }),
        ("upsert by many paths", |c, n| {
            let filter = fields(n, |at| (format!("f{at}.x"), at.into()));
            written(c).update_one(filter, doc! { "$set": { "w": 1 } }).upsert().run().map(drop)
        }),
        ("upsert by paths of one field", |c, n| {
            let filter = fields(n, |at| (format!("o.f{at}"), at.into()));
            written(c)
                .update_one(filter, doc! { "$setOnInsert": fields(n, |at| (format!("p.f{at}"), at.into())) })
                .upsert()
                .run()
                .map(drop)
        }),
        ("upsert by $and", |c, n| {
            let filter = doc! { "$and": list(n, |at| bson!({ format!("f{at}"): { "$eq": at } })) };
            written(c).update_one(filter, doc! { "$set": { "w": 1 } }).upsert().run().map(drop)
        }),
        ("upsert of a replacement", |c, n| {
            let replacement = common::raw(&fields(n, |at| (format!("f{at}"), at.into())));
            written(c).replace_one(doc! { "_id": 7 }, &replacement).upsert().run().map(drop)
        }),
        ("distinct", |c, _| c.rows.distinct("u", doc! {}).run().map(drop)),
        ("distinct by an index", |c, _| c.rows.distinct("v", doc! {}).run().map(drop)),
        ("distinct of arrays", |c, _| c.large.distinct("a", doc! {}).run().map(drop)),
        ("distinct of documents", |c, _| c.large.distinct("d", doc! {}).run().map(drop)),
        ("find of rows by $in", |c, n| {
            c.rows.find(doc! { "v": { "$in": numbers(n) } }).run()?.try_for_each(|row| row.map(drop))
        }),
        ("find of rows by $in without an index", |c, n| {
            c.rows.find(doc! { "u": { "$in": numbers(n) } }).run()?.try_for_each(|row| row.map(drop))
        }),
        ("find of rows by $nin", |c, n| {
            c.rows.find(doc! { "v": { "$nin": numbers(n) } }).run()?.try_for_each(|row| row.map(drop))
        }),
        ("find of rows by $or", |c, n| {
            c.rows.find(doc! { "$or": list(n, |at| bson!({ "v": at })) }).run()?.try_for_each(|row| row.map(drop))
        }),
        ("find of rows by $or of documents", |c, n| {
            c.rows
                .find(doc! { "$or": list(n, |at| bson!({ "v": at, "u": at })) })
                .run()?
                .try_for_each(|row| row.map(drop))
        }),
        ("find of rows by $or of ranges", |c, n| {
            let filter = doc! { "$or": list(n, |at| bson!({ "v": { "$gt": at, "$lt": at + 2 } })) };
            c.rows.find(filter).run()?.try_for_each(|row| row.map(drop))
        }),
        ("find of rows sorted", |c, _| {
            c.rows.find(doc! {}).sort(doc! { "t": 1, "u": -1 }).run()?.try_for_each(|row| row.map(drop))
        }),
        ("delete of rows by $in", |c, n| {
            let c = written(c);
            c.insert_many(&documents(n, |at| doc! { "_id": at, "v": at })).run()?;
            c.delete_many(doc! { "v": { "$in": numbers(n) } }).run().map(drop)
        }),
        ("index of rows", |c, _| build(c, Index::on(doc! { "t": 1, "u": -1 }))),
        ("index of arrays", |c, _| build(c, Index::on(doc! { "a": 1, "u": -1 }))),
        ("unique index", |c, _| build(c, Index::on(doc! { "u": 1 }).unique())),
        ("wildcard index", |c, _| build(c, Index::on(doc! { "$**": 1 }))),
        ("wildcard index of many fields", |c, n| {
            build(c, Index::on(doc! { "$**": 1 }).wildcard_projection(fields(n, |at| (format!("g{at}.x"), 1.into()))))
        }),
        ("wildcard index without many fields", |c, n| {
            build(c, Index::on(doc! { "$**": 1 }).wildcard_projection(fields(n, |at| (format!("g{at}.x"), 0.into()))))
        }),
        ("partial index by $in", |c, n| {
            let condition = doc! { "u": { "$in": numbers(n) } };
            c.rows.create_index(Index::on(doc! { "t": 1 }).only(&condition).named("partial")).run()?;
            let found =
                c.rows.find(doc! { "t": 1, "u": { "$in": numbers(n) } }).run()?.try_for_each(|row| row.map(drop));
            c.rows.drop_index("partial")?;
            found
        }),
        ("partial index by $or", |c, n| {
            partial(c, &doc! { "$or": list(n, |at| bson!({ "u": at, "t": { "$gte": 0 } })) })
        }),
        ("partial index by many fields", |c, n| partial(c, &fields(n, |at| (format!("g{at}"), at.into())))),
        ("index of large arrays", |c, _| {
            for keys in [doc! { "a": 1 }, doc! { "d.x": 1, "d.y": 1 }, doc! { "v": 1, "b": 1 }, doc! { "$**": 1 }] {
                c.large.create_index(Index::on(keys).named("built")).run()?;
                c.large.drop_index("built")?;
            }
            Ok(())
        }),
        ("variables", |c, n| {
            let variables = fields(n, |at| (format!("f{at}"), at.into()));
            let sum = doc! { "$expr": { "$lt": ["$v", { "$add": list(n, |at| format!("$$f{at}").into()) }] } };
            c.small[1].1.find(sum).let_variables(variables).run()?.try_for_each(|row| row.map(drop))
        }),
        ("sort by many fields", |c, n| {
            c.rows
                .find(doc! {})
                .sort(fields(n.min(32), |at| (format!("f{at}"), 1.into())))
                .run()?
                .try_for_each(|row| row.map(drop))
        }),
        ("$documents", |c, n| {
            c.db.aggregate([doc! { "$documents": list(n, |at| bson!({ "x": at })) }])
                .run()?
                .try_for_each(|row| row.map(drop))
        }),
    ]
}

pub(super) fn calls(n: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    for (name, update, filters) in updates(n) {
        let (update, filters) = (common::raw(&update), filters.iter().map(common::raw).collect::<Vec<_>>());
        calls.push(Call::new(format!("update {name}"), move |c| {
            // Not the document with many fields at the top, whose arrays are missing.
            let changed = c.large.update_many(doc! { "_id": { "$lt": 1 } }, &update).array_filters(&filters).run()?;
            drop(changed);
            // An update of missing parts.
            match c.large.update_many(doc! { "_id": { "$gte": 2 } }, &update).array_filters(&filters).run() {
                Err(error) if error.code() != 2 => Err(error),
                _ => Ok(()),
            }
        }));
    }
    for (name, stages) in pipelines(n) {
        let stages: Vec<_> = stages.iter().map(common::raw).collect();
        calls.push(Call::new(format!("update by a pipeline, {name}"), move |c| {
            c.large.update_many(doc! {}, stages.clone()).run().map(drop)
        }));
    }
    for (name, projection) in projections(n) {
        let projection = common::raw(&projection);
        calls.push(Call::new(format!("projection of {name}"), move |c| {
            c.large.find(doc! {}).projection(&projection).run()?.try_for_each(|row| row.map(drop))
        }));
    }
    let all = |c: &Documents, stages: &[RawDocumentBuf]| c.aggregate(stages).run()?.try_for_each(|row| row.map(drop));
    for (name, stages) in of_rows(n) {
        let stages: Vec<_> = stages.iter().map(common::raw).collect();
        calls.push(Call::new(format!("rows: {name}"), move |c| all(&c.rows, &stages)));
    }
    for (name, stages) in of_large(n) {
        let stages: Vec<_> = stages.iter().map(common::raw).collect();
        calls.push(Call::new(format!("large: {name}"), move |c| {
            let only: Vec<_> =
                [common::raw(&doc! { "$match": { "_id": { "$lt": 2 } } })].into_iter().chain(stages.clone()).collect();
            all(&c.large, &only)
        }));
    }
    for (name, run) in others() {
        calls.push(Call::new(name, move |c| run(c, n)));
    }
    calls
}

/// Builds a partial index by a condition and finds documents for which that holds.
fn partial(c: &Collections, condition: &Document) -> Result<()> {
    let c = &c.small[0].1;
    c.create_index(Index::on(doc! { "t": 1 }).only(condition).named("partial")).run()?;
    let mut filter = condition.clone();
    filter.insert("t", 1);
    let found = c.find(filter).run()?.try_for_each(|row| row.map(drop));
    c.drop_index("partial")?;
    found
}
