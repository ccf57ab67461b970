//! The planner: parsing, the candidates and their costs, and the rules. Only probes read the store.
//!
//! Also draws the plan, as `explain` does; the empty query measures the cost of drawing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench fails by panicking")]

mod common;

use std::hint::black_box;

use bson::{Document, RawDocumentBuf, doc};
use criterion::Criterion;
use slate_core::{Collection, ExplainVerbosity, Index};

type Records = Collection<RawDocumentBuf>;

fn indexed(count: i32) -> Records {
    let collection = common::collection(count);
    for keys in [
        doc! { "status": 1 },
        doc! { "contacts_count": 1 },
        doc! { "status": 1, "contacts_count": -1 },
        doc! { "recommendation": 1, "name": 1 },
        doc! { "tags": 1 },
    ] {
        collection.create_index(Index::on(keys)).run().unwrap();
    }
    collection
}

fn queries() -> Vec<(&'static str, Document, Document)> {
    let either = doc! { "$or": [{ "tags": "vip" }, { "contacts_count": 7 }, { "name": "x", "status": "active" }] };
    let many = doc! {
        "status": "active",
        "contacts_count": { "$gte": 10, "$lt": 20 },
        "recommendation": { "$in": ["ProductA", "ProductB"] },
        "tags": { "$all": ["vip", "churn_risk"] },
        "notes": null,
    };
    vec![
        ("everything", doc! {}, doc! {}),
        ("by _id", doc! { "_id": 7 }, doc! {}),
        ("one condition", doc! { "contacts_count": 7 }, doc! {}),
        ("a condition and a sort", doc! { "status": "active" }, doc! { "contacts_count": -1 }),
        ("three branches", either, doc! {}),
        ("five conditions and a sort", many, doc! { "contacts_count": 1, "name": 1 }),
    ]
}

fn finds(criterion: &mut Criterion) {
    let collections =
        [("no index", common::collection(0)), ("five indexes, empty", indexed(0)), ("five indexes", indexed(2_000))];
    for (kind, collection) in &collections {
        let mut group = criterion.benchmark_group(format!("plan with {kind}"));
        for (name, filter, sort) in queries() {
            group.bench_function(name, |bencher| {
                let find = || collection.find(black_box(&filter)).sort(&sort).limit(50);
                bencher.iter(|| find().explain(ExplainVerbosity::QueryPlanner).unwrap());
            });
        }
        group.finish();
    }
}

fn counts_and_values(criterion: &mut Criterion) {
    let collection = indexed(2_000);
    let filter = doc! { "contacts_count": { "$gte": 10, "$lt": 20 } };
    criterion.bench_function("plan of a count", |bencher| {
        bencher.iter(|| collection.find(black_box(&filter)).count().explain(ExplainVerbosity::QueryPlanner).unwrap());
    });
    criterion.bench_function("plan of a distinct", |bencher| {
        bencher.iter(|| {
            collection
                .find(black_box(&filter))
                .distinct("contacts_count")
                .explain(ExplainVerbosity::QueryPlanner)
                .unwrap()
        });
    });
}

fn main() {
    common::run(&[finds, counts_and_values]);
}
