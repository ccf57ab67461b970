//! The shapes of events, and which there are.

use bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};
use slate_core::{
    CollectionOptions, FullDocument, FullDocumentBeforeChange, Index, RenameTarget, TransactionOptions, Validator,
    WriteOperation,
};

use crate::{NO_STAGES, events, kinds, logged, refused};

/// Removes what differs from run to run.
fn shape(mut event: Document) -> Document {
    let token = event.get_document("_id").unwrap().clone();
    assert_eq!(token.get_str("_data").unwrap().len(), 42);
    event.get_timestamp("clusterTime").unwrap();
    event.get_datetime("wallTime").unwrap();
    for name in ["_id", "clusterTime", "wallTime"] {
        event.remove(name);
    }
    event
}

#[test]
fn each_kind_of_write_is_an_event() {
    logged(|database| {
        let users = database.collection("users");
        users.insert_one(&rawdoc! { "_id": 0 }).unwrap();
        let mut stream = users.watch(NO_STAGES).run().unwrap();
        users.insert_one(&rawdoc! { "_id": 1, "a": [1, 2, 3], "b": { "c": 1, "d": 2 }, "e": 1 }).unwrap();
        let change = doc! { "$set": { "b.c": 5, "n": 1 }, "$unset": { "e": 1 }, "$pop": { "a": 1 } };
        users.update_one(doc! { "_id": 1 }, change).run().unwrap();
        users.update_one(doc! { "_id": 1 }, doc! { "$set": { "n": 1 } }).run().unwrap();
        users.replace_one(doc! { "_id": 1 }, &rawdoc! { "x": 1 }).run().unwrap();
        users.delete_one(doc! { "_id": 1 }).run().unwrap();
        users.update_one(doc! { "_id": 2 }, doc! { "$set": { "u": 1 } }).upsert().run().unwrap();
        users.upsert_many(&[rawdoc! { "_id": 2, "u": 2 }, rawdoc! { "_id": 3 }, rawdoc! { "_id": 3 }]).unwrap();
        users.merge_many(&[rawdoc! { "_id": 2, "v": 1 }]).unwrap();
        let found: Vec<Document> = events(&mut stream).into_iter().map(shape).collect();
        let ns = doc! { "db": "test", "coll": "users" };
        let of = |kind: &str, id: i32| doc! { "operationType": kind, "ns": &ns, "documentKey": { "_id": id } };
        let whole = |kind: &str, id: i32, document: Document| {
            doc! { "operationType": kind, "fullDocument": document, "ns": &ns, "documentKey": { "_id": id } }
        };
        let updated = |id: i32, set: Document, removed: &[&str], truncated: Bson| {
            let mut event = of("update", id);
            let removed: Vec<Bson> = removed.iter().copied().map(Bson::from).collect();
            let change = doc! { "updatedFields": set, "removedFields": removed, "truncatedArrays": truncated };
            event.insert("updateDescription", change);
            event
        };
        let none = || Bson::Array(Vec::new());
        let truncated = Bson::Array(vec![doc! { "field": "a", "newSize": 2 }.into()]);
        assert_eq!(
            found,
            [
                whole("insert", 1, doc! { "_id": 1, "a": [1, 2, 3], "b": { "c": 1, "d": 2 }, "e": 1 }),
                updated(1, doc! { "b.c": 5, "n": 1 }, &["e"], truncated),
                whole("replace", 1, doc! { "_id": 1, "x": 1 }),
                of("delete", 1),
                whole("insert", 2, doc! { "_id": 2, "u": 1 }),
                whole("replace", 2, doc! { "_id": 2, "u": 2 }),
                whole("insert", 3, doc! { "_id": 3 }),
                updated(2, doc! { "v": 1 }, &[], none()),
            ]
        );
    });
}

