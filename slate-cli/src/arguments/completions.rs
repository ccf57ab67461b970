use std::io::Write;

use clap::{Args, ValueEnum};

use crate::{
    failure::{Exit, Result},
    session::Session,
    shell,
};

/// Print completions for a shell such as bash
///
/// They complete commands, options, files, and the collections, indexes and fields of the database. For example:
/// slate completions bash > ~/.local/share/bash-completion/completions/slate
#[derive(Clone, Debug, Args)]
pub(crate) struct Completions {
    /// The shell to print completions for
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Fish,
    Zsh,
}

impl Completions {
    /// Executes the command.
    ///
    /// # Errors
    /// Fails if standard output fails.
    pub(super) fn run(self, session: &mut Session) -> Result<Exit> {
        let script = match self.shell {
            Shell::Bash => include_str!("completions/slate.bash"),
            Shell::Fish => include_str!("completions/slate.fish"),
            Shell::Zsh => include_str!("completions/slate.zsh"),
        };
        session.out().write_all(script.as_bytes())?;
        Ok(Exit::Success)
    }
}

/// Print what the last word of a command line can become, one candidate per line
#[derive(Clone, Debug, Args)]
pub(crate) struct Complete {
    /// The command line up to the cursor
    #[arg(allow_hyphen_values = true)]
    line: String,
}

impl Complete {
    /// Executes the command. `definition` is that of the command line.
    ///
    /// # Errors
    /// Fails if standard output fails.
    pub(super) fn run(self, definition: &clap::Command, session: &mut Session) -> Result<Exit> {
        for candidate in shell::complete_command_line(&self.line, definition) {
            writeln!(session.out(), "{candidate}")?;
        }
        Ok(Exit::Success)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::Arguments;
    use crate::shell;

    #[test]
    fn a_command_line_is_completed() {
        let definition = Arguments::command();
        let check = |line: &str, expected: &[&str]| {
            assert_eq!(shell::complete_command_line(line, &definition), expected, "{line}")
        };
        check("slate cou", &["count"]);
        check("slate memo", &["memory:"]);
        check("slate memory: cou", &["count"]);
        check("slate memory: exi", &[]);
        check("slate memory: find users '{ a: 1 }' --form", &["--format"]);
        check("slate memory: find users '{ a: 1 }' --format cs", &["csv"]);
        check("slate completions z", &["zsh"]);
        check("slate memory: find users '{ na", &[]);
    }
}
