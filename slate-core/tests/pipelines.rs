//! A pipeline returns the same documents with every plan: rewritten or executed as written, without indexes and with each
//! of them, in memory and spilled.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "pipelines/lookups.rs"]
mod lookups;
#[path = "pipelines/windows.rs"]
mod windows;

use bson::{Bson, Document, RawDocumentBuf, doc};
use common::{
    STORES, TestDatabase, brief, check_cases, multiset, on_every_store,
    random::{self, RandomIndex},
    random_pipelines::{self, OTHER},
    raw, refusal,
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

fn case() -> impl Strategy<Value = Case> {
    random::pool().prop_flat_map(|pool| {
        let pipeline = random_pipelines::pipeline(&pool);
        let others = (pool.documents(12), pool.indexes(2));
        (pool.documents(20), pool.indexes(3), others, vec(pipeline, 1..6))
            .prop_map(|(documents, indexes, others, pipelines)| Case { documents, indexes, others, pipelines })
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
        check_cases(store, 64, &case(), |number, case| check(&database, number, &case));
    }
}

#[test]
fn a_field_that_a_stage_overwrites_keeps_its_place() {
    on_every_store(|database| {
        let collection: Documents = database.collection("c");
        collection.insert_one(&raw(&doc! { "_id": 1, "a": [1], "b": [2], "c": 3 })).unwrap();
        collection.create_index(Index::on(doc! { "c": 1 })).run().unwrap();
        let shown = doc! { "$project": { "b": 1, "a": 1, "c": 1 } };
        let unwind = doc! { "$unwind": "$b" };
        let lookup = doc! { "$lookup": { "from": OTHER, "localField": "c", "foreignField": "_id", "as": "a" } };
        let graph = doc! { "$graphLookup": {
            "from": OTHER, "startWith": "$c", "connectFromField": "c", "connectToField": "_id", "as": "a",
        } };
        let windows =
            doc! { "$setWindowFields": { "sortBy": { "_id": 1 }, "output": { "a": { "$documentNumber": {} } } } };
        let added = doc! { "$addFields": { "a": "$c", "_id": "x" } };
        for overwriting in [lookup, graph, windows, added] {
            for pipeline in [
                vec![unwind.clone(), overwriting.clone(), shown.clone()],
                vec![overwriting.clone(), unwind.clone(), shown.clone()],
                vec![doc! { "$sort": { "c": 1 } }, overwriting.clone(), doc! { "$facet": { "all": [shown.clone()] } }],
                vec![overwriting, doc! { "$project": { "a": 1, "c": 1 } }],
            ] {
                let aggregate = collection.aggregate(&pipeline);
                let written = rows(aggregate.clone().unoptimized()).unwrap();
                assert_eq!(rows(aggregate).unwrap(), written, "{pipeline:?}");
            }
        }
        let pipeline = [doc! { "$sort": { "c": 1 } }, doc! { "$addFields": { "_id": 0, "b": 1 } }, shown];
        let row = collection.aggregate(pipeline).first().unwrap().unwrap();
        assert_eq!(row.keys().collect::<Vec<_>>(), ["_id", "a", "b", "c"]);
    });
}

#[test]
fn computed_values_nest_at_most_as_deep_as_documents() {
    on_every_store(|database| {
        let collection = database.collection("c");
        collection.insert_one(&raw(&doc! { "_id": 1, "a": [1] })).unwrap();
        let reduce = |levels: i32, body: Bson| {
            let input = bson::bson!({ "$range": [0, levels] });
            doc! { "$project": { "a": { "$reduce": { "input": input, "initialValue": {}, "in": body } } } }
        };
        let code = |pipeline: &[Document]| match rows(collection.aggregate(pipeline)) {
            Ok(_) => 0,
            Err((code, _)) => code,
        };
        let deepening = [
            bson::bson!({ "a": "$$value" }),
            bson::bson!(["$$value"]),
            bson::bson!({ "$setField": { "field": "a", "input": {}, "value": "$$value" } }),
        ];
        for body in deepening {
            assert_eq!(
                code(&[reduce(170, body.clone()), doc! { "$sort": { "a": 1 } }, doc! { "$group": { "_id": "$a" } }]),
                0
            );
            assert_eq!(code(&[reduce(100_000, body), doc! { "$sort": { "a": 1 } }]), 15);
        }
        // Each stage makes the documents deeper.
        let path = vec!["a"; 100].join(".");
        for stage in
            [doc! { "$replaceRoot": { "newRoot": { "a": ["$$ROOT"] } } }, doc! { "$addFields": { path: "$a" } }]
        {
            let pipeline = vec![stage; 100];
            assert_eq!((code(&pipeline[..1]), code(&pipeline)), (0, 15));
        }
    });
}

#[test]
fn a_document_that_doubles_with_each_stage_is_refused() {
    let database = common::Store::Memory.open();
    let collection = database.collection("c");
    collection.insert_one(&raw(&doc! { "_id": 1, "text": "x".repeat(1_000_000) })).unwrap();
    let doubling = [
        doc! { "$addFields": { "a": "$$ROOT", "b": "$$ROOT" } },
        doc! { "$project": { "a": "$$ROOT", "b": "$$ROOT" } },
        doc! { "$bucketAuto": { "groupBy": "$$ROOT", "buckets": 1 } },
    ];
    for stage in doubling {
        let pipeline = vec![stage; 40];
        assert!(rows(collection.aggregate(&pipeline[..4])).is_ok());
        assert_eq!(rows(collection.aggregate(&pipeline)).unwrap_err().0, 10_334);
    }
}

/// Each stage calls the one below it. A thread of Rust's usual stack must suffice for all that are accepted, without optimization.
#[test]
fn a_pipeline_that_is_too_deep_for_the_stack_is_refused() {
    let database = common::Store::Memory.open();
    let documents = database.collection("c");
    documents.insert_many(&(0..3).map(|n| raw(&doc! { "_id": n, "x": n })).collect::<Vec<_>>()).run().unwrap();
    let window = |n: i32| {
        let output = doc! { format!("w{}", n % 3): { "$sum": "$x", "window": { "documents": [-1, 1] } } };
        doc! { "$setWindowFields": { "partitionBy": "$x", "sortBy": { "_id": 1 }, "output": output } }
    };
    let densify = |_| doc! { "$densify": { "field": "x", "range": { "step": 1, "bounds": "full" } } };
    let facet = |_| doc! { "$facet": { "a": [{ "$limit": 3 }], "b": [{ "$count": "n" }] } };
    let nested = |levels: i32| {
        (0..levels).fold(doc! { "$limit": 1 }, |inner, n| {
            let pipeline = vec![doc! { "$limit": 1 }, inner, window(n), window(n + 1)];
            doc! { "$lookup": { "from": "c", "let": { "k": "$_id" }, "pipeline": pipeline, "as": "l" } }
        })
    };
    let run = |stages: Vec<Document>| rows(documents.aggregate(&stages));
    for stages in [
        // Each of the first two also sorts.
        (0..95).map(window).collect(),
        (0..95).map(densify).collect(),
        (0..190).map(facet).collect(),
        vec![nested(18)],
    ] {
        run(stages).unwrap();
    }
    for stages in [
        (0..101).map(window).collect(),
        (0..201).map(facet).collect(),
        vec![doc! { "$facet": { "a": (0..101).map(window).collect::<Vec<_>>() } }],
        std::iter::once(nested(18)).chain((0..95).map(window)).collect(),
    ] {
        assert_eq!(run(stages).unwrap_err().0, 7_749_501);
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
fn of_strings_that_are_equal_under_a_collation_the_one_of_the_least_id_is_shown() {
    on_every_store(|database| {
        let collection: Documents = database.collection("c");
        let collation = doc! { "locale": "en", "strength": 1 };
        for (id, text) in (0..).zip(["b", "B", "a", "Á", "A", "c", "á"]) {
            collection.insert_one(&raw(&doc! { "_id": id, "a": text, "y": -id })).unwrap();
        }
        let matched = |stage: Document| vec![doc! { "$match": { "a": { "$gte": "a" }, "y": { "$lt": 1 } } }, stage];
        let pipelines = [
            vec![doc! { "$group": { "_id": "$a" } }],
            vec![doc! { "$group": { "_id": "$a", "y": { "$first": "$y" } } }],
            matched(doc! { "$group": { "_id": "$a", "n": { "$sum": 1 } } }),
            vec![
                doc! { "$group": { "_id": null, "least": { "$min": "$a" }, "most": { "$max": "$a" }, "all": { "$addToSet": "$a" } } },
            ],
            matched(doc! { "$sortByCount": "$a" }),
        ];
        let results = || -> Vec<Vec<Vec<RawDocumentBuf>>> {
            let results = |pipeline: &Vec<Document>| {
                let aggregate = collection.aggregate(pipeline).collation(&collation);
                let plans = aggregate.clone().explain(ExplainVerbosity::QueryPlanner).unwrap().candidates();
                let forced = (0..plans).map(|plan| rows(aggregate.clone().force(plan)).unwrap());
                std::iter::once(rows(aggregate.clone()).unwrap()).chain(forced).collect()
            };
            pipelines.iter().map(results).collect()
        };
        let distinct = || collection.distinct("a", doc! {}).collation(&collation).run().unwrap();
        let expected = results();
        assert_eq!(expected[0][0], ["a", "b", "c"].map(|id| raw(&doc! { "_id": id })));
        assert_eq!(distinct(), ["a", "b", "c"].map(Bson::from));
        for keys in [
            doc! { "a": 1 },
            doc! { "a": -1 },
            doc! { "a": 1, "y": 1 },
            doc! { "y": 1, "a": 1 },
            doc! { "y": -1, "a": -1 },
        ] {
            for index in [Index::on(keys.clone()), Index::on(keys.clone()).collation(&collation)] {
                let name = collection.create_index(index).run().unwrap();
                for (found, right) in results().iter().zip(&expected) {
                    assert!(found.iter().all(|found| *found == right[0]), "{keys}: {found:?}, expected {right:?}");
                }
                assert_eq!(distinct(), ["a", "b", "c"].map(Bson::from), "{keys}");
                collection.drop_index(&name).unwrap();
            }
        }
    });
}
