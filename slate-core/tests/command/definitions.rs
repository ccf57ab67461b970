//! Commands that define collections, indexes and views.

use bson::{Document, doc};

use super::{on_every_store, refused, rows, run, unsupported, with_numbers};

#[test]
fn collections_are_created_listed_and_dropped() {
    on_every_store(|db| {
        assert_eq!(run(db, doc! { "create": "b" }), doc! { "ok": 1.0 });
        run(db, doc! { "create": "b" });
        run(db, doc! { "create": "a" });
        let listed = rows(db, doc! { "listCollections": 1, "nameOnly": true });
        assert_eq!(listed, ["a", "b"].map(|name| doc! { "name": name, "type": "collection" }));
        let named = |name: &str| doc! { "$expr": { "$eq": ["$name", name] } };
        assert_eq!(rows(db, doc! { "listCollections": 1, "filter": named("a") }).len(), 1);
        refused(db, doc! { "listCollections": 1, "filter": { "$expr": { "$abs": "$name" } } }, 28765);
        let listed = rows(db, doc! { "listCollections": 1, "filter": { "name": "b" } });
        assert_eq!(listed[0].get_document("idIndex").unwrap().get_str("name").unwrap(), "_id_");
        assert_eq!(run(db, doc! { "drop": "b" }), doc! { "nIndexesWas": 1, "ns": "test.b", "ok": 1.0 });
        assert_eq!(run(db, doc! { "drop": "b" }), doc! { "ok": 1.0 });
        unsupported(db, doc! { "create": "d", "capped": true }, "capped");
        unsupported(db, doc! { "create": "d", "timeseries": {} }, "timeseries");
        refused(db, doc! { "create": "d", "validator": 1 }, 14);
        run(db, doc! { "create": "d", "validator": {}, "capped": false });
        refused(db, doc! { "create": "d", "shape": 1 }, 40415);
        refused(db, doc! { "create": "system.d" }, 73);
    });
}

#[test]
fn create_indexes_is_atomic() {
    on_every_store(|db| {
        with_numbers(db);
        let index = |spec: Document| doc! { "createIndexes": "c", "indexes": [spec] };
        let made =
            run(db, index(doc! { "key": { "n": 1 }, "name": "n_1", "unique": true, "v": 2, "background": true }));
        assert_eq!(
            made,
            doc! { "numIndexesBefore": 1, "numIndexesAfter": 2, "createdCollectionAutomatically": false, "ok": 1.0 }
        );
        let again = run(db, index(doc! { "key": { "n": 1 }, "name": "n_1", "unique": true }));
        assert_eq!(again.get_str("note").unwrap(), "all indexes already exist");
        let partial = doc! { "n": { "$gt": 3 } };
        run(db, index(doc! { "key": { "tags": 1 }, "name": "t", "partialFilterExpression": &partial }));
        let two = vec![doc! { "key": { "z": 1 }, "name": "z" }, doc! { "key": { "n": -1 }, "name": "n_1" }];
        refused(db, doc! { "createIndexes": "c", "indexes": two }, 86);

        let listed = rows(db, doc! { "listIndexes": "c" });
        assert_eq!(
            listed,
            [
                doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
                doc! { "v": 2, "key": { "n": 1 }, "name": "n_1", "unique": true },
                doc! { "v": 2, "key": { "tags": 1 }, "name": "t", "partialFilterExpression": partial },
            ]
        );
        refused(db, doc! { "listIndexes": "nowhere" }, 26);
    });
}

