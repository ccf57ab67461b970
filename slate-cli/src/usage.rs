use clap::error::ErrorKind;

use crate::{failure::Exit, message::message};

/// Prints an error of the command line as a message and a hint, without a page of usage; or the requested help.
pub(crate) fn report(error: &clap::Error) -> Exit {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // There is nothing left to do if this fails.
        let _ = error.print();
        return Exit::Success;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        message!("slate: the command ends too early\nhint: add --help for what can follow");
        return Exit::Usage;
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.starts_with("Usage:"));
    let lines: Vec<&str> = paragraphs.flat_map(str::lines).map(str::trim).filter(|line| !line.is_empty()).collect();
    let (mut message, mut hints) = (Vec::new(), Vec::new());
    for line in lines {
        match line.strip_prefix("tip: ").or_else(|| line.strip_prefix("For more information, ")) {
            Some(hint) => hints.push(hint.trim_end_matches('.')),
            None => message.push(line),
        }
    }
    message!("slate: {}", message.join("\n  "));
    // For an invalid value the message already says what is wrong, so the hint is left out.
    let hint = hints.first().filter(|_| error.kind() != ErrorKind::ValueValidation);
    if let Some(hint) = hint {
        message!("hint: {}", if *hint == "try '--help'" { "add --help for the arguments" } else { hint });
    }
    Exit::Usage
}
