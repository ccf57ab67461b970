//! A write outside the open transaction, by the code that has it open, fails at once and in the same way on every store.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use bson::{Document, RawDocumentBuf, doc, rawdoc};
use common::{on_every_store, raw};
use slate_core::{Error, ErrorKind, Index, Result, TransactionOptions, WriteOperation};

#[track_caller]
fn is_refused<R>(result: Result<R>) {
    let Err(error) = result else { panic!("it was executed outside of the transaction") };
    assert_eq!((error.kind(), error.code()), (ErrorKind::Reentrant, 20), "{error}");
    assert!(!error.is_retryable());
    assert!(error.to_string().contains("use the transaction's collections"), "{error}");
}

#[test]
fn every_kind_of_write_is_refused_within_transact_and_after_begin() {
    on_every_store(|test| {
        let (db, users) = (&test.db, test.collection("users"));
        users.insert_one(&rawdoc! { "_id": 0 }).unwrap();
        let all = || {
            is_refused(users.insert_one(&rawdoc! { "_id": 2 }));
            is_refused(users.insert_many(&[rawdoc! { "_id": 2 }]).run());
            is_refused(users.upsert_many(&[rawdoc! { "_id": 2 }]));
            is_refused(users.update_one(doc! {}, doc! { "$set": { "a": 1 } }).run());
            is_refused(users.delete_many(doc! {}).run());
            is_refused(users.find_one_and_delete(doc! {}).run());
            is_refused(users.bulk_write([WriteOperation::insert_one(doc! { "_id": 2 })]).run());
            is_refused(users.create_index(Index::on(doc! { "a": 1 })).run());
            is_refused(users.drop_index("a_1"));
            is_refused(users.analyze());
            is_refused(users.drop());
            is_refused(db.collection::<Document>("new").create());
            is_refused(db.transact(|tx| tx.collection("users").insert_one(&rawdoc! { "_id": 2 })));
            is_refused(db.transact_with(&TransactionOptions::new(), |_| Ok::<_, Error>(())));
            // Reads and snapshots are allowed: they show the last commit.
            assert!(users.find_by_id(1).unwrap().is_none());
            assert_eq!(
                db.snapshot().unwrap().collection::<Document>("users").count_documents(doc! {}).run().unwrap(),
                1
            );
        };
        db.transact(|tx| -> Result<()> {
            tx.collection("users").insert_one(&rawdoc! { "_id": 1 })?;
            all();
            tx.collection::<RawDocumentBuf>("users").delete_one(doc! { "_id": 1 }).run()?;
            Ok(())
        })
        .unwrap();
        let transaction = db.begin().unwrap();
        transaction.collection("users").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        all();
        transaction.commit().unwrap();
        users.insert_one(&rawdoc! { "_id": 2 }).unwrap();
        assert_eq!(users.count_documents(doc! {}).run().unwrap(), 3);
    });
}

#[test]
fn writing_is_allowed_again_however_the_transaction_ends() {
    on_every_store(|test| {
        let (db, users) = (&test.db, test.collection("users"));
        let mut ids = 0..;
        let mut write = || users.insert_one(&raw(&doc! { "_id": ids.next().unwrap() })).map(drop).unwrap();
        db.begin().unwrap().rollback();
        write();
        drop(db.begin().unwrap());
        write();
        db.transact(|_| Err::<(), _>(Error::custom("no"))).unwrap_err();
        write();
        let panics = || db.transact(|_| -> Result<()> { panic!("the caller's own") });
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).unwrap_err();
        write();
        let transaction = db.begin().unwrap();
        let within = transaction.collection::<Document>("users");
        transaction.commit().unwrap();
        write();
        assert_eq!(within.insert_one(&doc! {}).unwrap_err().kind(), ErrorKind::TransactionOver);
    });
}

#[test]
fn other_threads_and_other_databases_are_not_concerned() {
    on_every_store(|test| {
        let other = test.store.open();
        test.db
            .transact(|tx| -> Result<()> {
                tx.collection("users").insert_one(&rawdoc! { "_id": 1 })?;
                other.db.collection("log").insert_one(&rawdoc! { "_id": 1 })?;
                Ok(())
            })
            .unwrap();
        assert!(other.collection("log").find_by_id(1).unwrap().is_some());
        let transaction = test.db.begin().unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| test.db.collection("users").insert_one(&rawdoc! { "_id": 2 }).unwrap());
            writer.join().unwrap();
            transaction.rollback();
        });
        assert!(test.collection("users").find_by_id(2).unwrap().is_some());
    });
}

#[test]
fn a_thread_can_begin_a_second_transaction() {
    on_every_store(|test| {
        for name in ["users", "others"] {
            test.collection(name).create().unwrap();
        }
        let first = test.db.begin().unwrap();
        let second = test.db.begin().unwrap();
        first.collection("users").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        second.collection("others").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        first.commit().unwrap();
        is_refused(test.collection("users").insert_one(&rawdoc! { "_id": 2 }));
        second.commit().unwrap();
        test.collection("users").insert_one(&rawdoc! { "_id": 2 }).unwrap();
    });
}