#[test]
fn create_indexes_fails_where_mongodb_fails() {
    on_every_store(|db| {
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] });
        let index = |spec: Document| doc! { "createIndexes": "c", "indexes": [spec] };
        let on = |options: Document| {
            let mut spec = doc! { "key": { "b": 1 }, "name": "b" };
            spec.extend(options);
            index(spec)
        };
        refused(db, index(doc! { "key": { "a": 1 }, "name": "other" }), 85);
        refused(db, index(doc! { "key": { "a": 1 }, "name": "a", "unique": true }), 86);
        refused(db, index(doc! { "key": { "a": 1 } }), 9);
        refused(db, index(doc! { "name": "a" }), 9);
        refused(db, index(doc! { "key": {}, "name": "none" }), 67);
        refused(db, index(doc! { "key": { "b": 0 }, "name": "b" }), 67);
        refused(db, index(doc! { "key": { "b": 1 }, "name": "_id_" }), 2);
        refused(db, index(doc! { "key": { "_id": 1 }, "name": "_id_", "sparse": true }), 197);
        refused(db, index(doc! { "key": { "_id": 1 }, "name": "_id_", "unique": false }), 197);
        refused(db, index(doc! { "key": { "_id": 1 }, "name": "_id_", "background": true }), 197);
        refused(db, index(doc! { "key": { "_id": 1 }, "name": "_id_", "hidden": false }), 2);
        refused(db, on(doc! { "unique": "yes" }), 14);
        refused(db, on(doc! { "lonely": true }), 197);
        refused(db, on(doc! { "v": 3 }), 67);
        refused(db, on(doc! { "sparse": true, "partialFilterExpression": { "b": 1 } }), 67);
        refused(db, on(doc! { "partialFilterExpression": { "b": { "$ne": 1 } } }), 67);
        refused(db, on(doc! { "wildcardProjection": { "a": 1 } }), 2);
        let wildcard = |options: Document| {
            let mut spec = doc! { "key": { "$**": 1 }, "name": "all" };
            spec.extend(options);
            index(spec)
        };
        refused(db, wildcard(doc! { "unique": true }), 67);
        refused(db, wildcard(doc! { "sparse": true }), 67);
        refused(db, wildcard(doc! { "v": 1 }), 67);
        refused(db, wildcard(doc! { "wildcardProjection": {} }), 9);
        refused(db, wildcard(doc! { "wildcardProjection": { "a": 1, "b": 0 } }), 31254);
        refused(db, wildcard(doc! { "wildcardProjection": 1 }), 14);
        refused(db, wildcard(doc! { "expireAfterSeconds": 60 }), 67);
        refused(db, doc! { "createIndexes": "c", "indexes": [] }, 2);
        refused(db, doc! { "createIndexes": "c" }, 40414);
        refused(db, on(doc! { "expireAfterSeconds": -1 }), 67);
        refused(db, on(doc! { "expireAfterSeconds": 1_i64 << 31 }), 67);
        refused(db, on(doc! { "expireAfterSeconds": "60" }), 67);
        refused(db, on(doc! { "expireAfterSeconds": f64::NAN }), 67);
        refused(db, index(doc! { "key": { "a": 1, "b": 1 }, "name": "ab", "expireAfterSeconds": 60 }), 67);
        refused(db, index(doc! { "key": { "_id": 1 }, "name": "_id_", "expireAfterSeconds": 60 }), 197);
        run(db, on(doc! { "hidden": false, "storageEngine": {} }));
        unsupported(db, index(doc! { "key": { "b": "text" }, "name": "b" }), "text");
        run(db, index(doc! { "key": { "a": 1 }, "name": "sparse", "sparse": true }));
        run(db, index(doc! { "key": { "_id": 1 }, "name": "whatever" }));
    });
}

