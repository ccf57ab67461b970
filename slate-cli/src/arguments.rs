use clap::{CommandFactory, Parser, error::ErrorKind};

use crate::{commands::Command, failure::Exit, message::message, shell};

/// A shell and command-line tool for Slate databases.
///
/// `slate URL` opens a shell; `slate URL COMMAND` runs one command. The shell understands the same commands.
#[derive(Debug, Parser)]
#[command(
    name = "slate",
    version,
    max_term_width = 100,
    subcommand_precedence_over_arg = true,
    after_help = "Exit codes: 0 success; 1 the command failed; 2 the command line is not valid; 3 finished, but some records \
                  were refused, or damage was found; 130 interrupted by Ctrl-C."
)]
pub(crate) struct Arguments {
    /// The database: redb:PATH, rocksdb:PATH (if built in), or memory:
    #[arg(value_name = "URL", env = "SLATE_URL")]
    pub(crate) url: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Arguments {
    /// Reads the command line. Prints help, or what is wrong.
    pub(crate) fn read() -> Result<Self, Exit> {
        let arguments = Self::try_parse().map_err(|error| report_unless_mistyped(&error))?;
        if let Some(scheme) = arguments.url.as_deref().filter(|word| ["memory", "redb", "rocksdb"].contains(word)) {
            let url = if scheme == "memory" { "memory:".into() } else { format!("{scheme}:PATH") };
            message!("slate: {scheme:?} is not a complete URL\nhint: write {url}");
            return Err(Exit::Usage);
        }
        if let Some(error) = arguments.url.as_deref().and_then(mistyped) {
            return Err(report(&error));
        }
        if arguments.url.is_none() && arguments.command.is_none() {
            message!("slate: no database given\nhint: slate redb:PATH opens a shell; slate --help lists the commands");
            return Err(Exit::Usage);
        }
        Ok(arguments)
    }

    /// Returns the definition of the command line.
    pub(crate) fn definition() -> clap::Command {
        Self::command()
    }
}

/// Returns the error of a word that is not a URL, but stands in its place: a command whose name is mistyped.
fn mistyped(word: &str) -> Option<clap::Error> {
    let is_name = word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.chars().all(|character| character.is_ascii_alphanumeric() || character == '-');
    let mut commands = shell::definition();
    commands.build();
    let is_mistyped = is_name && commands.find_subcommand(word).is_none();
    if is_mistyped { commands.try_get_matches_from_mut([word]).err() } else { None }
}

fn report_unless_mistyped(error: &clap::Error) -> Exit {
    // The word after the program is in the place of the URL.
    let first = std::env::args().nth(1);
    let is_of_use = !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    report(first.filter(|_| is_of_use).as_deref().and_then(mistyped).as_ref().unwrap_or(error))
}

/// Prints an error of the command line as a message and a hint, without a page of usage; or the help that was asked for.
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
