//! The command line that all benches share.

use std::{ffi::OsString, fmt::Write, path::PathBuf};

use lexopt::{Arg, Parser, ValueExt};

use crate::{Clock, Repeat, Result};

/// What every bench is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// Where to write the report.
    pub json: Option<PathBuf>,
    /// Where to draw it.
    pub chart: Option<PathBuf>,
    /// Only rows whose section or name has one of these in it, whatever the case; all where there are none.
    pub only: Vec<String>,
    /// How often each row is measured at least.
    pub runs: u32,
    /// The seed of the data.
    pub seed: u64,
    /// The core to stay on.
    pub core: Option<usize>,
    /// By which clock times are taken.
    pub clock: Clock,
    /// Where files are put; else in the system's folder for temporary ones.
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

/// A program's name, what it does, and the options it has beside the shared ones: each as it is written, and what it means.
#[derive(Clone, Copy, Debug)]
pub struct Usage<'u> {
    /// The program's name.
    pub program: &'u str,
    /// What it does, in a line.
    pub about: &'u str,
    /// Its own options.
    pub options: &'u [(&'u str, &'u str)],
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A run.
    Run(Arguments),
    /// This text.
    Help(String),
}

/// Whether an option is one of the bench's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It is, and its value was taken.
    Yes,
    /// It is not.
    No,
}

const SHARED: [(&str, &str); 9] = [
    ("--only PATTERN", "only rows whose section or name has PATTERN in it; several: any of them"),
    ("--runs N", "measure each row at least so often (15)"),
    ("--seed S", "the seed of the data (42)"),
    ("--json FILE", "write the report there, for machines"),
    ("--chart FILE.svg", "draw the report there"),
    ("--core N", "stay on this core"),
    ("--clock CLOCK", "wall, or running: without the time in which others had the core (wall; Linux)"),
    ("--folder DIR", "put the database's files below this folder"),
    ("--help", "this text"),
];

impl Usage<'_> {
    /// The text of `--help`.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\nusage: {} [OPTION]…\n\n", self.about, self.program);
        for (option, meaning) in self.options.iter().chain(&SHARED) {
            let _ = writeln!(text, "  {option:<22} {meaning}");
        }
        text
    }

    /// Reads a command line, without the program's name. `own` is asked about each option that is not a shared one, by its
    /// name without the dashes, and takes the value from the parser.
    ///
    /// # Errors
    /// An option that nobody knows, or a value that is none, with the option's name.
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
                name => return Err(format!("there is no option --{name}; --help lists them").into()),
            }
        }
        Ok(Parsed::Run(arguments))
    }
}

fn clock(name: &str) -> Result<Clock> {
    let clock = match name {
        "wall" => Clock::Wall,
        "running" => Clock::Running,
        _ => return Err(format!("there is no clock {name}: it is wall or running").into()),
    };
    if clock.is_there() { Ok(clock) } else { Err(format!("this system has no clock {name}").into()) }
}

impl Arguments {
    /// Whether a row of that section and name is wanted.
    pub fn wants(&self, section: &str, name: &str) -> bool {
        let (section, name) = (section.to_lowercase(), name.to_lowercase());
        self.only.is_empty() || self.only.iter().any(|pattern| section.contains(pattern) || name.contains(pattern))
    }

    /// How often each row is measured.
    pub fn repeat(&self) -> Repeat {
        Repeat { clock: self.clock, ..Repeat::times(self.runs) }
    }

    /// Binds this thread to the core that was asked for.
    ///
    /// # Errors
    /// Where the system does not.
    pub fn pin(&self) -> Result<()> {
        match self.core {
            Some(core) if !crate::pin::to_core(core) => Err(format!("the system does not bind to core {core}").into()),
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
    fn what_is_not_known_is_named() {
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
