//! Two writers and four readers at the same time on one collection.
//!
//! In each commit, one writer turns records from active to rejected and as many from rejected to active; the other
//! inserts as many active as rejected records. Results therefore show whether a reader saw commits atomically: the
//! number of active records is always the initial number plus half of the inserted ones, and a scan returns the loaded
//! records and a prefix of the inserted ones.

use std::{
    sync::{Barrier, OnceLock, PoisonError, RwLock},
    time::{Duration, Instant},
};

use slate_bench_harness::{Result, Row, Samples, Verdict, number};

use super::Bench;
use crate::{
    Answer, Change, Condition, Consume, Field, Find, Query, Record, Subject, Test, Value, workload::CONCURRENCY,
};

/// Commits of each of the two writers.
pub const COMMITS: u64 = 10;
/// Number of readers.
pub const READERS: usize = 4;
/// Queries of each reader: a count and a scan, alternating.
pub const QUERIES: u32 = 20;
/// Records per commit, if the collection is large enough.
const PER_COMMIT: u64 = 100;

const ACTIVE: Condition = Condition { field: Field::Status, test: Test::Equal(Value::Str("active")) };

/// The batches of the writers, and the results that readers may see.
struct Scenario {
    user: usize,
    /// Batches of the updating writer, one per commit.
    turned: Vec<Vec<Record>>,
    /// Batches of the inserting writer, one per commit.
    inserted: Vec<Vec<Record>>,
    /// The original records that the updating writer changes.
    original: Vec<Record>,
    /// Number of active records after this many inserting commits.
    active: Vec<u64>,
    /// Result of a scan after this many inserting commits.
    scans: Vec<Answer>,
}

impl Scenario {
    fn new(bench: &Bench<'_>, user: usize) -> Self {
        let records = bench.records(user);
        let half = (bench.size / (COMMITS * 8)).clamp(1, PER_COMMIT / 2);
        let of = |status: &'static str| records.iter().filter(move |record| record.status == status);
        let (mut active, mut rejected) = (of("active"), of("rejected"));
        let take = usize::try_from(half).unwrap_or(usize::MAX);
        let original: Vec<Vec<Record>> = (0..COMMITS)
            .map(|_| active.by_ref().take(take).chain(rejected.by_ref().take(take)).cloned().collect())
            .collect();
        let turned = original.iter().map(|batch| batch.iter().map(turned).collect()).collect();
        let seed = bench.options.shared.seed;
        let new = |id: u64, status| Record { status, ..Record::new(seed, user, id.cast_signed(), 0) };
        let inserted: Vec<Vec<Record>> = (0..COMMITS)
            .map(|commit| {
                let first = bench.size + commit * 2 * half;
                let ids = (first..first + 2 * half).zip(["active", "rejected"].into_iter().cycle());
                ids.map(|(id, status)| new(id, status)).collect()
            })
            .collect();
        let loaded = number::count(of("active").count());
        let active = (0..=COMMITS).map(|commits| loaded + commits * half).collect();
        let scans =
            (0..=COMMITS).map(|commits| (0..(bench.size + commits * 2 * half).cast_signed()).collect()).collect();
        Self { user, turned, inserted, original: original.concat(), active, scans }
    }

    fn restore<S: Subject>(&self, subject: &mut S) -> Result<()> {
        let new: Vec<i64> = self.inserted.iter().flatten().map(|record| record.id).collect();
        subject.delete(self.user, &new)?;
        let batch = subject.encode(self.original.iter().cloned().map(Change::Whole))?;
        subject.upsert(self.user, &batch)?;
        Ok(())
    }
}

fn turned(record: &Record) -> Record {
    let status = if record.status == "active" { "rejected" } else { "active" };
    Record { status, ..record.clone() }
}

/// Runs the threads on each user's collection in turn, and reports the time until all are done.
pub fn write_and_read<S: Subject>(bench: &mut Bench<'_>, subject: &mut S) {
    let name = format!("2 writers + {READERS} readers");
    if !bench.options.shared.wants(CONCURRENCY, &name) {
        return;
    }
    bench.progress.set_message(&name);
    let row = Row::new(name);
    let row = match measure(bench, subject) {
        Ok(samples) => {
            let queries = number::count(READERS) * u64::from(QUERIES);
            let note = format!("{} commits, {queries} queries, each of one commit", 2 * COMMITS);
            Row { samples, verdict: Verdict::Right, note: Some(note), ..row }
        }
        Err(error) => row.failed(&error),
    };
    bench.push(CONCURRENCY, row);
}

