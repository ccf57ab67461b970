//! The main job, end to end, on every store.

use bson::{RawDocumentBuf, doc, rawdoc};
use slate_core::{Database, Index};

fn stores() -> Vec<(Database, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    let redb = Database::open(&format!("redb:{}", folder.path().join("db.slate").display())).unwrap();
    vec![(Database::open("memory:").unwrap(), None), (redb, Some(folder))]
}

#[test]
fn documents_are_inserted_and_found_by_scan_and_by_index() {
    for (db, _folder) in stores() {
        let users = db.collection::<RawDocumentBuf>("users");
        let documents: Vec<RawDocumentBuf> =
            (0..3_000).map(|n| rawdoc! { "_id": n, "age": n % 100, "name": format!("user {n}") }).collect();
        users.insert_many(&documents).unwrap();
        assert_eq!(users.count(doc! {}).unwrap(), 3_000);
        assert_eq!(users.count(doc! { "age": { "$gte": 90 } }).unwrap(), 300);
        users.create_index(Index::on(doc! { "age": 1 })).unwrap();
        let found = users.find(doc! { "age": { "$gte": 90 } }).sort(doc! { "age": -1, "name": 1 }).limit(2);
        println!("{}\n", found.clone().explain().unwrap());
        assert!(found.clone().explain().unwrap().uses_index());
        let rows: Vec<_> = found.run().unwrap().map(|row| row.unwrap().get_i32("_id").unwrap()).collect();
        assert_eq!(rows, [1099, 1199]);
        let changed = users.update_many(doc! { "age": 99 }, doc! { "$inc": { "age": 1 } }).run().unwrap();
        assert_eq!((changed.matched, changed.modified), (30, 30));
        assert_eq!(users.count(doc! { "age": 100 }).unwrap(), 30);
        assert_eq!(users.delete_many(doc! { "age": 100 }).run().unwrap(), 30);
        assert_eq!(users.count(doc! {}).unwrap(), 2_970);
        assert_eq!(users.distinct("age", doc! {}).unwrap().len(), 99);
        assert_eq!(users.find_by_id(17).unwrap().unwrap().get_i32("_id").unwrap(), 17);
        assert!(users.insert_one(&rawdoc! { "_id": 17 }).unwrap_err().code() == 11000);
    }
}
