//! Validators of collections.

use bson::{Document, RawDocumentBuf, doc, rawdoc};
use slate_core::{
    Collection, CollectionOptions, Error, ErrorKind, Index, ValidationAction, ValidationLevel, Validator,
    WriteOperation,
};

use super::common::on_every_store;

fn schema() -> Document {
    doc! { "$jsonSchema": {
        "title": "a person",
        "required": ["name"],
        "properties": {
            "name": { "bsonType": "string", "description": "must be a string" },
            "age": { "bsonType": ["int", "null"], "minimum": 0 },
        },
    } }
}

fn violated(error: &Error) {
    assert_eq!((error.code(), error.kind()), (121, ErrorKind::Invalid), "{error}");
    assert!(error.details().unwrap().contains_key("failingDocumentId"), "{error:?}");
}

fn people(database: &super::common::TestDatabase) -> Collection<RawDocumentBuf> {
    let people = database.collection("people");
    people.create_with(&CollectionOptions::new().validator(&Validator::new(schema()))).unwrap();
    people.insert_one(&rawdoc! { "_id": 1, "name": "Ada", "age": 36 }).unwrap();
    people
}

#[test]
fn every_write_is_checked() {
    on_every_store(|database| {
        let people = people(&database);
        violated(&people.insert_one(&rawdoc! { "_id": 2 }).unwrap_err());
        violated(&people.insert_many(&[rawdoc! { "_id": 2, "name": "B" }, rawdoc! { "_id": 3 }]).run().unwrap_err());
        let two = [rawdoc! { "_id": 2, "name": "B" }, rawdoc! { "_id": 3 }];
        let some = people.insert_many(&two).ordered(false).run().unwrap();
        assert_eq!((some.inserted_ids.len(), some.errors.len()), (1, 1));
        violated(&some.errors[0].error);
        violated(&people.update_one(doc! { "_id": 1 }, doc! { "$set": { "age": -1 } }).run().unwrap_err());
        violated(&people.update_many(doc! {}, doc! { "$unset": { "name": 1 } }).run().unwrap_err());
        violated(&people.update_one(doc! { "_id": 9 }, doc! { "$set": { "a": 1 } }).upsert().run().unwrap_err());
        violated(&people.update_one(doc! { "_id": 1 }, vec![doc! { "$set": { "name": 5 } }]).run().unwrap_err());
        violated(&people.replace_one(doc! { "_id": 1 }, &rawdoc! { "a": 1 }).run().unwrap_err());
        violated(&people.find_one_and_update(doc! { "_id": 1 }, doc! { "$set": { "age": "x" } }).run().unwrap_err());
        violated(&people.upsert_many(&[rawdoc! { "_id": 1, "a": 1 }]).unwrap_err());
        violated(&people.merge_many(&[rawdoc! { "_id": 1, "age": -5 }]).unwrap_err());
        let operations = [WriteOperation::insert_one(doc! { "_id": 4 }), WriteOperation::delete_one(doc! { "_id": 2 })];
        let bulk = people.bulk_write(operations).ordered(false).run().unwrap();
        assert_eq!((bulk.errors.len(), bulk.deleted), (1, 1));
        violated(&bulk.errors[0].error);
        database.collection("source").insert_one(&rawdoc! { "_id": 1, "age": -1 }).unwrap();
        for sink in [doc! { "$merge": "people" }, doc! { "$out": "people" }] {
            violated(&database.collection("source").aggregate([sink]).run().err().unwrap());
        }
        let left = people.find(doc! {}).collect().unwrap();
        assert_eq!(left, [rawdoc! { "_id": 1, "name": "Ada", "age": 36 }]);
        // In a transaction, a refused write leaves the others.
        let transaction = database.db.begin().unwrap();
        let within = transaction.collection::<RawDocumentBuf>("people");
        within.insert_one(&rawdoc! { "_id": 5, "name": "E" }).unwrap();
        violated(&within.insert_one(&rawdoc! { "_id": 6 }).unwrap_err());
        transaction.commit().unwrap();
        assert_eq!(people.find(doc! {}).count().run().unwrap(), 2);
    });
}

