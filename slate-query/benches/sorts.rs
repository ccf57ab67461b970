//! Encoding of sort keys, and sorting by them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench fails by panicking")]

mod common;

use std::hint::black_box;

use bson::{Document, RawDocumentBuf, doc};
use criterion::{Criterion, Throughput};
use slate_query::{order::compare, path::Path, raw::Doc, sort::Sort};

fn keys(criterion: &mut Criterion) {
    let (records, orders) = (&*common::records(), &*common::orders());
    let cases: [(&str, &[RawDocumentBuf], Document); 7] = [
        ("a number", records, doc! { "contacts_count": 1 }),
        ("a string", records, doc! { "name": 1 }),
        ("a string descending", records, doc! { "name": -1 }),
        ("two fields", records, doc! { "status": -1, "contacts_count": 1 }),
        ("an array", records, doc! { "tags": 1 }),
        ("nested field", orders, doc! { "customer.address.city": 1 }),
        ("field of an array's documents", orders, doc! { "items.price": 1 }),
    ];
    let mut group = criterion.benchmark_group("sort key");
    let mut out = Vec::with_capacity(1 << 12);
    for (name, documents, sort) in cases {
        let stored = common::stored(documents);
        let docs = common::docs(&stored);
        let sort = Sort::parse(Doc::from(&common::raw(&sort))).unwrap();
        group.throughput(Throughput::Elements(docs.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut bytes = 0;
                for doc in &docs {
                    out.clear();
                    sort.key(black_box(*doc), &mut out).unwrap();
                    bytes += out.len();
                }
                bytes
            });
        });
    }
    group.finish();
}

/// Comparing values in the documents, which sort keys avoid.
fn comparing(criterion: &mut Criterion) {
    let records = common::records();
    let stored = common::stored(&records);
    let docs = common::docs(&stored);
    let mut group = criterion.benchmark_group("compare values");
    for name in ["contacts_count", "name", "tags"] {
        let path = Path::parse(name).unwrap();
        let values: Vec<_> = docs.iter().filter_map(|doc| path.get(*doc)).collect();
        group.throughput(Throughput::Elements(values.len() as u64 - 1));
        group.bench_function(name, |bencher| {
            bencher.iter(|| values.windows(2).filter(|pair| compare(black_box(pair[0]), pair[1]).is_lt()).count());
        });
    }
    group.finish();
}

fn main() {
    common::run(&[keys, comparing]);
}
