//! Semantics of keys and values.

use bson::{Binary, Bson, DateTime, Document, RawDocumentBuf, Timestamp, doc, oid::ObjectId, spec::BinarySubtype};
use slate_core::{CancelToken, ErrorKind, Hint, Index};

use crate::{
    common::{each_plan, finds, finds_in_order, ids, on_every_store, raw},
    contents, insert, refused,
};

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse().unwrap())
}

#[test]
fn keys_are_equal_exactly_when_values_are() {
    on_every_store(|database| {
        let values = database.collection("values");
        values.create_index(Index::on(doc! { "v": 1 }).unique()).run().unwrap();
        let different: Vec<Bson> = vec![
            Bson::Null,
            0.into(),
            1.into(),
            0.1.into(),
            decimal("0.1"),
            f64::NAN.into(),
            ((1_i64 << 53) + 1).into(),
            ((1_i64 << 53) as f64).into(),
            "".into(),
            "a".into(),
            "a\0".into(),
            Bson::Document(doc! {}),
            Bson::Document(doc! { "a": 1 }),
            Bson::Document(doc! { "a": 1, "b": 1 }),
            Bson::Document(doc! { "b": 1 }),
            false.into(),
            DateTime::from_millis(0).into(),
            Bson::Timestamp(Timestamp { time: 0, increment: 1 }),
        ];
        insert(&values, different.into_iter().map(|value| doc! { "v": value }));
        let equal: [Bson; 14] = [
            Bson::Undefined,
            0.0.into(),
            (-0.0).into(),
            decimal("-0.00"),
            1_i64.into(),
            1.0.into(),
            decimal("1.00"),
            decimal("NaN"),
            decimal("9007199254740993"),
            (1_i64 << 53).into(),
            Bson::Symbol("a".into()),
            Bson::Document(doc! { "a": 1.0 }),
            Bson::Document(doc! { "a": 1_i64, "b": decimal("1.0") }),
            decimal("0.10"),
        ];
        // Skips undefined, whose place in the order is tested below.
        for value in equal.into_iter().skip(1) {
            let document = raw(&doc! { "v": value.clone() });
            let Err(error) = values.insert_one(&document) else { panic!("{value:?} is not equal to the others") };
            assert_eq!((error.code(), error.kind()), (11000, ErrorKind::DuplicateKey), "{value:?}: {error}");
        }
    });
}

#[test]
fn values_keep_their_types_in_documents() {
    on_every_store(|database| {
        let values = database.collection("values");
        values.create_index(Index::on(doc! { "v": 1 })).run().unwrap();
        let equal: [Bson; 4] = [1_i32.into(), 1_i64.into(), 1.0.into(), decimal("1.0")];
        insert(&values, equal.iter().enumerate().map(|(n, value)| doc! { "_id": n as i32, "v": value.clone() }));
        for (drawn, found) in each_plan(&values.find(doc! { "v": 1 }).projection(doc! { "_id": 0, "v": 1 })) {
            let found: Vec<Document> = found.iter().map(|row| row.try_into().unwrap()).collect();
            assert_eq!(found, equal.clone().map(|value| doc! { "v": value }), "{drawn}");
        }
    });
}

#[test]
fn numbers_compare_by_their_exact_values() {
    on_every_store(|database| {
        let numbers = database.collection("numbers");
        numbers.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
        let ascending: [Bson; 12] = [
            f64::NAN.into(),
            f64::NEG_INFINITY.into(),
            i64::MIN.into(),
            (-1).into(),
            0.into(),
            f64::from_bits(1).into(),
            decimal("0.1"),
            0.1.into(),
            ((1_i64 << 53) as f64).into(),
            ((1_i64 << 53) + 1).into(),
            i64::MAX.into(),
            // 2^63, one above the greatest int64.
            9_223_372_036_854_775_808.0.into(),
        ];
        insert(&numbers, ascending.iter().enumerate().map(|(n, value)| doc! { "_id": n as i32, "n": value.clone() }));
        finds_in_order(&numbers.find(doc! {}).sort(doc! { "n": 1 }), 0..12);
        finds_in_order(&numbers.find(doc! {}).sort(doc! { "n": -1 }), (0..12).rev());
        for (n, value) in ascending.iter().enumerate() {
            finds(&numbers.find(doc! { "n": value.clone() }), [n as i32]);
            // A range contains NaN only if it names NaN.
            let from = if n == 0 { 12 } else { n as i32 + 1 };
            finds(&numbers.find(doc! { "n": { "$gt": value.clone() } }), from..12);
            finds(&numbers.find(doc! { "n": { "$lt": value.clone() } }), 1..n.max(1) as i32);
        }
        finds(&numbers.find(doc! { "n": { "$gte": f64::NAN } }), [0]);
        finds(&numbers.find(doc! { "n": { "$not": { "$lt": 0 } } }), (0..12).filter(|n| !(1..=3).contains(n)));
    });
}

