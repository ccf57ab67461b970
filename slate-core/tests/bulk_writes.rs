//! Writes of many documents: their meaning, the state after a rejected write, and agreement between stores and scopes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use bson::{Bson, DateTime, RawDocumentBuf, Timestamp, doc, rawdoc};
use common::{Store, TestDatabase, on_every_store};
use serde::{Deserialize, Serialize};
use slate_core::{
    BulkWriteResult, CancelToken, Collection, CollectionOptions, ErrorKind, Index, Validator, WriteOperation,
};

type Documents = Collection<RawDocumentBuf>;

fn all(collection: &Documents) -> Vec<RawDocumentBuf> {
    collection.find(doc! {}).sort(doc! { "_id": 1 }).run().unwrap().map(Result::unwrap).collect()
}

/// Returns the values of an index, read only from its entries.
fn by_index(collection: &Documents, field: &str) -> Vec<Bson> {
    let hint = slate_core::Hint::Keys(common::raw(&doc! { field: 1 }));
    let found = collection.find(doc! {}).hint(hint).sort(doc! { field: 1 }).run().unwrap();
    found.map(|row| row.unwrap().get("_id").unwrap().unwrap().try_into().unwrap()).collect()
}

#[test]
fn upsert_many_replaces_whole_and_inserts_the_rest() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        c.insert_many(&[rawdoc! { "_id": 1, "a": 1, "b": 1 }, rawdoc! { "_id": 2, "a": 2 }]).run().unwrap();
        let put = c
            .upsert_many(&[
                rawdoc! { "_id": 1, "a": 9 },
                rawdoc! { "a": 0, "_id": 3 },
                rawdoc! { "_id": 2, "a": 2 },
                rawdoc! { "a": 5 },
            ])
            .unwrap();
        assert_eq!((put.matched, put.modified, put.inserted), (2, 1, 2));
        assert_eq!(put.ids[..3], [Bson::Int32(1), Bson::Int32(3), Bson::Int32(2)]);
        assert!(put.ids[3].as_object_id().is_some());
        let expected = [rawdoc! { "_id": 1, "a": 9 }, rawdoc! { "_id": 2, "a": 2 }, rawdoc! { "_id": 3, "a": 0 }];
        assert_eq!(all(&c)[..3], expected);
        assert_eq!(by_index(&c, "a"), [Bson::Int32(3), Bson::Int32(2), put.ids[3].clone(), Bson::Int32(1)]);
    });
}

#[test]
fn merge_many_takes_literal_names_and_whole_values_and_keeps_positions() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        c.insert_one(&rawdoc! { "_id": 1, "a": { "x": 1, "y": 2 }, "b": [1, 2], "c": 3 }).unwrap();
        let merged = c
            .merge_many([
                doc! { "b": 7, "_id": 1, "a": { "x": 5 }, "d.e": 1, "$f": 2 },
                doc! { "_id": 2, "a.x": 1 },
                doc! { "_id": 1.0, "c": 4 },
            ])
            .unwrap();
        assert_eq!((merged.matched, merged.modified, merged.inserted), (2, 2, 1));
        assert_eq!(merged.ids, [Bson::Int32(1), Bson::Int32(2), Bson::Int32(1)]);
        let expected =
            [rawdoc! { "_id": 1, "a": { "x": 5 }, "b": 7, "c": 4, "d.e": 1, "$f": 2 }, rawdoc! { "_id": 2, "a.x": 1 }];
        assert_eq!(all(&c), expected);
        assert_eq!(by_index(&c, "a"), [Bson::Int32(2), Bson::Int32(1)]);
        let unchanged = c.merge_many([doc! { "_id": 1, "c": 4 }]).unwrap();
        assert_eq!((unchanged.matched, unchanged.modified), (1, 0));
    });
}

