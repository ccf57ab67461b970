//! Operations on whole collections: rename, statistics, verify, backup, compact, close.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::{path::Path, time::Duration};

use bson::{RawDocumentBuf, doc, rawdoc};
use common::{TestDatabase, elsewhere, on_every_store};
use slate_core::{
    CancelToken, Database, Durability, ErrorKind, ExplainVerbosity, Index, IndexState, RenameTarget, VerifyFindingKind,
};
use slate_query::raw::{self, Doc};
use slate_store::{Bounds, Cursor, Edge, Keyspace, Snapshot, Store, Transaction, TransactionExt, memory::MemoryStore};

fn documents(count: i32) -> Vec<RawDocumentBuf> {
    (0..count).map(|n| rawdoc! { "_id": n, "a": n % 7, "b": [n, -n - 1], "c": format!("c{n}") }).collect()
}

fn filled(test: &TestDatabase, count: i32) {
    let c = test.collection("c");
    c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    c.create_index(Index::on(doc! { "b": -1 })).run().unwrap();
    c.create_index(Index::on(doc! { "c": 1 }).unique()).run().unwrap();
    c.insert_many(&documents(count)).run().unwrap();
}

#[test]
fn several_indexes_are_created_and_a_database_is_emptied() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_many(&documents(20)).run().unwrap();
        let indexes = [Index::on(doc! { "a": 1 }), Index::on(doc! { "c": 1 }).unique().named("c")];
        assert_eq!(c.create_indexes(indexes).unwrap(), ["a_1", "c"]);
        // The first stays where the second fails.
        let failing = [Index::on(doc! { "b": 1 }), Index::on(doc! { "a": -1 }).unique()];
        assert_eq!(c.create_indexes(failing).unwrap_err().code(), 11000);
        let names: Vec<String> = c.list_indexes().unwrap().into_iter().map(|index| index.name).collect();
        assert_eq!(names, ["a_1", "c", "b_1"]);

        let found = c.find(doc! { "a": 3 }).sort(doc! { "_id": -1 }).collect().unwrap();
        assert_eq!(found.len(), 3);
        let grouped = c.aggregate([doc! { "$sortByCount": "$a" }]).collect().unwrap();
        assert_eq!(grouped.len(), 7);

        test.collection("d").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        test.db.drop_database().unwrap();
        assert_eq!(test.db.list_collection_names().unwrap(), Vec::<String>::new());
        test.collection("d").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        assert_eq!(test.db.list_collection_names().unwrap(), ["d"]);
        test.db.drop_database().unwrap();
        test.db.drop_database().unwrap();
    });
}

#[test]
fn a_renamed_collection_keeps_its_documents_and_indexes() {
    on_every_store(|test| {
        filled(&test, 100);
        let old = test.collection("c");
        let before = old.list_indexes().unwrap();
        let renamed = old.rename("d", RenameTarget::MustNotExist).unwrap();
        assert_eq!((renamed.name(), renamed.count_documents(doc! { "a": 3 }).run().unwrap()), ("d", 14));
        assert_eq!(renamed.list_indexes().unwrap(), before);
        assert!(!old.exists().unwrap());
        assert_eq!(old.count_documents(doc! {}).run().unwrap(), 0);
        assert_eq!(renamed.insert_one(&rawdoc! { "c": "c5" }).unwrap_err().code(), 11000);
        assert!(renamed.find(doc! { "a": 3 }).explain(ExplainVerbosity::QueryPlanner).unwrap().uses_index());
        drop((old, renamed));
        let test = test.reopen();
        assert_eq!(test.db.list_collection_names().unwrap(), ["d"]);
        assert!(test.db.verify().run().unwrap().is_sound());
    });
}

#[test]
fn rename_replaces_another_collection_only_on_request() {
    on_every_store(|test| {
        test.collection("a").insert_one(&rawdoc! { "_id": "a" }).unwrap();
        let b = test.collection("b");
        b.insert_one(&rawdoc! { "_id": "b" }).unwrap();
        let refused = |to: &str, existing| test.collection("a").rename(to, existing).unwrap_err();
        let there = refused("b", RenameTarget::MustNotExist);
        assert_eq!((there.kind(), there.code()), (ErrorKind::Exists, 48));
        assert_eq!(refused("a", RenameTarget::DropExisting).code(), 20);
        assert_eq!(refused("no$", RenameTarget::DropExisting).code(), 73);
        let missing = test.collection("none").rename("x", RenameTarget::DropExisting).unwrap_err();
        assert_eq!((missing.kind(), missing.code()), (ErrorKind::NotFound, 26));
        assert!(b.find_by_id("b").unwrap().is_some(), "a rejected rename does not change the target");

        let snapshot = test.db.snapshot().unwrap();
        test.collection("a").rename("b", RenameTarget::DropExisting).unwrap();
        assert_eq!(test.db.list_collection_names().unwrap(), ["b"]);
        assert!(b.find_by_id("a").unwrap().is_some() && b.find_by_id("b").unwrap().is_none());
        assert!(snapshot.collection::<RawDocumentBuf>("b").find_by_id("b").unwrap().is_some());
    });
}

