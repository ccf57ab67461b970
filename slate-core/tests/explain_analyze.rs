//! Execution statistics: each plan node counts its work, and the counts are the same on every store.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};
use common::{
    STORES, Store, check_cases, on_every_store,
    random::{self, RandomQuery},
    raw, rows,
};
use proptest::{prelude::*, test_runner::TestCaseError};
use slate_core::{Collection, ExecutionStats, Explain, ExplainVerbosity, Find, Hint, Index};

type Documents = Collection<RawDocumentBuf>;

/// A thousand documents: ten values of `a`, seven of `b`, two tags each.
fn thousand(collection: &Documents) {
    let document = |n: i32| {
        let tags = [n % 5, 5 + n % 3];
        rawdoc! { "_id": n, "a": n % 10, "b": n % 7, "tags": [tags[0], tags[1]], "text": format!("text {}", n % 100) }
    };
    collection.insert_many(&(0..1_000).map(document).collect::<Vec<_>>()).run().unwrap();
    for keys in [doc! { "a": 1 }, doc! { "b": 1, "a": 1 }, doc! { "tags": 1 }] {
        collection.create_index(Index::on(keys)).run().unwrap();
    }
}

fn on_a_thousand(test: impl Fn(&Documents)) {
    on_every_store(|database| {
        let collection = database.collection("c");
        thousand(&collection);
        test(&collection);
    });
}

/// Returns the numbers of keys examined, documents examined and rows returned.
fn work(explained: &Explain) -> (u64, u64, u64) {
    let stats = explained.execution_stats().unwrap();
    (stats.keys_examined, stats.documents_examined, stats.rows)
}

fn by(index: &str) -> Hint {
    Hint::Name(index.into())
}

fn all_nodes(node: &Document) -> Vec<&Document> {
    let inputs = node.get_array("inputs").into_iter().flatten().filter_map(Bson::as_document);
    let inputs = node.get_document("input").into_iter().chain(inputs);
    std::iter::once(node).chain(inputs.flat_map(all_nodes)).collect()
}

/// Returns the sum of a statistic over the nodes of a stage.
fn statistic(explained: &Explain, stage: &str, field: &str) -> i64 {
    let document = explained.to_document();
    let nodes = all_nodes(&document);
    let of_stage: Vec<_> = nodes.iter().filter(|node| node.get_str("stage").unwrap() == stage).collect();
    assert!(!of_stage.is_empty(), "no {stage} in {document}");
    of_stage.iter().map(|node| node.get_i64(field).unwrap()).sum()
}

#[test]
fn a_scan_reads_every_document_and_no_key() {
    on_a_thousand(|collection| {
        let explained = collection.find(doc! { "text": "text 7" }).explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert_eq!(work(&explained), (0, 1_000, 10), "{explained}");
        assert_eq!(statistic(&explained, "COLLSCAN", "nReturned"), 1_000);
        assert_eq!(statistic(&explained, "FILTER", "nReturned"), 10);
        let bytes: usize = rows(collection.find(doc! {})).unwrap().iter().map(|row| row.as_bytes().len()).sum();
        // Each record is a document behind a field table: one byte for the number of fields and three for each of the
        // five fields.
        assert_eq!(statistic(&explained, "COLLSCAN", "bytesRead"), i64::try_from(bytes + 16 * 1_000).unwrap());
    });
}

#[test]
fn a_scan_stops_at_the_limit() {
    on_a_thousand(|collection| {
        let explained =
            collection.find(doc! { "text": "text 7" }).limit(2).explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert_eq!(work(&explained), (0, 108, 2), "{explained}");
    });
}

#[test]
fn an_index_scan_reads_the_entries_within_its_bounds_and_their_documents() {
    on_a_thousand(|collection| {
        let explained = collection
            .find(doc! { "a": { "$gte": 3, "$lt": 5 } })
            .hint(by("a_1"))
            .explain(ExplainVerbosity::ExecutionStats)
            .unwrap();
        assert_eq!(work(&explained), (200, 200, 200), "{explained}");
        assert_eq!(statistic(&explained, "IXSCAN", "keysExamined"), 200);
        assert_eq!(statistic(&explained, "FETCH", "docsExamined"), 200);
    });
}

