//! A custom backend passes the conformance suite and serves a database.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "with_store/ahead.rs"]
mod ahead;
#[path = "with_store/btree.rs"]
mod btree;
#[cfg(feature = "tikv")]
#[path = "with_store/cluster.rs"]
mod cluster;
#[path = "with_store/distant.rs"]
mod distant;
#[cfg(feature = "redb")]
#[path = "with_store/full_device.rs"]
mod full_device;
#[path = "with_store/leases.rs"]
mod leases;
#[path = "common/passed_on.rs"]
mod passed_on;
#[path = "with_store/shared.rs"]
mod shared;
#[path = "with_store/unsure.rs"]
mod unsure;

use bson::{Document, doc};
use btree::BTreeStore;
use distant::{DistantStore, LocalDistant};
use passed_on::passed_on;
use slate_core::{CancelToken, Database, ErrorKind, Hint, Index, RenameTarget};
use slate_store::{Capabilities, Keyspace, Result, Store, Version, memory::MemoryStore};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

slate_store_conformance::conformance!(btree_store, |_| crate::btree::BTreeStore::default());
slate_store_conformance::conformance!(distant_store, |_| crate::distant::DistantStore::default());

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

/// Of a single write, a transaction, and a change of definitions.
#[test]
fn a_commit_without_an_answer_is_an_unknown_outcome_that_is_not_repeated() {
    let store = unsure::UnsureStore::default();
    let db = Database::with_store(store.clone()).unwrap();
    let rows = db.collection::<Document>("rows");
    rows.insert_one(&doc! { "_id": 1, "n": 0 }).unwrap();
    let increments = |expected: i32| {
        let found = rows.find_by_id(1).unwrap().unwrap();
        assert_eq!(found.get_i32("n").unwrap(), expected, "it is made, once");
    };
    let unknown = |error: slate_core::Error| {
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        assert!(!error.is_retryable(), "{error}");
    };
    store.lose_an_answer();
    unknown(rows.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run().unwrap_err());
    increments(1);
    store.lose_an_answer();
    let mut runs = 0;
    let committed = db.transact(|tx| {
        runs += 1;
        tx.collection::<Document>("rows").update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run().map(drop)
    });
    unknown(committed.unwrap_err());
    assert_eq!(runs, 1);
    increments(2);
    assert_eq!(db.metrics().retries, 0);
    // The catalog that the process knows is that of the store, whatever became of the change.
    store.lose_an_answer();
    unknown(db.collection::<Document>("new").insert_one(&doc! { "_id": 1 }).unwrap_err());
    assert_eq!(db.collection::<Document>("new").count_documents(doc! {}).run().unwrap(), 1);
    let twice = db.collection::<Document>("new").insert_one(&doc! { "_id": 1 }).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::DuplicateKey);
}

/// What others do once, at a chosen time.
type Act = Box<dyn FnOnce() + Send>;

/// The memory store, which lets others act right before it reads a key for a point read.
#[derive(Clone, Default)]
struct RacingStore {
    store: MemoryStore,
    act: Arc<Mutex<Option<Act>>>,
}

impl Store for RacingStore {
    type Snapshot = <MemoryStore as Store>::Snapshot;
    type Transaction = <MemoryStore as Store>::Transaction;

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn snapshot(&self) -> Result<Self::Snapshot> {
        self.store.snapshot()
    }

