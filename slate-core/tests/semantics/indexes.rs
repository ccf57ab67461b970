//! Semantics of indexes.

use bson::{Bson, doc};
use slate_core::{ExplainVerbosity, Hint, Index};

use crate::{
    Documents,
    common::{each_plan, finds, finds_in_order, on_every_store, raw},
    contents, insert, refused,
};

fn indexed(collection: &Documents, name: &str) -> bool {
    let description = collection.list_indexes().unwrap().into_iter().find(|index| index.name == name);
    description.unwrap().multikey
}

#[test]
fn missing_is_keyed_as_null_and_distinguished_from_it() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        records.create_index(Index::on(doc! { "a.b": 1 })).run().unwrap();
        insert(
            &records,
            [
                doc! { "_id": 0 },
                doc! { "_id": 1, "a": null },
                doc! { "_id": 2, "a": [] },
                doc! { "_id": 3, "a": [null] },
                doc! { "_id": 4, "a": {} },
                doc! { "_id": 5, "a": { "b": null } },
                doc! { "_id": 6, "a": [{ "b": 1 }, {}] },
                doc! { "_id": 7, "a": 1 },
                doc! { "_id": 8, "a": [1, { "b": 1 }] },
            ],
        );
        finds(&records.find(doc! { "a": null }), [0, 1, 3]);
        finds(&records.find(doc! { "a": { "$exists": false } }), [0]);
        finds(&records.find(doc! { "a": { "$exists": true } }), 1..9);
        finds(&records.find(doc! { "a": { "$eq": null, "$exists": true } }), [1, 3]);
        finds(&records.find(doc! { "a": { "$ne": null } }), [2, 4, 5, 6, 7, 8]);
        finds(&records.find(doc! { "a": { "$type": "null" } }), [1, 3]);
        finds(&records.find(doc! { "a": [] }), [2]);
        finds(&records.find(doc! { "a": { "$size": 0 } }), [2]);
        finds(&records.find(doc! { "a": { "$in": [null, 1] } }), [0, 1, 3, 7, 8]);
        // A scalar and an array without documents cannot contain `b`; an element document without `b` can.
        finds(&records.find(doc! { "a.b": null }), [0, 1, 4, 5, 6, 7]);
        finds(&records.find(doc! { "a.b": { "$exists": false } }), [0, 1, 2, 3, 4, 7]);
        finds(&records.find(doc! { "a": { "$gte": null } }), [0, 1, 3]);
    });
}

#[test]
fn the_multikey_flag_commits_with_the_entries_that_cause_it() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        insert(&records, [doc! { "_id": 1, "a": 1 }]);
        let before = database.db.snapshot().unwrap();
        let transaction = database.db.begin().unwrap();
        let inside: Documents = transaction.collection("records");
        insert(&inside, [doc! { "_id": 2, "a": [0, 5] }]);
        assert!(indexed(&inside, "a_1"));
        finds(&inside.find(doc! { "a": { "$gt": 1, "$lt": 5 } }), [2]);
        assert!(!indexed(&records, "a_1"));
        transaction.rollback();
        assert!(!indexed(&records, "a_1"), "a rolled-back array does not make the index multikey");

        insert(&records, [doc! { "_id": 2, "a": [0, 5] }]);
        assert!(indexed(&records, "a_1"));
        assert!(!before.collection::<bson::RawDocumentBuf>("records").list_indexes().unwrap()[0].multikey);
        finds(&records.find(doc! { "a": { "$gt": 1, "$lt": 5 } }), [2]);
    });
}

