//! Distinct over an index returns the same values as over a scan, for all ranges, directions and windows, and for any
//! number of entries per value.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};
use common::on_every_store;
use slate_core::{Collection, Hint, Index};

/// Values with one entry, with two, and with enough that the executor seeks past them; many such values in a row
/// followed by small ones; null and missing fields; equal numbers of two types.
fn documents() -> Vec<RawDocumentBuf> {
    let mut documents = vec![rawdoc! {}, rawdoc! {}, rawdoc! { "a": null }, rawdoc! {}, rawdoc! { "a": null }];
    for (value, times) in [(3, 1), (4, 2), (5, 9), (6, 5), (7, 1), (8, 30), (9, 2)] {
        documents.extend((0..times).map(|_| rawdoc! { "a": value }));
    }
    let (large, small) = ((20..44).map(|value| (value, 6)), (44..60).map(|value| (value, 1 + value % 2)));
    for (value, times) in large.chain(small).chain([(60, 7), (61, 6), (62, 1)]) {
        documents.extend((0..times).map(|_| rawdoc! { "a": value }));
    }
    documents.extend([rawdoc! { "a": 5.0 }, rawdoc! { "a": "text" }, rawdoc! { "a": 6_i64 }]);
    documents
}

#[test]
fn distinct_over_an_index_agrees_with_a_scan() {
    for direction in [1, -1] {
        on_every_store(|test| {
            let c = test.collection("c");
            c.create_index(Index::on(doc! { "a": direction })).run().unwrap();
            c.insert_many(&documents()).run().unwrap();
            let filters = [
                doc! {},
                doc! { "a": { "$gte": 4, "$lt": 8 } },
                doc! { "a": { "$in": [3, 5, 8, 77, null] } },
                doc! { "$or": [{ "a": { "$lt": 4 } }, { "a": { "$gt": 7 } }] },
                doc! { "a": null },
                doc! { "a": 77 },
            ];
            for filter in &filters {
                for sort in [None, Some(1), Some(-1)] {
                    for (skip, limit) in [(0, None), (1, None), (0, Some(2)), (2, Some(3)), (50, Some(1))] {
                        let options = (filter, sort, (skip, limit));
                        let by_index = distinct(&c, options, Hint::Keys(rawdoc! { "a": direction }));
                        let by_scan = distinct(&c, options, Hint::Forward);
                        assert_eq!(by_index, by_scan, "{options:?} with an index of direction {direction}");
                    }
                }
            }
        });
    }
}

#[test]
fn distinct_over_the_entries_of_any_field_agrees_with_a_scan() {
    let mut documents = Vec::new();
    for (number, tags) in arrays().into_iter().enumerate() {
        let number = i32::try_from(number).unwrap();
        documents.push(doc! {
            "tenant": number % 3, "kind": if number % 2 == 0 { Bson::Int32(number % 5) } else { (f64::from(number % 5)).into() },
            "at": -number, "tags": tags.clone(), "lines": [{ "tag": tags.clone(), "n": 1 }, { "n": 2 }, 7],
        });
        documents.push(doc! { "tenant": 1, "tags": tags.clone(), "lines": [{ "tag": tags }] });
    }
    documents.push(doc! { "tenant": 1 });
    documents.push(doc! { "tenant": 1, "lines": [{ "tag": null }, {}] });
    documents.push(doc! { "tenant": 1, "lines": [{}, { "tag": null }] });
    documents.push(doc! { "tenant": 2, "lines": [] });
    let documents: Vec<_> = documents.iter().map(|document| RawDocumentBuf::try_from(document).unwrap()).collect();
    on_every_store(|test| {
        let c = test.collection("c");
        for keys in [
            doc! { "tenant": 1, "kind": 1, "at": 1 },
            doc! { "tenant": 1, "tags": -1 },
            doc! { "tags": 1 },
            doc! { "tags": 1, "at": 1 },
            doc! { "tenant": 1, "lines.tag": 1 },
            doc! { "lines.tag": 1, "lines.n": 1, "tenant": 1 },
        ] {
            let index = c.create_index(Index::on(keys.clone())).run().unwrap();
            c.insert_many(&documents).run().unwrap();
            for path in ["tenant", "kind", "at", "tags", "lines.tag", "lines.n"] {
                for filter in [doc! {}, doc! { "tenant": 1 }, doc! { "tenant": { "$gte": 1 }, "at": { "$lt": -2 } }] {
                    let of = |hint: Hint| c.find(&filter).hint(hint).distinct(path).run().unwrap();
                    assert_eq!(of(Hint::Name(index.clone())), of(Hint::Forward), "{path} {filter} over {keys}");
                }
            }
            c.delete_many(doc! {}).run().unwrap();
            c.drop_index(&index).unwrap();
        }
    });
}

/// Arrays with repetitions, equal numbers of several types, nulls and undefined values, empty ones and nested ones, and
/// values without an array.
fn arrays() -> Vec<Bson> {
    let symbol = || Bson::Symbol("a".into());
    let arrays: [Vec<Bson>; 9] = [
        vec![],
        vec![Bson::Undefined],
        vec![4.into(), 4.0.into(), 4_i64.into()],
        vec![4.0.into(), 5.into(), 4.into()],
        vec![Bson::Null, 4_i64.into()],
        vec!["a".into(), symbol(), "b".into()],
        vec![symbol(), "a".into()],
        vec![vec![1, 2].into(), vec![1.0, 2.0].into(), Bson::Array(vec![])],
        vec![Bson::Document(doc! { "x": 1 }), Bson::Document(doc! { "x": 1.0 })],
    ];
    let single = [4.0.into(), "a".into(), Bson::Null, symbol(), Bson::Undefined, 4_i64.into()];
    arrays.into_iter().map(Bson::Array).chain(single).collect()
}

fn distinct(
    c: &Collection<RawDocumentBuf>,
    (filter, sort, (skip, limit)): (&Document, Option<i32>, (u64, Option<u64>)),
    hint: Hint,
) -> Vec<Bson> {
    let mut find = c.find(filter).skip(skip).hint(hint);
    if let Some(sign) = sort {
        find = find.sort(doc! { "a": sign });
    }
    if let Some(limit) = limit {
        find = find.limit(limit);
    }
    find.distinct("a").run().unwrap()
}
