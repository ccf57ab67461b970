//! Readers under a writer, each on a core of its own: what the writer costs the readers, other than by taking their core.

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

/// What a row's reader does, and what it has to find.
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
    let opened = Opened::<S>::empty(&bench.folders())?;
    load(&opened.store, &entries)?;
    for work in [points, scans] {
        compare(bench, &opened.store, &work, Cores { reading, writing });
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Cores {
    reading: usize,
    writing: usize,
}

fn compare<S: Subject>(bench: &mut Bench, store: &S, work: &Work<S>, cores: Cores) {
    let row = |name: &str| Row::new(name, work.items).unit(work.unit).expects(work.expected);
    let (alone, under) = (format!("{}: alone", work.name), format!("{}: beside a writer", work.name));
    if S::lacks().contains(&work.needed) {
        bench.not_offered(&under, work.needed);
        return;
    }
    let clock = bench.clock();
    bench.rows([row(&under), row(&alone)], || {
        let without_writer = read_on(clock, cores.reading, store, work)?;
        let with_writer = beside(
            |over| {
                pin::to_core(cores.writing);
                write_until(store, over)
            },
            || read_on(clock, cores.reading, store, work),
        )?;
        Ok([with_writer, without_writer])
    });
    if let (Some(under), Some(alone)) = (bench.samples(&under), bench.samples(&alone)) {
        let share = ratio(under.median().as_secs_f64(), alone.median().as_secs_f64());
        bench.note(&format!("{} of the reads a second beside the writer", format::percent(ratio(1.0, share))));
    }
}

/// Reads on a thread that is bound to a core, and tells how long that took there.
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
    // A step that has nothing in common with the number of entries goes to each of them in turn.
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
                // The writer's own entry is one more.
                if key.len() == keys::RAW_KEY {
                    sum += keys::number(value);
                }
            })
        })?;
    }
    Ok(sum)
}
