use std::io::Write;

use clap::Args;

use super::Run;
use crate::{
    failure::{Exit, Result},
    session::Session,
};

/// Return unused space to the file system, as far as the store can
#[derive(Clone, Debug, Args)]
pub(crate) struct Compact {}

impl Run for Compact {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let database = session.write()?;
        let before = database.size()?.on_disk;
        database.compact()?;
        drop(database);
        // Closing the database writes to its file, too.
        session.release()?;
        match (before, session.read()?.size()?.on_disk) {
            (Some(before), Some(after)) => writeln!(session.out(), "{before} bytes before, {after} bytes now")?,
            _ => writeln!(session.out(), "the store has nothing to compact")?,
        }
        Ok(Exit::Success)
    }
}
