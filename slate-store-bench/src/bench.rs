use slate_bench_harness::{
    Align, Allocations, Arguments, Clock, Failure, Progress, Repeat, Report, Result, Rng, Row as Reported, Samples,
    Table, Unsupported, Verdict, format,
    number::{count, float},
};

use crate::{Feature, workload::tools::Folders};

/// A run: its options and the results so far.
pub(crate) struct Bench {
    arguments: Arguments,
    records: u64,
    report: Report,
    section: String,
    progress: Progress,
}

/// A row to measure.
pub(crate) struct Row {
    name: String,
    items: u64,
    unit: Option<&'static str>,
    expected: u64,
    most_runs: u32,
}

impl Row {
    /// Creates a row with this name and this many operations per sample.
    pub(crate) fn new(name: impl Into<String>, items: u64) -> Self {
        Self { name: name.into(), items, unit: None, expected: 0, most_runs: u32::MAX }
    }

    /// Sets the unit of an item, if it is not one operation.
    pub(crate) fn unit(self, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..self }
    }

    /// Sets the expected result of each sample; 0 means no check.
    pub(crate) fn expects(self, expected: u64) -> Self {
        Self { expected, ..self }
    }

    /// Sets the maximum number of samples.
    pub(crate) fn at_most(self, most_runs: u32) -> Self {
        Self { most_runs, ..self }
    }

    fn check(&self, sample: &Sample) -> Result<()> {
        if sample.answer == self.expected {
            return Ok(());
        }
        Err(format!("returned {}, expected {}", sample.answer, self.expected).into())
    }
}

/// The times of a row, and the smallest number of allocations of a sample.
#[derive(Clone, Default)]
struct Series {
    samples: Samples,
    allocations: Option<Allocations>,
}

impl Series {
    fn push(&mut self, sample: &Sample) {
        self.samples.push(sample.elapsed);
        self.allocations = match (self.allocations, sample.allocations) {
            (Some(least), Some(now)) if least.count <= now.count => Some(least),
            (_, now) => now,
        };
    }
}

/// One measured time and the result.
pub(crate) struct Sample {
    elapsed: std::time::Duration,
    answer: u64,
    allocations: Option<Allocations>,
}

impl Sample {
    /// Measures work of several threads; their allocations are not counted.
    pub(crate) fn of_threads(elapsed: std::time::Duration, answer: u64) -> Self {
        Self { elapsed, answer, allocations: None }
    }

    /// Returns this sample with a result that was determined later.
    pub(crate) fn with_answer(self, answer: u64) -> Self {
        Self { answer, ..self }
    }
}

/// Measures the samples of a run.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Clock);

impl Stopwatch {
    /// Measures `work`, which returns its result.
    pub(crate) fn sample(self, work: impl FnOnce() -> Result<u64>) -> Result<Sample> {
        let ((answer, elapsed), allocations) = Allocations::during(|| self.0.timed(work));
        Ok(Sample { elapsed, answer: answer?, allocations })
    }
}

impl Bench {
    pub(crate) fn new(arguments: Arguments, records: u64, report: Report) -> Self {
        Self { arguments, records, report, section: String::new(), progress: Progress::of(0) }
    }

    /// Number of entries in the stores of general rows.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Returns a generator with the same random numbers on each call.
    pub(crate) fn random(&self) -> Rng {
        Rng::new(self.arguments.seed)
    }

    /// Returns the stopwatch for samples, with the clock of the command line. Rows with several threads use the wall
    /// clock.
    pub(crate) fn clock(&self) -> Stopwatch {
        Stopwatch(self.arguments.clock)
    }

    /// Returns the directory for stores.
    pub(crate) fn folders(&self) -> Folders {
        Folders::within(self.arguments.folder.clone())
    }