#[test]
fn the_projection_of_a_compound_wildcard_index_leaves_out_its_other_fields() {
    on_every_store(|db| {
        let all = |before: &[&str], after: &[&str]| -> Document {
            before.iter().chain(&["$**"]).chain(after).map(|name| ((*name).to_owned(), bson::Bson::Int32(1))).collect()
        };
        let create = |keys: Document, projection: Document| {
            let index = doc! { "key": keys, "name": "i", "wildcardProjection": projection };
            doc! { "createIndexes": "c", "indexes": [index] }
        };
        for (keys, projection) in [
            (all(&["a"], &[]), doc! { "a": 0 }),
            (all(&[], &["a"]), doc! { "a": 0 }),
            (all(&["a"], &["b"]), doc! { "a": 0, "b": 0 }),
            (all(&[], &["other"]), doc! { "_id": 0, "a": 1 }),
            (all(&[], &["other"]), doc! { "_id": 1, "a": 0, "other": 0 }),
            (all(&[], &["other"]), doc! { "_id": 1 }),
            (all(&[], &["d"]), doc! { "a": { "b": 1, "c": 1 } }),
            (all(&[], &["e"]), doc! { "_id": 1, "e": 0 }),
            (all(&[], &["_id", "e"]), doc! { "_id": 0, "a": 1 }),
            (all(&["_id"], &[]), doc! { "_id": 0 }),
            (all(&["_id", "a.b"], &[]), doc! { "_id": 0, "a": 0 }),
            (all(&["b.d"], &[]), doc! { "_id": 0, "a.b": 1 }),
        ] {
            run(db, create(keys, projection));
            run(db, doc! { "drop": "c" });
        }
        for (keys, projection, code) in [
            (all(&[], &["c"]), doc! { "a.b": 1, "a.b.c": 1 }, 7_246_200),
            (all(&["a"], &[]), doc! { "a": 1, "b": 1 }, 7_246_208),
            (all(&["a"], &[]), doc! { "_id": 0, "a": 1 }, 7_246_208),
            (all(&["_id"], &[]), doc! { "_id": 1 }, 7_246_208),
            (all(&["_id"], &[]), doc! { "_id": 1, "a": 1 }, 7_246_208),
            (all(&["a.b"], &[]), doc! { "a": 1 }, 7_246_208),
            (all(&[], &["_id", "e"]), doc! { "_id": 1, "e": 0 }, 7_246_209),
            (all(&["a", "_id"], &[]), doc! { "a": 0 }, 7_246_209),
            (all(&["a", "b"], &[]), doc! { "b": 0 }, 7_246_209),
            (all(&["a"], &[]), doc! { "_id": 0, "a.b": 0 }, 7_246_209),
            (all(&[], &["e"]), doc! { "_id": 1, "e.b": 0 }, 7_246_209),
            (all(&[], &["d"]), doc! { "_id": 1, "e": 0 }, 7_246_209),
            (all(&["a"], &[]), doc! { "_id": 0 }, 7_246_210),
            (all(&["_id"], &["a"]), doc! { "_id": 0 }, 7_246_210),
            (all(&["b"], &[]), doc! { "_id": 0, "a": 0 }, 7_246_210),
            (all(&[], &["e.c"]), doc! { "_id": 1, "e.b": 0 }, 7_246_210),
            (all(&[], &["c"]), doc! { "_id": 0, "a": 0, "b": 1 }, 7_246_211),
            (all(&[], &["c"]), doc! { "_id": 1, "a": 0, "b": 1 }, 7_246_211),
            (all(&["a"], &[]), doc! { "b": "something" }, 51_271),
            (all(&["a"], &[]), doc! {}, 9),
        ] {
            refused(db, create(keys, projection), code);
        }
        let many: Document =
            (0..32).map(|n| (format!("f{n}"), bson::Bson::Int32(1))).chain([("w.$**".into(), 1.into())]).collect();
        refused(db, doc! { "createIndexes": "c", "indexes": [{ "key": many, "name": "i" }] }, 13_103);
    });
}

