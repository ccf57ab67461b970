//! Runs the writes and undoes them.

use std::ops::Range;

use slate_bench_harness::{Result, Rng, Row, Samples, Verdict, clock, number};

use super::Bench;
use crate::{
    Change, Options, Patch, Query, Record, Subject,
    check::{Fetched, check_document},
    workload::{Target, UPSERT_MERGE, WRITES, WRITTEN, WriteKind, WriteRow},
};

/// Returns the selected rows of the write table.
pub fn wanted(options: &Options) -> impl Iterator<Item = &'static WriteRow> {
    numbered(options).map(|(_, row)| row)
}

fn numbered(options: &Options) -> impl Iterator<Item = (u64, &'static WriteRow)> {
    (0..).zip(&WRITES).filter(|(_, row)| options.shared.wants(UPSERT_MERGE, row.name))
}

/// Runs and reports each selected write. A failure is reported in its row.
pub fn write<S: Subject>(bench: &mut Bench<'_>, subject: &mut S) {
    for (number, row) in numbered(bench.options) {
        bench.progress.set_message(row.name);
        let reported = match measure(bench, subject, number, *row) {
            Ok(reported) => reported,
            Err(error) => Row::new(row.name).failed(&error),
        };
        bench.push(UPSERT_MERGE, reported);
    }
}

/// The records of a write, and the expected records after it.
struct Written {
    changes: Vec<Change>,
    after: Vec<Record>,
}

/// The records that a row writes. Each run writes the same existing records with different values, so that every run
/// does the same work. The new records have new `_id`s in each run and are deleted afterwards. With the same `_id`s, a
/// store that retains deleted versions until compaction would search the deleted versions of all earlier runs.
struct Plan<'b> {
    bench: &'b Bench<'b>,
    row: WriteRow,
    existing: Vec<i64>,
    /// Number of new records in a run.
    new: u64,
    first_version: u64,
}

/// A run of a row: the user, and the version that selects the values and the new records.
#[derive(Clone, Copy)]
struct Run {
    user: usize,
    version: u64,
}

/// Number of versions reserved for each row, so that every run of every row writes different values.
const VERSIONS: u64 = 1 << 20;

impl<'b> Plan<'b> {
    fn new(bench: &'b Bench<'b>, number: u64, row: WriteRow) -> Self {
        let written = WRITTEN.min(bench.size / 10);
        let (existing, new) = match row.target {
            Target::New => (0, written),
            Target::Existing => (written, 0),
            Target::Mixed => (written / 2, written / 2),
        };
        let mut rng = Rng::of(bench.options.shared.seed, &[0x3717]);
        let existing = rng.distinct(usize::try_from(existing).unwrap_or(usize::MAX), bench.size);
        let existing = existing.into_iter().map(u64::cast_signed).collect();
        // Version 0 is the loaded data.
        Self { bench, row, existing, new, first_version: number * VERSIONS + 1 }
    }

    /// Returns the `_id`s of the new records of a version, which no other version has.
    fn new_of(&self, version: u64) -> Range<i64> {
        let first = self.bench.size.saturating_add(version.saturating_mul(WRITTEN));
        first.cast_signed()..first.saturating_add(self.new).cast_signed()
    }

    fn record(&self, user: usize, id: i64, version: u64) -> Record {
        Record::new(self.bench.options.shared.seed, user, id, version)
    }

    fn written(&self, Run { user, version }: Run) -> Written {
        let mut written = Written { changes: Vec::new(), after: Vec::new() };
        let mut push = |change, after| {
            written.changes.push(change);
            written.after.push(after);
        };
        let mut new = self.new_of(version);
        for id in &self.existing {
            match self.row.kind {
                WriteKind::Upsert => {
                    let record = self.record(user, *id, version);
                    push(Change::Whole(record.clone()), record);
                }
                WriteKind::Merge => {
                    let patch = Patch::new(self.bench.options.shared.seed, user, *id, version);
                    let after = self.record(user, *id, 0).patched(&patch);
                    push(Change::Fields(patch), after);
                }
            }
            if let Some(id) = new.next() {
                let record = self.record(user, id, 0);
                push(Change::Whole(record.clone()), record);
            }
        }
        for id in new {
            let record = self.record(user, id, 0);
            push(Change::Whole(record.clone()), record);
        }
        written
    }

