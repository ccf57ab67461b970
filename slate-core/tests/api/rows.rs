//! Rows that cursors lend.

use bson::{RawDocumentBuf, doc, oid::ObjectId, rawdoc};
use slate_core::Row;

use super::common::on_every_store;

const SHOWN: &str = r#"{ "_id": { "$oid": "7477656c7665206279746573" }, "name": "Ada \"L\"", "at": { "$date": "1970-01-01T00:00:01Z" }, "n": [1, 2.0] }"#;

fn document() -> RawDocumentBuf {
    let (id, at) = (ObjectId::from_bytes(*b"twelve bytes"), bson::DateTime::from_millis(1_000));
    rawdoc! { "_id": id, "name": "Ada \"L\"", "at": at, "n": [1, 2.0] }
}

#[test]
fn rows_are_shown_as_extended_json() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_one(&document()).unwrap();
        let mut cursor = c.find(doc! {}).cursor().unwrap();
        assert_eq!(format!("{cursor:?}"), "Cursor { current: None }");
        assert!(cursor.advance().unwrap());
        assert_eq!(format!("{:?}", cursor.current()), format!("Some({SHOWN})"));
        assert_eq!(cursor.current().unwrap().to_string(), SHOWN);
        assert_eq!(format!("{cursor:?}"), format!("Cursor {{ current: Some({SHOWN}) }}"));
        assert_eq!(Row::from(&document()).to_string(), SHOWN);
    });
}

#[test]
fn what_a_row_returns_is_lent_as_long_as_the_row() {
    on_every_store(|test| {
        let c = test.collection("c");
        c.insert_one(&document()).unwrap();
        let mut cursor = c.find(doc! {}).cursor().unwrap();
        assert!(cursor.advance().unwrap());
        let name = cursor.current().and_then(|row| row.get_str("name").ok());
        let numbers = cursor.current().and_then(|row| row.get_array("n").ok());
        let id = cursor.current().and_then(|row| row.get("_id").ok().flatten()).and_then(|id| id.as_object_id());
        let fields = cursor.current().map(|row| row.as_raw().iter().count());
        assert_eq!((name, numbers.map(|n| n.into_iter().count()), fields), (Some("Ada \"L\""), Some(2), Some(4)));
        assert_eq!(id, Some(ObjectId::from_bytes(*b"twelve bytes")));
        let kept: RawDocumentBuf = cursor.current().unwrap().to_owned();
        assert_eq!(cursor.current().unwrap(), kept);
        assert!(!cursor.advance().unwrap());
        assert_eq!((kept, cursor.current()), (document(), None));
    });
}

#[cfg(feature = "async")]
#[test]
fn rows_of_async_cursors_are_shown_as_extended_json() {
    on_every_store(|test| {
        test.collection("c").insert_one(&document()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let c = slate_core::aio::Database::from(test.db.clone()).collection::<RawDocumentBuf>("c");
            let mut cursor = c.find(doc! {}).cursor().await.unwrap();
            assert!(cursor.advance().await.unwrap());
            assert_eq!(format!("{:?}", cursor.current()), format!("Some({SHOWN})"));
        });
    });
}
