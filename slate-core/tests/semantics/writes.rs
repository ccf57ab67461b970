//! Semantics of writes.

use std::time::Duration;

use bson::{Bson, RawDocumentBuf, doc};
use slate_core::{ErrorKind, ExplainVerbosity, Index, ReturnDocument};

use crate::{
    Documents,
    common::{finds, finds_in_order, on_every_store, raw},
    contents, insert, refused,
};

#[test]
fn a_write_to_one_document_selects_the_first_by_id_with_every_plan() {
    on_every_store(|database| {
        let records = database.collection("records");
        // Both indexes return the documents in another order than that of `_id`.
        records.create_index(Index::on(doc! { "a": -1 })).run().unwrap();
        records.create_index(Index::on(doc! { "tags": 1 })).run().unwrap();
        insert(&records, (0..20).map(|n| doc! { "_id": n, "a": n, "tags": [20 - n, 40 - n], "k": n / 10 }));
        let filter = doc! { "a": { "$gte": 5 }, "tags": { "$gte": 0 } };
        for plan in 0..records.find(&filter).explain(ExplainVerbosity::QueryPlanner).unwrap().candidates() {
            let transaction = database.db.begin().unwrap();
            let inside: Documents = transaction.collection("records");
            let updated = inside.find_one_and_update(&filter, doc! { "$set": { "hit": 1 } }).force(plan).run().unwrap();
            assert_eq!(updated.unwrap().get_i32("_id").unwrap(), 5);
            let deleted = inside.find_one_and_delete(&filter).force(plan).run().unwrap();
            assert_eq!(deleted.unwrap().get_i32("_id").unwrap(), 5);
            inside.update_one(&filter, doc! { "$set": { "hit": 1 } }).force(plan).run().unwrap();
            assert_eq!(inside.delete_one(&filter).force(plan).run().unwrap(), 1);
            finds(&inside.find(doc! { "_id": { "$lt": 8 } }), [0, 1, 2, 3, 4, 7]);
            // Among documents that are equal in the sort, the one with the least `_id` is deleted.
            let sorted = inside.find_one_and_delete(&filter).sort(doc! { "k": -1 });
            assert_eq!(sorted.force(plan).run().unwrap().unwrap().get_i32("_id").unwrap(), 10);
            transaction.rollback();
        }
        assert_eq!(records.find_one(doc! {}).run().unwrap().unwrap().get_i32("_id").unwrap(), 0);
    });
}

#[test]
fn an_update_does_not_change_a_document_twice() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
        for count in [10, 1_000] {
            insert(&records, (0..count).map(|n| doc! { "_id": n, "n": n }));
            let filter = doc! { "n": { "$gte": 0 } };
            for plan in 0..records.find(&filter).explain(ExplainVerbosity::QueryPlanner).unwrap().candidates() {
                let result = records.update_many(&filter, doc! { "$inc": { "n": 5 } }).force(plan).run().unwrap();
                assert_eq!((result.matched, result.modified), (count as u64, count as u64));
            }
            let plans = records.find(&filter).explain(ExplainVerbosity::QueryPlanner).unwrap().candidates() as i32;
            finds_in_order(&records.find(doc! { "n": { "$gte": 5 * plans } }).sort(doc! { "n": 1 }), 0..count);
            assert_eq!(records.delete_many(&filter).run().unwrap(), count as u64);
        }
    });
}

#[test]
fn uniqueness_holds_at_the_end_of_a_call() {
    on_every_store(|database| {
        for count in [2, 5, 256, 257, 1_000] {
            let records = database.collection(&format!("records{count}"));
            records.create_index(Index::on(doc! { "n": 1 }).unique()).run().unwrap();
            records.create_index(Index::on(doc! { "n": -1, "m": 1 }).unique()).run().unwrap();
            insert(&records, (0..count).map(|n| doc! { "_id": n, "n": n, "m": 0 }));
            // Each document takes the value of another one, in ascending and descending order.
            for by in [1, -1] {
                let filter = doc! { "n": { "$gte": -5 } };
                for plan in 0..records.find(&filter).explain(ExplainVerbosity::QueryPlanner).unwrap().candidates() {
                    let moved = records.update_many(&filter, doc! { "$inc": { "n": by } }).force(plan).run().unwrap();
                    assert_eq!(moved.modified, count as u64);
                }
            }
            finds(&records.find(doc! { "n": { "$gte": -100 } }), 0..count);
            // Values that are duplicates at the end of the call fail it, and nothing changes.
            let before = contents(&records);
            refused(records.update_many(doc! {}, doc! { "$set": { "n": 7 } }).run(), 11000);
            refused(records.update_many(doc! { "_id": { "$gt": 0 } }, doc! { "$inc": { "n": -1 } }).run(), 11000);
            assert_eq!(contents(&records), before);
            finds(&records.find(doc! { "n": { "$gte": -100 } }), 0..count);
        }
    });
}

