//! `copy_to` from every store to every store.

use std::sync::atomic::{AtomicU64, Ordering};

use bson::{RawDocumentBuf, Timestamp, doc, rawdoc};
use slate_core::{
    CancelToken, CollectionOptions, Database, ErrorKind, ExistingCollections, Index, RenameTarget, Validator,
};
use tempfile::tempdir;

use super::common::{STORES, TestDatabase, on_every_store};

fn filled(test: &TestDatabase) {
    let users = test.collection("users");
    users.create_index(Index::on(doc! { "mail": 1 }).unique().sparse()).run().unwrap();
    users
        .create_index(Index::on(doc! { "age": -1 }).only(doc! { "age": { "$gt": 20 } }).named("adults"))
        .run()
        .unwrap();
    users.create_index(Index::on(doc! { "$**": 1 }).wildcard_projection(doc! { "tags": 1 })).run().unwrap();
    users
        .create_index(
            Index::on(doc! { "age": 1, "$**": -1, "tags": 1 }).wildcard_projection(doc! { "age": 0, "tags": 0 }),
        )
        .run()
        .unwrap();
    let documents: Vec<RawDocumentBuf> =
        (0..2_500).map(|n| rawdoc! { "_id": n, "mail": format!("m{n}"), "age": n % 90, "tags": [n, n + 1] }).collect();
    users.insert_many(&documents).run().unwrap();
    test.collection("empty").create_with(&CollectionOptions::new().collation(doc! { "locale": "sv" })).unwrap();
    test.collection("empty").create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    let simple = Index::on(doc! { "b": 1 }).collation(doc! { "locale": "simple" });
    test.collection("empty").create_index(simple).run().unwrap();
    test.collection("a.b").insert_one(&rawdoc! { "_id": "x" }).unwrap();
}

/// Everything that a copy must keep.
fn contents(db: &Database) -> Vec<(String, Vec<String>, Vec<RawDocumentBuf>)> {
    let describe = |name: String, indexes: Vec<slate_core::IndexDescription>| {
        let indexes = indexes.iter().map(|index| format!("{index:?}")).collect();
        let documents = db.collection::<RawDocumentBuf>(&name).find(doc! {}).sort(doc! { "_id": 1 }).collect().unwrap();
        (name, indexes, documents)
    };
    db.list_collections().unwrap().into_iter().map(|found| describe(found.name, found.indexes)).collect()
}

#[test]
fn a_copy_equals_its_source_on_every_pair_of_stores() {
    on_every_store(|source| {
        filled(&source);
        for store in STORES {
            let target = store.open();
            let copied = source.db.copy_to(&target.db).run().unwrap();
            assert_eq!((copied.collections, copied.documents, copied.indexes), (3, 2_501, 6));
            assert_eq!(contents(&target.db), contents(&source.db));
            assert!(target.db.verify().run().unwrap().is_sound());
            let refused = target.collection("users").insert_one(&rawdoc! { "_id": -1, "mail": "m7" }).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::DuplicateKey);
            let target = target.reopen();
            assert!(!target.store.is_persistent() || contents(&target.db) == contents(&source.db));
        }
    });
}

#[test]
fn a_copy_has_the_documents_that_violate_a_validator() {
    on_every_store(|source| {
        let people = source.collection("people");
        people.insert_one(&rawdoc! { "_id": 1 }).unwrap();
        people.set_validator(Some(Validator::new(doc! { "name": { "$exists": true } }))).unwrap();
        let target = STORES[0].open();
        assert_eq!(source.db.copy_to(&target.db).run().unwrap().documents, 1);
        assert_eq!(contents(&target.db), contents(&source.db));
        assert_eq!(target.collection("people").insert_one(&rawdoc! { "_id": 2 }).unwrap_err().code(), 121);
    });
}

#[test]
fn a_copy_has_the_empty_timestamps_of_its_source() {
    on_every_store(|source| {
        let empty = rawdoc! { "_id": 1, "t": Timestamp { time: 0, increment: 0 } };
        source.collection("c").insert_many([&empty]).bypass_empty_ts_replacement(true).run().unwrap();
        let target = STORES[0].open();
        source.db.copy_to(&target.db).run().unwrap();
        assert_eq!(target.collection("c").find_one(doc! {}).run().unwrap(), Some(empty));
    });
}

#[test]
fn a_copy_to_a_url_is_closed_when_it_returns() {
    on_every_store(|source| {
        filled(&source);
        for store in STORES {
            let folder = tempdir().unwrap();
            let url = store.url_in(folder.path());
            if !store.is_persistent() {
                assert_eq!(source.db.copy_to(&*url).run().unwrap_err().kind(), ErrorKind::Invalid);
                continue;
            }
            source.db.copy_to(&*url).run().unwrap();
            assert_eq!(contents(&Database::open(&url).unwrap()), contents(&source.db));
            let refused = source.db.copy_to(url).run().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Exists);
            assert!(refused.message().contains("has a collection \"a.b\" already"), "{refused}");
        }
    });
}

