//! Runs the queries.

use slate_bench_harness::{Result, Row, Samples, Verdict, clock};

use super::Bench;
use crate::{
    Consume, Options, Query, Record, Subject,
    check::{check_answer, check_fetched},
    expected::{Expected, Outline},
    workload::{QueryRow, query_rows},
};

/// Returns the selected queries.
pub fn wanted(options: &Options, size: u64) -> Vec<QueryRow> {
    let mut rows = query_rows(size, options.shared.seed);
    rows.retain(|row| options.shared.wants(row.section, row.name));
    rows
}

/// Runs each selected query and reports one row per way of consuming its result. A failure is reported in its row.
pub fn run_queries<S: Subject>(bench: &mut Bench<'_>, subject: &mut S) {
    let rows = wanted(bench.options, bench.size);
    if rows.is_empty() {
        return;
    }
    let users: Vec<Vec<Record>> = (0..bench.options.users).map(|user| bench.records(user)).collect();
    for row in &rows {
        bench.progress.set_message(row.name);
        let expected: Vec<_> = users.iter().map(|records| Expected::of(&row.query, records)).collect();
        for variant in variants(&row.query) {
            let mut reported = Row::new(row.name);
            if let Query::Find(_) = row.query {
                reported = reported.variant(variant.name());
            }
            let reported = match measure(bench, subject, row, *variant, &users, &expected, &mut reported) {
                Ok(()) => reported,
                Err(error) => reported.failed(&error),
            };
            bench.push(row.section, reported);
        }
    }
}

/// Returns the ways of consuming a query's result, one for each row. Only a find has both; documents of lookups are
/// always owned.
pub fn variants(query: &Query) -> &'static [Consume] {
    match query {
        Query::Find(_) => &Consume::ALL,
        Query::Count(_) | Query::Distinct { .. } | Query::Lookups(_) => &[Consume::Owned],
    }
}

/// Checks the complete result for each user, then measures, alternating between users. The summary of each measured
/// result is checked.
fn measure<S: Subject>(
    bench: &Bench<'_>,
    subject: &mut S,
    row: &QueryRow,
    consume: Consume,
    users: &[Vec<Record>],
    expected: &[Expected<'_>],
    reported: &mut Row,
) -> Result<()> {
    let outlines: Vec<Outline> = expected.iter().map(Expected::outline).collect();
    reported.expected = outlines.first().map(|outline| outline.answer.count);
    reported.items = match &row.query {
        Query::Lookups(ids) => slate_bench_harness::number::count(ids.len()),
        Query::Find(_) | Query::Count(_) | Query::Distinct { .. } => 0,
    };
    let mut prepared = Vec::with_capacity(users.len());
    for (user, (records, expected)) in users.iter().zip(expected).enumerate() {
        let query = subject.prepare(user, &row.query)?;
        let fetched = subject.fetch(&query)?;
        check_fetched(&fetched, &row.query, expected, records).map_err(|wrong| of_user(user, &wrong))?;
        prepared.push(query);
    }
    let mut samples = Samples::default();
    let repeat = bench.options.shared.repeat();
    let turns = prepared.iter().zip(&outlines).enumerate();
    for (user, (query, outline)) in turns.clone() {
        let answer = subject.run(query, consume)?;
        if user == 0 {
            reported.count = Some(answer.count);
        }
        check_answer(&answer, outline).map_err(|wrong| of_user(user, &wrong))?;
    }
    for (user, (query, outline)) in turns.cycle() {
        if !repeat.needs_another_run(&samples) {
            break;
        }
        let (answer, time) = repeat.clock.timed(|| subject.run(query, consume));
        samples.push(time);
        check_answer(&answer?, outline).map_err(|wrong| of_user(user, &wrong))?;
    }
    reported.samples = samples;
    if let Some(query) = prepared.first() {
        let (_, allocations) = clock::allocating(|| subject.run(query, consume))?;
        reported.allocations = allocations;
    }
    if let Some(work) = subject.work(0, &row.query)? {
        (reported.keys_read, reported.documents_read) = (Some(work.keys), Some(work.documents));
        reported.note = Some(work.plan);
    }
    reported.verdict = Verdict::Right;
    Ok(())
}

fn of_user(user: usize, wrong: &str) -> String {
    format!("user {}: {wrong}", user + 1)
}
