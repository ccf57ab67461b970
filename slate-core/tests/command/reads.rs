//! Commands that read.

use bson::{Bson, Document, doc};
use slate_core::Database;

use super::{on_every_store, refused, rows, run, unsupported, with_numbers};

#[test]
fn find_returns_all_documents_in_the_first_batch() {
    on_every_store(|db| {
        with_numbers(db);
        let reply = run(
            db,
            doc! { "find": "c", "filter": { "n": { "$gte": 3 } }, "sort": { "n": -1 }, "projection": { "n": 1, "_id": 0 },
            "skip": 1.9, "limit": 2_i64, "batchSize": 1, "$db": "test", "comment": { "why": 1 } },
        );
        let batch = vec![doc! { "n": 8 }, doc! { "n": 7 }];
        assert_eq!(reply, doc! { "cursor": { "firstBatch": batch, "id": 0_i64, "ns": "test.c" }, "ok": 1.0 });
        assert_eq!(rows(db, doc! { "find": "c", "batchSize": 3, "singleBatch": true }).len(), 3);
        assert_eq!(rows(db, doc! { "find": "c", "limit": 0 }).len(), 10);
        assert_eq!(rows(db, doc! { "find": "nowhere" }).len(), 0);
        assert_eq!(rows(db, doc! { "find": "c", "hint": "_id_", "let": {}, "min": {}, "returnKey": false }).len(), 10);
    });
}

#[test]
fn find_fails_where_mongodb_fails() {
    on_every_store(|db| {
        refused(db, doc! { "find": "c", "filter": 1 }, 14);
        refused(db, doc! { "find": "c", "filter": Bson::Null }, 14);
        refused(db, doc! { "find": "c", "sort": Bson::Null }, 14);
        refused(db, doc! { "find": "c", "skip": "1" }, 14);
        refused(db, doc! { "find": "c", "skip": -1 }, 2);
        refused(db, doc! { "find": "c", "limit": -2.5 }, 2);
        refused(db, doc! { "find": "c", "singleBatch": Bson::Null }, 14);
        refused(db, doc! { "find": "c", "hint": 1 }, 9);
        refused(db, doc! { "find": "c", "hint": "none" }, 2);
        refused(db, doc! { "find": "c", "tailable": true }, 2);
        refused(db, doc! { "find": "c", "awaitData": true }, 9);
        refused(db, doc! { "find": "c", "query": {} }, 40415);
        refused(db, doc! { "find": "c", "filter": {}, "maxTimeMS": -1 }, 2);
        refused(db, doc! { "find": "c", "maxTimeMS": 1.5 }, 9);
        refused(db, doc! { "find": "c", "writeConcern": { "w": 1 } }, 72);
        refused(db, doc! { "find": "c", "readConcern": { "level": "best" } }, 2);
        refused(db, doc! { "find": "c", "readConcern": { "depth": 1 } }, 40415);
        refused(db, doc! { "find": "c", "txnNumber": 1_i64 }, 20);
        refused(db, doc! { "find": 1 }, 73);
        refused(db, doc! { "find": "" }, 73);
        refused(db, doc! { "find": "a$b" }, 73);
        refused(db, doc! { "find": "c", "let": 1 }, 14);
        refused(db, doc! { "find": "c", "let": { "x": "$n" } }, 4_890_500);
        refused(db, doc! { "find": "c", "let": { "x": { "$literal": 1 }, "y": { "a": "$$ROOT" } } }, 4_890_500);
        refused(db, doc! { "find": "c", "let": { "NOW": 1 } }, 4_738_901);
        run(db, doc! { "aggregate": "c", "pipeline": [], "cursor": {}, "let": Bson::Null });
        refused(db, doc! { "find": "c", "let": { "x": { "$divide": [1, 0] } } }, 2);
        let positional = doc! { "find": "c", "filter": { "a": 1, "$expr": true }, "projection": { "a.$": 1 } };
        refused(db, positional, 224);
        refused(db, doc! { "find": "c", "showRecordId": 1 }, 14);
    });
}