#[test]
fn two_predicates_on_a_multikey_path_can_match_different_elements() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        records.create_index(Index::on(doc! { "d.x": 1 })).run().unwrap();
        insert(
            &records,
            [
                doc! { "_id": 0, "a": [1, 10], "d": [{ "x": 1 }, { "x": 10 }] },
                doc! { "_id": 1, "a": [5], "d": [{ "x": 5 }] },
                doc! { "_id": 2, "a": 7, "d": { "x": 7 } },
                doc! { "_id": 3, "a": [1, 2], "d": [{ "x": 1 }, { "x": 2 }] },
            ],
        );
        for path in ["a", "d.x"] {
            finds(&records.find(doc! { path: { "$gt": 4, "$lt": 8 } }), [0, 1, 2]);
            finds(&records.find(doc! { "$and": [{ path: { "$gt": 8 } }, { path: { "$lt": 2 } }] }), [0]);
            finds(&records.find(doc! { path: { "$all": [1, 10] } }), [0]);
        }
        finds(&records.find(doc! { "a": { "$elemMatch": { "$gt": 4, "$lt": 8 } } }), [1]);
        finds(&records.find(doc! { "d": { "$elemMatch": { "x": { "$gt": 4, "$lt": 8 } } } }), [1]);
    });
}

#[test]
fn predicates_under_a_shared_array_do_not_compound() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "d.x": 1, "d.y": 1 })).run().unwrap();
        insert(
            &records,
            [
                doc! { "_id": 0, "d": [{ "x": 1, "y": 1 }, { "x": 2, "y": 2 }] },
                doc! { "_id": 1, "d": [{ "x": 1, "y": 2 }] },
                doc! { "_id": 2, "d": [{ "x": 1 }, { "y": 2 }] },
                doc! { "_id": 3, "d": { "x": 1, "y": 2 } },
            ],
        );
        finds(&records.find(doc! { "d.x": 1, "d.y": 2 }), [0, 1, 2, 3]);
        finds(&records.find(doc! { "d": { "$elemMatch": { "x": 1, "y": 2 } } }), [1]);
        finds(&records.find(doc! { "d.x": 1, "d.y": null }), [2]);
    });
}

#[test]
fn parallel_arrays_are_rejected() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1, "b": 1 })).run().unwrap();
        insert(&records, [doc! { "_id": 0, "a": [1], "b": 1 }, doc! { "_id": 1, "a": 1, "b": [1] }]);
        refused(records.insert_one(&raw(&doc! { "_id": 2, "a": [1], "b": [1] })), 171);
        refused(records.update_one(doc! { "_id": 0 }, doc! { "$set": { "b": [] } }).run(), 171);
        assert_eq!(contents(&records).len(), 2);
        let others = database.collection("others");
        insert(&others, [doc! { "a": [1], "b": [1] }]);
        refused(others.create_index(Index::on(doc! { "a": 1, "b": 1 })).run(), 171);
        assert!(others.list_indexes().unwrap().is_empty());
    });
}

#[test]
fn multikey_results_are_deduplicated_before_limits_count() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        insert(&records, (0..10).map(|n| doc! { "_id": n, "a": [n, n + 1, n + 2, n] }));
        for limit in 1..10 {
            for (drawn, found) in each_plan(&records.find(doc! { "a": { "$gte": 0 } }).limit(limit)) {
                assert_eq!(found.len() as u64, limit, "{drawn}");
            }
            finds_in_order(&records.find(doc! {}).sort(doc! { "a": 1 }).limit(limit), 0..limit as i32);
            finds_in_order(
                &records.find(doc! {}).sort(doc! { "a": -1 }).skip(1).limit(limit),
                (0..9).rev().take(limit as usize),
            );
        }
        assert_eq!(records.count_documents(doc! { "a": { "$gte": 5 } }).run().unwrap(), 7);
    });
}

#[test]
fn a_multikey_sort_uses_the_whole_array_for_any_bounds() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        // The least element of the first document is outside the bounds.
        insert(&records, [doc! { "_id": 0, "a": [0, 9] }, doc! { "_id": 1, "a": [5] }, doc! { "_id": 2, "a": 7 }]);
        finds_in_order(&records.find(doc! { "a": { "$gt": 4 } }).sort(doc! { "a": 1 }), [0, 1, 2]);
        finds_in_order(&records.find(doc! { "a": { "$lt": 8 } }).sort(doc! { "a": -1 }), [0, 2, 1]);
    });
}

