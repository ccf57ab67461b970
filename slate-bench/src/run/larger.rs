//! The workload for data larger than memory: one collection, in a process whose memory is limited.
//!
//! Each operation is a sample: unlike the rows of the usual workload, most of them wait for the device, and the slowest
//! matter. Operations use random records, so that no cache holds what they read.

use std::{fs, io, path::Path, time::Duration};

use slate_bench_harness::{MemoryLimit, Progress, Report, Result, Rng, Row, Samples, Verdict, format, number};

use super::{Bench, Opened, load::insert, open_in};
use crate::{
    Answer, Change, Condition, Consume, Field, Find, Options, Patch, Query, Record, Setup, Subject, Test, Value,
    workload::{LARGER, SPACE, all_match},
};

/// Number of documents of a page.
const PAGE: u64 = 20;

/// Number of pages from which a random one is read, for a random value of the index.
const PAGES: u64 = 50;

/// How often a row that times single operations (`find_by_id`, a page, an update) executes its operation in each run
/// (`--runs`).
const OPERATIONS: u64 = 100;

/// Number of random records that each commit of the row with many updates draws. A record that is drawn twice is changed
/// once.
const UPDATED_AT_ONCE: u64 = 100;

/// Number of commits after which all data are written to the device.
const COMMITS_PER_FLUSH: u64 = 100;

/// The filter of the full scan: no index, a third of the records.
const FILTER: Condition = Condition { field: Field::Recommendation1, test: Test::Equal(Value::Str("ProductA")) };

/// Runs the workload with `limit` bytes of memory on the databases that `open` returns, once for each size.
///
/// # Errors
/// Fails if the run cannot continue. A wrong result is not an error; it is in the report.
pub fn run<S: Subject>(
    options: &Options,
    limit: u64,
    mut open: impl FnMut(&Path, Setup) -> Result<S>,
) -> Result<Report> {
    let (_group, mut bench) = begin(options, limit, &mut open)?;
    for &size in &options.records {
        bench.size = size;
        bench.progress.more(12);
        measure(&mut bench, &mut open)?;
    }
    Ok(bench.report)
}

/// Limits the memory of the process until the returned group is dropped. Returns also a bench whose report describes the
/// limit. If no limit is possible, the group is `None`.
///
/// # Errors
/// Fails if the database cannot be opened.
pub(super) fn begin<'o, S: Subject>(
    options: &'o Options,
    limit: u64,
    open: &mut impl FnMut(&Path, Setup) -> Result<S>,
) -> Result<(Option<MemoryLimit>, Bench<'o>)> {
    let group = MemoryLimit::of_process(limit);
    let how = match &group {
        Ok(group) => group.describe().to_owned(),
        Err(error) => format!("only by the size of the cache, because of the control group: {error}"),
    };
    let mut about = open_in(options, open, 1)?.subject.about();
    let cache = options.setup(1).cache.map_or_else(String::new, |bytes| format!(", cache {}", format::bytes(bytes)));
    about.settings = format!("{}; memory limit {}{cache} ({how})", about.settings, format::bytes(limit));
    let report = Report::begin("slate-bench", about, options.shared.seed);
    Ok((group.ok(), Bench { options, size: 0, report, progress: Progress::of(0) }))
}

