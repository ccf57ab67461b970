use std::io::Write;

use bson::{Document, RawDocumentBuf};
use clap::Args;
use slate_core::{Collection, ExplainVerbosity, UpdateModifications};

use super::{Run, documents, selection::Terms};
use crate::{
    failure::{Exit, Failure, Result},
    output,
    session::{self, Session},
};

/// Change the first document that matches a filter, or all of them with --many
#[derive(Clone, Debug, Args)]
pub(crate) struct Update {
    /// The collection
    collection: String,
    /// The filter, in MongoDB's query language: '{ _id: 1 }'
    #[arg(value_parser = documents::query)]
    filter: Document,
    /// The change: '{ $set: { name: "Ada" } }', or an array of stages that compute it
    #[arg(value_parser = documents::update)]
    update: UpdateModifications,
    /// Change all documents that match
    #[arg(long)]
    many: bool,
    /// Replace the document by the second one, which holds no operators
    #[arg(long, conflicts_with = "many")]
    replace: bool,
    /// Insert a document if none matches
    #[arg(long)]
    upsert: bool,
    /// The first document in this order: '{ age: -1 }'
    #[arg(long, value_parser = documents::query, value_name = "SORT", conflicts_with = "many")]
    sort: Option<Document>,
    /// Conditions on the array elements that an identifier in a path stands for: '[{ tag: { $gt: 5 } }]'
    #[arg(long, value_parser = documents::pipeline, value_name = "FILTERS", conflicts_with = "replace")]
    array_filters: Option<documents::Documents>,
    #[command(flatten)]
    terms: Terms,
}

impl Update {
    fn update(&self, collection: &Collection<RawDocumentBuf>, session: &Session) -> Result<slate_core::Update> {
        let mut update = if self.replace {
            let UpdateModifications::Operators(replacement) = &self.update else {
                return Err(Failure::usage("a replacement is one document"));
            };
            collection.replace_one(&self.filter, replacement)
        } else if let UpdateModifications::Operators(change) = &self.update
            && change.iter().next().is_none_or(|entry| entry.is_ok_and(|(name, _)| !name.as_str().starts_with('$')))
        {
            return Err(Failure::usage("the update holds no operators")
                .hint("{ $set: … } changes fields, --replace replaces the document"));
        } else if self.many {
            collection.update_many(&self.filter, self.update.clone())
        } else {
            collection.update_one(&self.filter, self.update.clone())
        };
        if self.upsert {
            update = update.upsert();
        }
        if let Some(sort) = &self.sort {
            update = update.sort(sort);
        }
        if let Some(filters) = &self.array_filters {
            update = update.array_filters(&filters.0);
        }
        Ok(self.terms.apply(update.cancel(session.cancel())))
    }

    pub(super) fn explain(&self, session: &mut Session, verbosity: ExplainVerbosity) -> Result<slate_core::Explain> {
        let collection = session::existing(&session.read()?, &self.collection)?;
        Ok(self.update(&collection, session)?.explain(verbosity)?)
    }
}

impl Run for Update {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let collection = if self.upsert {
            session.create()?.collection(&self.collection)
        } else {
            session::existing(&session.write()?, &self.collection)?
        };
        let result = self.update(&collection, session)?.run()?;
        let out = session.out();
        write!(out, "{} matched, {} changed", result.matched, result.modified)?;
        match result.upserted_id {
            Some(id) => writeln!(out, ", 1 inserted with _id {}", output::relaxed(id))?,
            None => writeln!(out)?,
        }
        Ok(Exit::Success)
    }
}