#[test]
fn a_transaction_of_several_collections_is_in_order_and_a_rolled_back_one_is_not_there() {
    logged(|database| {
        let mut stream = database.db.watch(NO_STAGES).run().unwrap();
        let write = |fails: bool| {
            let done = database.db.transact_with(&TransactionOptions::new(), |tx| {
                let (a, b) = (tx.collection::<RawDocumentBuf>("a"), tx.collection::<RawDocumentBuf>("$shop.b"));
                a.insert_one(&rawdoc! { "_id": 1 })?;
                b.insert_one(&rawdoc! { "_id": 1 })?;
                a.update_one(doc! {}, doc! { "$set": { "x": 1 } }).run()?;
                b.delete_many(doc! {}).run()?;
                if fails { Err(slate_core::Error::custom("no")) } else { Ok(()) }
            });
            assert_eq!(done.is_err(), fails);
        };
        write(true);
        write(false);
        let found = events(&mut stream);
        assert_eq!(kinds(&found), ["insert", "insert", "update", "delete"]);
        let names: Vec<String> = found.iter().map(|event| event.get_document("ns").unwrap().to_string()).collect();
        assert!(names[1].contains("shop") && names[2].contains("test"), "{names:?}");
        let times: Vec<_> = found.iter().map(|event| event.get_timestamp("clusterTime").unwrap()).collect();
        assert!(times.iter().all(|time| *time == times[0]), "one commit, one time");
    });
}

#[test]
fn the_parts_of_a_large_call_are_read_in_their_order_and_resumed_within() {
    logged(|database| {
        let users = database.collection("users");
        let mut stream = database.db.watch(NO_STAGES).run().unwrap();
        let documents: Vec<RawDocumentBuf> =
            (0..3_000).map(|id| rawdoc! { "_id": id, "pad": "x".repeat(200) }).collect();
        users.insert_many(&documents).run().unwrap();
        // A change set larger than its memory.
        users.update_many(doc! {}, doc! { "$inc": { "n": 1 } }).memory_limit(20_000).run().unwrap();
        let out = [doc! { "$match": { "_id": { "$lt": 1_000 } } }, doc! { "$out": "copies" }];
        users.aggregate(out).memory_limit(20_000).collect().unwrap();
        let found = events(&mut stream);
        assert_eq!(found.len(), 7_000);
        let ids: Vec<i32> =
            found.iter().map(|event| event.get_document("documentKey").unwrap().get_i32("_id").unwrap()).collect();
        assert!(ids.chunks(1_000).enumerate().all(|(part, ids)| {
            let first = i32::try_from(if part == 6 { 0 } else { part % 3 * 1_000 }).unwrap();
            ids.iter().copied().eq(first..first + 1_000)
        }));
        for at in [0, 2_999, 3_000, 4_321, 6_998] {
            let token = RawDocumentBuf::try_from(found[at].get_document("_id").unwrap()).unwrap();
            let mut resumed = database.db.watch(NO_STAGES).resume_after(&token).run().unwrap();
            assert_eq!(events(&mut resumed), found[at + 1..], "{at}");
        }
        // Replacing a collection deletes and inserts.
        users.aggregate([doc! { "$limit": 1 }, doc! { "$out": "copies" }]).collect().unwrap();
        let found = events(&mut stream);
        assert_eq!((found.len(), kinds(&found)[999], kinds(&found)[1_000]), (1_001, "delete", "insert"));
    });
}

