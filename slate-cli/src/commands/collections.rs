use std::io::Write;

use bson::RawDocumentBuf;
use clap::Args;

use super::Run;
use crate::{
    failure::{Exit, Result},
    output::Grid,
    session::{self, Session},
};

/// List the collections and views
///
/// On a terminal also their numbers of documents and indexes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Collections {
    /// Print a table, also where the output is not a terminal
    #[arg(long)]
    table: bool,
}

impl Run for Collections {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let database = session.read()?;
        let collections = database.list_collections()?;
        if !self.table && !session::on_terminal() {
            for collection in collections {
                writeln!(session.out(), "{}", collection.name)?;
            }
            return Ok(Exit::Success);
        }
        let mut grid = Grid::new(["collection", "documents", "indexes"]);
        for collection in collections {
            let documents = database.collection::<RawDocumentBuf>(&collection.name).estimated_document_count()?;
            let indexes = match &collection.view {
                Some(view) => format!("view on {}", view.on()),
                // The index on `_id` is not listed.
                None => (collection.indexes.len() + 1).to_string(),
            };
            grid.row([collection.name, documents.to_string(), indexes]);
        }
        grid.write(session.out(), session::width())?;
        Ok(Exit::Success)
    }
}