#[test]
fn concerns_that_always_hold_and_collations_are_accepted() {
    on_every_store(|db| {
        for level in ["available", "linearizable", "local", "majority", "snapshot"] {
            assert_eq!(run(db, doc! { "count": "c", "readConcern": { "level": level } }), doc! { "n": 0, "ok": 1.0 });
        }
        run(db, doc! { "find": "c", "collation": { "locale": "en", "strength": 2 } });
        run(db, doc! { "count": "c", "collation": Bson::Null, "readConcern": Bson::Null });
        run(
            db,
            doc! { "insert": "c", "documents": [{}], "writeConcern": { "w": "majority", "j": true, "wtimeout": 5 } },
        );
        refused(db, doc! { "insert": "c", "documents": [{}], "writeConcern": { "w": 2 } }, 2);
        refused(db, doc! { "insert": "c", "documents": [{}], "writeConcern": 1.0 }, 14);
        refused(db, doc! { "insert": "c", "documents": [{}], "readConcern": { "level": "majority" } }, 72);
        refused(db, doc! { "find": "c", "collation": { "strength": 1 } }, 40414);
        refused(db, doc! { "find": "c", "collation": { "locale": "nowhere" } }, 2);
        refused(db, doc! { "find": "c", "collation": { "locale": "en", "strength": 6 } }, 2);
        refused(db, doc! { "find": "c", "collation": { "locale": "en", "case": true } }, 40415);
        refused(db, doc! { "find": "c", "collation": { "locale": "en", "caseLevel": 1 } }, 14);
        run(db, doc! { "create": "d", "collation": { "locale": "sv" } });
        run(db, doc! { "create": "d", "collation": { "locale": "sv", "strength": 3 } });
        refused(db, doc! { "create": "d" }, 48);
        refused(db, doc! { "create": "e", "collation": { "locale": "nowhere" } }, 2);
        let listed = run(db, doc! { "listCollections": 1, "filter": { "name": "d" } });
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let options = batch[0].as_document().unwrap().get_document("options").unwrap();
        assert_eq!(options.get_document("collation").unwrap().get_str("locale").unwrap(), "sv");
        let index = doc! { "key": { "a": 1 }, "name": "a" };
        let simple = doc! { "key": { "a": 1 }, "name": "simple", "collation": { "locale": "simple" } };
        run(db, doc! { "createIndexes": "d", "indexes": [index, simple] });
        let listed = run(db, doc! { "listIndexes": "d" });
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let collated = |index: &Bson| index.as_document().unwrap().contains_key("collation");
        assert_eq!(batch.iter().map(collated).collect::<Vec<_>>(), [false, true, false]);
        run(db, doc! { "insert": "d", "documents": [{ "_id": 1, "a": "z" }, { "_id": 2, "a": "ö" }] });
        let found = run(db, doc! { "find": "d", "sort": { "a": 1 } });
        let batch = found.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        assert_eq!(batch[0].as_document().unwrap().get_i32("_id").unwrap(), 1);
    });
}

#[test]
fn count_accepts_limits_of_either_sign_and_any_numeric_type() {
    on_every_store(|db| {
        with_numbers(db);
        let count = |options: Document| {
            let mut command = doc! { "count": "c" };
            command.extend(options);
            run(db, command).get_i32("n").unwrap()
        };
        assert_eq!(count(doc! {}), 10);
        assert_eq!(count(doc! { "query": { "n": { "$lt": 4 } }, "limit": -3 }), 3);
        assert_eq!(count(doc! { "limit": 0.0, "query": Bson::Null, "fields": 1 }), 10);
        assert_eq!(count(doc! { "skip": 2.9 }), 8);
        assert_eq!(count(doc! { "skip": "2.5".parse::<bson::Decimal128>().unwrap() }), 8);
        assert_eq!(count(doc! { "skip": "3.5".parse::<bson::Decimal128>().unwrap() }), 6);
        assert_eq!(count(doc! { "skip": f64::NAN }), 10);
        assert_eq!(count(doc! { "skip": f64::INFINITY }), 0);
        refused(db, doc! { "count": "c", "limit": 1.5 }, 9);
        refused(db, doc! { "count": "c", "limit": f64::NAN }, 9);
        refused(db, doc! { "count": "c", "limit": true }, 2);
        refused(db, doc! { "count": "c", "limit": i64::MIN }, 2);
        refused(db, doc! { "count": "c", "skip": -1 }, 2);
        refused(db, doc! { "count": "c", "skip": f64::NEG_INFINITY }, 2);
    });
}

#[test]
fn distinct_returns_values_in_order() {
    on_every_store(|db| {
        with_numbers(db);
        let reply = run(db, doc! { "distinct": "c", "key": "tags", "query": { "n": { "$lt": 5 } } });
        assert_eq!(reply, doc! { "values": [0, 1, 2, "x"], "ok": 1.0 });
        refused(db, doc! { "distinct": "c" }, 40414);
        refused(db, doc! { "distinct": "c", "key": Bson::Null }, 40414);
        refused(db, doc! { "distinct": "c", "key": 1 }, 14);
        refused(db, doc! { "distinct": "c", "key": "a\0b" }, 31032);
    });
}

