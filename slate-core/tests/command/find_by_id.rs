//! A `find` by `_id`, which takes no plan.

use bson::{Bson, Document, RawDocumentBuf, doc, oid::ObjectId, rawdoc};

use super::{command, on_every_store, run};

/// Compares the replies of `find` by `_id` with those of the same command with a comment, which takes the path of all other commands.
#[test]
fn a_find_by_id_replies_as_a_query() {
    on_every_store(|db| {
        let ids = [
            Bson::from(1),
            2_i64.into(),
            3.5.into(),
            "a".into(),
            "B".into(),
            true.into(),
            ObjectId::from_bytes([7; 12]).into(),
            doc! { "a": 1 }.into(),
            Bson::Null,
            bson::DateTime::from_millis(5).into(),
            Bson::Double(f64::NAN),
        ];
        let documents: Vec<Document> = ids.iter().map(|id| doc! { "_id": id, "text": "x".repeat(300) }).collect();
        run(db, doc! { "create": "collated", "collation": { "locale": "en", "strength": 2 } });
        for collection in ["c", "collated"] {
            run(db, doc! { "insert": collection, "documents": &documents });
        }
        run(db, doc! { "create": "view", "viewOn": "c", "pipeline": [{ "$project": { "text": 0 } }] });
        run(db, doc! { "insert": "c", "$db": "shop", "documents": [{ "_id": 1 }] });

        let conditions = ids.iter().cloned().chain([
            "b".into(),
            1.0.into(),
            99.into(),
            Bson::MaxKey,
            doc! { "$gt": 2 }.into(),
            vec![Bson::from(1)].into(),
            doc! {}.into(),
        ]);
        let filters = conditions.map(|condition| doc! { "_id": condition }).chain([
            doc! {},
            doc! { "_id": 1, "text": "y" },
            doc! { "text": 1 },
        ]);
        let options = [
            doc! {},
            doc! { "limit": 1 },
            doc! { "limit": 0 },
            doc! { "limit": -1 },
            doc! { "limit": 1_i64, "singleBatch": true },
            doc! { "singleBatch": true },
            doc! { "singleBatch": 1 },
            doc! { "batchSize": 0 },
            doc! { "batchSize": 1 },
            doc! { "batchSize": 1, "limit": 1 },
            doc! { "batchSize": 1, "singleBatch": true },
            doc! { "batchSize": 2, "limit": 1 },
            doc! { "readConcern": {} },
            doc! { "readConcern": { "level": "majority" } },
            doc! { "readConcern": { "level": "x" } },
            doc! { "skip": 1 },
            doc! { "projection": { "text": 1 } },
            doc! { "$db": "shop" },
            doc! { "$db": "a.b" },
            doc! { "$db": 1 },
            doc! { "$db": Bson::Null },
            doc! { "lsid": { "id": 1 } },
            doc! { "lsid": 1 },
            doc! { "$readPreference": { "mode": "primary" }, "$clusterTime": {} },
            doc! { "unknown": 1 },
            doc! { "returnKey": true },
        ];
        let collections = ["c", "collated", "view", "missing", "", "a$b", "system.x"]
            .map(Bson::from)
            .into_iter()
            .chain([Bson::from(1)]);
        let finds = collections
            .flat_map(|collection| filters.clone().map(move |filter| doc! { "find": &collection, "filter": filter }));
        let with_options = options.into_iter().flat_map(|options| {
            ["c", "view"].map(|collection| {
                let mut find = doc! { "find": collection, "filter": { "_id": 1 } };
                find.extend(options.clone());
                find
            })
        });
        for find in finds.chain(with_options) {
            let mut commented = find.clone();
            commented.insert("comment", 1);
            let shown =
                |reply: Result<Document, slate_core::Error>| format!("{:?}", reply.map_err(|error| error.to_string()));
            assert_eq!(shown(command(db, &find)), shown(command(db, &commented)), "{find}");
        }

        let mut twice = rawdoc! { "find": "c", "filter": { "_id": 1 } };
        twice.append(bson::cstr!("filter"), rawdoc! { "_id": 2 });
        assert_eq!(db.command(&twice).unwrap_err().code(), 40_413);
        let mut bytes = rawdoc! { "find": "c", "filter": { "_id": "ab" } }.into_bytes();
        let place = bytes.windows(2).position(|bytes| bytes == b"ab").unwrap();
        bytes[place] = 0xff;
        assert_eq!(db.command(RawDocumentBuf::from_bytes(bytes).unwrap()).unwrap_err().code(), 22);
    });
}