#[test]
fn the_second_of_two_documents_with_one_id_updates_the_first() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1 }).unique()).run().unwrap();
        let put = c.upsert_many(&[rawdoc! { "_id": 1, "a": 1 }, rawdoc! { "_id": 1, "a": 2 }]).unwrap();
        assert_eq!((put.matched, put.modified, put.inserted), (1, 1, 1));
        let merged = c.merge_many([doc! { "_id": 2, "a": 3 }, doc! { "_id": 2, "b": 1 }]).unwrap();
        assert_eq!((merged.matched, merged.modified, merged.inserted), (1, 1, 1));
        assert_eq!(all(&c), [rawdoc! { "_id": 1, "a": 2 }, rawdoc! { "_id": 2, "a": 3, "b": 1 }]);
        assert_eq!(by_index(&c, "a").len(), 2);
    });
}

/// Documents exchange the values of a unique field. The call is one batch, or several batches.
#[test]
fn puts_are_unique_at_the_end_of_the_call() {
    on_every_store(|test| {
        for count in [10, 2_500, 6_000] {
            let c = test.collection(&format!("c{count}"));
            c.create_index(Index::on(doc! { "a": 1 }).unique()).run().unwrap();
            let documents = |shift: i32| (0..count).map(move |n| rawdoc! { "_id": n, "a": (n + shift) % count });
            c.insert_many(&documents(0).collect::<Vec<_>>()).run().unwrap();
            c.upsert_many(&documents(1).collect::<Vec<_>>()).unwrap();
            let merged = c.merge_many(documents(2)).unwrap();
            assert_eq!(merged.modified, u64::try_from(count).unwrap());
            assert_eq!(c.find_by_id(0).unwrap().unwrap().get_i32("a").unwrap(), 2);
            assert_eq!(by_index(&c, "a").len(), usize::try_from(count).unwrap());

            let before = all(&c);
            let broken = documents(3).chain([rawdoc! { "_id": "another", "a": 5 }]);
            assert_eq!(c.upsert_many(&broken.collect::<Vec<_>>()).unwrap_err().kind(), ErrorKind::DuplicateKey);
            let invalid = documents(3).chain([rawdoc! { "_id": [1] }]);
            assert_eq!(c.upsert_many(&invalid.collect::<Vec<_>>()).unwrap_err().code(), 53);
            assert_eq!(all(&c), before, "a rejected write does not change the collection");
        }
    });
}

/// Uses several batches of documents, some without `_id` and some without changes.
#[test]
fn puts_of_several_batches_write_each_document() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        c.insert_many(&(0..1_000).map(|n| rawdoc! { "_id": n, "a": n }).collect::<Vec<_>>()).run().unwrap();
        let puts = (0..1_500).map(|n| match n % 3 {
            0 => rawdoc! { "a": -n },
            1 => rawdoc! { "_id": n, "a": n },
            _ => rawdoc! { "_id": n, "a": n + 10_000 },
        });
        let put = c.upsert_many(&puts.collect::<Vec<_>>()).unwrap();
        assert_eq!((put.matched, put.modified, put.inserted), (666, 333, 834));
        assert_eq!(put.ids.len(), 1_500);
        assert!(put.ids.iter().enumerate().all(|(n, id)| (n % 3 == 0) == id.as_object_id().is_some()));
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), 1_834);
        assert_eq!(c.count_documents(doc! { "a": { "$gte": 10_000 } }).run().unwrap(), 500);
        assert_eq!(by_index(&c, "a").len(), 1_834);
        assert!(c.verify().run().unwrap().is_sound());
    });
}

/// Covers calls of one batch and of several.
#[test]
fn a_rejected_put_leaves_its_transaction_usable() {
    on_every_store(|test| {
        for count in [2, 1_000] {
            let name = format!("c{count}");
            let documents: Vec<_> = (0..count).map(|n| rawdoc! { "_id": n, "a": n }).collect();
            test.db
                .transact(|tx| {
                    let c = tx.collection::<RawDocumentBuf>(&name);
                    c.create_index(Index::on(doc! { "a": 1 }).unique()).run()?;
                    c.insert_one(&rawdoc! { "_id": -1, "a": count - 1 })?;
                    assert_eq!(c.upsert_many(&documents).unwrap_err().code(), 11000);
                    assert_eq!(c.merge_many([doc! { "_id": { "$a": 1 } }]).unwrap_err().path(), Some("_id"));
                    assert_eq!(c.count_documents(doc! {}).run()?, 1);
                    c.upsert_many(documents.split_last().map_or(&[][..], |(_, free)| free))
                })
                .unwrap();
            assert_eq!(all(&test.collection(&name)).len(), documents.len());
        }
    });
}

