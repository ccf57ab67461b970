//! Writes go through prepare, batched load, change set, unique check and apply: they read in batches, keep within memory and
//! within the store's limits, and leave a transaction unchanged if they are rejected.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "common/mod.rs"]
mod common;
#[path = "write_pipeline/conflicts.rs"]
mod conflicts;
#[path = "write_pipeline/counting.rs"]
mod counting;
#[path = "common/passed_on.rs"]
mod passed_on;

use std::{sync::Arc, time::Duration};

use bson::{Bson, DateTime, Document, doc};
use common::{STORES, Store, elsewhere, raw, rows};
use counting::CountingStore;
use slate_core::{Collection, Database, Durability, Error, ErrorKind, Index, WriteOperation};
use slate_store::Capabilities;

/// Round trips of the call, without those that depend on statistics of the collection.
fn round_trips(store: &counting::Counts, call: impl FnOnce()) -> (u64, u64) {
    store.take();
    call();
    store.take()
}

fn numbered(range: std::ops::Range<i32>) -> Vec<Document> {
    // 7_919 is prime: neither `_id`s nor numbers come in order.
    range.map(|n| doc! { "_id": n * 7_919 % 1_000_003, "u": format!("user {n}"), "n": n, "tags": [n, n + 1] }).collect()
}

#[test]
fn writes_of_a_thousand_documents_take_a_handful_of_round_trips() {
    let store = CountingStore::default();
    let counts = Arc::clone(&store.counts);
    let db = Database::with_store(store).unwrap();
    let c = db.collection::<Document>("c");
    c.create_index(Index::on(doc! { "u": 1 }).unique()).run().unwrap();
    c.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
    c.create_index(Index::on(doc! { "tags": 1 })).run().unwrap();
    c.insert_many(&numbered(0..2_000)).run().unwrap();
    db.collection::<Document>("c").analyze().unwrap();

    let (trips, keys) = round_trips(&counts, || {
        c.insert_many(&numbered(2_000..3_000)).run().unwrap();
    });
    assert!(trips <= 8, "insert_many: {trips} round trips");
    assert!(keys <= 2_010, "insert_many: {keys} keys, one per document and unique index");

    let (trips, keys) = round_trips(&counts, || {
        let mut documents = numbered(2_500..3_500);
        documents.iter_mut().for_each(|document| drop(document.insert("more", true)));
        let put = c.upsert_many(&documents).unwrap();
        assert_eq!((put.matched, put.inserted), (500, 500));
    });
    assert!(trips <= 12, "upsert_many: {trips} round trips");
    assert!(keys <= 1_510, "upsert_many: {keys} keys, one per record and new unique key");

    let (trips, keys) = round_trips(&counts, || {
        let set = doc! { "$set": { "seen": 1 } };
        assert_eq!(c.update_many(doc! { "n": { "$lt": 1_000 } }, set).run().unwrap().modified, 1_000);
    });
    assert!(trips <= 20, "update_many: {trips} round trips");
    assert!(keys <= 1_100, "update_many reads each target once, not {keys} records");

    let (_, keys) = round_trips(&counts, || {
        assert_eq!(c.delete_many(doc! { "n": { "$lt": 1_000 } }).run().unwrap(), 1_000);
    });
    assert!(keys <= 1_100, "delete_many reads each target once, not {keys} records");

    let (trips, _) = round_trips(&counts, || {
        c.insert_one(&doc! { "_id": 5_000_000, "u": "one" }).unwrap();
    });
    assert!(trips <= 5, "insert_one: {trips} round trips");
    assert!(db.verify().run().unwrap().is_sound());
}

