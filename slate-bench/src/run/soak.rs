//! Runs eight threads for a given time on one collection that is larger than the memory, to show whether files and memory grow or
//! operations slow down.
//!
//! Each thread draws one operation after the other: half of them look up a record, the others read a page over an index, update a
//! record, insert one or delete an older one of their own, so the collection keeps its size. Each result is checked. The run is divided
//! into intervals; each has the latencies of its operations, and at its end the length of the files and the memory of the process.

use std::{
    io,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use slate_bench_harness::{Result, Rng, Row, Samples, Verdict, format, memory, number};

use super::{
    Bench, Opened,
    larger::{begin, bytes_within},
    load::insert,
    open_in,
};
use crate::{
    Change, Condition, Consume, Field, Find, Options, Patch, Query, Record, Setup, Subject, Test, Value,
    workload::{SOAK, SPACE},
};

/// Number of threads.
const THREADS: usize = 8;

/// Number of intervals of a run, which are at least a second long.
const INTERVALS: u32 = 60;

/// Number of documents of a page.
const PAGE: u64 = 20;

/// Maximum number of records that a thread has inserted and not yet deleted.
const OWN: usize = 100;

/// Maximum length of the files, as a multiple of their length after loading.
const GROWTH: u64 = 3;

/// Bytes that the files may have in addition, because small files consist mostly of free space and logs.
const GROWTH_OF_ALL: u64 = 64 << 20;

/// Returns the length of an interval of a run of this length.
fn interval_of(time: Duration) -> Duration {
    (time / INTERVALS).max(Duration::from_secs(1)).min(time)
}

/// The course of a run, for charts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// The database.
    pub name: String,
    /// The length of an interval.
    pub interval: Duration,
    /// Each interval.
    pub points: Vec<Point>,
}

/// An interval of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Lookups and pages.
    pub reads: Latencies,
    /// Updates, inserts and deletes.
    pub writes: Latencies,
    /// The length of all files at its end, in bytes.
    pub files: u64,
    /// The resident memory of the process at its end, in bytes; 0 where the system does not report it.
    pub memory: u64,
}

/// The times of the operations of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Number of operations.
    pub count: u64,
    /// Their median.
    pub median: Duration,
    /// Their 99th percentile.
    pub p99: Duration,
    /// The longest.
    pub longest: Duration,
}

/// Counts times in classes that are a sixteenth of a power of two wide, so that its size does not depend on the number of times.
#[derive(Clone, Debug)]
struct Histogram {
    classes: Vec<u64>,
    longest: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { classes: vec![0; 64 << 4], longest: Duration::ZERO }
    }
}

impl Histogram {
    fn add(&mut self, time: Duration) {
        let nanoseconds = number::nanoseconds(time).max(16);
        let power = nanoseconds.ilog2();
        let class = u64::from(power) << 4 | (nanoseconds >> (power - 4) & 15);
        if let Some(count) = usize::try_from(class).ok().and_then(|class| self.classes.get_mut(class)) {
            *count += 1;
        }
        self.longest = self.longest.max(time);
    }

    fn join(&mut self, other: &Self) {
        self.classes.iter_mut().zip(&other.classes).for_each(|(own, other)| *own += other);
        self.longest = self.longest.max(other.longest);
    }

    fn latencies(&self) -> Latencies {
        let count = self.classes.iter().sum();
        Latencies {
            count,
            median: self.quantile(count / 2),
            p99: self.quantile(count - count / 100),
            longest: self.longest,
        }
    }

    /// Returns the end of the class in which the time with this rank is.
    fn quantile(&self, rank: u64) -> Duration {
        let mut below = 0;
        for (class, count) in self.classes.iter().enumerate() {
            below += count;
            if *count > 0 && below >= rank {
                let (power, part) = (class >> 4, number::count(class & 15));
                let end = u64::checked_shl(17 + part, u32::try_from(power.saturating_sub(4)).unwrap_or(u32::MAX));
                return Duration::from_nanos(end.unwrap_or(u64::MAX)).min(self.longest);
            }
        }
        Duration::ZERO
    }
}

/// The latencies that a thread has measured since the last interval.
#[derive(Default)]
struct Measured {
    reads: Histogram,
    writes: Histogram,
}

