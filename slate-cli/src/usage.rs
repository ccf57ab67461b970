use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::{
    failure::{Exit, Failure},
    message::abridged,
    mongosh,
};

/// Longest value of an argument that a message repeats, in characters.
const LONGEST_VALUE: usize = 60;

/// Longest line of a message, in characters.
const LONGEST_LINE: usize = 300;

/// Reports an error of the command line as a message and a hint, without a page of usage; or prints the requested help. `typed` is what
/// was entered from the command on.
pub(crate) fn report(error: &clap::Error, typed: &str) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // There is nothing left to do if this fails.
            let _ = error.print();
            Exit::Success
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Failure::usage("the command ends too early").hint("add --help for what can follow").report()
        }
        ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument => match mongosh::hint(typed) {
            Some(hint) => {
                let typed = abridged(typed.trim(), LONGEST_VALUE);
                Failure::usage(format!("{typed:?} is not a command of slate")).hint(hint).report()
            }
            None => rendered(error).report(),
        },
        _ => failure(error).report(),
    }
}

/// Returns the failure for an error of the command line.
pub(crate) fn failure(error: &clap::Error) -> Failure {
    let invalid = if error.kind() == ErrorKind::ValueValidation { invalid_value(error) } else { None };
    invalid.map_or_else(|| rendered(error), Failure::usage)
}

/// Returns the message for a value that its argument does not accept. For a document, which can be long, it shows only the part around
/// the mistake. `None` if the error does not name the argument, the value and the reason.
fn invalid_value(error: &clap::Error) -> Option<String> {
    use std::error::Error as _;

    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (argument, value) = (context(ContextKind::InvalidArg)?, context(ContextKind::InvalidValue)?);
    let why = error.source()?.to_string();
    Some(match why.contains('\n') {
        true => format!("invalid value for '{argument}': {why}"),
        false => format!("invalid value '{}' for '{argument}': {why}", abridged(value, LONGEST_VALUE)),
    })
}

/// Returns the failure with clap's message and its first hint, without the usage.
fn rendered(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.starts_with("Usage:"));
    let lines: Vec<&str> = paragraphs.flat_map(str::lines).map(str::trim).filter(|line| !line.is_empty()).collect();
    let (mut message, mut hints) = (Vec::new(), Vec::new());
    for line in lines {
        match line.strip_prefix("tip: ").or_else(|| line.strip_prefix("For more information, ")) {
            Some(hint) => hints.push(hint.trim_end_matches('.')),
            None => message.push(abridged(line, LONGEST_LINE)),
        }
    }
    let failure = Failure::usage(message.join("\n  "));
    match hints.first() {
        // For an invalid value the message already says what is wrong.
        Some(_) if error.kind() == ErrorKind::ValueValidation => failure,
        Some(&"try '--help'") => failure.hint("add --help for the arguments"),
        Some(hint) => failure.hint(abridged(hint, LONGEST_LINE)),
        None => failure,
    }
}
