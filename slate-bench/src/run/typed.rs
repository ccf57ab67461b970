//! Typed documents: inserts, scans and lookups with serde types.

use slate_bench_harness::{Clock, Result, Rng, Row, Samples, Verdict, number};

use super::Bench;
use crate::{
    Answer, Subject, TypedBatch, TypedTask,
    workload::{ASYNC, CHANGES, LOOKUPS, TYPED},
};

/// The rows.
pub const ROWS: [&str; 5] = [
    "scan into a struct of ten fields",
    "scan into three borrowed fields",
    "scan into maps",
    "1,000 find_by_id into a struct",
    "insert structs, in batches of 10,000",
];

/// Records per commit.
const PER_COMMIT: usize = 10_000;

/// Runs and reports each selected row. A failure is reported in its row.
pub fn run<S: Subject>(bench: &mut Bench<'_>, subject: &mut S) {
    logged(bench, subject);
    let wanted: Vec<&str> = ROWS.into_iter().filter(|row| bench.options.shared.wants(TYPED, row)).collect();
    let wants_own = bench.options.shared.wants(ASYNC, ASYNC);
    if wanted.is_empty() && !wants_own {
        return;
    }
    let records = bench.records(0);
    let batches: Vec<TypedBatch> = records.chunks(PER_COMMIT).map(TypedBatch::of).collect();
    let filled = fill(subject, &batches, Clock::Wall);
    for row in wanted {
        bench.progress.set_message(row);
        let reported = match &filled {
            Ok(_) => measure(bench, subject, row, &batches).unwrap_or_else(|error| Row::new(row).failed(&error)),
            Err(error) => Row::new(row).failed(error),
        };
        bench.push(TYPED, reported);
    }
    if filled.is_ok() && wants_own {
        match subject.own_rows(bench.size, bench.options.shared.repeat()) {
            Ok(rows) => rows.into_iter().for_each(|(section, row)| bench.push(section, row)),
            Err(error) => bench.push(ASYNC, Row::new(ASYNC).failed(&error)),
        }
    }
}

/// Measures writes with and without the log of changes.
fn logged<S: Subject>(bench: &mut Bench<'_>, subject: &mut S) {
    if !bench.options.shared.wants(CHANGES, CHANGES) {
        return;
    }
    bench.progress.set_message(CHANGES);
    match subject.logged_rows(bench.options.shared.seed, bench.options.shared.repeat()) {
        Ok(rows) => rows.into_iter().for_each(|row| bench.push(CHANGES, row)),
        Err(error) => bench.push(CHANGES, Row::new(CHANGES).failed(&error)),
    }
}

/// Empties and fills the collection; returns the time of the insertions.
fn fill<S: Subject>(subject: &mut S, batches: &[TypedBatch], clock: Clock) -> Result<std::time::Duration> {
    subject.typed(TypedTask::Clear)?;
    let mut total = std::time::Duration::ZERO;
    for batch in batches {
        let (inserted, time) = clock.timed(|| subject.typed(TypedTask::Insert(batch)));
        total += time;
        if inserted?.count != number::count(batch.bson.len()) {
            return Err("an insertion did not insert the whole batch".into());
        }
    }
    Ok(total)
}

fn measure<S: Subject>(bench: &Bench<'_>, subject: &mut S, name: &str, batches: &[TypedBatch]) -> Result<Row> {
    let repeat = bench.options.shared.repeat();
    let all: Answer = (0..bench.size.cast_signed()).collect();
    let mut rng = Rng::of(bench.options.shared.seed, &[0x1D5]);
    let lookups: Vec<i64> =
        rng.distinct(LOOKUPS.min(usize::try_from(bench.size)?), bench.size).into_iter().map(u64::cast_signed).collect();
    let [scan, three, maps, by_id, _] = ROWS;
    let (task, expected) = match name {
        _ if name == scan => (TypedTask::Scan, all),
        _ if name == three => (TypedTask::ScanThree, all),
        _ if name == maps => (TypedTask::ScanMaps, all),
        _ if name == by_id => (TypedTask::Lookups(&lookups), lookups.iter().copied().collect()),
        _ => {
            let mut samples = Samples::default();
            while repeat.needs_another_run(&samples) {
                samples.push(fill(subject, batches, repeat.clock)?);
            }
            return Ok(Row { samples, items: bench.size, verdict: Verdict::Right, ..Row::new(name) });
        }
    };
    let mut run = || subject.typed(task);
    let (answer, allocations) = slate_bench_harness::clock::allocating(&mut run)?;
    let check = |answer: Answer| if answer == expected { Ok(()) } else { Err("the wrong documents were read".into()) };
    check(answer)?;
    let samples = repeat.time(|| Ok(()), |()| run(), check)?;
    let (items, count) = (expected.count, Some(expected.count));
    Ok(Row { samples, items, count, expected: count, allocations, verdict: Verdict::Right, ..Row::new(name) })
}