#[test]
fn rejected_documents_are_not_logged() {
    logged(|database| {
        let users = database.collection("users");
        users.create_index(Index::on(doc! { "u": 1 }).unique()).run().unwrap();
        let mut stream = users.watch(NO_STAGES).run().unwrap();
        let documents = [
            rawdoc! { "_id": 1, "u": 1 },
            rawdoc! { "_id": 2, "u": 1 },
            rawdoc! { "_id": 1 },
            rawdoc! { "_id": 3, "u": 3 },
        ];
        assert_eq!(users.insert_many(&documents).ordered(false).run().unwrap().errors.len(), 2);
        users.insert_many(&documents).run().unwrap_err();
        users.update_many(doc! {}, doc! { "$set": { "u": 1 } }).run().unwrap_err();
        let operations = [
            WriteOperation::insert_one(&rawdoc! { "_id": 4, "u": 4 }),
            WriteOperation::insert_one(&rawdoc! { "_id": 5, "u": 4 }),
            WriteOperation::delete_one(doc! { "_id": 1 }),
        ];
        assert_eq!(users.bulk_write(operations).ordered(false).run().unwrap().errors.len(), 1);
        let found = events(&mut stream);
        assert_eq!(kinds(&found), ["insert", "insert", "insert", "delete"]);
    });
}

#[test]
fn full_documents_are_looked_up_or_kept() {
    logged(|database| {
        let users = database.collection("users");
        let update = |n: i32| users.update_one(doc! { "_id": 1 }, doc! { "$set": { "n": n } }).run().unwrap();
        users.insert_one(&rawdoc! { "_id": 1 }).unwrap();
        let start = users.watch(NO_STAGES).run().unwrap().resume_token();
        update(1);
        users.keep_images(true).unwrap();
        update(2);
        update(3);
        let seen = |full: FullDocument, before: FullDocumentBeforeChange| {
            let watch = users.watch(NO_STAGES).resume_after(&start).full_document(full);
            let found = events(&mut watch.full_document_before_change(before).run().unwrap());
            let part = |event: &Document, name| match event.get(name) {
                Some(Bson::Document(document)) => document.get_i32("n").unwrap_or(0),
                Some(_) => -1,
                None => -2,
            };
            found.iter().map(|event| (part(event, "fullDocument"), part(event, "fullDocumentBeforeChange"))).collect()
        };
        let none: Vec<(i32, i32)> = vec![(-2, -2); 3];
        assert_eq!(seen(FullDocument::Default, FullDocumentBeforeChange::Off), none);
        let looked_up: Vec<(i32, i32)> = vec![(3, -2); 3];
        assert_eq!(seen(FullDocument::UpdateLookup, FullDocumentBeforeChange::Off), looked_up);
        let kept: Vec<(i32, i32)> = vec![(-1, -1), (2, 1), (3, 2)];
        assert_eq!(seen(FullDocument::WhenAvailable, FullDocumentBeforeChange::WhenAvailable), kept);
        let after = |full, before| {
            let watch = users.watch(NO_STAGES).resume_after(&start).full_document(full);
            watch.full_document_before_change(before).run().unwrap().next().unwrap()
        };
        refused(after(FullDocument::Required, FullDocumentBeforeChange::Off), 47);
        refused(after(FullDocument::Default, FullDocumentBeforeChange::Required), 47);
        users.delete_one(doc! { "_id": 1 }).run().unwrap();
        let looked_up: Vec<(i32, i32)> = seen(FullDocument::UpdateLookup, FullDocumentBeforeChange::WhenAvailable);
        assert_eq!(looked_up, [(-1, -1), (-1, 1), (-1, 2), (-2, 3)]);
        assert_eq!(users.list_indexes().unwrap().len(), 0);
        assert!(database.db.list_collections().unwrap()[0].keeps_images);
    });
}

