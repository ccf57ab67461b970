use std::io::Write;

use clap::Args;

use super::Run;
use crate::{
    failure::{Exit, Failure, Result},
    session::{self, Session},
};

/// Drop an index
#[derive(Clone, Debug, Args)]
pub(crate) struct DropIndex {
    /// The collection
    collection: String,
    /// The index's name, which `indexes` lists
    index: String,
}

impl Run for DropIndex {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let collection = session::existing(&session.write()?, &self.collection)?;
        if !collection.drop_index(&self.index)? {
            let names: Vec<String> = collection.list_indexes()?.into_iter().map(|index| index.name).collect();
            let message = format!("{} has no index {:?}", self.collection, self.index);
            let failure = Failure::missing(message, 27, "IndexNotFound");
            return Err(match names.as_slice() {
                [] => failure.hint("its only index is the one on _id, which cannot be dropped"),
                names => failure.hint(format!("its indexes are {}", names.join(", "))),
            });
        }
        writeln!(session.out(), "{} dropped", self.index)?;
        Ok(Exit::Success)
    }
}
