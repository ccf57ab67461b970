//! Several databases in one store, through the typed API.

use bson::{Document, doc};
use slate_core::{CollectionOptions, Database, Index, RenameTarget, TransactionOptions, View, WriteOperation};

use crate::common::on_every_store;

fn ids(found: slate_core::Result<Vec<Document>>) -> Vec<i32> {
    found.unwrap().iter().map(|document| document.get_i32("_id").unwrap()).collect()
}

fn insert(db: &Database, collection: &str, ids: &[i32]) {
    let documents: Vec<Document> = ids.iter().map(|id| doc! { "_id": id }).collect();
    db.collection(collection).insert_many(&documents).run().unwrap();
}

#[test]
fn a_handle_names_what_its_database_contains() {
    on_every_store(|test| {
        let (store, shop) = (&test.db, test.db.database("shop"));
        insert(store, "users", &[1]);
        insert(&shop, "users", &[2, 3]);
        insert(&shop, "orders", &[4]);
        let users = shop.collection::<Document>("users");
        assert_eq!((users.name(), users.database_name()), ("users", "shop"));
        assert_eq!(ids(users.find(doc! {}).collect()), [2, 3]);
        assert_eq!(ids(store.database("test").collection("users").find(doc! {}).collect()), [1]);
        assert_eq!(ids(store.collection("$shop.users").find(doc! {}).collect()), [2, 3]);

        assert_eq!(store.list_database_names().unwrap(), ["shop", "test"]);
        assert_eq!(shop.list_collection_names().unwrap(), ["orders", "users"]);
        assert_eq!(store.database("test").list_collection_names().unwrap(), ["users"]);
        assert_eq!(store.list_collection_names().unwrap(), ["$shop.orders", "$shop.users", "users"]);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.database("shop").list_collection_names(), ["orders", "users"]);
        assert_eq!(ids(snapshot.database("shop").collection("orders").find(doc! {}).collect()), [4]);
        assert_eq!(shop.snapshot().unwrap().list_collections()[1].name, "users");

        let found = shop.command(doc! { "count": "users" }).unwrap();
        assert_eq!(found.get_i32("n").unwrap(), 2);
        let other = shop.command(doc! { "count": "users", "$db": "test" }).unwrap();
        assert_eq!(other.get_i32("n").unwrap(), 1);

        let renamed = users.rename("clients", RenameTarget::MustNotExist).unwrap();
        assert_eq!((renamed.name(), renamed.database_name()), ("clients", "shop"));
        let operations = [("clients", WriteOperation::insert_one(doc! { "_id": 5 }))];
        assert!(shop.bulk_write(operations).run().unwrap().errors.is_empty());
        assert_eq!(renamed.count_documents(doc! {}).run().unwrap(), 3);

        shop.drop_database().unwrap();
        assert_eq!(store.list_collection_names().unwrap(), ["users"]);
        let refused = store.database("a b").collection("users").insert_one(&doc! {}).unwrap_err();
        assert_eq!(refused.code(), 73);
    });
}

#[test]
fn pipelines_and_views_name_collections_of_their_database() {
    on_every_store(|test| {
        let (store, shop) = (&test.db, test.db.database("shop"));
        insert(store, "users", &[1]);
        insert(&shop, "users", &[2, 3]);
        insert(&shop, "orders", &[3, 4]);
        let orders = shop.collection::<Document>("orders");
        let lookup = doc! { "$lookup": { "from": "users", "localField": "_id", "foreignField": "_id", "as": "of" } };
        let with_users = [lookup.clone(), doc! { "$match": { "of": { "$ne": [] } } }];
        assert_eq!(ids(orders.aggregate(with_users.clone()).collect()), [3]);
        let own = [doc! { "$documents": [{ "_id": 9 }] }, doc! { "$unionWith": "orders" }];
        assert_eq!(ids(shop.aggregate(own).collect()), [9, 3, 4]);

        let view = View::new("orders", with_users);
        shop.collection::<Document>("known").create_with(&CollectionOptions::new().view(&view)).unwrap();
        assert_eq!(ids(shop.collection("known").find(doc! {}).collect()), [3]);
        let described = shop.list_collections().unwrap();
        let known = described.iter().find(|collection| collection.name == "known").unwrap();
        let shown = known.view.as_ref().unwrap();
        assert_eq!(shown.on(), "orders");
        assert_eq!(Document::try_from(&shown.pipeline()[0]).unwrap(), lookup);

        orders.aggregate([doc! { "$out": "copies" }]).run().unwrap();
        orders.aggregate([doc! { "$out": { "db": "archive", "coll": "orders" } }]).run().unwrap();
        let merge = doc! { "$merge": { "into": { "db": "test", "coll": "users" } } };
        orders.aggregate([merge]).run().unwrap();
        store
            .collection::<Document>("users")
            .aggregate([doc! { "$out": { "db": "archive", "coll": "users" } }])
            .run()
            .unwrap();
        assert_eq!(store.database("archive").list_collection_names().unwrap(), ["orders", "users"]);
        assert_eq!(ids(store.database("archive").collection("users").find(doc! {}).collect()), [1, 3, 4]);
        assert_eq!(ids(shop.collection("copies").find(doc! {}).collect()), [3, 4]);

        // A copy of the store contains all databases, and its views still read their own.
        let target = Database::open("memory:").unwrap();
        store.copy_to(&target).run().unwrap();
        assert_eq!(target.list_database_names().unwrap(), ["archive", "shop", "test"]);
        assert_eq!(ids(target.database("shop").collection("known").find(doc! {}).collect()), [3]);
    });
}

#[test]
fn one_transaction_writes_to_several_databases() {
    on_every_store(|test| {
        let (store, shop) = (&test.db, test.db.database("shop"));
        shop.collection::<Document>("orders").create_index(Index::on(doc! { "n": 1 }).unique()).run().unwrap();
        let transaction = shop.begin_with(&TransactionOptions::default()).unwrap();
        transaction.collection("orders").insert_one(&doc! { "_id": 1, "n": 1 }).unwrap();
        transaction.collection_in("ledger", "entries").insert_one(&doc! { "_id": 2 }).unwrap();
        transaction.commit().unwrap();
        assert_eq!(ids(store.database("ledger").collection("entries").find(doc! {}).collect()), [2]);
        let duplicate = shop.collection("orders").insert_one(&doc! { "n": 1 }).unwrap_err();
        assert_eq!(duplicate.code(), 11000);
    });
}