#[test]
fn the_order_has_a_place_for_every_type() {
    let ascending: Vec<Bson> = vec![
        Bson::MinKey,
        Bson::Null,
        1.into(),
        "a".into(),
        Bson::Document(doc! {}),
        Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: vec![0] }),
        ObjectId::from_bytes([0; 12]).into(),
        false.into(),
        DateTime::from_millis(-1).into(),
        Bson::Timestamp(Timestamp { time: 0, increment: 1 }),
        Bson::RegularExpression(bson::Regex {
            pattern: "a".to_owned().try_into().unwrap(),
            options: bson::raw::CString::try_from("").unwrap(),
        }),
        Bson::JavaScriptCode("a".into()),
        Bson::JavaScriptCodeWithScope(bson::JavaScriptCodeWithScope { code: "a".into(), scope: doc! {} }),
        Bson::MaxKey,
    ];
    on_every_store(|database| {
        let values = database.collection("values");
        values.create_index(Index::on(doc! { "v": 1 })).run().unwrap();
        let reversed = ascending.iter().enumerate().rev();
        insert(&values, reversed.map(|(n, value)| doc! { "_id": n as i32, "v": value.clone() }));
        finds_in_order(&values.find(doc! {}).sort(doc! { "v": 1 }), 0..ascending.len() as i32);
        finds_in_order(&values.find(doc! {}).sort(doc! { "v": -1 }), (0..ascending.len() as i32).rev());
        let distinct = values.distinct("v", doc! {}).run().unwrap();
        assert_eq!(distinct, ascending);
        // As `_id`s the values have the same order. Regular expressions cannot be `_id`s.
        let records = database.collection("records");
        let may_be_id = ascending.iter().filter(|value| !matches!(value, Bson::RegularExpression(_)));
        insert(&records, may_be_id.clone().rev().map(|value| doc! { "_id": value.clone() }));
        let found: Vec<Bson> = contents(&records).into_iter().map(|row| row.get("_id").unwrap().clone()).collect();
        assert!(found.iter().eq(may_be_id), "{found:?}");
    });
}

/// The `_id`'s type is stored beside its key, and shared by all indexes of a document.
#[test]
fn ids_of_equal_bytes_and_of_equal_keys_keep_their_types_in_covered_answers() {
    on_every_store(|database| {
        let things = database.collection("things");
        things.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        things.create_index(Index::on(doc! { "b": 1 })).run().unwrap();
        let of = |id: Bson, a: i32| doc! { "_id": id, "a": a, "b": a };
        let date = Bson::DateTime(bson::DateTime::from_millis(5));
        // Adjacent `_id`s, some with equal bytes and others with equal keys, of different types.
        insert(&things, [of(Bson::Int64(5), 1), of(date, 2), of(Bson::Int32(6), 3), of(Bson::Double(7.0), 4)]);
        things.upsert_many(&[raw(&of(Bson::Int64(6), 3)), raw(&of(Bson::Int32(7), 5))]).unwrap();
        for field in ["a", "b"] {
            let covered = things
                .find(doc! { field: { "$gte": 0 } })
                .projection(doc! { field: 1 })
                .hint(Hint::Name(format!("{field}_1")));
            let whole = things.find(doc! { field: { "$gte": 0 } }).sort(doc! { field: 1 }).hint(Hint::Forward);
            let shown = |find: slate_core::Find<RawDocumentBuf>| -> Vec<Bson> {
                let rows = find.run().unwrap().map(|row| row.unwrap());
                rows.map(|row| row.get("_id").unwrap().unwrap().try_into().unwrap()).collect()
            };
            assert_eq!(shown(covered), shown(whole));
        }
    });
}

