//! Records like those of the database benchmark, for benches and for tests of the cost of queries.

use bson::{DateTime, RawBson, RawDocumentBuf, doc, rawdoc};
use slate_core::{Collection, Index};

/// Returns a document of about 290 bytes. Tests use the last fields: `number` is `n`, `pair` half of it, `ten` one of
/// ten values, `pairs` two numbers.
pub fn record(n: i32) -> RawDocumentBuf {
    let notes = (n % 2 == 1).then(|| format!("Asked for a call back after the end of quarter {}, in writing.", n % 4));
    let notes = notes.map_or(RawBson::Null, RawBson::String);
    let of = |names: &[&str]| names[n.unsigned_abs() as usize % names.len()].to_owned();
    rawdoc! {
        "_id": n,
        "name": format!("record {}", n.wrapping_mul(7_919) % 100_003),
        "status": of(&["active", "rejected"]),
        "contacts_count": n % 101,
        "recommendation": of(&["ProductA", "ProductB", "ProductC"]),
        "tags": ["renewal_due", of(&["vip", "new_lead"]), of(&["churn_risk", "onboarding", "other"])],
        "last_contacted_at": DateTime::from_millis(1_700_000_000_000 + i64::from(n)),
        "notes": notes,
        "number": n,
        "pair": n / 2,
        "ten": n % 10,
        "pairs": [n, n + 1],
    }
}

/// Fills a collection with records numbered from 0, and creates indexes on those fields.
pub fn fill(collection: &Collection<RawDocumentBuf>, count: i32) {
    collection.insert_many(&(0..count).map(record).collect::<Vec<_>>()).run().unwrap();
    for keys in [
        doc! { "number": 1 },
        doc! { "pair": 1 },
        doc! { "ten": 1 },
        doc! { "pairs": 1 },
        doc! { "status": 1, "contacts_count": 1 },
    ] {
        collection.create_index(Index::on(keys)).run().unwrap();
    }
}