#[test]
fn a_rename_in_a_transaction_is_committed_or_rolled_back() {
    on_every_store(|test| {
        test.collection("a").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        let swap = |tx: &slate_core::Transaction| {
            tx.collection::<RawDocumentBuf>("a").rename("tmp", RenameTarget::MustNotExist)?;
            tx.collection("a").insert_one(&rawdoc! { "_id": 2 })?;
            tx.collection::<RawDocumentBuf>("a").rename("b", RenameTarget::MustNotExist)?;
            tx.collection::<RawDocumentBuf>("tmp").rename("a", RenameTarget::MustNotExist).map(drop)
        };
        let tx = test.db.begin().unwrap();
        swap(&tx).unwrap();
        tx.rollback();
        assert_eq!(test.db.list_collection_names().unwrap(), ["a"]);
        test.db.transact(swap).unwrap();
        assert_eq!(test.db.list_collection_names().unwrap(), ["a", "b"]);
        assert!(test.collection("a").find_by_id(1).unwrap().is_some());
        assert!(test.collection("b").find_by_id(2).unwrap().is_some());
    });
}

#[test]
fn a_writer_that_began_before_a_rename_conflicts_and_is_retried() {
    on_every_store(|test| {
        if test.db.store() == "redb" {
            return;
        }
        test.collection("a").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        let tx = test.db.begin().unwrap();
        tx.collection("a").insert_one(&rawdoc! { "_id": 2 }).unwrap();
        elsewhere(|| test.collection("a").rename("b", RenameTarget::MustNotExist)).unwrap();
        assert!(tx.commit().unwrap_err().is_retryable());
        assert_eq!(test.collection("b").count_documents(doc! {}).run().unwrap(), 1);
    });
}

#[test]
fn collections_are_listed_with_indexes_and_sizes() {
    on_every_store(|test| {
        filled(&test, 10);
        test.collection("empty").create().unwrap();
        let listed = test.db.list_collections().unwrap();
        assert_eq!(listed.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["c", "empty"]);
        let names: Vec<_> = listed[0].indexes.iter().map(|index| (index.name.as_str(), index.state)).collect();
        assert_eq!(names, [("a_1", IndexState::Ready), ("b_-1", IndexState::Ready), ("c_1", IndexState::Ready)]);

        let stats = test.collection("c").stats().unwrap();
        let documents: usize = documents(10).iter().map(|document| document.as_bytes().len()).sum();
        assert_eq!(stats.documents, 10);
        assert!(stats.bytes > u64::try_from(documents).unwrap());
        assert_eq!(stats.indexes.iter().map(|index| index.entries).collect::<Vec<_>>(), [10, 20, 10]);
        assert!(stats.indexes.iter().all(|index| index.bytes > index.entries));
        assert_eq!(test.collection("empty").stats().unwrap(), slate_core::CollectionStats::default());
        assert_eq!(test.collection("none").stats().unwrap(), slate_core::CollectionStats::default());
        let whole = test.db.stats().unwrap();
        assert_eq!(whole.document_bytes(), u64::try_from(documents).unwrap());
        assert_eq!(whole.collections["c"], stats);
        assert_eq!(whole.index_bytes(), stats.indexes.iter().map(|index| index.bytes).sum::<u64>());
        assert_eq!(whole.record_overhead_bytes(), stats.bytes - stats.document_bytes);
        let on_disk = test.db.store() != "memory";
        assert_eq!(whole.storage_overhead_bytes().is_some(), on_disk);
        assert!(!on_disk || whole.storage.free < whole.storage.on_disk, "{whole:?}");
        assert!(whole.to_string().contains("c: index b_-1, 20 entries"), "{whole}");

        let in_transaction = test.db.transact(|tx| {
            tx.collection("c").insert_one(&rawdoc! { "b": [1, 2, 3] })?;
            tx.collection::<RawDocumentBuf>("c").stats()
        });
        assert_eq!(in_transaction.unwrap().indexes[1].entries, 23);
    });
}