#[test]
fn a_copy_sees_one_commit_while_the_source_is_written_to() {
    on_every_store(|source| {
        filled(&source);
        let before = contents(&source.db);
        let target = source.store.open();
        let changed = AtomicU64::new(0);
        let change = |_: &slate_core::CopyProgress<'_>| {
            let n = changed.fetch_add(1, Ordering::Relaxed);
            source.collection("users").delete_many(doc! { "_id": { "$gte": 2_400 } }).run().unwrap();
            source.collection("users").insert_one(&rawdoc! { "mail": format!("new{n}") }).unwrap();
            source.collection(&format!("new{n}")).create().unwrap();
        };
        source.db.copy_to(&target.db).progress(change).run().unwrap();
        assert!(changed.load(Ordering::Relaxed) > 3);
        assert_eq!(contents(&target.db), before);
    });
}

#[test]
fn existing_collections_are_refused_kept_or_replaced() {
    on_every_store(|source| {
        filled(&source);
        let target = source.store.open();
        target.collection("other").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        let copy = |existing| source.db.copy_to(&target.db).existing(existing).run();

        assert_eq!(source.db.copy_to(&target.db).run().unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(target.db.list_collection_names().unwrap(), ["other"]);
        copy(ExistingCollections::Keep).unwrap();
        assert_eq!(target.db.list_collection_names().unwrap(), ["a.b", "empty", "other", "users"]);
        assert_eq!(copy(ExistingCollections::Keep).unwrap_err().kind(), ErrorKind::Exists);

        target.collection("users").delete_many(doc! {}).run().unwrap();
        target.collection("users").create_index(Index::on(doc! { "old": 1 })).run().unwrap();
        copy(ExistingCollections::Replace).unwrap();
        let mut copied = contents(&target.db);
        copied.retain(|(name, ..)| name != "other");
        assert_eq!(copied, contents(&source.db));
        assert_eq!(target.collection("other").count_documents(doc! {}).run().unwrap(), 1);

        // A database can be copied onto itself.
        let before = contents(&source.db);
        source.db.copy_to(&source.db).existing(ExistingCollections::Replace).run().unwrap();
        assert_eq!(contents(&source.db), before);
    });
}

#[test]
fn a_copy_that_fails_leaves_the_target_as_it_was() {
    on_every_store(|source| {
        filled(&source);
        let target = source.store.open();
        target.collection("users").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        let before = contents(&target.db);
        let token = CancelToken::new();
        let cancel = |at: &slate_core::CopyProgress<'_>| {
            if at.documents > 0 {
                token.cancel();
            }
        };
        let copy = source.db.copy_to(&target.db).existing(ExistingCollections::Replace).cancel(token.clone());
        assert_eq!(copy.progress(cancel).run().unwrap_err().kind(), ErrorKind::Interrupted);
        assert_eq!(contents(&target.db), before);

        // Unfinished collections that a crashed copy has left are not copied, and the next copy into the database removes them.
        let left = target.collection("left");
        left.insert_one(&rawdoc! { "_id": 1 }).unwrap();
        left.rename("slate.copy.7", RenameTarget::MustNotExist).unwrap();
        target.collection("users").drop().unwrap();
        let third = source.store.open();
        assert_eq!(target.db.copy_to(&third.db).run().unwrap().collections, 0);
        source.db.copy_to(&target.db).run().unwrap();
        assert_eq!(contents(&target.db), contents(&source.db));
    });
}

#[test]
fn a_copy_reports_collections_and_indexes() {
    on_every_store(|source| {
        filled(&source);
        let target = source.store.open();
        let mut seen = Vec::new();
        let note = |at: &slate_core::CopyProgress<'_>| {
            assert!(at.documents <= at.total, "{at:?}");
            seen.push((at.collection.to_owned(), at.index.map(str::to_owned), at.documents, at.total));
        };
        source.db.copy_to(&target.db).progress(note).run().unwrap();
        let documents: Vec<_> = seen.iter().filter(|(_, index, ..)| index.is_none()).collect();
        assert_eq!(documents.first().unwrap().0, "a.b");
        let users = |documents| ("users".to_owned(), None, documents, 2_500);
        assert!(
            [users(0), users(1_000), users(2_000), users(2_500)].iter().all(|at| documents.contains(&at)),
            "{seen:?}"
        );
        assert!(seen.iter().any(|(_, index, ..)| index.as_deref() == Some("adults")), "{seen:?}");
    });
}

#[cfg(feature = "async")]
#[test]
fn a_copy_is_awaited() {
    on_every_store(|source| {
        filled(&source);
        let target = source.store.open();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let db = slate_core::aio::Database::from(source.db.clone());
            let to = slate_core::aio::Database::from(target.db.clone());
            let calls = std::sync::Arc::new(AtomicU64::new(0));
            let counter = std::sync::Arc::clone(&calls);
            let count = move |_: &slate_core::CopyProgress<'_>| {
                counter.fetch_add(1, Ordering::Relaxed);
            };
            assert_eq!(db.copy_to(&to).progress(count).await.unwrap().documents, 2_501);
            assert!(calls.load(Ordering::Relaxed) > 3);
            assert_eq!(db.copy_to(&to).await.unwrap_err().kind(), ErrorKind::Exists);
            db.copy_to(&to).existing(ExistingCollections::Replace).run().await.unwrap();
            assert_eq!(db.snapshot().await.unwrap().list_collections().len(), 3);
        });
        assert_eq!(contents(&target.db), contents(&source.db));
    });
}
