use bson::doc;
use clap::Args;
use slate_core::{Access, CollectionStats, Database};

use super::{Run, definitions};
use crate::{
    endpoint::{Endpoint, number},
    failure::{Exit, Failure, Result},
    output::Grid,
    session::{self, Session},
};

/// Show the sizes of collections and indexes, in bytes
#[derive(Clone, Debug, Args)]
pub(crate) struct Stats {
    /// The collection; otherwise all, and the files
    collection: Option<String>,
    /// Also measure what is unused in the files, and what the store needs besides; opens the database for writing
    #[arg(long, conflicts_with = "collection")]
    files: bool,
}

impl Stats {
    /// Adds the sizes of the collections that a server reports.
    fn of_server(&self, target: &Endpoint, grid: &mut Grid) -> Result<()> {
        if self.files {
            return Err(Failure::usage("--files measures the files of a database, and not a server")
                .hint("`command '{ dbStats: 1 }'` returns the sizes that the server knows"));
        }
        for name in definitions::one_or_all(target, self.collection.as_ref())? {
            let stats = target.run(&doc! { "collStats": &name })?;
            grid.row([name.clone(), number(&stats, "count").to_string(), number(&stats, "size").to_string()]);
            let sizes = stats.get_document("indexSizes").cloned().unwrap_or_default();
            for index in sizes.keys() {
                grid.row([format!("{name}: index {index}"), String::new(), number(&sizes, index).to_string()]);
            }
        }
        if self.collection.is_none() {
            let stats = target.run(&doc! { "dbStats": 1 })?;
            add_storage(grid, [("the database in all", Some(number(&stats, "totalSize")))]);
        }
        Ok(())
    }
}

impl Run for Stats {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let mut grid = Grid::new(["what", "number", "bytes"]);
        if session.is_server() {
            self.of_server(&session.endpoint(Access::ReadOnly)?, &mut grid)?;
        } else if self.files {
            measured(&session.write()?, &mut grid)?;
        } else {
            let database = session.read()?;
            match &self.collection {
                Some(name) => add(&mut grid, name, &session::existing(&database, name)?.stats()?),
                None => known(&database, &mut grid)?,
            }
        }
        grid.write(session.out(), session::width())?;
        Ok(Exit::Success)
    }
}

/// Adds the sizes that can be measured with read access.
fn known(database: &Database, grid: &mut Grid) -> Result<()> {
    let snapshot = database.snapshot()?;
    for collection in snapshot.list_collections().iter().filter(|collection| collection.view.is_none()) {
        let name = &collection.name;
        add(grid, name, &snapshot.collection::<bson::RawDocumentBuf>(name).stats()?);
    }
    let size = database.size()?;
    add_storage(grid, [("the files in all", size.on_disk), ("main memory", size.in_memory)]);
    Ok(())
}

/// Adds all sizes: stores measure their files only with write access.
fn measured(database: &Database, grid: &mut Grid) -> Result<()> {
    let stats = database.stats()?;
    for (name, collection) in &stats.collections {
        add(grid, name, collection);
    }
    add_storage(
        grid,
        [
            ("the log of changes", stats.changes.map(|log| log.bytes)),
            ("unused space in the files", stats.storage.free),
            ("the store's overhead", stats.storage_overhead_bytes()),
            ("the files in all", stats.storage.on_disk),
            ("main memory", stats.storage.in_memory),
            ("held by the oldest snapshot", stats.oldest_snapshot.and_then(|oldest| oldest.held_bytes)),
        ],
    );
    Ok(())
}

fn add_storage<const N: usize>(grid: &mut Grid, known: [(&str, Option<u64>); N]) {
    for (what, bytes) in known {
        if let Some(bytes) = bytes {
            grid.row([what.to_owned(), String::new(), bytes.to_string()]);
        }
    }
}

fn add(grid: &mut Grid, name: &str, stats: &CollectionStats) {
    grid.row([name.to_owned(), stats.documents.to_string(), stats.document_bytes.to_string()]);
    grid.row([format!("{name}: field tables and keys"), String::new(), stats.record_overhead_bytes().to_string()]);
    for index in &stats.indexes {
        grid.row([format!("{name}: index {}", index.name), index.entries.to_string(), index.bytes.to_string()]);
    }
}
