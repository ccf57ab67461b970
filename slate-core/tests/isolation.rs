//! Isolation between transactions, on every store.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use bson::{RawDocumentBuf, doc, rawdoc};
use common::{TestDatabase, elsewhere, on_every_store};
use slate_core::{
    CancelToken, Collection, Database, Durability, Error, ErrorKind, Index, Isolation, Result, Transaction,
    TransactionOptions,
};

type Documents = Collection<RawDocumentBuf>;

fn serializable() -> TransactionOptions {
    TransactionOptions::new().isolation(Isolation::Serializable)
}

fn documents(tx: &Transaction) -> Documents {
    tx.collection("c")
}

/// Runs `first` in a transaction, runs and commits `second` in another one before the first commits, and returns the
/// outcome of the first.
fn overtake(
    test: &TestDatabase,
    options: &TransactionOptions,
    first: impl FnOnce(&Transaction) -> Result<()>,
    second: impl FnOnce(&Documents) -> Result<()> + Send,
) -> Result<()> {
    let c = test.collection("c");
    let tx = test.db.begin_with(options).unwrap();
    first(&tx).unwrap();
    elsewhere(|| second(&c)).unwrap();
    tx.commit()
}

fn must_conflict(outcome: Result<()>) {
    let Err(error) = outcome else { panic!("a conflict was missed") };
    assert!(error.is_retryable() && error.code() == 112, "{error}");
}

fn on_call(db: &Database) -> u64 {
    db.collection::<RawDocumentBuf>("c").count_documents(doc! { "on": true }).run().unwrap()
}

/// Each of two doctors goes off call if the other one stays on call. One must remain.
fn skew(test: &TestDatabase, options: &TransactionOptions, stays: impl Fn(&Documents, &str) -> bool + Sync) -> u64 {
    let c = test.collection("c");
    c.upsert_many(&[rawdoc! { "_id": "a", "on": true }, rawdoc! { "_id": "b", "on": true }]).unwrap();
    let (barrier, tries) = (Barrier::new(2), AtomicU32::new(0));
    let leave = |me: &str, other: &str| {
        let left = test.db.transact_with(options, |tx| -> Result<()> {
            let stays = stays(&documents(tx), other);
            // Both read before either writes.
            if tries.fetch_add(1, Ordering::Relaxed) < 2 {
                barrier.wait();
            }
            if stays {
                documents(tx).update_one(doc! { "_id": me }, doc! { "$set": { "on": false } }).run()?;
            }
            Ok(())
        });
        left.unwrap();
    };
    thread::scope(|scope| {
        scope.spawn(|| leave("a", "b"));
        scope.spawn(|| leave("b", "a"));
    });
    on_call(&test.db)
}

#[test]
fn serializable_isolation_prevents_write_skew_by_key() {
    let stays = |c: &Documents, other: &str| c.find_by_id(other).unwrap().unwrap().get_bool("on").unwrap();
    on_every_store(|test| {
        assert_eq!(skew(&test, &serializable(), stays), 1);
        let plain = skew(&test, &TransactionOptions::new(), stays);
        assert_eq!(plain, 0, "snapshot isolation allows it");
    });
}

#[test]
fn serializable_isolation_prevents_write_skew_by_count() {
    on_every_store(|test| {
        assert_eq!(skew(&test, &serializable(), |c, _| c.count_documents(doc! { "on": true }).run().unwrap() > 1), 1);
        assert_eq!(skew(&test, &serializable(), |c, _| c.find(doc! { "on": true }).run().unwrap().count() > 1), 1);
        let by_filter =
            |c: &Documents, other: &str| c.find_one(doc! { "_id": other, "on": true }).run().unwrap().is_some();
        assert_eq!(skew(&test, &serializable(), by_filter), 1);
    });
}