#[test]
fn a_filter_of_more_than_64_conditions_agrees_with_the_scan() {
    on_every_store(|database| {
        let numbers = database.collection("numbers");
        numbers.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
        insert(&numbers, (0..200).map(|n| doc! { "_id": n, "n": n }));
        for count in [63, 64, 65, 70] {
            // Each condition excludes one more document; the last ones are beyond the 64th.
            let conditions: Vec<Document> = (0..count).map(|n| doc! { "n": { "$gt": n } }).collect();
            let filter = doc! { "$and": conditions };
            finds(&numbers.find(&filter), count..200);
            assert_eq!(numbers.count_documents(&filter).run().unwrap(), 200 - u64::try_from(count).unwrap());
            for (drawn, found) in each_plan(&numbers.find(&filter)) {
                assert_eq!(found.len(), 200 - usize::try_from(count).unwrap(), "{}", crate::common::brief(&drawn));
            }
        }
    });
}

#[test]
fn values_longer_than_an_entry_stores_are_distinguished() {
    on_every_store(|database| {
        let texts = database.collection("texts");
        texts.create_index(Index::on(doc! { "t": 1 })).run().unwrap();
        texts.create_index(Index::on(doc! { "t": -1, "n": 1 })).run().unwrap();
        let lengths = [1_960, 1_966, 1_967, 1_968, 1_996, 1_997, 1_998, 1_999, 2_000, 2_001, 4_000, 100_000];
        let long: Vec<String> =
            lengths.iter().flat_map(|length| ["a", "b"].map(|end| "x".repeat(*length) + end)).collect();
        for (n, text) in long.iter().enumerate() {
            insert(&texts, [doc! { "_id": n as i32, "t": text, "n": 1 }]);
            // First every entry stores its value completely, then some are truncated.
            for (n, text) in long.iter().enumerate().take(n + 1) {
                let mut plans = each_plan(&texts.find(doc! { "t": text }));
                plans.extend(each_plan(&texts.find(doc! { "t": text, "n": { "$gte": 1 } })));
                for (drawn, found) in plans {
                    assert_eq!(ids(&found), [Bson::Int32(n as i32)], "{}", crate::common::brief(&drawn));
                }
            }
        }
        let mut sorted: Vec<(&String, i32)> = long.iter().zip(0..).collect();
        sorted.sort();
        let ascending: Vec<i32> = sorted.iter().map(|(_, n)| *n).collect();
        finds_in_order(&texts.find(doc! {}).sort(doc! { "t": 1 }), ascending.clone());
        finds_in_order(&texts.find(doc! {}).sort(doc! { "t": -1 }).limit(5), ascending.iter().rev().take(5).copied());
        for (place, (text, _)) in sorted.iter().enumerate() {
            finds(&texts.find(doc! { "t": { "$gt": *text } }), ascending[place + 1..].to_vec());
            finds(&texts.find(doc! { "t": { "$lt": *text } }), ascending[..place].to_vec());
        }
        assert_eq!(texts.delete_many(doc! { "t": { "$gte": &long[0] } }).run().unwrap(), long.len() as u64);
    });
}

#[test]
fn long_values_are_unique_by_all_their_bytes() {
    on_every_store(|database| {
        let texts = database.collection("texts");
        texts.create_index(Index::on(doc! { "t": 1 }).unique()).run().unwrap();
        for length in [1_960, 1_990, 1_999, 2_000, 2_001, 3_000] {
            for end in ["a", "b"] {
                let document = raw(&doc! { "t": "x".repeat(length) + end });
                texts.insert_one(&document).unwrap();
                refused(texts.insert_one(&document), 11000);
                finds(
                    &texts.find(doc! { "t": "x".repeat(length) + end }).projection(doc! { "_id": 1 }),
                    [texts
                        .find_one(doc! { "t": "x".repeat(length) + end })
                        .run()
                        .unwrap()
                        .unwrap()
                        .get_object_id("_id")
                        .unwrap()],
                );
            }
        }
        // Free again once its document is deleted.
        let taken = doc! { "t": "x".repeat(3_000) + "a" };
        texts.delete_one(&taken).run().unwrap();
        texts.insert_one(&raw(&taken)).unwrap();
    });
}

