//! Finding a path's values: at the start and end of a document, in nested documents, through an array.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench fails by panicking")]

mod common;

use std::{hint::black_box, ops::ControlFlow};

use bson::RawDocumentBuf;
use criterion::{Criterion, Throughput};
use slate_query::{
    path::{Found, Path},
    raw::Doc,
};

/// Returns the values at the end of the path.
fn walked(path: &Path, doc: Doc<'_>) -> usize {
    let mut found = 0;
    let _ = path.walk(doc, &mut |end| {
        found += usize::from(matches!(end.found, Found::Value(_)));
        ControlFlow::Continue(())
    });
    found
}

fn paths(criterion: &mut Criterion) {
    let (records, orders) = (common::records(), common::orders());
    let cases: [(&str, &[RawDocumentBuf], &str); 8] = [
        ("first field", &records, "_id"),
        ("third field", &records, "status"),
        ("last field", &records, "notes"),
        ("missing field", &records, "no_such_field"),
        ("nested field", &orders, "customer.address.city"),
        ("behind nested documents", &orders, "created"),
        ("through an array", &orders, "items.sku"),
        ("by position", &orders, "items.5.sku"),
    ];
    let mut group = criterion.benchmark_group("path walk");
    for (name, documents, path) in cases {
        let stored = common::stored(documents);
        let (docs, path) = (common::docs(&stored), Path::parse(path).unwrap());
        group.throughput(Throughput::Elements(docs.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| docs.iter().map(|doc| walked(&path, black_box(*doc))).sum::<usize>());
        });
    }
    group.finish();

    // Stored documents, and documents without a field table: those of the caller and nested ones.
    for group_name in ["path get", "path get, without a table"] {
        let mut group = criterion.benchmark_group(group_name);
        for (name, documents, path) in cases.into_iter().filter(|(_, _, path)| !path.contains("items")) {
            let stored = common::stored(documents);
            let (mut docs, path) = (common::docs(&stored), Path::parse(path).unwrap());
            if group_name != "path get" {
                docs = documents.iter().map(Doc::from).collect();
            }
            group.throughput(Throughput::Elements(docs.len() as u64));
            group.bench_function(name, |bencher| {
                bencher.iter(|| docs.iter().filter(|doc| path.get(black_box(**doc)).is_some()).count());
            });
        }
        group.finish();
    }
}

fn main() {
    common::run(&[paths]);
}
