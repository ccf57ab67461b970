//! What errors say, as text and as data.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::{error::Error as _, fmt, io};

use bson::{Bson, Document, bson, cstr, doc, oid::ObjectId, rawdoc};
use common::{elsewhere, on_every_store, raw};
use serde::{Deserialize, Serialize};
use slate_core::{CollectionOptions, Database, Error, ErrorKind, Index, Result, Transaction, View};

/// A service's own error.
#[derive(Debug)]
enum ServiceError {
    OutOfStock(i32),
    Database(Error),
}

impl From<Error> for ServiceError {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

#[test]
fn transact_returns_the_callers_own_error_and_rolls_back() {
    on_every_store(|test| {
        let items = test.db.collection::<Document>("items");
        items.insert_one(&doc! { "_id": 1, "left": 3 }).unwrap();
        let take = |tx: &Transaction, wanted: i32| -> Result<i32, ServiceError> {
            let items = tx.collection::<Document>("items");
            items.update_one(doc! { "_id": 1 }, doc! { "$inc": { "left": -wanted } }).run()?;
            let left = items.find_by_id(1)?.unwrap().get_i32("left").map_err(Error::from)?;
            if left < 0 { Err(ServiceError::OutOfStock(left)) } else { Ok(left) }
        };
        assert!(matches!(test.db.transact(|tx| take(tx, 5)), Err(ServiceError::OutOfStock(-2))));
        assert_eq!(items.find_by_id(1).unwrap(), Some(doc! { "_id": 1, "left": 3 }));
        assert!(matches!(test.db.transact(|tx| take(tx, 2)), Ok(1)));
        let refused = test.db.transact(|tx| -> Result<(), ServiceError> {
            tx.collection("items").insert_one(&doc! { "_id": 1 })?;
            Ok(())
        });
        let Err(ServiceError::Database(error)) = refused else { panic!("it is inserted twice") };
        assert_eq!(error.kind(), ErrorKind::DuplicateKey);
    });
}

#[test]
fn a_conflict_is_retried_whatever_the_callers_error_type() {
    on_every_store(|test| {
        let counters = test.db.collection::<Document>("counters");
        counters.insert_one(&doc! { "_id": 1, "n": 0 }).unwrap();
        let mut attempts = 0;
        let increment = doc! { "$inc": { "n": 1 } };
        let outcome = test.db.transact(|tx| -> Result<(), ServiceError> {
            attempts += 1;
            tx.collection::<Document>("counters").update_one(doc! { "_id": 1 }, &increment).run()?;
            if attempts == 1 {
                let other = || counters.update_one(doc! { "_id": 1 }, &increment).run().map(drop);
                elsewhere(other)?;
            }
            Ok(())
        });
        outcome.unwrap();
        assert_eq!((attempts, counters.find_by_id(1).unwrap()), (2, Some(doc! { "_id": 1, "n": 2 })));
    });
}

#[test]
fn custom_errors_keep_their_cause_and_other_crates_errors_convert() {
    let error = Error::custom(io::Error::other("the printer is on fire"));
    assert_eq!((error.kind(), error.code(), error.code_name().as_str()), (ErrorKind::Custom, 8, "UnknownError"));
    assert!(error.source().unwrap().downcast_ref::<io::Error>().is_some() && !error.is_retryable());

    fn number(document: &Document) -> Result<i32> {
        Ok(document.get_i32("n")?)
    }
    let error = number(&doc! { "n": "one" }).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Conversion, Some("n")));
    let error = (|| -> Result<ObjectId> { Ok(ObjectId::parse_str("zz")?) })().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conversion, "{error}");
}

#[test]
fn debug_reads_like_display_with_the_chain_of_causes() {
    #[derive(Debug)]
    struct Outer(io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the report failed")
        }
    }

    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    let error = Error::custom(Outer(io::Error::other("no paper")));
    assert_eq!(format!("{error:?}"), "the report failed\n  caused by: no paper");

    let folder = tempfile::tempdir().unwrap();
    let url = format!("redb:{}", folder.path().join("db").display());
    let _open = Database::open(&url).unwrap();
    let error = Database::open(&url).unwrap_err();
    let (shown, debugged) = (error.to_string(), format!("{error:?}"));
    assert!(debugged.starts_with(&shown) && shown.starts_with("the database is already open"), "{debugged}");
    assert!(!debugged.contains("Inner") && !debugged.contains("kind:"), "{debugged}");
}