#[test]
fn a_record_with_several_entries_is_fetched_once() {
    on_a_thousand(|collection| {
        let all = collection.find(doc! { "tags": { "$gte": 0 } }).hint(by("tags_1"));
        let explained = all.explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert_eq!(work(&explained), (2_000, 1_000, 1_000), "{explained}");
        assert_eq!(statistic(&explained, "IXSCAN", "nReturned"), 1_000);
    });
}

#[test]
fn a_limit_with_an_index_order_reads_only_the_returned_rows() {
    on_a_thousand(|collection| {
        let first = collection.find(doc! {}).sort(doc! { "a": -1 }).hint(by("a_1")).skip(2).limit(5);
        let explained = first.explain(ExplainVerbosity::ExecutionStats).unwrap();
        // Skipped records are not loaded.
        assert_eq!(work(&explained), (7, 5, 5), "{explained}");
    });
}

#[test]
fn a_query_by_ids_examines_each_id_and_each_existing_document() {
    on_a_thousand(|collection| {
        let find = collection.find(doc! { "_id": { "$in": [1, 2, 5_000] } });
        let explained = find.explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert_eq!(work(&explained), (3, 2, 2), "{explained}");
        assert_eq!(statistic(&explained, "IDHACK", "keysExamined"), 3);
    });
}

#[test]
fn a_covered_query_reads_no_document() {
    on_a_thousand(|collection| {
        let covered = collection.find(doc! { "a": 3 }).projection(doc! { "a": 1, "_id": 0 }).hint(by("a_1"));
        let explained = covered.explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert_eq!(work(&explained), (100, 0, 100), "{explained}");
        assert_eq!(statistic(&explained, "IXSCAN", "nReturned"), 100);
    });
}

#[test]
fn counting_an_indexs_keys_reads_no_document() {
    on_a_thousand(|collection| {
        let explained =
            collection.find(doc! { "a": 3 }).hint(by("a_1")).count().explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert_eq!(work(&explained), (100, 0, 1), "{explained}");
        assert_eq!(statistic(&explained, "IXSCAN", "nReturned"), 100);
        let explained =
            collection.find(doc! { "text": "text 7" }).count().explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert_eq!(work(&explained), (0, 1_000, 1), "{explained}");
        assert_eq!(statistic(&explained, "FILTER", "nReturned"), 10);
    });
}

#[test]
fn distinct_over_an_index_seeks_from_one_value_to_the_next() {
    on_a_thousand(|collection| {
        let explained = collection.find(doc! {}).distinct("a").explain(ExplainVerbosity::ExecutionStats).unwrap();
        let (keys, documents, values) = work(&explained);
        assert_eq!((documents, values), (0, 10), "{explained}");
        assert!(keys < 60, "{explained}");
        let first =
            collection.find(doc! {}).skip(1).limit(2).distinct("a").explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert_eq!(statistic(&first, "IXSCAN", "nReturned"), 3, "{first}");
        assert!(work(&first).0 < 20, "{first}");
        let explained = collection
            .find(doc! {})
            .hint(Hint::Forward)
            .distinct("text")
            .explain(ExplainVerbosity::ExecutionStats)
            .unwrap();
        assert_eq!(work(&explained), (0, 1_000, 100), "{explained}");
    });
}

#[test]
fn each_input_of_a_merge_counts_its_own_work() {
    on_a_thousand(|collection| {
        let either = || collection.find(doc! { "$or": [{ "a": 3 }, { "b": 2, "a": 4 }] });
        let merged = (0..either().explain(ExplainVerbosity::QueryPlanner).unwrap().candidates())
            .map(|plan| either().force(plan).explain(ExplainVerbosity::ExecutionStats).unwrap())
            .find(|explained| explained.to_document().to_string().contains("OR"));
        let explained = merged.expect("a merge is among the plans");
        let b2_a4 = 14;
        assert_eq!(work(&explained), (100 + b2_a4, 100 + b2_a4, 100 + b2_a4), "{explained}");
        assert_eq!(statistic(&explained, "IXSCAN", "nReturned"), i64::try_from(100 + b2_a4).unwrap());
        assert_eq!(statistic(&explained, "OR", "nReturned"), i64::try_from(100 + b2_a4).unwrap());
    });
}

