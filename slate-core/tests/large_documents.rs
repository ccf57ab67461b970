//! Documents on both sides of the limits of the field table: 255 fields, and offsets of two bytes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use bson::{RawDocumentBuf, doc, raw::CString};
use common::on_every_store;
use slate_core::{ErrorKind, Hint, Index};

/// Returns a document with `fields` fields, among them `_id` and `last`.
fn wide(id: i32, fields: usize) -> RawDocumentBuf {
    let mut document = bson::rawdoc! { "_id": id };
    for field in 2..fields {
        document.append(CString::try_from(format!("f{field}")).unwrap(), i32::try_from(field).unwrap());
    }
    document.append(bson::raw::cstr!("last"), id * 10);
    assert_eq!(document.iter().count(), fields);
    document
}

/// Returns a document of `bytes` bytes.
fn long(id: i32, bytes: usize) -> RawDocumentBuf {
    let of = |text: usize| bson::rawdoc! { "_id": id, "text": "x".repeat(text), "last": id * 10 };
    let document = of(bytes - of(0).as_bytes().len());
    assert_eq!(document.as_bytes().len(), bytes);
    document
}

#[test]
fn documents_with_and_without_field_table_return_the_same_results() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.create_index(Index::on(doc! { "last": 1 })).run().unwrap();
        let documents =
            [wide(1, 255), wide(2, 256), wide(3, 300), long(4, 65_535), long(5, 65_536), long(6, 70_000), wide(7, 2)];
        c.insert_many(&documents).run().unwrap();
        for (at, document) in documents.iter().enumerate() {
            let last = (i32::try_from(at).unwrap() + 1) * 10;
            assert_eq!(c.find_by_id(last / 10).unwrap().as_ref(), Some(document));
            for found in [c.find(doc! { "last": last }), c.find(doc! { "last": last }).hint(Hint::Forward)] {
                let found = found.run().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
                assert_eq!(found, std::slice::from_ref(document));
            }
        }
        let lasts = |sign: i32| {
            let rows = c
                .find(doc! {})
                .sort(doc! { "last": sign })
                .hint(Hint::Forward)
                .projection(doc! { "last": 1, "_id": 0 });
            let rows = rows.run().unwrap().map(|row| row.unwrap().get_i32("last").unwrap());
            rows.collect::<Vec<_>>()
        };
        assert_eq!(lasts(1), [10, 20, 30, 40, 50, 60, 70]);
        assert_eq!(lasts(-1), [70, 60, 50, 40, 30, 20, 10]);
        // Updates across the limits in both directions.
        c.update_one(doc! { "_id": 1 }, doc! { "$set": { "one_more": 1 } }).run().unwrap();
        c.update_one(doc! { "_id": 2 }, doc! { "$unset": { "f2": 1 } }).run().unwrap();
        c.update_one(doc! { "_id": 4 }, doc! { "$set": { "one_more": 1 } }).run().unwrap();
        c.update_one(doc! { "_id": 5 }, doc! { "$unset": { "text": 1 } }).run().unwrap();
        assert_eq!(c.count_documents(doc! { "one_more": 1 }).run().unwrap(), 2);
        assert_eq!(c.count_documents(doc! { "f3": 3 }).run().unwrap(), 3);
        assert_eq!(c.count_documents(doc! { "text": { "$exists": true } }).run().unwrap(), 2);
        let report = test.db.verify().run().unwrap();
        assert!(report.is_sound(), "{report:?}");
    });
}

/// More bytes than one batch: the rejected document is in a later batch.
#[test]
fn a_large_insert_is_atomic() {
    on_every_store(|test| {
        let c = test.collection("c");
        let six = 6 << 20;
        let documents = [1, 2, 3, 4].map(|id| long(id, six));
        c.insert_many(&documents).run().unwrap();
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), 4);
        let with_a_twin = [5, 6, 7, 1].map(|id| long(id, six));
        assert_eq!(c.insert_many(&with_a_twin).run().unwrap_err().kind(), ErrorKind::DuplicateKey);
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), 4);
        let transaction = test.db.begin().unwrap();
        let inside = transaction.collection::<RawDocumentBuf>("c");
        inside.insert_many(&with_a_twin).run().unwrap_err();
        assert_eq!(inside.count_documents(doc! {}).run().unwrap(), 4);
        transaction.commit().unwrap();
        assert_eq!(c.count_documents(doc! {}).run().unwrap(), 4);
        assert_eq!(c.find_by_id(3).unwrap().as_ref(), documents.get(2));
    });
}

/// Several batches of bytes.
#[test]
fn a_large_put_is_atomic() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.create_index(Index::on(doc! { "last": 1 }).unique()).run().unwrap();
        let six = 6 << 20;
        let documents = [1, 2, 3, 4, 5, 6, 7].map(|id| long(id, six));
        assert_eq!(c.upsert_many(&documents).unwrap().inserted, 7);
        let shorter = [1, 2, 3, 4, 5, 6, 7].map(|id| long(id, six - id.unsigned_abs() as usize));
        assert_eq!(c.upsert_many(&shorter).unwrap().modified, 7);
        let mut with_a_twin = documents.to_vec();
        with_a_twin.push(bson::rawdoc! { "_id": 8, "last": 20 });
        assert_eq!(c.upsert_many(&with_a_twin).unwrap_err().kind(), ErrorKind::DuplicateKey);
        for document in &shorter {
            let id = document.get_i32("_id").unwrap();
            assert_eq!(c.find_by_id(id).unwrap().as_ref(), Some(document));
            assert_eq!(c.count_documents(doc! { "last": id * 10 }).run().unwrap(), 1);
        }
        // Large records and small patches.
        let merged = c.merge_many((1..=7).map(|id| doc! { "_id": id, "more": id })).unwrap();
        assert_eq!(merged.modified, 7);
        assert_eq!(c.count_documents(doc! { "more": { "$gte": 1 } }).run().unwrap(), 7);
    });
}

#[test]
fn a_new_document_above_the_limit_fails_with_code_2() {
    on_every_store(|test| {
        let c = test.collection("c");
        let large = long(1, (16 << 20) + 1);
        let error = c.insert_one(&large).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::TooLarge, 2), "{error}");
        let large = bson::Document::try_from(&*large).unwrap();
        let reply = test.db.command(doc! { "insert": "c", "documents": [large] }).unwrap();
        let reply = bson::Document::try_from(&*reply).unwrap();
        let errors = reply.get_array("writeErrors").unwrap();
        assert_eq!(errors[0].as_document().unwrap().get_i32("code").unwrap(), 2, "{reply}");
        c.insert_one(&long(1, 16 << 20)).unwrap();
    });
}