#[test]
fn a_duplicate_key_names_collection_index_and_key_as_data() {
    on_every_store(|test| {
        let users = test.collection("users");
        users.create_index(Index::on(doc! { "org": 1, "mail": -1 }).unique()).run().unwrap();
        users.insert_one(&rawdoc! { "_id": 1, "org": "acme", "mail": "a" }).unwrap();
        let error = users.insert_one(&rawdoc! { "_id": 2, "org": "acme", "mail": "a" }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DuplicateKey);
        assert_eq!((error.collection(), error.index()), (Some("users"), Some("org_1_mail_-1")));
        assert_eq!(error.key(), Some(&doc! { "org": "acme", "mail": "a" }));
        let shown =
            "E11000 duplicate key error collection: users index: org_1_mail_-1 dup key: { org: \"acme\", mail: \"a\" }";
        assert_eq!(error.to_string(), shown);

        let error = users.insert_one(&rawdoc! { "_id": 1 }).unwrap_err();
        assert_eq!((error.index(), error.key()), (Some("_id_"), Some(&doc! { "_id": 1 })));
        assert_eq!(error.id(), Some(&Bson::Int32(1)));

        // Of values that are stored only in part, the key has none.
        let long = "x".repeat(3_000);
        users.create_index(Index::on(doc! { "t": 1 }).unique().sparse()).run().unwrap();
        users.insert_one(&raw(&doc! { "_id": 3, "org": 3, "t": &long })).unwrap();
        let error = users.insert_one(&raw(&doc! { "_id": 4, "org": 4, "t": &long })).unwrap_err();
        assert_eq!((error.index(), error.key()), (Some("t_1"), Some(&doc! {})), "{error}");
    });
}

#[test]
fn a_conflict_names_collection_and_document_or_index_key() {
    on_every_store(|test| {
        let db = &test.db;
        let users = test.collection("users");
        users.create_index(Index::on(doc! { "mail": 1 }).unique().sparse()).run().unwrap();
        users.insert_one(&rawdoc! { "_id": "Ada", "n": 0 }).unwrap();
        let conflict = |write: &dyn Fn(&Transaction, i32)| {
            let (first, second) = (db.begin().unwrap(), db.begin().unwrap());
            write(&first, 1);
            write(&second, 2);
            first.commit().unwrap();
            let error = second.commit().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            error
        };

        let error = conflict(&|tx, n| {
            let users = tx.collection::<Document>("users");
            users.update_one(doc! { "_id": "Ada" }, doc! { "$set": { "n": n } }).run().unwrap();
        });
        assert_eq!((error.collection(), error.index(), error.id()), (Some("users"), None, Some(&"Ada".into())));
        assert!(error.to_string().ends_with("document { \"_id\": \"Ada\" } of collection users"), "{error}");

        let error = conflict(&|tx, n| {
            drop(tx.collection("users").insert_one(&doc! { "_id": n, "mail": "m" }).unwrap());
        });
        assert_eq!((error.collection(), error.index()), (Some("users"), Some("mail_1")), "{error}");
        assert_eq!(error.key(), Some(&doc! { "mail": "m" }));

        let error = conflict(&|tx, n| drop(tx.collection("new").insert_one(&doc! { "_id": n }).unwrap()));
        assert_eq!((error.collection(), error.key()), (Some("new"), None), "{error}");
        assert!(error.to_string().ends_with("collection new"), "{error}");

        let error = conflict(&|tx, n| drop(tx.collection(&format!("new {n}")).insert_one(&doc! {}).unwrap()));
        assert_eq!((error.collection(), error.key()), (None, None), "{error}");
        assert!(error.to_string().ends_with("the list of collections"), "{error}");
    });
}

