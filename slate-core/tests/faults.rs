//! Regression tests for faults of an earlier system.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the numbers are small"
)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use bson::{Bson, RawDocumentBuf, doc, rawdoc};
use common::{each_plan, finds, finds_in_order, ids, on_every_store, random_values, raw, rows};
use slate_core::{Collection, Index};

type Documents = Collection<RawDocumentBuf>;

fn insert(collection: &Documents, documents: impl IntoIterator<Item = bson::Document>) {
    let documents: Vec<RawDocumentBuf> = documents.into_iter().map(|document| raw(&document)).collect();
    collection.insert_many(&documents).run().unwrap();
}

#[test]
fn a_prefix_of_an_indexed_string_does_not_match_it() {
    on_every_store(|database| {
        let names = database.collection("names");
        names.create_index(Index::on(doc! { "name": 1 })).run().unwrap();
        names.create_index(Index::on(doc! { "name": -1, "n": 1 })).run().unwrap();
        let texts = ["", "a", "ab", "abc", "a\0", "a\0b", "a\u{1}", "a\u{ff}", "b"];
        insert(&names, texts.iter().enumerate().map(|(n, text)| doc! { "_id": n as i32, "name": *text, "n": 1 }));
        for (n, text) in texts.iter().enumerate() {
            finds(&names.find(doc! { "name": *text }), [n as i32]);
            finds(&names.find(doc! { "name": *text, "n": 1 }), [n as i32]);
            finds(&names.find(doc! { "name": { "$in": [*text] } }), [n as i32]);
        }
        finds(&names.find(doc! { "name": { "$gt": "a", "$lt": "ab" } }), [4, 5, 6]);
        finds(&names.find(doc! { "name": { "$lte": "a" } }), [0, 1]);
    });
}

#[test]
fn int32_int64_double_and_decimal_agree_between_index_and_scan() {
    on_every_store(|database| {
        let numbers = database.collection("numbers");
        numbers.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
        numbers.create_index(Index::on(doc! { "n": -1, "m": 1 })).run().unwrap();
        let ones: [Bson; 4] = [1_i32.into(), 1_i64.into(), 1.0.into(), Bson::Decimal128("1.00".parse().unwrap())];
        insert(&numbers, ones.iter().enumerate().map(|(n, one)| doc! { "_id": n as i32, "n": one.clone() }));
        let large = (1_i64 << 53) + 1;
        insert(
            &numbers,
            [
                doc! { "_id": 10, "n": large },
                doc! { "_id": 11, "n": (1_i64 << 53) as f64 },
                doc! { "_id": 12, "n": 0.1 },
                doc! { "_id": 13, "n": Bson::Decimal128("0.1".parse().unwrap()) },
                doc! { "_id": 14, "n": 1.5 },
            ],
        );
        for one in &ones {
            finds(&numbers.find(doc! { "n": one.clone() }), [0, 1, 2, 3]);
            finds(&numbers.find(doc! { "n": { "$gte": one.clone(), "$lt": 1.5 } }), [0, 1, 2, 3]);
            finds(&numbers.find(doc! { "n": { "$gt": one.clone(), "$lt": 2 } }), [14]);
        }
        finds(&numbers.find(doc! { "n": large }), [10]);
        finds(&numbers.find(doc! { "n": { "$gt": (1_i64 << 53) as f64 } }), [10]);
        finds(&numbers.find(doc! { "n": 0.1 }), [12]);
        finds(&numbers.find(doc! { "n": Bson::Decimal128("0.1".parse().unwrap()) }), [13]);
        // The double 0.1 is slightly greater than the decimal 0.1.
        finds_in_order(&numbers.find(doc! { "n": { "$lt": 1 } }).sort(doc! { "n": 1 }), [13, 12]);
    });
}

#[test]
fn the_id_at_the_end_of_an_index_key_is_read_completely() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "v": 1 })).run().unwrap();
        records.create_index(Index::on(doc! { "v": -1, "w": 1 })).run().unwrap();
        let mut every_id = random_values::ids();
        every_id.extend([125, 126, 127, 128, 253, 254, 255, 256, 1_900].map(|length| Bson::from("i".repeat(length))));
        // The length of the values is stored at the key's end: in one byte up to 254, in more beyond.
        for length in [0, 1, 250, 251, 252, 253, 254, 255, 256, 257, 1_990, 1_998, 2_000, 2_001, 5_000] {
            let value = "v".repeat(length);
            insert(&records, every_id.iter().map(|id| doc! { "_id": id.clone(), "v": &value, "w": "\u{ff}\0" }));
            for (drawn, found) in each_plan(&records.find(doc! { "v": &value })) {
                let (mut found, mut wanted) = (ids(&found), every_id.clone());
                found.sort_by_key(ToString::to_string);
                wanted.sort_by_key(ToString::to_string);
                assert_eq!(format!("{found:?}"), format!("{wanted:?}"), "{drawn}");
            }
            assert_eq!(records.delete_many(doc! { "v": value }).run().unwrap(), every_id.len() as u64);
        }
        assert_eq!(records.count_documents(doc! {}).run().unwrap(), 0);
    });
}

