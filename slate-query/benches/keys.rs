//! Encoding and decoding of key bytes, and the index entries of a document.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench fails by panicking")]

mod common;

use std::hint::black_box;

use bson::{Bson, Decimal128, Document, doc, oid::ObjectId};
use criterion::{Criterion, Throughput};
use slate_query::{
    key::{Direction, TypeBits, TypeReader, decode_into, encode, encode_typed, skip},
    pattern::{KeyPattern, Keys},
    raw::{Doc, OwnedValue, Writer},
};

const DIRECTIONS: [Direction; 2] = [Direction::Ascending, Direction::Descending];

/// Returns one value of each type that keys often have.
fn values() -> Vec<(&'static str, OwnedValue)> {
    let values: [(&str, Bson); 11] = [
        ("null", Bson::Null),
        ("int32", 1_234.into()),
        ("int64", (1_i64 << 40).into()),
        ("double", 3.25.into()),
        ("decimal128", Bson::Decimal128("1234.5".parse::<Decimal128>().unwrap())),
        ("string of 8", "rejected".into()),
        ("string of 100", "characters".repeat(10).into()),
        ("ObjectId", ObjectId::from_bytes(*b"twelve bytes").into()),
        ("date", bson::DateTime::from_millis(1_700_000_000_000).into()),
        ("array of 3", vec!["vip", "renewal_due", "churn_risk"].into()),
        ("document of 3", doc! { "sku": "sku-0042", "quantity": 3, "price": 12.5 }.into()),
    ];
    values.into_iter().map(|(name, value)| (name, OwnedValue::from(value))).collect()
}

fn encoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("key encode");
    let mut out = Vec::with_capacity(1 << 10);
    for (name, value) in &values() {
        group.bench_function(*name, |bencher| {
            bencher.iter(|| {
                out.clear();
                encode(black_box(value.as_value()), &mut out);
                out.len()
            });
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("key encode with types");
    for (name, value) in &values() {
        group.bench_function(*name, |bencher| {
            let mut bits = TypeBits::new();
            bencher.iter(|| {
                out.clear();
                bits.clear();
                encode_typed(Some(black_box(value.as_value())), &mut out, &mut bits);
                out.len()
            });
        });
    }
    group.finish();
}

fn decoding(criterion: &mut Criterion) {
    for direction in DIRECTIONS {
        let mut group = criterion.benchmark_group(format!("key decode {direction:?}").to_lowercase());
        for (name, value) in &values() {
            let (mut key, mut bits) = (Vec::new(), TypeBits::new());
            encode_typed(Some(value.as_value()), &mut key, &mut bits);
            direction.apply(&mut key);
            group.bench_function(*name, |bencher| {
                let mut buffer = Vec::with_capacity(1 << 10);
                bencher.iter(|| {
                    buffer.clear();
                    let mut writer = Writer::into_buffer(std::mem::take(&mut buffer));
                    let (mut key, mut bits) = (black_box(&key[..]), TypeReader::new(bits.as_bytes()));
                    decode_into(&mut key, direction, &mut bits, b"v", &mut writer).unwrap();
                    buffer = writer.finish();
                    buffer.len()
                });
            });
        }
        group.finish();
    }

    let mut group = criterion.benchmark_group("key skip");
    for (name, value) in &values() {
        let mut key = Vec::new();
        encode(value.as_value(), &mut key);
        group.bench_function(*name, |bencher| {
            bencher.iter(|| skip(black_box(&key), Direction::Ascending));
        });
    }
    group.finish();
}

fn entries(criterion: &mut Criterion) {
    let (records, orders) = (common::records(), common::orders());
    let cases: [(&str, &[bson::RawDocumentBuf], Document); 5] = [
        ("one field", &records, doc! { "status": 1 }),
        ("two fields", &records, doc! { "status": 1, "contacts_count": -1 }),
        ("an array", &records, doc! { "tags": 1 }),
        ("a nested field", &orders, doc! { "customer.address.city": 1 }),
        ("a field of an array's documents", &orders, doc! { "items.sku": 1 }),
    ];
    let mut group = criterion.benchmark_group("index entries");
    for (name, documents, fields) in cases {
        let stored = common::stored(documents);
        let docs = common::docs(&stored);
        let pattern = KeyPattern::parse(Doc::from(&common::raw(&fields))).unwrap();
        let mut keys = Keys::new();
        group.throughput(Throughput::Elements(docs.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut entries = 0;
                for doc in &docs {
                    pattern.keys(black_box(*doc), &mut keys).unwrap();
                    entries += keys.len();
                }
                entries
            });
        });
    }
    group.finish();
}

fn main() {
    common::run(&[encoding, decoding, entries]);
}