/// Runs the threads for this time, within `limit` bytes of memory, and returns the report and the course of the run.
///
/// # Errors
/// Fails if the run cannot continue. A wrong result is not an error; it is in the report.
pub fn run<S: Subject>(
    options: &Options,
    limit: u64,
    time: Duration,
    mut open: impl FnMut(&Path, Setup) -> Result<S>,
) -> Result<(slate_bench_harness::Report, Course)> {
    let (_group, mut bench) = begin(options, limit, &mut open)?;
    let size = options.records.first().copied().unwrap_or_default();
    bench.size = size;
    bench.progress.more(5);
    let Opened { mut subject, folder } = open_in(options, &mut open, 1)?;
    let (loading, _) = insert(&bench, &mut subject, 0)?;
    bench.push(
        SOAK,
        Row { samples: std::iter::once(loading).collect(), verdict: Verdict::Right, items: size, ..Row::new("load") },
    );
    // Writes everything to the device.
    subject.size()?;
    let loaded = bytes_within(folder.path())?;
    bench.progress.set_message(format!("{THREADS} threads for {} s", time.as_secs()));
    let name = bench.report.about.name.clone();
    let (points, broken) = soak(&mut subject, &bench, folder.path(), time)?;
    let course = Course { name, interval: interval_of(time), points };
    let mut verdict = broken.map_or(Verdict::Right, Verdict::Wrong);
    let largest = course.points.iter().map(|point| point.files).max().unwrap_or_default();
    if verdict == Verdict::Right && largest > loaded.saturating_mul(GROWTH).saturating_add(GROWTH_OF_ALL) {
        let how = format!("the files grew from {} to {}", format::bytes(loaded), format::bytes(largest));
        verdict = Verdict::Wrong(how);
    }
    for (name, of) in [("reads", 0), ("writes", 1)] {
        report(&mut bench, name, &course, &verdict, |point| if of == 0 { point.reads } else { point.writes });
    }
    let memory = course.points.iter().map(|point| point.memory).max();
    for (name, bytes) in
        [("files after loading", Some(loaded)), ("files, largest", Some(largest)), ("memory, largest", memory)]
    {
        bench.push(SPACE, Row { bytes, ..Row::new(name) });
    }
    let verified = subject.verify();
    bench.push(
        SOAK,
        match verified {
            Ok(()) => Row {
                samples: std::iter::once(time).collect(),
                verdict: Verdict::Right,
                ..Row::new("verified afterwards")
            },
            Err(error) => Row::new("verified afterwards").failed(&error),
        },
    );
    drop(subject);
    bench.push(SPACE, Row { bytes: Some(bytes_within(folder.path())?), ..Row::new("files when closed") });
    Ok((bench.report, course))
}

/// Adds a row with one sample for each interval: its 99th percentile.
fn report(bench: &mut Bench<'_>, name: &str, course: &Course, verdict: &Verdict, of: impl Fn(&Point) -> Latencies) {
    let all: Vec<Latencies> = course.points.iter().map(of).collect();
    let count: u64 = all.iter().map(|latencies| latencies.count).sum();
    let samples: Samples = all.iter().map(|latencies| latencies.p99).collect();
    let longest = all.iter().map(|latencies| latencies.longest).max().unwrap_or_default();
    let third = all.len().div_ceil(3);
    let medians = |part: &[Latencies]| part.iter().map(|latencies| latencies.median).collect::<Samples>().median();
    let (first, last) = (all.get(..third).unwrap_or_default(), all.get(all.len() - third..).unwrap_or_default());
    let note = format!(
        "{} operations; median in the first third {}, in the last {}; longest {}",
        format::count(count),
        format::duration(medians(first)),
        format::duration(medians(last)),
        format::duration(longest),
    );
    bench.push(
        SOAK,
        Row {
            samples,
            verdict: verdict.clone(),
            note: Some(note),
            ..Row::new(format!("{name}, 99th percentile of each interval"))
        },
    );
}