#[test]
fn levels_actions_and_bypasses() {
    on_every_store(|database| {
        let people = people(&database);
        people.insert_many(&[rawdoc! { "_id": 2 }]).bypass_document_validation(true).run().unwrap();
        let change = || people.update_one(doc! { "_id": 2 }, doc! { "$inc": { "n": 1 } });
        violated(&change().run().unwrap_err());
        change().bypass_document_validation(true).run().unwrap();
        database.collection("source").insert_one(&rawdoc! { "_id": 2, "m": 1 }).unwrap();
        for matched in ["merge", "replace", "keepExisting"] {
            let merge = doc! { "$merge": { "into": "people", "whenMatched": matched } };
            let sink = || database.collection("source").aggregate([merge.clone()]);
            if matched != "keepExisting" {
                violated(&sink().run().err().unwrap());
            }
            drop(sink().bypass_document_validation(true).run().unwrap());
        }
        // Building an index and deleting check nothing.
        people.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
        let validator = || Validator::new(schema());
        people.set_validator(Some(validator().level(ValidationLevel::Moderate))).unwrap();
        change().run().unwrap();
        violated(&people.update_one(doc! { "_id": 1 }, doc! { "$set": { "age": -1 } }).run().unwrap_err());
        violated(&people.insert_one(&rawdoc! { "_id": 3 }).unwrap_err());
        people.set_validator(Some(validator().level(ValidationLevel::Off))).unwrap();
        people.insert_one(&rawdoc! { "_id": 3 }).unwrap();
        people.set_validator(Some(validator().action(ValidationAction::Warn))).unwrap();
        people.insert_one(&rawdoc! { "_id": 4 }).unwrap();
        people.set_validator(Some(validator())).unwrap();
        violated(&people.insert_one(&rawdoc! { "_id": 5 }).unwrap_err());
        drop(people);
        let database = database.reopen();
        if database.store.is_persistent() {
            violated(&database.collection("people").insert_one(&rawdoc! { "_id": 5 }).unwrap_err());
            let described = database.db.list_collections().unwrap();
            assert!(described[0].validator.is_some());
            let people = database.collection("people");
            people.set_validator(None).unwrap();
            people.insert_one(&rawdoc! { "_id": 5 }).unwrap();
            people.delete_many(doc! {}).run().unwrap();
        }
        let missing = database.collection("nowhere").set_validator(None).unwrap_err();
        assert_eq!((missing.kind(), missing.code()), (ErrorKind::NotFound, 26));
        let invalid = database.collection("other");
        let options = CollectionOptions::new().validator(&Validator::new(doc! { "$nothing": 1 }));
        assert_eq!(invalid.create_with(&options).unwrap_err().code(), 2);
        let options = CollectionOptions::new().validator(&Validator::new(doc! { "$expr": { "$lt": ["$t", "$$NOW"] } }));
        assert_eq!(invalid.create_with(&options).unwrap_err().unsupported(), Some("$$NOW in a validator"));
        assert!(!invalid.exists().unwrap());
    });
}

#[test]
fn the_details_name_what_is_violated() {
    let details = |filter: Document, document: RawDocumentBuf| {
        let database = slate_core::Database::open("memory:").unwrap();
        let collection = database.collection::<RawDocumentBuf>("c");
        collection.create_with(&CollectionOptions::new().validator(&Validator::new(filter))).unwrap();
        collection.insert_one(&document).unwrap_err().details().unwrap().clone()
    };
    assert_eq!(
        details(schema(), rawdoc! { "_id": 1, "name": 5, "age": -1 }),
        doc! { "failingDocumentId": 1, "details": {
            "operatorName": "$jsonSchema",
            "title": "a person",
            "schemaRulesNotSatisfied": [{ "operatorName": "properties", "propertiesNotSatisfied": [
                { "propertyName": "name", "description": "must be a string", "details": [{
                    "operatorName": "bsonType",
                    "specifiedAs": { "bsonType": "string" },
                    "reason": "type did not match",
                    "consideredValue": 5,
                    "consideredType": "int",
                }] },
                { "propertyName": "age", "details": [{
                    "operatorName": "minimum",
                    "specifiedAs": { "minimum": 0 },
                    "reason": "comparison failed",
                    "consideredValue": -1,
                }] },
            ] }],
        } }
    );
    let missing = details(schema(), rawdoc! { "_id": 1 });
    let rules = missing.get_document("details").unwrap().get_array("schemaRulesNotSatisfied").unwrap();
    let required =
        doc! { "operatorName": "required", "specifiedAs": { "required": ["name"] }, "missingProperties": ["name"] };
    assert_eq!(rules, &[required.into()]);
    let filter = doc! { "a": { "$gt": 5 }, "$or": [{ "b": 1 }, { "c": { "$type": "string" } }], "d": 1 };
    assert_eq!(
        details(filter, rawdoc! { "_id": 1, "a": 3, "b": 2, "d": 1 }).get_document("details").unwrap(),
        &doc! { "operatorName": "$and", "clausesNotSatisfied": [
            { "index": 0, "details": {
                "operatorName": "$gt",
                "specifiedAs": { "a": { "$gt": 5 } },
                "reason": "comparison failed",
                "consideredValue": 3,
            } },
            { "index": 1, "details": { "operatorName": "$or", "clausesNotSatisfied": [
                { "index": 0, "details": {
                    "operatorName": "$eq",
                    "specifiedAs": { "b": 1 },
                    "reason": "comparison failed",
                    "consideredValue": 2,
                } },
                { "index": 1, "details": {
                    "operatorName": "$type",
                    "specifiedAs": { "c": { "$type": "string" } },
                    "reason": "field was missing",
                } },
            ] } },
        ] }
    );
    let expression = details(doc! { "$expr": { "$eq": ["$a", "$b"] } }, rawdoc! { "_id": 1, "a": 1 });
    assert_eq!(
        expression.get_document("details").unwrap(),
        &doc! {
            "operatorName": "$expr",
            "specifiedAs": { "$expr": { "$eq": ["$a", "$b"] } },
            "reason": "expression did not match",
            "expressionResult": false,
        }
    );
}
