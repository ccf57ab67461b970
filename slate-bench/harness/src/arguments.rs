//! Command-line options that all benches share.

use std::{ffi::OsString, fmt::Write, path::PathBuf};

use lexopt::{Arg, Parser, ValueExt};

use crate::{Clock, Repeat, Result};

/// The shared options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// File for the JSON report.
    pub json: Option<PathBuf>,
    /// File for the chart.
    pub chart: Option<PathBuf>,
    /// Runs only rows whose section or name contains one of these texts, ignoring case. Empty: all rows.
    pub only: Vec<String>,
    /// Least number of runs per row.
    pub runs: u32,
    /// Seed of the data.
    pub seed: u64,
    /// Core to pin the program to.
    pub core: Option<usize>,
    /// Clock for the measurements.
    pub clock: Clock,
    /// Directory for database files. `None`: the system's temporary directory.
    pub folder: Option<PathBuf>,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            json: None,
            chart: None,
            only: Vec::new(),
            runs: 15,
            seed: 42,
            core: None,
            clock: Clock::Wall,
            folder: None,
        }
    }
}

/// The program's name, purpose and own options for `--help`.
#[derive(Clone, Copy, Debug)]
pub struct Usage<'u> {
    /// The program's name.
    pub program: &'u str,
    /// The purpose, in one line.
    pub about: &'u str,
    /// The program's own options: the option as written, and its meaning.
    pub options: &'u [(&'u str, &'u str)],
}

/// The action that the command line requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Run the benchmark.
    Run(Arguments),
    /// Print this text.
    Help(String),
}

/// Whether a callback has accepted an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Accepted, including its value.
    Yes,
    /// Unknown option.
    No,
}

const SHARED: [(&str, &str); 9] = [
    ("--only PATTERN", "only rows whose section or name contains PATTERN; repeatable"),
    ("--runs N", "least number of runs per row (15)"),
    ("--seed S", "seed of the data (42)"),
    ("--json FILE", "write the report as JSON"),
    ("--chart FILE.svg", "draw a chart of the report"),
    ("--core N", "pin the program to this core"),
    ("--clock CLOCK", "wall, or running: without the time in which the thread was preempted (wall; Linux)"),
    ("--folder DIR", "create the database files in this directory"),
    ("--help", "this text"),
];

impl Usage<'_> {
    /// Formats the text of `--help`.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\nusage: {} [OPTION]…\n\n", self.about, self.program);
        for (option, meaning) in self.options.iter().chain(&SHARED) {
            let _ = writeln!(text, "  {option:<22} {meaning}");
        }
        text
    }

    /// Parses a command line without the program name. Calls `own` for each option that is not shared, with its name
    /// without dashes; `own` takes the value from the parser.
    ///
    /// # Errors
    /// Fails on unknown options, and on invalid values with the option's name.
    pub fn parse(
        &self,
        line: impl IntoIterator<Item = OsString>,
        mut own: impl FnMut(&str, &mut Parser) -> Result<Known>,
    ) -> Result<Parsed> {
        let mut arguments = Arguments::default();
        let mut parser = Parser::from_args(line);
        while let Some(argument) = parser.next()? {
            let name = match argument {
                Arg::Long(name) => name.to_owned(),
                Arg::Short('h') => "help".into(),
                other => return Err(other.unexpected().into()),
            };
            match name.as_str() {
                "help" => return Ok(Parsed::Help(self.text())),
                "json" => arguments.json = Some(parser.value()?.into()),
                "chart" => arguments.chart = Some(parser.value()?.into()),
                "only" => arguments.only.push(parser.value()?.string()?.to_lowercase()),
                "runs" => arguments.runs = parser.value()?.parse()?,
                "seed" => arguments.seed = parser.value()?.parse()?,
                "core" => arguments.core = Some(parser.value()?.parse()?),
                "clock" => arguments.clock = clock(&parser.value()?.string()?)?,
                "folder" => arguments.folder = Some(parser.value()?.into()),
                name if own(name, &mut parser)? == Known::Yes => {}
                name => return Err(format!("unknown option --{name}; see --help").into()),
            }
        }
        Ok(Parsed::Run(arguments))
    }
}

fn clock(name: &str) -> Result<Clock> {
    let clock = match name {
        "wall" => Clock::Wall,
        "running" => Clock::Running,
        _ => return Err(format!("unknown clock {name}; use wall or running").into()),
    };
    if clock.is_available() {
        Ok(clock)
    } else {
        Err(format!("the clock {name} is not available on this system").into())
    }
}

impl Arguments {
    /// Returns whether the row with this section and name is selected.
    pub fn wants(&self, section: &str, name: &str) -> bool {
        let (section, name) = (section.to_lowercase(), name.to_lowercase());
        self.only.is_empty() || self.only.iter().any(|pattern| section.contains(pattern) || name.contains(pattern))
    }

    /// Returns how often each row is measured.
    pub fn repeat(&self) -> Repeat {
        Repeat { clock: self.clock, ..Repeat::times(self.runs) }
    }

    /// Pins this thread to the requested core.
    ///
    /// # Errors
    /// Fails if the system cannot pin threads.
    pub fn pin(&self) -> Result<()> {
        match self.core {
            Some(core) if !crate::pin::to_core(core) => Err(format!("cannot pin to core {core}").into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: Usage<'_> = Usage { program: "x", about: "A bench.", options: &[("--users N", "how many users")] };

    fn parse(line: &[&str]) -> Result<(Parsed, Vec<u64>)> {
        let mut users = Vec::new();
        let parsed = USAGE.parse(line.iter().map(OsString::from), |name, parser| {
            if name != "users" {
                return Ok(Known::No);
            }
            users.push(parser.value()?.parse()?);
            Ok(Known::Yes)
        })?;
        Ok((parsed, users))
    }

    #[test]
    fn shared_options_and_own_ones_are_read_in_any_order() {
        let (parsed, users) = parse(&["--only", "Sort", "--users=2", "--runs", "3", "--only=scan"]).unwrap();
        let expected = Arguments { only: vec!["sort".into(), "scan".into()], runs: 3, ..Arguments::default() };
        assert_eq!((parsed, users), (Parsed::Run(expected), vec![2]));
    }

    #[test]
    fn unknown_options_are_named() {
        assert!(parse(&["--colour"]).unwrap_err().to_string().contains("--colour"));
        assert!(parse(&["--runs", "many"]).unwrap_err().to_string().contains("many"));
        assert!(parse(&["file"]).is_err());
    }

    #[test]
    fn help_lists_own_and_shared_options() {
        let Parsed::Help(text) = parse(&["--help"]).unwrap().0 else { panic!("no help") };
        assert!(text.contains("--users N") && text.contains("--json FILE"), "{text}");
    }

    #[test]
    fn rows_are_chosen_by_section_or_name() {
        let arguments = Arguments { only: vec!["distinct".into()], ..Arguments::default() };
        assert!(arguments.wants("Distinct", "status"));
        assert!(arguments.wants("Queries", "Distinct: status"));
        assert!(!arguments.wants("Queries", "scan"));
        assert!(Arguments::default().wants("Queries", "scan"));
    }
}
