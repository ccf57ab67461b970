//! Unsupported features fail with their name; none is silently ignored.

use bson::{Bson, Document, doc};
use slate_core::{Error, ErrorKind, ExplainVerbosity, Index};

use crate::common::{on_every_store, raw};

#[track_caller]
fn by_name<T: std::fmt::Debug>(result: Result<T, Error>, name: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.unsupported()), (ErrorKind::Unsupported, Some(name)), "{error}");
}

#[test]
fn unsupported_filter_operators_fail_by_name() {
    on_every_store(|database| {
        let records = database.collection("records");
        for (filter, name) in [
            (doc! { "$where": "true" }, "$where"),
            (doc! { "$text": { "$search": "a" } }, "$text"),
            (doc! { "a": { "$near": [0, 0] } }, "$near"),
            (doc! { "a": { "$nearSphere": [0, 0] } }, "$nearSphere"),
            (doc! { "a": { "$geoWithin": {} } }, "$geoWithin"),
            (doc! { "a": { "$geoIntersects": {} } }, "$geoIntersects"),
        ] {
            by_name(records.find(&filter).run(), name);
            by_name(records.find(&filter).explain(ExplainVerbosity::QueryPlanner), name);
            by_name(records.count_documents(&filter).run(), name);
            by_name(records.distinct("a", &filter).run(), name);
            by_name(records.update_many(&filter, doc! { "$set": { "a": 1 } }).run(), name);
            by_name(records.delete_many(&filter).run(), name);
            by_name(records.create_index(Index::on(doc! { "a": 1 }).only(&filter)).run(), name);
        }
    });
}

#[test]
fn unknown_operators_fail_with_their_path() {
    on_every_store(|database| {
        let records = database.collection("records");
        let error = records.find(doc! { "a.b": { "$unheard": 1 } }).run().unwrap_err();
        assert_eq!((error.kind(), error.code(), error.path()), (ErrorKind::Invalid, 2, Some("a.b")), "{error}");
        assert!(error.message().contains("$unheard"), "{error}");
        let error = records.find(doc! { "$unheard": 1 }).run().unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Invalid, 2), "{error}");
        let error = records.update_one(doc! {}, doc! { "$unheard": { "a": 1 } }).run().unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Invalid, 9), "{error}");
    });
}

#[test]
fn regular_expressions_that_no_engine_has_fail_by_name() {
    on_every_store(|database| {
        let records = database.collection("records");
        let refused = [
            ("(?R)", "recursion"),
            ("(a)(?1)", "recursion"),
            ("(?|a|b)", "branch reset"),
            ("a(*COMMIT)", "verb"),
            ("a\\C", "\\C"),
            ("(?<=a+)b", "fixed length"),
        ];
        for (pattern, construct) in refused {
            let error = records.find(doc! { "a": { "$regex": pattern } }).run().unwrap_err();
            assert_eq!(error.code(), 51091, "{pattern}: {error}");
            assert!(error.message().contains(construct), "{pattern}: {error}");
        }
    });
}

#[test]
fn unsupported_kinds_of_indexes_fail_by_name() {
    on_every_store(|database| {
        let records = database.collection("records");
        let create = |keys: Document| records.create_index(Index::on(keys)).run();
        for (kind, name) in [("text", "text"), ("hashed", "hashed"), ("2d", "2d"), ("2dsphere", "2dsphere")] {
            by_name(create(doc! { "a": Bson::from(kind) }), name);
        }
        assert!(!records.exists().unwrap(), "a failed call creates nothing");
    });
}

#[test]
fn unsupported_expressions_fail_by_name() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.insert_one(&raw(&doc! { "_id": 0, "a": 1, "b": 2 })).unwrap();
        let projection = doc! { "c": { "$function": { "body": "", "args": [], "lang": "js" } } };
        by_name(records.find(doc! {}).projection(projection).run(), "$function");
    });
}

#[test]
fn what_does_not_obey_a_collation_fails_by_name() {
    on_every_store(|database| {
        let records = database.collection("records");
        let english = || doc! { "locale": "en", "strength": 2 };
        let merged = records.aggregate([doc! { "$merge": "others" }]).collation(english()).run();
        by_name(merged.map(drop), "collation in $merge");
        let pattern = Bson::from(bson::Regex { pattern: bson::cstr!("a").into(), options: bson::cstr!("").into() });
        let filtered = records.find(doc! { "s": { "$in": [pattern, "b"] } }).collation(english()).run();
        by_name(filtered.map(drop), "a regular expression within an operator beside a collation");
    });
}