#[test]
fn a_phantom_conflicts() {
    let reads: [fn(&Documents) -> Result<()>; 6] = [
        |c| c.find(doc! { "a": { "$gt": 5 } }).run().map(|rows| assert_eq!(rows.count(), 0)),
        |c| c.count_documents(doc! { "a": 9 }).run().map(drop),
        |c| c.distinct("a", doc! {}).run().map(drop),
        |c| c.find_by_id(9).map(|found| assert!(found.is_none())),
        |c| c.find_one(doc! { "_id": 9 }).run().map(drop),
        |c| c.update_many(doc! { "a": { "$gt": 5 } }, doc! { "$set": { "b": 1 } }).run().map(drop),
    ];
    for indexed in [false, true] {
        for read in reads {
            on_every_store(|test| {
                let c = test.collection("c");
                c.insert_one(&rawdoc! { "_id": 1, "a": 1 }).unwrap();
                if indexed {
                    c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
                }
                let first = |tx: &Transaction| {
                    read(&documents(tx))?;
                    tx.collection("log").insert_one(&rawdoc! { "none": "above 5" }).map(drop)
                };
                let outcome =
                    overtake(&test, &serializable(), first, |c| c.insert_one(&rawdoc! { "_id": 9, "a": 9 }).map(drop));
                must_conflict(outcome);
                let log = test.collection("log").count_documents(doc! {}).run().unwrap();
                assert_eq!(log, 0, "no write of the conflicting transaction is visible");
            });
        }
    }
}

/// An equality on `_id` reads one record by its key, but with a collation it matches records with other keys.
#[test]
fn a_phantom_that_equals_an_id_under_a_collation_conflicts() {
    on_every_store(|test| {
        let first = |tx: &Transaction| {
            let ignore_case = doc! { "locale": "en", "strength": 2 };
            let found = documents(tx).find(doc! { "_id": "ADA" }).collation(ignore_case).run()?.count();
            tx.collection("log").insert_one(&rawdoc! { "found": i32::try_from(found).unwrap_or(-1) }).map(drop)
        };
        let outcome = overtake(&test, &serializable(), first, |c| c.insert_one(&rawdoc! { "_id": "ada" }).map(drop));
        must_conflict(outcome);
    });
}

/// A write that is rejected or changes nothing has read the documents that cause this. The transaction conflicts with a commit that
/// changes them.
#[test]
fn a_rejected_write_guards_what_it_read() {
    // Several batches; the existing or conflicting document is in the last one.
    let many = || (2..600).map(|n| doc! { "_id": n, "a": n + 1_000 });
    let refused: [&dyn Fn(&Documents); 7] = [
        &|c| drop(c.insert_one(&rawdoc! { "_id": 1 }).unwrap_err()),
        &|c| drop(c.insert_one(&rawdoc! { "_id": 2, "a": 1 }).unwrap_err()),
        &|c| drop(c.upsert_many(&[rawdoc! { "_id": 2, "a": 1 }]).unwrap_err()),
        &|c| drop(c.merge_many(many().chain([doc! { "_id": 700, "a": 1 }])).unwrap_err()),
        &|c| assert_eq!(c.merge_many([doc! { "_id": 1, "a": 1 }]).unwrap().modified, 0),
        &|c| assert_eq!(c.merge_many(many().chain([doc! { "_id": 1, "a": 1 }])).unwrap().modified, 0),
        &|c| assert_eq!(c.delete_many(doc! { "a": 7 }).run().unwrap(), 0),
    ];
    for write in refused {
        on_every_store(|test| {
            let c = test.collection("c");
            c.create_index(Index::on(doc! { "a": 1 }).unique()).run().unwrap();
            c.insert_one(&rawdoc! { "_id": 1, "a": 1 }).unwrap();
            let first = |tx: &Transaction| {
                write(&documents(tx));
                tx.collection("log").insert_one(&rawdoc! {}).map(drop)
            };
            let change = doc! { "$set": { "a": 7 } };
            let outcome = overtake(&test, &serializable(), first, |c| c.update_one(doc! {}, change).run().map(drop));
            must_conflict(outcome);
        });
    }
}

#[test]
fn reading_a_missing_collection_is_guarded() {
    on_every_store(|test| {
        let first = |tx: &Transaction| {
            assert!(!documents(tx).exists()?);
            assert_eq!(documents(tx).count_documents(doc! {}).run()?, 0);
            tx.collection("log").insert_one(&rawdoc! {}).map(drop)
        };
        must_conflict(overtake(&test, &serializable(), first, Collection::create));
    });
}

#[test]
fn changes_outside_the_read_set_do_not_conflict() {
    on_every_store(|test| {
        test.collection("c").insert_many(&[rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }]).run().unwrap();
        test.collection("other").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        let first = |tx: &Transaction| {
            documents(tx).find_by_id(1)?;
            tx.collection::<RawDocumentBuf>("other").count_documents(doc! {}).run()?;
            tx.collection("log").insert_one(&rawdoc! {}).map(drop)
        };
        let second = |c: &Documents| c.update_one(doc! { "_id": 2 }, doc! { "$set": { "a": 1 } }).run().map(drop);
        overtake(&test, &serializable(), first, second).unwrap();
        let reads_only = |tx: &Transaction| documents(tx).count_documents(doc! {}).run().map(drop);
        let second = |c: &Documents| c.insert_one(&rawdoc! {}).map(drop);
        overtake(&test, &serializable(), reads_only, second).unwrap();
    });
}

