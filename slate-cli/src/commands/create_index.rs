use std::{io::Write, time::Duration};

use bson::{Bson, Document, RawDocumentBuf, doc};
use clap::Args;
use slate_core::{Access, Collection, Index};

use super::{Run, documents, selection::bounded};
use crate::{
    endpoint::Endpoint,
    failure::{Exit, Result},
    progress,
    session::Session,
};

/// Create an index; if it was interrupted before, continue
#[derive(Clone, Debug, Args)]
pub(crate) struct CreateIndex {
    /// The collection, which is created if it does not exist
    collection: String,
    /// Its fields, each ascending (1) or descending (-1): '{ org: 1, age: -1 }'; every field: '{ "$**": 1 }'
    #[arg(value_parser = documents::query)]
    keys: Document,
    /// Refuse two documents with the same values
    #[arg(long)]
    unique: bool,
    /// Leave out documents that have none of the fields
    #[arg(long)]
    sparse: bool,
    /// Contain only documents that match this filter
    #[arg(long, value_parser = documents::query, value_name = "FILTER")]
    only: Option<Document>,
    /// Compare strings by a collation: a locale, or '{ locale: "en", strength: 2 }', which ignores case
    #[arg(long, value_parser = documents::collation, value_name = "SPEC")]
    collation: Option<Document>,
    /// Maintain the index, and use it for no query until it is shown
    #[arg(long)]
    hidden: bool,
    /// Make it a TTL index: documents are due this many seconds after their date, and `slate serve` deletes them
    #[arg(long, value_name = "SECONDS")]
    expire_after: Option<u64>,
    /// Limit an index on every field to some, or to all but some: '{ tags: 1 }', '{ text: 0 }'
    #[arg(long, value_parser = documents::query, value_name = "FIELDS")]
    wildcard_projection: Option<Document>,
    /// Its name; otherwise made from the fields
    #[arg(long)]
    name: Option<String>,
}

impl Run for CreateIndex {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let mut index = Index::on(&self.keys);
        if self.unique {
            index = index.unique();
        }
        if self.sparse {
            index = index.sparse();
        }
        if let Some(filter) = &self.only {
            index = index.only(filter);
        }
        if let Some(collation) = &self.collation {
            index = index.collation(collation);
        }
        if self.hidden {
            index = index.hidden();
        }
        if let Some(seconds) = self.expire_after {
            index = index.expire_after(Duration::from_secs(seconds));
        }
        if let Some(projection) = &self.wildcard_projection {
            index = index.wildcard_projection(projection);
        }
        if let Some(name) = &self.name {
            index = index.named(name);
        }
        let name = match session.endpoint(Access::CreateOrOpen)? {
            Endpoint::Embedded(database) => build(&database.collection(&self.collection), index, session)?,
            target @ Endpoint::Server(_) => {
                let (name, definition) = self.definition();
                target.write(&doc! { "createIndexes": &self.collection, "indexes": [definition] })?;
                name
            }
        };
        writeln!(session.out(), "{name}")?;
        Ok(Exit::Success)
    }
}

impl CreateIndex {
    /// Returns the name and the definition of the index, as MongoDB's `createIndexes` expects it.
    fn definition(&self) -> (String, Document) {
        let part = |(field, direction): (&String, &Bson)| match direction {
            Bson::String(kind) => format!("{field}_{kind}"),
            direction => format!("{field}_{direction}"),
        };
        let name = self.name.clone().unwrap_or_else(|| self.keys.iter().map(part).collect::<Vec<_>>().join("_"));
        let mut definition = doc! { "key": self.keys.clone(), "name": &name };
        for (option, is_set) in [("unique", self.unique), ("sparse", self.sparse), ("hidden", self.hidden)] {
            if is_set {
                definition.insert(option, true);
            }
        }
        for (option, value) in [
            ("partialFilterExpression", &self.only),
            ("collation", &self.collation),
            ("wildcardProjection", &self.wildcard_projection),
        ] {
            if let Some(value) = value {
                definition.insert(option, value.clone());
            }
        }
        if let Some(seconds) = self.expire_after {
            definition.insert("expireAfterSeconds", bounded(seconds));
        }
        (name, definition)
    }
}

/// Creates an index, and draws the progress. Returns its name.
///
/// # Errors
/// Fails if the index cannot be created, or if the creation is interrupted.
pub(super) fn build(
    collection: &Collection<RawDocumentBuf>,
    index: Index,
    session: &Session,
) -> slate_core::Result<String> {
    let bar = progress::documents(Some(collection.estimated_document_count()?), collection.name());
    let created = collection.create_index(index).cancel(session.cancel()).progress(|done| bar.set_position(done)).run();
    bar.finish_and_clear();
    created
}