#[test]
fn an_inclusion_keeps_the_documents_order() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1, "b": 1 })).run().unwrap();
        records.insert_one(&raw(&doc! { "_id": 0, "b": 1, "c": 2, "a": 3 })).unwrap();
        for (drawn, found) in each_plan(&records.find(doc! { "a": 3 }).projection(doc! { "_id": 0, "a": 1, "b": 1 })) {
            assert_eq!(found, [raw(&doc! { "b": 1, "a": 3 })], "{drawn}");
        }
    });
}

#[test]
fn distinct_and_count_by_a_multikey_index_see_every_element() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        insert(&records, [doc! { "_id": 0, "a": [1, 10] }, doc! { "_id": 1, "a": 3 }]);
        let query = || records.find(doc! { "a": { "$gt": 5 } });
        for plan in 0..query().distinct("a").explain(ExplainVerbosity::QueryPlanner).unwrap().candidates() {
            assert_eq!(query().force(plan).distinct("a").run().unwrap(), [Bson::Int32(1), Bson::Int32(10)]);
        }
        for plan in 0..query().count().explain(ExplainVerbosity::QueryPlanner).unwrap().candidates() {
            assert_eq!(query().force(plan).count().run().unwrap(), 1);
        }
        assert_eq!(records.count_documents(doc! { "a": { "$lt": 11 } }).run().unwrap(), 2);
    });
}

#[test]
fn distinct_returns_the_first_of_equal_values_by_id() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        insert(
            &records,
            [doc! { "_id": 2, "a": 1 }, doc! { "_id": 1, "a": 1.0 }, doc! { "_id": 3, "a": [1_i64, null] }],
        );
        for plan in 0..records.find(doc! {}).distinct("a").explain(ExplainVerbosity::QueryPlanner).unwrap().candidates()
        {
            assert_eq!(records.find(doc! {}).force(plan).distinct("a").run().unwrap(), [Bson::Null, Bson::Double(1.0)]);
        }
        // A missing field has no value.
        insert(&records, [doc! { "_id": 4 }]);
        assert_eq!(records.distinct("b", doc! {}).run().unwrap(), Vec::<Bson>::new());
    });
}

#[test]
fn limits_count_records_that_survive_the_residual_filter() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        insert(&records, (0..100).map(|n| doc! { "_id": n, "a": n, "b": n % 10 }));
        let query = records.find(doc! { "a": { "$gte": 10 }, "b": 3 }).sort(doc! { "a": 1 }).skip(1).limit(3);
        finds_in_order(&query, [23, 33, 43]);
    });
}

#[test]
fn a_sort_by_an_index_keeps_documents_that_lack_the_field() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        records.create_index(Index::on(doc! { "b": 1 }).sparse()).run().unwrap();
        insert(&records, [doc! { "_id": 0, "a": 1, "b": 1 }, doc! { "_id": 1 }, doc! { "_id": 2, "a": -1, "b": -1 }]);
        for path in ["a", "b"] {
            finds_in_order(&records.find(doc! {}).sort(doc! { path: 1 }), [1, 2, 0]);
            finds_in_order(&records.find(doc! {}).sort(doc! { path: -1 }).limit(3), [0, 2, 1]);
        }
    });
}