#[test]
fn a_failed_conversion_names_collection_document_and_path() {
    #[derive(Debug, Serialize, Deserialize)]
    struct User {
        address: Address,
    }
    #[derive(Debug, Serialize, Deserialize)]
    struct Address {
        zip: i32,
    }
    on_every_store(|test| {
        test.collection("users").insert_one(&rawdoc! { "_id": 7, "address": { "zip": "8001" } }).unwrap();
        let error = test.db.collection::<User>("users").find_one(doc! {}).run().unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Conversion, Some("address.zip")));
        assert_eq!((error.collection(), error.id()), (Some("users"), Some(&Bson::Int32(7))));
        assert!(error.to_string().starts_with("the document with _id 7 of collection users"), "{error}");
    });
}

#[test]
fn an_unknown_url_lists_the_stores_of_this_build_and_how_to_add_the_others() {
    for url in ["postgres:there", "nowhere"] {
        let error = Database::open(url).unwrap_err();
        let shown = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(shown.contains("this build has the stores memory:"), "{shown}");
        let is_built = shown.contains(", rocksdb:PATH");
        let is_offered = shown.contains("the feature `rocksdb` of slate-core adds rocksdb:PATH");
        assert_eq!((is_built, is_offered), (cfg!(feature = "rocksdb"), !cfg!(feature = "rocksdb")), "{shown}");
    }
    for (url, path) in
        [("redb://there", "redb:there, or redb:/there"), ("rocksdb:///a/b", "rocksdb:a/b, or rocksdb:/a/b")]
    {
        let error = Database::open(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().ends_with(&format!("the path follows the colon: {path}")), "{error}");
    }
    assert!(Database::open("memory://").unwrap_err().to_string().ends_with("expected memory:"));
    if cfg!(not(feature = "rocksdb")) {
        let error = Database::open("rocksdb:there").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("the feature `rocksdb` of slate-core adds it"), "{error}");
    }
}

#[test]
fn an_impossible_id_finds_nothing_by_id_and_by_filter() {
    on_every_store(|test| {
        let users = test.collection("users");
        users.insert_one(&rawdoc! { "_id": 1 }).unwrap();
        let regex = Bson::from(bson::Regex { pattern: cstr!("a").into(), options: cstr!("").into() });
        for id in [Bson::from(vec![1]), regex, Bson::from("x".repeat(5_000))] {
            assert_eq!(users.find_one(doc! { "_id": { "$eq": &id } }).run().unwrap(), None);
            assert_eq!(users.find_by_id(id).unwrap(), None);
        }
        assert_eq!(users.find_by_id(Bson::Undefined).unwrap_err().kind(), ErrorKind::Invalid);
    });
}

