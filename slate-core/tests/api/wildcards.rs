//! Wildcard indexes: built beside documents, maintained by writes, checked, and kept by a reopened database.

use bson::{Document, RawDocumentBuf, doc};
use slate_core::{ExplainVerbosity, Index};

use super::common::{TestDatabase, on_every_store, raw};

fn is_sound(test: &TestDatabase) -> bool {
    test.db.verify().run().unwrap().is_sound()
}

/// Checks that the index on all fields serves the filter and returns this many documents.
fn check(test: &TestDatabase, filter: Document, count: u64) {
    check_by(test, "$**_1", filter, count);
}

/// Checks that this index serves the filter and returns this many documents.
fn check_by(test: &TestDatabase, index: &str, filter: Document, count: u64) {
    let find = || test.collection("c").find(&filter).hint(slate_core::Hint::Name(index.into()));
    let plan = find().explain(ExplainVerbosity::QueryPlanner).unwrap();
    assert!(plan.uses_index(), "{filter}: {plan}");
    assert_eq!(find().count().run().unwrap(), count, "{filter}");
    let unhinted = test.collection("c").find(&filter).hint(slate_core::Hint::Forward).count().run().unwrap();
    assert_eq!(unhinted, count, "{filter}");
}

#[test]
fn an_index_is_built_in_rounds_and_maintained() {
    on_every_store(|test| {
        let collection = test.collection("c");
        let document =
            |n: i32| raw(&doc! { "_id": n, "a": { "b": n % 10, "c": [n % 3, 7] }, "s": format!("s{}", n % 4) });
        collection.insert_many(&(0..3_000).map(document).collect::<Vec<_>>()).run().unwrap();
        assert_eq!(collection.create_index(Index::on(doc! { "$**": 1 })).run().unwrap(), "$**_1");
        check(&test, doc! { "a.b": 3 }, 300);
        check(&test, doc! { "a.c": 7 }, 3_000);
        check(&test, doc! { "s": { "$gte": "s2" } }, 1_500);
        collection.update_many(doc! { "a.b": 3 }, doc! { "$set": { "a.b": [3, 30], "new.field": 1 } }).run().unwrap();
        check(&test, doc! { "a.b": { "$gte": 20 } }, 300);
        check(&test, doc! { "a.b": { "$gt": 3, "$lt": 30 } }, 2_100);
        check(&test, doc! { "new": { "$exists": true } }, 300);
        collection.delete_many(doc! { "s": "s0" }).run().unwrap();
        assert!(is_sound(&test));
        drop(collection);
        let test = test.reopen();
        if test.store.is_persistent() {
            check(&test, doc! { "s": "s1" }, 750);
            assert!(is_sound(&test));
        }
    });
}

#[test]
fn an_index_of_more_array_paths_than_are_stored_stays_correct() {
    on_every_store(|test| {
        let collection = test.collection("c");
        collection.create_index(Index::on(doc! { "$**": 1 })).run().unwrap();
        let fields =
            |from: i32| (from..from + 200).map(|n| (format!("f{n}"), vec![n, n + 5].into())).collect::<Document>();
        collection.insert_many(&[raw(&fields(0)), raw(&fields(200)), raw(&doc! { "plain": 4 })]).run().unwrap();
        check(&test, doc! { "f7": { "$gt": 12, "$lt": 20 } }, 0);
        check(&test, doc! { "f7": { "$gt": 8, "$lt": 13 } }, 1);
        check(&test, doc! { "plain": { "$gt": 3, "$lt": 5 } }, 1);
        assert!(is_sound(&test));
    });
}

#[test]
fn long_values_and_unusual_names_are_found() {
    on_every_store(|test| {
        let collection = test.collection("c");
        collection.create_index(Index::on(doc! { "$**": 1 })).run().unwrap();
        let long = |end: &str| "x".repeat(2_500) + end;
        let documents: Vec<RawDocumentBuf> = [
            doc! { "_id": 1, "t": long("a"), "": { "": 1 } },
            doc! { "_id": 2, "t": long("b"), "a.b": 5, "0": 3 },
            doc! { "_id": 3, "a": { "b": 5, "c.d": 1 }, "only": { "x.y": 1 } },
        ]
        .iter()
        .map(raw)
        .collect();
        collection.insert_many(&documents).run().unwrap();
        check(&test, doc! { "t": long("b") }, 1);
        check(&test, doc! { "t": { "$gt": long("a") } }, 1);
        check(&test, doc! { "a.b": 5 }, 1);
        check(&test, doc! { "only": { "$exists": true } }, 1);
        let name = "n".repeat(1_200);
        collection.insert_one(&raw(&doc! { "_id": 4, &name: { &name: 1 } })).unwrap();
        check(&test, doc! { format!("{name}.{name}"): 1 }, 1);
        check(&test, doc! { format!("{name}.{name}"): 2 }, 0);
        assert!(is_sound(&test));
    });
}