fn measure<S: Subject>(bench: &mut Bench<'_>, open: &mut impl FnMut(&Path, Setup) -> Result<S>) -> Result<()> {
    let Opened { mut subject, folder } = open_in(bench.options, open, 1)?;
    let path = folder.path();
    let (time, _) = insert(bench, &mut subject, 0)?;
    once(bench, "load", time);
    let size = subject.size()?;
    space(bench, "files after loading", size);
    scan(bench, &mut subject)?;
    each(bench, &mut subject, "find_by_id", |bench, subject, rng| lookup(bench, subject, rng))?;
    each(bench, &mut subject, "indexed page of 20", |bench, subject, rng| page(bench, subject, rng))?;
    let mut largest = 0;
    let mut updates = 0;
    each(bench, &mut subject, "update one record", |bench, subject, rng| {
        updates += 1;
        if updates % OPERATIONS == 0 {
            largest = largest.max(bytes_within(path)?);
        }
        update(bench, subject, rng, updates)
    })?;
    update_many(bench, &mut subject, path, &mut largest)?;
    space(bench, "files while updating, largest", Some(largest));
    let mut compacted = None;
    if bench.options.shared.wants(LARGER, "compact") {
        let (done, time) = bench.options.shared.clock.timed(|| subject.compact());
        if done.is_ok() {
            compacted = subject.size()?;
            once(bench, "compact", time);
        }
    }
    let ((), time) = bench.options.shared.clock.timed(|| drop(subject));
    once(bench, "close", time);
    let size = bytes_within(path)?;
    space(bench, "files when compacted", compacted);
    space(bench, "files when closed", Some(size));
    Ok(())
}

/// Adds a row with one sample, the time of an operation on the whole collection.
fn once(bench: &mut Bench<'_>, name: &'static str, time: Duration) {
    let samples = std::iter::once(time).collect();
    bench.push(LARGER, Row { samples, verdict: Verdict::Right, items: bench.size, ..Row::new(name) });
}

/// Updates as many random records as the collection has, [`UPDATED_AT_ONCE`] per commit: like hours of a service in a
/// short time.
fn update_many<S: Subject>(bench: &mut Bench<'_>, subject: &mut S, folder: &Path, largest: &mut u64) -> Result<()> {
    let name = "update as many records as there are";
    if !bench.options.shared.wants(LARGER, name) {
        return Ok(());
    }
    let seed = bench.options.shared.seed;
    let mut rng = Rng::of(seed, &[0x0bd8]);
    let (mut time, mut verdict) = (Duration::ZERO, Verdict::Right);
    for commit in 0..bench.size / UPDATED_AT_ONCE {
        let mut ids: Vec<u64> = (0..UPDATED_AT_ONCE).map(|_| rng.below(bench.size)).collect();
        ids.sort_unstable();
        ids.dedup();
        let patch = |id: &u64| Change::Fields(Patch::new(seed, 0, id.cast_signed(), commit));
        let batch = subject.encode(ids.iter().map(patch))?;
        let (written, took) = bench.options.shared.clock.timed(|| subject.merge(0, &batch));
        let (written, expected) = (written?, number::count(ids.len()));
        if written != expected {
            verdict = Verdict::Wrong(format!("{written} instead of {expected} records"));
        }
        time += took;
        if commit % COMMITS_PER_FLUSH == 0 {
            let (flushed, took) = bench.options.shared.clock.timed(|| subject.size());
            flushed?;
            time += took;
        }
        *largest = (*largest).max(bytes_within(folder)?);
    }
    bench.push(LARGER, Row { samples: std::iter::once(time).collect(), verdict, items: bench.size, ..Row::new(name) });
    Ok(())
}

fn space(bench: &mut Bench<'_>, name: &str, bytes: Option<u64>) {
    let documents = crate::records::mean_size(bench.options.shared.seed) * number::float(bench.size);
    let note = bytes.map(|bytes| {
        let factor = format::factor(number::ratio(number::float(bytes), documents));
        format!("{factor} the {} of the documents", format::bytes(number::rounded(documents)))
    });
    bench.push(SPACE, Row { bytes, note, ..Row::new(name) });
}

