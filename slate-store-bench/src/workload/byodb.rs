//! byodb's comparison with bolt: four readers scan everything 1,000 times each, while a writer loops in a transaction
//! that it rolls back.

use std::hint::black_box;

use crate::{
    Direction, Feature, Reader as _, Subject, Writer as _,
    bench::{Bench, Row, Sample},
    keys::Entries,
};

use slate_bench_harness::Result;

use super::tools::{Opened, at_once, beside, load};

const ITEMS: u64 = 40_000;
const LONGEST: u64 = 1_000;
const READERS: u64 = 4;
/// Iterations per sample; the 1,000 iterations of each reader are split to show their variance.
const SAMPLES: u32 = 5;
const ITERATIONS: u64 = 200;

pub(super) fn run<S: Subject>(bench: &mut Bench) -> Result<()> {
    let rows = ["scanned by 4 readers beside a spinning writer", "scanned by 4 readers", "scanned by one reader"];
    if !bench.begins("byodb", &rows) {
        return Ok(());
    }
    let [with_writer, without_writer, alone] = rows;
    if S::lacks().contains(&Feature::Scans) {
        rows.iter().for_each(|row| bench.not_offered(row, Feature::Scans));
        return Ok(());
    }
    let entries = Entries::of_letters(ITEMS, LONGEST, &mut bench.random());
    let opened = Opened::<S>::empty(&bench.folders())?;
    let store = &opened.store;
    load(store, &entries)?;
    let items = entries.len();
    let row = |name: &'static str, iterations| Row::new(name, items * iterations).unit("item").at_most(SAMPLES);

    bench.row(row(alone, ITERATIONS / 10).expects(items * ITERATIONS / 10), || {
        let (elapsed, seen) = at_once(1, |_| scan(store, ITERATIONS / 10))?;
        Ok(Sample::of_threads(elapsed, seen))
    });
    let expected = READERS * items * ITERATIONS;
    bench.row(row(without_writer, ITERATIONS).expects(expected), || {
        let (elapsed, seen) = at_once(READERS, |_| scan(store, ITERATIONS))?;
        Ok(Sample::of_threads(elapsed, seen))
    });
    let first = entries.iter().next().map(|(key, _)| key.to_vec()).unwrap_or_default();
    bench.row_of(Feature::Transactions, S::lacks(), row(with_writer, ITERATIONS).expects(expected), || {
        let (elapsed, seen) =
            beside(|over| spin(store, &first, over), || at_once(READERS, |_| scan(store, ITERATIONS)))?;
        Ok(Sample::of_threads(elapsed, seen))
    });
    Ok(())
}

fn scan<S: Subject>(store: &S, iterations: u64) -> Result<u64> {
    let mut seen = 0;
    for _ in 0..iterations {
        store.read(|reader| {
            reader.scan(Direction::Forward, |key, value| {
                black_box((key, value));
                seen += 1;
            })
        })?;
    }
    Ok(seen)
}

fn spin<S: Subject>(store: &S, key: &[u8], over: &dyn Fn() -> bool) -> Result<()> {
    store.roll_back(|writer| {
        while !over() {
            writer.put(key, &[1; 100])?;
        }
        Ok(())
    })
}
