//! Runs the whole workload with few records: every result is correct on each store, and wrong results are detected.
#![cfg(feature = "redb")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use slate_bench::{
    Options,
    aggregation::QUESTIONS,
    harness::{Arguments, Report, Verdict},
    peak::Peaks,
    program, run,
    slate::Slate,
    workload::{LARGER, SPACE},
};
use support::faulty::{Fault, FaultySlate};

fn options() -> Options {
    let shared = Arguments { runs: 2, ..Arguments::default() };
    Options { shared, records: vec![300, 600], users: 2, ..Options::default() }
}

/// Checks that every row is present and correct.
fn check_whole(report: &Report) {
    assert_eq!(report.wrong(), Vec::<String>::new());
    for size in [300, 600] {
        let rows = |title| report.section(title, Some(size)).map_or(0, |section| section.rows.len());
        let titles =
            ["Bulk Insert", "Queries", "Distinct", "Aggregation", "Upsert / Merge", "Concurrency", "Integrity"];
        // Two of the 22 queries have no rows to lend.
        assert_eq!(titles.map(rows), [1, 20 * 2 + 2, 7, QUESTIONS.len(), 5, 1, 2], "{size}");
    }
    let rows = report.sections.iter().flat_map(|section| &section.rows);
    for row in rows.filter(|row| row.bytes.is_none()) {
        assert_eq!(row.verdict, Verdict::Right, "{}", row.label());
        assert!(!row.samples.is_empty(), "{}", row.label());
    }
}

#[test]
fn data_larger_than_memory_is_read_and_updated_correctly() {
    let shared = Arguments { runs: 1, ..Arguments::default() };
    let options = Options { shared, records: vec![1_000], users: 1, cache: Some(1 << 20), ..Options::default() };
    let open = |folder: &std::path::Path, setup| Slate::open("redb", folder, setup);
    let report = run::larger::run(&options, 4 << 30, open).unwrap();
    assert_eq!(report.wrong(), Vec::<String>::new());
    let rows = &report.section(LARGER, Some(1_000)).unwrap().rows;
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "load",
            "filter by full scan",
            "find_by_id",
            "indexed page of 20",
            "update one record",
            "update as many records as there are",
            "compact",
            "close",
        ]
    );
    assert!(rows.iter().all(|row| row.verdict == Verdict::Right && !row.samples.is_empty()));
    let space = &report.section(SPACE, Some(1_000)).unwrap().rows;
    assert!(space.iter().all(|row| row.bytes.is_some_and(|bytes| bytes > 300_000)), "{space:?}");
    assert!(report.about.settings.contains("memory limit 4.29 GB, cache 1.05 MB ("), "{}", report.about.settings);
}

#[test]
fn eight_threads_work_for_a_while_on_data_larger_than_memory() {
    let options = Options { records: vec![500], users: 1, cache: Some(1 << 20), ..Options::default() };
    let open = |folder: &std::path::Path, setup| Slate::open("redb", folder, setup);
    let (report, course) = run::soak::run(&options, 4 << 30, Duration::from_millis(300), open).unwrap();
    assert_eq!(report.wrong(), Vec::<String>::new());
    let point = course.points.first().unwrap();
    assert!(point.reads.count > 0 && point.writes.count > 0 && point.files > 100_000, "{point:?}");
    assert!(point.reads.median <= point.reads.p99 && point.reads.p99 <= point.reads.longest, "{point:?}");
    let svg = run::soak_chart::svg(&[course.clone(), course.clone()]);
    assert!(svg.matches("<polyline").count() == 16 && svg.contains("resident memory"), "{svg}");
    assert!(run::soak_chart::table(&[course]).contains("slate redb: writes, 99th percentile"));
}

#[test]
fn every_result_is_correct_in_memory() {
    let report = run::run(&options(), &Peaks::new(), |folder, setup| Slate::open("memory", folder, setup)).unwrap();
    check_whole(&report);
    let text = run::tables::markdown(&report);
    assert!(text.contains("### Queries") && text.contains("## Scaling: 300 → 600"), "{text}");
}

#[test]
fn every_result_is_correct_on_redb() {
    let report = run::run(&options(), &Peaks::new(), |folder, setup| Slate::open("redb", folder, setup)).unwrap();
    check_whole(&report);
    assert!(report.section("Space", Some(600)).unwrap().rows.iter().any(|row| row.name.starts_with("size on disk")));
}

