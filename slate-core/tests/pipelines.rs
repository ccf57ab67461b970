//! A pipeline returns the same documents with every plan: rewritten or executed as written, without indexes and with each
//! of them, in memory and spilled.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use bson::{Bson, Document, RawDocumentBuf, doc};
use common::{
    STORES, TestDatabase, brief, multiset, on_every_store,
    random::{self, RandomIndex},
    raw, refusal, runner,
};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use slate_core::{Aggregate, Collection, ErrorKind, ExplainVerbosity, Index};

type Documents = Collection<RawDocumentBuf>;

/// Documents, indexes and pipelines.
#[derive(Clone, Debug)]
struct Case {
    documents: Vec<Document>,
    indexes: Vec<RandomIndex>,
    /// The documents and indexes of the collection that lookups read.
    others: (Vec<Document>, Vec<RandomIndex>),
    pipelines: Vec<Vec<Document>>,
}

/// The collection that lookups read.
const OTHER: &str = "other";

fn case() -> impl Strategy<Value = Case> {
    random::pool().prop_flat_map(|pool| {
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
            let filter = filter.map(by_id).filter(|stage| stage.get_document("$match").is_ok_and(|all| all.get_array("$and").is_ok_and(|all| !all.is_empty())));
            std::iter::once(group).chain(filter).collect::<Vec<_>>()
        });
        // Groups by several fields, with conditions on each of them, of which only some accumulators are read.
        let by_several = (field(), field(), pool.condition(), pool.condition(), any::<bool>()).prop_map(
            move |(by, of, first, second, shows)| {
                let mut group = doc! { "_id": { "x": format!("${by}"), "y": { "$type": format!("${of}") }, "z": format!("${of}") } };
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
        let redact = (field(), 0..3_i32, prop::sample::select(vec!["$$KEEP", "$$PRUNE"])).prop_map(|(field, least, decided)| {
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
        // Which documents are within a window depends on the order, so a total order precedes it, once.
        let window = (0..4_i64, 1..9_i64).prop_map(|(skip, limit)| {
            vec![doc! { "$sort": { "_id": 1 } }, doc! { "$skip": skip }, doc! { "$limit": limit }]
        });
        let head = vec(pool.filter().prop_map(|filter| doc! { "$match": filter }), 0..2);
        let tail = vec(prop_oneof![12 => stage.prop_map(|stage| vec![stage]), 3 => of_groups, 2 => by_several, 3 => lookup], 0..5);
        let pipeline = (head, proptest::option::of(window), tail).prop_map(|(head, window, tail)| {
            head.into_iter().chain(window.into_iter().flatten()).chain(tail.into_iter().flatten()).collect::<Vec<_>>()
        });
        let others = (pool.documents(12), pool.indexes(2));
        (pool.documents(20), pool.indexes(3), others, vec(pipeline, 1..6)).prop_map(
            |(documents, indexes, others, pipelines)| Case { documents, indexes, others, pipelines },
        )
    })
}

fn rows(aggregate: Aggregate<Document>) -> Result<Vec<RawDocumentBuf>, common::Refusal> {
    aggregate.with_type().run().and_then(Iterator::collect).map_err(|error| refusal(&error))
}

fn check(database: &TestDatabase, number: u32, case: &Case) -> Result<(), TestCaseError> {
    let collection: Documents = database.collection(&format!("c{number}"));
    for document in &case.documents {
        // A document that cannot be stored is left out.
        let _ = collection.insert_one(&raw(document));
    }
    let other: Documents = database.collection(OTHER);
    other.drop().unwrap();
    for document in &case.others.0 {
        let _ = other.insert_one(&raw(document));
    }
    let mut expected = Vec::new();
    for pipeline in &case.pipelines {
        // A pipeline that fails as written may succeed if a filter is evaluated earlier.
        expected.push(rows(collection.aggregate(pipeline).unoptimized()).ok());
    }
    let compare = |pipeline: &[Document], right: &[RawDocumentBuf], aggregate: Aggregate<Document>, what: &str| {
        let explain = || aggregate.clone().explain(ExplainVerbosity::QueryPlanner).unwrap();
        let fail =
            |message: String| TestCaseError::fail(brief(&format!("{pipeline:?} {what}: {message}\n{}", explain())));
        match rows(aggregate.clone()) {
            Err(refused) => Err(fail(format!("{refused:?}"))),
            Ok(found) if multiset(&found) != multiset(right) => Err(fail(format!("{found:?}, expected {right:?}"))),
            Ok(_) => Ok(()),
        }
    };
    let each = |what: &str| -> Result<(), TestCaseError> {
        for (pipeline, right) in case.pipelines.iter().zip(&expected) {
            let Some(right) = right else { continue };
            let aggregate = collection.aggregate(pipeline);
            compare(pipeline, right, aggregate.clone(), what)?;
            compare(pipeline, right, aggregate.clone().memory_limit(0), &format!("{what}, spilled"))?;
            compare(pipeline, right, aggregate.clone().unoptimized().memory_limit(0), "as written, spilled")?;
            let candidates = aggregate.clone().explain(ExplainVerbosity::QueryPlanner).unwrap().candidates();
            for plan in 0..candidates {
                compare(pipeline, right, aggregate.clone().force(plan), &format!("{what}, plan {plan}"))?;
            }
        }
        Ok(())
    };
    each("without indexes")?;
    for index in &case.indexes {
        // An index that the documents do not allow is skipped.
        let _ = collection.create_index(index.spec()).run();
    }
    for index in &case.others.1 {
        let _ = other.create_index(index.spec()).run();
    }
    each("with indexes")?;
    collection.drop().unwrap();
    Ok(())
}

#[test]
fn every_plan_of_a_pipeline_returns_the_same_documents() {
    for store in STORES {
        let database = store.open();
        let number = std::cell::Cell::new(0);
        let run = |case| {
            number.set(number.get() + 1);
            check(&database, number.get(), &case)
        };
        runner(64).run(&case(), run).unwrap_or_else(|error| panic!("{store:?}: {error}"));
    }
}

#[test]
fn of_equal_values_an_index_finds_the_same_least_and_greatest_as_a_scan() {
    on_every_store(|database| {
        let collection: Documents = database.collection("c");
        let values = [Bson::Int32(1), Bson::Double(1.0), Bson::Int32(5), Bson::Double(5.0), Bson::Int64(5), Bson::Null];
        for (id, value) in (0..).zip(values) {
            collection.insert_one(&raw(&doc! { "_id": id, "a": value, "b": -id })).unwrap();
        }
        let ends = || {
            ["$min", "$max"].map(|end| {
                let group = doc! { "$group": { "_id": null, "end": { end: "$a" } } };
                collection.aggregate([group]).first().unwrap().unwrap().remove("end").unwrap()
            })
        };
        assert_eq!(ends(), [Bson::Int32(1), Bson::Int32(5)]);
        for keys in [doc! { "a": 1 }, doc! { "a": -1 }, doc! { "a": 1, "b": 1 }, doc! { "a": -1, "b": 1 }] {
            let name = collection.create_index(Index::on(keys.clone())).run().unwrap();
            assert_eq!(ends(), [Bson::Int32(1), Bson::Int32(5)], "{keys}");
            collection.drop_index(&name).unwrap();
        }
    });
}

#[test]
fn a_stage_that_holds_rows_spills_and_keeps_the_order_of_ties() {
    on_every_store(|database| {
        let collection = database.collection("c");
        let documents: Vec<RawDocumentBuf> =
            (0..500_i32).map(|n| raw(&doc! { "_id": n, "a": [n % 7, n % 3], "pad": "x".repeat(100) })).collect();
        collection.insert_many(&documents).run().unwrap();
        let pipeline = [doc! { "$unwind": "$a" }, doc! { "$sort": { "a": 1 } }, doc! { "$limit": 900 }];
        let in_memory = collection.aggregate(&pipeline);
        let spilled = in_memory.clone().memory_limit(4_000);
        let stats = spilled.clone().explain(ExplainVerbosity::ExecutionStats).unwrap().execution_stats().unwrap();
        assert!(stats.spills > 0 && stats.rows == 900, "{stats:?}");
        let rows = rows(in_memory).unwrap();
        assert!(rows == self::rows(spilled).unwrap());
        let keys: Vec<(i32, i32)> =
            rows.iter().map(|row| (row.get_i32("a").unwrap(), row.get_i32("_id").unwrap())).collect();
        assert!(keys.is_sorted());
    });
}

#[test]
fn execution_statistics_name_every_stage() {
    on_every_store(|database| {
        let collection = database.collection("c");
        let documents: Vec<RawDocumentBuf> = (0..10_i32).map(|n| raw(&doc! { "_id": n, "a": [1, 2] })).collect();
        collection.insert_many(&documents).run().unwrap();
        let pipeline =
            [doc! { "$match": { "_id": { "$lt": 4 } } }, doc! { "$unwind": "$a" }, doc! { "$match": { "a": 2 } }];
        let explain = collection.aggregate(pipeline).explain(ExplainVerbosity::ExecutionStats).unwrap();
        let mut node = explain.to_document();
        let mut found = Vec::new();
        loop {
            found.push((node.get_str("stage").unwrap().to_owned(), node.get_i64("nReturned").unwrap()));
            let Ok(input) = node.get_document("input") else { break };
            node = input.clone();
        }
        let expected = [("MATCH", 4), ("$unwind", 8), ("COLLSCAN", 4)];
        assert_eq!(found, expected.map(|(stage, rows)| (stage.to_owned(), rows)), "{explain}");
    });
}

#[test]
fn a_cancelled_or_late_pipeline_ends() {
    on_every_store(|database| {
        let collection = database.collection("c");
        let elements: Vec<i32> = (0..5_000).collect();
        collection.insert_one(&raw(&doc! { "_id": 1, "a": elements })).unwrap();
        let pipeline = [doc! { "$unwind": "$a" }, doc! { "$match": { "a": -1 } }];
        let token = slate_core::CancelToken::new();
        let mut cursor = collection.aggregate(&pipeline).cancel(token.clone()).cursor().unwrap();
        token.cancel();
        assert_eq!(cursor.advance().unwrap_err().kind(), ErrorKind::Interrupted);
        let late = collection.aggregate(&pipeline).deadline(std::time::Duration::ZERO);
        assert_eq!(late.cursor().and_then(|mut cursor| cursor.advance()).unwrap_err().kind(), ErrorKind::Interrupted);
    });
}

#[test]
fn an_expression_that_evaluates_many_elements_can_be_ended() {
    on_every_store(|database| {
        let collection = database.collection("c");
        collection.insert_one(&raw(&doc! { "_id": 1, "n": 1_000 })).unwrap();
        let elements = bson::bson!({ "$range": [0, "$n"] });
        // Each level evaluates the level below for each of its elements: 10^12 additions.
        let sum = (0..3).fold(bson::bson!({ "$add": ["$$this", 1] }), |body, level| match level % 2 {
            0 => bson::bson!({ "$reduce": { "input": elements.clone(), "initialValue": 0, "in": body } }),
            _ => bson::bson!({ "$size": { "$map": { "input": elements.clone(), "as": "this", "in": body } } }),
        });
        let filtered = bson::bson!({ "$filter": { "input": elements, "cond": { "$lt": [sum, 0] } } });
        let pipeline = [doc! { "$project": { "result": filtered } }];
        let late = collection.aggregate(&pipeline).deadline(std::time::Duration::from_millis(20));
        assert_eq!(late.collect().unwrap_err().kind(), ErrorKind::Interrupted);
        let token = slate_core::CancelToken::new();
        let aggregate = collection.aggregate(&pipeline).cancel(token.clone());
        let result = std::thread::scope(|scope| {
            let running = scope.spawn(|| aggregate.collect());
            token.cancel();
            running.join().unwrap()
        });
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Interrupted);
    });
}

#[test]
fn windows_over_documents_that_exceed_the_memory_are_the_same() {
    on_every_store(|database| {
        let collection = database.collection("c");
        let document = |n: i32| doc! { "_id": n, "a": n % 3, "n": n * 7 % 100, "v": (n % 4 != 0).then_some(n % 11) };
        let documents: Vec<RawDocumentBuf> = (0..2_000).map(|n| raw(&document(n))).collect();
        collection.insert_many(&documents).run().unwrap();
        let over = |function: &str, operand: &str, window: Document| doc! { function: operand, "window": window };
        let output = doc! {
            "near": over("$sum", "$n", doc! { "documents": [-2, 3] }),
            "list": over("$push", "$_id", doc! { "documents": [1, 2] }),
            "before": over("$stdDevPop", "$n", doc! { "documents": [-3, -1] }),
            "after": over("$max", "$n", doc! { "documents": ["current", "unbounded"] }),
            "range": over("$min", "$n", doc! { "range": [-10, 20] }),
            "all": { "$avg": "$n" },
            "set": { "$addToSet": "$v" },
            "line": { "$linearFill": "$v" },
            "carried": { "$locf": "$v" },
            "rank": { "$rank": {} },
            "next": { "$shift": { "output": "$n", "by": 40, "default": -1 } },
            "rate": { "$derivative": { "input": "$n" }, "window": { "documents": [-5, 5] } },
            "pairs": over("$covariancePop", "$n", doc! { "documents": [-1, 1] }),
        };
        let windows = doc! { "partitionBy": "$a", "sortBy": { "_id": 1 }, "output": output };
        let in_memory = collection.aggregate([doc! { "$setWindowFields": windows }]);
        let right = rows(in_memory.clone()).unwrap();
        let sum = |near: &[i32]| near.iter().map(|n| n * 7 % 100).sum::<i32>();
        assert_eq!(right[0].get_i32("near").unwrap(), sum(&[0, 3, 6, 9]), "{:?}", right[0]);
        assert_eq!(right[5].get_i32("near").unwrap(), sum(&[9, 12, 15, 18, 21, 24]), "{:?}", right[5]);
        assert_eq!(right[5].get_array("list").unwrap().get_i32(1).unwrap(), 21);
        assert!(right[5].get_i32("next").unwrap() == 135 * 7 % 100 && right[660].get_i32("next").unwrap() == -1);
        for limit in [0, 50_000] {
            let spilled = in_memory.clone().memory_limit(limit);
            assert!(rows(spilled.clone()).unwrap() == right, "within {limit} bytes");
            let explain = spilled.explain(ExplainVerbosity::ExecutionStats).unwrap();
            assert!(explain.execution_stats().unwrap().spills > 0, "{explain}");
        }
    });
}

#[test]
fn windows_hold_what_they_reach_and_not_their_partition() {
    on_every_store(|database| {
        let collection = database.collection("c");
        // The operands of the partition take 20 MB; 16 MiB is allowed at any limit.
        let documents: Vec<RawDocumentBuf> =
            (0..2_000_i32).map(|n| raw(&doc! { "_id": n, "text": format!("{n:010000}") })).collect();
        collection.insert_many(&documents).run().unwrap();
        let most = |window: Document| {
            let most = doc! { "$max": "$text", "window": window };
            let windows = doc! { "$setWindowFields": { "sortBy": { "_id": 1 }, "output": { "most": most } } };
            let length = doc! { "$group": { "_id": null, "n": { "$sum": { "$strLenBytes": "$most" } } } };
            collection.aggregate([windows, length]).memory_limit(1 << 20).collect()
        };
        for window in [doc! { "documents": [-1, 1] }, doc! { "documents": ["unbounded", "unbounded"] }] {
            assert_eq!(most(window).unwrap()[0].get_i32("n").unwrap(), 20_000_000);
        }
        let refused = most(doc! { "documents": [-1, "unbounded"] }).unwrap_err();
        assert_eq!((refused.kind(), refused.code()), (ErrorKind::TooLarge, 5_414_201));
    });
}

#[test]
fn groups_that_exceed_the_memory_are_the_same_and_keep_the_order_of_their_documents() {
    on_every_store(|database| {
        let collection = database.collection("c");
        let documents: Vec<RawDocumentBuf> =
            (0..3_000_i32).map(|n| raw(&doc! { "_id": n, "few": n % 7, "many": n % 1_000 })).collect();
        collection.insert_many(&documents).run().unwrap();
        for id in ["$few", "$many", "$_id"] {
            let group = doc! { "_id": id, "n": { "$sum": 1 }, "ids": { "$push": "$_id" }, "last": { "$last": "$_id" } };
            let in_memory = collection.aggregate([doc! { "$sort": { "_id": -1 } }, doc! { "$group": group }]);
            let right = rows(in_memory.clone()).unwrap();
            let count: i32 = right.iter().map(|group| group.get_i32("n").unwrap()).sum();
            assert_eq!(count, 3_000);
            for limit in [0, 10_000, 200_000] {
                let spilled = in_memory.clone().memory_limit(limit);
                assert!(rows(spilled.clone()).unwrap() == right, "{id} within {limit} bytes");
                let explain = spilled.explain(ExplainVerbosity::ExecutionStats).unwrap();
                assert!(limit > 10_000 || explain.execution_stats().unwrap().spills > 0, "{explain}");
            }
        }
    });
}

#[test]
fn facets_over_documents_that_exceed_the_memory_are_the_same() {
    on_every_store(|database| {
        let collection = database.collection("c");
        let documents: Vec<RawDocumentBuf> =
            (0..2_000_i32).map(|n| raw(&doc! { "_id": n, "a": n % 7, "pad": "x".repeat(50) })).collect();
        collection.insert_many(&documents).run().unwrap();
        let facet = doc! {
            "groups": [{ "$group": { "_id": "$a", "ids": { "$push": "$_id" } } }],
            "last": [{ "$sort": { "a": -1, "_id": -1 } }, { "$limit": 3 }],
            "n": [{ "$count": "n" }],
        };
        let in_memory = collection.aggregate([doc! { "$sort": { "_id": 1 } }, doc! { "$facet": facet }]);
        let right = rows(in_memory.clone()).unwrap();
        assert_eq!(right[0].get_array("n").unwrap().get_document(0).unwrap().get_i32("n").unwrap(), 2_000);
        for limit in [0, 50_000] {
            assert!(rows(in_memory.clone().memory_limit(limit)).unwrap() == right, "within {limit} bytes");
        }
    });
}

#[test]
fn a_lookup_is_the_same_by_hash_by_index_and_beyond_the_memory() {
    on_every_store(|database| {
        let (orders, items) = (database.collection("orders"), database.collection("items"));
        let order = |n: i32| {
            raw(
                &doc! { "_id": n, "item": if n % 9 == 0 { vec![n % 50, 3] } else { vec![n % 50] }, "pad": "x".repeat(50) },
            )
        };
        orders.insert_many(&(0..700).map(order).collect::<Vec<_>>()).run().unwrap();
        let item = |n: i32| raw(&doc! { "_id": n, "code": n % 60, "pad": "y".repeat(50) });
        items.insert_many(&(0..300).map(item).collect::<Vec<_>>()).run().unwrap();
        let lookup =
            doc! { "$lookup": { "from": "items", "localField": "item", "foreignField": "code", "as": "found" } };
        let pipelines = [
            vec![lookup.clone()],
            vec![lookup.clone(), doc! { "$unwind": "$found" }, doc! { "$project": { "pad": 0 } }],
        ];
        for pipeline in pipelines {
            let aggregate = || orders.aggregate(&pipeline);
            let expected = rows(aggregate().unoptimized()).unwrap();
            let check = |what: &str| {
                for limit in [64 << 20, 40_000, 3_000, 0] {
                    let found = rows(aggregate().memory_limit(limit)).unwrap();
                    assert!(found == expected, "{what}, {limit} bytes: {} rows, {}", found.len(), expected.len());
                }
            };
            check("without an index");
            items.create_index(slate_core::Index::on(doc! { "code": 1 })).run().unwrap();
            check("with an index");
            items.drop_index("code_1").unwrap();
        }
        let explained = orders.aggregate([lookup]).explain(ExplainVerbosity::ExecutionStats).unwrap();
        let documents = |explained: &slate_core::Explain| explained.execution_stats().unwrap().documents_examined;
        assert_eq!(documents(&explained), 700 + 300, "the other collection is read once: {explained}");
    });
}
