//! A custom backend passes the conformance suite and serves a database.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "with_store/btree.rs"]
mod btree;

use bson::{Document, doc};
use btree::BTreeStore;
use slate_core::{Database, ErrorKind, Index};
use slate_store::{Capabilities, Keyspace, Result, Size, SizeDetail, Store, Version};
use std::{path::Path, time::Duration};

slate_store_conformance::conformance!(btree_store, |_| crate::btree::BTreeStore::default());

#[test]
fn a_database_over_a_custom_store_works_like_any_other() {
    let db = Database::with_store(BTreeStore::default()).unwrap();
    let films = db.collection::<Document>("films");
    films.create_index(Index::on(doc! { "year": 1 })).run().unwrap();
    films.create_index(Index::on(doc! { "title": 1 }).unique()).run().unwrap();
    let many: Vec<Document> = (0..500)
        .map(|n| doc! { "_id": n, "title": format!("t{n}"), "year": 1950 + n % 70, "tags": ["a", "b"] })
        .collect();
    films.insert_many(&many).run().unwrap();
    assert_eq!(films.count_documents(doc! { "year": { "$gte": 2000 } }).run().unwrap(), 140);
    let refused = films.insert_one(&doc! { "title": "t7" }).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::DuplicateKey);
    films.update_many(doc! { "year": 1951 }, doc! { "$inc": { "year": 1 } }).run().unwrap();
    assert_eq!(films.count_documents(doc! { "year": 1951 }).run().unwrap(), 0);
    db.transact(|tx| tx.collection::<Document>("films").delete_many(doc! { "tags": "a" }).run()).unwrap();
    assert_eq!(films.estimated_document_count().unwrap(), 0);
}

/// The same store, declared as one that other processes also write to.
#[derive(Clone, Default)]
struct SharedStore(BTreeStore);

impl Store for SharedStore {
    type Snapshot = <BTreeStore as Store>::Snapshot;
    type Transaction = <BTreeStore as Store>::Transaction;

    fn capabilities(&self) -> Capabilities {
        Capabilities { exclusive: false, ..self.0.capabilities() }
    }

    fn snapshot(&self) -> Result<Self::Snapshot> {
        self.0.snapshot()
    }

    fn begin(&self, wait: Duration) -> Result<Self::Transaction> {
        self.0.begin(wait)
    }

    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<Version> {
        self.0.drop_keyspace(keyspace, wait)
    }

    fn flush(&self) -> Result<()> {
        self.0.flush()
    }

    fn backup(&self, to: &Path) -> Result<()> {
        self.0.backup(to)
    }

    fn size(&self, detail: SizeDetail) -> Result<Size> {
        self.0.size(detail)
    }
}

#[test]
fn catalog_changes_of_another_process_are_visible_at_once() {
    let store = SharedStore::default();
    let open = || Database::with_store(store.clone()).unwrap();
    let (here, there) = (open(), open());
    let (mine, theirs) = (here.collection::<Document>("c"), there.collection::<Document>("c"));
    mine.insert_one(&doc! { "_id": 1, "a": 1 }).unwrap();
    assert_eq!(theirs.count_documents(doc! {}).run().unwrap(), 1);
    theirs.create_index(Index::on(doc! { "a": 1 }).unique()).run().unwrap();
    // The index is maintained by the process that did not create it.
    mine.insert_one(&doc! { "_id": 2, "a": 2 }).unwrap();
    assert_eq!(theirs.count_documents(doc! { "a": 2 }).run().unwrap(), 1);
    assert_eq!(mine.insert_one(&doc! { "_id": 3, "a": 2 }).unwrap_err().kind(), ErrorKind::DuplicateKey);
    // So is its multikey flag: a multikey index cannot serve every query that another one can.
    assert_eq!(theirs.distinct("a", doc! {}).run().unwrap().len(), 2);
    mine.insert_one(&doc! { "_id": 4, "a": [3, 30] }).unwrap();
    let filter = doc! { "a": { "$elemMatch": { "$gt": 1, "$lt": 10 } } };
    assert_eq!(theirs.count_documents(filter).run().unwrap(), 1);
    let both = doc! { "a": { "$gt": 20, "$lt": 5 } };
    assert_eq!(theirs.count_documents(both).run().unwrap(), 1);
}

#[test]
fn a_serializable_transaction_conflicts_with_writes_of_another_process() {
    use slate_core::{Isolation, TransactionOptions};

    let store = SharedStore::default();
    let (here, there) = (Database::with_store(store.clone()).unwrap(), Database::with_store(store.clone()).unwrap());
    let (mine, theirs) = (here.collection::<Document>("c"), there.collection::<Document>("c"));
    mine.insert_one(&doc! { "_id": 1, "a": 1 }).unwrap();
    let options = TransactionOptions::new().isolation(Isolation::Serializable);
    let transaction = here.begin_with(&options).unwrap();
    let inside = transaction.collection::<Document>("c");
    assert_eq!(inside.count_documents(doc! { "a": { "$gt": 0 } }).run().unwrap(), 1);
    transaction.collection::<Document>("log").insert_one(&doc! { "counted": 1 }).unwrap();
    theirs.insert_one(&doc! { "_id": 2, "a": 2 }).unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
}