#[test]
fn a_put_by_an_equal_id_of_another_type_updates_the_record() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1, "_id": 1 })).run().unwrap();
        c.insert_one(&rawdoc! { "_id": 1, "a": 1 }).unwrap();
        c.upsert_many(&[rawdoc! { "_id": 1.0, "a": 1 }]).unwrap();
        assert_eq!(all(&c), [rawdoc! { "_id": 1.0, "a": 1 }]);
        let found = c.find(doc! { "a": 1 }).projection(doc! { "_id": 1 }).first().unwrap();
        assert_eq!(found, Some(rawdoc! { "_id": 1.0 }));
    });
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct User {
    #[serde(rename = "_id")]
    id: i32,
    name: String,
}

#[test]
fn typed_documents_are_put_like_raw_ones() {
    on_every_store(|test| {
        let users = test.db.collection::<User>("users");
        let user = |id, name: &str| User { id, name: name.into() };
        users.upsert_many(&[user(1, "Ada"), user(2, "Bob")]).unwrap();
        users.upsert_many(&[user(2, "Bea")]).unwrap();
        users.merge_many([doc! { "_id": 1, "name": "Ann" }]).unwrap();
        let inserted = users.insert_many(&[user(2, "again"), user(3, "Cy")]).ordered(false).run().unwrap();
        assert_eq!(inserted.inserted_ids.into_iter().collect::<Vec<_>>(), [(1, Bson::Int32(3))]);
        let found: Vec<User> = users.find(doc! {}).run().unwrap().map(Result::unwrap).collect();
        assert_eq!(found, [user(1, "Ann"), user(2, "Bea"), user(3, "Cy")]);
    });
}

fn insertions() -> Vec<RawDocumentBuf> {
    vec![
        rawdoc! { "_id": 1, "a": 1 },
        rawdoc! { "_id": 1, "a": 2 },
        rawdoc! { "_id": 2, "a": 1 },
        rawdoc! { "_id": [3] },
        rawdoc! { "_id": 4, "a": 4 },
    ]
}

#[test]
fn an_ordered_insert_stops_at_the_first_rejected_document() {
    on_every_store(|test| {
        let c = test.collection("c");
        let outcome = c.insert_many(&insertions()).ordered(true).run().unwrap();
        assert_eq!(outcome.inserted_ids.into_iter().collect::<Vec<_>>(), [(0, Bson::Int32(1))]);
        assert_eq!(outcome.errors.len(), 1);
        assert_eq!((outcome.errors[0].index, outcome.errors[0].error.code()), (1, 11000));
        assert_eq!(all(&c).len(), 1);
    });
}

#[test]
fn an_unordered_insert_reports_each_rejected_document() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1 }).unique()).run().unwrap();
        let outcome = c.insert_many(&insertions()).ordered(false).run().unwrap();
        let errors: Vec<_> = outcome.errors.iter().map(|error| (error.index, error.error.code())).collect();
        assert_eq!(errors, [(1, 11000), (2, 11000), (3, 53)]);
        assert_eq!(outcome.inserted_ids.keys().collect::<Vec<_>>(), [&0, &4]);
        assert_eq!(by_index(&c, "a"), [Bson::Int32(1), Bson::Int32(4)]);
        assert_eq!(outcome.into_result().unwrap_err().code(), 11000);
    });
}

