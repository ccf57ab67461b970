//! The program `slate-trials`; see the library.

use std::{path::PathBuf, process::ExitCode};

use lexopt::{Arg, ValueExt};
use slate_trials::{changes, crash, isolation, simulation};

const USAGE: &str = "usage: slate-trials crashes [--store redb|rocksdb] [--kills N] [--seed N]
       slate-trials power [--cuts N] [--seed N]
       slate-trials full-device [--rounds N]
       slate-trials changes [--store redb|rocksdb] [--kills N] [--seed N]
       slate-trials isolation [--store memory|redb|rocksdb|tikv://HOST:PORT] [--histories N] [--seed N]
       slate-trials simulation [--schedules N] [--seed N]
       slate-trials --fuzz TARGET FILE
       slate-trials --corpus FOLDER";

fn main() -> ExitCode {
    match run() {
        Ok(broken) if broken.is_empty() => ExitCode::SUCCESS,
        Ok(broken) => {
            broken.iter().for_each(|promise| eprintln!("BROKEN: {promise}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<slate_trials::Broken, lexopt::Error> {
    let mut arguments = lexopt::Parser::from_env();
    let mut trial = None;
    let (mut store, mut rounds, mut seed) = ("redb".to_owned(), 25, fastrand::u64(..));
    while let Some(argument) = arguments.next()? {
        match argument {
            // The writer that `crashes` kills.
            Arg::Long("writer") => {
                let folder = PathBuf::from(arguments.value()?);
                crash::write(&folder, &arguments.value()?.string()?, arguments.value()?.parse()?);
                return Ok(Vec::new());
            }
            // The writer whose device `full-device` fills.
            #[cfg(unix)]
            Arg::Long("full-device") => {
                let (folder, full) = (PathBuf::from(arguments.value()?), PathBuf::from(arguments.value()?));
                let written = crash::write_to_full_device(&folder, &full, arguments.value()?.parse()?);
                written.map_err(|error| format!("{error:?}"))?;
                return Ok(Vec::new());
            }
            // The processes that `changes` kills.
            Arg::Long("changes-writer") => {
                let folder = PathBuf::from(arguments.value()?);
                changes::write(&folder, &arguments.value()?.string()?, arguments.value()?.parse()?);
                return Ok(Vec::new());
            }
            Arg::Long("changes-follower") => {
                let folder = PathBuf::from(arguments.value()?);
                changes::follow(&folder, &arguments.value()?.string()?);
                return Ok(Vec::new());
            }
            Arg::Long("store") => store = arguments.value()?.string()?,
            Arg::Long("kills" | "cuts" | "rounds" | "histories" | "schedules") => {
                rounds = arguments.value()?.parse()?
            }
            Arg::Long("seed") => seed = arguments.value()?.parse()?,
            // One input of a fuzz target: `--fuzz TARGET FILE`, to see what it does.
            Arg::Long("fuzz") => {
                let target = arguments.value()?.string()?;
                let input = std::fs::read(arguments.value()?).map_err(|error| error.to_string())?;
                slate_trials::fuzz::run(&target, &input);
                return Ok(Vec::new());
            }
            // The inputs with which fuzzers begin.
            Arg::Long("corpus") => {
                let folder = PathBuf::from(arguments.value()?);
                slate_trials::fuzz::write_corpus(&folder).map_err(|error| error.to_string())?;
                return Ok(Vec::new());
            }
            Arg::Value(name) if trial.is_none() => trial = Some(name.string()?),
            other => return Err(other.unexpected()),
        }
    }
    let chosen =
        matches!(trial.as_deref(), Some("crashes" | "changes" | "isolation")).then(|| format!("store {store}, "));
    println!("{}{rounds} rounds, seed {seed}", chosen.unwrap_or_default());
    match trial.as_deref() {
        Some("crashes") => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let trial = crash::CrashTrial { program, store, kills: rounds, seed };
            Ok(crash::run(&trial, |line| println!("{line}")))
        }
        #[cfg(unix)]
        Some("power") => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let trial = crash::PowerTrial { program, cuts: rounds, seed };
            Ok(crash::cut(&trial, |line| println!("{line}")).map_err(|error| error.to_string())?)
        }
        #[cfg(unix)]
        Some("full-device") => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let trial = crash::FullDeviceTrial { program, rounds };
            Ok(crash::fill(&trial).map_err(|error| error.to_string())?)
        }
        Some("changes") => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let trial = changes::ChangesTrial { program, store, kills: rounds, seed };
            Ok(changes::run(&trial, |line| println!("{line}")))
        }
        Some("isolation") => {
            Ok(isolation::run(&isolation::IsolationTrial { store, histories: rounds, seed }, |line| println!("{line}")))
        }
        Some("simulation") => {
            let trial = simulation::SimulationTrial { schedules: rounds, seed, sabotage: simulation::Sabotage::None };
            Ok(simulation::run(&trial, |line| println!("{line}")))
        }
        _ => Err("name a trial".into()),
    }
}