#[test]
fn variables_of_an_aggregation_are_constants() {
    on_every_store(|db| {
        with_numbers(db);
        let aggregate = |stages: Vec<Document>, variables: Document| {
            doc! { "aggregate": "c", "pipeline": stages, "cursor": {}, "let": variables }
        };
        let ranks = doc! { "$percentile": { "p": ["$$lowest", 1], "input": "$n", "method": "approximate" } };
        let first = doc! { "$firstN": { "input": "$n", "n": { "$add": ["$$more.by", 1] } } };
        let group = doc! { "$group": { "_id": Bson::Null, "ranks": ranks, "first": first } };
        let command = aggregate(vec![group.clone()], doc! { "lowest": 0, "more": { "by": 1 } });
        let expected = doc! { "_id": Bson::Null, "ranks": [0.0, 9.0], "first": [0, 1] };
        assert_eq!(rows(db, command), [expected]);
        refused(db, aggregate(vec![group], doc! { "lowest": "0", "more": { "by": 1 } }), 7_750_302);
        let bounds = doc! { "documents": [{ "$subtract": ["$$to", 1] }, { "$add": ["$$to", 0] }] };
        let sum = doc! { "$sum": "$n", "window": bounds };
        let windows = doc! { "$setWindowFields": { "sortBy": { "n": -1 }, "output": { "sum": sum } } };
        let stages = vec![windows, doc! { "$limit": 1 }, doc! { "$project": { "_id": 0, "n": 1, "sum": 1 } }];
        assert_eq!(rows(db, aggregate(stages, doc! { "to": 1 })), [doc! { "n": 9, "sum": 17 }]);
    });
}

#[test]
fn explain_returns_the_plan_without_executing_it() {
    on_every_store(|db| {
        with_numbers(db);
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "n": 1 }, "name": "n_1" }] });
        for command in [
            doc! { "find": "c", "filter": { "n": 3 } },
            doc! { "count": "c", "query": { "n": 3 } },
            doc! { "distinct": "c", "key": "n", "query": { "n": 3 } },
        ] {
            let reply = run(db, doc! { "explain": &command, "verbosity": "queryPlanner" });
            let planner = reply.get_document("queryPlanner").unwrap();
            assert_eq!(planner.get_str("namespace").unwrap(), "test.c");
            assert!(reply.get_document("slate").unwrap().get_i32("candidates").unwrap() >= 2, "{reply}");
            assert!(planner.get_document("winningPlan").unwrap().to_string().contains("n_1"), "{reply}");
            assert_eq!(reply.get_document("command").unwrap(), &command);
        }
        refused(db, doc! { "explain": { "find": "c", "filter": 1 } }, 14);
        refused(db, doc! { "explain": { "find": "c" }, "verbosity": "loud" }, 2);
        refused(db, doc! { "explain": { "nothing": 1 } }, 59);
        refused(db, doc! { "explain": { "insert": "c" } }, 20);
    });
}

