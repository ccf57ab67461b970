//! Runs the aggregations.

use slate_bench_harness::{Result, Row, Verdict, number::count};

use super::Bench;
use crate::{
    Record, Subject,
    aggregation::{Company, QUESTIONS, Question, answer, check},
    workload::AGGREGATION,
};

/// Runs each selected aggregation on the first user's records and reports its row. A failure is reported in its row.
pub fn run<S: Subject>(bench: &mut Bench<'_>, subject: &mut S) {
    let wanted = QUESTIONS.iter().filter(|question| bench.options.shared.wants(AGGREGATION, question.name));
    let wanted: Vec<&Question> = wanted.collect();
    if wanted.is_empty() {
        return;
    }
    let records = bench.records(0);
    let companies: Vec<Company> = Company::all().collect();
    let loaded = subject.load_companies(&companies);
    for question in wanted {
        bench.progress.set_message(question.name);
        let row = match &loaded {
            Ok(()) => measure(bench, subject, question, &records),
            Err(error) => Ok(Row::new(question.name).failed(error)),
        };
        bench.push(AGGREGATION, row.unwrap_or_else(|error| Row::new(question.name).failed(&error)));
    }
}

fn measure<S: Subject>(bench: &Bench<'_>, subject: &mut S, question: &Question, records: &[Record]) -> Result<Row> {
    let expected = answer(question, records)?;
    let mut run = || subject.aggregate(question);
    let (rows, allocations) = slate_bench_harness::clock::allocating(&mut run)?;
    let found = Some(count(rows.len()));
    check(rows, &expected)?;
    let samples = bench.options.shared.repeat().time(|| Ok(()), |()| run(), |rows| Ok(check(rows, &expected)?))?;
    Ok(Row {
        samples,
        count: found,
        expected: Some(count(expected.len())),
        allocations,
        verdict: Verdict::Right,
        ..Row::new(question.name)
    })
}
