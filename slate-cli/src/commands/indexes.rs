use std::io::Write;

use bson::{Bson, Document, doc};
use clap::Args;
use slate_core::{Access, IndexDescription, IndexState};

use super::Run;
use crate::{
    endpoint::Endpoint,
    failure::{Exit, Result},
    output::{self, Grid},
    session::{self, Session},
};

/// List the indexes of a collection
#[derive(Clone, Debug, Args)]
pub(crate) struct Indexes {
    /// The collection
    collection: String,
    /// Print a table, also where the output is not a terminal
    #[arg(long)]
    table: bool,
}

impl Run for Indexes {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let described: Vec<Document> = match session.endpoint(Access::ReadOnly)? {
            Endpoint::Embedded(database) => {
                let indexes = session::existing(&database, &self.collection)?.list_indexes()?;
                let described = std::iter::once(doc! { "name": "_id_", "keys": { "_id": 1 }, "unique": true });
                described.chain(indexes.iter().map(described_index)).collect()
            }
            target @ Endpoint::Server(_) => {
                target.check(&self.collection)?;
                let listed = target.listed(&doc! { "listIndexes": &self.collection })?;
                listed.into_iter().map(described_definition).collect()
            }
        };
        if !self.table && !session::on_terminal() {
            for index in described {
                writeln!(session.out(), "{}", output::relaxed(Bson::Document(index)))?;
            }
            return Ok(Exit::Success);
        }
        let mut grid = Grid::new(["index", "keys", "options"]);
        for mut index in described {
            let (name, keys) = (index.remove("name"), index.remove("keys"));
            let name = name.as_ref().and_then(Bson::as_str).unwrap_or_default().to_owned();
            let options = index.into_iter().map(|(option, value)| match value {
                Bson::Boolean(true) => option,
                value => format!("{option} {}", output::relaxed(value)),
            });
            let options = options.collect::<Vec<_>>().join(", ");
            grid.row([name, keys.map_or_else(String::new, output::relaxed), options]);
        }
        grid.write(session.out(), session::width())?;
        Ok(Exit::Success)
    }
}

/// Describes an index of a server by its definition.
fn described_definition(mut definition: Document) -> Document {
    let name = definition.remove("name").unwrap_or(Bson::Null);
    let mut described = doc! { "name": name, "keys": definition.remove("key").unwrap_or(Bson::Null) };
    if described.get_str("name").is_ok_and(|name| name == "_id_") {
        described.insert("unique", true);
    }
    for (option, value) in definition {
        match &*option {
            "v" | "ns" => {}
            "partialFilterExpression" => drop(described.insert("only", value)),
            _ => drop(described.insert(option, value)),
        }
    }
    described
}

/// Describes an index. Leaves out properties that the index does not have.
fn described_index(index: &IndexDescription) -> Document {
    let document = |raw: &bson::RawDocumentBuf| Document::try_from(raw.as_ref()).unwrap_or_default();
    let mut described = doc! { "name": &index.name, "keys": document(&index.keys) };
    for (option, is_set) in [
        ("unique", index.unique),
        ("sparse", index.sparse),
        ("hidden", index.hidden),
        ("multikey", index.multikey),
        ("building", index.state == IndexState::Building),
    ] {
        if is_set {
            described.insert(option, true);
        }
    }
    if let Some(after) = index.expire_after {
        described.insert("expireAfterSeconds", i64::try_from(after.as_secs()).unwrap_or(i64::MAX));
    }
    for (option, value) in
        [("only", &index.only), ("collation", &index.collation), ("wildcardProjection", &index.wildcard_projection)]
    {
        if let Some(value) = value {
            described.insert(option, document(value));
        }
    }
    described
}
