//! Runs the whole workload with few entries on Slate's stores: row names are unique, and every result is correct.

use std::collections::HashSet;

use slate_bench_harness::{Arguments, Report, Verdict};

use crate::{
    Documents, Subject,
    bench::Bench,
    documents,
    slate::{Memory, SlateDocuments, SlateStore},
    workload,
};

fn report(only: &[&str], work: impl FnOnce(&mut Bench)) -> Report {
    let only = only.iter().copied().map(String::from).collect();
    let arguments = Arguments { runs: 1, only, ..Arguments::default() };
    let report = Report::begin("slate-store-bench", SlateStore::<Memory>::about(), arguments.seed);
    let mut bench = Bench::new(arguments, 10_000, report);
    work(&mut bench);
    bench.into_report()
}

fn check(report: &Report) {
    assert_eq!(report.wrong(), Vec::<String>::new());
    for section in &report.sections {
        let names: HashSet<_> = section.rows.iter().map(|row| &row.name).collect();
        assert_eq!(names.len(), section.rows.len(), "rows of {} share names", section.title);
        let measured = section.rows.iter().filter(|row| !matches!(row.verdict, Verdict::Unsupported(_)));
        assert!(measured.clone().all(|row| !row.samples.is_empty()), "a row of {} is empty", section.title);
        assert!(measured.count() > 0, "{} has no row", section.title);
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without optimization")]
fn keys_and_values_are_answered_right() {
    // Leaves out byodb's table, which takes minutes.
    let report = report(&["raw", "lsm-db", "txn-db", "pinned"], workload::run::<SlateStore<Memory>>);
    check(&report);
    assert!(report.sections.len() >= 3);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without optimization")]
fn documents_are_answered_right() {
    assert_eq!(SlateDocuments::<Memory>::about().name, SlateStore::<Memory>::about().name);
    let report = report(&[], documents::run::<SlateDocuments<Memory>>);
    check(&report);
    assert_eq!(report.sections.len(), 3);
}

#[test]
fn a_section_is_run_for_one_of_its_rows() {
    let report = report(&["range delete"], workload::run::<SlateStore<Memory>>);
    let rows: Vec<_> = report.sections.iter().flat_map(|section| &section.rows).map(|row| &row.name).collect();
    assert_eq!(rows, ["range delete of 1,000"]);
}
