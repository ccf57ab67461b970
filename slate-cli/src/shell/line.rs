use clap::{Parser, Subcommand};

use super::words;
use crate::{
    commands::Command,
    failure::{Exit, Failure, Result},
    session::Session,
    usage,
};

/// A line of the shell.
#[derive(Debug, Parser)]
#[command(
    name = "slate",
    no_binary_name = true,
    disable_help_flag = true,
    disable_version_flag = true,
    max_term_width = 100,
    help_template = "{subcommands}",
    arg_required_else_help = false
)]
struct Line {
    #[command(subcommand)]
    command: Option<ShellCommand>,
}

/// The commands of the command line, and those of the shell itself.
#[derive(Debug, Subcommand)]
enum ShellCommand {
    #[command(flatten)]
    Command(Box<Command>),
    /// Leave the shell
    #[command(visible_alias = "quit")]
    Exit,
}

/// The result of executing a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// A command ran or failed; the failure is already reported.
    Command(Exit),
    /// The shell ends.
    Leave,
}

/// Parses and executes a line, and reports what goes wrong.
///
/// # Errors
/// Fails if standard output fails.
pub(super) fn execute(text: &str, session: &mut Session) -> Result<Done> {
    let Ok(words) = words::split(text) else {
        return Ok(Done::Command(Failure::usage("a bracket or a quote is not closed").report()));
    };
    let line = match Line::try_parse_from(words.into_iter().map(|word| word.text)) {
        Ok(line) => line,
        Err(error) => return Ok(Done::Command(usage::report(&error, text))),
    };
    let exit = match line.command {
        None => Exit::Success,
        Some(ShellCommand::Exit) => return Ok(Done::Leave),
        Some(ShellCommand::Command(command)) => {
            let result = command.run(session).and_then(|exit| session.end_command().map(|()| exit));
            session.interrupt().reset();
            session.flush()?;
            result.unwrap_or_else(|failure| failure.report())
        }
    };
    Ok(Done::Command(exit))
}

/// Returns the definition of the shell's command line.
pub(super) fn definition() -> clap::Command {
    use clap::CommandFactory;
    Line::command()
}
