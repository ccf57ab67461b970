use std::{io::Write, path::PathBuf};

use bson::rawdoc;
use clap::{Args, ValueHint};
use slate_core::{Access, ErrorKind};

use super::Run;
use crate::{
    endpoint::Endpoint,
    failure::{Exit, Failure, Result},
    session::Session,
};

/// MongoDB's code for a command that a server does not have.
const COMMAND_NOT_FOUND: i32 = 59;

/// Write a copy of the database, as of one commit
///
/// The copy is a database of the same store: the copy of redb:PATH opens as redb:COPY. `restore` creates a database on any
/// store from it. Of a server that runs, the copy is a file in the folder that its option --backup-directory names.
#[derive(Clone, Debug, Args)]
pub(crate) struct Backup {
    /// The copy, which must not exist: a file, for rocksdb a folder; of a server, a name in its folder
    #[arg(value_hint = ValueHint::AnyPath)]
    to: PathBuf,
}

impl Run for Backup {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let database = match session.endpoint(Access::ReadOnly)? {
            Endpoint::Embedded(database) => database,
            Endpoint::Server(server) => {
                let name = self.to.to_str().ok_or_else(|| Failure::usage("the name of the copy is no text"))?;
                let reply =
                    server.run_on_admin(rawdoc! { "backup": name }).map_err(|failure| match failure.number() {
                        Some(COMMAND_NOT_FOUND) => {
                            failure.hint("only Slate's server has it: `copy` writes the collections of any")
                        }
                        _ => failure,
                    })?;
                writeln!(session.out(), "copied to {} on the server", reply.get_str("path").unwrap_or(name))?;
                return Ok(Exit::Success);
            }
        };
        database.backup(&self.to).map_err(|error| match error.kind() {
            ErrorKind::Exists => Failure::from(error).hint("a backup never overwrites: choose another path"),
            _ => error.into(),
        })?;
        writeln!(session.out(), "copied to {}", self.to.display())?;
        Ok(Exit::Success)
    }
}
