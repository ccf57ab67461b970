//! `slate`: a shell and command-line tool for Slate databases. docs/cli.md describes it. A library only so that the program can be fuzzed;
//! it has no API.
//!
//! ```text
//! slate redb:shop.slate                                   opens a shell
//! slate redb:shop.slate find users '{ age: { $gte: 21 } }'   runs one command
//! ```
//!
//! | module | task |
//! |---|---|
//! | `arguments` | the command line, and the commands about it |
//! | `commands` | the commands that the shell has, too: one file each, and their table |
//! | `server` | `serve` and `mongod`, with the feature `server` |
//! | `endpoint` | what commands work on: an open database, or one of a server |
//! | `session` | the open database: when it is opened, and with which access |
//! | `input` | formats of files that are imported, and their table |
//! | `json` | documents as people and programs write them |
//! | `load` | writes imported documents in batches and counts |
//! | `output` | formats of results and exports, and their table |
//! | `similar` | suggests correct names for mistyped ones |
//! | `shell` | line editor, history, completion |
//! | `failure` | what went wrong, hints and exit codes |
//! | `interrupt` | what Ctrl-C, SIGTERM and SIGHUP do |
//! | `message` | lines on standard error |
//! | `mongosh` | equivalents of what people type into MongoDB's shell |
//! | `usage` | errors of the command line as a message and a hint |
//! | `fuzz` | what fuzzers call |

#![cfg_attr(
    not(feature = "client"),
    allow(unreachable_code, unused_variables, reason = "without the client there is no value of `endpoint::Server`")
)]

mod arguments;
mod commands;
mod endpoint;
mod failure;
#[doc(hidden)]
pub mod fuzz;
mod input;
mod interrupt;
mod json;
mod load;
mod message;
mod mongosh;
mod output;
mod progress;
#[cfg(feature = "server")]
mod server;
mod session;
mod shell;
mod similar;
#[cfg(test)]
mod testing;
mod usage;

use std::process::ExitCode;

use self::{arguments::Arguments, failure::Exit, interrupt::Interrupt, session::Session};

/// Runs the program.
pub fn main() -> ExitCode {
    silence_panics_of_redb();
    let interrupt = Interrupt::default();
    let exit = match Arguments::read() {
        Ok(arguments) => run(arguments, &interrupt),
        Err(exit) => exit,
    };
    interrupt.exit_code(exit).into()
}

fn run(arguments: Arguments, interrupt: &Interrupt) -> Exit {
    let Arguments { url, command, wait, .. } = arguments;
    let mut session = Session::new(url, wait, interrupt.clone());
    if let Err(failure) = interrupt.listen() {
        return failure.report();
    }
    let result = match command {
        Some(command) => {
            // What was written before a failure is stored, too.
            let (result, finished) = (command.run(&mut session), session.finish());
            result.and_then(|exit| finished.map(|()| exit))
        }
        None => shell::run(session),
    };
    result.unwrap_or_else(|failure| failure.report())
}

/// Hides the messages of panics in redb. A damaged file causes them, and the database returns them as errors.
fn silence_panics_of_redb() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.location().is_some_and(|location| location.file().contains("/redb-")) {
            report(panic);
        }
    }));
}