/// Runs the threads. Returns the intervals, and the first result that was wrong.
fn soak<S: Subject>(
    subject: &mut S,
    bench: &Bench<'_>,
    folder: &Path,
    time: Duration,
) -> Result<(Vec<Point>, Option<String>)> {
    let handles = (0..THREADS).map(|_| subject.connect()).collect::<Result<Vec<_>>>()?;
    let measured: Vec<Mutex<Measured>> = (0..THREADS).map(|_| Mutex::default()).collect();
    let (is_over, broken) = (AtomicBool::new(false), Mutex::new(None));
    let (seed, size) = (bench.options.shared.seed, bench.size);
    let interval = interval_of(time);
    let (begin, mut points) = (Instant::now(), Vec::new());
    thread::scope(|threads| {
        for (number, (mut handle, measured)) in handles.into_iter().zip(&measured).enumerate() {
            let (is_over, broken) = (&is_over, &broken);
            threads.spawn(move || {
                let mut worker = Worker::new(number::count(number), seed, size);
                while !is_over.load(Ordering::Relaxed) {
                    if let Err(error) = worker.operate(&mut handle, measured) {
                        lock(broken).get_or_insert_with(|| slate_bench_harness::error::chain(&error));
                        break;
                    }
                }
            });
        }
        let sampled = (|| {
            while begin.elapsed() < time && lock(&broken).is_none() {
                thread::sleep(interval.min(time.saturating_sub(begin.elapsed())));
                // Writes all commits to the device, as a service does.
                subject.size()?;
                points.push(point(&measured, folder)?);
            }
            Ok(())
        })();
        is_over.store(true, Ordering::Relaxed);
        sampled
    })
    .map(|()| (points, broken.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

fn point(measured: &[Mutex<Measured>], folder: &Path) -> io::Result<Point> {
    let (mut reads, mut writes) = (Histogram::default(), Histogram::default());
    for measured in measured {
        let of_thread = std::mem::take(&mut *lock(measured));
        reads.join(&of_thread.reads);
        writes.join(&of_thread.writes);
    }
    let memory = memory::memory().map_or(0, |memory| memory.resident);
    Ok(Point { reads: reads.latencies(), writes: writes.latencies(), files: bytes_within(folder)?, memory })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of one thread.
struct Worker {
    rng: Rng,
    seed: u64,
    /// Number of records that were loaded.
    size: u64,
    /// The `_id` of the thread's next insert. Each thread inserts `_id`s from a range of its own.
    next: i64,
    own: Vec<i64>,
    version: u64,
}

impl Worker {
    fn new(number: u64, seed: u64, size: u64) -> Self {
        let first = size.cast_signed() + (number.cast_signed() << 40);
        Self { rng: Rng::of(seed, &[0x50a4, number]), seed, size, next: first, own: Vec::new(), version: number << 32 }
    }

    /// Executes and measures one operation.
    fn operate<S: Subject>(&mut self, handle: &mut S, measured: &Mutex<Measured>) -> Result<()> {
        let (time, is_read) = match self.rng.below(100) {
            0..50 => (self.find(handle)?, true),
            50..65 => (self.page(handle)?, true),
            65..90 => (self.update(handle)?, false),
            _ if self.own.len() >= OWN => (self.delete(handle)?, false),
            _ => (self.insert(handle)?, false),
        };
        let mut measured = lock(measured);
        if is_read {
            measured.reads.add(time)
        } else {
            measured.writes.add(time)
        }
        Ok(())
    }

    fn find<S: Subject>(&mut self, handle: &mut S) -> Result<Duration> {
        let query = handle.prepare(0, &Query::Lookups(vec![self.rng.below(self.size).cast_signed()]))?;
        let begin = Instant::now();
        let answer = handle.run(&query, Consume::Owned)?;
        expect(begin.elapsed(), answer.count, 1)
    }

    fn page<S: Subject>(&mut self, handle: &mut S) -> Result<Duration> {
        let value = self.rng.below(100).cast_signed();
        let filter = vec![Condition { field: Field::ContactsCount, test: Test::Equal(Value::Int(value)) }];
        let find = Find { filter, skip: self.rng.below(10) * PAGE, limit: Some(PAGE), ..Find::default() };
        let query = handle.prepare(0, &Query::Find(find))?;
        let begin = Instant::now();
        let answer = handle.run(&query, Consume::Owned)?;
        let time = begin.elapsed();
        // Small collections have shorter last pages.
        if self.size < 100 * 20 * PAGE { Ok(time) } else { expect(time, answer.count, PAGE) }
    }

    fn update<S: Subject>(&mut self, handle: &mut S) -> Result<Duration> {
        self.version += 1;
        let patch = Patch::new(self.seed, 0, self.rng.below(self.size).cast_signed(), self.version);
        let batch = handle.encode(std::iter::once(Change::Fields(patch)))?;
        let begin = Instant::now();
        let written = handle.merge(0, &batch)?;
        expect(begin.elapsed(), written, 1)
    }

    fn insert<S: Subject>(&mut self, handle: &mut S) -> Result<Duration> {
        let record = Record::new(self.seed, 0, self.next, 0);
        self.own.push(self.next);
        self.next += 1;
        let batch = handle.encode(std::iter::once(Change::Whole(record)))?;
        let begin = Instant::now();
        let written = handle.insert(0, &batch)?;
        expect(begin.elapsed(), written, 1)
    }

    fn delete<S: Subject>(&mut self, handle: &mut S) -> Result<Duration> {
        let own = std::mem::take(&mut self.own);
        let begin = Instant::now();
        handle.delete(0, &own)?;
        Ok(begin.elapsed())
    }
}

fn expect(time: Duration, count: u64, expected: u64) -> Result<Duration> {
    if count == expected { Ok(time) } else { Err(format!("{count} instead of {expected} records").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_sixteenth() {
        let mut histogram = Histogram::default();
        (1..=1_000).for_each(|micros| histogram.add(Duration::from_micros(micros)));
        let found = histogram.latencies();
        assert_eq!((found.count, found.longest), (1_000, Duration::from_micros(1_000)));
        assert!((500..540).contains(&found.median.as_micros()), "{found:?}");
        assert!((990..=1_000).contains(&found.p99.as_micros()), "{found:?}");
        assert_eq!(Histogram::default().latencies(), Latencies::default());
    }
}