#[test]
fn definitions_are_expanded_events() {
    logged(|database| {
        let users = database.collection("users");
        let mut plain = database.db.watch(NO_STAGES).run().unwrap();
        let mut expanded = database.db.watch(NO_STAGES).expanded_events().run().unwrap();
        users.create_with(&CollectionOptions::new().validator(&Validator::new(doc! { "a": 1 }))).unwrap();
        users.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        users.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        users.hide_index("a_1").unwrap();
        users.drop_index("a_1").unwrap();
        users.set_validator(None).unwrap();
        users.insert_one(&rawdoc! { "_id": 1 }).unwrap();
        database.collection("others").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        users.rename("others", RenameTarget::DropExisting).unwrap();
        database.db.drop_database().unwrap();
        assert_eq!(kinds(&events(&mut plain)), ["insert", "insert", "rename", "drop", "dropDatabase"]);
        let found = events(&mut expanded);
        let expected = [
            "create",
            "createIndexes",
            "modify",
            "dropIndexes",
            "modify",
            "insert",
            "create",
            "insert",
            "rename",
            "drop",
            "dropDatabase",
        ];
        assert_eq!(kinds(&found), expected);
        let description = found[1].get_document("operationDescription").unwrap();
        assert_eq!(*description, doc! { "indexes": [{ "v": 2, "key": { "a": 1 }, "name": "a_1" }] });
        // A collection has one identity, which a rename does not change.
        let uuid = |at: usize| found[at].get("collectionUUID").cloned();
        assert!((0..6).all(|at| uuid(at).is_some() && uuid(at) == uuid(0)));
        assert_eq!((uuid(6), uuid(8), uuid(9), uuid(10)), (uuid(7), uuid(0), uuid(0), None));
        let Some(Bson::Binary(binary)) = uuid(0) else { panic!("{found:?}") };
        assert_eq!((binary.to_uuid().unwrap().to_string().as_bytes()[14], uuid(0) == uuid(7)), (b'8', false));
        let renamed = found[8].get_document("operationDescription").unwrap();
        assert_eq!(renamed.get("dropTarget"), uuid(7).as_ref());
        assert_eq!(found[8].get_document("to").unwrap(), &doc! { "db": "test", "coll": "others" });
        assert_eq!(*found[10].get_document("ns").unwrap(), doc! { "db": "test" });
    });
}

#[test]
fn a_dropped_or_renamed_collection_ends_its_streams() {
    logged(|database| {
        for rename in [true, false] {
            let users = database.collection("users");
            users.insert_one(&rawdoc! { "_id": 1 }).unwrap();
            let mut stream = users.watch(NO_STAGES).run().unwrap();
            let mut of_target = database.collection("others").watch(NO_STAGES).run().unwrap();
            match rename {
                true => drop(users.rename("others", RenameTarget::DropExisting).unwrap()),
                false => drop(users.drop().unwrap()),
            }
            let found = events(&mut stream);
            assert_eq!(kinds(&found), [if rename { "rename" } else { "drop" }, "invalidate"]);
            assert!(stream.next().is_none());
            if rename {
                assert_eq!(kinds(&events(&mut of_target)), ["rename", "invalidate"]);
            }
            users.insert_one(&rawdoc! { "_id": 2 }).unwrap();
            let token = |at: usize| RawDocumentBuf::try_from(found[at].get_document("_id").unwrap()).unwrap();
            refused(users.watch(NO_STAGES).resume_after(token(1)).run(), 260);
            let mut started = users.watch(NO_STAGES).start_after(token(1)).run().unwrap();
            assert_eq!(kinds(&events(&mut started)), ["insert"]);
            let mut resumed = users.watch(NO_STAGES).resume_after(token(0)).run().unwrap();
            assert_eq!(kinds(&events(&mut resumed)), ["invalidate"], "what follows the drop is not lost");
            users.drop().unwrap();
        }
    });
}