#[test]
fn definitions_of_the_same_meaning_are_the_same_index() {
    on_every_store(|db| {
        let partial = |name: &str, condition: Document| {
            let index = doc! { "key": { "n": 1 }, "name": name, "partialFilterExpression": condition };
            doc! { "createIndexes": "c", "indexes": [index] }
        };
        run(db, partial("n", doc! { "a": { "$gt": 1 }, "b": 2 }));
        let again = run(db, partial("n", doc! { "$and": [{ "b": 2.0 }, { "a": { "$gt": 1 } }] }));
        assert_eq!(again.get_str("note").unwrap(), "all indexes already exist");
        refused(db, partial("other", doc! { "b": 2, "a": { "$gt": 1 } }), 85);
        refused(db, partial("n", doc! { "b": 2, "a": { "$gte": 1 } }), 86);
        run(db, partial("less", doc! { "b": 2, "a": { "$gte": 1 } }));

        let wildcard = |name: &str, projection: Document| {
            let index = doc! { "key": { "$**": 1 }, "name": name, "wildcardProjection": projection };
            doc! { "createIndexes": "c", "indexes": [index] }
        };
        run(db, wildcard("w", doc! { "a": { "c": 1, "b": 1 } }));
        run(db, wildcard("w", doc! { "_id": 0, "a.b": 1, "a.c": true }));
        refused(db, wildcard("other", doc! { "a.c": 1, "a": { "b": 1 } }), 85);
        run(db, wildcard("but", doc! { "_id": 0, "a": 0 }));
        refused(db, wildcard("other", doc! { "a": 0 }), 85);
        run(db, wildcard("of_a", doc! { "a": 1 }));
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "a.$**": 1 }, "name": "below_a" }] });

        let compound = |name: &str, keys: Document, projection: Document| {
            let index = doc! { "key": keys, "name": name, "wildcardProjection": projection };
            doc! { "createIndexes": "c", "indexes": [index] }
        };
        run(db, compound("k", doc! { "k": 1, "$**": 1 }, doc! { "k": 0, "_id": 0 }));
        let again = run(db, compound("k", doc! { "k": 1.0, "$**": 1 }, doc! { "_id": 0, "k": false }));
        assert_eq!(again.get_str("note").unwrap(), "all indexes already exist");
        refused(db, compound("other", doc! { "k": 1, "$**": 1 }, doc! { "k": 0 }), 85);
        refused(db, compound("k", doc! { "k": -1, "$**": 1 }, doc! { "k": 0 }), 86);
        run(db, compound("down", doc! { "k": -1, "$**": 1 }, doc! { "k": 0 }));
        run(db, compound("after", doc! { "$**": 1, "k": 1 }, doc! { "k": 0 }));
    });
}

#[test]
fn the_cursor_of_a_list_is_checked() {
    on_every_store(|db| {
        run(db, doc! { "create": "c" });
        for command in [doc! { "listCollections": 1 }, doc! { "listIndexes": "c" }] {
            let with = |cursor: Document| {
                let mut command = command.clone();
                command.insert("cursor", cursor);
                command
            };
            refused(db, with(doc! { "batchSize": "1" }), 14);
            refused(db, with(doc! { "batchSize": -1 }), 2);
            refused(db, with(doc! { "size": 1 }), 40415);
            run(db, with(doc! { "batchSize": 0 }));
        }
    });
}

#[test]
fn the_seconds_of_a_ttl_index_are_listed_and_changed() {
    on_every_store(|db| {
        let index = |name: &str, seconds: bson::Bson| {
            let spec = doc! { "key": { name: 1 }, "name": name, "expireAfterSeconds": seconds };
            doc! { "createIndexes": "c", "indexes": [spec] }
        };
        run(db, index("at", 60.into()));
        run(db, index("at", 60.5.into()));
        refused(db, index("at", 61.into()), 85);
        run(db, index("zero", 0.into()));
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "plain": 1 }, "name": "plain" }] });
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1, "b": 1 }, "name": "ab" }] });
        let seconds = || -> Vec<Option<i32>> {
            let listed = rows(db, doc! { "listIndexes": "c" });
            listed.iter().map(|index| index.get_i32("expireAfterSeconds").ok()).collect()
        };
        assert_eq!(seconds(), [None, Some(60), Some(0), None, None]);
        let change = |name: &str, seconds: bson::Bson| {
            doc! { "collMod": "c", "index": { "name": name, "expireAfterSeconds": seconds } }
        };
        let changed = run(db, change("at", 3_600.into()));
        assert_eq!(changed, doc! { "expireAfterSeconds_old": 60_i64, "expireAfterSeconds_new": 3_600_i64, "ok": 1.0 });
        let changed = run(db, change("plain", 5.into()));
        assert_eq!(changed, doc! { "expireAfterSeconds_new": 5_i64, "ok": 1.0 }, "an index becomes a TTL index");
        let both =
            doc! { "collMod": "c", "index": { "keyPattern": { "zero": 1 }, "expireAfterSeconds": 1, "hidden": true } };
        assert!(run(db, both).get_bool("hidden_new").unwrap());
        assert_eq!(seconds(), [None, Some(3_600), Some(1), Some(5), None]);
        refused(db, change("at", (-1).into()), 72);
        refused(db, change("at", (1_i64 << 31).into()), 72);
        refused(db, change("at", "5".into()), 14);
        refused(db, change("at", f64::NAN.into()), 72);
        refused(db, change("ab", 5.into()), 72);
        refused(db, change("_id_", 5.into()), 72);
        refused(db, change("nothing", 5.into()), 27);
    });
}