#[test]
fn ids_collide_by_value() {
    on_every_store(|database| {
        let records = database.collection("records");
        insert(&records, [doc! { "_id": 1 }]);
        for equal in [Bson::Int64(1), Bson::Double(1.0), decimal("1.0")] {
            let error = refused(records.insert_one(&raw(&doc! { "_id": equal })), 11000);
            assert!(error.message().contains("index: _id_"), "{error}");
        }
        for equal in [Bson::Int64(1), Bson::Double(1.0), decimal("1.0")] {
            finds(&records.find(doc! { "_id": equal.clone() }), [1]);
            assert!(records.find_by_id(equal).unwrap().is_some());
        }
    });
}

#[test]
fn a_query_by_id_agrees_with_other_plans() {
    on_every_store(|database| {
        let records = database.collection("records");
        insert(&records, (0..20).map(|id| doc! { "_id": id, "a": id % 2, "b": [1, 2] }));
        let find = || records.find(doc! { "_id": 5.0 });
        finds(&find().limit(1), [5]);
        finds(&find().sort(doc! { "a": 1 }), [5]);
        finds(&find().skip(1), [0; 0]);
        finds(&records.find(doc! { "_id": 77 }), [0; 0]);
        finds(&records.find(doc! { "_id": 5, "a": 0 }), [0; 0]);
        finds(&database.collection("none").find(doc! { "_id": 5 }), [0; 0]);
        finds(&find().limit(0), [0; 0]);
        assert_eq!((find().count().run().unwrap(), find().distinct("b").run().unwrap().len()), (1, 2));
        let projected = find().projection(doc! { "a": 1 }).first().unwrap().unwrap();
        assert_eq!(projected, raw(&doc! { "_id": 5, "a": 1 }));
        let mut cursor = find().cursor().unwrap();
        assert!(cursor.current().is_none() && cursor.advance().unwrap());
        assert_eq!(cursor.current().unwrap().get_i32("_id").unwrap(), 5);
        assert!((0..2).all(|_| !cursor.advance().unwrap() && cursor.current().is_none()));
        // The cursor and the snapshot do not change.
        let (mut cursor, snapshot) = (find().cursor().unwrap(), database.db.snapshot().unwrap());
        records.delete_one(doc! { "_id": 5 }).run().unwrap();
        assert!(cursor.advance().unwrap());
        finds(&snapshot.collection("records").find(doc! { "_id": 5 }), [5]);
        finds(&find(), [0; 0]);
        let token = CancelToken::new();
        token.cancel();
        let find = || records.find(doc! { "_id": 6 }).cancel(token.clone());
        for find in [find(), find().sort(doc! { "a": 1 }), find().projection(doc! { "a": 1 })] {
            assert_eq!(find.cursor().err().unwrap().kind(), ErrorKind::Interrupted);
        }
    });
}

#[test]
fn an_id_moves_to_the_front_and_a_missing_one_is_an_object_id() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.insert_one(&raw(&doc! { "b": 1, "_id": 7, "a": 2 })).unwrap();
        let id = records.insert_one(&raw(&doc! { "b": 1 })).unwrap();
        assert!(matches!(id, Bson::ObjectId(_)), "{id:?}");
        let stored = contents(&records);
        assert_eq!(stored[0].keys().collect::<Vec<_>>(), ["_id", "b", "a"]);
        assert_eq!(stored[1], doc! { "_id": id, "b": 1 });
    });
}

