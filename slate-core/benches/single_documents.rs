//! Calls on one document in memory: the overhead of a call.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench fails by panicking")]

mod common;

use std::hint::black_box;

use bson::{RawDocumentBuf, doc};
use criterion::{BatchSize, Criterion};
use slate_core::{Collection, Index};

const RECORDS: i32 = 10_000;

/// `_id`s of existing records, in an order that caches and predictors cannot exploit.
fn ids() -> impl Iterator<Item = i32> {
    (0_i32..).map(|n| n.wrapping_mul(7_919).rem_euclid(RECORDS))
}

fn indexed(count: i32) -> Collection<RawDocumentBuf> {
    let collection = common::collection(count);
    collection.create_index(Index::on(doc! { "status": 1 })).run().unwrap();
    collection.create_index(Index::on(doc! { "contacts_count": 1 })).run().unwrap();
    collection
}

fn reads(criterion: &mut Criterion) {
    let collection = indexed(RECORDS);
    let mut group = criterion.benchmark_group("read one");
    group.bench_function("find_by_id", |bencher| {
        let mut ids = ids();
        bencher.iter(|| collection.find_by_id(ids.next().unwrap_or_default()).unwrap());
    });
    group.bench_function("find_by_id of none", |bencher| {
        bencher.iter(|| collection.find_by_id(black_box(-1)).unwrap());
    });
    group.bench_function("find_one by _id", |bencher| {
        let mut ids = ids();
        bencher.iter(|| collection.find_one(doc! { "_id": ids.next().unwrap_or_default() }).run().unwrap());
    });
    group.bench_function("find_one by an index", |bencher| {
        let mut ids = ids();
        bencher.iter(|| {
            collection.find_one(doc! { "contacts_count": ids.next().unwrap_or_default() % 101 }).run().unwrap()
        });
    });
    group.bench_function("cursor of one, lent", |bencher| {
        let mut ids = ids();
        bencher.iter(|| {
            let mut rows = collection.find(doc! { "_id": ids.next().unwrap_or_default() }).cursor().unwrap();
            rows.advance().unwrap();
            rows.current().map(|row| row.as_bytes().len())
        });
    });
    group.finish();
}

fn writes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("write one");
    for (name, collection) in
        [("insert_one", common::collection(RECORDS)), ("insert_one, two indexes", indexed(RECORDS))]
    {
        let mut next = RECORDS;
        group.bench_function(name, |bencher| {
            let record = || {
                next += 1;
                common::record(next)
            };
            bencher.iter_batched(record, |record| collection.insert_one(&record).unwrap(), BatchSize::SmallInput);
        });
    }
    let collection = indexed(RECORDS);
    group.bench_function("update_one by _id", |bencher| {
        let mut ids = ids();
        bencher.iter(|| {
            let filter = doc! { "_id": ids.next().unwrap_or_default() };
            collection.update_one(filter, doc! { "$inc": { "contacts_count": 1 } }).run().unwrap()
        });
    });
    group.bench_function("replace_one by _id", |bencher| {
        let mut ids = ids();
        bencher.iter(|| {
            let id = ids.next().unwrap_or_default();
            collection.replace_one(doc! { "_id": id }, &common::record(id)).run().unwrap()
        });
    });
    group.bench_function("insert_one and delete_one", |bencher| {
        let record = common::record(-1);
        bencher.iter(|| {
            collection.insert_one(&record).unwrap();
            collection.delete_one(doc! { "_id": -1 }).run().unwrap()
        });
    });
    group.finish();
}

fn main() {
    common::run(&[reads, writes]);
}
