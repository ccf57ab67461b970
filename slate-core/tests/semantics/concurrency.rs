//! Concurrent transactions.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    time::Duration,
};

use bson::{RawDocumentBuf, doc, rawdoc};
use slate_core::{ErrorKind, Index};

use crate::{
    Documents,
    common::{STORES, finds, ids, on_every_store, raw, rows},
    contents, insert, refused,
};

#[test]
fn one_of_two_concurrent_inserts_of_a_unique_value_fails() {
    on_every_store(|database| {
        let users = database.collection("users");
        users.create_index(Index::on(doc! { "mail": 1 }).unique()).run().unwrap();
        for round in 0..30 {
            let (barrier, inserted) = (Barrier::new(4), AtomicI32::new(0));
            std::thread::scope(|scope| {
                for writer in 0..4 {
                    let (users, barrier, inserted) = (users.clone(), &barrier, &inserted);
                    scope.spawn(move || {
                        barrier.wait();
                        match users.insert_one(&rawdoc! { "_id": round * 4 + writer, "mail": round }) {
                            Ok(_) => drop(inserted.fetch_add(1, Ordering::Relaxed)),
                            Err(error) => assert_eq!(error.kind(), ErrorKind::DuplicateKey, "{error}"),
                        }
                    });
                }
            });
            assert_eq!(inserted.into_inner(), 1);
            assert_eq!(users.count_documents(doc! { "mail": round }).run().unwrap(), 1);
        }
    });
}

#[test]
fn the_second_of_two_transactions_with_one_unique_value_conflicts() {
    on_every_store(|database| {
        let users = database.collection("users");
        users.create_index(Index::on(doc! { "mail": 1 }).unique()).run().unwrap();
        let (first, second) = (database.db.begin().unwrap(), database.db.begin().unwrap());
        first.collection("users").insert_one(&rawdoc! { "_id": 1, "mail": "a" }).unwrap();
        second.collection("users").insert_one(&rawdoc! { "_id": 2, "mail": "a" }).unwrap();
        first.commit().unwrap();
        let error = second.commit().unwrap_err();
        assert!(error.is_retryable() && error.kind() == ErrorKind::Conflict, "{error}");
        finds(&users.find(doc! { "mail": "a" }), [1]);
    });
}

#[test]
fn concurrent_increments_are_all_counted() {
    on_every_store(|database| {
        let db = &database.db;
        let counters = database.collection("counters");
        counters.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
        insert(&counters, [doc! { "_id": 0, "n": 0 }, doc! { "_id": 1, "n": 0 }]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let inc = doc! { "$inc": { "n": 1 } };
                        db.collection::<RawDocumentBuf>("counters").update_one(doc! { "_id": 0 }, &inc).run().unwrap();
                        db.transact(|tx| {
                            let counters: Documents = tx.collection("counters");
                            let n = counters.find_by_id(1)?.unwrap().get_i32("n").unwrap();
                            counters.update_one(doc! { "_id": 1 }, doc! { "$set": { "n": n + 1 } }).run()
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(contents(&counters), [doc! { "_id": 0, "n": 200 }, doc! { "_id": 1, "n": 200 }]);
        finds(&counters.find(doc! { "n": 200 }), [0, 1]);
    });
}

#[test]
fn creating_an_index_conflicts_with_open_writers_of_its_collection() {
    on_every_store(|database| {
        let db = &database.db;
        let users = database.collection("users");
        let others = database.collection("others");
        insert(&users, [doc! { "_id": 0, "a": 0 }]);
        insert(&others, [doc! { "_id": 0, "a": 0 }]);
        // The writer commits first: the index would lack its document.
        let (writer, creator) = (db.begin().unwrap(), db.begin().unwrap());
        writer.collection("users").insert_one(&rawdoc! { "_id": 1, "a": 1 }).unwrap();
        creator.collection::<RawDocumentBuf>("users").create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        writer.commit().unwrap();
        assert!(creator.commit().is_err_and(|error| error.is_retryable()), "an index without the writer's document");
        assert!(users.list_indexes().unwrap().is_empty());
        // The index is committed first: the writer's document would lack an entry.
        let (writer, creator) = (db.begin().unwrap(), db.begin().unwrap());
        writer.collection("users").insert_one(&rawdoc! { "_id": 2, "a": 2 }).unwrap();
        let elsewhere = db.begin().unwrap();
        elsewhere.collection("others").insert_one(&rawdoc! { "_id": 1, "a": 1 }).unwrap();
        creator.collection::<RawDocumentBuf>("users").create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        creator.commit().unwrap();
        assert!(writer.commit().is_err_and(|error| error.is_retryable()), "a document without its entry");
        elsewhere.commit().unwrap();
        finds(&users.find(doc! { "a": { "$gte": 0 } }), [0, 1]);
        // Dropping an index conflicts in the same way.
        let (writer, dropper) = (db.begin().unwrap(), db.begin().unwrap());
        writer.collection::<RawDocumentBuf>("users").delete_one(doc! { "_id": 1 }).run().unwrap();
        assert!(dropper.collection::<RawDocumentBuf>("users").drop_index("a_1").unwrap());
        dropper.commit().unwrap();
        assert!(writer.commit().is_err_and(|error| error.is_retryable()));
        finds(&users.find(doc! { "a": { "$gte": 0 } }), [0, 1]);
    });
}

#[test]
fn indexes_created_during_writes_are_complete() {
    on_every_store(|database| {
        let db = &database.db;
        let users = database.collection("users");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let done = &done;
                scope.spawn(move || {
                    let users: Documents = db.collection("users");
                    for n in 0..60 {
                        let id = writer * 1_000 + n;
                        let a = if n % 10 == 9 {
                            raw(&doc! { "_id": id, "a": [n, 100] })
                        } else {
                            raw(&doc! { "_id": id, "a": n })
                        };
                        users.insert_one(&a).unwrap();
                        users.update_one(doc! { "_id": id }, doc! { "$set": { "b": n } }).run().unwrap();
                    }
                    done.store(true, Ordering::Release);
                });
            }
            while !done.load(Ordering::Acquire) {
                users.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
                users.create_index(Index::on(doc! { "b": -1, "a": 1 })).run().unwrap();
                users.drop_index("b_-1_a_1").unwrap();
            }
        });
        users.create_index(Index::on(doc! { "b": -1, "a": 1 })).run().unwrap();
        let every: Vec<i32> = (0..60).chain(1_000..1_060).collect();
        finds(&users.find(doc! { "a": { "$gte": 0 } }), every.clone());
        finds(&users.find(doc! { "b": { "$gte": 0 } }), every);
        finds(&users.find(doc! { "a": 100 }), [9, 19, 29, 39, 49, 59].into_iter().flat_map(|n| [n, n + 1_000]));
    });
}

