//! Whatever sorts values under a collation sorts them in one order, over values of all types, and does not panic.

#![cfg(feature = "collation")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and its numbers are small"
)]

mod common;

use bson::{Bson, Document, RawDocumentBuf, bson, doc};
use common::{
    Store,
    random_values::{numbers, others},
};
use proptest::{collection::vec, prelude::*, sample::select};
use slate_core::Collection;

fn collation() -> impl Strategy<Value = Document> {
    select(vec![
        doc! { "locale": "en", "strength": 1 },
        doc! { "locale": "en", "strength": 2, "caseLevel": true },
        doc! { "locale": "de", "strength": 3, "caseFirst": "upper" },
        doc! { "locale": "sv", "numericOrdering": true },
        doc! { "locale": "en", "alternate": "shifted", "maxVariable": "space" },
    ])
}

/// Texts of which some are equal at some strength, as strings, symbols, code, and in documents and scopes; numbers; other types.
fn value() -> impl Strategy<Value = Bson> {
    let texts = select(["", "a", "A", "\u{e1}", "b", "item 9", "item 10", "a-b", "ab", "\u{df}", "ss"].to_vec());
    let texts = (texts, 0..5).prop_map(|(text, form)| match form {
        0 => Bson::from(text),
        1 => Bson::Symbol(text.into()),
        2 => Bson::JavaScriptCode(text.into()),
        3 => Bson::from(doc! { "a": text }),
        _ => Bson::JavaScriptCodeWithScope(bson::JavaScriptCodeWithScope {
            code: text.into(),
            scope: doc! { "a": text },
        }),
    });
    // A sort takes `undefined` as `null`.
    let others = others().into_iter().filter(|value| *value != Bson::Undefined).collect::<Vec<_>>();
    prop_oneof![4 => texts, 1 => select(numbers()), 1 => select(others)]
}

/// A collection with a document for each value.
struct Values {
    collation: Document,
    c: Collection<RawDocumentBuf>,
}