/// Inserts documents that are rejected after some of their entries were encoded, between accepted ones.
#[test]
fn a_rejected_insert_leaves_no_index_entries() {
    on_every_store(|test| {
        let c = test.collection("c");
        for index in
            [Index::on(doc! { "tags": 1 }), Index::on(doc! { "u": 1 }).unique(), Index::on(doc! { "a": 1, "b": 1 })]
        {
            c.create_index(index).run().unwrap();
        }
        c.insert_one(&rawdoc! { "_id": -1, "tags": ["there"], "u": -1 }).unwrap();
        let document = |n: i32| match n % 4 {
            // An existing key, a key of the same call, and two arrays for one index.
            1 => rawdoc! { "_id": n, "tags": ["refused", n], "u": -1 },
            2 => rawdoc! { "_id": n, "tags": ["refused", n, n + 1], "u": n - 2 },
            3 => rawdoc! { "_id": n, "tags": ["refused"], "u": n, "a": [1, 2], "b": [1, 2] },
            _ => rawdoc! { "_id": n, "tags": ["taken", n], "u": n, "a": n },
        };
        // In calls of one batch and of several.
        for (from, count) in [(0, 40), (40, 8_400)] {
            let documents: Vec<_> = (from..from + count).map(document).collect();
            let outcome = c.insert_many(&documents).ordered(false).run().unwrap();
            let counted = usize::try_from(count).unwrap();
            assert_eq!((outcome.inserted_ids.len(), outcome.errors.len()), (counted / 4, counted / 4 * 3));
        }
        let ordered = c.insert_many(&(8_440..8_450).map(document).collect::<Vec<_>>()).ordered(true).run().unwrap();
        assert_eq!((ordered.inserted_ids.len(), ordered.errors.len()), (1, 1));
        let report = c.verify().run().unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        let tagged = |tag: &str| c.count_documents(doc! { "tags": tag }).run().unwrap();
        assert_eq!((tagged("taken"), tagged("refused"), tagged("there")), (2_111, 0, 1));
        assert_eq!(c.find(doc! {}).distinct("tags").run().unwrap().len(), 2_111 + 2);
        // Other documents can take the values of rejected ones.
        c.insert_one(&rawdoc! { "_id": "later", "u": 3 }).unwrap();
    });
}

#[test]
fn a_large_insert_is_atomic_by_default() {
    on_every_store(|test| {
        let c = test.collection("c");
        let mut documents: Vec<RawDocumentBuf> = (0..9_000).map(|n| rawdoc! { "_id": n }).collect();
        documents.push(rawdoc! { "_id": 7 });
        assert_eq!(c.insert_many(&documents).run().unwrap_err().code(), 11000);
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), 0);
        let unordered = c.insert_many(&documents).ordered(false).run().unwrap();
        assert_eq!((unordered.inserted_ids.len(), unordered.errors.len()), (9_000, 1));
        assert_eq!(unordered.errors[0].index, 9_000);
    });
}

#[test]
fn a_large_ordered_insert_stops_at_the_first_rejected_document() {
    on_every_store(|test| {
        let c = test.collection("c");
        let mut documents: Vec<RawDocumentBuf> = (0..9_000).map(|n| rawdoc! { "_id": n }).collect();
        documents[8_500] = rawdoc! { "_id": 7 };
        let outcome = c.insert_many(&documents).ordered(true).run().unwrap();
        assert_eq!((outcome.inserted_ids.len(), outcome.errors.len()), (8_500, 1));
        assert_eq!(outcome.errors[0].index, 8_500);
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), 8_500);
        assert_eq!(c.find(doc! {}).sort(doc! { "_id": -1 }).first().unwrap(), Some(rawdoc! { "_id": 8_499 }));
    });
}

#[test]
fn a_cancelled_or_timed_out_write_has_no_effect() {
    on_every_store(|test| {
        let c = test.collection("c");
        let token = CancelToken::new();
        token.cancel();
        let documents = [rawdoc! { "_id": 1 }];
        assert_eq!(c.insert_many(&documents).ordered(true).cancel(token).run().unwrap_err().code(), 11601);
        assert_eq!(c.insert_many(&documents).ordered(true).deadline(Duration::ZERO).run().unwrap_err().code(), 50);
        let late = c.bulk_write([WriteOperation::insert_one(doc! {})]).deadline(Duration::ZERO).run();
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Interrupted);
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), 0);
    });
}

