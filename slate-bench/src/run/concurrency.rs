//! Two writers and four readers at once, on one collection.
//!
//! One writer turns records from active to rejected and as many the other way round in each commit; the other inserts as
//! many active records as rejected ones. So what a reader counts tells whether it saw commits whole: the active ones are
//! always as many as at the beginning and half of what was inserted, and a scan finds the loaded records and the first so
//! many insertions, to the last `_id`.

use std::{
    sync::{Barrier, OnceLock, PoisonError, RwLock},
    time::{Duration, Instant},
};

use slate_bench_harness::{Result, Row, Samples, Verdict, number};

use super::Bench;
use crate::{
    Answer, Change, Condition, Consume, Field, Find, Query, Record, Subject, Test, Value, workload::CONCURRENCY,
};

/// How many commits each of the two writers makes.
pub const COMMITS: u64 = 10;
/// How many readers there are.
pub const READERS: usize = 4;
/// How many questions each asks: a count and a scan in turn.
pub const QUESTIONS: u32 = 20;
/// How many records a commit has, in collections that have enough of them.
const PER_COMMIT: u64 = 100;

const ACTIVE: Condition = Condition { field: Field::Status, test: Test::Equal(Value::Str("active")) };

/// What a user's writers write, and what a reader may see.
struct Meeting {
    user: usize,
    /// Of the writer that turns records round, a batch per commit.
    turned: Vec<Vec<Record>>,
    /// Of the writer that inserts, a batch per commit.
    inserted: Vec<Vec<Record>>,
    /// What the first writer changes, as it was.
    original: Vec<Record>,
    /// How many are active after so many insertions.
    active: Vec<u64>,
    /// What a scan gives after so many insertions.
    scans: Vec<Answer>,
}

impl Meeting {
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

/// Lets them meet, on each user's collection in turn, and reports how long it took until all were done.
pub fn meet<S: Subject>(bench: &mut Bench<'_>, subject: &mut S) {
    let name = format!("2 writers + {READERS} readers");
    if !bench.options.shared.wants(CONCURRENCY, &name) {
        return;
    }
    bench.progress.tell(&name);
    let row = Row::new(name);
    let row = match measure(bench, subject) {
        Ok(samples) => {
            let questions = number::count(READERS) * u64::from(QUESTIONS);
            let note = format!("{} commits, {questions} questions, each answered as of one commit", 2 * COMMITS);
            Row { samples, verdict: Verdict::Right, note: Some(note), ..row }
        }
        Err(error) => row.failed(&error),
    };
    bench.push(CONCURRENCY, row);
}

fn measure<S: Subject>(bench: &Bench<'_>, subject: &mut S) -> Result<Samples> {
    let meetings: Vec<Meeting> = (0..bench.options.users).map(|user| Meeting::new(bench, user)).collect();
    let repeat = bench.options.shared.repeat();
    let mut samples = Samples::default();
    for meeting in &meetings {
        once(subject, meeting)?;
    }
    for meeting in meetings.iter().cycle() {
        if !repeat.goes_on(&samples) {
            break;
        }
        samples.push(once(subject, meeting)?);
    }
    Ok(samples)
}

/// One meeting, and the records put back.
fn once<S: Subject>(subject: &mut S, meeting: &Meeting) -> Result<Duration> {
    let time = run(subject, meeting);
    let restored = meeting.restore(subject);
    let time = time?;
    restored?;
    Ok(time)
}

fn run<S: Subject>(subject: &S, meeting: &Meeting) -> Result<Duration> {
    let writers = [(subject.connect()?, &meeting.turned), (subject.connect()?, &meeting.inserted)];
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
            threads.spawn(move || note(writer(&mut handle, meeting.user, batches, start)));
        }
        for mut handle in readers {
            let (start, note) = (&start, &note);
            threads.spawn(move || note(reader(&mut handle, meeting, start)));
        }
    });
    // The scope has waited for all of them.
    let time = start.begun.get().map_or(Duration::ZERO, Instant::elapsed);
    match failures.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().next() {
        Some(error) => Err(error),
        None => Ok(time),
    }
}

/// Where all threads wait until all are ready.
struct Start {
    line: Barrier,
    /// When the first of them went on.
    begun: OnceLock<Instant>,
}

impl Start {
    fn wait(&self) {
        self.line.wait();
        self.begun.get_or_init(Instant::now);
    }
}

/// Everything is made ready before the start; whoever fails on the way to it must come to it all the same.
fn writer<S: Subject>(handle: &mut S, user: usize, batches: &[Vec<Record>], start: &Start) -> Result<()> {
    let encoded: Result<Vec<_>> =
        batches.iter().map(|batch| handle.encode(batch.iter().cloned().map(Change::Whole))).collect();
    start.wait();
    for batch in &encoded? {
        handle.upsert(user, batch)?;
    }
    Ok(())
}

fn reader<S: Subject>(handle: &mut S, meeting: &Meeting, start: &Start) -> Result<()> {
    let count = handle.prepare(meeting.user, &Query::Count(vec![ACTIVE]));
    let scan = handle.prepare(meeting.user, &Query::Find(Find::default()));
    start.wait();
    let (count, scan) = (count?, scan?);
    let mut seen = 0;
    for question in 0..QUESTIONS {
        // Which commits it saw: none before those that it saw already.
        let commits = if question % 2 == 0 {
            let active = handle.run(&count, Consume::Lent)?.count;
            let commits = meeting.active.iter().position(|&possible| possible == active);
            commits.ok_or_else(|| format!("a reader counted {active} active records, as no commit has"))?
        } else {
            let answer = handle.run(&scan, Consume::Lent)?;
            let commits = meeting.scans.iter().position(|possible| *possible == answer);
            commits.ok_or_else(|| format!("a reader's scan found {} records, as no commit has", answer.count))?
        };
        if commits < seen {
            return Err("a reader saw an earlier commit than before".into());
        }
        seen = commits;
    }
    Ok(())
}