#[test]
fn spills_are_counted_by_the_node_that_spilled() {
    on_a_thousand(|collection| {
        let sorted = collection.find(doc! {}).sort(doc! { "text": 1 }).memory_limit(20_000);
        let explained = sorted.clone().explain(ExplainVerbosity::ExecutionStats).unwrap();
        let stats = explained.execution_stats().unwrap();
        assert!(stats.spills > 1 && stats.spilled_bytes > 50_000, "{explained}");
        assert_eq!(statistic(&explained, "SORT", "spills"), i64::try_from(stats.spills).unwrap());
        assert!(explained.to_string().contains("spilled"), "{explained}");
        let explained = sorted.memory_limit(10 << 20).explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert_eq!(statistic(&explained, "SORT", "spills"), 0);
        assert!(!explained.to_string().contains("spilled"), "{explained}");

        let multikey = collection.find(doc! { "tags": { "$gte": 0 } }).hint(by("tags_1")).memory_limit(5_000);
        assert!(statistic(&multikey.explain(ExplainVerbosity::ExecutionStats).unwrap(), "IXSCAN", "spills") > 0);
        let values = collection.find(doc! {}).memory_limit(1_000).hint(Hint::Forward);
        assert!(
            statistic(
                &values.distinct("text").explain(ExplainVerbosity::ExecutionStats).unwrap(),
                "DISTINCT",
                "spills"
            ) > 0
        );
    });
}

#[test]
fn a_top_k_sort_does_not_spill() {
    on_a_thousand(|collection| {
        let explained = collection
            .find(doc! {})
            .sort(doc! { "text": 1 })
            .limit(10)
            .memory_limit(20_000)
            .explain(ExplainVerbosity::ExecutionStats)
            .unwrap();
        assert_eq!(statistic(&explained, "SORT", "spills"), 0, "{explained}");
    });
}

#[test]
fn the_plan_is_drawn_with_columns_of_statistics() {
    on_a_thousand(|collection| {
        let find = collection.find(doc! { "a": 3 }).hint(by("a_1")).limit(2);
        let explained = find.explain(ExplainVerbosity::ExecutionStats).unwrap();
        let drawn = explained.to_string();
        let lines: Vec<&str> = drawn.lines().collect();
        let names: Vec<&str> = lines.first().unwrap().split_whitespace().collect();
        assert_eq!(names, ["rows", "keys", "documents", "read", "time"], "\n{drawn}");
        let (rules, nodes) = lines.split_last().unwrap();
        assert!(nodes.iter().skip(1).all(|line| line.trim_start().starts_with('2')), "\n{drawn}");
        assert_eq!(*rules, "rules: select_access, limit_pushdown", "\n{drawn}");
        assert!(lines.get(1).unwrap().ends_with("LIMIT 2"), "\n{drawn}");
        assert!(collection.find(doc! {}).explain(ExplainVerbosity::QueryPlanner).unwrap().execution_stats().is_none());
    });
}

#[test]
fn a_transaction_counts_reads_of_its_own_writes() {
    on_every_store(|database| {
        thousand(&database.collection("c"));
        let transaction = database.db.begin().unwrap();
        let inside = transaction.collection::<RawDocumentBuf>("c");
        inside.delete_many(doc! { "a": 3 }).run().unwrap();
        let explained =
            inside.find(doc! { "b": 1 }).hint(Hint::Forward).explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert_eq!(work(&explained).1, 900, "{explained}");
        transaction.rollback();
    });
}

#[test]
fn a_missing_collection_is_not_read() {
    on_every_store(|database| {
        let explained =
            database.collection("none").find(doc! { "a": 1 }).explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert_eq!(work(&explained), (0, 0, 0), "{explained}");
    });
}