#[test]
fn verify_finds_no_damage_reports_progress_and_can_be_cancelled() {
    on_every_store(|test| {
        filled(&test, 3_000);
        test.collection("c").delete_many(doc! { "a": 3 }).run().unwrap();
        test.collection("c").update_many(doc! { "a": 4 }, doc! { "$push": { "b": 4 } }).run().unwrap();
        let mut reported = Vec::new();
        let report =
            test.collection("c").verify().progress(|progress| reported.push(progress.documents)).run().unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        assert_eq!(report.documents, test.collection("c").count_documents(doc! {}).run().unwrap());
        let entries: u64 = test.collection("c").stats().unwrap().indexes.iter().map(|index| index.entries).sum();
        assert_eq!((report.entries, reported), (entries, vec![1_024, 2_048]));
        let token = CancelToken::new();
        token.cancel();
        assert_eq!(test.collection("c").verify().cancel(token).run().unwrap_err().code(), 11601);
        let late = test.db.verify().deadline(Duration::ZERO).run();
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Interrupted);
    });
}

/// Returns all entries of a keyspace.
fn entries(store: &MemoryStore, keyspace: Keyspace) -> Vec<(Vec<u8>, Vec<u8>)> {
    fn scan(snapshot: &impl Snapshot, keyspace: Keyspace) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut cursor = snapshot.cursor(keyspace, Bounds::ALL).unwrap();
        let (mut found, mut more) = (Vec::new(), cursor.seek(Edge::First).unwrap());
        while more {
            let (key, value) = cursor.current().unwrap();
            found.push((key.to_vec(), value.to_vec()));
            more = cursor.step_forward().unwrap();
        }
        found
    }
    scan(&store.snapshot().unwrap(), keyspace)
}

/// Opens a database with one collection and one index and damages its store: records are in keyspace 1, entries in 2.
fn damaged(index: Index, damage: impl FnOnce(&MemoryStore, &mut <MemoryStore as Store>::Transaction)) -> Database {
    try_damaged(index, damage).unwrap()
}

fn try_damaged(
    index: Index,
    damage: impl FnOnce(&MemoryStore, &mut <MemoryStore as Store>::Transaction),
) -> slate_core::Result<Database> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let db = Database::open("memory:").unwrap();
    let c = db.collection::<RawDocumentBuf>("c");
    c.create_index(index).run().unwrap();
    c.insert_many(&[rawdoc! { "_id": 1, "a": 1 }, rawdoc! { "_id": 2, "a": 2 }, rawdoc! { "_id": 3, "a": 3 }])
        .run()
        .unwrap();
    db.backup(at("whole")).unwrap();
    let store = MemoryStore::restore(&at("whole")).unwrap();
    let mut transaction = store.begin(Duration::ZERO).unwrap();
    damage(&store, &mut transaction);
    transaction.commit(Durability::Sync).unwrap();
    store.backup(&at("damaged")).unwrap();
    Database::open(&format!("memory:{}", at("damaged").display()))
}

#[test]
fn a_database_of_another_format_is_rejected() {
    let opened = |format: u32| {
        try_damaged(Index::on(doc! { "a": 1 }), |_, tx| tx.put(Keyspace(0), b"f", &format.to_be_bytes()).unwrap())
    };
    // 3 is the number of a database that logs changes.
    assert!(opened(2).is_ok() && opened(3).is_ok());
    assert_eq!(opened(1).unwrap_err().kind(), ErrorKind::WrongFormat);
    assert_eq!(opened(4).unwrap_err().kind(), ErrorKind::NewerVersion);
}

const RECORDS: Keyspace = Keyspace(1);
const ENTRIES: Keyspace = Keyspace(2);

fn faults(db: &Database) -> Vec<VerifyFindingKind> {
    let report = db.verify().run().unwrap();
    assert_eq!(u64::try_from(report.findings.len()).unwrap(), report.finding_count);
    assert!(report.findings.iter().all(|fault| fault.collection == "c" && !fault.to_string().is_empty()));
    let mut kinds: Vec<VerifyFindingKind> = report.findings.iter().map(|fault| fault.kind).collect();
    kinds.sort_by_key(|kind| *kind as u8);
    kinds
}

