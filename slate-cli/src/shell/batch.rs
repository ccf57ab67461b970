use std::io::{BufRead, BufReader};

use super::{
    gather::Gather,
    line::{self, Done},
};
use crate::{
    failure::{Exit, Result},
    input::Stdin,
    message::message,
    session::Session,
};

/// Runs the commands of standard input. Stops after the first command that fails.
///
/// # Errors
/// Fails if standard input or output fails.
pub(super) fn run(mut session: Session) -> Result<Exit> {
    session.enter_standard_input();
    let (exit, finished) = (commands(&mut session), session.finish());
    exit.and_then(|exit| finished.map(|()| exit))
}

fn commands(session: &mut Session) -> Result<Exit> {
    let (mut gather, mut first) = (Gather::default(), 1);
    let input = BufReader::new(Stdin::new(session.interrupt()));
    for (number, line) in (1_u64..).zip(input.lines()) {
        let Some(command) = gather.add(&line?) else { continue };
        match execute(&command, first, session)? {
            Done::Command(Exit::Success) => first = number + 1,
            Done::Command(failed) => return Ok(failed),
            Done::Leave => return Ok(Exit::Success),
        }
    }
    match gather.rest().map(|rest| execute(&rest, first, session)).transpose()? {
        Some(Done::Command(exit)) => Ok(exit),
        Some(Done::Leave) | None => Ok(Exit::Success),
    }
}

fn execute(command: &str, line: u64, session: &mut Session) -> Result<Done> {
    let done = line::execute(command, session)?;
    if !matches!(done, Done::Command(Exit::Success) | Done::Leave) {
        message!("at line {line} of standard input");
    }
    Ok(done)
}
