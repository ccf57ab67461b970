//! The cost of definitions beside many collections. Creating, changing and dropping one allocates what a path in a tree of all
//! collections takes, not what all collections take, and opening a database allocates in proportion to them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test fails by panicking")]

mod common;

use std::time::Instant;

use bson::{Document, doc, rawdoc};
use common::{STORES, Store, TestDatabase};
use slate_core::{CollectionOptions, Database, Error, Index, RenameTarget, View};

/// Returns a tenth of the number of collections, and the number: 4,000, or what `SLATE_COLLECTIONS` says.
fn counts() -> [u64; 2] {
    let many = std::env::var("SLATE_COLLECTIONS").map_or(4_000, |number| number.parse().unwrap());
    [many / 10, many]
}

/// How many times more a definition may allocate beside many collections than beside few: paths in trees become twice as long.
const GROWTH: u64 = 2;

fn name(number: u64) -> String {
    format!("c{number}")
}

fn is_true(value: bool) {
    assert!(value);
}

/// Returns a database with this many collections, each with two indexes, a document and a view.
fn filled(store: Store, count: u64) -> TestDatabase {
    let test = store.open();
    let create = |tx: &slate_core::Transaction| {
        for number in 0..count {
            let collection = tx.collection::<Document>(&name(number));
            collection.create_index(Index::on(doc! { "a": 1 })).run()?;
            collection.create_index(Index::on(doc! { "b": 1, "a": -1 }).unique()).run()?;
            collection.insert_one(&doc! { "_id": 1, "a": 1 })?;
            tx.collection::<Document>(&format!("v{number}")).create_with(&view(number))?;
        }
        Ok::<(), Error>(())
    };
    test.db.transact(create).unwrap();
    test
}

fn view(number: u64) -> CollectionOptions {
    CollectionOptions::new().view(&View::new(&name(number), [doc! { "$match": { "a": 1 } }]))
}

/// Makes each kind of definition, and the first write and read after it. All of them leave the database as it was. Returns the
/// number of allocated bytes of each.
fn definitions(test: &TestDatabase) -> Vec<(&'static str, u64)> {
    let mut costs = Vec::new();
    let mut measure = |step: &'static str, work: &dyn Fn()| {
        let start = Instant::now();
        costs.push((step, allocation_counter::measure(work).bytes_total));
        eprintln!("  {step}: {:?}", start.elapsed());
    };
    let (new, old) = (test.collection("new"), test.collection("c50"));
    measure("create a collection", &|| new.create().unwrap());
    measure("insert into it", &|| drop(new.insert_one(&rawdoc! { "_id": 1, "a": [1, 2] }).unwrap()));
    measure("create an index", &|| drop(new.create_index(Index::on(doc! { "a": 1 })).run().unwrap()));
    measure("hide it", &|| is_true(!new.hide_index("a_1").unwrap()));
    measure("count", &|| is_true(new.count_documents(doc! { "a": 2 }).run().unwrap() == 1));
    measure("drop the index", &|| is_true(new.drop_index("a_1").unwrap()));
    measure("gather statistics", &|| new.analyze().unwrap());
    measure("rename it", &|| drop(new.rename("renamed", RenameTarget::MustNotExist).unwrap()));
    measure("drop it", &|| is_true(test.collection("renamed").drop().unwrap()));
    measure("create a view", &|| new.create_with(&view(50)).unwrap());
    measure("drop the view", &|| is_true(new.drop().unwrap()));
    measure("insert into another", &|| drop(old.insert_one(&rawdoc! { "_id": 2, "a": 2 }).unwrap()));
    measure("delete from it", &|| is_true(old.delete_one(doc! { "_id": 2 }).run().unwrap() == 1));
    measure("create implicitly", &|| drop(new.insert_one(&rawdoc! { "_id": 1 }).unwrap()));
    measure("drop it again", &|| is_true(new.drop().unwrap()));
    costs
}

#[test]
fn a_definition_costs_the_same_beside_few_collections_and_beside_many() {
    for store in STORES {
        let costs = counts().map(|count| {
            let test = filled(store, count);
            eprintln!("{store:?}, beside {count} collections");
            // The first ones fill caches.
            definitions(&test);
            definitions(&test)
        });
        let [few, many] = costs;
        for ((step, few), (_, many)) in few.into_iter().zip(many) {
            assert!(many <= GROWTH * few, "{store:?}, {step}: {few} bytes beside few collections, {many} beside many");
        }
    }
}

#[test]
fn opening_a_database_costs_in_proportion_to_its_collections() {
    for store in STORES.into_iter().filter(|store| store.is_persistent()) {
        let [one, ten] = counts().map(|count| {
            let (db, folder) = filled(store, count).into_parts();
            drop(db);
            let url = store.url_in(folder.path());
            let open = || {
                let start = Instant::now();
                let db = Database::open(&url).unwrap();
                assert_eq!(db.list_collection_names().unwrap().len() as u64, 2 * count);
                eprintln!("{store:?}: opened and listed {count} collections and views in {:?}", start.elapsed());
            };
            allocation_counter::measure(open).count_total
        });
        assert!(ten <= 11 * one, "{store:?}: {one} allocations, with ten times as many collections {ten}");
    }
}

#[test]
fn every_reader_sees_the_definitions_of_its_own_commit() {
    for store in STORES {
        let test = filled(store, 20);
        let before = test.db.snapshot().unwrap();
        let [kept, renamed, dropped] = ["c3", "c4", "c5"].map(|name| test.collection(name));
        renamed.rename("d4", RenameTarget::MustNotExist).unwrap();
        dropped.drop().unwrap();
        kept.create_index(Index::on(doc! { "c": 1 })).run().unwrap();
        test.collection("v6").drop().unwrap();
        test.collection("v6").insert_one(&rawdoc! { "_id": 1 }).unwrap();
        let after = test.db.snapshot().unwrap();
        // A change that has not been committed, and one that was rolled back.
        let open = test.db.begin().unwrap();
        open.collection::<Document>("e").create().unwrap();
        drop(open);
        let exists = |names: &[String], name: &str| names.iter().any(|there| there == name);
        let (old, new) = (before.list_collection_names(), after.list_collection_names());
        assert_eq!(["c4", "d4", "c5", "v6", "e"].map(|name| exists(&old, name)), [true, false, true, true, false]);
        assert_eq!(["c4", "d4", "c5", "v6", "e"].map(|name| exists(&new, name)), [false, true, false, true, false]);
        assert_eq!(test.db.list_collection_names().unwrap(), new);
        let indexes =
            |snapshot: &slate_core::Snapshot| snapshot.collection::<Document>("c3").list_indexes().unwrap().len();
        assert_eq!([indexes(&before), indexes(&after)], [2, 3]);
        drop((before, after, kept, renamed, dropped));
        let test = test.reopen();
        assert_eq!(test.db.list_collection_names().unwrap(), new);
        assert!(test.db.verify().run().unwrap().is_sound());
    }
}