/// redb's file then has the records of a commit next to each other.
#[test]
fn records_are_written_after_the_entries_of_all_indexes() {
    // More than an operation's memory the second time.
    for filler in [0, 100_000] {
        let store = CountingStore::default();
        let counts = Arc::clone(&store.counts);
        let db = Database::with_store(store).unwrap();
        let c = db.collection::<Document>("c");
        c.create_index(Index::on(doc! { "u": 1 }).unique()).run().unwrap();
        c.create_index(Index::on(doc! { "tags": 1 })).run().unwrap();
        let documents = |range| {
            let mut documents = numbered(range);
            documents.iter_mut().for_each(|document| drop(document.insert("filler", "x".repeat(filler))));
            documents
        };
        // Also defines the collection and its multikey index.
        c.insert_many(&documents(0..10)).run().unwrap();
        counts.take_writes();
        c.insert_many(&documents(10..500)).run().unwrap();
        let writes = counts.take_writes();
        let records = writes.iter().max_by_key(|(_, bytes)| *bytes).unwrap().0;
        let mut order: Vec<_> = writes.iter().map(|(keyspace, _)| *keyspace).collect();
        order.dedup();
        assert_eq!(order.len(), 3, "{writes:?}");
        assert_eq!(order.last(), Some(&records), "{writes:?}");
    }
}

fn state(collection: &Collection<Document>) -> Vec<Document> {
    collection.find(doc! {}).sort(doc! { "_id": 1 }).run().unwrap().map(Result::unwrap).collect()
}

/// Runs every kind of write with ample memory, and with so little that its changes spill. Inserts of so few documents do
/// not: they spill after each batch of 4,096, as in the next test.
#[test]
fn writes_beyond_the_memory_limit_have_the_same_effect() {
    for store in STORES {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let open = |limit, folder: &tempfile::TempDir| {
            let builder = Database::builder(&store.url_in(folder.path())).durability(Durability::Deferred);
            builder.memory_limit(limit).open().unwrap()
        };
        let databases = [open(64 << 20, &folders[0]), open(4_000, &folders[1])];
        let [much, little] = databases.each_ref().map(|db| db.collection::<Document>("c"));
        let both = |what: &str, call: &dyn Fn(&Collection<Document>) -> String| {
            let (expected, found) = (call(&much), call(&little));
            assert_eq!(found, expected, "{what} on {store:?}");
            assert!(state(&much) == state(&little), "{what} on {store:?}");
        };
        let twin = |documents: &mut Vec<Document>| {
            let at = documents.len() / 2;
            documents[at].insert("u", "user 7");
        };
        both("insert_many", &|c| format!("{:?}", c.insert_many(&numbered(0..300)).run().unwrap()));
        both("create_index", &|c| c.create_index(Index::on(doc! { "u": 1 }).unique()).run().unwrap());
        both("create_index in a transaction", &|c| {
            let db = if std::ptr::eq(c, &much) { &databases[0] } else { &databases[1] };
            let index = Index::on(doc! { "tags": 1 });
            db.transact(|tx| tx.collection::<Document>("c").create_index(index.clone()).run()).unwrap()
        });
        both("a duplicate among new documents", &|c| {
            let mut documents = numbered(300..600);
            twin(&mut documents);
            format!("{:?}", c.insert_many(&documents).run().unwrap_err().code())
        });
        both("an unordered insert", &|c| {
            let mut documents = numbered(280..600);
            twin(&mut documents);
            format!("{:?}", c.insert_many(&documents).ordered(false).run())
        });
        both("an ordered insert", &|c| {
            let mut documents = numbered(600..900);
            twin(&mut documents);
            format!("{:?}", c.insert_many(&documents).ordered(true).run())
        });
        both("upsert_many", &|c| {
            let mut documents = numbered(200..1_000);
            documents.iter_mut().for_each(|document| drop(document.insert("text", "x".repeat(50))));
            // The last document with an `_id` wins.
            let again = documents[10].clone();
            documents.push({
                let mut last = again;
                last.insert("n", -1);
                last
            });
            format!("{:?}", c.upsert_many(&documents).unwrap())
        });
        both("merge_many", &|c| {
            let patches: Vec<_> = numbered(100..300).iter().map(|d| doc! { "_id": d["_id"].clone(), "m": 1 }).collect();
            format!("{:?}", c.merge_many(&patches).unwrap())
        });
        both("unique keys that move from record to record", &|c| {
            // Each document takes the key of the next one, which changes in the same call.
            let mut documents = numbered(200..400);
            for (n, document) in (200..).zip(&mut documents) {
                document.insert("u", format!("user {}", if n == 399 { 200 } else { n + 1 }));
            }
            format!("{:?}", c.upsert_many(&documents).unwrap())
        });
        both("a duplicate among old documents", &|c| {
            let mut documents = numbered(200..400);
            twin(&mut documents);
            format!("{:?}", c.upsert_many(&documents).unwrap_err().code())
        });
        both("update_many", &|c| {
            let update = doc! { "$push": { "tags": -5 }, "$inc": { "n": 10_000 } };
            format!("{:?}", c.update_many(doc! { "n": { "$gte": 20 } }, update).run().unwrap())
        });
        both("a rejected update", &|c| {
            format!("{:?}", c.update_many(doc! {}, doc! { "$set": { "u": 1 } }).run().unwrap_err().code())
        });
        both("delete_many", &|c| format!("{:?}", c.delete_many(doc! { "tags": { "$gt": 140 } }).run().unwrap()));
        for db in &databases {
            assert!(db.verify().run().unwrap().is_sound());
        }
    }
}