fn operations() -> Vec<WriteOperation> {
    vec![
        WriteOperation::insert_one(doc! { "_id": 1, "a": 1 }),
        WriteOperation::insert_one(doc! { "_id": 2, "a": 2 }),
        WriteOperation::update_many(doc! {}, doc! { "$inc": { "a": 10 } }),
        WriteOperation::insert_one(doc! { "_id": 1 }),
        WriteOperation::update_one(doc! { "_id": 9 }, doc! { "$set": { "a": 9 } }).upsert(),
        WriteOperation::update_one(doc! {}, doc! { "$nothing": 1 }),
        WriteOperation::replace_one(doc! { "a": 12 }, doc! { "a": 99 }),
        WriteOperation::delete_one(doc! { "a": { "$gte": 9 } }).sort(doc! { "a": -1 }),
        WriteOperation::delete_many(doc! { "a": 11 }).sort(doc! { "a": 1 }),
    ]
}

#[test]
fn an_unordered_bulk_write_executes_all_valid_operations() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1 }).unique()).run().unwrap();
        let outcome = c.bulk_write(operations()).ordered(false).run().unwrap();
        let errors: Vec<_> = outcome.errors.iter().map(|error| (error.index, error.error.code())).collect();
        assert_eq!(errors, [(3, 11000), (5, 9), (8, 72)]);
        assert_eq!(outcome.inserted_ids.into_iter().collect::<Vec<_>>(), [(0, 1.into()), (1, 2.into())]);
        assert_eq!(outcome.upserted_ids.into_iter().collect::<Vec<_>>(), [(4, 9.into())]);
        assert_eq!((outcome.matched, outcome.modified, outcome.deleted), (3, 3, 1));
        assert_eq!(all(&c), [rawdoc! { "_id": 1, "a": 11 }, rawdoc! { "_id": 9, "a": 9 }]);
        assert_eq!(by_index(&c, "a"), [Bson::Int32(9), Bson::Int32(1)]);
    });
}

#[test]
fn an_ordered_bulk_write_stops_at_the_first_rejected_operation() {
    on_every_store(|test| {
        let c = test.collection("c");
        let outcome = c.bulk_write(operations()).run().unwrap();
        assert_eq!(outcome.errors.iter().map(|error| error.index).collect::<Vec<_>>(), [3]);
        assert_eq!(all(&c), [rawdoc! { "_id": 1, "a": 11 }, rawdoc! { "_id": 2, "a": 12 }]);
    });
}

/// An update of several batches of documents is rejected as a whole, and earlier operations remain.
#[test]
fn a_bulk_write_continues_after_a_rejected_large_update() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1 }).unique()).run().unwrap();
        c.insert_many(&(0..1_000).map(|n| rawdoc! { "_id": n, "a": n }).collect::<Vec<_>>()).run().unwrap();
        let outcome = c
            .bulk_write([
                WriteOperation::update_one(doc! { "_id": 0 }, doc! { "$set": { "b": 1 } }),
                WriteOperation::update_many(doc! {}, doc! { "$set": { "a": 5 } }),
                WriteOperation::update_many(doc! {}, doc! { "$inc": { "a": 1 } }),
            ])
            .ordered(false)
            .run()
            .unwrap();
        assert_eq!((outcome.errors.len(), outcome.errors[0].index, outcome.errors[0].error.code()), (1, 1, 11000));
        assert_eq!(outcome.modified, 1_001);
        assert_eq!(c.find_by_id(0).unwrap(), Some(rawdoc! { "_id": 0, "a": 1, "b": 1 }));
    });
}

