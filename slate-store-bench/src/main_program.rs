use std::process::ExitCode;

use lexopt::ValueExt as _;
use slate_bench_harness::{About, Arguments, Known, Parsed, Report, Result, Usage, error};

use crate::{
    Documents, Subject,
    bench::{self, Bench},
    documents, workload,
};

/// Runs the program of a key-value store: parses the command line, measures, prints the tables and writes the report.
/// Returns failure if a result was wrong.
pub fn run_keys_and_values<S: Subject>() -> ExitCode {
    run(S::about(), workload::run::<S>)
}

/// Runs the program of a document store, like [`run_keys_and_values`].
pub fn run_documents<D: Documents>() -> ExitCode {
    run(D::about(), documents::run::<D>)
}

/// Runs the program of a store with keys and values and with documents.
pub fn run_all<S: Subject, D: Documents>() -> ExitCode {
    run(S::about(), |bench| {
        workload::run::<S>(bench);
        documents::run::<D>(bench);
    })
}

fn run(about: About, work: impl FnOnce(&mut Bench)) -> ExitCode {
    match try_run(about, work) {
        Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
        Ok(wrong) => {
            eprintln!("wrong:\n  {}", wrong.join("\n  "));
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("{}", error::chain(&failure));
            ExitCode::from(2)
        }
    }
}

fn try_run(about: About, work: impl FnOnce(&mut Bench)) -> Result<Vec<String>> {
    let mut records = 100_000;
    let options = [("--records N", "entries per store in general tables (100,000)")];
    let usage = Usage {
        program: "slate-store-bench",
        about: "Measures a key-value store: the operations of the store contract, and the benchmarks of other stores.",
        options: &options,
    };
    let parsed = usage.parse(std::env::args_os().skip(1), |name, parser| {
        if name != "records" {
            return Ok(Known::No);
        }
        records = parser.value()?.parse()?;
        Ok(Known::Yes)
    })?;
    let arguments = match parsed {
        Parsed::Help(text) => {
            println!("{text}");
            return Ok(Vec::new());
        }
        Parsed::Run(arguments) => arguments,
    };
    arguments.pin()?;
    let report = measured(about, arguments, records, work)?;
    Ok(report.wrong())
}

fn measured(about: About, arguments: Arguments, records: u64, work: impl FnOnce(&mut Bench)) -> Result<Report> {
    if records < 10_000 {
        return Err("--records must be at least 10,000".into());
    }
    let (json, report) = (arguments.json.clone(), Report::begin("slate-store-bench", about, arguments.seed));
    let mut bench = Bench::new(arguments, records, report);
    work(&mut bench);
    let report = bench.into_report();
    println!("# {} {}\n", report.about.name, report.about.version);
    println!("{}", bench::tables(&report));
    if let Some(json) = json {
        report.write(&json)?;
    }
    Ok(report)
}