#[test]
fn the_position_comes_from_the_whole_filter() {
    on_every_store(|database| {
        let records = database.collection("records");
        let whole = || [doc! { "_id": 0, "a": [1, 2, 3], "b": 1 }, doc! { "_id": 1, "a": [3, 2, 1], "b": 1 }];
        records.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        insert(&records, whole());
        let filter = doc! { "a": { "$gte": 2 }, "b": 1 };
        for plan in 0..records.find(&filter).explain(ExplainVerbosity::QueryPlanner).unwrap().candidates() {
            records.update_many(&filter, doc! { "$set": { "a.$": "x" } }).force(plan).run().unwrap();
            assert_eq!(
                contents(&records),
                [doc! { "_id": 0, "a": [1, "x", 3], "b": 1 }, doc! { "_id": 1, "a": ["x", 2, 1], "b": 1 },]
            );
            records.delete_many(doc! {}).run().unwrap();
            insert(&records, whole());
            let projected = records.find(&filter).projection(doc! { "a.$": 1 }).force(plan).run().unwrap();
            let mut projected: Vec<RawDocumentBuf> = projected.collect::<Result<_, _>>().unwrap();
            projected.sort_by_key(|row| row.get_i32("_id").unwrap());
            assert_eq!(projected, [raw(&doc! { "_id": 0, "a": [2] }), raw(&doc! { "_id": 1, "a": [3] })]);
        }
    });
}

#[test]
fn a_rejected_write_does_not_change_the_collection() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "u": 1 }).unique()).run().unwrap();
        records.create_index(Index::on(doc! { "a": 1, "b": 1 })).run().unwrap();
        insert(&records, (0..600).map(|n| doc! { "_id": n, "u": n, "a": n }));
        let before = contents(&records);
        let unchanged = || {
            assert_eq!(contents(&records), before);
            finds(&records.find(doc! { "u": { "$gte": 0 } }), 0..600);
            finds(&records.find(doc! { "a": { "$gte": 0 } }), 0..600);
        };
        // Inserts rejected by `_id`, by a unique value, by an index, at their end, in one batch and in several.
        for count in [3, 9_000] {
            let mut documents: Vec<RawDocumentBuf> =
                (0..count).map(|n| raw(&doc! { "_id": 10_000 + n, "u": 10_000 + n })).collect();
            for (last, code) in [
                (doc! { "_id": 10_000, "u": -1 }, 11000),
                (doc! { "_id": 3, "u": -1 }, 11000),
                (doc! { "_id": -1, "u": 10_000 }, 11000),
                (doc! { "_id": -1, "u": 3 }, 11000),
                (doc! { "_id": -1, "u": -1, "a": [1], "b": [1] }, 171),
                (doc! { "_id": [1], "u": -1 }, 53),
            ] {
                documents.push(raw(&last));
                refused(records.insert_many(&documents).run(), code);
                documents.pop();
                unchanged();
            }
        }
        // Updates whose last target is rejected.
        for filter in [doc! { "_id": { "$gte": 590 } }, doc! {}] {
            refused(records.update_many(&filter, doc! { "$set": { "b": 1, "u": 5 } }).run(), 11000);
            unchanged();
        }
        records.update_one(doc! { "_id": 599 }, doc! { "$set": { "t": "text" } }).run().unwrap();
        let before = contents(&records);
        refused(records.update_many(doc! {}, doc! { "$inc": { "t": 1 } }).run(), 14);
        assert_eq!(contents(&records), before);
        refused(records.update_many(doc! {}, doc! { "$set": { "_id": 5 } }).run(), 66);
        assert_eq!(contents(&records), before);
        refused(records.replace_one(doc! { "_id": 1 }, &raw(&doc! { "u": 2 })).run(), 11000);
        refused(records.update_one(doc! { "_id": -1, "u": 3 }, doc! { "$set": { "a": 1 } }).upsert().run(), 11000);
        assert_eq!(contents(&records), before);
        finds(&records.find(doc! { "u": { "$gte": 0 } }), 0..600);
    });
}