#[test]
fn snapshot_isolated_writers_do_not_conflict_because_of_a_serializable_one() {
    on_every_store(|test| {
        test.collection("c").insert_one(&rawdoc! { "_id": 0 }).unwrap();
        let watching = test.db.begin_with(&serializable()).unwrap();
        documents(&watching).count_documents(doc! {}).run().unwrap();
        let (first, second) = (test.db.begin().unwrap(), test.db.begin().unwrap());
        documents(&first).insert_one(&rawdoc! { "_id": 1 }).unwrap();
        documents(&second).insert_one(&rawdoc! { "_id": 2 }).unwrap();
        first.commit().unwrap();
        second.commit().unwrap();
        documents(&watching).insert_one(&rawdoc! { "_id": 3 }).unwrap();
        assert!(watching.commit().unwrap_err().is_retryable());
        assert_eq!(test.collection("c").count_documents(doc! {}).run().unwrap(), 3);
    });
}

/// Each transaction inserts a document with the count that it read. In a serial execution all counts differ.
#[test]
fn serializable_transactions_are_equivalent_to_a_serial_execution() {
    on_every_store(|test| {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..15 {
                        let options = serializable().lock_timeout(Duration::from_secs(60));
                        let added = test.db.transact_with(&options, |tx| {
                            let seen = i64::try_from(documents(tx).count_documents(doc! {}).run()?).unwrap();
                            documents(tx).insert_one(&rawdoc! { "seen": seen })
                        });
                        added.unwrap();
                    }
                });
            }
        });
        let c = test.collection("c");
        assert_eq!(c.distinct("seen", doc! {}).run().unwrap().len(), 60);
    });
}

#[test]
fn a_transaction_past_its_deadline_is_not_committed() {
    on_every_store(|test| {
        let options = TransactionOptions::new().deadline(Duration::from_millis(20));
        let mut tries = 0;
        let late = test.db.transact_with(&options, |tx| -> Result<()> {
            tries += 1;
            documents(tx).insert_one(&rawdoc! {})?;
            thread::sleep(Duration::from_millis(30));
            Ok(())
        });
        assert_eq!((late.unwrap_err().kind(), tries), (ErrorKind::Interrupted, 1));
        let late = test.db.transact_with(&options, |tx| {
            thread::sleep(Duration::from_millis(30));
            documents(tx).count_documents(doc! {}).run()
        });
        assert_eq!(late.unwrap_err().code(), 50);
        let token = CancelToken::new();
        let cancelled = test.db.transact_with(&TransactionOptions::new().cancel(token.clone()), |tx| -> Result<()> {
            documents(tx).insert_one(&rawdoc! {})?;
            token.cancel();
            Ok(())
        });
        assert_eq!(cancelled.unwrap_err().code(), 11601);
        assert_eq!(test.collection("c").count_documents(doc! {}).run().unwrap(), 0);
    });
}

#[test]
fn a_transaction_is_retried_up_to_the_configured_number() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_one(&rawdoc! { "_id": 1, "n": 0 }).unwrap();
        let increment = doc! { "$inc": { "n": 1 } };
        let mut tries = 0;
        let options = TransactionOptions::new().retries(3).backoff(Duration::ZERO, Duration::ZERO);
        let outcome: Result<(), Error> = test.db.transact_with(&options, |tx| {
            tries += 1;
            documents(tx).update_one(doc! { "_id": 1 }, &increment).run()?;
            elsewhere(|| c.update_one(doc! { "_id": 1 }, &increment).run())?;
            Ok(())
        });
        assert_eq!((outcome.unwrap_err().kind(), tries), (ErrorKind::Conflict, 4));
        assert_eq!(c.find_by_id(1).unwrap(), Some(rawdoc! { "_id": 1, "n": 4 }));
    });
}

#[test]
fn a_commit_can_have_its_own_durability() {
    on_every_store(|test| {
        for durability in [Durability::Sync, Durability::Deferred] {
            let options = TransactionOptions::new().durability(durability);
            test.db.transact_with(&options, |tx| documents(tx).insert_one(&rawdoc! {})).unwrap();
        }
        assert_eq!(test.collection("c").count_documents(doc! {}).run().unwrap(), 2);
    });
}