#[test]
fn explain_has_the_stages_of_mongodb() {
    /// Writes the stages with what they look for, root first.
    fn drawn(stage: &Document) -> String {
        let mut line = stage.get_str("stage").unwrap().to_owned();
        for name in ["filter", "indexBounds", "sortPattern", "limitAmount", "skipAmount", "transformBy", "nMatched"] {
            if let Some(value) = stage.get(name) {
                line.push_str(&format!(" {value}"));
            }
        }
        let inputs = stage.get_array("inputStages").into_iter().flatten().filter_map(Bson::as_document);
        let inputs: Vec<String> = stage.get_document("inputStage").into_iter().chain(inputs).map(drawn).collect();
        if inputs.is_empty() { line } else { format!("{line} < {}", inputs.join(" + ")) }
    }
    on_every_store(|db| {
        let documents: Vec<Document> =
            (0..100).map(|n| doc! { "_id": n, "a": n % 10, "b": n % 7, "s": format!("s{n}") }).collect();
        run(db, doc! { "insert": "c", "documents": documents });
        let ab = doc! { "key": { "a": 1, "b": -1 }, "name": "ab", "unique": false };
        run(db, doc! { "createIndexes": "c", "indexes": [ab, { "key": { "s": 1 }, "name": "s", "unique": true }] });
        let find = |filter: Document| doc! { "find": "c", "filter": filter };
        let with = |mut command: Document, options: Document| {
            command.extend(options);
            command
        };
        let scan = r#"IXSCAN { "a": ["[3, 3]"], "b": ["[MaxKey, MinKey]"] }"#;
        for (command, expected, (returned, keys, documents)) in [
            (find(doc! { "_id": 3 }), "EXPRESS_IXSCAN".into(), (1, 1, 1)),
            (
                find(doc! { "_id": { "$in": [5, 3] } }),
                r#"FETCH < IXSCAN { "_id": ["[3, 3]", "[5, 5]"] }"#.into(),
                (2, 2, 2),
            ),
            (find(doc! { "_id": { "$gt": 90 } }), r#"CLUSTERED_IXSCAN { "_id": ["(90, inf]"] }"#.into(), (9, 0, 9)),
            (find(doc! { "c": 5 }), r#"COLLSCAN { "c": { "$eq": 5 } }"#.into(), (0, 0, 100)),
            (find(doc! { "a": 3 }), format!("FETCH < {scan}"), (10, 10, 10)),
            (find(doc! { "a": 3, "c": 1 }), format!(r#"FETCH {{ "c": {{ "$eq": 1 }} }} < {scan}"#), (0, 10, 10)),
            (
                with(find(doc! { "a": { "$lt": 2.5 } }), doc! { "projection": { "a": 1, "_id": 0 } }),
                r#"PROJECTION_COVERED { "a": 1, "_id": 0 } < IXSCAN { "a": ["[-inf, 2.5)"], "b": ["[MaxKey, MinKey]"] }"#.into(),
                (30, 30, 0),
            ),
            (
                with(find(doc! {}), doc! { "sort": { "c": -1 }, "skip": 1, "limit": 2, "projection": { "x.y": 1 } }),
                r#"PROJECTION_DEFAULT { "x.y": 1 } < SKIP 1 < SORT { "c": -1 } 3 < COLLSCAN"#.into(),
                (2, 0, 100),
            ),
            (
                with(find(doc! { "s": { "$gt": "a" } }), doc! { "hint": "s", "projection": { "a": 1 } }),
                r#"PROJECTION_SIMPLE { "a": 1 } < FETCH < IXSCAN { "s": ["("a", {})"] }"#.into(),
                (100, 100, 100),
            ),
            (
                find(doc! { "$or": [{ "a": 3 }, { "s": "s5" }] }),
                format!(r#"FETCH < OR < {scan} + IXSCAN {{ "s": ["["s5", "s5"]"] }}"#),
                (11, 11, 11),
            ),
            (doc! { "find": "none" }, "EOF".into(), (0, 0, 0)),
            (doc! { "count": "c", "query": { "a": 3 } }, format!("COUNT < {}", scan.replace("IX", "COUNT_")), (0, 10, 0)),
            (doc! { "count": "c", "query": { "c": 3 } }, r#"COUNT < COLLSCAN { "c": { "$eq": 3 } }"#.into(), (0, 0, 100)),
            (doc! { "distinct": "c", "key": "c" }, "COLLSCAN".into(), (100, 0, 100)),
            (
                doc! { "update": "c", "updates": [{ "q": { "a": 3 }, "u": { "$set": { "c": 1 } }, "multi": true }] },
                format!("UPDATE 10 < FETCH < {scan}"),
                (0, 10, 10),
            ),
            (
                doc! { "delete": "c", "deletes": [{ "q": { "_id": 3 }, "limit": 1 }] },
                "DELETE < EXPRESS_IXSCAN".into(),
                (0, 1, 1),
            ),
            (doc! { "findAndModify": "c", "query": { "_id": 3 }, "remove": true }, "DELETE < EXPRESS_IXSCAN".into(), (0, 1, 1)),
        ] {
            let reply = run(db, doc! { "explain": &command, "verbosity": "executionStats" });
            let stats = reply.get_document("executionStats").unwrap();
            let number = |name: &str| stats.get_i32(name).unwrap();
            assert_eq!(drawn(stats.get_document("executionStages").unwrap()), expected, "{command}");
            let counted = (number("nReturned"), number("totalKeysExamined"), number("totalDocsExamined"));
            assert_eq!(counted, (returned, keys, documents), "{command}: {reply}");
        }
        assert_eq!(run(db, doc! { "count": "c", "query": { "_id": 3, "c": null } }).get_i32("n").unwrap(), 1);

        let index = run(db, doc! { "explain": find(doc! { "s": "s1" }), "verbosity": "queryPlanner" });
        let plan = index.get_document("queryPlanner").unwrap().get_document("winningPlan").unwrap();
        let scan = plan.get_document("inputStage").unwrap();
        let expected = doc! {
            "stage": "IXSCAN", "keyPattern": { "s": 1 }, "indexName": "s", "isMultiKey": false, "multiKeyPaths": { "s": [] },
            "isUnique": true, "isSparse": false, "isPartial": false, "indexVersion": 2, "direction": "forward",
            "indexBounds": { "s": ["[\"s1\", \"s1\"]"] },
        };
        assert_eq!(scan, &expected);
        let pipeline = [
            doc! { "$match": { "a": 3 } },
            doc! { "$group": { "_id": "$c", "n": { "$sum": 1 } } },
            doc! { "$lookup": { "from": "c", "localField": "n", "foreignField": "_id", "as": "found" } },
        ];
        let aggregate = doc! { "aggregate": "c", "pipeline": pipeline.to_vec(), "cursor": {} };
        let reply = run(db, doc! { "explain": &aggregate, "verbosity": "executionStats" });
        let stages: Vec<&Document> =
            reply.get_array("stages").unwrap().iter().map(|stage| stage.as_document().unwrap()).collect();
        assert_eq!(stages.len(), 3, "{reply}");
        let stats = stages[0].get_document("$cursor").unwrap().get_document("executionStats").unwrap();
        let counted = |stage: &Document| ["nReturned", "totalDocsExamined"].map(|name| stage.get_i32(name).unwrap());
        assert_eq!(counted(stats), [10, 10], "{reply}");
        assert_eq!(stages[1].get_document("$group").unwrap(), pipeline[1].get_document("$group").unwrap());
        assert_eq!(stages[2].get_document("$lookup").unwrap().get_str("from").unwrap(), "c");
        assert_eq!(counted(stages[2]), [1, 1], "{reply}");
        // With `explain` in the command itself, nothing is executed.
        let reply = run(db, doc! { "aggregate": "c", "pipeline": pipeline.to_vec(), "explain": true });
        assert!(!reply.to_string().contains("executionStats"), "{reply}");
        // A plan that takes in the whole pipeline is shown as that of a query.
        let whole = doc! { "aggregate": "c", "pipeline": [{ "$match": { "a": 3 } }, { "$limit": 2 }], "cursor": {} };
        assert!(run(db, doc! { "explain": whole }).contains_key("queryPlanner"));
        let two = doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }, { "q": {}, "limit": 0 }] };
        refused(db, doc! { "explain": two }, 16);
    });
}

#[test]
fn min_and_max_limit_the_keys_of_the_hinted_index() {
    on_every_store(|db| {
        let ids = |command: Document| -> Vec<i32> {
            rows(db, command).iter().map(|row| row.get_i32("_id").unwrap()).collect()
        };
        let keys = || (0..4).flat_map(|a| (0..4).rev().map(move |b| (a, b)));
        let documents: Vec<Document> =
            (0..).zip(keys()).map(|(id, (a, b))| doc! { "_id": id, "a": a, "b": b }).collect();
        run(db, doc! { "insert": "c", "documents": &documents });
        let index = |keys: Document, name: &str| doc! { "key": keys, "name": name };
        let indexes = [index(doc! { "a": 1, "b": -1 }, "ab"), index(doc! { "a": -1, "b": 1 }, "ba")];
        run(db, doc! { "createIndexes": "c", "indexes": indexes.to_vec() });
        let limit = |(a, b): (i32, i32)| doc! { "a": a, "b": b };
        // The _ids are in the order of the index `ab`, and against that of `ba`.
        for (low, min) in (0..).zip(keys()) {
            for (high, max) in (0..16).zip(keys()).skip(usize::try_from(low).unwrap() + 1) {
                let find = doc! { "find": "c", "hint": "ab", "min": limit(min), "max": limit(max) };
                assert_eq!(ids(find), (low..high).collect::<Vec<_>>(), "{min:?} {max:?}");
                let find = doc! { "find": "c", "hint": "ba", "min": limit(max), "max": limit(min) };
                assert_eq!(ids(find), (low + 1..=high).rev().collect::<Vec<_>>(), "{min:?} {max:?}");
            }
        }
        let find = |rest: Document| {
            let mut find =
                doc! { "find": "c", "hint": { "a": 1, "b": -1 }, "min": limit((1, 2)), "max": limit((3, 1)) };
            find.extend(rest);
            find
        };
        assert_eq!(ids(find(doc! {})), [5, 6, 7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(ids(find(doc! { "filter": { "b": { "$gte": 2 } } })), [5, 8, 9, 12, 13]);
        assert_eq!(ids(find(doc! { "filter": { "a": 2 }, "skip": 1, "limit": 2 })), [9, 10]);
        assert_eq!(ids(find(doc! { "sort": { "a": -1, "b": 1 }, "limit": 2 })), [13, 12]);
        assert_eq!(ids(find(doc! { "sort": { "_id": -1 }, "limit": 2 })), [13, 12]);
        assert_eq!(ids(find(doc! { "max": {} })), (5..16).collect::<Vec<_>>());
        assert_eq!(ids(find(doc! { "min": {} })), (0..14).collect::<Vec<_>>());
        let covered = rows(db, find(doc! { "projection": { "_id": 0, "b": 1 }, "limit": 2 }));
        assert_eq!(covered, [doc! { "b": 2 }, doc! { "b": 1 }]);
        let explained =
            run(db, doc! { "explain": find(doc! { "projection": { "_id": 0, "b": 1 } }), "verbosity": "queryPlanner" });
        assert!(explained.to_string().contains("PROJECTION_COVERED"), "{explained}");
        let by_id = |rest: Document| {
            let mut find = doc! { "find": "c", "hint": "_id_" };
            find.extend(rest);
            ids(find)
        };
        assert_eq!(by_id(doc! { "min": { "_id": 3.0 }, "max": { "_id": 6 } }), [3, 4, 5]);
        assert_eq!(by_id(doc! { "min": { "_id": 13 }, "sort": { "_id": -1 } }), [15, 14, 13]);
        assert_eq!(by_id(doc! { "max": { "_id": 2 } }), [0, 1]);

        // A document with several keys is returned once, and sorted by all of them.
        run(
            db,
            doc! { "insert": "t", "documents": [{ "_id": 1, "t": [5, 1] }, { "_id": 2, "t": [3, 4] }, { "_id": 3, "t": "x" }] },
        );
        run(db, doc! { "createIndexes": "t", "indexes": [index(doc! { "t": 1 }, "t")] });
        let tagged = doc! { "find": "t", "hint": "t", "min": { "t": 2 }, "max": { "t": 6 } };
        assert_eq!(ids(tagged.clone()), [2, 1]);
        let mut sorted = tagged;
        sorted.insert("sort", doc! { "t": 1 });
        assert_eq!(ids(sorted), [1, 2]);
        assert_eq!(ids(doc! { "find": "t", "hint": "t", "min": { "t": "a" } }), [3]);

        refused(db, doc! { "find": "c", "min": { "a": 1, "b": 1 } }, 51173);
        for limits in [doc! { "a": 1 }, doc! { "b": 1, "a": 1 }, doc! { "a": 1, "b": 1, "_id": 1 }] {
            refused(db, doc! { "find": "c", "hint": "ab", "min": limits }, 51174);
        }
        refused(db, doc! { "find": "c", "hint": "ab", "min": limit((2, 0)), "max": limit((1, 0)) }, 51175);
        refused(db, doc! { "find": "c", "hint": "ab", "min": limit((2, 0)), "max": limit((2, 0)) }, 51175);
        refused(db, doc! { "find": "c", "hint": "ab", "min": limit((1, 0)), "max": { "b": 1, "a": 2 } }, 51176);
        refused(db, doc! { "find": "c", "hint": { "$natural": 1 }, "min": limit((1, 0)) }, 291);
        refused(db, doc! { "find": "c", "hint": "ab", "min": 1 }, 14);
        refused(db, doc! { "find": "t", "hint": "t", "min": { "t": "x".repeat(2_000) } }, 2);
        let collated = doc! { "locale": "en", "strength": 2 };
        refused(db, doc! { "find": "t", "hint": "t", "min": { "t": "a" }, "collation": &collated }, 51174);
        assert_eq!(ids(doc! { "find": "t", "hint": "t", "min": { "t": 4 }, "collation": &collated }), [2, 1, 3]);
        run(db, doc! { "createIndexes": "t", "indexes": [{ "key": { "$**": 1 }, "name": "all" }] });
        refused(db, doc! { "find": "t", "hint": "all", "min": { "t": 1 } }, 51174);
        run(db, doc! { "create": "v", "viewOn": "c", "pipeline": [] });
        refused(db, doc! { "find": "v", "hint": "ab", "min": limit((1, 0)) }, 168);
    });
}

#[test]
fn return_key_returns_the_keys_of_the_index_that_is_read() {
    on_every_store(|db| {
        let documents =
            [doc! { "_id": 1, "a": 1, "b": { "c": 5 } }, doc! { "_id": 2, "a": 2 }, doc! { "_id": 3, "a": 3, "b": 1 }];
        run(db, doc! { "insert": "c", "documents": documents.to_vec() });
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "a": -1, "b.c": 1 }, "name": "ac" }] });
        let keys = |rest: Document| {
            let mut find = doc! { "find": "c", "returnKey": true };
            find.extend(rest);
            rows(db, find)
        };
        let key = |a: i32, c: Bson| doc! { "a": a, "b.c": c };
        assert_eq!(
            keys(doc! { "filter": { "a": { "$lte": 2 } }, "hint": "ac" }),
            [key(2, Bson::Null), key(1, 5.into())]
        );
        assert_eq!(keys(doc! { "hint": "ac", "skip": 1, "limit": 1 }), [key(2, Bson::Null)]);
        assert_eq!(keys(doc! { "filter": { "a": 1 }, "hint": "ac", "projection": { "b": 1 } }), [key(1, 5.into())]);
        assert_eq!(
            keys(doc! { "hint": "ac", "min": { "a": 2, "b.c": Bson::MinKey }, "max": { "a": 1, "b.c": Bson::MinKey } }),
            [key(2, Bson::Null)]
        );
        assert_eq!(keys(doc! { "filter": { "_id": 2 } }), [doc! { "_id": 2 }]);
        assert_eq!(keys(doc! { "filter": { "_id": { "$gt": 1 } } }), [doc! { "_id": 2 }, doc! { "_id": 3 }]);
        assert_eq!(keys(doc! { "sort": { "_id": -1 }, "limit": 1 }), [doc! { "_id": 3 }]);
        assert_eq!(keys(doc! { "hint": { "_id": 1 }, "limit": 1 }), [doc! { "_id": 1 }]);
        assert_eq!(keys(doc! {}), [doc! {}, doc! {}, doc! {}]);
        assert_eq!(keys(doc! { "filter": { "b": 1 } }), [doc! {}]);
        assert_eq!(keys(doc! { "filter": { "$or": [{ "a": 1 }, { "_id": 3 }] } }), [doc! {}, doc! {}]);
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1, "d.$**": 1 }, "name": "wildcard" }] });
        unsupported(
            db,
            doc! { "find": "c", "filter": { "a": 1 }, "hint": "wildcard", "returnKey": true },
            "returnKey of an index with several keys of a document",
        );
        run(db, doc! { "dropIndexes": "c", "index": "wildcard" });
        refused(db, doc! { "find": "c", "returnKey": 1 }, 14);
        run(db, doc! { "create": "v", "viewOn": "c", "pipeline": [] });
        refused(db, doc! { "find": "v", "returnKey": true }, 168);
        run(db, doc! { "insert": "c", "documents": [{ "_id": 4, "a": [7, 8] }] });
        unsupported(
            db,
            doc! { "find": "c", "hint": "ac", "returnKey": true },
            "returnKey of an index with several keys of a document",
        );
    });
}