    /// Starts a section. Returns whether it may contain a selected row. `rows` are parts of the rows' names.
    pub(crate) fn begins(&mut self, section: &str, rows: &[&str]) -> bool {
        section.clone_into(&mut self.section);
        self.progress.set_message(section);
        let only = &self.arguments.only;
        // A pattern can be longer than the part of the name given here.
        let matches = |pattern: &String| rows.iter().any(|row| row.contains(pattern.as_str()) || pattern.contains(row));
        only.is_empty() || self.arguments.wants(section, "") || only.iter().any(matches)
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        self.arguments.wants(&self.section, name)
    }

    /// Measures a row if it is selected. A failure is recorded in the report, and the run continues.
    pub(crate) fn row(&mut self, row: Row, mut sample: impl FnMut() -> Result<Sample>) {
        self.rows([row], || sample().map(|sample| [sample]));
    }

    /// Measures rows with alternating samples, so that they see the same load on the machine. Measures all rows if the
    /// first is selected.
    pub(crate) fn rows<const N: usize>(&mut self, rows: [Row; N], mut sample: impl FnMut() -> Result<[Sample; N]>) {
        let Some(first) = rows.first().filter(|row| self.wants(&row.name)) else { return };
        self.progress.more(1);
        self.progress.set_message(format!("{}: {}", self.section, first.name));
        let found = self.measure(&rows, &mut sample);
        for (place, row) in rows.into_iter().enumerate() {
            let mut reported = Reported { items: row.items, ..Reported::new(&row.name) };
            reported.note = row.unit.map(|unit| format!("per {unit}"));
            let reported = match &found {
                Ok(found) => {
                    let Series { samples, allocations } = found.get(place).cloned().unwrap_or_default();
                    Reported { samples, allocations, verdict: Verdict::Right, ..reported }
                }
                Err(error) => reported.failed(error),
            };
            self.report.push(&self.section, None, reported);
        }
        self.progress.step();
    }

    fn measure<const N: usize>(
        &self,
        rows: &[Row; N],
        sample: &mut impl FnMut() -> Result<[Sample; N]>,
    ) -> Result<[Series; N]> {
        let mut found = [const { None::<Series> }; N].map(Option::unwrap_or_default);
        let Some(first) = rows.first() else { return Ok(found) };
        // The first run is a warm-up and is not counted.
        sample()?.into_iter().zip(rows).try_for_each(|(sample, row)| row.check(&sample))?;
        let repeat = Repeat::times(self.arguments.runs.min(first.most_runs));
        let needs_another_run = |series: Option<&Series>| {
            let samples = series.map(|series| &series.samples);
            samples.is_some_and(|samples| {
                repeat.needs_another_run(samples) && count(samples.len()) < u64::from(first.most_runs)
            })
        };
        while needs_another_run(found.first()) {
            for ((sample, row), series) in sample()?.into_iter().zip(rows).zip(&mut found) {
                row.check(&sample)?;
                series.push(&sample);
            }
        }
        Ok(found)
    }

    /// Measures a row that needs a feature of the store.
    pub(crate) fn row_of(
        &mut self,
        needed: Feature,
        lacks: &[Feature],
        row: Row,
        sample: impl FnMut() -> Result<Sample>,
    ) {
        if lacks.contains(&needed) {
            self.not_offered(&row.name, needed);
        } else {
            self.row(row, sample);
        }
    }

    /// Reports a row whose feature the store does not have.
    pub(crate) fn not_offered(&mut self, name: &str, lacks: Feature) {
        self.unsupported(name, lacks.words());
    }

    /// Reports a row that cannot be measured, with the reason.
    pub(crate) fn unsupported(&mut self, name: &str, feature: &str) {
        if self.wants(name) {
            let row = Reported::new(name).failed(&Unsupported::because(format!("has no {feature}")).into());
            self.report.push(&self.section, None, row);
        }
    }

    /// Reports a failure outside of any row.
    pub(crate) fn failed(&mut self, name: &str, error: &Failure) {
        self.report.push(&self.section, None, Reported::new(name).failed(error));
    }

