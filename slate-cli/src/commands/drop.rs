use std::io::Write;

use clap::Args;

use super::Run;
use crate::{
    failure::{Exit, Result},
    output,
    session::{self, Session},
};

/// Drop a collection with its documents and indexes
#[derive(Clone, Debug, Args)]
pub(crate) struct Drop {
    /// The collection
    collection: String,
}

impl Run for Drop {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let collection = session::existing(&session.write()?, &self.collection)?;
        let documents = collection.estimated_document_count()?;
        collection.drop()?;
        writeln!(session.out(), "{} with {} dropped", self.collection, output::documents(documents))?;
        Ok(Exit::Success)
    }
}