fn scan<S: Subject>(bench: &mut Bench<'_>, subject: &mut S) -> Result<()> {
    let name = "filter by full scan";
    if !bench.options.shared.wants(LARGER, name) {
        return Ok(());
    }
    let seed = bench.options.shared.seed;
    let ids = 0..bench.size.cast_signed();
    let expected: Answer = ids.filter(|id| all_match(&[FILTER], &Record::new(seed, 0, *id, 0))).collect();
    let query = subject.prepare(0, &Query::Find(Find { filter: vec![FILTER], ..Find::default() }))?;
    let mut samples = Samples::default();
    let mut verdict = Verdict::Right;
    for _ in 0..bench.options.shared.runs.clamp(1, 5) {
        let (answer, time) = bench.options.shared.clock.timed(|| subject.run(&query, Consume::Lent));
        samples.push(time);
        let answer = answer?;
        if answer != expected {
            verdict = Verdict::Wrong(format!("{answer:?} instead of {expected:?}"));
        }
    }
    bench.push(LARGER, Row { samples, verdict, items: bench.size, count: Some(expected.count), ..Row::new(name) });
    Ok(())
}

/// Measures each of many executions of an operation as a sample. `operation` returns the time, and whether the result was
/// right.
fn each<S: Subject>(
    bench: &mut Bench<'_>,
    subject: &mut S,
    name: &str,
    mut operation: impl FnMut(&Bench<'_>, &mut S, &mut Rng) -> Result<Sample>,
) -> Result<()> {
    if !bench.options.shared.wants(LARGER, name) {
        return Ok(());
    }
    let mut rng = Rng::of(bench.options.shared.seed, &[0x1a6e]);
    let mut samples = Samples::default();
    let mut verdict = Verdict::Right;
    for _ in 0..u64::from(bench.options.shared.runs) * OPERATIONS {
        let sample = operation(bench, subject, &mut rng)?;
        samples.push(sample.time);
        if let Some(wrong) = sample.wrong {
            verdict = Verdict::Wrong(wrong);
        }
    }
    bench.push(LARGER, Row { samples, verdict, ..Row::new(name) });
    Ok(())
}

struct Sample {
    time: Duration,
    /// The difference from the expected result, if any.
    wrong: Option<String>,
}

impl Sample {
    fn of(time: Duration, count: u64, expected: u64) -> Self {
        let wrong = (count != expected).then(|| format!("{count} instead of {expected} records"));
        Self { time, wrong }
    }
}

fn lookup<S: Subject>(bench: &Bench<'_>, subject: &mut S, rng: &mut Rng) -> Result<Sample> {
    let query = subject.prepare(0, &Query::Lookups(vec![rng.below(bench.size).cast_signed()]))?;
    let (answer, time) = bench.options.shared.clock.timed(|| subject.run(&query, Consume::Owned));
    Ok(Sample::of(time, answer?.count, 1))
}

fn page<S: Subject>(bench: &Bench<'_>, subject: &mut S, rng: &mut Rng) -> Result<Sample> {
    let value = i64::try_from(rng.below(100))?;
    let filter = vec![Condition { field: Field::ContactsCount, test: Test::Equal(Value::Int(value)) }];
    let find = Find { filter, skip: rng.below(PAGES) * PAGE, limit: Some(PAGE), ..Find::default() };
    let query = subject.prepare(0, &Query::Find(find))?;
    let (answer, time) = bench.options.shared.clock.timed(|| subject.run(&query, Consume::Owned));
    // Small collections have shorter last pages.
    let count = answer?.count;
    Ok(Sample::of(time, count, if bench.size < 100 * PAGES * PAGE * 2 { count } else { PAGE }))
}

fn update<S: Subject>(bench: &Bench<'_>, subject: &mut S, rng: &mut Rng, version: u64) -> Result<Sample> {
    let patch = Patch::new(bench.options.shared.seed, 0, rng.below(bench.size).cast_signed(), version);
    let batch = subject.encode(std::iter::once(Change::Fields(patch)))?;
    let (written, time) = bench.options.shared.clock.timed(|| subject.merge(0, &batch));
    Ok(Sample::of(time, written?, 1))
}

/// Returns the bytes of all files in a directory and below.
pub(super) fn bytes_within(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A database may delete files meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        bytes += if metadata.is_dir() { bytes_within(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
