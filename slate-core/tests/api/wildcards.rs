//! Wildcard indexes: built beside documents, maintained by writes, checked, and kept by a reopened database.

use bson::{Document, RawDocumentBuf, doc};
use slate_core::{ExplainVerbosity, Index};

use super::common::{TestDatabase, on_every_store, raw};

fn is_sound(test: &TestDatabase) -> bool {
    test.db.verify().run().unwrap().is_sound()
}

/// Checks that the index serves the filter and returns this many documents.
fn check(test: &TestDatabase, filter: Document, count: u64) {
    let find = || test.collection("c").find(&filter).hint(slate_core::Hint::Name("$**_1".into()));
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