fn measure<S: Subject>(bench: &Bench<'_>, subject: &mut S) -> Result<Samples> {
    let meetings: Vec<Scenario> = (0..bench.options.users).map(|user| Scenario::new(bench, user)).collect();
    let repeat = bench.options.shared.repeat();
    let mut samples = Samples::default();
    for scenario in &meetings {
        once(subject, scenario)?;
    }
    for scenario in meetings.iter().cycle() {
        if !repeat.needs_another_run(&samples) {
            break;
        }
        samples.push(once(subject, scenario)?);
    }
    Ok(samples)
}

/// Runs the threads once and restores the records.
fn once<S: Subject>(subject: &mut S, scenario: &Scenario) -> Result<Duration> {
    let time = run(subject, scenario);
    let restored = scenario.restore(subject);
    let time = time?;
    restored?;
    Ok(time)
}

fn run<S: Subject>(subject: &S, scenario: &Scenario) -> Result<Duration> {
    let writers = [(subject.connect()?, &scenario.turned), (subject.connect()?, &scenario.inserted)];
    let readers = (0..READERS).map(|_| subject.connect()).collect::<Result<Vec<_>>>()?;
    let start = Start { line: Barrier::new(writers.len() + readers.len()), begun: OnceLock::new() };
    let failures = RwLock::new(Vec::new());
    let note = |result: Result<()>| {
        if let Err(error) = result {
            failures.write().unwrap_or_else(PoisonError::into_inner).push(error);
        }
    };
    std::thread::scope(|threads| {
        for (mut handle, batches) in writers {
            let (start, note) = (&start, &note);
            threads.spawn(move || note(writer(&mut handle, scenario.user, batches, start)));
        }
        for mut handle in readers {
            let (start, note) = (&start, &note);
            threads.spawn(move || note(reader(&mut handle, scenario, start)));
        }
    });
    // The thread scope has joined all threads.
    let time = start.begun.get().map_or(Duration::ZERO, Instant::elapsed);
    match failures.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().next() {
        Some(error) => Err(error),
        None => Ok(time),
    }
}

/// The barrier at which all threads wait until all are ready.
struct Start {
    line: Barrier,
    /// The time at which the first thread passed the barrier.
    begun: OnceLock<Instant>,
}

impl Start {
    fn wait(&self) {
        self.line.wait();
        self.begun.get_or_init(Instant::now);
    }
}

/// Prepares everything before the barrier. A thread that fails before it must still reach it.
fn writer<S: Subject>(handle: &mut S, user: usize, batches: &[Vec<Record>], start: &Start) -> Result<()> {
    let encoded: Result<Vec<_>> =
        batches.iter().map(|batch| handle.encode(batch.iter().cloned().map(Change::Whole))).collect();
    start.wait();
    for batch in &encoded? {
        handle.upsert(user, batch)?;
    }
    Ok(())
}

fn reader<S: Subject>(handle: &mut S, scenario: &Scenario, start: &Start) -> Result<()> {
    let count = handle.prepare(scenario.user, &Query::Count(vec![ACTIVE]));
    let scan = handle.prepare(scenario.user, &Query::Find(Find::default()));
    start.wait();
    let (count, scan) = (count?, scan?);
    let mut seen = 0;
    for number in 0..QUERIES {
        // Finds the commit that the reader saw, which cannot be older than the previous one.
        let commits = if number % 2 == 0 {
            let active = handle.run(&count, Consume::Lent)?.count;
            let commits = scenario.active.iter().position(|&possible| possible == active);
            commits.ok_or_else(|| format!("a reader counted {active} active records, which matches no commit"))?
        } else {
            let answer = handle.run(&scan, Consume::Lent)?;
            let commits = scenario.scans.iter().position(|possible| *possible == answer);
            commits
                .ok_or_else(|| format!("a reader's scan returned {} records, which matches no commit", answer.count))?
        };
        if commits < seen {
            return Err("a reader saw an earlier commit than before".into());
        }
        seen = commits;
    }
    Ok(())
}
