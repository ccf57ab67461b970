//! What the files of a version contain, and the queries whose results are recorded beside them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bson::{Bson, Document, doc};
use serde_json::json;
use slate_core::{Collection, CollectionOptions, Database, Index, Migrations, Validator};

/// Returns every type, and numbers of each type that are equal or hard to encode.
fn values() -> Vec<Bson> {
    let values = json!([
        null, true, false, "", "a", "a\u{0}b", "é", { "$numberInt": "1" }, { "$numberLong": "1" }, { "$numberDouble": "1.0" },
        { "$numberDecimal": "1.00" }, { "$numberInt": "-2147483648" }, { "$numberLong": "9007199254740993" },
        { "$numberLong": "-9223372036854775808" }, { "$numberLong": "9223372036854775807" }, { "$numberDouble": "-0.0" },
        { "$numberDouble": "0.1" }, { "$numberDouble": "5e-324" }, { "$numberDouble": "1.7976931348623157e308" },
        { "$numberDouble": "NaN" }, { "$numberDouble": "Infinity" }, { "$numberDouble": "-Infinity" }, { "$numberDecimal": "0.1" },
        { "$numberDecimal": "-0E-3" }, { "$numberDecimal": "NaN" }, { "$numberDecimal": "-Infinity" },
        { "$numberDecimal": "9.999999999999999999999999999999999E+6144" }, { "$numberDecimal": "4.611686018427387904E+38" },
        { "$oid": "0123456789abcdef01234567" }, { "$date": { "$numberLong": "-62135596800000" } },
        { "$date": { "$numberLong": "1700000000123" } }, { "$timestamp": { "t": 4_294_967_295_u32, "i": 7 } },
        { "$binary": { "base64": "AAECAw==", "subType": "00" } }, { "$binary": { "base64": "AAECAw==", "subType": "02" } },
        { "$binary": { "base64": "AAAAAAAAAAAAAAAAAAAABw==", "subType": "04" } }, { "$regularExpression": { "pattern": "^a", "options": "i" } },
        { "$code": "f()" }, { "$code": "f()", "$scope": { "a": { "$numberInt": "1" } } }, { "$symbol": "a" }, { "$undefined": true },
        { "$minKey": 1 }, { "$maxKey": 1 }, { "$dbPointer": { "$ref": "c", "$id": { "$oid": "0123456789abcdef01234567" } } },
        {}, { "a": { "$numberInt": "1" }, "b": { "c": null } }, [], [{ "$numberInt": "1" }, "a", [{ "$numberLong": "2" }]], [[]], [null]
    ]);
    match Bson::try_from(values).unwrap() {
        Bson::Array(values) => values,
        other => panic!("{other}"),
    }
}

/// Returns a text that is longer than an index entry may be.
fn long(n: i32) -> String {
    format!("{}{n}", "long ".repeat(500))
}

fn collection(db: &Database, name: &str, documents: impl IntoIterator<Item = Document>) -> Collection<Document> {
    let collection = db.collection(name);
    let documents: Vec<Document> = documents.into_iter().collect();
    collection.insert_many(&documents).run().unwrap();
    collection
}

fn index(collection: &Collection<Document>, index: Index) {
    collection.create_index(index).run().unwrap();
}