#[test]
fn the_uses_of_an_index_are_counted_from_its_last_hiding() {
    on_every_store(|db| {
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "n": 1 }, "name": "n" }] });
        let uses = |db| {
            let pipeline = bson::bson!([{ "$indexStats": {} }, { "$match": { "name": "n" } }]);
            let listed = rows(db, doc! { "aggregate": "c", "pipeline": pipeline, "cursor": {} });
            listed[0].get_document("accesses").unwrap().get_i64("ops").unwrap()
        };
        let hide = |hidden: bool| doc! { "collMod": "c", "index": { "name": "n", "hidden": hidden } };
        run(db, doc! { "find": "c", "filter": { "n": 1 } });
        assert_eq!(uses(db), 1);
        run(db, hide(true));
        assert_eq!(uses(db), 0);
        run(db, hide(false));
        assert_eq!(uses(db), 0);
        run(db, doc! { "find": "c", "filter": { "n": 1 } });
        run(db, hide(false));
        assert_eq!(uses(db), 1);
    });
}

#[test]
fn indexes_are_dropped_by_name_by_keys_and_all_at_once() {
    on_every_store(|db| {
        let specs = ["a", "b", "d", "e"].map(|name| doc! { "key": { name: 1 }, "name": name });
        run(db, doc! { "createIndexes": "c", "indexes": specs.to_vec() });
        assert_eq!(run(db, doc! { "dropIndexes": "c", "index": "a" }), doc! { "nIndexesWas": 5, "ok": 1.0 });
        run(db, doc! { "deleteIndexes": "c", "index": { "b": 1 } });
        refused(db, doc! { "dropIndexes": "c", "index": "a" }, 27);
        refused(db, doc! { "dropIndexes": "c", "index": { "b": 1 } }, 27);
        refused(db, doc! { "dropIndexes": "c", "index": ["d", "a"] }, 27);
        refused(db, doc! { "dropIndexes": "c", "index": "_id_" }, 72);
        refused(db, doc! { "dropIndexes": "c", "index": { "_id": 1 } }, 72);
        refused(db, doc! { "dropIndexes": "nowhere", "index": "*" }, 26);
        refused(db, doc! { "dropIndexes": "c" }, 40414);
        assert_eq!(run(db, doc! { "dropIndexes": "c", "index": "*" }).get_i32("nIndexesWas").unwrap(), 3);
        assert_eq!(rows(db, doc! { "listIndexes": "c" }).len(), 1);
    });
}

#[test]
fn options_of_validation_are_stored_without_a_validator() {
    on_every_store(|db| {
        let insert = |name: &str, id: i32| doc! { "insert": name, "documents": [{ "_id": id, "a": 2 }] };
        let options = |db: &slate_core::Database, name: &str| {
            let listed = rows(db, doc! { "listCollections": 1, "filter": { "name": name } });
            listed[0].get_document("options").unwrap().clone()
        };
        run(db, doc! { "create": "c", "validationAction": "warn" });
        assert_eq!(options(db, "c"), doc! { "validationAction": "warn" });
        run(db, doc! { "create": "c", "validationAction": "warn" });
        run(db, doc! { "collMod": "c", "validator": { "a": 1 } });
        assert!(run(db, insert("c", 1)).get_array("writeErrors").is_err());
        run(db, doc! { "create": "d" });
        run(db, doc! { "collMod": "d", "validationLevel": "off" });
        run(db, doc! { "collMod": "d", "validator": { "a": 1 } });
        assert!(run(db, insert("d", 1)).get_array("writeErrors").is_err());
        run(db, doc! { "collMod": "d", "validator": {} });
        run(db, doc! { "collMod": "d", "validator": { "a": 1 }, "validationLevel": "strict" });
        assert!(run(db, insert("d", 2)).get_array("writeErrors").is_ok());
    });
}