#[test]
fn a_command_returns_execution_stats_with_mongodbs_names() {
    on_every_store(|database| {
        thousand(&database.collection("c"));
        let find = doc! { "find": "c", "filter": { "a": 3 }, "hint": "a_1" };
        let run = |command: &Document| {
            let reply = database.db.command(raw(command)).unwrap();
            Document::try_from(&reply).unwrap()
        };
        let reply = run(&doc! { "explain": &find, "verbosity": "executionStats" });
        let stats = reply.get_document("executionStats").unwrap();
        for (field, value) in [("nReturned", 100), ("totalKeysExamined", 100), ("totalDocsExamined", 100)] {
            assert_eq!(stats.get_i32(field).unwrap(), value, "{reply}");
        }
        let stages = stats.get_document("executionStages").unwrap();
        assert_eq!(stages.get_i32("nReturned").unwrap(), 100, "{reply}");
        let planned = reply.get_document("queryPlanner").unwrap().get_document("winningPlan").unwrap();
        assert!(!planned.contains_key("nReturned"), "{reply}");
        assert!(run(&doc! { "explain": &find, "verbosity": "queryPlanner" }).get("executionStats").is_none());
        let all = run(&doc! { "explain": &find });
        assert!(
            all.get_document("executionStats").unwrap().get_array("allPlansExecution").unwrap().is_empty(),
            "{all}"
        );
    });
}

#[test]
fn a_long_condition_is_shown_by_its_beginning_and_its_length() {
    on_every_store(|database| {
        let collection = database.collection("c");
        thousand(&collection);
        let filter = doc! { "$nor": (0..20_000).map(|n| doc! { "b": { "$ne": n } }).collect::<Vec<_>>() };
        let sizes = 64 << 10..80 << 10;
        let explained = collection.find(filter.clone()).explain(ExplainVerbosity::ExecutionStats).unwrap();
        let plan = explained.to_document();
        let shown = plan.get_str("filter").unwrap();
        assert!(shown.ends_with('…') && sizes.contains(&shown.len()), "{} bytes", shown.len());
        assert!(sizes.contains(&explained.to_string().len()));
        let reply = database.db.command(raw(&doc! { "explain": { "find": "c", "filter": filter } })).unwrap();
        let reply = Document::try_from(&reply).unwrap();
        let planner = reply.get_document("queryPlanner").unwrap();
        let conditions =
            [planner.get_document("parsedQuery"), planner.get_document("winningPlan").unwrap().get_document("filter")];
        for condition in conditions {
            let length = condition.unwrap().get_str("$truncated").unwrap();
            assert!(length.starts_with("a document of "), "{length}");
        }
    });
}