/// Each rejected call has written part of its changes to a temporary file when it meets the duplicate.
#[test]
fn a_rejected_write_beyond_the_memory_limit_leaves_its_transaction_unchanged_and_usable() {
    for store in STORES {
        let folder = tempfile::tempdir().unwrap();
        let builder = Database::builder(&store.url_in(folder.path())).durability(Durability::Deferred);
        let db = builder.memory_limit(4_000).open().unwrap();
        db.collection::<Document>("c").create_index(Index::on(doc! { "u": 1 }).unique()).run().unwrap();
        let transaction = db.begin().unwrap();
        let c = transaction.collection::<Document>("c");
        let all = || -> Vec<Document> { c.find(doc! {}).run().unwrap().map(Result::unwrap).collect() };
        c.insert_many(&numbered(0..300)).run().unwrap();
        let before = all();

        // Changes are moved to the file after each batch of documents.
        let mut documents = numbered(300..5_000);
        documents.last_mut().unwrap().insert("u", "user 7");
        let set = doc! { "$set": { "u": 1 } };
        let calls: [(&str, &dyn Fn() -> Error); 4] = [
            ("insert_many", &|| c.insert_many(&documents).run().unwrap_err()),
            ("upsert_many", &|| c.upsert_many(&documents).unwrap_err()),
            ("merge_many", &|| c.merge_many(&documents).unwrap_err()),
            ("update_many", &|| c.update_many(doc! {}, set.clone()).run().unwrap_err()),
        ];
        for (name, call) in calls {
            let spills = db.metrics().spills;
            let error = call();
            assert_eq!(error.kind(), ErrorKind::DuplicateKey, "{name} on {store:?}: {error}");
            assert!(db.metrics().spills > spills, "{name} on {store:?} has not spilled");
            assert!(all() == before, "{name} on {store:?}");
        }

        c.insert_many(&numbered(300..5_000)).run().unwrap();
        transaction.commit().unwrap();
        assert_eq!(db.collection::<Document>("c").count_documents(doc! {}).run().unwrap(), 5_000, "{store:?}");
        assert!(db.verify().run().unwrap().is_sound(), "{store:?}");
    }
}

fn with_limits(limits: impl FnOnce(&mut Capabilities)) -> Database {
    let mut store = CountingStore::default();
    limits(&mut store.capabilities);
    Database::with_store(store).unwrap()
}

