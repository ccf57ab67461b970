//! Views through the typed API: snapshots, transactions, copies, commands.

use bson::{Document, RawDocumentBuf, doc};
use slate_core::{
    Collection, CollectionOptions, Database, ErrorKind, ExistingCollections, ExplainVerbosity, Index, Isolation,
    RenameTarget, TransactionOptions, Validator, View,
};

use super::common::{TestDatabase, on_every_store};

fn view(database: &TestDatabase, name: &str, on: &str, stage: Document) -> Collection<Document> {
    let view = database.db.collection(name);
    view.create_with(&CollectionOptions::new().view(&View::new(on, [stage]))).unwrap();
    view
}

fn open(database: &TestDatabase) -> Collection<Document> {
    let documents = (0..20).map(|id| doc! { "_id": id, "n": id % 5, "open": id % 2 == 0 });
    database.db.collection::<Document>("c").insert_many(&documents.collect::<Vec<_>>()).run().unwrap();
    view(database, "v", "c", doc! { "$match": { "open": true } })
}

#[test]
fn a_view_is_read_like_a_collection() {
    on_every_store(|database| {
        let view = open(&database);
        assert!(view.exists().unwrap());
        assert_eq!(view.estimated_document_count().unwrap(), 10);
        assert_eq!(view.find_by_id(4).unwrap(), Some(doc! { "_id": 4, "n": 4, "open": true }));
        assert_eq!(view.find_by_id(5).unwrap(), None);
        assert_eq!(
            view.find_one(doc! { "n": 3 }).sort(doc! { "_id": -1 }).run().unwrap().unwrap().get("_id"),
            Some(&18.into())
        );
        let mut rows = view.find(doc! { "n": { "$gt": 2 } }).projection(doc! { "n": 1 }).cursor().unwrap();
        let mut count = 0;
        while rows.advance().unwrap() {
            count += 1;
        }
        assert_eq!(count, 4);
        assert_eq!(view.distinct("n", doc! {}).run().unwrap(), (0..5).map(bson::Bson::from).collect::<Vec<_>>());
        database.db.collection::<Document>("c").create_index(Index::on(doc! { "open": 1, "n": 1 })).run().unwrap();
        let explained = view.find(doc! { "n": 3 }).explain(ExplainVerbosity::ExecutionStats).unwrap();
        assert_eq!(explained.execution_stats().unwrap().documents_examined, 2, "{explained}");
    });
}

#[test]
fn a_snapshot_keeps_the_definition_of_its_commit() {
    on_every_store(|database| {
        let view = open(&database);
        let snapshot = database.db.snapshot().unwrap();
        view.set_view(&View::new("c", [doc! { "$match": { "_id": 1 } }])).unwrap();
        assert_eq!(view.count_documents(doc! {}).run().unwrap(), 1);
        assert_eq!(snapshot.collection::<Document>("v").count_documents(doc! {}).run().unwrap(), 10);
        view.drop().unwrap();
        assert!(!view.exists().unwrap());
        assert_eq!(view.count_documents(doc! {}).run().unwrap(), 0);
        assert_eq!(snapshot.collection::<Document>("v").find_by_id(4).unwrap().unwrap().get("_id"), Some(&4.into()));
    });
}

#[test]
fn a_serializable_transaction_conflicts_with_changes_below_a_view() {
    on_every_store(|database| {
        if database.db.store() == "redb" {
            return;
        }
        let view = open(&database);
        let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
        for change in [true, false] {
            let transaction = database.db.begin_with(&serializable).unwrap();
            transaction.collection::<Document>("v").count_documents(doc! {}).run().unwrap();
            transaction.collection::<Document>("log").insert_one(&doc! { "n": 1 }).unwrap();
            std::thread::scope(|threads| {
                threads.spawn(|| match change {
                    true => drop(database.db.collection::<Document>("c").insert_one(&doc! { "open": true }).unwrap()),
                    false => view.set_view(&View::new("c", [doc! { "$match": { "n": 1 } }])).unwrap(),
                });
            });
            assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        }
    });
}

