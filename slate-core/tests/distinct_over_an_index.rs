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