#[test]
fn a_document_beyond_the_limits_of_the_store_is_named() {
    let db = with_limits(|limits| limits.max_value = 1_000);
    let c = db.collection::<Document>("people");
    let long = doc! { "_id": 7, "text": "x".repeat(2_000) };
    let error = c.insert_one(&long).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    for part in ["people", "_id 7", "limit is 1000"] {
        assert!(error.message().contains(part), "{error}");
    }
    c.insert_one(&doc! { "_id": 7 }).unwrap();
    let update = c.update_one(doc! { "_id": 7 }, doc! { "$set": { "text": "x".repeat(2_000) } }).run();
    assert_eq!(update.unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(c.upsert_many(&[long]).unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(c.find_by_id(7).unwrap(), Some(doc! { "_id": 7 }));

    let db = with_limits(|limits| limits.max_key = 100);
    let c = db.collection::<Document>("people");
    let error = c.insert_one(&doc! { "_id": "x".repeat(200) }).unwrap_err();
    assert!(error.kind() == ErrorKind::TooLarge && error.message().contains("people"), "{error}");
    c.insert_one(&doc! { "_id": 1, "a": "x".repeat(200) }).unwrap();
    let error = c.create_index(Index::on(doc! { "a": 1 })).run().unwrap_err();
    assert!(error.kind() == ErrorKind::TooLarge && error.message().contains("_id 1"), "{error}");
}

/// An entry of the log contains the document and more.
#[test]
fn a_change_whose_log_entry_is_beyond_the_limits_of_the_store_is_refused() {
    let db = with_limits(|limits| limits.max_value = 1_000);
    db.enable_changes(slate_core::ChangeLog::new()).unwrap();
    let c = db.collection::<Document>("people");
    c.create().unwrap();
    c.keep_images(true).unwrap();
    let pad = |length: usize| doc! { "_id": 7, "text": "x".repeat(length) };
    let refused = |error: slate_core::Error| {
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        for part in ["people", "_id 7", "limit is 1000", "log of changes"] {
            assert!(error.message().contains(part), "{error}");
        }
    };
    refused(c.insert_one(&pad(940)).unwrap_err());
    let others: Vec<Document> = (0..6).map(|id| doc! { "_id": id, "text": "x".repeat(600) }).collect();
    let many = [&others[..3], &[pad(940)], &others[3..]].concat();
    let inserted = c.insert_many(&many).ordered(false).run().unwrap();
    assert_eq!((inserted.inserted_ids.len(), inserted.errors.len()), (6, 1));
    c.insert_one(&pad(600)).unwrap();
    // With the document before.
    refused(c.update_one(doc! { "_id": 7 }, doc! { "$set": { "n": 1 } }).run().unwrap_err());
    refused(c.replace_one(doc! { "_id": 7 }, &pad(500)).run().unwrap_err());
    c.delete_one(doc! { "_id": 7 }).run().unwrap();
    let validator = slate_core::Validator::new(doc! { "text": { "$ne": "x".repeat(1_000) } });
    assert_eq!(c.set_validator(Some(validator)).unwrap_err().kind(), ErrorKind::TooLarge);
    // Several events of one commit are as many entries as they need.
    c.delete_many(doc! {}).run().unwrap();
    let since = bson::Timestamp { time: 0, increment: 0 };
    assert_eq!(db.watch([] as [Document; 0]).start_at(since).run().unwrap_err().code(), 286);
    assert_eq!(db.stats().unwrap().collections.len(), 1);
}

#[test]
fn a_write_beyond_the_transaction_limit_fails_and_the_transaction_stays_usable() {
    let db = with_limits(|limits| limits.max_transaction_bytes = Some(10_000));
    let transaction = db.begin().unwrap();
    let c = transaction.collection::<Document>("c");
    c.insert_one(&doc! { "_id": 1, "text": "x".repeat(4_000) }).unwrap();
    let many: Vec<_> = (2..4).map(|id| doc! { "_id": id, "text": "x".repeat(4_000) }).collect();
    let error = c.insert_many(&many).run().unwrap_err();
    assert!(error.kind() == ErrorKind::TooLarge && error.message().contains("limit is 10000"), "{error}");
    c.insert_one(&doc! { "_id": 2 }).unwrap();
    transaction.commit().unwrap();
    assert_eq!(db.collection::<Document>("c").count_documents(doc! {}).run().unwrap(), 2);
}

#[test]
fn an_index_beyond_the_transaction_limit_is_not_defined() {
    let db = with_limits(|limits| limits.max_transaction_bytes = Some(10_000));
    let c = db.collection::<Document>("c");
    (0..9).for_each(|id| drop(c.insert_one(&doc! { "_id": id, "a": "x".repeat(1_500) }).unwrap()));
    let transaction = db.begin().unwrap();
    let error = transaction.collection::<Document>("c").create_index(Index::on(doc! { "a": 1 })).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    transaction.commit().unwrap();
    assert!(c.list_indexes().unwrap().is_empty());
    assert_eq!(c.count_documents(doc! { "a": { "$gte": "x" } }).run().unwrap(), 9);
    assert!(db.verify().run().unwrap().is_sound());
}

#[test]
fn an_index_with_more_entries_than_a_transaction_may_write_is_built_in_rounds() {
    let db = with_limits(|limits| limits.max_transaction_keys = Some(100));
    let c = db.collection::<Document>("c");
    let numbers = |from: i32, count: i32| (from..from + count).collect::<Vec<i32>>();
    (0..30).for_each(|id| drop(c.insert_one(&doc! { "_id": id, "a": numbers(id * 10, 10) }).unwrap()));
    // This one and the documents before it are too many together.
    c.insert_one(&doc! { "_id": 30, "a": numbers(300, 80) }).unwrap();
    c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    assert_eq!(c.list_indexes().unwrap().len(), 1);
    let report = c.verify().run().unwrap();
    assert!(report.is_sound() && report.documents == 31, "{:?}", report.findings);
    for (a, id) in [(0, 0), (155, 15), (379, 30)] {
        let found = c.find_one(doc! { "a": a }).run().unwrap().unwrap();
        assert_eq!(found.get_i32("_id").unwrap(), id);
    }
    // One document with more entries than that cannot be indexed.
    c.insert_one(&doc! { "_id": 31, "b": numbers(0, 200) }).unwrap();
    let error = c.create_index(Index::on(doc! { "b": 1 })).run().unwrap_err();
    assert!(error.kind() == ErrorKind::TooLarge && error.message().contains("keys"), "{error}");
    assert_eq!(c.list_indexes().unwrap().len(), 1);
}

#[test]
fn documents_that_have_more_entries_than_a_transaction_may_write_expire_in_rounds() {
    let db = with_limits(|limits| limits.max_transaction_keys = Some(100));
    let c = db.collection::<Document>("c");
    c.create_index(Index::on(doc! { "at": 1 }).expire_after(Duration::ZERO)).run().unwrap();
    c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    let many: Vec<i32> = (0..10).collect();
    (0..30).for_each(|id| drop(c.insert_one(&doc! { "_id": id, "at": DateTime::MIN, "a": &many }).unwrap()));
    let expired = db.expire().run().unwrap();
    assert!(expired.documents == 30 && expired.rounds > 1, "{expired:?}");
    assert!(db.verify().run().unwrap().is_sound());
}

#[test]
fn inserts_of_a_bulk_write_that_exceed_the_transaction_limit_together_are_accepted_one_by_one() {
    let large = |id: i32| WriteOperation::insert_one(doc! { "_id": id, "text": "x".repeat(4_000) });
    let small = |id: i32| WriteOperation::insert_one(doc! { "_id": id });
    for (ordered, expected) in [(true, vec![1, 2]), (false, vec![1, 2, 4])] {
        let db = with_limits(|limits| limits.max_transaction_bytes = Some(10_000));
        let c = db.collection::<Document>("c");
        let written = c.bulk_write([large(1), large(2), large(3), small(4)]).ordered(ordered).run().unwrap();
        assert_eq!(written.inserted_ids.len(), expected.len());
        let refused: Vec<_> = written.errors.iter().map(|refused| (refused.index, refused.error.kind())).collect();
        assert_eq!(refused, [(2, ErrorKind::TooLarge)]);
        let ids: Vec<i32> =
            c.find(doc! {}).run().unwrap().map(|found| found.unwrap().get_i32("_id").unwrap()).collect();
        assert_eq!(ids, expected, "ordered: {ordered}");
    }
}

#[test]
fn the_first_array_in_an_index_does_not_conflict_with_other_changes_of_the_catalog() {
    for store in STORES {
        let test = store.open();
        let c = test.db.collection::<Document>("c");
        c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        c.insert_one(&doc! { "_id": 1, "a": 1 }).unwrap();
        test.db.collection::<Document>("other").insert_one(&doc! {}).unwrap();
        let multikey = test.db.begin().unwrap();
        multikey.collection::<Document>("c").insert_one(&doc! { "_id": 2, "a": [1, 2] }).unwrap();
        elsewhere(|| {
            test.db.collection::<Document>("new").insert_one(&doc! {}).unwrap();
            test.db.collection::<Document>("other").create_index(Index::on(doc! { "b": 1 })).run().unwrap();
        });
        multikey.commit().unwrap();
        assert_eq!(c.find(doc! { "a": { "$gte": 1 } }).run().unwrap().count(), 2);
        let expected: Vec<Bson> = vec![1.into(), 2.into()];
        assert_eq!(c.distinct("a", doc! {}).run().unwrap(), expected);
        assert!(test.db.verify().run().unwrap().is_sound());
        let indexes: Vec<_> = test.db.list_collection_names().unwrap();
        assert_eq!(indexes, ["c", "new", "other"]);
    }
}

/// Arrays with enough elements that a fixed number of documents per round would exceed memory.
#[test]
fn a_build_over_long_arrays_takes_short_rounds() {
    for store in STORES {
        let test: common::TestDatabase = Store::open(store);
        let c = test.db.collection::<Document>("c");
        let documents = |range: std::ops::Range<i32>| -> Vec<Document> {
            range.map(|n| doc! { "_id": n, "a": (n..n + 2_000).collect::<Vec<i32>>() }).collect()
        };
        (0..3).for_each(|part| drop(c.insert_many(&documents(part * 100..part * 100 + 100)).run().unwrap()));
        let mut rounds = Vec::new();
        c.create_index(Index::on(doc! { "a": 1 })).progress(|read| rounds.push(read)).run().unwrap();
        // 2,000 entries of about 50 bytes with their bookkeeping: a round of 4 MiB has some 40 documents.
        let longest = rounds.iter().zip(rounds.iter().skip(1)).map(|(last, next)| next - last).max().unwrap();
        assert!(longest <= 60, "{rounds:?}");
        assert_eq!(c.count_documents(doc! { "a": 1_500 }).run().unwrap(), 300);
    }
}

fn with_filler(range: std::ops::Range<i32>) -> Vec<Document> {
    range.map(|n| doc! { "_id": n, "a": n % 7, "filler": "x".repeat(1_000) }).collect()
}

/// The commit writes the changes of a large call from where they were collected. A call that follows has to see them.
#[test]
fn a_large_call_is_seen_by_the_next_one_of_its_transaction() {
    for store in STORES {
        let test = store.open();
        let c = test.db.collection::<Document>("c");
        c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        c.insert_many(&with_filler(0..600)).run().unwrap();
        let seen = test.db.transact(|tx| -> slate_core::Result<_> {
            let c = tx.collection::<Document>("c");
            c.insert_many(&with_filler(600..1_200)).run()?;
            let inserted = c.count_documents(doc! { "a": 3 }).run()?;
            c.update_many(doc! {}, doc! { "$inc": { "a": 10 } }).run()?;
            c.delete_many(doc! { "a": 13 }).run()?;
            let left = c.count_documents(doc! { "a": { "$gte": 10 } }).run()?;
            c.update_many(doc! {}, doc! { "$set": { "b": 1 } }).run()?;
            Ok((inserted, left))
        });
        let (inserted, left) = seen.unwrap();
        assert_eq!((inserted, left), (171, 1_029), "{store:?}");
        assert_eq!(c.count_documents(doc! { "b": 1, "a": { "$gte": 10 } }).run().unwrap(), left);
        assert!(test.db.verify().run().unwrap().is_sound());
        // Rolled back, nothing remains of it.
        let tx = test.db.begin().unwrap();
        tx.collection::<Document>("c").delete_many(doc! {}).run().unwrap();
        tx.rollback();
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), left);
    }
}