#[test]
fn a_bulk_write_over_several_collections_is_one_commit() {
    on_every_store(|TestDatabase { db, .. }| {
        let outcome = db
            .bulk_write([
                ("users", WriteOperation::insert_one(doc! { "_id": 1 })),
                ("orders", WriteOperation::insert_one(doc! { "_id": 1 })),
                ("no$name", WriteOperation::insert_one(doc! { "_id": 1 })),
                ("no$name", WriteOperation::insert_one(doc! { "_id": 2 })),
                ("orders", WriteOperation::update_one(doc! {}, doc! { "$set": { "user": 1 } })),
            ])
            .ordered(false)
            .run()
            .unwrap();
        let errors: Vec<_> = outcome.errors.iter().map(|error| (error.index, error.error.code())).collect();
        assert_eq!(errors, [(2, 73), (3, 73)]);
        assert_eq!(db.list_collection_names().unwrap(), ["orders", "users"]);
        assert_eq!(outcome.modified, 1);
    });
}

#[test]
fn all_or_nothing_is_a_transaction_around_a_bulk_write() {
    on_every_store(|test| {
        let tried = test.db.transact(|tx| {
            let c = tx.collection::<RawDocumentBuf>("c");
            c.bulk_write(operations()).run()?.into_result()
        });
        assert_eq!(tried.unwrap_err().code(), 11000);
        assert_eq!(test.collection("c").count_documents(doc! {}).run().unwrap(), 0);
    });
}

#[test]
fn update_one_with_a_sort_updates_the_first_and_breaks_ties_by_id() {
    on_every_store(|test| {
        for indexed in [false, true] {
            let c = test.collection(&format!("c{indexed}"));
            let documents = [("a", 1, 1), ("b", 2, 3), ("c", 3, 3), ("d", 4, 2)]
                .map(|(id, n, rank)| rawdoc! { "_id": id, "n": n, "rank": rank });
            c.insert_many(&documents).run().unwrap();
            if indexed {
                c.create_index(Index::on(doc! { "rank": -1, "n": 1 })).run().unwrap();
            }
            let take = |sort| {
                c.update_one(doc! { "done": { "$exists": false } }, doc! { "$set": { "done": true } }).sort(sort).run()
            };
            assert_eq!(take(doc! { "rank": -1 }).unwrap().modified, 1);
            assert_eq!(take(doc! { "rank": -1, "n": -1 }).unwrap().modified, 1);
            assert_eq!(take(doc! { "rank": 1 }).unwrap().modified, 1);
            let left = c.find(doc! { "done": { "$exists": false } }).run().unwrap().map(Result::unwrap);
            assert_eq!(left.map(|row| row.get_str("_id").unwrap().to_owned()).collect::<Vec<_>>(), ["d"]);
            let replaced = c.replace_one(doc! {}, &rawdoc! { "last": true }).sort(doc! { "_id": -1 }).run().unwrap();
            assert_eq!((replaced.matched, c.find_by_id("d").unwrap()), (1, Some(rawdoc! { "_id": "d", "last": true })));
        }
    });
}

#[test]
fn current_date_sets_a_different_timestamp_in_each_document() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_many(&(0..600).map(|n| rawdoc! { "_id": n }).collect::<Vec<_>>()).run().unwrap();
        let stamp = doc! { "$currentDate": { "at": { "$type": "timestamp" }, "on": true } };
        assert_eq!(c.update_many(doc! {}, stamp.clone()).run().unwrap().modified, 600);
        c.update_one(doc! { "_id": "new" }, stamp).upsert().run().unwrap();
        assert_eq!(c.distinct("at", doc! {}).run().unwrap().len(), 601);
        assert_eq!(c.distinct("on", doc! { "_id": { "$lt": 600 } }).run().unwrap().len(), 1, "one update has one date");
        let recent = DateTime::from_millis(DateTime::now().timestamp_millis() - 60_000);
        assert_eq!(c.count_documents(doc! { "on": { "$gt": recent } }).run().unwrap(), 601);
    });
}

