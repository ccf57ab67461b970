//! The shell: the commands of the command line, read from a prompt with history, editing and completion, or from a file.

mod batch;
mod complete;
mod gather;
mod history;
mod line;
mod operators;
mod paths;
mod prompt;
mod scanner;
mod words;

pub(crate) use complete::command_line as complete_command_line;

use std::io::{self, IsTerminal};

use crate::{
    failure::{Exit, Result},
    session::Session,
};

/// Runs commands until the input ends. Reads them from a prompt if standard input is a terminal, otherwise from
/// standard input itself.
///
/// # Errors
/// Fails if the terminal or the input fails.
pub(crate) fn run(session: Session) -> Result<Exit> {
    if io::stdin().is_terminal() { prompt::run(session) } else { batch::run(session) }
}
