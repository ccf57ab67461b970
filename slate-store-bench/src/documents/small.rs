//! Inserts, fetches and replaces documents with five fields.

use slate_bench_harness::Result;

use super::{Documents, Small, opened::Opened};
use crate::{
    Durability, Feature,
    bench::{Bench, Row},
};

const DOCUMENTS: u32 = 10_000;
/// Inserts and updates per sample.
const WRITES: u32 = 2_000;
const FSYNCS: u32 = 20;

pub(super) fn run<D: Documents>(bench: &mut Bench) -> Result<()> {
    let clock = bench.clock();
    if !bench.begins("documents of five fields", &["insert", "get", "update"]) {
        return Ok(());
    }
    let folders = bench.folders();
    let mut opened = Opened::<D>::empty(&folders, Durability::Deferred)?;
    let row = |name, documents: u32| Row::new(name, documents.into()).unit("document");

    let mut next = 0;
    bench.row(row("insert", WRITES), || {
        clock.sample(|| {
            for _ in 0..WRITES {
                opened.store.insert(&Small::of(next))?;
                next += 1;
            }
            Ok(0)
        })
    });

    let mut opened = Opened::<D>::empty(&folders, Durability::Deferred)?;
    let ids = (0..i64::from(DOCUMENTS)).map(|id| opened.store.insert(&Small::of(id))).collect::<Result<Vec<_>>>()?;
    let all = u64::from(DOCUMENTS);
    bench.row(row("get", DOCUMENTS).expects(all * (all - 1) / 2), || {
        clock.sample(|| {
            let mut sum = 0;
            for id in &ids {
                sum += opened.store.get(id)?;
            }
            Ok(u64::try_from(sum)?)
        })
    });
    let id = ids.first().ok_or("no document was inserted")?;
    let mut last = 0;
    bench.row(row("update", WRITES).expects(1), || {
        let sample = clock.sample(|| {
            for _ in 0..WRITES {
                last += 1;
                opened.store.update(id, &Small::of(last))?;
            }
            Ok(0)
        })?;
        Ok(sample.with_answer(u64::from(opened.store.get(id)? == last)))
    });

    let to_device = row("insert, each to the device", FSYNCS);
    if D::lacks().contains(&Feature::Files) {
        bench.not_offered("insert, each to the device", Feature::Files);
        return Ok(());
    }
    let mut opened = Opened::<D>::empty(&folders, Durability::Sync)?;
    bench.row(to_device, || {
        clock.sample(|| {
            for _ in 0..FSYNCS {
                opened.store.insert(&Small::of(next))?;
                next += 1;
            }
            Ok(0)
        })
    });
    Ok(())
}

impl Small {
    pub(super) fn of(id: i64) -> Self {
        Self { id, name: "benchmark user", active: true, score: 87.5, tags: ["a", "b"] }
    }
}