    fn make<S: Subject>(&self, subject: &mut S, user: usize, batch: &S::Batch) -> Result<u64> {
        match self.row.kind {
            WriteKind::Upsert => subject.upsert(user, batch),
            WriteKind::Merge => subject.merge(user, batch),
        }
    }

    fn delete_new<S: Subject>(&self, subject: &mut S, Run { user, version }: Run) -> Result<()> {
        if self.new == 0 {
            return Ok(());
        }
        subject.delete(user, &self.new_of(version).collect::<Vec<_>>())
    }

    /// Restores the existing records.
    fn restore<S: Subject>(&self, subject: &mut S, user: usize) -> Result<()> {
        if self.existing.is_empty() {
            return Ok(());
        }
        let batch = subject.encode(self.existing.iter().map(|id| Change::Whole(self.record(user, *id, 0))))?;
        subject.upsert(user, &batch)?;
        Ok(())
    }
}

fn measure<S: Subject>(bench: &Bench<'_>, subject: &mut S, number: u64, row: WriteRow) -> Result<Row> {
    let plan = Plan::new(bench, number, row);
    let users = bench.options.users;
    let repeat = bench.options.shared.repeat();
    let mut samples = Samples::default();
    let mut counted = None;
    let mut expected = 0;
    // The current or last run.
    let mut run = Run { user: 0, version: plan.first_version };
    let made = (|| -> Result<()> {
        // The first round is the warm-up; everything that it wrote is checked.
        for (version, user) in (plan.first_version..).zip((0..users).cycle()) {
            run = Run { user, version };
            let warm_up = version - plan.first_version < number::count(users);
            if !warm_up && !repeat.needs_another_run(&samples) {
                break;
            }
            let written = plan.written(run);
            expected = number::count(written.changes.len());
            let batch = subject.encode(written.changes.into_iter())?;
            let (many, time) = repeat.clock.timed(|| plan.make(subject, user, &batch));
            if many? != expected {
                return Err(format!("user {}: not all {expected} records were written", user + 1).into());
            }
            if warm_up {
                check(&plan, subject, user, &written.after)?;
            } else {
                samples.push(time);
            }
            plan.delete_new(subject, run)?;
        }
        // Checks the data once more after the last run.
        run.user = 0;
        let written = plan.written(run);
        let batch = subject.encode(written.changes.into_iter())?;
        counted = clock::allocating(|| plan.make(subject, 0, &batch))?.1;
        check(&plan, subject, 0, &written.after)
    })();
    // After a failure, tries to restore the records for the next row.
    let restored =
        plan.delete_new(subject, run).and_then(|()| (0..users).try_for_each(|user| plan.restore(subject, user)));
    made?;
    restored?;
    Ok(Row {
        samples,
        items: expected,
        count: Some(expected),
        expected: Some(expected),
        allocations: counted,
        verdict: Verdict::Right,
        // The name states the number of records in a large collection.
        note: (expected < WRITTEN).then(|| format!("{expected} records, a tenth of the collection")),
        ..Row::new(row.name)
    })
}

/// Checks every field of the written records, and the number of records in the collection.
fn check<S: Subject>(plan: &Plan<'_>, subject: &mut S, user: usize, after: &[Record]) -> Result<()> {
    let lookups = Query::Lookups(after.iter().map(|record| record.id).collect());
    let prepared = subject.prepare(user, &lookups)?;
    let Fetched::Documents(documents) = subject.fetch(&prepared)? else {
        return Err("the lookups returned no documents".into());
    };
    if documents.len() != after.len() {
        return Err(
            format!("user {}: {} of {} records exist after the write", user + 1, documents.len(), after.len()).into()
        );
    }
    for (document, record) in documents.iter().zip(after) {
        check_document(document, record, None).map_err(|wrong| format!("user {}: once written, {wrong}", user + 1))?;
    }
    let wanted = plan.bench.size + plan.new;
    let prepared = subject.prepare(user, &Query::Count(Vec::new()))?;
    let counted = subject.run(&prepared, crate::Consume::Owned)?.count;
    if counted != wanted {
        return Err(format!("user {}: {counted} records after the write, expected {wanted}", user + 1).into());
    }
    Ok(())
}
