//! Updating raw documents: each update operator, merging and replacing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench fails by panicking")]

mod common;

use std::hint::black_box;

use bson::{Document, RawDocumentBuf, doc};
use criterion::{Criterion, Throughput};
use slate_query::{
    expression::Bindings,
    raw::{Doc, Kind, Value},
    update::{Context, Update, merge},
};

fn parsed(update: &Document) -> Update {
    Update::parse(Value::new(Kind::Document, common::raw(update).as_bytes()), &[], &Bindings::default()).unwrap()
}

fn measure(criterion: &mut Criterion, group: &str, cases: &[(&str, &[RawDocumentBuf], Document)]) {
    let mut group = criterion.benchmark_group(group);
    let context = Context::modify(1_700_000_000_000, None);
    for (name, documents, update) in cases {
        let stored = common::stored(documents);
        let (docs, update) = (common::docs(&stored), parsed(update));
        group.throughput(Throughput::Elements(docs.len() as u64));
        group.bench_function(*name, |bencher| {
            bencher.iter(|| {
                let changed = docs.iter().filter(|doc| update.apply(black_box(**doc), &context).unwrap().is_some());
                changed.count()
            });
        });
    }
    group.finish();
}

fn operators(criterion: &mut Criterion) {
    let (records, orders) = (&*common::records(), &*common::orders());
    let cases = [
        ("$addToSet", records, doc! { "$addToSet": { "tags": "seen" } }),
        ("$addToSet of an existing value", orders, doc! { "$addToSet": { "items": { "sku": "sku-0001" } } }),
        ("$bit", orders, doc! { "$bit": { "flags": { "xor": 255 } } }),
        ("$currentDate", orders, doc! { "$currentDate": { "created": true } }),
        ("$inc", records, doc! { "$inc": { "contacts_count": 1 } }),
        ("$max", records, doc! { "$max": { "contacts_count": 50 } }),
        ("$min", records, doc! { "$min": { "contacts_count": 50 } }),
        ("$mul", orders, doc! { "$mul": { "weight": 1.5 } }),
        ("$pop", records, doc! { "$pop": { "tags": 1 } }),
        ("$pull", orders, doc! { "$pull": { "items": { "quantity": { "$gt": 5 } } } }),
        ("$pullAll", records, doc! { "$pullAll": { "tags": ["vip", "new_lead"] } }),
        ("$push", records, doc! { "$push": { "tags": "seen" } }),
        (
            "$push, sorted and sliced",
            orders,
            doc! {
                "$push": { "items": { "$each": [{ "sku": "new", "quantity": 5 }], "$sort": { "quantity": 1 }, "$slice": 8 } }
            },
        ),
        ("$rename", records, doc! { "$rename": { "notes": "remarks" } }),
        ("$set", records, doc! { "$set": { "status": "pending" } }),
        ("$set of an existing value", records, doc! { "$set": { "status": "active" } }),
        ("$set of a new field", records, doc! { "$set": { "seen": true } }),
        ("$set of a nested field", orders, doc! { "$set": { "customer.address.city": "Stavanger" } }),
        ("$set in every element", orders, doc! { "$set": { "items.$[].quantity": 1 } }),
        ("$unset", records, doc! { "$unset": { "notes": "" } }),
        (
            "four operators",
            records,
            doc! {
                "$set": { "status": "pending" }, "$inc": { "contacts_count": 1 },
                "$push": { "tags": "seen" }, "$unset": { "notes": "" },
            },
        ),
    ];
    measure(criterion, "update", &cases);

    // Work that only an upsert does.
    let inserting = parsed(&doc! { "$setOnInsert": { "status": "new" }, "$set": { "name": "Ada" } });
    let (context, filter) = (Context::insert(1_700_000_000_000), common::raw(&doc! { "_id": "record_1" }));
    criterion.bench_function("update/$setOnInsert", |bencher| {
        bencher.iter(|| inserting.apply(black_box(Doc::from(&filter)), &context).unwrap().is_some());
    });
}

fn whole(criterion: &mut Criterion) {
    let records = common::records();
    let stored = common::stored(&records);
    let docs = common::docs(&stored);
    let mut group = criterion.benchmark_group("update of a whole");
    group.throughput(Throughput::Elements(docs.len() as u64));
    let patch = common::raw(&doc! { "status": "pending", "contacts_count": 7 });
    group.bench_function("merge of two fields", |bencher| {
        bencher
            .iter(|| docs.iter().filter(|doc| merge(black_box(**doc), Doc::from(&patch)).unwrap().is_some()).count());
    });
    let (replacement, context) = (parsed(&doc! { "name": "Ada", "status": "active" }), Context::modify(0, None));
    group.bench_function("replacement", |bencher| {
        bencher.iter(|| {
            docs.iter().filter(|doc| replacement.apply(black_box(**doc), &context).unwrap().is_some()).count()
        });
    });
    group.finish();
}

fn parse(criterion: &mut Criterion) {
    let update = common::raw(&doc! { "$set": { "status": "pending" }, "$inc": { "contacts_count": 1 } });
    criterion.bench_function("update parse", |bencher| {
        bencher.iter(|| {
            Update::parse(Value::new(Kind::Document, black_box(update.as_bytes())), &[], &Bindings::default()).unwrap()
        });
    });
}

fn main() {
    common::run(&[operators, whole, parse]);
}
