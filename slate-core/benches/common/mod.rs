//! What the benches share: a collection in memory, and how it is measured.

use std::time::Duration;

use bson::{DateTime, RawDocumentBuf, rawdoc};
use criterion::Criterion;
use slate_core::{Collection, Database};

/// Runs benches with settings that suit calls of microseconds.
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

/// A collection in a database of its own, in memory, that holds `count` records.
pub(crate) fn collection(count: i32) -> Collection<RawDocumentBuf> {
    let collection = Database::open("memory:").unwrap().collection("records");
    collection.create().unwrap();
    collection.insert_many(&(0..count).map(record).collect::<Vec<_>>()).unwrap();
    collection
}

/// A document of about 290 bytes, with the fields that the database benchmark has.
pub(crate) fn record(n: i32) -> RawDocumentBuf {
    let of = |names: &[&str]| names[n.unsigned_abs() as usize % names.len()].to_owned();
    rawdoc! {
        "_id": n,
        "name": format!("record number {n}"),
        "status": of(&["active", "rejected"]),
        "contacts_count": n % 101,
        "product_recommendation1": of(&["ProductA", "ProductB", "ProductC"]),
        "product_recommendation2": of(&["ProductX", "ProductY", "ProductZ"]),
        "product_recommendation3": of(&["Widget1", "Widget2", "Widget3"]),
        "tags": ["renewal_due", of(&["vip", "new_lead"]), of(&["churn_risk", "onboarding", "other"])],
        "last_contacted_at": DateTime::from_millis(1_700_000_000_000 + i64::from(n)),
        "notes": null,
    }
}
