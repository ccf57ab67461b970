//! Finds one of 10,000 documents by a unique field, first with a scan and then with an index.

use slate_bench_harness::Result;

use super::{Documents, Small, opened::Opened};
use crate::{
    Durability,
    bench::{Bench, Row},
};

const DOCUMENTS: i64 = 10_000;
/// Distance between the queried values, which spreads them over the collection.
const STEP: i64 = 7_919;

pub(super) fn run<D: Documents>(bench: &mut Bench) -> Result<()> {
    if !bench.begins("find one of 10,000", &["find", "scan", "index", "field"]) {
        return Ok(());
    }
    // The rows with one field are from bison-db's benchmark, those with five fields from its documentation.
    find::<D>(bench, "one field", "key", |store, key| store.insert_key(key).map(drop))?;
    find::<D>(bench, "five fields", "id", |store, id| store.insert(&Small::of(id)).map(drop))
}

fn find<D: Documents>(
    bench: &mut Bench,
    fields: &str,
    field: &str,
    insert: impl Fn(&mut D, i64) -> Result<()>,
) -> Result<()> {
    let clock = bench.clock();
    let mut opened = Opened::<D>::empty(&bench.folders(), Durability::Deferred)?;
    let store = &mut opened.store;
    (0..DOCUMENTS).try_for_each(|number| insert(store, number))?;
    let mut value = 0;
    for (how, queries) in [("scan", 10_u32), ("index", 5_000)] {
        if how == "index" {
            store.create_index(field)?;
        }
        let row = |what| Row::new(format!("{how}, {fields}: {what}"), queries.into()).unit("query");
        bench.row(row("ids").expects(queries.into()), || {
            clock.sample(|| {
                let mut found = 0;
                for _ in 0..queries {
                    value = (value + STEP) % DOCUMENTS;
                    found += store.find_ids(field, value)?;
                }
                Ok(found)
            })
        });
        bench.row(row("documents").expects(0), || {
            let mut difference = 0;
            let sample = clock.sample(|| {
                for _ in 0..queries {
                    value = (value + STEP) % DOCUMENTS;
                    difference += (store.find_documents(field, value)? - value).abs();
                }
                Ok(0)
            })?;
            Ok(sample.with_answer(u64::try_from(difference)?))
        });
    }
    Ok(())
}
