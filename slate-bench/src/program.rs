//! The whole of a program: each database's `main` calls this with how it is opened.

use std::{path::Path, process::ExitCode};

use slate_bench_harness::{Report, Result};

use crate::{Options, Subject, options::Asked, run};

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
            let report = run::run(&options, open)?;
            print!("{}", run::tables::markdown(&report));
            if let Some(path) = &options.shared.json {
                report.write(path)?;
            }
            Ok(verdict(&report))
        }
    }
}

fn verdict(report: &Report) -> ExitCode {
    let wrong = report.wrong();
    for how in &wrong {
        eprintln!("wrong: {how}");
    }
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