#[test]
fn verify_finds_each_kind_of_damage() {
    for unique in [false, true] {
        let index = || if unique { Index::on(doc! { "a": 1 }).unique() } else { Index::on(doc! { "a": 1 }) };
        let untouched = damaged(index(), |_, _| {});
        assert_eq!(faults(&untouched), []);
        let missing = damaged(index(), |store, tx| tx.delete(ENTRIES, &entries(store, ENTRIES)[1].0).unwrap());
        assert_eq!(faults(&missing), [VerifyFindingKind::MissingEntry]);
        let orphan = damaged(index(), |store, tx| tx.delete(RECORDS, &entries(store, RECORDS)[1].0).unwrap());
        assert_eq!(faults(&orphan), [VerifyFindingKind::StrayEntry]);
        let stray = damaged(index(), |store, tx| {
            let (mut key, value) = entries(store, ENTRIES)[1].clone();
            key[1] += 50;
            tx.put(ENTRIES, &key, &value).unwrap();
        });
        assert_eq!(faults(&stray), [VerifyFindingKind::StrayEntry]);
        let wrong = damaged(index(), |store, tx| {
            let (key, mut value) = entries(store, ENTRIES)[1].clone();
            value.push(0x03);
            tx.put(ENTRIES, &key, &value).unwrap();
        });
        assert_eq!(faults(&wrong), [VerifyFindingKind::WrongEntry]);
        let invalid = damaged(index(), |store, tx| {
            let (key, value) = entries(store, RECORDS)[1].clone();
            tx.put(RECORDS, &key, &value[..value.len() - 1]).unwrap();
        });
        assert_eq!(faults(&invalid), [VerifyFindingKind::InvalidDocument]);
        let wrong_table = damaged(index(), |store, tx| {
            // The field table begins with the number of fields, followed by a name byte and an offset for each.
            let (key, mut value) = entries(store, RECORDS)[1].clone();
            value[5] += 1;
            tx.put(RECORDS, &key, &value).unwrap();
        });
        assert_eq!(faults(&wrong_table), [VerifyFindingKind::InvalidDocument]);
        let misplaced = damaged(index(), |store, tx| {
            let records = entries(store, RECORDS);
            tx.put(RECORDS, &records[1].0, &records[0].1).unwrap();
        });
        assert!(faults(&misplaced).contains(&VerifyFindingKind::MisplacedDocument));
        let not_noted = damaged(index(), |store, tx| {
            let (key, _) = entries(store, RECORDS)[1].clone();
            let mut stored = Vec::new();
            raw::store(Doc::from(&rawdoc! { "_id": 2, "a": [2] }), &mut stored);
            tx.put(RECORDS, &key, &stored).unwrap();
        });
        assert!(faults(&not_noted).contains(&VerifyFindingKind::WrongCatalog));
    }
}

#[test]
fn a_backup_during_writes_opens_with_the_same_url_scheme() {
    on_every_store(|test| {
        filled(&test, 500);
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let c = test.collection("c");
                for n in 0.. {
                    c.insert_many(&[rawdoc! { "c": format!("x{n}") }, rawdoc! { "c": format!("y{n}") }]).run().unwrap();
                    if done.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                }
            });
            test.db.backup(&copy).unwrap();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(test.db.backup(&copy).unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(test.db.backup(folder.path().join("no/such")).unwrap_err().kind(), ErrorKind::NotFound);

        let restored = Database::open(&format!("{}:{}", test.db.store(), copy.display())).unwrap();
        let c = restored.collection::<RawDocumentBuf>("c");
        assert!(restored.verify().run().unwrap().is_sound());
        assert_eq!(c.count_documents(doc! { "_id": { "$type": "int" } }).run().unwrap(), 500);
        assert_eq!(c.count_documents(doc! { "c": /* of one commit */ bson::Regex { pattern: "^x".try_into().unwrap(), options: "".try_into().unwrap() } }).run().unwrap() * 2 + 500, c.count_documents(doc! {}).run().unwrap());
        c.insert_one(&rawdoc! { "_id": "new" }).unwrap();
        assert!(test.collection("c").find_by_id("new").unwrap().is_none());
    });
    let missing = Database::open("memory:/no/such/file").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn compact_frees_space_and_keeps_all_documents() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_many(&(0..2_000).map(|n| rawdoc! { "_id": n, "text": "x".repeat(2_000) }).collect::<Vec<_>>())
            .run()
            .unwrap();
        c.delete_many(doc! { "_id": { "$gte": 100 } }).run().unwrap();
        let before = test.db.size().unwrap().on_disk;
        if test.db.store() == "redb" {
            let snapshot = test.db.snapshot().unwrap();
            assert!(test.db.compact().unwrap_err().is_retryable());
            drop(snapshot);
        }
        let mut calls = 0;
        let ended = test.db.compact_while(|examined, total| {
            calls += 1;
            assert!(examined <= total);
            std::ops::ControlFlow::Break(())
        });
        assert_eq!(ended.unwrap().is_break(), calls == 1);
        assert!(test.db.compact_while(|_, _| std::ops::ControlFlow::Continue(())).unwrap().is_continue());
        test.db.compact().unwrap();
        if let (Some(before), Some(after)) = (before, test.db.size().unwrap().on_disk) {
            assert!(test.db.store() != "redb" || after < before, "{after} of {before}");
        }
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), 100);
        c.insert_one(&rawdoc! {}).unwrap();
        drop(c);
        assert!(test.reopen().db.verify().run().unwrap().is_sound());
    });
}