#[test]
fn a_rejected_write_in_a_transaction_leaves_it_usable() {
    on_every_store(|database| {
        let transaction = database.db.begin().unwrap();
        let records: Documents = transaction.collection("records");
        insert(&records, [doc! { "_id": 0 }]);
        refused(records.insert_one(&raw(&doc! { "_id": 0 })), 11000);
        insert(&records, [doc! { "_id": 1 }]);
        transaction.commit().unwrap();
        finds(&database.collection("records").find(doc! {}), [0, 1]);
    });
}

#[test]
fn a_rejected_large_write_does_not_change_its_transaction() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "u": 1 }).unique()).run().unwrap();
        insert(&records, (0..6_000).map(|n| doc! { "_id": n, "u": n }));
        let transaction = database.db.begin().unwrap();
        let inside: Documents = transaction.collection("records");
        insert(&inside, [doc! { "_id": -1, "u": -1 }]);
        let expected = contents(&inside);
        refused(inside.update_many(doc! {}, doc! { "$set": { "u": 5 } }).run(), 11000);
        // The last document cannot be changed.
        inside.update_one(doc! { "_id": 5_999 }, doc! { "$set": { "t": "text" } }).run().unwrap();
        refused(inside.update_many(doc! {}, doc! { "$inc": { "t": 1 } }).run(), 14);
        inside.update_one(doc! { "_id": 5_999 }, doc! { "$unset": { "t": "" } }).run().unwrap();
        let twin: Vec<_> = (6_000..12_000).map(|n| raw(&doc! { "_id": n, "u": n % 11_999 })).collect();
        refused(inside.insert_many(&twin).run(), 11000);
        refused(inside.upsert_many(&twin), 11000);
        let late = inside.delete_many(doc! {}).deadline(Duration::ZERO).run().unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Interrupted);
        refused(inside.create_index(Index::on(doc! { "absent": 1 }).unique()).run(), 11000);
        assert_eq!(contents(&inside), expected);
        transaction.commit().unwrap();
        assert_eq!(contents(&records), expected);
        finds(&records.find(doc! { "u": { "$gte": -1 } }), -1..6_000);
        assert!(database.db.verify().run().unwrap().is_sound());
    });
}

#[test]
fn only_a_transaction_reads_its_uncommitted_writes() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        insert(&records, (0..10).map(|n| doc! { "_id": n, "a": n }));
        let transaction = database.db.begin().unwrap();
        let inside: Documents = transaction.collection("records");
        inside.update_one(doc! { "a": 3 }, doc! { "$set": { "a": 30 } }).run().unwrap();
        inside.delete_one(doc! { "a": 4 }).run().unwrap();
        insert(&inside, [doc! { "_id": 10, "a": [5, 50] }]);
        finds(&inside.find(doc! { "a": { "$gt": 2, "$lt": 100 } }), [3, 5, 6, 7, 8, 9, 10]);
        finds_in_order(&inside.find(doc! {}).sort(doc! { "a": -1 }).limit(3), [10, 3, 9]);
        assert_eq!(inside.count_documents(doc! {}).run().unwrap(), 10);
        finds(&records.find(doc! { "a": { "$gt": 2 } }), 3..10);
        transaction.commit().unwrap();
        finds(&records.find(doc! { "a": { "$gt": 2, "$lt": 100 } }), [3, 5, 6, 7, 8, 9, 10]);
    });
}

#[test]
fn find_one_and_update_returns_the_document_before_or_after() {
    on_every_store(|database| {
        let records = database.collection("records");
        let update = || records.find_one_and_update(doc! { "_id": 0 }, doc! { "$inc": { "n": 1 } });
        assert_eq!(update().run().unwrap(), None);
        assert_eq!(update().upsert().run().unwrap(), None);
        assert_eq!(update().run().unwrap().unwrap(), raw(&doc! { "_id": 0, "n": 1 }));
        let after = update().return_document(ReturnDocument::After).projection(doc! { "_id": 0 }).run().unwrap();
        assert_eq!(after.unwrap(), raw(&doc! { "n": 3 }));
        assert_eq!(records.distinct("n", doc! {}).run().unwrap(), [Bson::Int32(3)]);
        for form in [ReturnDocument::Before, ReturnDocument::After] {
            let same =
                records.find_one_and_update(doc! { "_id": 0 }, doc! { "$set": { "n": 3 } }).return_document(form);
            assert_eq!(same.run().unwrap().unwrap(), raw(&doc! { "_id": 0, "n": 3 }), "an update that changes nothing");
        }
        let absent = records.find_one_and_update(doc! { "_id": 1 }, doc! { "$set": { "n": 9 } });
        let inserted = absent.upsert().return_document(ReturnDocument::After).run().unwrap();
        assert_eq!(inserted.unwrap(), raw(&doc! { "_id": 1, "n": 9 }));
    });
}
