use std::io::Write;

use clap::Args;

use super::Run;
use crate::{
    failure::{Exit, Result},
    session::Session,
};

/// Print the number of migration steps that the database has
///
/// A program records them with `Database::migrate`; the collection slate.migrations lists them.
#[derive(Clone, Debug, Args)]
pub(crate) struct SchemaVersion {}

impl Run for SchemaVersion {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let version = session.read()?.schema_version()?;
        writeln!(session.out(), "{version}")?;
        Ok(Exit::Success)
    }
}
