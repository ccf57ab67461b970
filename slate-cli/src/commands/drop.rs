use std::io::Write;

use clap::Args;
use slate_core::Access;

use super::Run;
use crate::{
    failure::{Exit, Result},
    output,
    session::Session,
};

/// Drop a collection with its documents and indexes
#[derive(Clone, Debug, Args)]
pub(crate) struct Drop {
    /// The collection
    collection: String,
}

impl Run for Drop {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let target = session.endpoint(Access::Open)?;
        target.check(&self.collection)?;
        let documents = target.estimated_count(&self.collection)?;
        target.drop_collection(&self.collection)?;
        writeln!(session.out(), "{} with {} dropped", self.collection, output::documents(documents))?;
        Ok(Exit::Success)
    }
}