impl Values {
    /// Returns the first row of a pipeline, or the field `v` of all rows.
    fn rows(&self, stages: impl IntoIterator<Item = Document>) -> Vec<Document> {
        let rows = self.c.aggregate(stages.into_iter().collect::<Vec<_>>()).collation(&self.collation).run().unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// Computes an expression for the first document.
    fn computed(&self, expression: Bson) -> Bson {
        let rows = self.rows([doc! { "$limit": 1 }, doc! { "$project": { "x": expression } }]);
        rows[0].get("x").unwrap().clone()
    }

    /// Compares each value with the one at the same place.
    fn compare(&self, a: &[Bson], b: &[Bson]) -> Vec<i32> {
        let literal = |value: &Bson| bson!({ "$literal": value });
        let compared = a.iter().zip(b).map(|(a, b)| bson!({ "$cmp": [literal(a), literal(b)] })).collect();
        self.computed(Bson::Array(compared)).as_array().unwrap().iter().map(|order| order.as_i32().unwrap()).collect()
    }

    fn is_sorted(&self, values: &[Bson]) -> bool {
        values.is_empty() || self.compare(values, &values[1..]).iter().all(|order| *order <= 0)
    }

    fn are_equal(&self, a: &[Bson], b: &[Bson]) -> bool {
        a.len() == b.len() && self.compare(a, b).iter().all(|order| *order == 0)
    }
}

fn field(rows: &[Document], name: &str) -> Vec<Bson> {
    rows.iter().map(|row| row.get(name).unwrap().clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn everything_sorts_in_one_order(collation in collation(), values in vec(value(), 1..60)) {
        let test = Store::Memory.open();
        let c = test.collection("c");
        for (id, v) in values.iter().enumerate() {
            c.insert_one(&common::raw(&doc! { "_id": id as i32, "v": v })).unwrap();
        }
        let of = Values { collation: collation.clone(), c };
        let literals: Vec<Bson> = values.iter().map(|value| bson!({ "$literal": value })).collect();
        let sorted = of.computed(bson!({ "$sortArray": { "input": literals, "sortBy": 1 } }));
        let sorted = sorted.as_array().unwrap().clone();
        prop_assert!(of.is_sorted(&sorted), "{:?}", sorted);

        // Equal values stay in the order in which they are.
        let pushed = test.collection("pushed");
        pushed.insert_one(&common::raw(&doc! { "_id": 1, "a": [], "d": [] })).unwrap();
        let documents: Vec<Bson> = values.iter().map(|value| bson!({ "v": value })).collect();
        let push = doc! { "a": { "$each": &values, "$sort": 1 }, "d": { "$each": documents, "$sort": { "v": 1 } } };
        pushed.update_one(doc! {}, doc! { "$push": push }).collation(&collation).run().unwrap();
        let pushed = Document::try_from(&pushed.find_one(doc! {}).run().unwrap().unwrap()).unwrap();
        prop_assert!(same(pushed.get_array("a").unwrap(), &sorted), "{}", pushed);
        let of_documents: Vec<Bson> =
            pushed.get_array("d").unwrap().iter().map(|inner| inner.as_document().unwrap().get("v").unwrap().clone()).collect();
        prop_assert!(same(&of_documents, &sorted), "{}", pushed);

        let found = of.c.find(doc! {}).sort(doc! { "v": 1, "_id": 1 }).collation(&collation).run().unwrap();
        let found: Vec<Document> = found.map(|row| Document::try_from(&row.unwrap()).unwrap()).collect();
        prop_assert!(same(&field(&found, "v"), &sorted), "{:?}", found);

        let output = doc! { "all": { "$push": "$v" }, "place": { "$denseRank": {} } };
        let windows = of.rows([doc! { "$setWindowFields": { "sortBy": { "v": 1 }, "output": output } }]);
        prop_assert!(of.are_equal(windows[0].get_array("all").unwrap(), &sorted), "{:?}", windows);
        let changes = of.compare(&sorted, &sorted[1..]).iter().filter(|order| **order != 0).count();
        let greatest = windows.iter().map(|row| row.get("place").unwrap().as_i64().or(row.get_i32("place").ok().map(i64::from)));
        prop_assert_eq!(greatest.max().flatten(), i64::try_from(changes + 1).ok(), "{:?}", windows);

        // Values that compare as equal are one group.
        let groups = of.rows([doc! { "$group": { "_id": "$v", "n": { "$sum": 1 } } }]);
        prop_assert_eq!(groups.len(), changes + 1, "{:?}", groups);

        // These take no `null`.
        let present: Vec<Bson> = sorted.iter().filter(|value| **value != Bson::Null).cloned().collect();
        let n = 1 + values.len() as i32 / 2;
        let least = of.rows([doc! { "$group": {
            "_id": null,
            "min": { "$minN": { "input": "$v", "n": n } }, "max": { "$maxN": { "input": "$v", "n": n } },
        } }]);
        let most = present.len().min(n as usize);
        let greatest: Vec<Bson> = present.iter().rev().take(most).cloned().collect();
        let (min, max) = (least[0].get_array("min").unwrap(), least[0].get_array("max").unwrap());
        prop_assert!(of.are_equal(min, &present[..most]), "{:?} of {:?}", min, present);
        prop_assert!(of.are_equal(max, &greatest), "{:?} of {:?}", max, present);
        let array = |name: &str| of.computed(bson!({ name: { "input": { "$literal": &values }, "n": n } }));
        prop_assert!(of.are_equal(array("$minN").as_array().unwrap(), &present[..most]));
        prop_assert!(of.are_equal(array("$maxN").as_array().unwrap(), &greatest));
    }
}

/// Compares the bytes, because a number that is none is not equal to itself.
fn same(a: &[Bson], b: &[Bson]) -> bool {
    doc! { "a": a }.to_vec().unwrap() == doc! { "a": b }.to_vec().unwrap()
}