#[test]
fn long_bounds_are_shown_by_their_beginning() {
    on_every_store(|database| {
        let collection = database.collection("c");
        thousand(&collection);
        let bounds_of = |filter: Document| {
            let find = doc! { "find": "c", "filter": filter, "hint": "a_1" };
            let reply = database.db.command(raw(&doc! { "explain": find, "verbosity": "queryPlanner" })).unwrap();
            assert!(reply.as_bytes().len() < 2 << 20, "{} bytes", reply.as_bytes().len());
            let reply = Document::try_from(&reply).unwrap();
            let mut stage = reply.get_document("queryPlanner").unwrap().get_document("winningPlan").unwrap();
            while let Ok(input) = stage.get_document("inputStage") {
                stage = input;
            }
            let bounds = stage.get_document("indexBounds").unwrap().get_array("a").unwrap();
            bounds.iter().map(|bound| bound.as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let many = bounds_of(doc! { "a": { "$in": (0..100_000).collect::<Vec<_>>() } });
        assert_eq!((many[0].as_str(), many.last().unwrap().starts_with("… ")), ("[0, 0]", true));
        assert!(many.iter().map(String::len).sum::<usize>() < 80 << 10);
        let one = bounds_of(doc! { "a": "x".repeat(1 << 20) });
        assert!(one.len() == 1 && one[0].contains('…') && one[0].len() < 160 << 10, "{} bytes", one[0].len());
    });
}

#[test]
fn an_explain_ends_with_its_call_and_with_the_time_of_the_command() {
    on_every_store(|database| {
        let collection = database.collection("c");
        thousand(&collection);
        let token = slate_core::CancelToken::new();
        token.cancel();
        let error = collection.find(doc! { "a": 3 }).cancel(token).explain(ExplainVerbosity::QueryPlanner).unwrap_err();
        assert_eq!(error.kind(), slate_core::ErrorKind::Interrupted);
        // The time limit beside `explain`, as drivers send it, and that of the explained command: the earlier one counts.
        let slow = doc! { "$expr": { "$gt": [{ "$sum": { "$map": { "input": { "$range": [0, 2_000_000] }, "in": "$$this" } } }, "$a"] } };
        for (inner, outer) in [(None, Some(20)), (Some(20), Some(60_000)), (Some(60_000), Some(20))] {
            let mut find = doc! { "find": "c", "filter": &slow };
            find.extend(inner.map(|time| ("maxTimeMS".to_owned(), time.into())));
            let mut command = doc! { "explain": find };
            command.extend(outer.map(|time| ("maxTimeMS".to_owned(), time.into())));
            assert_eq!(database.db.command(raw(&command)).unwrap_err().code(), 50, "{command}");
        }
    });
}

/// Removes the time, which differs between runs.
fn timeless(explained: &Explain) -> (ExecutionStats, Document) {
    fn without_time(node: &Document) -> Document {
        let timeless = |value: &Bson| match value {
            Bson::Document(input) => Bson::Document(without_time(input)),
            Bson::Array(inputs) => {
                let input =
                    |input: &Bson| input.as_document().map_or(input.clone(), |input| without_time(input).into());
                Bson::Array(inputs.iter().map(input).collect())
            }
            other => other.clone(),
        };
        let kept = node.iter().filter(|(name, _)| *name != "executionTimeMicros");
        kept.map(|(name, value)| (name.clone(), timeless(value))).collect()
    }
    let mut stats = explained.execution_stats().unwrap();
    // Depends on what is in the caches.
    (stats.time, stats.storage_bytes) = (std::time::Duration::ZERO, None);
    (stats, without_time(&explained.to_document()))
}

fn find(collection: &Documents, query: &RandomQuery, plan: usize) -> Find<RawDocumentBuf> {
    let mut find = collection.find(&query.filter).skip(query.skip).force(plan).memory_limit(1_000);
    if let Some(sort) = &query.sort {
        find = find.sort(sort);
    }
    if let Some(projection) = &query.projection {
        find = find.projection(projection);
    }
    match query.limit {
        Some(limit) => find.limit(limit),
        None => find,
    }
}

/// Checks that every node has statistics, and that they add up to the totals of the query.
fn check_statistics(explained: &Explain, rows: Option<usize>) -> Result<(), TestCaseError> {
    let document = explained.to_document();
    for node in all_nodes(&document) {
        prop_assert!(node.contains_key("nReturned"), "a node has no statistics: {}", document);
    }
    let stats = explained.execution_stats().unwrap();
    prop_assert_eq!(document.get_i64("nReturned").unwrap(), i64::try_from(stats.rows).unwrap(), "{}", document);
    let of_nodes = |field: &str| all_nodes(&document).iter().map(|node| node.get_i64(field).unwrap()).sum::<i64>();
    prop_assert_eq!(of_nodes("keysExamined"), i64::try_from(stats.keys_examined).unwrap());
    prop_assert_eq!(of_nodes("docsExamined"), i64::try_from(stats.documents_examined).unwrap());
    if let Some(rows) = rows {
        prop_assert_eq!(stats.rows, u64::try_from(rows).unwrap(), "{}", document);
    }
    Ok(())
}

#[test]
fn every_plan_node_has_statistics_that_are_equal_on_every_store() {
    let stores = STORES.map(Store::open);
    let case = random::pool()
        .prop_flat_map(|pool| (pool.documents(20), pool.indexes(3), prop::collection::vec(pool.query(), 1..4)));
    check_cases(STORES, 80, &case, |number, (documents, indexes, queries)| {
        let collections = stores.each_ref().map(|store| store.collection(&format!("c{number}")));
        for collection in &collections {
            let _ = collection.insert_many(&documents.iter().map(raw).collect::<Vec<_>>()).run();
            for index in &indexes {
                let _ = collection.create_index(index.spec()).run();
            }
        }
        for query in &queries {
            let plans = collections[0]
                .find(&query.filter)
                .explain(ExplainVerbosity::QueryPlanner)
                .map_or(0, |explained| explained.candidates());
            for plan in 0..plans {
                let each = collections.each_ref().map(|collection| {
                    let find = find(collection, query, plan);
                    let counted = find.clone().count().explain(ExplainVerbosity::ExecutionStats);
                    let distinct = collection
                        .find(&query.filter)
                        .force(plan)
                        .distinct(&query.distinct)
                        .explain(ExplainVerbosity::ExecutionStats);
                    let found = rows(find.clone()).ok().map(|rows| rows.len());
                    (find.explain(ExplainVerbosity::ExecutionStats).ok(), counted.ok(), distinct.ok(), found)
                });
                let results = each.each_ref().map(|(find, count, distinct, found)| {
                    format!("{:?} {found:?}", [find, count, distinct].map(|explained| explained.as_ref().map(timeless)))
                });
                for other in &results[1..] {
                    prop_assert_eq!(&results[0], other, "{:?} with plan {}", query, plan);
                }
                let (find, count, distinct, found) = &each[0];
                for explained in [find, count, distinct].into_iter().flatten() {
                    check_statistics(explained, None)?;
                }
                if let Some(explained) = find {
                    check_statistics(explained, *found)?;
                }
            }
        }
        for collection in &collections {
            let _ = collection.drop();
        }
        Ok(())
    });
}

#[test]
fn explaining_a_write_shows_its_targets_and_does_not_write() {
    on_every_store(|test| {
        let c = test.collection("c");
        let documents: Vec<_> = (0..10).map(|n| rawdoc! { "_id": n, "a": n % 2 }).collect();
        c.insert_many(&documents).run().unwrap();
        c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        let update = c.update_many(doc! { "a": 1 }, doc! { "$set": { "a": 5 } }).upsert();
        assert!(update.clone().explain(ExplainVerbosity::QueryPlanner).unwrap().uses_index());
        let stats = update.explain(ExplainVerbosity::ExecutionStats).unwrap().execution_stats().unwrap();
        assert_eq!(stats.rows, 5);
        let deletion = c.delete_one(doc! { "a": 1 });
        let stats = deletion.explain(ExplainVerbosity::ExecutionStats).unwrap().execution_stats().unwrap();
        assert_eq!(stats.rows, 1);
        assert_eq!(c.count_documents(doc! { "a": 1 }).run().unwrap(), 5);
        assert_eq!(c.estimated_document_count().unwrap(), 10);
    });
}

#[test]
fn bytes_read_from_files_are_counted_where_the_store_can() {
    let stores = [
        ("memory", false),
        ("redb", true),
        #[cfg(feature = "rocksdb")]
        ("rocksdb", true),
    ];
    for (store, has_files) in stores {
        let folder = tempfile::tempdir().unwrap();
        let url = if has_files { format!("{store}:{}", folder.path().join("db").display()) } else { "memory:".into() };
        // The documents are several times larger than the cache.
        let open = || slate_core::Database::builder(&url).cache(1 << 20).open().unwrap();
        let document = |n: i64| rawdoc! { "_id": n, "text": format!("{n:0>300}") };
        let mut database = open();
        let documents = (0..20_000).map(document).collect::<Vec<_>>();
        database.collection("c").insert_many(&documents).run().unwrap();
        if has_files {
            database.close().unwrap();
            database = open();
        }
        let find = || database.collection::<RawDocumentBuf>("c").find(doc! { "text": "none" });
        let explained = find().explain(ExplainVerbosity::ExecutionStats).unwrap();
        let stats = explained.execution_stats().unwrap();
        assert!(stats.bytes_read > 6_000_000, "{explained}");
        let counted = explained.to_string().contains("\nread from files: ");
        match store {
            "memory" => assert_eq!((stats.storage_bytes, counted), (Some(0), false), "{explained}"),
            "redb" => assert!(counted && stats.storage_bytes.unwrap() > stats.bytes_read / 2, "{explained}"),
            // RocksDB compresses the documents, so it reads fewer bytes than they have.
            _ => assert!(counted && stats.storage_bytes.unwrap() > 100_000, "{explained}"),
        }
        let command = doc! { "explain": { "find": "c" }, "verbosity": "executionStats" };
        let reply = Document::try_from(&*database.command(raw(&command)).unwrap()).unwrap();
        let execution = reply.get_document("slate").unwrap();
        assert_eq!(execution.contains_key("storageBytesRead"), stats.storage_bytes.is_some(), "{reply}");
        let point = database.collection::<RawDocumentBuf>("c").find(doc! { "_id": 7_i64 });
        let point = point.explain(ExplainVerbosity::ExecutionStats).unwrap().execution_stats().unwrap();
        assert!(point.storage_bytes.unwrap() <= 100_000, "{point:?}");
    }
}
