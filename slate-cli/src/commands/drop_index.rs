use std::io::Write;

use bson::{Document, RawDocumentBuf, doc};
use clap::Args;
use slate_core::Access;

use super::{Run, definitions};
use crate::{
    endpoint::Endpoint,
    failure::{Exit, Failure, Result},
    session::Session,
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
        let target = session.endpoint(Access::Open)?;
        target.check(&self.collection)?;
        let (names, dropped) = match &target {
            Endpoint::Embedded(database) => {
                let collection = database.collection::<RawDocumentBuf>(&self.collection);
                let dropped = collection.drop_index(&self.index)?;
                let names = collection.list_indexes()?.into_iter().map(|index| index.name);
                (names.collect::<Vec<_>>(), dropped)
            }
            Endpoint::Server(_) => {
                let listed = definitions::indexes_of(&target, &self.collection, &Document::new())?;
                let names = listed.iter().filter_map(|index| Some(index.get_str("name").ok()?.to_owned()));
                let names: Vec<String> = names.collect();
                let is_there = names.contains(&self.index);
                if is_there {
                    target.write(&doc! { "dropIndexes": &self.collection, "index": &self.index })?;
                }
                (names, is_there)
            }
        };
        if !dropped {
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