#[test]
fn what_only_collections_have_is_refused() {
    on_every_store(|database| {
        let view = open(&database);
        let code = |result: Result<(), slate_core::Error>| result.unwrap_err().code();
        assert_eq!(code(view.insert_one(&doc! {}).map(drop)), 166);
        assert_eq!(code(view.upsert_many(&[doc! { "_id": 1 }]).map(drop)), 166);
        assert_eq!(code(view.merge_many([doc! { "_id": 1 }]).map(drop)), 166);
        assert_eq!(code(view.update_many(doc! {}, doc! { "$set": { "a": 1 } }).run().map(drop)), 166);
        assert_eq!(code(view.delete_many(doc! {}).run().map(drop)), 166);
        assert_eq!(code(view.create_index(Index::on(doc! { "n": 1 })).run().map(drop)), 166);
        assert_eq!(code(view.list_indexes().map(drop)), 166);
        assert_eq!(code(view.drop_index("n_1").map(drop)), 166);
        assert_eq!(code(view.stats().map(drop)), 166);
        assert_eq!(code(view.verify().run().map(drop)), 166);
        assert_eq!(code(view.rename("w", RenameTarget::DropExisting).map(drop)), 166);
        assert_eq!(code(view.set_validator(Some(Validator::new(doc! { "n": 1 })))), 166);
        assert_eq!(code(view.create()), 48);
        let collection = database.db.collection::<Document>("c");
        assert_eq!(code(collection.rename("v", RenameTarget::DropExisting).map(drop)), 48);
        let options = CollectionOptions::new()
            .view(&View::new("c", Vec::<Document>::new()))
            .validator(&Validator::new(doc! { "a": 1 }));
        assert_eq!(code(database.db.collection::<Document>("w").create_with(&options)), 72);
        assert!(database.db.verify().run().unwrap().is_sound());
        assert_eq!(database.db.stats().unwrap().collections.len(), 1);
    });
}

#[test]
fn views_that_read_each_other_too_deeply_are_refused() {
    on_every_store(|database| {
        let create = |number: i32, on: String| {
            let options = CollectionOptions::new().view(&View::new(&on, [doc! { "$match": {} }]));
            database.db.collection::<Document>(&format!("v{number}")).create_with(&options)
        };
        database.db.collection::<Document>("c").insert_one(&doc! { "_id": 1 }).unwrap();
        create(1, "c".into()).unwrap();
        for number in 2..=20 {
            create(number, format!("v{}", number - 1)).unwrap();
        }
        let count = |view: &str| database.db.collection::<Document>(view).count_documents(doc! {}).run();
        assert_eq!(count("v19").unwrap(), 1);
        // It exists, and is too deep to be read.
        assert_eq!(count("v20").unwrap_err().code(), 165);
        assert_eq!(create(21, "v20".into()).unwrap_err().code(), 165);
        // Below the others.
        database.db.collection::<Document>("c").drop().unwrap();
        let options = CollectionOptions::new().view(&View::new("d", [doc! { "$match": {} }]));
        let below = database.db.collection::<Document>("c").create_with(&options);
        assert_eq!(below.unwrap_err().code(), 165);
    });
}

#[test]
fn a_copy_has_the_views() {
    on_every_store(|database| {
        open(&database);
        view(&database, "w", "v", doc! { "$project": { "n": 1 } });
        let target = Database::open("memory:").unwrap();
        let copied = database.db.copy_to(&target).run().unwrap();
        assert_eq!((copied.collections, copied.views, copied.documents), (1, 2, 20));
        let described = target.list_collections().unwrap();
        let names: Vec<_> =
            described.iter().map(|described| (described.name.as_str(), described.view.is_some())).collect();
        assert_eq!(names, [("c", false), ("v", true), ("w", true)]);
        assert_eq!(described[2].view.as_ref().unwrap().on(), "v");
        assert_eq!(target.collection::<Document>("w").count_documents(doc! {}).run().unwrap(), 10);
        assert!(database.db.copy_to(&target).run().is_err());
        // A view takes the place of a collection, and a collection that of a view.
        target.drop_database().unwrap();
        target.collection::<Document>("v").insert_one(&doc! { "_id": 1 }).unwrap();
        let reversed = CollectionOptions::new().view(&View::new("v", [doc! { "$match": {} }]));
        target.collection::<Document>("c").create_with(&reversed).unwrap();
        database.db.copy_to(&target).existing(ExistingCollections::Replace).run().unwrap();
        assert_eq!(target.collection::<Document>("w").count_documents(doc! {}).run().unwrap(), 10);
        assert_eq!(target.collection::<RawDocumentBuf>("c").count_documents(doc! {}).run().unwrap(), 20);
    });
}
