//! Shared by the benches: a collection in memory, and measurement settings.

#[path = "../../tests/common/records.rs"]
#[allow(unreachable_pub, dead_code, reason = "tests use the whole of it")]
mod records;

use std::time::Duration;

use bson::RawDocumentBuf;
use criterion::Criterion;
pub(crate) use records::record;
use slate_core::{Collection, Database};

/// Runs benches with settings for calls that take microseconds.
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

/// Opens a database in memory, and returns a collection of `count` records.
pub(crate) fn collection(count: i32) -> Collection<RawDocumentBuf> {
    let collection = Database::open("memory:").unwrap().collection("records");
    collection.create().unwrap();
    collection.insert_many(&(0..count).map(record).collect::<Vec<_>>()).run().unwrap();
    collection
}
