//! What the benches share: a collection in memory, and how it is measured.

#[path = "../../tests/common/records.rs"]
#[allow(unreachable_pub, dead_code, reason = "tests use the whole of it")]
mod records;

use std::time::Duration;

use bson::RawDocumentBuf;
use criterion::Criterion;
pub(crate) use records::record;
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
    collection.insert_many(&(0..count).map(record).collect::<Vec<_>>()).run().unwrap();
    collection
}
