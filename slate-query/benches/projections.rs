//! Each kind of projection.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench fails by panicking")]

mod common;

use std::hint::black_box;

use bson::{Document, RawDocumentBuf, doc};
use criterion::{Criterion, Throughput};
use slate_query::{
    filter::{Filter, Ties},
    projection::Projection,
    raw::Doc,
};

fn projections(criterion: &mut Criterion) {
    let (records, orders) = (&*common::records(), &*common::orders());
    let cases: [(&str, &[RawDocumentBuf], Document); 9] = [
        ("two fields", records, doc! { "name": 1, "status": 1 }),
        ("one field without _id", records, doc! { "status": 1, "_id": 0 }),
        ("all but one field", records, doc! { "notes": 0 }),
        ("nested field", orders, doc! { "customer.address.city": 1 }),
        ("field of an array's documents", orders, doc! { "items.sku": 1 }),
        ("all but a field of an array's documents", orders, doc! { "items.price": 0 }),
        ("$slice", orders, doc! { "items": { "$slice": 3 } }),
        ("$elemMatch", orders, doc! { "items": { "$elemMatch": { "quantity": { "$gt": 5 } } } }),
        ("no fields", records, doc! { "no_such_field": 1, "_id": 0 }),
    ];
    let mut group = criterion.benchmark_group("projection");
    let mut out = Vec::with_capacity(1 << 12);
    for (name, documents, projection) in cases {
        let stored = common::stored(documents);
        let docs = common::docs(&stored);
        let projection =
            Projection::parse(Doc::from(&common::raw(&projection)), &slate_query::expression::Bindings::default())
                .unwrap();
        group.throughput(Throughput::Elements(docs.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut bytes = 0;
                for doc in &docs {
                    projection.apply(black_box(*doc), None, &mut out).unwrap();
                    bytes += out.len();
                }
                bytes
            });
        });
    }

    // The positional `$` needs the matching element of the filter, which is part of the measured work.
    let filter = Filter::parse(Doc::from(&common::raw(&doc! { "items.quantity": { "$gte": 1 } }))).unwrap();
    let projection = Projection::parse(
        Doc::from(&common::raw(&doc! { "items.$": 1 })),
        &slate_query::expression::Bindings::default(),
    )
    .unwrap();
    let stored = common::stored(orders);
    let docs = common::docs(&stored);
    group.bench_function("positional $", |bencher| {
        bencher.iter(|| {
            let mut bytes = 0;
            for doc in &docs {
                let position = filter.positional(black_box(*doc), Ties::Last).unwrap();
                projection.apply(*doc, position, &mut out).unwrap();
                bytes += out.len();
            }
            bytes
        });
    });
    group.finish();
}

fn main() {
    common::run(&[projections]);
}
