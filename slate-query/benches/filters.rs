//! Matching documents: each operator alone, and filters that combine several.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench fails by panicking")]

mod common;

use std::hint::black_box;

use bson::{Document, RawDocumentBuf, doc};
use criterion::{Criterion, Throughput};
use slate_query::{filter::Filter, raw::Doc};

fn measure(criterion: &mut Criterion, group: &str, cases: &[(&str, &[RawDocumentBuf], Document)]) {
    let mut group = criterion.benchmark_group(group);
    for (name, documents, filter) in cases {
        let stored = common::stored(documents);
        let docs = common::docs(&stored);
        let filter = Filter::parse(Doc::from(&common::raw(filter))).unwrap();
        group.throughput(Throughput::Elements(docs.len() as u64));
        group.bench_function(*name, |bencher| {
            bencher.iter(|| docs.iter().filter(|doc| filter.matches(black_box(**doc))).count());
        });
    }
    group.finish();
}

fn operators(criterion: &mut Criterion) {
    let (records, orders) = (&*common::records(), &*common::orders());
    let cases = [
        ("$all", records, doc! { "tags": { "$all": ["vip", "churn_risk"] } }),
        ("$alwaysFalse", records, doc! { "$alwaysFalse": 1 }),
        ("$alwaysTrue", records, doc! { "$alwaysTrue": 1 }),
        ("$and", records, doc! { "$and": [{ "status": "active" }, { "contacts_count": 7 }] }),
        ("$bitsAllClear", orders, doc! { "flags": { "$bitsAllClear": 0b101 } }),
        ("$bitsAllSet", orders, doc! { "flags": { "$bitsAllSet": 0b101 } }),
        ("$bitsAnyClear", orders, doc! { "flags": { "$bitsAnyClear": 0b101 } }),
        ("$bitsAnySet", orders, doc! { "flags": { "$bitsAnySet": 0b101 } }),
        ("$comment", records, doc! { "status": "active", "$comment": "for the log" }),
        (
            "$elemMatch of documents",
            orders,
            doc! { "items": { "$elemMatch": { "quantity": 9, "price": { "$lt": 200 } } } },
        ),
        ("$elemMatch of values", records, doc! { "tags": { "$elemMatch": { "$gte": "p", "$lt": "s" } } }),
        ("$eq of a string", records, doc! { "status": { "$eq": "active" } }),
        ("$eq of an int", records, doc! { "contacts_count": { "$eq": 50 } }),
        ("$eq of an array's element", records, doc! { "tags": "renewal_due" }),
        ("$eq of null", records, doc! { "notes": null }),
        ("$exists", records, doc! { "notes": { "$exists": true } }),
        ("$gt of an int", records, doc! { "contacts_count": { "$gt": 50 } }),
        ("$gt of a date", orders, doc! { "created": { "$gt": bson::DateTime::from_millis(1_702_000_000_000) } }),
        ("$gt of a string", records, doc! { "name": { "$gt": "D" } }),
        ("$gte", records, doc! { "contacts_count": { "$gte": 50 } }),
        ("$in of 3", records, doc! { "contacts_count": { "$in": [3, 33, 66] } }),
        ("$in of 50", records, doc! { "contacts_count": { "$in": (0..50).map(|n| 2 * n).collect::<Vec<i32>>() } }),
        ("$lt of a double", orders, doc! { "weight": { "$lt": 500 } }),
        ("$lte of an int64", orders, doc! { "total": { "$lte": 500_000 } }),
        ("$mod", records, doc! { "contacts_count": { "$mod": [3, 1] } }),
        ("$ne", records, doc! { "status": { "$ne": "active" } }),
        ("$nin", records, doc! { "contacts_count": { "$nin": [3, 33, 66] } }),
        ("$nor", records, doc! { "$nor": [{ "status": "active" }, { "contacts_count": 7 }] }),
        ("$not", records, doc! { "contacts_count": { "$not": { "$gt": 50 } } }),
        ("$or", records, doc! { "$or": [{ "status": "active" }, { "contacts_count": 7 }] }),
        ("$regex with a prefix", records, doc! { "name": { "$regex": "^Ada" } }),
        ("$regex", records, doc! { "notes": { "$regex": "call (back|in)" } }),
        ("$regex that ignores case", records, doc! { "notes": { "$regex": "quarter", "$options": "i" } }),
        ("$size", records, doc! { "tags": { "$size": 3 } }),
        ("$type", records, doc! { "last_contacted_at": { "$type": "date" } }),
    ];
    measure(criterion, "filter", &cases);
}

fn joined(criterion: &mut Criterion) {
    let (records, orders) = (&*common::records(), &*common::orders());
    let three = doc! {
        "status": "active",
        "product_recommendation1": "ProductA",
        "product_recommendation2": "ProductX",
    };
    let eight = doc! {
        "name": { "$gt": "A" },
        "status": { "$in": ["active", "rejected"] },
        "contacts_count": { "$gte": 0 },
        "product_recommendation1": { "$ne": "none" },
        "product_recommendation2": { "$ne": "none" },
        "product_recommendation3": { "$ne": "none" },
        "tags": { "$exists": true },
        "notes": { "$ne": "none" },
    };
    let cases = [
        ("empty filter", records, doc! {}),
        ("three equal fields", records, three),
        ("a range", records, doc! { "contacts_count": { "$gte": 25, "$lt": 75 } }),
        ("eight conditions that hold", records, eight),
        ("nested field", orders, doc! { "customer.address.city": "Oslo" }),
        ("field of an array's documents", orders, doc! { "items.quantity": 9 }),
    ];
    measure(criterion, "filter of several", &cases);
}

fn parse(criterion: &mut Criterion) {
    let filter = common::raw(&doc! {
        "status": "active",
        "contacts_count": { "$gte": 25, "$lt": 75 },
        "$or": [{ "tags": "vip" }, { "notes": null }],
    });
    criterion.bench_function("filter parse", |bencher| {
        bencher.iter(|| Filter::parse(Doc::from(black_box(&filter))).unwrap());
    });
}

fn main() {
    common::run(&[operators, joined, parse]);
}
