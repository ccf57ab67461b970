//! Runs semantic cases from other suites against Slate, as command documents.
//!
//! ```text
//! cargo run --release --example oracle -- [--backend memory|redb|rocksdb|btree|all] [--indexed] FILE…
//! ```

mod arguments;
mod bench;
#[path = "../../tests/with_store/btree.rs"]
mod btree;
mod case;
mod command;
mod compare;
mod indexed;
mod input;
mod report;
mod run;

use std::{
    error::Error,
    fs::File,
    io::{BufRead, Write},
    path::Path,
    process::ExitCode,
};

use self::{
    arguments::{Arguments, Indexes, USAGE},
    bench::{Backend, Bench},
    case::Case,
    report::{Report, Tally, Used},
    run::Outcome,
};

fn main() -> ExitCode {
    let arguments = match arguments::parse() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("oracle: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run_all(&arguments) {
        Ok(Verdict::Passed) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(1),
        Err(error) => {
            eprintln!("oracle: {error}");
            ExitCode::from(2)
        }
    }
}

enum Verdict {
    Passed,
    Failed,
}

fn run_all(arguments: &Arguments) -> Result<Verdict, Box<dyn Error>> {
    let (mut total, mut verdict) = (Tally::default(), Verdict::Passed);
    for backend in &arguments.backends {
        println!("backend {}", backend.name());
        let report = run_on(*backend, arguments)?;
        report.print();
        println!();
        total.add(report.total());
        if report.has_failures() {
            verdict = Verdict::Failed;
        }
    }
    println!("passed {} failed {} unsupported {}", total.passed, total.failed, total.unsupported);
    std::io::stdout().flush()?;
    Ok(verdict)
}

fn run_on(backend: Backend, arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let bench = Bench::open(backend)?;
    let mut report = Report::default();
    for file in &arguments.files {
        each_case(file, |case| {
            let outcome = match arguments.indexes {
                Indexes::TheirOwn => run::run(&bench, case, &[]),
                Indexes::Forced => run_forced(&bench, case, &mut report),
            };
            report.count(case, outcome);
        })?;
    }
    Ok(report)
}

fn each_case(file: &Path, mut visit: impl FnMut(&Case)) -> Result<(), Box<dyn Error>> {
    let name = file.display();
    let source = File::open(file).map_err(|error| format!("{name}: {error}"))?;
    for (number, line) in input::text(source)?.split(b'\n').enumerate() {
        let line = line.map_err(|error| format!("{name}: {error}"))?;
        if !line.trim_ascii().is_empty() {
            let case = Case::parse(&line);
            visit(&case.map_err(|error| format!("{name}, line {}: not a case: {error}", number + 1))?);
        }
    }
    Ok(())
}

/// Runs a case with each of its candidate indexes forced, and without an index. Returns the first outcome that is not a
/// pass.
fn run_forced(bench: &Bench, case: &Case, report: &mut Report) -> Outcome {
    let candidates = indexed::candidates(case);
    let unforced = run::run(bench, case, &candidates);
    if candidates.is_empty() || !indexed::takes_hint(case) || unforced != Outcome::Passed {
        return unforced;
    }
    let mut used = Used::Collection;
    for keys in &candidates {
        match run::run_hinted(bench, case, &candidates, keys) {
            Some((Outcome::Failed(why), _)) => return Outcome::Failed(format!("with the index {keys}: {why}")),
            Some((_, Used::Index)) => used = Used::Index,
            Some((_, Used::Collection)) | None => {}
        }
    }
    report.count_forced(used);
    unforced
}
