//! Random pipelines, whose documents do not depend on the plan.

use bson::{Document, doc};
use proptest::{collection::vec, prelude::*};

use super::random::Pool;

/// The collection that lookups read.
pub const OTHER: &str = "other";

/// Pipelines that begin with conditions on documents with distinct `_id`s, and perhaps a window of them.
pub fn pipeline(pool: &Pool) -> BoxedStrategy<Vec<Document>> {
    // Which documents are within a window depends on the order, so a total order precedes it, once.
    let window = (0..4_i64, 1..9_i64).prop_map(|(skip, limit)| {
        vec![doc! { "$sort": { "_id": 1 } }, doc! { "$skip": skip }, doc! { "$limit": limit }]
    });
    let head = vec(pool.filter().prop_map(|filter| doc! { "$match": filter }), 0..2);
    (head, proptest::option::of(window), stages(pool))
        .prop_map(|(head, window, tail)| {
            head.into_iter().chain(window.into_iter().flatten()).chain(tail).collect::<Vec<_>>()
        })
        .boxed()
}

/// Further stages of a pipeline.
pub fn stages(pool: &Pool) -> BoxedStrategy<Vec<Document>> {
    let matching = pool.filter().prop_map(|filter| doc! { "$match": filter });
    let sort = pool
        .directed(2)
        .prop_filter_map("a sort has fields", |sort| (!sort.is_empty()).then(|| doc! { "$sort": sort }));
    let field = || pool.path().prop_map(|path| path.split('.').next().unwrap_or_default().to_owned());
    let included = vec(field(), 1..3).prop_map(|fields| {
        doc! { "$project": fields.into_iter().map(|field| (field, bson::Bson::Int32(1))).collect::<Document>() }
    });
    let unset = field().prop_map(|field| doc! { "$unset": field });
    let unwind = (field(), any::<bool>(), any::<bool>()).prop_map(|(field, preserves, numbers)| {
        let mut unwind = doc! { "path": format!("${field}"), "preserveNullAndEmptyArrays": preserves };
        if numbers {
            unwind.insert("includeArrayIndex", "at");
        }
        doc! { "$unwind": unwind }
    });
    let count = Just(doc! { "$count": "n" });
    // Values that do not depend on the order of the documents.
    let accumulated = |field: String| {
        doc! {
            "n": { "$sum": 1 }, "values": { "$sum": { "$cond": [{ "$eq": [format!("${field}"), null] }, 0, 1] } },
            "most": { "$max": format!("${field}") }, "least": { "$min": format!("${field}") },
        }
    };
    let group = (proptest::option::of(field()), field()).prop_map(move |(by, of)| {
        let mut group = doc! { "_id": by.map_or(bson::Bson::Null, |by| format!("${by}").into()) };
        group.extend(accumulated(of));
        doc! { "$group": group }
    });
    // Half of the groups are followed by a condition on their ids.
    let of_groups = (group.clone(), proptest::option::of(pool.filter())).prop_map(|(group, filter)| {
        let by_id = |filter: Document| {
            let conditions = filter.into_iter().filter(|(name, _)| !name.starts_with('$'));
            doc! { "$match": { "$and": conditions.map(|(_, value)| doc! { "_id": value }).collect::<Vec<_>>() } }
        };
        let filter = filter.map(by_id).filter(|stage| {
            stage.get_document("$match").is_ok_and(|all| all.get_array("$and").is_ok_and(|all| !all.is_empty()))
        });
        std::iter::once(group).chain(filter).collect::<Vec<_>>()
    });
    // Groups by several fields, with conditions on each of them, of which only some accumulators are read.
    let by_several = (field(), field(), pool.condition(), pool.condition(), any::<bool>()).prop_map(
        move |(by, of, first, second, shows)| {
            let mut group =
                doc! { "_id": { "x": format!("${by}"), "y": { "$type": format!("${of}") }, "z": format!("${of}") } };
            group.extend(accumulated(of));
            let conditions = doc! { "$match": { "_id.x": first, "_id.z": second } };
            let shown = shows.then(|| doc! { "$project": { "most": 1 } });
            [doc! { "$group": group }, conditions].into_iter().chain(shown).collect::<Vec<_>>()
        },
    );
    let copy = (field(), field()).prop_map(|(name, of)| doc! { "$addFields": { name: format!("${of}") } });
    let lookup = (pool.path(), pool.path(), field(), any::<bool>(), pool.filter()).prop_map(
        |(local, foreign, target, unwinds, filter)| {
            let lookup = doc! { "from": OTHER, "localField": local, "foreignField": foreign, "as": &target };
            let filtered = doc! {
                "from": OTHER, "as": &target, "let": { "v": "$_id" },
                "pipeline": [{ "$match": filter }, { "$sort": { "_id": 1 } }, { "$limit": 3 }, { "$addFields": { "v": "$$v" } }],
            };
            let unwind = unwinds.then(|| doc! { "$unwind": format!("${target}") });
            let lookup = if target.len() % 2 == 0 { filtered } else { lookup };
            std::iter::once(doc! { "$lookup": lookup }).chain(unwind).collect::<Vec<_>>()
        },
    );
    let window = (field(), field(), -2..2_i64, any::<bool>()).prop_map(|(by, of, from, computed)| {
        let partition = if computed { bson::bson!({ "$type": format!("${by}") }) } else { format!("${by}").into() };
        doc! { "$setWindowFields": { "partitionBy": partition, "sortBy": { "_id": 1 }, "output": {
            "n": { "$sum": 1, "window": { "documents": [from, "unbounded"] } },
            "most": { "$max": format!("${of}"), "window": { "documents": [from, 1] } },
            "all": { "$max": format!("${of}"), "window": { "documents": ["unbounded", "unbounded"] } },
            "near": { "$push": "$_id", "window": { "documents": [from, 1] } },
            "last": { "$shift": { "output": format!("${of}"), "by": -1 } },
            "next": { "$shift": { "output": format!("${of}"), "by": from + 3 } },
            "carried": { "$locf": format!("${of}") },
            "place": { "$documentNumber": {} },
        } } }
    });
    let end = (field(), any::<bool>()).prop_map(|(of, most)| {
        doc! { "$group": { "_id": null, "end": { if most { "$max" } else { "$min" }: format!("${of}") } } }
    });
    let add = (field(), field()).prop_map(|(name, of)| doc! { "$addFields": { name: { "$type": format!("${of}") } } });
    let facet = (field(), field()).prop_map(|(a, b)| {
        doc! { "$facet": {
            "x": [{ "$group": { "_id": format!("${a}"), "n": { "$sum": 1 } } }, { "$match": { "n": { "$gt": 1 } } }],
            "y": [{ "$match": { &b: { "$exists": true } } }, { "$count": "n" }],
        } }
    });
    let redact =
        (field(), 0..3_i32, prop::sample::select(vec!["$$KEEP", "$$PRUNE"])).prop_map(|(field, least, decided)| {
            doc! { "$redact": { "$cond": [{ "$lt": [field, least] }, "$$DESCEND", decided] } }
        });
    let buckets = (field(), 1..5_i32).prop_map(|(field, buckets)| {
        doc! { "$bucketAuto": { "groupBy": field, "buckets": buckets, "output": { "n": { "$sum": 1 }, "a": { "$max": "$a" } } } }
    });
    let union = (pool.filter(), proptest::option::of(pool.filter())).prop_map(|(filter, inner)| match inner {
        None => doc! { "$unionWith": { "coll": OTHER, "pipeline": [{ "$match": filter }, { "$sort": { "_id": 1 } }] } },
        Some(inner) => doc! { "$unionWith": {
            "pipeline": [{ "$documents": [{ "_id": 1, "a": 2 }, { "_id": "x", "b": [1, 2] }] }, { "$match": inner }],
        } },
    });
    let graph = (pool.path(), pool.path(), field(), 0..3_i32).prop_map(|(from, to, start, depth)| {
        doc! { "$graphLookup": {
            "from": OTHER, "startWith": start, "connectFromField": from, "connectToField": to, "as": "reached",
            "maxDepth": depth, "depthField": "depth",
        } }
    });
    let stage = prop_oneof![
        4 => matching,
        2 => sort,
        2 => included,
        1 => unset,
        3 => unwind,
        1 => count,
        2 => end,
        1 => add,
        2 => copy,
        1 => facet,
        2 => window,
        1 => redact,
        1 => buckets,
        1 => union,
        1 => graph,
    ];
    vec(prop_oneof![12 => stage.prop_map(|stage| vec![stage]), 3 => of_groups, 2 => by_several, 3 => lookup], 0..5)
        .prop_map(|stages| stages.into_iter().flatten().collect())
        .boxed()
}