#[test]
fn sparse_and_partial_indexes_serve_only_queries_that_imply_their_condition() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1 }).sparse().named("sparse")).run().unwrap();
        records
            .create_index(Index::on(doc! { "b": 1 }).only(doc! { "b": { "$gt": 5 } }).named("partial"))
            .run()
            .unwrap();
        insert(&records, (0..20).map(|n| doc! { "_id": n, "b": n }));
        insert(&records, [doc! { "_id": 20, "a": null }, doc! { "_id": 21, "a": 1, "b": "text" }]);
        let serves = |filter: bson::Document, index: &str| {
            let find = records.find(filter.clone());
            let plans = each_plan(&find);
            let served = plans.iter().any(|(drawn, _)| drawn.contains(index));
            // A hint on another index restricts the query to the documents of the index.
            let of_index = match index {
                "sparse" => doc! { "a": { "$exists": true } },
                _ => doc! { "b": { "$gt": 5 } },
            };
            let wanted = records.count_documents(doc! { "$and": [filter.clone(), of_index] }).run().unwrap();
            let hinted = records.find(filter).hint(Hint::Name(index.into()));
            assert_eq!(hinted.clone().count().run().unwrap(), wanted);
            assert_eq!(hinted.run().unwrap().count() as u64, wanted);
            served
        };
        assert!(serves(doc! { "a": 1 }, "sparse"));
        assert!(serves(doc! { "a": { "$exists": true } }, "sparse"));
        assert!(serves(doc! { "a": { "$gt": 0 } }, "sparse"));
        assert!(!serves(doc! {}, "sparse"));
        assert!(!serves(doc! { "a": null }, "sparse"));
        assert!(!serves(doc! { "a": { "$in": [1, null] } }, "sparse"));
        assert!(!serves(doc! { "a": { "$lt": 1 }, "$or": [{ "b": 1 }] }, "partial"));
        assert!(!serves(doc! { "a": { "$ne": 1 } }, "sparse"));
        assert!(!serves(doc! { "$or": [{ "a": 1 }, { "b": 1 }] }, "sparse"));
        assert!(serves(doc! { "b": 6 }, "partial"));
        assert!(serves(doc! { "b": { "$gte": 6 } }, "partial"));
        assert!(serves(doc! { "b": { "$gt": 5, "$lt": 9 } }, "partial"));
        assert!(serves(doc! { "$or": [{ "b": 6 }, { "b": { "$gt": 10 } }] }, "partial"));
        assert!(!serves(doc! { "b": 5 }, "partial"));
        assert!(!serves(doc! { "b": { "$gte": 5 } }, "partial"));
        assert!(!serves(doc! { "b": "text" }, "partial"), "another type's bracket");
        assert!(!serves(doc! { "b": { "$gt": "a" } }, "partial"), "another type's bracket");
        assert!(!serves(doc! { "$or": [{ "b": 6 }, { "b": 1 }] }, "partial"));
        finds(&records.find(doc! { "b": { "$gte": 5 } }), 5..20);
        finds(&records.find(doc! { "b": { "$gte": 6 } }), 6..20);
        finds(&records.find(doc! { "a": null }), 0..21);
    });
}

#[test]
fn a_sparse_index_without_some_elements_loses_neither_records_nor_order() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a.x": 1 }).sparse()).run().unwrap();
        records.create_index(Index::on(doc! { "a.x": 1, "a.y": 1 }).sparse()).run().unwrap();
        insert(
            &records,
            [
                doc! { "_id": 0, "a": { "x": 1, "y": 1 } },
                // The first element has no entry, because both fields are missing.
                doc! { "_id": 1, "a": [{}, { "x": 2, "y": 2 }] },
                doc! { "_id": 2, "a": [{ "x": 3 }, { "y": 3 }] },
            ],
        );
        finds(&records.find(doc! { "$and": [{ "a.x": null }, { "a.x": { "$exists": true } }] }), [1, 2]);
        finds(&records.find(doc! { "a.x": null, "a.y": { "$exists": true } }), [1, 2]);
        finds(&records.find(doc! { "a.x": { "$in": [null, 1] }, "a.y": { "$gte": 0 } }), [0, 1, 2]);
        // The element without the field sorts first.
        finds_in_order(&records.find(doc! { "a.x": { "$gt": 0 } }).sort(doc! { "a.x": 1, "_id": 1 }), [1, 2, 0]);
        finds_in_order(&records.find(doc! { "a.x": { "$gt": 0 } }).sort(doc! { "a.x": -1 }), [2, 1, 0]);
    });
}

