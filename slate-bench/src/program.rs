//! The whole of a program: each database's `main` calls this with how it is opened.

use std::{path::Path, process::ExitCode};

use slate_bench_harness::{Report, Result};

use crate::{Options, Subject, options::Asked, peak, run};

/// Reads the command line, runs the workload on what `open` opens, prints tables and writes files. The exit code is 1 where
/// an answer was wrong or anything failed.
///
/// `open` is given an empty folder, which is deleted afterwards, and how many users there are.
pub fn main<S: Subject>(program: &str, open: impl FnMut(&Path, usize) -> Result<S>) -> ExitCode {
    match asked(program, open) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{program}: {}", slate_bench_harness::error::chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn asked<S: Subject>(program: &str, open: impl FnMut(&Path, usize) -> Result<S>) -> Result<ExitCode> {
    match Options::parse(program, std::env::args_os().skip(1))? {
        Asked::Help(text) => {
            print!("{text}");
            Ok(ExitCode::SUCCESS)
        }
        Asked::Run(options) => {
            options.shared.pin()?;
            let peaks = peak::of_later_sizes(&options)?;
            let report = run::run(&options, &peaks, open)?;
            print!("{}", run::tables::markdown(&report));
            if let Some(path) = &options.shared.json {
                report.write(path)?;
            }
            if let Some(path) = &options.shared.chart {
                run::chart::of(&report).draw(path)?;
            }
            for how in report.wrong() {
                eprintln!("{program}: wrong: {how}");
            }
            Ok(if is_right(&report) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

/// Whether every answer was right, or could not be had.
pub fn is_right(report: &Report) -> bool {
    report.wrong().is_empty()
}
