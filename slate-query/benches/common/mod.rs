//! Shared parts of the benches: documents and settings.

#![allow(dead_code, reason = "each bench uses a part")]

use std::time::Duration;

use bson::{DateTime, Document, RawDocumentBuf, cstr, doc, rawdoc};
use criterion::Criterion;
use slate_query::raw::{Doc, store};

/// Documents per iteration: few enough for the nearest cache, too many for a branch predictor to learn.
pub(crate) const BATCH: i32 = 64;

/// Runs benches with settings for loops of microseconds.
pub(crate) fn run(benches: &[fn(&mut Criterion)]) {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(50)
        .configure_from_args();
    for bench in benches {
        bench(&mut criterion);
    }
    criterion.final_summary();
}

/// Flat documents of about 290 bytes, as in the database benchmark.
pub(crate) fn records() -> Vec<RawDocumentBuf> {
    let tags = ["renewal_due", "vip", "churn_risk", "new_lead", "onboarding"];
    let record = |n: i32| {
        let mixed = mix(n);
        let of = |names: &[&str], shift: u32| names[(mixed >> shift) as usize % names.len()].to_owned();
        let mut record = rawdoc! {
            "_id": format!("record_{n:08}"),
            "name": format!("{} {}", of(&["Ada", "Grace", "Edsger", "Barbara"], 1), mixed % 10_000),
            "status": of(&["active", "rejected"], 3),
            "contacts_count": i32::try_from(mixed % 101).unwrap(),
            "product_recommendation1": of(&["ProductA", "ProductB", "ProductC"], 5),
            "product_recommendation2": of(&["ProductX", "ProductY", "ProductZ"], 7),
            "product_recommendation3": of(&["Widget1", "Widget2", "Widget3"], 9),
            "tags": [of(&tags, 2), of(&tags, 11), of(&tags, 13)],
        };
        match mixed % 10 {
            0..3 => record.append(cstr!("last_contacted_at"), bson::RawBson::Null),
            _ => record.append(cstr!("last_contacted_at"), DateTime::from_millis(1_700_000_000_000 + i64::from(mixed))),
        }
        match mixed & 1 {
            0 => record.append(cstr!("notes"), bson::RawBson::Null),
            _ => record.append(cstr!("notes"), "Asked for a call back after the end of the quarter."),
        }
        record
    };
    (0..BATCH).map(record).collect()
}

/// Nested documents of about 900 bytes: documents in documents, an array of documents, numbers of each type.
pub(crate) fn orders() -> Vec<RawDocumentBuf> {
    let order = |n: i32| {
        let mixed = mix(n);
        let item = |line: u32| {
            let mixed = mixed.rotate_left(line);
            doc! {
                "sku": format!("sku-{:04}", mixed % 1_000),
                "quantity": i32::try_from(mixed % 9 + 1).unwrap(),
                "price": f64::from(mixed % 50_000) / 100.0,
            }
        };
        let city = ["Oslo", "Bergen", "Tromsø"][mixed as usize % 3];
        let order = doc! {
            "_id": n,
            "customer": {
                "name": format!("customer {}", mixed % 500),
                "address": { "city": city, "zip": format!("{:04}", mixed % 9_999) },
            },
            "items": (0..8).map(item).collect::<Vec<Document>>(),
            "flags": i32::try_from(mixed & 0xff).unwrap(),
            "total": i64::from(mixed) % 1_000_000,
            "weight": f64::from(mixed % 10_000) / 10.0,
            "paid": mixed & 4 == 0,
            "created": DateTime::from_millis(1_700_000_000_000 + i64::from(mixed)),
        };
        RawDocumentBuf::try_from(&order).unwrap()
    };
    (0..BATCH).map(order).collect()
}

/// Returns the documents in their stored form.
pub(crate) fn stored(documents: &[RawDocumentBuf]) -> Vec<Vec<u8>> {
    let stored = |document| {
        let mut bytes = Vec::new();
        store(Doc::from(document), &mut bytes);
        bytes
    };
    documents.iter().map(stored).collect()
}

/// Stored documents as the engine sees them.
pub(crate) fn docs(stored: &[Vec<u8>]) -> Vec<Doc<'_>> {
    stored.iter().map(|bytes| Doc::stored(bytes)).collect()
}

/// Returns a filter, an update, a projection or a sort as bytes.
pub(crate) fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

/// Returns a pseudo-random number that is the same in each run: the finalizer of MurmurHash3.
fn mix(n: i32) -> u32 {
    let mut mixed = n.cast_unsigned().wrapping_add(0x9e37_79b9);
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
    mixed ^ (mixed >> 16)
}