#[test]
fn a_waiting_writer_continues_when_the_other_ends() {
    on_every_store(|database| {
        let db = &database.db;
        database.collection("users").create().unwrap();
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let transaction = db.begin().unwrap();
                transaction.collection("users").insert_one(&rawdoc! { "_id": 0 }).unwrap();
                barrier.wait();
                std::thread::sleep(Duration::from_millis(50));
                transaction.commit().unwrap();
            });
            barrier.wait();
            db.collection("users").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        });
        finds(&database.collection("users").find(doc! {}), [0, 1]);
    });
}

#[test]
fn readers_see_complete_commits_during_writes() {
    on_every_store(|database| {
        let db = &database.db;
        let users = database.collection("users");
        users.create_index(Index::on(doc! { "round": 1 })).run().unwrap();
        insert(&users, (0..20).map(|n| doc! { "_id": n, "round": 0 }));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let users: Documents = db.collection("users");
                    while !done.load(Ordering::Acquire) {
                        let found = rows(users.find(doc! { "round": { "$gte": 0 } }).force(2)).unwrap();
                        let round = found[0].get_i32("round").unwrap();
                        assert_eq!(found.len(), 20, "{:?}", ids(&found));
                        assert!(found.iter().all(|row| row.get_i32("round").unwrap() == round), "an incomplete commit");
                    }
                });
            }
            for _ in 0..100 {
                users.update_many(doc! {}, doc! { "$inc": { "round": 1 } }).run().unwrap();
            }
            done.store(true, Ordering::Release);
        });
    });
}

#[test]
fn a_cursor_continues_in_its_own_snapshot() {
    on_every_store(|database| {
        let users = database.collection("users");
        users.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        insert(&users, (0..1_000).map(|n| doc! { "_id": n, "a": n }));
        for plan in 0..3 {
            let mut cursor = users.find(doc! { "a": { "$gte": 0 } }).force(plan).cursor().unwrap();
            assert!(cursor.advance().unwrap());
            let transaction = database.db.begin().unwrap();
            let inside: Documents = transaction.collection("users");
            inside.delete_many(doc! {}).run().unwrap();
            transaction.commit().unwrap();
            let mut read = 1;
            while cursor.advance().unwrap() {
                assert!(cursor.current().unwrap().get_i32("a").unwrap() == read);
                read += 1;
            }
            assert_eq!(read, 1_000);
            insert(&users, (0..1_000).map(|n| doc! { "_id": n, "a": n }));
        }
    });
}

#[test]
fn an_ended_transaction_rejects_calls_and_a_dropped_one_is_rolled_back() {
    on_every_store(|database| {
        let transaction = database.db.begin().unwrap();
        let inside: Documents = transaction.collection("users");
        insert(&inside, [doc! { "_id": 0 }]);
        drop(transaction);
        let error = refused(inside.insert_one(&rawdoc! { "_id": 1 }), 251);
        assert_eq!(error.kind(), ErrorKind::TransactionOver);
        refused(inside.count_documents(doc! {}).run(), 251);
        finds(&database.collection("users").find(doc! {}), Vec::<i32>::new());
        // The next writer is admitted.
        insert(&database.collection("users"), [doc! { "_id": 2 }]);
    });
}

#[test]
fn commits_exist_after_reopening() {
    for store in STORES.into_iter().filter(|store| store.is_persistent()) {
        let database = store.open();
        let users = database.collection("users");
        users.create_index(Index::on(doc! { "a": 1 }).named("by_a")).run().unwrap();
        users.create_index(Index::on(doc! { "t": 1 }).unique().sparse()).run().unwrap();
        users.create_index(Index::on(doc! { "b": -1 }).only(doc! { "a": { "$gt": 0 } })).run().unwrap();
        insert(&users, [doc! { "_id": 0, "a": [1, 5], "b": 1 }, doc! { "_id": 1, "a": 3, "t": "x".repeat(3_000) }]);
        let (before, indexes) = (contents(&users), users.list_indexes().unwrap());
        drop(users);
        let database = database.reopen();
        let users = database.collection("users");
        assert_eq!((contents(&users), users.list_indexes().unwrap()), (before, indexes));
        finds(&users.find(doc! { "a": { "$gt": 1, "$lt": 5 } }), [0, 1]);
        refused(users.insert_one(&raw(&doc! { "t": "x".repeat(3_000) })), 11000);
    }
}
