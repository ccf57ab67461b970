//! Guarantees of calls besides their results: repeated errors, validation of bytes, no partial effects.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use bson::{RawDocumentBuf, doc, rawdoc};
use common::on_every_store;
use slate_core::{ErrorKind, ExplainVerbosity, Index};

/// Returns a document with one field of an unknown BSON type.
fn damaged() -> RawDocumentBuf {
    RawDocumentBuf::from_bytes(vec![8, 0, 0, 0, 0x55, b'a', 0, 0]).unwrap()
}

#[test]
fn an_id_given_twice_leaves_the_unique_entries_of_the_last_document_only() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.create_index(Index::on(doc! { "u": 1 }).unique()).run().unwrap();
        let mut documents: Vec<RawDocumentBuf> = (1..2_500).map(|n| rawdoc! { "_id": n, "u": n }).collect();
        documents.push(rawdoc! { "_id": 1, "u": 10_000 });
        c.upsert_many(&documents).unwrap();
        assert_eq!(c.count_documents(doc! { "u": 1 }).run().unwrap(), 0, "the first document's value is free");
        assert_eq!(c.find_one(doc! { "u": 10_000 }).run().unwrap().unwrap().get_i32("_id").unwrap(), 1);
        c.insert_one(&rawdoc! { "_id": 0, "u": 1 }).unwrap();
    });
}

#[test]
fn an_invalid_argument_fails_each_time_the_call_runs() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_one(&rawdoc! { "_id": 1 }).unwrap();
        let deletion = c.delete_many(doc! { "a\0b": 1 });
        for _ in 0..2 {
            assert_eq!(deletion.clone().run().unwrap_err().kind(), ErrorKind::Conversion);
        }
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), 1);
    });
}

#[test]
fn raw_bytes_are_validated_in_every_call() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_one(&rawdoc! { "_id": 1 }).unwrap();
        assert_eq!(c.delete_many(damaged()).run().unwrap_err().code(), 22);
        assert_eq!(c.find(damaged()).run().unwrap_err().code(), 22);
        assert_eq!(c.find(doc! {}).sort(damaged()).run().unwrap_err().code(), 22);
        assert_eq!(c.update_many(doc! {}, damaged()).run().unwrap_err().code(), 22);
        assert_eq!(c.replace_one(doc! {}, &damaged()).run().unwrap_err().code(), 22);
        assert_eq!(c.insert_one(&damaged()).unwrap_err().code(), 22);
        assert_eq!(c.create_index(Index::on(damaged())).run().unwrap_err().code(), 22);
        let mut deep = rawdoc! {};
        for _ in 0..500 {
            deep = rawdoc! { "a": deep };
        }
        assert_eq!(c.find(rawdoc! { "a": deep }).run().unwrap_err().code(), 15);
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), 1);
    });
}

#[test]
fn find_one_and_update_fails_in_a_transaction_if_its_projection_fails() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_one(&rawdoc! { "_id": 1, "a": [1, 2] }).unwrap();
        let transaction = test.db.begin().unwrap();
        let inside = transaction.collection::<RawDocumentBuf>("c");
        let update = inside.find_one_and_update(doc! { "_id": 1 }, doc! { "$set": { "x": 1 } });
        update.projection(doc! { "a.$": 1 }).run().unwrap_err();
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::TransactionOver);
        assert_eq!(c.count_documents(doc! { "x": 1 }).run().unwrap(), 0);
    });
}

#[test]
fn a_write_to_one_document_uses_natural_order_on_request() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_many(&[rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }, rawdoc! { "_id": 3 }]).run().unwrap();
        let taken = c.find_one_and_delete(doc! {}).sort(doc! { "$natural": -1 }).run().unwrap().unwrap();
        assert_eq!(taken.get_i32("_id").unwrap(), 3);
        let updated = c.update_one(doc! {}, doc! { "$set": { "x": 1 } }).sort(doc! { "$natural": -1 });
        updated.run().unwrap();
        assert_eq!(c.find_one(doc! { "x": 1 }).run().unwrap().unwrap().get_i32("_id").unwrap(), 2);
    });
}