#[test]
fn sizes_of_a_collection_and_of_the_database() {
    on_every_store(|db| {
        let none = doc! {
            "ns": "test.c", "size": 0, "count": 0, "storageSize": 0, "nindexes": 0, "totalIndexSize": 0, "totalSize": 0,
            "indexSizes": {}, "scaleFactor": 1, "ok": 1.0,
        };
        assert_eq!(run(db, doc! { "collStats": "c" }), none);
        let empty = run(db, doc! { "dbStats": 1 });
        assert_eq!((empty.get_i64("objects").unwrap(), empty.get_f64("avgObjSize").unwrap()), (0, 0.0), "{empty}");

        run(db, doc! { "insert": "c", "documents": [{ "_id": 1, "a": 1 }, { "_id": 2, "a": 2 }] });
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] });
        run(db, doc! { "create": "v", "viewOn": "c", "pipeline": [] });
        let bytes = db.collection::<Document>("c").stats().unwrap();
        let length = |bytes: u64| i32::try_from(bytes).unwrap();
        let (stored, entries) = (length(bytes.bytes), length(bytes.indexes[0].bytes));
        let expected = doc! {
            "ns": "test.c", "size": 42, "count": 2, "avgObjSize": 21, "storageSize": stored, "capped": false, "nindexes": 2,
            "indexBuilds": [], "totalIndexSize": entries, "totalSize": stored + entries,
            "indexSizes": { "_id_": 0, "a_1": entries }, "scaleFactor": 1, "ok": 1.0,
        };
        assert_eq!(run(db, doc! { "collStats": "c", "$db": "test" }), expected);
        let scaled = run(db, doc! { "collStats": "c", "scale": 10 });
        let sizes =
            ["size", "count", "avgObjSize", "storageSize", "scaleFactor"].map(|name| scaled.get_i32(name).unwrap());
        assert_eq!(sizes, [4, 2, 21, stored / 10, 10], "{scaled}");

        let expected = doc! {
            "db": "test", "collections": 1_i64, "views": 1_i64, "objects": 2_i64, "avgObjSize": 21.0, "dataSize": 42.0,
            "storageSize": f64::from(stored), "indexes": 2_i64, "indexSize": f64::from(entries),
            "totalSize": f64::from(stored + entries), "scaleFactor": 1_i64, "ok": 1.0,
        };
        assert_eq!(run(db, doc! { "dbStats": 1, "$db": "test" }), expected);
        let scaled = run(db, doc! { "dbStats": 1, "scale": 10, "freeStorage": 1 });
        assert_eq!(
            (scaled.get_f64("dataSize").unwrap(), scaled.get_i64("scaleFactor").unwrap()),
            (4.2, 10),
            "{scaled}"
        );
        let free = db.stats().unwrap().storage.free;
        assert_eq!(scaled.contains_key("totalFreeStorageSize"), free.is_some(), "{scaled}");

        refused(db, doc! { "collStats": "v" }, 166);
        refused(db, doc! { "collStats": 1 }, 73);
        refused(db, doc! { "collStats": "c", "scale": 0 }, 2);
        refused(db, doc! { "collStats": "c", "scale": "a" }, 14);
        refused(db, doc! { "collStats": "c", "verbose": true }, 40415);
        refused(db, doc! { "dbStats": 1, "scale": -1 }, 2);
        refused(db, doc! { "dbStats": 1, "free": 1 }, 40415);
        refused(db, doc! { "aggregate": 1, "pipeline": [{ "$collStats": {} }], "cursor": {} }, 73);
        refused(db, doc! { "aggregate": 2, "pipeline": [], "cursor": {} }, 9);
        refused(db, doc! { "aggregate": 1.5, "pipeline": [{ "$documents": [] }], "cursor": {} }, 9);
    });
}