    /// Adds a row with a size in bytes, and a note with the size `of` the keys and values.
    pub(crate) fn bytes(&mut self, name: &str, bytes: u64, of: u64) {
        if self.wants(name) {
            let note = format!("for {} of keys and values", format::bytes(of));
            self.report.push(
                &self.section,
                None,
                Reported { bytes: Some(bytes), note: Some(note), ..Reported::new(name) },
            );
        }
    }

    /// Adds a remark to the last row.
    pub(crate) fn note(&mut self, note: &str) {
        let last = self.report.sections.last_mut().and_then(|section| section.rows.last_mut());
        if let Some(row) = last {
            row.note = Some(match row.note.take() {
                Some(before) => format!("{before}; {note}"),
                None => note.to_owned(),
            });
        }
    }

    /// Returns the samples of the last row with this name.
    pub(crate) fn samples(&self, name: &str) -> Option<&Samples> {
        let section = self.report.section(&self.section, None)?;
        section.rows.iter().rfind(|row| row.name == name).map(|row| &row.samples)
    }

    pub(crate) fn into_report(self) -> Report {
        self.report
    }
}

/// Formats the report as Markdown: one table per section, times per item.
pub(crate) fn tables(report: &Report) -> String {
    let mut text = String::new();
    for section in &report.sections {
        let mut table = Table::new(&[
            ("row", Align::Left),
            ("each", Align::Right),
            ("a second", Align::Right),
            ("p95", Align::Right),
            ("spread", Align::Right),
            ("allocations", Align::Right),
            ("", Align::Left),
        ]);
        for row in &section.rows {
            table.row(cells(row));
        }
        text.push_str(&format!("## {}\n\n{table}\n", section.title));
    }
    text
}

fn cells(row: &Reported) -> [String; 7] {
    let note = row.note.clone().unwrap_or_default();
    let empty = || ["", "", "", "", ""].map(String::from);
    let [each, rate, p95, spread, allocations] = match (&row.verdict, row.bytes) {
        (Verdict::Wrong(_) | Verdict::Unsupported(_), _) => empty(),
        (_, Some(bytes)) => [format::bytes(bytes), String::new(), String::new(), String::new(), String::new()],
        _ => {
            let seconds = row.samples.median().as_secs_f64();
            let allocated = row.allocations.map(|all| format::three_digits(per_item(float(all.count), row.items)));
            [
                per_item_time(row.samples.median(), row.items),
                si(slate_bench_harness::number::ratio(float(row.items), seconds)),
                per_item_time(row.samples.p95(), row.items),
                format::percent(row.samples.spread()),
                allocated.unwrap_or_default(),
            ]
        }
    };
    let note = match &row.verdict {
        Verdict::Wrong(how) => format!("WRONG: {how}"),
        Verdict::Unsupported(why) => format!("not offered: {why}"),
        Verdict::Right | Verdict::Unchecked => note,
    };
    [row.label(), each, rate, p95, spread, allocations, note]
}

fn per_item(of_all: f64, items: u64) -> f64 {
    of_all / float(items.max(1))
}

/// Formats a time per item, with fractions of a nanosecond if necessary.
fn per_item_time(of_all: std::time::Duration, items: u64) -> String {
    let nanoseconds = per_item(of_all.as_secs_f64() * 1e9, items);
    if nanoseconds < 1e3 {
        format!("{} ns", format::three_digits(nanoseconds))
    } else {
        format::duration(std::time::Duration::from_secs_f64(nanoseconds / 1e9))
    }
}

/// Formats a rate with a suitable unit.
fn si(rate: f64) -> String {
    match rate {
        r if r >= 1e6 => format!("{}M", format::three_digits(r / 1e6)),
        r if r >= 1e3 => format!("{}k", format::three_digits(r / 1e3)),
        r => format::three_digits(r),
    }
}