#[test]
fn a_cursor_has_no_position_after_its_limit() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_many(&[rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }]).run().unwrap();
        let mut cursor = c.find(doc! {}).limit(1).cursor().unwrap();
        assert!(cursor.current().is_none());
        assert!(cursor.advance().unwrap() && cursor.current().is_some());
        assert!(!cursor.advance().unwrap() && cursor.current().is_none());
    });
}

#[test]
fn a_nested_call_on_one_transaction_fails_at_once() {
    on_every_store(|test| {
        test.collection("c").insert_many(&[rawdoc! { "_id": 1 }]).run().unwrap();
        let transaction = test.db.begin().unwrap();
        let c = transaction.collection::<RawDocumentBuf>("c");
        let mut met = None;
        c.create_index(Index::on(doc! { "a": 1 }))
            .progress(|_| met = c.count_documents(doc! {}).run().err())
            .run()
            .unwrap();
        assert_eq!(met.unwrap().kind(), ErrorKind::Reentrant);
    });
}

#[test]
fn an_update_with_a_too_large_result_fails_with_too_large() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_one(&rawdoc! { "_id": 1, "a": "x".repeat(9 << 20) }).unwrap();
        let update = c.update_one(doc! { "_id": 1 }, doc! { "$set": { "b": "x".repeat(9 << 20) } });
        assert_eq!(update.run().unwrap_err().kind(), ErrorKind::TooLarge);
    });
}

#[test]
fn a_hint_by_the_keys_of_several_indexes_is_ambiguous() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_many(&[rawdoc! { "_id": 1, "a": 1 }, rawdoc! { "_id": 2, "a": 2 }]).run().unwrap();
        c.create_index(Index::on(doc! { "a": 1 }).only(doc! { "a": { "$gt": 1 } }).named("partial")).run().unwrap();
        c.create_index(Index::on(doc! { "a": 1 }).named("full")).run().unwrap();
        let hint = slate_core::Hint::Keys(common::raw(&doc! { "a": 1 }));
        assert_eq!(c.find(doc! {}).hint(hint.clone()).run().err().unwrap().code(), 27);
        assert_eq!(c.find(doc! {}).hint(slate_core::Hint::Name("partial".into())).run().unwrap().count(), 1);
        c.hide_index("partial").unwrap();
        assert_eq!(c.find(doc! {}).hint(hint).run().unwrap().count(), 2);
    });
}

#[test]
fn a_count_of_keys_can_be_cancelled() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_many(&(0..500).map(|n| rawdoc! { "_id": n, "a": n }).collect::<Vec<_>>()).run().unwrap();
        c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        let token = slate_core::CancelToken::new();
        token.cancel();
        for filter in [doc! {}, doc! { "_id": { "$gte": 0 } }, doc! { "a": { "$gte": 0 } }] {
            let count = c.find(filter).count();
            let plan = count.clone().explain(ExplainVerbosity::QueryPlanner).unwrap();
            assert!(plan.to_string().starts_with("COUNT KEYS"), "{plan}");
            assert_eq!(count.cancel(token.clone()).run().unwrap_err().kind(), ErrorKind::Interrupted);
        }
    });
}

#[test]
fn documents_rejected_during_encoding_leave_no_bytes_in_the_others() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        let documents = [
            rawdoc! { "a": 1 },
            damaged(),
            rawdoc! { "_id": 2, "a": 2 },
            rawdoc! { "a": 3, "_id": { "$a": 1 } },
            rawdoc! { "a": 4, "_id": [1] },
            rawdoc! { "_id": 2, "a": 5 },
            rawdoc! { "a": 6 },
        ];
        let inserted = c.insert_many(&documents).ordered(false).run().unwrap();
        assert_eq!(inserted.errors.iter().map(|error| error.index).collect::<Vec<_>>(), [1, 3, 4, 5]);
        for (a, found) in [(1, 1), (2, 1), (3, 0), (4, 0), (5, 0), (6, 1)] {
            assert_eq!(c.count_documents(doc! { "a": a }).run().unwrap(), found, "{a}");
            assert_eq!(c.find(doc! { "a": a }).run().unwrap().map(Result::unwrap).count() as u64, found, "{a}");
        }
        assert_eq!(c.find(doc! {}).run().unwrap().map(Result::unwrap).count(), 3);
    });
}
