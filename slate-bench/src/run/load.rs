//! Inserts the records.

use std::{path::Path, time::Duration};

use slate_bench_harness::{Allocations, Result, Row, Samples, Verdict, format, memory, number};

use super::{Bench, Opened, open_in};
use crate::{
    Change, Record, Setup, Subject,
    peak::Growth,
    workload::{BULK_INSERT, HELD, ON_DISK, PEAK, SPACE},
};

/// Returns the number of batches for this many records: at least ten, of at most 10,000 records. Each is one commit.
pub fn batches(records: u64) -> u64 {
    records.div_ceil(10_000).max(10)
}

/// Source of the peak memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peak {
    /// Measured in this process, which has loaded nothing before.
    Here,
    /// Measured in another process, or not available.
    Known(Option<Growth>),
}

/// Loads all users' records into a new database, as often as requested, and returns the last database. A sample is one
/// user's batches. There is no warm-up run, because a new database is always cold.
///
/// # Errors
/// Fails with the database's errors: without records nothing else can be measured.
pub fn load<S: Subject>(
    bench: &mut Bench<'_>,
    open: &mut impl FnMut(&Path, Setup) -> Result<S>,
    mut peak: Peak,
) -> Result<Opened<S>> {
    let users = bench.options.users;
    let repeat = bench.options.shared.repeat();
    let mut samples = Samples::default();
    let mut allocations = None;
    let wanted = bench.options.shared.wants(BULK_INSERT, BULK_INSERT);
    let mut opened = loop {
        memory::reset_peak();
        let before = memory::memory();
        let mut opened = open_in(bench.options, open, users)?;
        for user in 0..users {
            bench.progress.set_message(format!("{} records for user {}", format::count(bench.size), user + 1));
            let (time, counted) = insert(bench, &mut opened.subject, user)?;
            samples.push(time);
            allocations = counted;
        }
        // Only the first run counts: later ones reuse memory that the process has not returned.
        if peak == Peak::Here {
            peak = Peak::Known(Growth::since(before));
        }
        if !wanted || !repeat.needs_another_run(&samples) {
            break opened;
        }
    };
    let size = opened.subject.size()?;
    let peak = match peak {
        Peak::Known(peak) => peak,
        Peak::Here => None,
    };
    report(bench, samples, allocations, peak, size);
    Ok(opened)
}

/// Inserts a user's records. Returns the time of the calls and their allocations.
pub(super) fn insert<S: Subject>(
    bench: &Bench<'_>,
    subject: &mut S,
    user: usize,
) -> Result<(Duration, Option<Allocations>)> {
    let clock = bench.options.shared.clock;
    let (mut time, mut allocations) = (Duration::ZERO, None);
    let batches = batches(bench.size);
    for batch in 0..batches {
        let ids = bench.options.ids.of_batch(batch, batches, bench.size);
        let record = |id: u64| Change::Whole(Record::new(bench.options.shared.seed, user, id.cast_signed(), 0));
        let many = number::count(ids.len());
        let encoded = subject.encode(ids.into_iter().map(record))?;
        let ((inserted, counted), took) = clock.timed(|| Allocations::during(|| subject.insert(user, &encoded)));
        if inserted? != many {
            return Err(format!("batch {batch} of user {} was not inserted completely", user + 1).into());
        }
        time += took;
        if let Some(counted) = counted {
            allocations.get_or_insert_with(Allocations::default).add(counted);
        }
    }
    Ok((time, allocations))
}

fn report(
    bench: &mut Bench<'_>,
    samples: Samples,
    allocations: Option<Allocations>,
    growth: Option<Growth>,
    size: Option<u64>,
) {
    let shared = &bench.options.shared;
    let users = number::float(number::count(bench.options.users));
    let loaded = crate::records::mean_size(shared.seed) * number::float(bench.size) * users;
    let bytes = |name: &str, bytes: Option<u64>| Row {
        bytes,
        note: bytes.map(|bytes| {
            let factor = format::factor(number::ratio(number::float(bytes), loaded));
            format!("{factor} the {} of the documents", format::bytes(number::rounded(loaded)))
        }),
        ..Row::new(name)
    };
    let peak = bytes(PEAK, growth.map(|growth| growth.peak));
    let held = bytes(HELD, growth.map(|growth| growth.held));
    let size = bytes(ON_DISK, size);
    let batches = batches(bench.size);
    let name = format!("{batches} batches of {} records", format::count(bench.size / batches));
    let row = Row {
        samples,
        items: bench.size,
        count: Some(bench.size),
        expected: Some(bench.size),
        allocations,
        verdict: Verdict::Right,
        ..Row::new(name)
    };
    let rows = [(BULK_INSERT, row), (SPACE, peak), (SPACE, held), (SPACE, size)];
    let measured = rows.into_iter().filter(|(_, row)| row.bytes.is_some() || !row.samples.is_empty());
    for (section, row) in measured.filter(|(section, row)| shared.wants(section, &row.name)) {
        bench.push(section, row);
    }
}