#[test]
fn a_large_call_conflicts_and_is_retried_like_a_small_one() {
    for store in STORES {
        let test = store.open();
        let c = test.db.collection::<Document>("c");
        c.insert_many(&with_filler(0..600)).run().unwrap();
        let mut attempts = 0;
        let updated = test.db.transact(|tx| -> slate_core::Result<_> {
            attempts += 1;
            let updated = tx.collection::<Document>("c").update_many(doc! {}, doc! { "$inc": { "a": 10 } }).run()?;
            if attempts == 1 {
                elsewhere(|| c.update_one(doc! { "_id": 300 }, doc! { "$inc": { "a": 100 } }).run().unwrap());
            }
            Ok(updated.modified)
        });
        assert_eq!((updated.unwrap(), attempts), (600, 2), "{store:?}");
        assert_eq!(c.find_by_id(300).unwrap().unwrap().get_i32("a").unwrap(), 300 % 7 + 110);
    }
}

#[test]
fn a_large_call_needs_no_room_in_its_transaction_unless_another_one_follows() {
    let db = with_limits(|limits| limits.max_transaction_bytes = Some(100_000));
    let c = db.collection::<Document>("c");
    c.insert_many(&with_filler(0..600)).run().unwrap();
    c.update_many(doc! {}, doc! { "$set": { "b": 1 } }).run().unwrap();
    assert_eq!(c.count_documents(doc! { "b": 1 }).run().unwrap(), 600);
    let refused = db.transact(|tx| -> slate_core::Result<_> {
        let c = tx.collection::<Document>("c");
        c.update_many(doc! {}, doc! { "$set": { "b": 2 } }).run()?;
        c.count_documents(doc! { "b": 2 }).run()
    });
    let error = refused.unwrap_err();
    assert!(error.kind() == ErrorKind::TooLarge && error.to_string().contains("100000"), "{error}");
    assert_eq!(c.count_documents(doc! { "b": 1 }).run().unwrap(), 600);
}