#[test]
fn a_partial_index_contains_the_documents_that_match_its_condition() {
    on_every_store(|database| {
        let orders = database.collection("orders");
        orders.create_index(Index::on(doc! { "due": 1 }).only(doc! { "open": true }).unique()).run().unwrap();
        insert(&orders, [doc! { "_id": 0, "due": 1, "open": true }, doc! { "_id": 1, "due": 1, "open": false }]);
        refused(orders.update_one(doc! { "_id": 1 }, doc! { "$set": { "open": true } }).run(), 11000);
        orders.update_one(doc! { "_id": 0 }, doc! { "$set": { "open": false } }).run().unwrap();
        orders.update_one(doc! { "_id": 1 }, doc! { "$set": { "open": true } }).run().unwrap();
        finds(&orders.find(doc! { "due": 1, "open": true }), [1]);
        finds(&orders.find(doc! { "due": 1 }), [0, 1]);
    });
}

#[test]
fn in_a_unique_index_missing_counts_as_null() {
    on_every_store(|database| {
        let users = database.collection("users");
        users.create_index(Index::on(doc! { "mail": 1 }).unique()).run().unwrap();
        users.create_index(Index::on(doc! { "phone": 1 }).unique().sparse()).run().unwrap();
        insert(&users, [doc! { "_id": 0, "phone": null }]);
        refused(users.insert_one(&raw(&doc! { "_id": 1, "mail": null })), 11000);
        refused(users.insert_one(&raw(&doc! { "_id": 1 })), 11000);
        insert(&users, [doc! { "_id": 1, "mail": "a" }, doc! { "_id": 2, "mail": "b" }]);
        refused(users.insert_one(&raw(&doc! { "_id": 3, "mail": "c", "phone": null })), 11000);
        // One document may contain a value twice; two documents may not share an element.
        insert(&users, [doc! { "_id": 4, "mail": ["x", "y", "x"] }]);
        refused(users.insert_one(&raw(&doc! { "_id": 5, "mail": ["z", "y"] })), 11000);
        finds(&users.find(doc! { "mail": "x" }), [4]);
    });
}

#[test]
fn a_unique_index_is_not_created_over_duplicates() {
    on_every_store(|database| {
        let users = database.collection("users");
        // The duplicates are in different rounds of the build.
        insert(&users, (0..3_000).map(|n| doc! { "_id": n, "n": n % 2_999 }));
        refused(users.create_index(Index::on(doc! { "n": 1 }).unique()).run(), 11000);
        assert!(users.list_indexes().unwrap().is_empty());
        users.delete_one(doc! { "_id": 2_999 }).run().unwrap();
        users.create_index(Index::on(doc! { "n": 1 }).unique()).run().unwrap();
        refused(users.insert_one(&raw(&doc! { "n": 7.0 })), 11000);
    });
}

#[test]
fn create_index_is_idempotent_and_rejects_different_options() {
    on_every_store(|database| {
        let users = database.collection("users");
        let by_age = || Index::on(doc! { "age": 1 });
        assert_eq!(users.create_index(by_age()).run().unwrap(), "age_1");
        assert_eq!(users.create_index(by_age()).run().unwrap(), "age_1");
        assert_eq!(users.create_index(Index::on(doc! { "age": 1.0 })).run().unwrap(), "age_1");
        assert_eq!(users.list_indexes().unwrap().len(), 1);
        refused(users.create_index(by_age().named("other")).run(), 85);
        refused(users.create_index(by_age().unique()).run(), 86);
        refused(users.create_index(Index::on(doc! { "name": 1 }).named("age_1")).run(), 86);
        assert_eq!(users.list_indexes().unwrap().len(), 1);
        assert_eq!(users.create_index(Index::on(doc! { "age": -1 })).run().unwrap(), "age_-1");
        assert!(users.drop_index("age_1").unwrap());
        assert!(!users.drop_index("age_1").unwrap());
        users.create_index(by_age().unique()).run().unwrap();
    });
}