#[test]
fn an_empty_timestamp_is_filled_in_only_at_the_top_level() {
    on_every_store(|database| {
        let records = database.collection("records");
        let empty = Bson::Timestamp(Timestamp { time: 0, increment: 0 });
        records
            .insert_one(&raw(&doc! { "_id": empty.clone(), "t": empty.clone(), "d": { "t": empty.clone() } }))
            .unwrap();
        let stored = &contents(&records)[0];
        assert_eq!(stored.get("_id"), Some(&empty));
        assert_eq!(stored.get_document("d").unwrap(), &doc! { "t": empty.clone() });
        assert!(stored.get_timestamp("t").unwrap().time > 0);
        // A generated `_id` makes no difference; nothing else in the document changes.
        records.delete_many(doc! {}).run().unwrap();
        records.insert_one(&raw(&doc! { "n": 1, "t": empty.clone(), "d": { "t": empty.clone() } })).unwrap();
        let stored = &contents(&records)[0];
        assert_eq!(stored.keys().collect::<Vec<_>>(), ["_id", "n", "t", "d"]);
        assert_eq!(stored.get_document("d").unwrap(), &doc! { "t": empty.clone() });
        assert!(stored.get_timestamp("t").unwrap().time > 0);
        // And in a replacement that keeps the `_id` of the replaced document.
        let replacement = raw(&doc! { "n": 2, "t": empty.clone(), "d": { "t": empty.clone() } });
        records.replace_one(doc! { "n": 1 }, &replacement).run().unwrap();
        let stored = &contents(&records)[0];
        assert_eq!(stored.keys().collect::<Vec<_>>(), ["_id", "n", "t", "d"]);
        assert_eq!(stored.get_document("d").unwrap(), &doc! { "t": empty });
        assert!(stored.get_timestamp("t").unwrap().time > 0);
    });
}

#[test]
fn an_invalid_id_is_rejected() {
    on_every_store(|database| {
        let records = database.collection("records");
        let regex = bson::Regex {
            pattern: "a".to_owned().try_into().unwrap(),
            options: bson::raw::CString::try_from("").unwrap(),
        };
        for id in [Bson::Array(vec![1.into()]), Bson::RegularExpression(regex), Bson::Undefined] {
            let error = refused(records.insert_one(&raw(&doc! { "_id": id })), 53);
            assert_eq!(error.path(), Some("_id"));
        }
        refused(records.insert_one(&raw(&doc! { "_id": { "$a": 1 } })), 52);
        let longest =
            (1_900..2_100).rfind(|length| records.insert_one(&raw(&doc! { "_id": "i".repeat(*length) })).is_ok());
        let longest = longest.unwrap();
        let error = records.insert_one(&raw(&doc! { "_id": "i".repeat(longest + 1) })).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::TooLarge, Some("_id")), "{error}");
        finds(&records.find(doc! { "_id": "i".repeat(longest) }), ["i".repeat(longest)]);
        // In a query, it is an `_id` that no record has.
        finds(&records.find(doc! { "_id": "i".repeat(longest + 1) }), Vec::<Bson>::new());
        finds(&records.find(doc! { "_id": { "$gt": "i".repeat(longest + 1) } }), Vec::<Bson>::new());
        assert_eq!(
            records.update_one(doc! { "_id": "i".repeat(5_000) }, doc! { "$set": { "a": 1 } }).run().unwrap().matched,
            0
        );
    });
}

#[test]
fn the_first_of_duplicate_fields_wins_and_updates_keep_the_others() {
    on_every_store(|database| {
        let records = database.collection("records");
        records.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        let mut twice = RawDocumentBuf::new();
        for (name, value) in [("_id", 1), ("a", 1), ("b", 5), ("a", 2)] {
            twice.append(bson::raw::CString::try_from(name).unwrap(), value);
        }
        records.insert_one(&twice).unwrap();
        finds(&records.find(doc! { "a": 1 }), [1]);
        finds(&records.find(doc! { "a": 2 }), Vec::<i32>::new());
        assert_eq!(records.distinct("a", doc! {}).run().unwrap(), [Bson::Int32(1)]);
        records.update_one(doc! { "a": 1 }, doc! { "$set": { "a": 3 } }).run().unwrap();
        let stored = records.find_by_id(1).unwrap().unwrap();
        let fields: Vec<(String, i32)> = stored
            .iter()
            .map(|field| field.map(|(name, value)| (name.to_string(), value.as_i32().unwrap())).unwrap())
            .collect();
        assert_eq!(fields, [("_id", 1), ("a", 3), ("b", 5), ("a", 2)].map(|(name, value)| (name.to_owned(), value)));
        finds(&records.find(doc! { "a": 3 }), [1]);
    });
}
