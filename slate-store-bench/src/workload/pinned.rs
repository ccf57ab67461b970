//! Readers concurrent with a writer, each on its own core: measures how much the writer slows the readers down when
//! they do not share a core.

use std::thread;

use slate_bench_harness::{Result, format, number::ratio, pin};

use crate::{
    Direction, Feature, Reader as _, Subject,
    bench::{Bench, Row, Sample, Stopwatch},
    keys::{self, Entries},
};

use super::{
    tools::{Opened, beside, load},
    txn::write_until,
};

const ENTRIES: u64 = 10_000;
const VALUE: usize = 100;
const READS: u64 = 100_000;
const READS_OF_SNAPSHOT: u64 = 1_000;
const SCANS: u64 = 20;

/// The work of a row's reader, and its expected result.
struct Work<S> {
    name: &'static str,
    unit: &'static str,
    needed: Feature,
    items: u64,
    expected: u64,
    read: fn(&S) -> Result<u64>,
}

pub(super) fn run<S: Subject>(bench: &mut Bench) -> Result<()> {
    let points = Work {
        name: "point reads, 1,000 of a snapshot",
        unit: "read",
        needed: Feature::None,
        items: READS,
        expected: (0..READS).map(read_by).sum(),
        read: read_points::<S>,
    };
    let scans = Work {
        name: "scans, one of a snapshot",
        unit: "entry",
        needed: Feature::Scans,
        items: ENTRIES * SCANS,
        expected: SCANS * ENTRIES * (ENTRIES - 1) / 2,
        read: scan::<S>,
    };
    if !bench.begins("pinned", &[points.name, scans.name]) {
        return Ok(());
    }
    let cores = pin::cores();
    let &[reading, writing, ..] = cores.as_slice() else {
        bench.unsupported(points.name, "second core");
        return Ok(());
    };
    let entries = Entries::numbered(ENTRIES, VALUE, &mut bench.random());
    let [read, other] = [Opened::<S>::empty(&bench.folders())?, Opened::empty(&bench.folders())?];
    load(&read.store, &entries)?;
    load(&other.store, &entries)?;
    for work in [points, scans] {
        compare(bench, [&read.store, &other.store], &work, Cores { reading, writing });
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Cores {
    reading: usize,
    writing: usize,
}

/// Reads a store beside a writer of the same store, beside a writer of another store, and alone. The second row shows
/// how much two cores slow each other down, which share caches, a clock and an operating system.
fn compare<S: Subject>(bench: &mut Bench, [store, other]: [&S; 2], work: &Work<S>, cores: Cores) {
    let names = ["beside a writer", "beside a writer of another store", "alone"]
        .map(|circumstance| format!("{}: {circumstance}", work.name));
    let [under, elsewhere, alone] = &names;
    if S::lacks().contains(&work.needed) {
        bench.not_offered(under, work.needed);
        return;
    }
    let clock = bench.clock();
    let read = || read_on(clock, cores.reading, store, work);
    let read_beside = |written: &S| {
        let write = |over: &dyn Fn() -> bool| {
            pin::to_core(cores.writing);
            write_until(written, over)
        };
        beside(write, read)
    };
    let rows = [under, elsewhere, alone].map(|name| Row::new(name, work.items).unit(work.unit).expects(work.expected));
    bench.rows(rows, || Ok([read_beside(store)?, read_beside(other)?, read()?]));
    let median = |name: &str| bench.samples(name).map(|samples| samples.median().as_secs_f64());
    if let (Some(under), Some(elsewhere), Some(alone)) = (median(under), median(elsewhere), median(alone)) {
        let [of_alone, of_elsewhere] = [alone, elsewhere].map(|other| format::percent(ratio(other, under)));
        let note = format!(
            "reads per second beside the writer: {of_alone} of those alone, {of_elsewhere} of those beside a writer of another store"
        );
        bench.note(&note);
    }
}

/// Reads on a pinned thread and returns the time on that core.
fn read_on<S: Subject>(clock: Stopwatch, core: usize, store: &S, work: &Work<S>) -> Result<Sample> {
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            pin::to_core(core);
            clock.sample(|| (work.read)(store))
        });
        reader.join().map_err(|_| "a thread panicked")?
    })
}

fn read_by(read: u64) -> u64 {
    // The step has no common divisor with the number of entries, so it visits all of them.
    (read * 7_919) % ENTRIES
}

fn read_points<S: Subject>(store: &S) -> Result<u64> {
    let mut sum = 0;
    for round in 0..READS / READS_OF_SNAPSHOT {
        store.read(|reader| {
            for read in 0..READS_OF_SNAPSHOT {
                let key = keys::raw_key(read_by(round * READS_OF_SNAPSHOT + read));
                sum += reader.get(&key, keys::number)?.unwrap_or_default();
            }
            Ok(())
        })?;
    }
    Ok(sum)
}

fn scan<S: Subject>(store: &S) -> Result<u64> {
    let mut sum = 0;
    for _ in 0..SCANS {
        store.read(|reader| {
            reader.scan(Direction::Forward, |key, value| {
                // Skips the writer's own entry.
                if key.len() == keys::RAW_KEY {
                    sum += keys::number(value);
                }
            })
        })?;
    }
    Ok(sum)
}