    fn try_get<R>(
        &self,
        keyspace: Keyspace,
        key: &[u8],
        visitor: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<Option<R>>> {
        let act = self.act.lock().unwrap().take();
        act.into_iter().for_each(|act| act());
        self.store.try_get(keyspace, key, visitor)
    }

    fn begin(&self, wait: Duration) -> Result<Self::Transaction> {
        self.store.begin(wait)
    }

    fn drop_keyspace(&self, keyspace: Keyspace, wait: Duration) -> Result<Version> {
        self.store.drop_keyspace(keyspace, wait)
    }

    passed_on!(store);
}

#[test]
fn a_point_read_finds_no_document_that_was_written_after_its_collection_was_renamed() {
    let store = RacingStore::default();
    let db = Database::with_store(store.clone()).unwrap();
    for id in [1, 2] {
        let a = db.collection::<Document>("a");
        a.insert_one(&doc! { "_id": 1 }).unwrap();
        assert!(a.find_by_id(1).unwrap().is_some());
        let other = db.clone();
        let act = move || {
            let rename = other.collection::<Document>("a").rename("b", RenameTarget::DropExisting);
            rename.unwrap();
            let b = other.collection::<Document>("b");
            // It is inserted, or the one that `a` had is deleted after `a` has another one.
            if id == 2 {
                b.insert_one(&doc! { "_id": 2 }).unwrap();
            } else {
                other.collection::<Document>("a").insert_one(&doc! { "_id": 1 }).unwrap();
                b.delete_one(doc! { "_id": 1 }).run().unwrap();
            }
        };
        *store.act.lock().unwrap() = Some(Box::new(act));
        assert_eq!(a.find_by_id(id).unwrap().is_some(), id == 1, "{id}");
        assert!(store.act.lock().unwrap().is_none(), "the read was a point read");
        db.collection::<Document>("a").drop().unwrap();
    }
}

/// Joins documents with those of another collection that have the same value of `k` in a field. Returns how many have one.
fn joined(inputs: &slate_core::Collection<Document>, from: &str, field: &str) -> usize {
    let lookup = doc! { "$lookup": { "from": from, "localField": "k", "foreignField": field, "as": "found" } };
    let found = inputs.aggregate([lookup]).run().unwrap().map(Result::unwrap);
    found.filter(|row| row.get_array("found").unwrap().len() == 1).count()
}

#[test]
fn a_lookup_at_a_distance_finds_the_matches_of_many_documents_together() {
    let local = LocalDistant::default();
    let rounds = local.rounds.clone();
    let db = Database::with_store(DistantStore::over(local)).unwrap();
    let inputs = db.collection::<Document>("inputs");
    inputs.insert_many(&(0..2_000).map(|n| doc! { "_id": n, "k": n * 7 }).collect::<Vec<_>>()).run().unwrap();
    for (name, rows) in [("wide", 20_000), ("narrow", 4_000)] {
        let rows = (0..rows).map(|n| doc! { "_id": n, "k": n }).collect::<Vec<_>>();
        db.collection::<Document>(name).create_index(Index::on(doc! { "k": 1 })).run().unwrap();
        db.collection::<Document>(name).insert_many(&rows).run().unwrap();
    }
    assert!(inputs.find_by_id(1).unwrap().is_some());
    let spent = |from: &str, expected: usize| {
        rounds.take();
        assert_eq!(joined(&inputs, from, "k"), expected);
        rounds.take()
    };
    // Of 128, then of 1,024 documents together: the store opens forty cursors in a round, and their documents follow.
    let through_index = spent("wide", 2_000);
    assert!(through_index <= 170, "{through_index}");
    // After the first two batches the collection is small enough to be read as a whole.
    let read_as_a_whole = spent("narrow", 4_000_usize.div_ceil(7));
    assert!(read_as_a_whole <= 77, "{read_as_a_whole}");
}

#[test]
fn a_store_at_a_distance_is_asked_in_few_rounds() {
    let local = LocalDistant::default();
    let rounds = local.rounds.clone();
    let db = Database::with_store(DistantStore::over(local)).unwrap();
    let rows = db.collection::<Document>("rows");
    rows.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    rows.create_index(Index::on(doc! { "b": 1 }).unique()).run().unwrap();
    let many: Vec<Document> = (0..3_000).map(|n| doc! { "_id": n, "a": n % 300, "b": n }).collect();
    rows.insert_many(&many).run().unwrap();
    // The next write gathers statistics, because the collection has grown; then they are read.
    rows.insert_one(&doc! { "_id": 5_000, "a": 5_000, "b": 5_000 }).unwrap();
    assert!(rows.find_by_id(1).unwrap().is_some());
    let mut seen = Vec::new();
    let mut count = |what: &'static str, call: &dyn Fn() -> usize, rows: usize| {
        rounds.take();
        assert_eq!(call(), rows, "{what}");
        seen.push((what, rounds.take()));
    };
    let found = |filter: Document| rows.find(filter).run().unwrap().count();
    let even: Vec<i32> = (0..100).step_by(2).collect();
    count("find by _id", &|| usize::from(rows.find_by_id(5).unwrap().is_some()), 1);
    count("find of one document by an index", &|| found(doc! { "b": 5 }), 1);
    count("find of 10 documents by an index", &|| found(doc! { "a": 5 }), 10);
    count("find of 500 documents by 50 values of an index", &|| found(doc! { "a": { "$in": &even } }), 500);
    count(
        "count by 50 values of an index",
        &|| rows.count_documents(doc! { "a": { "$in": &even } }).run().unwrap().try_into().unwrap(),
        500,
    );
    count(
        "insert of one document",
        &|| rows.insert_one(&doc! { "_id": 4_000, "a": 1, "b": 4_000 }).map(|_| 1).unwrap(),
        1,
    );
    let more: Vec<Document> = (6_000..7_000).map(|n| doc! { "_id": n, "a": n % 300, "b": n }).collect();
    count(
        "update of one document by an index",
        &|| {
            usize::try_from(rows.update_one(doc! { "b": 7 }, doc! { "$set": { "a": 8 } }).run().unwrap().modified)
                .unwrap()
        },
        1,
    );
    count("insert of 1,000 documents", &|| rows.insert_many(&more).run().unwrap().inserted_ids.len(), 1_000);
    let expected = [
        ("find by _id", 1),
        ("find of one document by an index", 2),
        ("find of 10 documents by an index", 3),
        ("find of 500 documents by 50 values of an index", 4),
        ("count by 50 values of an index", 2),
        ("insert of one document", 2),
        ("update of one document by an index", 3),
        ("insert of 1,000 documents", 2),
    ];
    assert_eq!(seen, expected);

    // A cursor that is cancelled while it passes regions without keys does not find that it has passed all; of a query and of a write,
    // over one range and over several.
    let (range, values) = (doc! { "a": { "$gt": 100_000 } }, doc! { "a": { "$in": [100_001, 100_003] } });
    for (nothing, write) in [(&range, false), (&range, true), (&values, false), (&values, true)] {
        let token = CancelToken::new();
        rounds.cancel_in(1, token.clone());
        let ended = match write {
            false => {
                let mut found = rows.find(nothing).hint(Hint::Name("a_1".into())).cancel(token).run().unwrap();
                found.next().transpose().map(drop)
            }
            true => rows.delete_many(nothing).hint(Hint::Name("a_1".into())).cancel(token).run().map(drop),
        };
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Interrupted, "{nothing}, {write}");
    }

    // A count that is cancelled in its first round does not return what it has counted.
    let token = CancelToken::new();
    rounds.cancel_in(1, token.clone());
    let counted = rows.count_documents(doc! { "a": { "$in": &even } }).cancel(token).run();
    assert_eq!(counted.unwrap_err().kind(), ErrorKind::Interrupted);
}
