use std::{io::Write, path::PathBuf};

use clap::{Args, ValueHint};

use crate::{
    failure::{Exit, Failure, Result},
    session::Session,
};

/// Write manual pages: slate.1, and one per command
#[derive(Clone, Debug, Args)]
pub(crate) struct Man {
    /// The folder for all pages; otherwise the main page is printed
    #[arg(value_hint = ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

impl Man {
    /// Executes the command. `definition` is that of the command line.
    ///
    /// # Errors
    /// Fails if a page cannot be written.
    pub(super) fn run(self, definition: clap::Command, session: &mut Session) -> Result<Exit> {
        match self.folder {
            Some(folder) => {
                std::fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, error))?;
                clap_mangen::generate_to(definition, &folder).map_err(|error| Failure::file(&folder, error))?;
                writeln!(session.out(), "manual pages written to {}", folder.display())?;
            }
            None => clap_mangen::Man::new(definition).render(session.out())?,
        }
        Ok(Exit::Success)
    }
}