#[test]
fn out_and_merge_write_more_than_a_transaction_holds() {
    let db = with_limits(|limits| limits.max_transaction_bytes = Some(100_000));
    let (source, target) = (db.collection::<Document>("source"), db.collection::<Document>("target"));
    source.insert_many(&with_filler(0..2_000)).run().unwrap();
    target.create_index(Index::on(doc! { "u": 1 }).unique()).run().unwrap();
    target.insert_many(&(1_500..2_500).map(|id| doc! { "_id": id, "u": id }).collect::<Vec<_>>()).run().unwrap();
    let run = |stages: Vec<Document>| source.aggregate(stages).memory_limit(200_000).run().map(drop);
    let with_u = doc! { "$set": { "u": "$_id" } };

    run(vec![with_u.clone(), doc! { "$out": "target" }]).unwrap();
    assert_eq!(target.count_documents(doc! { "u": { "$gte": 0 } }).run().unwrap(), 2_000);
    assert_eq!(target.count_documents(doc! { "_id": { "$gte": 2_000 } }).run().unwrap(), 0);

    for (when_matched, expected) in
        [("merge", doc! { "_id": 7, "u": 7, "c": 9 }), ("replace", doc! { "_id": 7, "c": 9 })]
    {
        if when_matched == "replace" {
            target.drop_index("u_1").unwrap();
        }
        // The second row with an `_id` is applied to the result of the first.
        let twice = doc! { "$project": { "c": [8, 9] } };
        let merge = doc! { "$merge": { "into": "target", "whenMatched": when_matched } };
        run(vec![twice, doc! { "$unwind": "$c" }, merge]).unwrap();
        assert_eq!(target.count_documents(doc! { "c": 9 }).run().unwrap(), 2_000);
        let mut found = target.find_by_id(7).unwrap().unwrap();
        found.remove("text");
        found.remove("filler");
        let found: Document = found.into_iter().filter(|(name, _)| expected.contains_key(name)).collect();
        assert_eq!(found, expected, "{when_matched}");
    }
    assert!(db.verify().run().unwrap().is_sound());
}