#[test]
fn the_key_of_a_record_is_shown_as_its_record_id() {
    on_every_store(|db| {
        run(db, doc! { "insert": "c", "documents": [{ "_id": 1, "n": [1, 2] }, { "_id": 2.0, "n": [3] }] });
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "n": 1 }, "name": "n" }] });
        let find = |mut with: Document| {
            let mut command = doc! { "find": "c", "sort": { "_id": 1 }, "showRecordId": true };
            command.extend(std::mem::take(&mut with));
            rows(db, command)
        };
        let key = |row: &Document| match row.get("$recordId") {
            Some(Bson::Binary(key)) => key.bytes.clone(),
            other => panic!("{other:?}"),
        };
        let all = find(doc! {});
        let names: Vec<&String> = all[0].keys().collect();
        assert_eq!(names, ["_id", "n", "$recordId"]);
        assert!(key(&all[0]) < key(&all[1]), "in the order of _id");
        // The key depends neither on the plan nor on the projection.
        assert_eq!(find(doc! { "projection": { "_id": 0 }, "filter": { "n": 3 } })[0].get("_id"), None);
        let shown = find(doc! { "projection": { "n.$": 1, "_id": 0 }, "filter": { "n": { "$gt": 1 } }, "hint": "n" });
        assert_eq!((shown[0].get_array("n").unwrap().len(), key(&shown[0])), (1, key(&all[0])));
        assert_eq!(find(doc! { "projection": { "$recordId": 0 } })[0], doc! { "_id": 1, "n": [1, 2] });
        run(db, doc! { "update": "c", "updates": [{ "q": { "_id": 2 }, "u": { "$set": { "n": 4 } } }] });
        assert_eq!(key(&find(doc! {})[1]), key(&all[1]));
        let by_meta = doc! { "find": "c", "projection": { "n": 1, "r": { "$meta": "recordId" } } };
        assert_eq!(rows(db, by_meta)[0].get("r"), all[0].get("$recordId"));
        assert_eq!(find(doc! { "returnKey": true, "hint": { "_id": 1 } })[0], doc! { "_id": 1 });

        run(db, doc! { "create": "v", "viewOn": "c", "pipeline": [] });
        refused(db, doc! { "find": "v", "showRecordId": true }, 168);
        let stage = doc! { "$project": { "r": { "$meta": "recordId" } } };
        unsupported(db, doc! { "aggregate": "c", "pipeline": [stage], "cursor": {} }, "$meta");
    });
}

#[test]
fn a_command_of_very_many_fields_is_refused_before_they_are_compared() {
    let db = Database::open("memory:").unwrap();
    let mut command = doc! { "ping": 1 };
    command.extend((0..50_000).map(|field| (format!("f{field}"), Bson::Null)));
    let error = db.command(&command).unwrap_err();
    assert!(error.code() == 40415 && error.message().contains("1000"), "{error}");
}
