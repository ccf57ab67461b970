//! A `$lookup` returns the same documents by a hash table, by an index, and beyond the memory.

use bson::{Document, doc};
use slate_core::{CollectionOptions, ExplainVerbosity, Index, View};

use crate::{
    common::{on_every_store, raw},
    rows,
};

#[test]
fn a_lookup_is_the_same_by_hash_by_index_and_beyond_the_memory() {
    on_every_store(|database| {
        let (orders, items) = (database.collection("orders"), database.collection("items"));
        let order = |n: i32| {
            raw(
                &doc! { "_id": n, "item": if n % 9 == 0 { vec![n % 50, 3] } else { vec![n % 50] }, "pad": "x".repeat(50) },
            )
        };
        orders.insert_many(&(0..700).map(order).collect::<Vec<_>>()).run().unwrap();
        let item = |n: i32| raw(&doc! { "_id": n, "code": n % 60, "pad": "y".repeat(50) });
        items.insert_many(&(0..300).map(item).collect::<Vec<_>>()).run().unwrap();
        let lookup =
            doc! { "$lookup": { "from": "items", "localField": "item", "foreignField": "code", "as": "found" } };
        let pipelines = [
            vec![lookup.clone()],
            vec![lookup.clone(), doc! { "$unwind": "$found" }, doc! { "$project": { "pad": 0 } }],
        ];
        for pipeline in pipelines {
            let aggregate = || orders.aggregate(&pipeline);
            let expected = rows(aggregate().unoptimized()).unwrap();
            let check = |what: &str| {
                for limit in [64 << 20, 40_000, 3_000, 0] {
                    let found = rows(aggregate().memory_limit(limit)).unwrap();
                    assert!(found == expected, "{what}, {limit} bytes: {} rows, {}", found.len(), expected.len());
                }
            };
            check("without an index");
            items.create_index(slate_core::Index::on(doc! { "code": 1 })).run().unwrap();
            check("with an index");
            items.drop_index("code_1").unwrap();
        }
        let explained = orders.aggregate([&lookup]).explain(ExplainVerbosity::ExecutionStats).unwrap();
        let documents = |explained: &slate_core::Explain| explained.execution_stats().unwrap().documents_examined;
        assert_eq!(documents(&explained), 700 + 300, "the other collection is read once: {explained}");
        for lookup in [&lookup, &doc! { "$lookup": { "from": "items", "pipeline": [], "as": "found" } }] {
            let nothing = doc! { "$match": { "pad": "none" } };
            let explained = orders.aggregate([&nothing, lookup]).explain(ExplainVerbosity::ExecutionStats).unwrap();
            assert_eq!(documents(&explained), 700, "no document is joined: {explained}");
        }
    });
}

#[test]
fn matches_in_a_view_are_in_the_order_of_their_ids_within_any_memory() {
    on_every_store(|database| {
        let (orders, items) = (database.collection("orders"), database.collection("items"));
        orders.insert_many(&(0..3).map(|n| raw(&doc! { "_id": n, "item": n })).collect::<Vec<_>>()).run().unwrap();
        let item = |n: i32| raw(&doc! { "_id": n, "code": n % 2, "x": n, "pad": "y".repeat(50) });
        items.insert_many(&(0..100).map(item).collect::<Vec<_>>()).run().unwrap();
        let latest = database.collection("latest");
        latest
            .create_with(&CollectionOptions::new().view(&View::new("items", [doc! { "$sort": { "x": -1 } }])))
            .unwrap();
        let lookup =
            doc! { "$lookup": { "from": "latest", "localField": "item", "foreignField": "code", "as": "found" } };
        let ids: Vec<i32> = (0..100).filter(|n| n % 2 == 0).chain((0..100).filter(|n| n % 2 == 1)).collect();
        for limit in [64 << 20, 3_000, 0] {
            let unwound = [lookup.clone(), doc! { "$unwind": "$found" }];
            let found = rows(orders.aggregate(unwound).memory_limit(limit)).unwrap();
            let found: Vec<i32> =
                found.iter().map(|row| row.get_document("found").unwrap().get_i32("_id").unwrap()).collect();
            assert_eq!(found, ids, "{limit} bytes");
        }
    });
}

#[test]
fn a_lookup_reads_the_matches_alone_by_every_index_that_serves_an_equality() {
    let mails = || doc! { "locale": "en", "strength": 2 };
    let indexes: [(&str, Index, bool); 8] = [
        ("plain", Index::on(doc! { "code": 1, "pad": 1 }), true),
        ("sparse", Index::on(doc! { "code": -1 }).sparse(), true),
        ("partial", Index::on(doc! { "code": 1 }).only(doc! { "code": { "$exists": true } }), true),
        ("wildcard", Index::on(doc! { "$**": 1 }), true),
        ("wildcard below a path", Index::on(doc! { "code.$**": 1 }), true),
        ("compound wildcard", Index::on(doc! { "$**": 1, "pad": 1 }).wildcard_projection(doc! { "code": 1 }), true),
        ("another condition", Index::on(doc! { "code": 1 }).only(doc! { "code": { "$gt": 5 } }), false),
        ("another collation", Index::on(doc! { "code": 1 }).collation(mails()), false),
    ];
    on_every_store(|database| {
        let (orders, items) = (database.collection("orders"), database.collection("items"));
        let order = |n: i32| raw(&doc! { "_id": n, "item": n * 7 });
        orders.insert_many(&(0..20).map(order).collect::<Vec<_>>()).run().unwrap();
        let item = |n: i32| raw(&doc! { "_id": n, "code": n, "pad": "x" });
        items.insert_many(&(0..2_000).map(item).collect::<Vec<_>>()).run().unwrap();
        let lookup =
            doc! { "$lookup": { "from": "items", "localField": "item", "foreignField": "code", "as": "found" } };
        let examined = |lookup: &Document| {
            let explained = orders.aggregate([lookup]).explain(ExplainVerbosity::ExecutionStats).unwrap();
            let stats = explained.execution_stats().unwrap();
            (stats.keys_examined, stats.documents_examined)
        };
        let expected = rows(orders.aggregate([&lookup]).unoptimized()).unwrap();
        for (what, index, serves) in indexes.clone() {
            let name = items.create_index(index).run().unwrap();
            assert!(rows(orders.aggregate([&lookup])).unwrap() == expected, "{what}");
            let (keys, documents) = examined(&lookup);
            match serves {
                true => assert!(keys <= 41 && documents == 40, "{what}: {keys} keys, {documents} documents"),
                false => assert_eq!((keys, documents), (0, 2_020), "{what}"),
            }
            items.drop_index(&name).unwrap();
        }
        // The index has no entries of missing fields: a batch with one reads all documents, and then they are joined in memory.
        let more = |n: i32| raw(&doc! { "_id": n, "pad": n });
        orders.insert_many(&(20..320).map(more).collect::<Vec<_>>()).run().unwrap();
        items.create_index(Index::on(doc! { "$**": 1 })).run().unwrap();
        assert_eq!(examined(&lookup).1, 320 + 2 * 2_000);
        assert!(rows(orders.aggregate([&lookup])).unwrap() == rows(orders.aggregate([&lookup]).unoptimized()).unwrap());
    });
}
