use std::{io::Write, path::PathBuf};

use clap::{Args, ValueHint};
use slate_core::ErrorKind;

use super::Run;
use crate::{
    failure::{Exit, Failure, Result},
    session::Session,
};

/// Write a copy of the database, as of one commit
///
/// The copy is a database of the same store: the copy of redb:PATH opens as redb:COPY. `restore` creates a database on any
/// store from it.
#[derive(Clone, Debug, Args)]
pub(crate) struct Backup {
    /// The copy, which must not exist: a file, for rocksdb a folder
    #[arg(value_hint = ValueHint::AnyPath)]
    to: PathBuf,
}

impl Run for Backup {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let database = session.read()?;
        database.backup(&self.to).map_err(|error| match error.kind() {
            ErrorKind::Exists => Failure::from(error).hint("a backup never overwrites: choose another path"),
            _ => error.into(),
        })?;
        writeln!(session.out(), "copied to {}", self.to.display())?;
        Ok(Exit::Success)
    }
}
