use clap::Args;
use clap_complete::Shell;

use super::Run;
use crate::{
    arguments::Arguments,
    failure::{Exit, Result},
    session::Session,
};

/// Print completions for a shell
///
/// For example: slate completions bash > ~/.local/share/bash-completion/completions/slate
#[derive(Clone, Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Run for Completions {
    fn run(self, session: &mut Session) -> Result<Exit> {
        clap_complete::generate(self.shell, &mut Arguments::definition(), "slate", session.out());
        Ok(Exit::Success)
    }
}