#[test]
fn the_same_seed_gives_the_same_records_and_queries() {
    let counts = |seed| {
        let shared = Arguments { seed, runs: 1, only: vec!["queries".into()], ..Arguments::default() };
        let options = Options { shared, records: vec![300], users: 1, ..Options::default() };
        let report = run::run(&options, &Peaks::new(), |folder, setup| Slate::open("memory", folder, setup)).unwrap();
        report.section("Queries", Some(300)).unwrap().rows.iter().map(|row| row.count).collect::<Vec<_>>()
    };
    assert_eq!(counts(1), counts(1));
    assert_ne!(counts(1), counts(2));
}

/// Returns the differences that the report lists for a faulty database.
fn wrong(fault: Fault) -> Vec<String> {
    let shared = Arguments { runs: 1, ..Arguments::default() };
    let options = Options { shared, records: vec![300], users: 1, ..Options::default() };
    let report = run::run(&options, &Peaks::new(), |folder, setup| {
        Ok(FaultySlate { slate: Slate::open("memory", folder, setup)?, fault })
    })
    .unwrap();
    assert!(!program::is_right(&report));
    report.wrong()
}

#[test]
fn a_missing_row_is_detected_in_every_query_with_rows() {
    let wrong = wrong(Fault::RowTooFew);
    assert!(wrong.iter().any(|how| how.contains("Queries, Full scan (no filter) (lent): ")), "{wrong:?}");
    assert!(wrong.iter().any(|how| how.contains("point lookups")), "{wrong:?}");
    assert!(wrong.iter().filter(|how| how.contains("Queries")).count() >= 40, "{wrong:?}");
}

#[test]
fn a_write_that_does_nothing_is_detected() {
    let wrong = wrong(Fault::MergeNothing);
    assert_eq!(wrong.iter().filter(|how| how.contains("merge_many")).count(), 3, "{wrong:?}");
    assert_eq!(wrong.len(), 3, "{wrong:?}");
}

#[test]
fn a_reader_that_sees_half_a_commit_is_detected() {
    let wrong = wrong(Fault::HalfCommits);
    assert!(wrong.iter().any(|how| how.contains("Concurrency") && how.contains("matches no commit")), "{wrong:?}");
}

#[test]
fn an_unsupported_operation_is_no_error() {
    let shared = Arguments { runs: 1, ..Arguments::default() };
    let options = Options { shared, records: vec![300], users: 1, ..Options::default() };
    let open = |folder: &std::path::Path, setup| {
        Ok(FaultySlate { slate: Slate::open("memory", folder, setup)?, fault: Fault::NoDistinct })
    };
    let report = run::run(&options, &Peaks::new(), open).unwrap();
    assert!(program::is_right(&report));
    let rows = &report.section("Distinct", Some(300)).unwrap().rows;
    assert!(rows.iter().all(|row| matches!(row.verdict, Verdict::Unsupported(_))));
}

#[test]
fn the_program_prints_tables_and_writes_its_report_and_its_chart() {
    let folder = tempfile::tempdir().unwrap();
    let (json, chart) = (folder.path().join("report.json"), folder.path().join("chart.svg"));
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_slate-bench-redb"))
        .args(["--records", "300,600", "--users", "1", "--runs", "1", "--only", "count", "--only", "space", "--json"])
        .arg(&json)
        .arg("--chart")
        .arg(&chart)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("count status = 'active'") && !text.contains("Full scan"), "{text}");
    let report = Report::read(&json).unwrap();
    let bytes = |size| {
        report.section("Space", Some(size)).unwrap().rows.iter().map(|row| row.bytes.is_some()).collect::<Vec<_>>()
    };
    // Includes the second size, which another process measured.
    if slate_bench::harness::memory::memory().is_some() {
        assert_eq!([300, 600].map(bytes), [vec![true; 3], vec![true; 3]]);
    }
    assert!(std::fs::read_to_string(&chart).unwrap().starts_with("<svg"));
}

#[test]
fn an_unknown_option_ends_the_program_with_its_name() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_slate-bench-memory")).arg("--fast").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--fast"));
}
