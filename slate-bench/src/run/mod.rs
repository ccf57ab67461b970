//! The run: load, ask, write, check, measure.
//!
//! For each size, in this order: the records are inserted, several times over, each into a database of its own, of which
//! the last stays; its integrity is checked; each question is asked, of each user in turn; each write is made, and undone;
//! writers and readers meet; and the integrity is checked again.

pub mod chart;
pub mod concurrency;
pub mod load;
pub mod questions;
pub mod tables;
pub mod writes;

use std::path::Path;

use slate_bench_harness::{Progress, Report, Result, Row, Verdict, number};

use crate::{
    Options, Record, Subject,
    peak::Peaks,
    workload::{BULK_INSERT, CONCURRENCY, INTEGRITY, SPACE},
};
use load::Peak;

/// What the parts of a run share.
#[derive(Debug)]
pub struct Bench<'o> {
    /// What was asked for.
    pub options: &'o Options,
    /// How many records each collection holds.
    pub size: u64,
    /// What was found so far.
    pub report: Report,
    /// How far it is.
    pub progress: Progress,
}

impl Bench<'_> {
    /// Reports a row in the section of that title, of the size at hand.
    pub fn push(&mut self, title: &str, row: Row) {
        self.report.push(title, Some(self.size), row);
        self.progress.step();
    }

    /// A user's records, in the order of their `_id`s.
    pub fn records(&self, user: usize) -> Vec<Record> {
        (0..self.size.cast_signed()).map(|id| Record::new(self.options.shared.seed, user, id, 0)).collect()
    }
}

/// Runs the workload on what `open` opens: see [`program::main`](crate::program::main). `peaks` are those of sizes after the
/// first, which cannot be measured here.
///
/// # Errors
/// What keeps the run from going on. A wrong answer is none: the report has it.
pub fn run<S: Subject>(
    options: &Options,
    peaks: &Peaks,
    mut open: impl FnMut(&Path, usize) -> Result<S>,
) -> Result<Report> {
    let about = open_in(&options.shared, &mut open, 1)?.subject.about();
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
        questions::ask(&mut bench, &mut opened.subject);
        writes::write(&mut bench, &mut opened.subject);
        concurrency::meet(&mut bench, &mut opened.subject);
        verify(&mut bench, &mut opened.subject, "at the end");
    }
    Ok(bench.report)
}

/// How many rows a size has, about: whether the system tells of memory is not known yet.
fn steps(options: &Options, size: u64) -> u64 {
    let questions = questions::wanted(options, size).into_iter().map(|row| questions::variants(&row.query).len());
    let others = [BULK_INSERT, SPACE, SPACE, CONCURRENCY, INTEGRITY, INTEGRITY];
    let others = others.iter().filter(|title| options.shared.wants(title, title));
    number::count(questions.sum::<usize>() + writes::wanted(options).count() + others.count())
}

/// A database, and the folder it lies in; dropped in this order.
#[derive(Debug)]
pub struct Opened<S> {
    /// The database.
    pub subject: S,
    /// Deleted when dropped.
    pub folder: tempfile::TempDir,
}

/// Opens a database in a new folder.
///
/// # Errors
/// The folder's, the database's.
pub fn open_in<S>(
    arguments: &slate_bench_harness::Arguments,
    open: &mut impl FnMut(&Path, usize) -> Result<S>,
    users: usize,
) -> Result<Opened<S>> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("slate-bench-");
    let folder = match &arguments.folder {
        Some(within) => builder.tempdir_in(within)?,
        None => builder.tempdir()?,
    };
    Ok(Opened { subject: open(folder.path(), users)?, folder })
}

fn verify<S: Subject>(bench: &mut Bench<'_>, subject: &mut S, when: &str) {
    let row = Row::new(format!("integrity {when}"));
    if !bench.options.shared.wants(INTEGRITY, &row.name) {
        return;
    }
    bench.progress.tell(row.name.clone());
    let (result, time) = slate_bench_harness::clock::timed(|| subject.verify());
    let row = match result {
        Ok(()) => Row { verdict: Verdict::Right, samples: std::iter::once(time).collect(), ..row },
        Err(error) => row.failed(&error),
    };
    bench.push(INTEGRITY, row);
}
