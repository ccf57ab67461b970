use std::io::Write;

use bson::{Document, RawDocumentBuf};
use clap::Args;
use slate_core::Access;

use super::{Run, documents};
use crate::{
    endpoint::{Endpoint, OnSignal},
    failure::{Exit, Failure, Result},
    output,
    session::Session,
};

/// Insert documents: all of them or none
///
/// Prints the _id of each. `import` reads documents from files and from standard input.
#[derive(Clone, Debug, Args)]
pub(crate) struct Insert {
    /// The collection, which is created if it does not exist
    collection: String,
    /// Documents, or arrays of documents: '{ name: "Ada" }'
    #[arg(required = true, value_parser = documents::data, value_name = "DOCUMENT")]
    documents: Vec<documents::Documents>,
}

impl Run for Insert {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let documents: Vec<Document> = self.documents.into_iter().flat_map(|documents| documents.0).collect();
        if documents.is_empty() {
            return Err(Failure::usage("there is no document to insert"));
        }
        let raw = documents.iter().map(RawDocumentBuf::try_from).collect::<Result<Vec<_>, _>>();
        let raw = raw.map_err(|error| Failure::usage(error.to_string()))?;
        let ids = match session.endpoint(Access::CreateOrOpen)? {
            Endpoint::Embedded(database) => {
                let collection = database.collection::<RawDocumentBuf>(&self.collection);
                collection.insert_many(&raw).cancel(session.cancel()).run()?.inserted_ids
            }
            Endpoint::Server(server) => {
                let inserted = server.insert(&self.collection, &raw, OnSignal::End)?;
                if let Some((_, failure)) = inserted.refused.into_iter().next() {
                    return Err(failure.hint("on a server each document is stored by itself: the others are stored"));
                }
                inserted.ids
            }
        };
        for id in ids.into_values() {
            writeln!(session.out(), "{}", output::relaxed(id))?;
        }
        Ok(Exit::Success)
    }
}
