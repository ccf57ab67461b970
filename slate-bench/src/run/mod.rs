//! Runs the workload: loads, queries, writes, checks and measures.
//!
//! For each size: insert the records several times, each time into a new database, and continue with the last one; check
//! integrity; run each query, alternating between users; run the aggregations; run each write and undo it; run writers and readers
//! concurrently; check integrity again; run the typed and the awaited calls on another database.

pub mod aggregation;
pub mod chart;
pub mod concurrency;
pub mod larger;
pub mod load;
pub mod queries;
pub mod soak;
pub mod soak_chart;
pub mod tables;
pub mod typed;
pub mod writes;

use std::path::Path;

use slate_bench_harness::{Progress, Report, Result, Row, Verdict, number};

use crate::{
    Options, Record, Setup, Subject,
    aggregation::QUESTIONS,
    peak::Peaks,
    workload::{AGGREGATION, ASYNC, BULK_INSERT, CONCURRENCY, INTEGRITY, SPACE, TYPED},
};
use load::Peak;

/// State that the parts of a run share.
#[derive(Debug)]
pub struct Bench<'o> {
    /// The options.
    pub options: &'o Options,
    /// Records per collection.
    pub size: u64,
    /// The results so far.
    pub report: Report,
    /// The progress bar.
    pub progress: Progress,
}

impl Bench<'_> {
    /// Adds a row to the section with this title and the current size.
    pub fn push(&mut self, title: &str, row: Row) {
        self.report.push(title, Some(self.size), row);
        self.progress.step();
    }

    /// Generates a user's records in the order of their `_id`s.
    pub fn records(&self, user: usize) -> Vec<Record> {
        (0..self.size.cast_signed()).map(|id| Record::new(self.options.shared.seed, user, id, 0)).collect()
    }
}

/// Runs the workload on the databases that `open` returns; see [`program::main`](crate::program::main). `peaks` are the
/// peaks of the sizes after the first, which cannot be measured in this process.
///
/// # Errors
/// Fails if the run cannot continue. A wrong result is not an error; it is in the report.
pub fn run<S: Subject>(
    options: &Options,
    peaks: &Peaks,
    mut open: impl FnMut(&Path, Setup) -> Result<S>,
) -> Result<Report> {
    let about = open_in(options, &mut open, 1)?.subject.about();
    let report = Report::begin("slate-bench", about, options.shared.seed);
    let mut bench = Bench { options, size: 0, report, progress: Progress::of(0) };
    for (place, &size) in options.records.iter().enumerate() {
        bench.size = size;
        bench.progress.more(steps(options, size));
        let mut opened = load::load(
            &mut bench,
            &mut open,
            if place == 0 { Peak::Here } else { Peak::Known(peaks.get(&size).copied()) },
        )?;
        verify(&mut bench, &mut opened.subject, "after loading");
        queries::run_queries(&mut bench, &mut opened.subject);
        aggregation::run(&mut bench, &mut opened.subject);
        writes::write(&mut bench, &mut opened.subject);
        concurrency::write_and_read(&mut bench, &mut opened.subject);
        verify(&mut bench, &mut opened.subject, "at the end");
        drop(opened);
        // Typed rows use a separate database, so that their records do not affect other rows.
        typed::run(&mut bench, &mut open_in(options, &mut open, 1)?.subject);
    }
    // The tables begin with the calls that services use.
    bench.report.sections.sort_by_key(|section| (section.size, section.title != TYPED, section.title != ASYNC));
    Ok(bench.report)
}

/// Returns the approximate number of rows per size: memory rows may be missing.
fn steps(options: &Options, size: u64) -> u64 {
    let queries = queries::wanted(options, size).into_iter().map(|row| queries::variants(&row.query).len());
    let typed = typed::ROWS.iter().filter(|row| options.shared.wants(TYPED, row)).count();
    let questions = QUESTIONS.iter().filter(|question| options.shared.wants(AGGREGATION, question.name)).count();
    let others = [BULK_INSERT, SPACE, SPACE, CONCURRENCY, INTEGRITY, INTEGRITY];
    let others = others.iter().filter(|title| options.shared.wants(title, title));
    number::count(queries.sum::<usize>() + writes::wanted(options).count() + typed + questions + others.count())
}

/// A database and its directory; dropped in this order.
#[derive(Debug)]
pub struct Opened<S> {
    /// The database.
    pub subject: S,
    /// Deletes the directory when dropped.
    pub folder: tempfile::TempDir,
}

/// Opens a database for `users` users in a new directory.
///
/// # Errors
/// Fails if the directory or the database cannot be created.
pub fn open_in<S>(
    options: &Options,
    open: &mut impl FnMut(&Path, Setup) -> Result<S>,
    users: usize,
) -> Result<Opened<S>> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("slate-bench-");
    let folder = match &options.shared.folder {
        Some(within) => builder.tempdir_in(within)?,
        None => builder.tempdir()?,
    };
    Ok(Opened { subject: open(folder.path(), options.setup(users))?, folder })
}

fn verify<S: Subject>(bench: &mut Bench<'_>, subject: &mut S, when: &str) {
    let row = Row::new(format!("integrity {when}"));
    if !bench.options.shared.wants(INTEGRITY, &row.name) {
        return;
    }
    bench.progress.set_message(row.name.clone());
    let (result, time) = slate_bench_harness::clock::timed(|| subject.verify());
    let row = match result {
        Ok(()) => Row { verdict: Verdict::Right, samples: std::iter::once(time).collect(), ..row },
        Err(error) => row.failed(&error),
    };
    bench.push(INTEGRITY, row);
}