#[test]
fn stages_filter_and_change_events() {
    logged(|database| {
        let users = database.collection("users");
        let start = users.watch(NO_STAGES).run().unwrap().resume_token();
        for n in 0..4 {
            users.insert_one(&rawdoc! { "_id": n, "n": n }).unwrap();
        }
        let stages = [
            doc! { "$match": { "fullDocument.n": { "$gte": 2 } } },
            doc! { "$addFields": { "double": { "$multiply": ["$fullDocument.n", 2] } } },
            doc! { "$project": { "double": 1 } },
        ];
        let mut stream = users.watch(stages).resume_after(&start).run().unwrap();
        let doubles: Vec<i32> = events(&mut stream).iter().map(|event| event.get_i32("double").unwrap()).collect();
        assert_eq!(doubles, [4, 6]);
        let opened = |stage: Document| users.watch([stage]).resume_after(&start).run();
        refused(opened(doc! { "$group": { "_id": 1 } }), 20);
        refused(opened(doc! { "$out": "x" }), 20);
        refused(opened(doc! { "$sort": { "a": 1 } }), 20);
        refused(opened(doc! { "$nothing": 1 }), 40324);
        refused(opened(doc! { "$match": { "$x": 1 } }), 2);
        refused(opened(doc! { "$project": { "_id": 0 } }).unwrap().next().unwrap(), 280);
        let split = doc! { "$changeStreamSplitLargeEvent": {} };
        refused(users.watch([split, doc! { "$match": {} }]).run(), 7_182_802);
    });
}

#[test]
fn events_before_one_that_fails_are_returned() {
    logged(|database| {
        let users = database.collection("users");
        let stages = [doc! { "$addFields": { "half": { "$divide": [1, "$fullDocument.n"] } } }];
        let mut stream = users.watch(stages).run().unwrap();
        for n in [1, 2, 0, 4] {
            users.insert_one(&rawdoc! { "n": n }).unwrap();
        }
        for _ in 0..2 {
            assert_eq!(stream.next().unwrap().unwrap().operation_type(), "insert");
        }
        assert!(stream.next().unwrap().is_err());
    });
}

#[test]
fn a_large_event_is_split_or_refused() {
    logged(|database| {
        let users = database.collection("users");
        users.create_with(&CollectionOptions::new().keep_images()).unwrap();
        users.insert_one(&rawdoc! { "_id": 1, "pad": "x".repeat(9 << 20), "n": 0 }).unwrap();
        let start = users.watch(NO_STAGES).run().unwrap().resume_token();
        users.update_one(doc! {}, doc! { "$set": { "n": 1 } }).run().unwrap();
        users.insert_one(&rawdoc! { "_id": 2 }).unwrap();
        let watch = |stages: &[Document]| {
            let watch = users.watch(stages.to_vec()).full_document(FullDocument::Required);
            watch.full_document_before_change(FullDocumentBeforeChange::Required)
        };
        refused(watch(&[]).resume_after(&start).run().unwrap().next().unwrap(), 10334);
        let split = [doc! { "$changeStreamSplitLargeEvent": {} }];
        let parts = events(&mut watch(&split).resume_after(&start).run().unwrap());
        let fragment = |part: &Document| part.get_document("splitEvent").ok().cloned();
        assert_eq!(fragment(&parts[0]), Some(doc! { "fragment": 1, "of": 2 }));
        assert_eq!(fragment(&parts[1]), Some(doc! { "fragment": 2, "of": 2 }));
        assert_eq!((parts.len(), fragment(&parts[2])), (3, None));
        let token = RawDocumentBuf::try_from(parts[0].get_document("_id").unwrap()).unwrap();
        assert_eq!(events(&mut watch(&split).resume_after(&token).run().unwrap()), parts[1..]);
    });
}

#[test]
fn tokens_of_others_are_refused() {
    logged(|database| {
        let users = database.collection("users");
        let resume = |token: RawDocumentBuf| users.watch(NO_STAGES).resume_after(&token).run();
        refused(resume(rawdoc! {}), 40647);
        refused(resume(rawdoc! { "_data": 1 }), 40647);
        refused(resume(rawdoc! { "_data": "xyz" }), 9);
        let own = users.watch(NO_STAGES).run().unwrap().resume_token();
        resume(own.clone()).unwrap();
        let other = database.store.open();
        std::thread::sleep(std::time::Duration::from_millis(2));
        other.db.enable_changes(slate_core::ChangeLog::new()).unwrap();
        refused(other.collection("users").watch(NO_STAGES).resume_after(&own).run(), 286);
    });
}
