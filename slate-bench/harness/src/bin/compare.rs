//! Joins reports of several programs into one table.

use std::{path::PathBuf, process::ExitCode};

use lexopt::{Arg, Parser, ValueExt};
use slate_bench_harness::{
    Failure, Report, Result,
    compare::{Goals, Joined, markdown},
};

const USAGE: &str = "\
Joins the reports of several programs into one Markdown table: medians over rounds, ratios to a baseline, goals.

usage: slate-bench-compare [OPTION]… REPORT.json…

  --goals FILE        baselines and goals, in JSON
  --json FILE         write what was joined there, for machines
  --help              this text

Reports with one name are rounds of one program. Columns stand in the order in which reports are given.
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("slate-bench-compare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let (mut goals, mut json, mut reports) = (Goals::default(), None, Vec::new());
    let mut parser = Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("goals") => goals = Goals::read(&PathBuf::from(parser.value()?))?,
            Arg::Long("json") => json = Some(PathBuf::from(parser.value()?)),
            Arg::Long("help") | Arg::Short('h') => {
                print!("{USAGE}");
                return Ok(());
            }
            Arg::Value(path) => reports.push(Report::read(&PathBuf::from(path.string()?))?),
            other => return Err(Failure::from(other.unexpected())),
        }
    }
    if reports.is_empty() {
        return Err("no reports to join; see --help".into());
    }
    let joined = Joined::new(reports);
    if let Some(path) = json {
        let mut text = serde_json::to_string_pretty(&joined)?;
        text.push('\n');
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    print!("{}", markdown(&joined, &goals));
    Ok(())
}