#[test]
fn a_sort_within_groups_with_a_limit_reads_complete_groups() {
    on_every_store(|database| {
        let people = database.collection("people");
        people.create_index(Index::on(doc! { "age": 1 })).run().unwrap();
        people.create_index(Index::on(doc! { "age": 1, "name": 1 })).run().unwrap();
        // Within each group, the order by `_id`, which an index on the age provides, is the reverse of that by name.
        let document = |n: i32| doc! { "_id": n, "age": n / 10, "name": format!("{:02}", 99 - n), "k": n % 2 };
        insert(&people, (0..100).map(document));
        for (limit, skip) in [(1, 0), (5, 0), (10, 0), (11, 0), (25, 0), (3, 9), (15, 8), (100, 95)] {
            let wanted = (0..100).flat_map(|n: i32| Some(n / 10 * 10 + 9 - n % 10)).skip(skip as usize).take(limit);
            let sorted = people.find(doc! {}).sort(doc! { "age": 1, "name": 1 }).skip(skip).limit(limit as u64);
            finds_in_order(&sorted, wanted);
        }
        // The limit applies after the filter, and the groups are those of the index.
        let filtered = people.find(doc! { "k": 1 }).sort(doc! { "age": -1, "name": 1 }).limit(7);
        finds_in_order(&filtered, [99, 97, 95, 93, 91, 89, 87]);
    });
}

#[test]
fn records_are_identified_by_their_ids_and_not_by_a_hash() {
    on_every_store(|database| {
        let tagged = database.collection("tagged");
        tagged.create_index(Index::on(doc! { "tags": 1 })).run().unwrap();
        let document = |n: i32| rawdoc! { "_id": n, "tags": [n, n + 1, n + 2] };
        tagged.insert_many(&(0..20_000).map(document).collect::<Vec<_>>()).run().unwrap();
        for (drawn, found) in each_plan(&tagged.find(doc! { "tags": { "$gte": 0 } })) {
            let mut found: Vec<i32> = found.iter().map(|row| row.get_i32("_id").unwrap()).collect();
            found.sort_unstable();
            assert!(found.iter().copied().eq(0..20_000), "{drawn}: {} rows", found.len());
        }
        assert_eq!(tagged.count_documents(doc! { "tags": { "$gte": 10_000 } }).run().unwrap(), 10_002);
    });
}

#[test]
fn nan_does_not_break_the_order() {
    on_every_store(|database| {
        let numbers = database.collection("numbers");
        numbers.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
        numbers.create_index(Index::on(doc! { "n": -1 })).run().unwrap();
        let nan = f64::NAN;
        let decimal_nan = Bson::Decimal128("NaN".parse().unwrap());
        insert(
            &numbers,
            [
                doc! { "_id": 0, "n": 3.0 },
                doc! { "_id": 1, "n": nan },
                doc! { "_id": 2, "n": -1 },
                doc! { "_id": 3, "n": decimal_nan.clone() },
                doc! { "_id": 4, "n": f64::NEG_INFINITY },
                doc! { "_id": 5, "n": 2.5 },
                doc! { "_id": 6, "n": "text" },
                doc! { "_id": 7 },
                doc! { "_id": 8, "n": 0 },
            ],
        );
        for (drawn, found) in each_plan(&numbers.find(doc! {}).sort(doc! { "n": 1, "_id": 1 })) {
            assert_eq!(ids(&found), [7, 1, 3, 4, 2, 8, 5, 0, 6].map(Bson::Int32), "{drawn}");
        }
        for (drawn, found) in each_plan(&numbers.find(doc! {}).sort(doc! { "n": -1, "_id": 1 })) {
            assert_eq!(ids(&found), [6, 0, 5, 8, 2, 4, 1, 3, 7].map(Bson::Int32), "{drawn}");
        }
        for not_a_number in [Bson::Double(nan), decimal_nan] {
            finds(&numbers.find(doc! { "n": not_a_number.clone() }), [1, 3]);
            finds(&numbers.find(doc! { "n": { "$gte": not_a_number.clone() } }), [1, 3]);
            finds(&numbers.find(doc! { "n": { "$lte": not_a_number.clone() } }), [1, 3]);
            finds(&numbers.find(doc! { "n": { "$lt": not_a_number.clone() } }), Vec::<i32>::new());
            finds(&numbers.find(doc! { "n": { "$gt": not_a_number } }), Vec::<i32>::new());
        }
        finds(&numbers.find(doc! { "n": { "$lt": 3 } }), [2, 4, 5, 8]);
        finds(&numbers.find(doc! { "n": { "$lte": f64::NEG_INFINITY } }), [4]);
    });
}

#[test]
fn a_snapshot_shows_one_commit_in_all_collections() {
    on_every_store(|database| {
        let db = &database.db;
        for (name, balance) in [("left", 1_000), ("right", 0)] {
            db.collection(name).insert_one(&rawdoc! { "_id": 1, "balance": balance }).unwrap();
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..300 {
                    db.transact(|tx| -> slate_core::Result<()> {
                        for (name, by) in [("left", -1), ("right", 1)] {
                            let accounts = tx.collection::<RawDocumentBuf>(name);
                            accounts.update_one(doc! { "_id": 1 }, doc! { "$inc": { "balance": by } }).run()?;
                        }
                        Ok(())
                    })
                    .unwrap();
                }
                done.store(true, Ordering::Release);
            });
            let mut moved = 0;
            while !done.load(Ordering::Acquire) {
                let snapshot = db.snapshot().unwrap();
                let balance = |name: &str| {
                    let found = rows(snapshot.collection::<RawDocumentBuf>(name).find(doc! {})).unwrap();
                    found[0].get_i32("balance").unwrap()
                };
                let (left, right) = (balance("left"), balance("right"));
                assert_eq!(left + right, 1_000);
                assert!(right >= moved, "a later snapshot shows an earlier commit");
                moved = right;
                assert_eq!((left, right), (balance("left"), balance("right")), "a snapshot does not change");
            }
        });
        let left = rows(db.collection::<RawDocumentBuf>("left").find(doc! {})).unwrap();
        assert_eq!(left[0].get_i32("balance").unwrap(), 700);
    });
}