pub(super) fn write(db: &Database) {
    let ignoring_case = || doc! { "locale": "en", "strength": 2 };

    let types = collection(db, "types", (0_i32..).zip(values()).map(|(n, v)| doc! { "_id": n, "n": n % 3, "v": v }));
    index(&types, Index::on(doc! { "v": 1 }));
    index(&types, Index::on(doc! { "n": 1, "v": -1 }));
    index(&types, Index::on(doc! { "v.a": 1 }).sparse());

    let is_id = |id: &Bson| !matches!(id, Bson::Array(_) | Bson::RegularExpression(_) | Bson::Undefined);
    let ids = db.collection::<Document>("ids");
    let documents: Vec<Document> = values().into_iter().filter(is_id).map(|id| doc! { "_id": id }).collect();
    let inserted = ids.insert_many(&documents);
    assert!(inserted.ordered(false).run().unwrap().inserted_ids.len() > 30);
    ids.insert_one(&doc! { "_id": "long ".repeat(300) }).unwrap();

    let items = |n: i32| vec![doc! { "sku": n % 7, "n": n }, doc! { "n": -n, "sku": format!("{}", n % 5) }];
    let arrays =
        collection(db, "arrays", (0..40).map(|n| doc! { "_id": n, "tags": [n % 4, "x", n % 3], "items": items(n) }));
    index(&arrays, Index::on(doc! { "tags": 1 }));
    index(&arrays, Index::on(doc! { "items.sku": 1, "items.n": -1 }));

    // The fields of some documents are not in the order of the index.
    let orders = (0..20).map(|n| {
        if n % 2 == 0 {
            doc! { "_id": n, "a": n, "b": -n }
        } else {
            doc! { "b": -n, "_id": n, "a": n }
        }
    });
    index(&collection(db, "field order", orders), Index::on(doc! { "a": 1, "b": 1 }));

    let users = collection(
        db,
        "users",
        (0..30).map(|n| doc! { "_id": n, "mail": format!("{n}@x"), "text": long(n), "state": n % 2 }),
    );
    index(&users, Index::on(doc! { "mail": 1 }).unique());
    index(&users, Index::on(doc! { "text": 1 }).unique());
    index(&users, Index::on(doc! { "mail": -1, "text": 1 }).only(doc! { "state": 1 }));
    index(&users, Index::on(doc! { "nick": 1 }).unique().sparse());
    index(&users, Index::on(doc! { "state": 1 }).hidden());

    let large = db.collection::<Document>("large");
    large.insert_one(&doc! { "_id": 1, "text": "abcdefgh".repeat(10_000), "end": 1 }).unwrap();
    large.insert_one(&(0..400).map(|n| (format!("field {n}"), Bson::Int32(n))).collect()).unwrap();

    let people = db.collection::<Document>("people");
    let schema = doc! { "$jsonSchema": { "required": ["name"], "properties": { "age": { "minimum": 0 } } } };
    people
        .create_with(&CollectionOptions::new().collation(ignoring_case()).validator(&Validator::new(schema)))
        .unwrap();
    people
        .insert_many(&["Ada", "bob", "BOB", "ada", "Eve"].map(|name| doc! { "name": name, "age": 36 }))
        .run()
        .unwrap();
    index(&people, Index::on(doc! { "name": 1 }));
    index(
        &people,
        Index::on(doc! { "name": -1 }).collation(doc! { "locale": "de", "strength": 3, "caseFirst": "upper" }),
    );

    let many = collection(db, "many", (0..600).map(|n| doc! { "_id": n, "a": n * 7 % 100, "b": n / 10 }));
    index(&many, Index::on(doc! { "a": 1 }));
    many.delete_many(doc! { "b": { "$lt": 10 } }).run().unwrap();
    many.update_many(doc! { "a": 5 }, doc! { "$set": { "a": [5, 500] } }).run().unwrap();
    many.analyze().unwrap();

    assert!(collection(db, "dropped", [doc! {}]).drop().unwrap());
    db.migrate(&Migrations::new().step("first", |_| Ok(()))).unwrap();

    // A build that was interrupted as by a crash: what had been committed remains.
    let building = collection(db, "building", (0..4_000).map(|n| doc! { "_id": n, "a": n % 10 }));
    let mut rounds = 0;
    let interrupted = catch_unwind(AssertUnwindSafe(|| {
        let build = building.create_index(Index::on(doc! { "a": 1 }));
        build
            .progress(|_| {
                rounds += 1;
                assert!(rounds < 2, "interrupted");
            })
            .run()
    }));
    assert!(interrupted.is_err());
}

/// Returns the commands whose replies are recorded.
pub(super) fn commands() -> Vec<Document> {
    let ignoring_case = doc! { "locale": "en", "strength": 2 };
    let mut commands = vec![
        doc! { "find": "types", "sort": { "_id": 1 } },
        doc! { "find": "types", "filter": {}, "sort": { "v": 1, "_id": 1 }, "projection": { "_id": 1 } },
        doc! { "find": "types", "filter": { "n": 1 }, "hint": { "n": 1, "v": -1 } },
        doc! { "find": "types", "filter": { "v.a": { "$exists": true } }, "hint": "v.a_1" },
        doc! { "find": "ids", "sort": { "_id": 1 } },
        doc! { "find": "arrays", "filter": { "tags": { "$in": [2, "x"] } }, "hint": "tags_1", "sort": { "_id": 1 }, "limit": 7 },
        doc! { "find": "arrays", "filter": { "items.sku": "3" }, "hint": "items.sku_1_items.n_-1" },
        doc! { "find": "arrays", "filter": { "items": { "$elemMatch": { "sku": 3, "n": { "$gt": 9 } } } } },
        doc! { "find": "field order", "filter": { "a": { "$gte": 0 } }, "projection": { "_id": 0, "a": 1, "b": 1 }, "hint": "a_1_b_1" },
        doc! { "find": "users", "filter": { "mail": "7@x" }, "projection": { "text": 0 }, "hint": "mail_1" },
        doc! { "find": "users", "filter": { "text": long(9) }, "projection": { "text": 0 }, "hint": "text_1" },
        doc! { "find": "users", "filter": { "state": 1, "mail": { "$gt": "2" } }, "projection": { "text": 0 }, "hint": "mail_-1_text_1" },
        doc! { "find": "large", "projection": { "field 399": 1, "end": 1, "field 0": 1 }, "filter": { "_id": 1 } },
        doc! { "find": "large", "filter": { "field 399": 399 }, "projection": { "_id": 0, "field 399": 1, "field 0": 1 } },
        doc! { "find": "people", "filter": { "name": "ADA" }, "projection": { "_id": 0 }, "hint": "name_1", "sort": { "_id": 1 } },
        doc! { "find": "people", "filter": { "name": "ada" }, "projection": { "_id": 0 }, "collation": ignoring_case },
        doc! { "distinct": "people", "key": "name" },
        doc! { "find": "many", "filter": { "a": { "$gte": 98 } }, "hint": "a_1" },
        doc! { "count": "many", "query": { "a": { "$gt": 50 } } },
        doc! { "count": "building", "query": { "a": 3 } },
        doc! { "find": "slate.migrations", "projection": { "_id": 1, "name": 1 } },
    ];
    for value in values() {
        // Neither a regular expression nor undefined has an order in filters.
        if !matches!(value, Bson::RegularExpression(_) | Bson::Undefined) {
            commands.push(doc! { "count": "types", "query": { "v": { "$gte": &value } }, "hint": "v_1" });
            commands.push(doc! { "find": "types", "filter": { "n": 2, "v": { "$lt": value } }, "sort": { "v": -1, "_id": 1 }, "projection": { "n": 1 } });
        }
    }
    commands
}