#[test]
fn an_empty_timestamp_is_filled_in_by_inserts_and_replacements() {
    on_every_store(|test| {
        let c = test.collection("c");
        let empty = Timestamp { time: 0, increment: 0 };
        let stamped = || {
            let document = c.find_one(doc! {}).run().unwrap().unwrap();
            document.get_timestamp("t").unwrap().time > 0
        };
        c.replace_one(doc! { "_id": 1 }, &rawdoc! { "t": empty }).upsert().run().unwrap();
        assert!(stamped());
        c.upsert_many(&[rawdoc! { "_id": 1, "t": empty }]).unwrap();
        assert!(stamped());
        c.merge_many([doc! { "_id": 1, "t": empty }]).unwrap();
        assert!(!stamped(), "a merge writes values unchanged");
        c.drop().unwrap();
        c.merge_many([doc! { "_id": 1, "t": empty }]).unwrap();
        assert!(stamped(), "an insert fills in the timestamp");
    });
}

#[test]
fn operations_of_a_bulk_write_obey_the_collations_of_their_collections() {
    on_every_store(|database| {
        let options = CollectionOptions::new().collation(doc! { "locale": "en", "strength": 2 });
        let (collated, plain) = (database.collection("collated"), database.collection("plain"));
        collated.create_with(&options).unwrap();
        for collection in [&collated, &plain] {
            collection.insert_many(&[rawdoc! { "_id": 1, "s": "a" }, rawdoc! { "_id": 2, "s": "A" }]).run().unwrap();
        }
        let operations = || {
            let insert = WriteOperation::insert_one(doc! { "_id": 3, "s": "b" });
            let update = WriteOperation::update_many(doc! { "s": "A" }, doc! { "$set": { "found": true } });
            [insert, update, WriteOperation::delete_many(doc! { "s": "A", "_id": 1 })]
        };
        let counts = |result: BulkWriteResult| (result.inserted_ids.len(), result.matched, result.deleted);
        // In a transaction the operations before stay, so they must not be applied twice.
        let transaction = database.db.begin().unwrap();
        let within = transaction.collection::<RawDocumentBuf>("collated").bulk_write(operations()).run();
        assert_eq!(counts(within.unwrap()), (1, 2, 1));
        transaction.rollback();
        let both = ["plain", "collated"].into_iter().flat_map(|name| operations().map(|operation| (name, operation)));
        assert_eq!(counts(database.db.bulk_write(both).run().unwrap()), (2, 3, 1));
        assert_eq!((plain.find(doc! {}).count().run().unwrap(), collated.find(doc! {}).count().run().unwrap()), (3, 2));
    });
}

/// A call can have 100,000 refused operations; their errors must not show each refused value.
#[test]
fn the_errors_of_a_bulk_write_are_shortened_by_their_position_among_all_of_the_call() {
    const DETAILED: usize = 256;
    let database = Store::Memory.open();
    let checked = database.collection("checked");
    checked.create_with(&CollectionOptions::new().validator(&Validator::new(doc! { "n": 1 }))).unwrap();
    let refused = || WriteOperation::insert_one(doc! { "n": 2 });
    let update = || WriteOperation::update_one(doc! { "n": 3 }, doc! { "$set": { "n": 1 } });
    // Each run of inserts has one document.
    let alternating = (0..300).flat_map(|_| [refused(), update()]);
    let result = checked.bulk_write(alternating).ordered(false).run().unwrap();
    assert_eq!(result.errors.len(), 300);
    for (nth, error) in result.errors.iter().enumerate() {
        assert_eq!((error.index, error.error.details().is_some()), (2 * nth, nth < DETAILED));
    }
    // Operations that cannot be parsed show long names.
    let unknown = || WriteOperation::update_one(doc! {}, doc! { ("$".to_owned() + &"x".repeat(40_000)): 1 });
    let result = checked.bulk_write((0..300).map(|_| unknown())).ordered(false).run().unwrap();
    assert_eq!(result.errors.len(), 300);
    for (nth, error) in result.errors.iter().enumerate() {
        let message = error.error.to_string();
        // The message and the path.
        assert!(message.len() < 2 * if nth < DETAILED { 17_000 } else { 600 }, "{nth}: {} bytes", message.len());
    }
}
