//! The command line: its arguments, and the commands that are about the command line itself.

mod completions;
mod man;

use std::{ffi::OsString, path::Path, time::Duration};

use clap::{CommandFactory, Parser, Subcommand, error::ErrorKind};

use self::{
    completions::{Complete, Completions},
    man::Man,
};
use crate::{
    commands::Command,
    failure::{Exit, Failure, Result},
    message::abridged,
    mongosh,
    session::Session,
    usage::report,
};

/// A shell and command-line tool for Slate databases.
///
/// `slate URL` opens a shell; `slate URL COMMAND` runs one command. The shell has most commands.
#[derive(Debug, Parser)]
#[command(
    name = "slate",
    version,
    max_term_width = 100,
    subcommand_precedence_over_arg = true,
    after_help = "Exit codes: 0 success; 1 the command failed; 2 the command line is not valid; 3 finished, but some records \
                  were refused, or damage was found; 130 interrupted by Ctrl-C; 143 by SIGTERM; 129 by SIGHUP."
)]
pub(crate) struct Arguments {
    /// The database: redb:PATH, rocksdb:PATH, tikv://PD:PORT/NAME or mongodb://HOST/DATABASE (if built in), or memory:
    #[arg(value_name = "URL", env = "SLATE_URL")]
    pub(crate) url: Option<String>,
    /// How long to wait while another program has the database open: 5s, 1m
    #[arg(
        long,
        global = true,
        default_value = "500ms",
        hide_default_value = true,
        value_parser = duration,
        value_name = "TIME",
        env = "SLATE_WAIT",
        hide_env = true,
        help_heading = "Options of every command"
    )]
    pub(crate) wait: Duration,
    /// How failures are reported on standard error: text or json
    #[arg(
        long = "errors",
        global = true,
        value_parser = ["text", "json"],
        hide_possible_values = true,
        value_name = "FORMAT",
        env = "SLATE_ERRORS",
        hide_env = true,
        help_heading = "Options of every command"
    )]
    _errors: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<Invocation>,
}

/// The commands, including those that the shell lacks.
#[derive(Debug, Subcommand)]
pub(crate) enum Invocation {
    #[command(flatten)]
    Command(Box<Command>),
    Completions(Completions),
    #[command(hide = true)]
    Complete(Complete),
    Man(Man),
    #[cfg(feature = "server")]
    Serve(crate::server::Serve),
    #[cfg(feature = "server")]
    #[command(hide = true)]
    Mongod(crate::server::Mongod),
    #[cfg(feature = "server")]
    User(crate::server::User),
}

impl Invocation {
    /// Executes the command.
    ///
    /// # Errors
    /// Fails as the command does.
    pub(crate) fn run(self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::Command(command) => command.run(session),
            Self::Completions(completions) => completions.run(session),
            Self::Complete(complete) => complete.run(&Arguments::command(), session),
            Self::Man(man) => man.run(Arguments::command(), session),
            #[cfg(feature = "server")]
            Self::Serve(serve) => serve.run(session),
            #[cfg(feature = "server")]
            Self::Mongod(mongod) => mongod.run(session),
            #[cfg(feature = "server")]
            Self::User(user) => user.run(session),
        }
    }
}

impl Arguments {
    /// Parses the command line. If that fails or help is requested, prints the reason or the help, and returns the exit.
    pub(crate) fn read() -> std::result::Result<Self, Exit> {
        let typed = typed();
        if let Some(hint) = mongosh::hint(&typed.join(" ")) {
            let typed = abridged(&typed.join(" "), 60);
            return Err(Failure::usage(format!("{typed:?} is not a command of slate")).hint(hint).report());
        }
        let arguments = Self::try_parse_from(arguments()).map_err(|error| report_unless_mistyped(&error))?;
        if let Some(scheme) = arguments.url.as_deref().filter(|word| ["memory", "redb", "rocksdb"].contains(word)) {
            let url = if scheme == "memory" { "memory:".into() } else { format!("{scheme}:PATH") };
            let failure = Failure::usage(format!("{scheme:?} is not a complete URL")).hint(format!("write {url}"));
            return Err(failure.report());
        }
        if let Some(error) = arguments.url.as_deref().and_then(mistyped) {
            return Err(report(&error, ""));
        }
        if arguments.url.is_none() && arguments.command.is_none() {
            let failure = Failure::usage("no database given");
            return Err(failure.hint("slate redb:PATH opens a shell; slate --help lists the commands").report());
        }
        Ok(arguments)
    }
}

#[cfg(feature = "server")]
impl Arguments {
    /// Reads the command line of `mongod` again, as if these options came first. What the command line says replaces them.
    ///
    /// # Errors
    /// Fails if an option is not valid.
    pub(crate) fn of_mongod(options: &[String]) -> Result<crate::server::Mongod> {
        let mut arguments = arguments();
        let at = arguments.iter().position(|word| word == "mongod").map_or(arguments.len(), |command| command + 1);
        arguments.splice(at..at, options.iter().map(OsString::from));
        match Self::try_parse_from(arguments) {
            Ok(Self { command: Some(Invocation::Mongod(mongod)), .. }) => Ok(mongod),
            Ok(_) => Err(Failure::usage("the configuration file is not one of mongod")),
            Err(error) => Err(crate::usage::failure(&error)),
        }
    }
}

/// Returns the error for a mistyped command in the place of the URL; `None` if the word is a command or cannot be one.
fn mistyped(word: &str) -> Option<clap::Error> {
    let is_name = word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.chars().all(|character| character.is_ascii_alphanumeric() || character == '-');
    let mut commands = Invocation::augment_subcommands(clap::Command::new("slate").no_binary_name(true));
    commands.build();
    let is_mistyped = is_name && commands.find_subcommand(word).is_none();
    if is_mistyped { commands.try_get_matches_from_mut([word]).err() } else { None }
}

fn report_unless_mistyped(error: &clap::Error) -> Exit {
    // The word after the program is in the place of the URL.
    let typed = typed();
    let (first, command) = (typed.first().cloned(), typed.get(1..).unwrap_or_default().join(" "));
    let is_of_use = !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    report(first.filter(|_| is_of_use).as_deref().and_then(mistyped).as_ref().unwrap_or(error), &command)
}

/// Returns the command line. A program that is called `mongod` runs the command of that name.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let is_mongod =
        arguments.first().and_then(|program| Path::new(program).file_stem()).is_some_and(|name| name == "mongod");
    if cfg!(feature = "server") && is_mongod {
        arguments.insert(1, "mongod".into());
    }
    arguments
}

/// Returns the arguments that are valid UTF-8.
fn typed() -> Vec<String> {
    std::env::args_os().skip(1).filter_map(|word| word.into_string().ok()).collect()
}

/// Reads a time with a unit.
pub(crate) fn duration(text: &str) -> std::result::Result<Duration, String> {
    let duration = text.parse::<jiff::SignedDuration>().ok().and_then(|duration| Duration::try_from(duration).ok());
    duration.ok_or_else(|| "expected a time with a unit, such as 500ms, 5s or 1m".into())
}