#[test]
fn a_refused_out_leaves_the_collection_as_it_was() {
    for store in STORES {
        let test = store.open();
        let (source, target) = (test.db.collection::<Document>("source"), test.db.collection::<Document>("target"));
        source.insert_many(&with_filler(0..600)).run().unwrap();
        target.create_index(Index::on(doc! { "u": 1 }).unique()).run().unwrap();
        target.insert_one(&doc! { "_id": 1, "u": 1 }).unwrap();
        for memory in [100_000, 100 << 20] {
            for (stages, code) in [
                (vec![doc! { "$project": { "u": { "$literal": 5 } } }], 11_000),
                (vec![doc! { "$set": { "u": "$_id", "twice": [1, 2] } }, doc! { "$unwind": "$twice" }], 11_000),
            ] {
                let stages = stages.into_iter().chain([doc! { "$out": "target" }]);
                let error = source.aggregate(stages).memory_limit(memory).run().map(drop).unwrap_err();
                assert_eq!(error.code(), code, "{error}");
                assert_eq!(target.find(doc! {}).run().unwrap().count(), 1);
            }
        }
        // The `_id`s and unique keys of replaced documents are free.
        source
            .aggregate([doc! { "$set": { "u": 599 } }, doc! { "$limit": 1 }, doc! { "$out": "target" }])
            .run()
            .unwrap();
        source.aggregate([doc! { "$set": { "u": "$_id" } }, doc! { "$out": "target" }]).run().unwrap();
        assert_eq!(target.count_documents(doc! { "u": { "$gte": 0 } }).run().unwrap(), 600);
        assert!(test.db.verify().run().unwrap().is_sound());
    }
}