#[test]
fn a_plan_is_the_same_on_every_store() {
    let plans = crate::common::STORES.map(|store| {
        let database = store.open();
        let users = database.collection("users");
        for keys in [doc! { "age": 1 }, doc! { "city": 1, "age": 1 }, doc! { "tags": 1 }] {
            users.create_index(Index::on(keys)).run().unwrap();
        }
        let document =
            |n: i32| doc! { "_id": n, "age": n % 90, "city": format!("c{}", n % 20), "tags": [n % 7, n % 5] };
        insert(&users, (0..5_000).map(document));
        let queries = [
            doc! { "age": 5, "city": "c5" },
            doc! { "age": { "$gt": 2 }, "city": "c5" },
            doc! { "age": { "$lt": 2 }, "city": { "$gt": "c" } },
            doc! { "tags": 3, "age": { "$gte": 80 } },
            doc! { "tags": { "$in": [1, 2] }, "city": { "$in": ["c1", "c2"] } },
            doc! { "_id": { "$lt": 50 }, "age": 7 },
        ];
        queries.map(|filter| {
            users
                .find(filter)
                .sort(doc! { "age": 1 })
                .limit(10)
                .explain(ExplainVerbosity::QueryPlanner)
                .unwrap()
                .to_string()
        })
    });
    for other in &plans[1..] {
        assert_eq!(other, &plans[0]);
    }
}

#[test]
fn a_ttl_index_expires_what_is_due_and_nothing_else() {
    let date = |seconds: i64| Bson::DateTime(bson::DateTime::from_millis(seconds * 1_000));
    let now = bson::DateTime::from_millis(1_000_000);
    for direction in [1, -1] {
        on_every_store(|database| {
            let records = database.collection("records");
            let index = Index::on(doc! { "at": direction }).expire_after(std::time::Duration::from_millis(99_001));
            records.create_index(index).run().unwrap();
            insert(
                &records,
                [
                    doc! { "_id": 0, "at": date(900) },
                    doc! { "_id": 1, "at": bson::DateTime::from_millis(900_001) },
                    doc! { "_id": 2, "at": date(i64::MIN / 1_000) },
                    doc! { "_id": 3, "at": [date(5_000), date(10)] },
                    doc! { "_id": 4, "at": [date(5_000), 1] },
                    doc! { "_id": 5, "at": 1 },
                    doc! { "_id": 6, "at": null },
                    doc! { "_id": 7 },
                    doc! { "_id": 8, "at": Bson::Timestamp(bson::Timestamp { time: 1, increment: 1 }) },
                    doc! { "_id": 9, "at": "1970-01-01" },
                    doc! { "_id": 10, "at": [[date(1)]] },
                    doc! { "_id": 11, "at": { "at": date(1) } },
                ],
            );
            let expired = database.db.expire().at(now).run().unwrap();
            assert_eq!((expired.documents, expired.rounds, expired.is_limited), (3, 1, false));
            finds(&records.find(doc! {}), [1, 4, 5, 6, 7, 8, 9, 10, 11]);
            assert_eq!(database.db.expire().at(now).run().unwrap().documents, 0);
            assert!(records.verify().run().unwrap().findings.is_empty());
        });
    }
}

#[test]
fn expiry_respects_conditions_of_the_index_limits_and_rounds() {
    on_every_store(|database| {
        let records = database.collection("records");
        let soon = std::time::Duration::ZERO;
        let partial = Index::on(doc! { "at": 1 }).only(doc! { "done": true }).expire_after(soon).hidden();
        records.create_index(partial).run().unwrap();
        records.create_index(Index::on(doc! { "u": 1 }).unique().sparse().expire_after(soon)).run().unwrap();
        let at = |millis: i64| Bson::DateTime(bson::DateTime::from_millis(millis));
        insert(&records, (0..2_500).map(|id| doc! { "_id": id, "at": at(0), "done": id >= 3, "n": id }));
        insert(&records, [doc! { "_id": 3_000, "u": at(5) }, doc! { "_id": 3_001, "u": at(i64::MAX) }]);
        let expired = database.db.expire().limit(10).run().unwrap();
        assert_eq!((expired.documents, expired.is_limited), (10, true));
        let expired = database.db.expire().run().unwrap();
        assert_eq!((expired.documents, expired.rounds, expired.is_limited), (2_488, 4, false));
        finds(&records.find(doc! {}), [0, 1, 2, 3_001]);
    });
}
