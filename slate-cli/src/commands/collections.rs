use std::io::Write;

use bson::{RawDocumentBuf, doc};
use clap::Args;
use slate_core::Access;

use super::{Run, definitions};
use crate::{
    endpoint::Endpoint,
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

impl Collections {
    fn run_on(&self, target: &Endpoint, session: &mut Session) -> Result<Exit> {
        if !self.table && !session::on_terminal() {
            for name in target.names()? {
                writeln!(session.out(), "{name}")?;
            }
            return Ok(Exit::Success);
        }
        let mut grid = Grid::new(["collection", "documents", "indexes"]);
        for (name, metadata) in definitions::read(target)? {
            let documents = target.estimated_count(&name)?;
            let indexes = match metadata.options.get_str("viewOn") {
                Ok(source) => format!("view on {source}"),
                Err(_) => target.listed(&doc! { "listIndexes": &name })?.len().to_string(),
            };
            grid.row([name, documents.to_string(), indexes]);
        }
        grid.write(session.out(), session::width())?;
        Ok(Exit::Success)
    }
}

impl Run for Collections {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let database = match session.endpoint(Access::ReadOnly)? {
            Endpoint::Embedded(database) => database,
            target @ Endpoint::Server(_) => return self.run_on(&target, session),
        };
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