#[test]
fn a_compound_index_is_built_in_rounds_and_maintained() {
    on_every_store(|test| {
        let collection = test.collection("c");
        let document = |n: i32| {
            let attributes = doc! { "color": n % 10, "sizes": [n % 3, 7], "text": format!("s{}", n % 4) };
            raw(&doc! { "_id": n, "tenant": n % 5, "at": n, "attributes": attributes })
        };
        collection.insert_many(&(0..3_000).map(document).collect::<Vec<_>>()).run().unwrap();
        let keys = doc! { "tenant": 1, "attributes.$**": 1, "at": -1 };
        let name = collection.create_index(Index::on(keys)).run().unwrap();
        let check = |test: &TestDatabase, filter: Document, count: u64| check_by(test, &name, filter, count);
        check(&test, doc! { "tenant": 3, "attributes.color": 3 }, 300);
        check(&test, doc! { "tenant": { "$gte": 3 }, "attributes.sizes": 7 }, 1_200);
        check(&test, doc! { "tenant": 3, "attributes.color": 3, "at": { "$lt": 1_000 } }, 100);
        check(&test, doc! { "tenant": 3 }, 600);
        check(&test, doc! { "tenant": 3, "attributes.missing": null }, 600);
        let changed = doc! { "$set": { "attributes.color": [3, 30], "attributes.new": 1 } };
        collection.update_many(doc! { "tenant": 3, "attributes.color": 3 }, changed).run().unwrap();
        collection.update_many(doc! { "tenant": 4 }, doc! { "$unset": { "attributes": 1 } }).run().unwrap();
        collection.update_many(doc! { "tenant": 2 }, doc! { "$set": { "tenant": [2, 20] } }).run().unwrap();
        check(&test, doc! { "tenant": 3, "attributes.color": { "$gt": 10, "$lt": 20 } }, 300);
        check(&test, doc! { "tenant": 3, "attributes.new": { "$exists": true } }, 300);
        check(&test, doc! { "tenant": 4 }, 600);
        check(&test, doc! { "tenant": 4, "attributes.color": 4 }, 0);
        check(&test, doc! { "tenant": { "$gt": 2, "$lt": 20 } }, 1_800);
        check(&test, doc! { "tenant": 20, "attributes.color": 2 }, 300);
        collection.delete_many(doc! { "tenant": 1 }).run().unwrap();
        check(&test, doc! { "tenant": 1 }, 0);
        assert!(is_sound(&test));
        drop(collection);
        let test = test.reopen();
        if test.store.is_persistent() {
            check(&test, doc! { "tenant": 20, "attributes.text": "s1" }, 150);
            assert!(is_sound(&test));
        }
    });
}

#[test]
fn a_document_with_too_many_entries_in_a_compound_index_is_refused() {
    on_every_store(|test| {
        let collection = test.collection("c");
        collection.create_index(Index::on(doc! { "k": 1, "f.$**": 1 })).run().unwrap();
        let document = |id: i32, keys: i32, fields: i32| {
            let fields: Document = (0..fields).map(|n| (format!("f{n}"), n.into())).collect();
            raw(&doc! { "_id": id, "k": (0..keys).collect::<Vec<_>>(), "f": fields })
        };
        let refused = collection.insert_one(&document(1, 400, 400)).unwrap_err();
        assert_eq!(refused.code(), 201);
        collection.insert_one(&document(2, 100, 20)).unwrap();
        check_by(&test, "k_1_f.$**_1", doc! { "k": 7, "f.f3": 3 }, 1);
        check_by(&test, "k_1_f.$**_1", doc! { "k": { "$gt": 98 }, "f.f3": { "$gte": 3 } }, 1);
        assert!(is_sound(&test));
    });
}

#[test]
fn long_values_before_and_after_the_wildcard_are_found() {
    on_every_store(|test| {
        let collection = test.collection("c");
        let name = collection.create_index(Index::on(doc! { "a": 1, "w.$**": -1, "b": 1 })).run().unwrap();
        let long = |end: &str| "x".repeat(1_990) + end;
        for (id, (a, w, b)) in [("1", "1", "1"), ("2", "1", "1"), ("2", "2", "1"), ("2", "2", "2")].iter().enumerate() {
            let document =
                doc! { "_id": i32::try_from(id).unwrap(), "a": long(a), "w": { "x": long(w) }, "b": long(b) };
            collection.insert_one(&raw(&document)).unwrap();
        }
        collection.insert_one(&raw(&doc! { "_id": 9, "a": long("2") })).unwrap();
        check_by(&test, &name, doc! { "a": long("2") }, 4);
        check_by(&test, &name, doc! { "a": long("2"), "w.x": long("2") }, 2);
        check_by(&test, &name, doc! { "a": { "$gt": long("1") }, "w.x": long("2"), "b": { "$lt": long("2") } }, 1);
        check_by(&test, &name, doc! { "w.x": { "$lte": long("1") } }, 2);
        assert!(is_sound(&test));
    });
}
