//! The complete program. Each database's `main` calls it with a function that opens the database.

use std::{path::Path, process::ExitCode};

use slate_bench_harness::{Report, Result};

use crate::{
    Options, Setup, Subject,
    options::Request,
    peak,
    run::{self, soak::Course},
};

/// Parses the command line, runs the workload on the database that `open` returns, prints tables and writes files.
/// Returns exit code 1 if a result was wrong or anything failed.
///
/// `open` receives an empty directory, which is deleted afterwards, and how to set the database up.
pub fn main<S: Subject>(program: &str, open: impl FnMut(&Path, Setup) -> Result<S>) -> ExitCode {
    match run(program, open) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{program}: {}", slate_bench_harness::error::chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn run<S: Subject>(program: &str, open: impl FnMut(&Path, Setup) -> Result<S>) -> Result<ExitCode> {
    match Options::parse(program, std::env::args_os().skip(1))? {
        Request::Help(text) => {
            print!("{text}");
            Ok(ExitCode::SUCCESS)
        }
        Request::Run(options) => {
            options.shared.pin()?;
            let mut course = None;
            let report = match (options.memory_limit, options.soak) {
                (Some(limit), Some(time)) => {
                    let (report, of_run) = run::soak::run(&options, limit, time, open)?;
                    course = Some(of_run);
                    report
                }
                (Some(limit), None) => run::larger::run(&options, limit, open)?,
                (None, _) => run::run(&options, &peak::of_later_sizes(&options)?, open)?,
            };
            print!("{}", run::tables::markdown(&report));
            if let Some(path) = &options.shared.json {
                report.write(path)?;
            }
            match (course, &options.shared.chart) {
                (Some(course), _) => finish(course, &options)?,
                (None, Some(path)) => run::chart::of(&report).draw(path)?,
                (None, None) => {}
            }
            for how in report.wrong() {
                eprintln!("{program}: wrong: {how}");
            }
            Ok(if is_right(&report) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

/// Writes the course of a soak run to its file, then prints and draws it with the courses of earlier runs.
fn finish(course: Course, options: &Options) -> Result<()> {
    if let Some(path) = &options.course {
        std::fs::write(path, serde_json::to_string(&course)?)?;
    }
    let mut courses = vec![course];
    for path in &options.beside {
        courses.push(serde_json::from_str(&std::fs::read_to_string(path)?)?);
    }
    print!("\n{}", run::soak_chart::table(&courses));
    if let Some(path) = &options.shared.chart {
        std::fs::write(path, run::soak_chart::svg(&courses))?;
    }
    Ok(())
}

/// Returns whether every result was correct or unsupported.
pub fn is_right(report: &Report) -> bool {
    report.wrong().is_empty()
}