#[test]
fn an_index_and_its_hidden_twin_conflict() {
    on_every_store(|db| {
        let create = |index: Document| {
            let mut definition = doc! { "key": { "a": 1 }, "name": "a_1" };
            definition.extend(index);
            doc! { "createIndexes": "c", "indexes": [definition] }
        };
        run(db, create(doc! { "hidden": true }));
        run(db, create(doc! { "hidden": true }));
        refused(db, create(doc! {}), 85);
        let collated = doc! { "key": { "b": 1 }, "name": "b_1", "collation": { "locale": "en" } };
        let old =
            |version: i32| doc! { "v": version, "key": { "b": 1 }, "name": "b_1", "collation": { "locale": "en" } };
        refused(db, create(old(1)), 67);
        run(db, create(old(2)));
        run(db, create(collated));
    });
}

#[test]
fn validators_are_created_changed_listed_and_reported() {
    on_every_store(|db| {
        let validator = doc! { "a": { "$gt": 5 } };
        run(db, doc! { "create": "c", "validator": &validator, "validationLevel": "moderate" });
        run(db, doc! { "create": "c", "validator": &validator, "validationLevel": "moderate" });
        refused(db, doc! { "create": "c", "validator": { "a": 1 } }, 48);
        refused(db, doc! { "create": "d", "validator": { "a": { "$nothing": 1 } } }, 2);
        refused(db, doc! { "create": "d", "validationLevel": "some" }, 2);
        let reply = run(
            db,
            doc! { "insert": "c", "documents": [{ "_id": 1, "a": 3 }, { "_id": 2, "a": 9 }], "ordered": false },
        );
        assert_eq!(reply.get_i32("n").unwrap(), 1);
        let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().clone();
        assert_eq!((error.get_i32("index").unwrap(), error.get_i32("code").unwrap()), (0, 121));
        let details = error.get_document("errInfo").unwrap();
        assert_eq!(details.get_i32("failingDocumentId").unwrap(), 1);
        assert_eq!(details.get_document("details").unwrap().get_str("operatorName").unwrap(), "$gt");
        let update = doc! { "q": { "_id": 2 }, "u": { "$set": { "a": 0 } } };
        let reply = run(db, doc! { "update": "c", "updates": [&update] });
        assert_eq!(reply.get_array("writeErrors").unwrap().len(), 1);
        run(db, doc! { "insert": "c", "documents": [{ "_id": 1, "a": 3 }], "bypassDocumentValidation": true });
        run(db, doc! { "collMod": "c", "validationAction": "warn" });
        let reply = run(db, doc! { "update": "c", "updates": [update] });
        assert_eq!(reply.get_i32("nModified").unwrap(), 1);
        let listed = run(db, doc! { "listCollections": 1 });
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let options = batch[0].as_document().unwrap().get_document("options").unwrap();
        let expected = doc! { "validator": validator, "validationLevel": "moderate", "validationAction": "warn" };
        assert_eq!(options, &expected);
        run(db, doc! { "collMod": "c", "validator": {} });
        let listed = run(db, doc! { "listCollections": 1 });
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let options = batch[0].as_document().unwrap().get_document("options").unwrap();
        assert_eq!(options, &doc! { "validationLevel": "moderate", "validationAction": "warn" });
        refused(db, doc! { "collMod": "nowhere", "validator": {} }, 26);
        run(db, doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a", "hidden": true }] });
        let listed = run(db, doc! { "listIndexes": "c" });
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        assert!(batch[1].as_document().unwrap().get_bool("hidden").unwrap());
        let wildcard = doc! { "key": { "$**": 1 }, "name": "all", "wildcardProjection": { "a": 1 } };
        run(db, doc! { "createIndexes": "c", "indexes": [wildcard] });
        let listed = run(db, doc! { "listIndexes": "c" });
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let projection = batch[2].as_document().unwrap().get_document("wildcardProjection").unwrap();
        assert_eq!(projection, &doc! { "a": 1 });
        let show = doc! { "collMod": "c", "index": { "keyPattern": { "a": 1 }, "hidden": false } };
        assert_eq!(run(db, show), doc! { "hidden_old": true, "hidden_new": false, "ok": 1.0 });
        refused(db, doc! { "collMod": "c", "index": { "name": "b", "hidden": true } }, 27);
        refused(db, doc! { "collMod": "c", "index": { "name": "_id_", "hidden": true } }, 2);
        refused(db, doc! { "collMod": "c", "index": { "keyPattern": { "_id": 1 }, "hidden": true } }, 2);
        refused(db, doc! { "collMod": "c", "index": { "hidden": true } }, 72);
        refused(db, doc! { "collMod": "c", "index": { "name": "a_1", "hidden": true }, "dryRun": true }, 72);
    });
}

#[test]
fn views_are_created_changed_listed_and_dropped() {
    on_every_store(|db| {
        run(db, doc! { "insert": "c", "documents": [{ "_id": 1, "n": 1 }, { "_id": 2, "n": 2 }] });
        let pipeline = vec![doc! { "$match": { "n": { "$gt": 1 } } }];
        run(db, doc! { "create": "v", "viewOn": "c", "pipeline": &pipeline });
        run(db, doc! { "create": "v", "viewOn": "c", "pipeline": &pipeline });
        run(db, doc! { "create": "e", "viewOn": "c" });
        let listed = rows(db, doc! { "listCollections": 1, "filter": { "type": "view" } });
        let expected = doc! {
            "name": "v", "type": "view", "options": { "viewOn": "c", "pipeline": &pipeline }, "info": { "readOnly": true },
        };
        assert_eq!(listed[1], expected);
        assert_eq!(rows(db, doc! { "find": "v" }), [doc! { "_id": 2, "n": 2 }]);
        assert_eq!(run(db, doc! { "count": "v", "query": { "n": 2 } }), doc! { "n": 1, "ok": 1.0 });
        assert_eq!(run(db, doc! { "distinct": "v", "key": "n" }), doc! { "values": [2], "ok": 1.0 });
        run(db, doc! { "explain": { "find": "v" }, "verbosity": "executionStats" });
        run(db, doc! { "collMod": "v", "pipeline": [{ "$match": { "n": 1 } }] });
        assert_eq!(rows(db, doc! { "aggregate": "v", "pipeline": [], "cursor": {} }), [doc! { "_id": 1, "n": 1 }]);
        run(db, doc! { "collMod": "v", "viewOn": "e" });
        refused(db, doc! { "collMod": "v", "viewOn": "v" }, 5);
        refused(db, doc! { "collMod": "v", "validator": {} }, 72);
        refused(db, doc! { "collMod": "c", "viewOn": "v" }, 72);
        refused(db, doc! { "collMod": "nothing", "viewOn": "v" }, 26);
        refused(db, doc! { "create": "w", "pipeline": [] }, 72);
        refused(db, doc! { "create": "w", "viewOn": "" }, 2);
        refused(db, doc! { "create": "w", "viewOn": "c", "validator": { "a": 1 } }, 72);
        refused(db, doc! { "create": "w", "viewOn": "c", "pipeline": [{ "$merge": "d" }] }, 167);
        refused(db, doc! { "create": "w", "viewOn": "c", "pipeline": [1] }, 14);
        refused(db, doc! { "create": "v", "viewOn": "c" }, 48);
        refused(db, doc! { "listIndexes": "v" }, 166);
        refused(db, doc! { "createIndexes": "v", "indexes": [{ "key": { "n": 1 }, "name": "n_1" }] }, 166);
        refused(db, doc! { "dropIndexes": "v", "index": "n_1" }, 166);
        refused(db, doc! { "findAndModify": "v", "remove": true }, 166);
        assert_eq!(run(db, doc! { "drop": "v" }), doc! { "ns": "test.v", "ok": 1.0 });
        assert_eq!(rows(db, doc! { "find": "v" }), Vec::<Document>::new());
    });
}

#[test]
fn an_index_is_named_by_its_keys_if_no_other_has_them() {
    on_every_store(|db| {
        let index = |name: &str, options: Document| {
            let mut spec = doc! { "key": { "n": 1 }, "name": name };
            spec.extend(options);
            run(db, doc! { "createIndexes": "c", "indexes": [spec] });
        };
        index("plain", doc! {});
        let hidden = run(db, doc! { "collMod": "c", "index": { "keyPattern": { "n": 1.0 }, "hidden": true } });
        assert_eq!(hidden, doc! { "hidden_old": false, "hidden_new": true, "ok": 1.0 });
        index("some", doc! { "partialFilterExpression": { "n": { "$gt": 1 } } });
        refused(db, doc! { "collMod": "c", "index": { "keyPattern": { "n": 1 }, "hidden": false } }, 181);
        refused(db, doc! { "dropIndexes": "c", "index": { "n": 1 } }, 181);
        run(db, doc! { "dropIndexes": "c", "index": "some" });
        run(db, doc! { "dropIndexes": "c", "index": { "n": 1.0 } });
        refused(db, doc! { "dropIndexes": "c", "index": { "n": 1 } }, 27);
        refused(db, doc! { "dropIndexes": "c", "index": { "_id": 1.0 } }, 72);
        refused(db, doc! { "collMod": "c", "index": { "name": "_id_", "hidden": true } }, 2);
    });
}

#[test]
fn the_index_on_id_has_the_definition_that_it_always_has() {
    on_every_store(|db| {
        let create = |id_index: Document, collation: Option<Document>| {
            let mut command = doc! { "create": "c", "idIndex": id_index };
            command.extend(collation.map(|collation| ("collation".into(), collation.into())));
            command
        };
        let english = || doc! { "locale": "en" };
        refused(db, create(doc! {}, None), 9);
        refused(db, create(doc! { "key": { "a": 1 }, "name": "_id_" }, None), 2);
        refused(db, create(doc! { "key": { "_id": 1 }, "name": "_id_", "sparse": true }, None), 197);
        let collated = doc! { "key": { "_id": 1 }, "name": "_id_", "collation": english() };
        refused(db, create(collated.clone(), None), 2);
        refused(db, doc! { "create": "v", "viewOn": "c", "idIndex": { "key": { "_id": 1 }, "name": "_id_" } }, 72);
        run(db, create(doc! { "key": { "_id": 1.0 }, "name": "other" }, None));
        assert_eq!(rows(db, doc! { "listIndexes": "c" }), [doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" }]);
        refused(db, doc! { "createIndexes": "c", "indexes": [collated.clone()] }, 2);
        run(db, doc! { "drop": "c" });
        run(db, create(collated.clone(), Some(english())));
        run(db, doc! { "createIndexes": "c", "indexes": [collated] });
    });
}

#[test]
fn a_collation_that_is_stored_has_a_locale() {
    on_every_store(|db| {
        refused(db, doc! { "create": "c", "collation": {} }, 40414);
        refused(db, doc! { "create": "c", "collation": { "locale": "en", "version": "1" } }, 161);
        refused(db, doc! { "create": "v", "viewOn": "c", "collation": {} }, 40414);
        let index = doc! { "key": { "n": 1 }, "name": "n", "collation": {} };
        refused(db, doc! { "createIndexes": "c", "indexes": [index] }, 2);
        rows(db, doc! { "find": "c", "collation": {} });
    });
}

#[test]
fn a_find_over_a_view_has_the_options_of_an_aggregation() {
    on_every_store(|db| {
        run(db, doc! { "create": "v", "viewOn": "c" });
        for option in ["noCursorTimeout", "allowPartialResults", "readOnce", "singleBatch"] {
            refused(db, doc! { "find": "v", option: true }, 168);
            rows(db, doc! { "find": "v", option: false });
            rows(db, doc! { "find": "c", option: true });
        }
        rows(db, doc! { "find": "v", "singleBatch": true, "limit": 1 });
        refused(db, doc! { "find": "v", "projection": { "a.$": 1 } }, 31324);
        refused(db, doc! { "find": "v", "projection": { "a": { "$slice": 1 } } }, 28667);
    });
}