/// Exceeds each limit of `docs/limits.md` that a test can exceed in a second. Others have tests of their own.
#[test]
fn what_exceeds_a_limit_fails_with_the_code_that_the_page_lists() {
    let db = Database::open("memory:").unwrap();
    let c = db.collection::<Document>("c");
    c.insert_one(&doc! { "_id": 1, "a": [1, 2], "b": [1, 2] }).unwrap();
    let numbered = |count: usize| -> Document { (0..count).map(|at| (format!("f{at}"), Bson::Int32(1))).collect() };
    let computed = |expression: Bson| c.aggregate([doc! { "$project": { "e": expression } }]).collect().map(drop);
    let indexed = |keys: Document| c.create_index(Index::on(keys)).run().map(drop);
    let named = |name: String| db.collection::<Document>(&name).insert_one(&doc! {}).map(drop);
    let large = "x".repeat(17 << 20);
    let inner = (0..21).fold(bson!([]), |inner, _| bson!([{ "$unionWith": { "coll": "c", "pipeline": inner } }]));
    let combined = db.collection::<Document>("combined");
    combined.create_index(Index::on(doc! { "a": 1, "w.$**": 1 })).run().unwrap();
    // Each has 30 MiB.
    c.insert_one(&doc! { "_id": 2, "s": "x".repeat(10 << 20) }).unwrap();
    let long = || bson!({ "$concat": ["$s", "$s", "$s"] });
    let variables: Document = (0..9).map(|at| (format!("v{at}"), long())).collect();
    let exceeded: Vec<(&str, i32, Result<()>)> = vec![
        ("A document", 2, c.insert_one(&doc! { "a": &large }).map(drop)),
        (
            "A document",
            17419,
            c.update_one(doc! {}, doc! { "$set": { "x": "x".repeat((16 << 20) - 40) } }).run().map(drop),
        ),
        ("Nesting of documents", 15, c.insert_one(&(0..181).fold(doc! {}, |inner, _| doc! { "d": inner })).map(drop)),
        ("An `_id` as a key", 2, c.insert_one(&doc! { "_id": "x".repeat(2_000) }).map(drop)),
        ("An `_id` that is an array", 53, c.insert_one(&doc! { "_id": [1] }).map(drop)),
        ("Fields of an index", 13103, indexed(numbered(33))),
        ("Arrays in the fields of a compound index", 171, indexed(doc! { "a": 1, "b": 1 })),
        (
            "Entries of one document in a compound wildcard index",
            201,
            combined.insert_one(&doc! { "a": (0..400).collect::<Vec<_>>(), "w": numbered(300) }).map(drop),
        ),
        ("The name of a collection", 73, named("x".repeat(256))),
        ("The name of a collection", 73, named("system.x".into())),
        ("The name of a collection", 73, named("a$b".into())),
        (
            "The name of a database",
            73,
            db.command(raw(&doc! { "insert": "c", "documents": [{}], "$db": "d".repeat(64) })).map(drop),
        ),
        ("Nulls that an update adds", 34, c.update_one(doc! {}, doc! { "$set": { "a.2000000": 1 } }).run().map(drop)),
        ("An argument", 10334, c.find(doc! { "a": &large }).run().map(drop)),
        ("Names in a path", 15, c.update_one(doc! {}, doc! { "$set": { "a.".repeat(200) + "a": 1 } }).run().map(drop)),
        ("Names in a path", 5729100, c.find(doc! { "a.".repeat(200) + "a": 1 }).run().map(drop)),
        ("Fields of a sort", 13103, c.find(doc! {}).sort(numbered(33)).run().map(drop)),
        ("Stages of a pipeline", 7749501, c.aggregate(vec![doc! { "$skip": 1 }; 1_001]).run().map(drop)),
        (
            "Stages that read from each other",
            7749501,
            c.aggregate(vec![doc! { "$redact": "$$KEEP" }; 201]).collect().map(drop),
        ),
        ("The pipelines of such views together", 195, {
            let stage = doc! { "$match": { "a": "x".repeat(9 << 20) } };
            let view = |name: &str, on: &str| {
                let options = CollectionOptions::new().view(&View::new(on, [stage.clone()]));
                db.collection::<Document>(name).create_with(&options)
            };
            view("first", "c").unwrap();
            view("second", "first")
        }),
        (
            "Inner pipelines in each other",
            232,
            c.aggregate([inner.as_array().unwrap().first().unwrap().as_document().unwrap()]).run().map(drop),
        ),
        ("A regular expression", 51091, c.find(doc! { "a": { "$regex": "x".repeat(17_000) } }).run().map(drop)),
        ("A regular expression", 51091, c.find(doc! { "a": { "$regex": "(a{1000}){1000}" } }).run().map(drop)),
        ("A value of an expression", 10334, computed(bson!({ "$concat": vec![long(); 3] }))),
        ("Values that an expression holds", 146, computed(bson!({ "$let": { "vars": variables, "in": 1 } }))),
        (
            "Statements of a command",
            16,
            db.command(raw(&doc! { "insert": "c", "documents": vec![doc! {}; 100_001] })).map(drop),
        ),
    ];
    let page = include_str!("../../docs/limits.md");
    for (row, code, result) in exceeded {
        let line =
            page.lines().find(|line| line.starts_with(&format!("| {row}"))).unwrap_or_else(|| panic!("no row {row}"));
        assert!(line.contains(&code.to_string()), "the row does not list {code}: {line}");
        assert_eq!(result.map_err(|error| error.code()), Err(code), "{row}");
    }
}