#[test]
fn a_pipeline_that_fails_half_way_ends_its_transaction() {
    for store in STORES {
        let test = store.open();
        let [source, target] = ["source", "target"].map(|name| test.collection(name));
        for id in 1..4 {
            source.insert_one(&raw(&doc! { "_id": id, "n": id })).unwrap();
        }
        target.insert_one(&raw(&doc! { "_id": 1, "n": 0 })).unwrap();
        target.insert_one(&raw(&doc! { "_id": 3, "n": 0 })).unwrap();
        let before = rows(target.find(doc! {})).unwrap();
        let merges = [
            // The second document is not there.
            doc! { "into": "target", "whenMatched": "replace", "whenNotMatched": "fail" },
            // It is refused before anything is written: no index is unique.
            doc! { "into": "new", "on": "n" },
        ];
        for merge in merges {
            let transaction = test.db.begin().unwrap();
            let failed = transaction
                .collection::<Document>("source")
                .aggregate([doc! { "$sort": { "_id": 1 } }, doc! { "$merge": merge.clone() }])
                .run();
            let code = failed.err().unwrap().code();
            assert!([13_113, 51_183].contains(&code), "{store:?}: {code}");
            // A call that has written nothing leaves the transaction as it was.
            let is_over = transaction.commit().is_err();
            assert_eq!(is_over, code == 13_113, "{store:?}: {merge}");
            assert_eq!(rows(target.find(doc! {})).unwrap(), before, "{store:?}: {merge}");
        }
    }
}