#[test]
fn closing_affects_every_handle_and_the_database_can_be_reopened() {
    on_every_store(|test| {
        let url = test.url();
        let c = test.collection("c");
        c.insert_one(&rawdoc! { "_id": 1 }).unwrap();
        let snapshot = test.db.snapshot().unwrap();
        let other = test.db.clone();
        test.db.clone().close().unwrap();
        other.close().unwrap();
        assert_eq!(c.insert_one(&rawdoc! {}).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(c.count_documents(doc! {}).run().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(test.db.begin().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(test.db.store(), Database::open(&url).map_or(test.db.store(), |db| db.store()));
        assert_eq!(
            snapshot.collection::<RawDocumentBuf>("c").count_documents(doc! {}).run().unwrap(),
            1,
            "an open cursor continues"
        );
        drop(snapshot);
        if Path::new(url.split_once(':').unwrap().1).exists() {
            let again = Database::open(&url).unwrap();
            assert_eq!(again.collection::<RawDocumentBuf>("c").count_documents(doc! {}).run().unwrap(), 1);
        }
    });
}

#[test]
fn a_transaction_open_at_the_close_can_still_be_committed() {
    on_every_store(|test| {
        let tx = test.db.begin().unwrap();
        tx.collection("c").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        test.db.clone().close().unwrap();
        tx.commit().unwrap();
    });
}

#[test]
fn a_value_that_is_no_document_is_named_with_its_collection_and_the_path_of_the_field() {
    #[derive(Debug, serde::Serialize)]
    struct User {
        counts: Vec<u64>,
    }
    let db = Database::open("memory:").unwrap();
    let (users, user) = (db.collection::<User>("users"), User { counts: vec![1, u64::MAX] });
    for error in [
        users.insert_one(&user).unwrap_err(),
        users.insert_many([&user]).run().unwrap_err(),
        users.upsert_many([&user]).unwrap_err(),
        users.replace_one(doc! {}, &user).run().unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.path()), (ErrorKind::Conversion, Some("counts.1")));
        assert_eq!(
            error.message(),
            "a document for collection users could not be converted: the integer 18446744073709551615 exceeds an int64"
        );
    }
}

#[test]
fn a_document_that_does_not_fit_the_type_is_named_with_the_path_of_the_field() {
    #[derive(Debug, serde::Deserialize)]
    struct User {
        #[serde(rename = "address")]
        _address: Address,
    }
    #[derive(Debug, serde::Deserialize)]
    struct Address {
        #[serde(rename = "lines")]
        _lines: Vec<String>,
    }
    let db = Database::open("memory:").unwrap();
    let raw = db.collection::<RawDocumentBuf>("users");
    raw.insert_one(&rawdoc! { "_id": "ada", "address": { "lines": ["a", "b", 3] } }).unwrap();
    let users = raw.with_type::<User>();
    let mut cursor = users.find(doc! {}).cursor().unwrap();
    assert!(cursor.advance().unwrap());
    for error in [
        users.find_by_id("ada").unwrap_err(),
        users.find_one(doc! {}).run().unwrap_err(),
        users.find(doc! {}).run().unwrap().next().unwrap().unwrap_err(),
        cursor.deserialize_current::<User>().unwrap_err(),
        users.find_one_and_delete(doc! {}).run().unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.path()), (ErrorKind::Conversion, Some("address.lines.2")));
        assert_eq!(
            error.message(),
            "the document with _id \"ada\" of collection users could not be converted: invalid type: integer `3`, expected a \
             string"
        );
    }
}
