use std::io::Write;

use bson::{Bson, Document, RawDocumentBuf, doc};
use clap::Args;
use slate_core::{Access, Collection, ExplainVerbosity, UpdateModifications};

use super::{Run, documents, selection::Terms};
use crate::{
    endpoint::{Endpoint, number},
    failure::{Exit, Failure, Result},
    load::refusals,
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
    /// Checks that the change has operators or is a pipeline; with `--replace`, that it is a document.
    fn check(&self) -> Result<()> {
        match &self.update {
            UpdateModifications::Operators(_) if self.replace => Ok(()),
            _ if self.replace => Err(Failure::usage("a replacement is one document")),
            UpdateModifications::Operators(change)
                if change
                    .iter()
                    .next()
                    .is_none_or(|entry| entry.is_ok_and(|(name, _)| !name.as_str().starts_with('$'))) =>
            {
                Err(Failure::usage("the update holds no operators")
                    .hint("{ $set: … } changes fields, --replace replaces the document"))
            }
            _ => Ok(()),
        }
    }

    /// Returns MongoDB's command.
    pub(super) fn command(&self) -> Result<Document> {
        self.check()?;
        let document = |raw: &RawDocumentBuf| Document::try_from(raw.as_ref()).unwrap_or_default();
        let change: Bson = match &self.update {
            UpdateModifications::Operators(change) => document(change).into(),
            UpdateModifications::Pipeline(stages) => stages.iter().map(document).collect::<Vec<_>>().into(),
            _ => return Err(Failure::usage("an update is a document or an array of stages")),
        };
        let mut statement = doc! { "q": self.filter.clone(), "u": change, "multi": self.many, "upsert": self.upsert };
        if let Some(sort) = &self.sort {
            statement.insert("sort", sort.clone());
        }
        if let Some(filters) = &self.array_filters {
            statement.insert("arrayFilters", filters.0.clone());
        }
        self.terms.add_to_statement(&mut statement);
        let mut command = doc! { "update": &self.collection, "updates": [statement] };
        if let Some(variables) = self.terms.variables() {
            command.insert("let", variables.clone());
        }
        Ok(command)
    }

    fn update(&self, collection: &Collection<RawDocumentBuf>, session: &Session) -> Result<slate_core::Update> {
        self.check()?;
        let mut update = if let (true, UpdateModifications::Operators(replacement)) = (self.replace, &self.update) {
            collection.replace_one(&self.filter, replacement)
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
        let access = if self.upsert { Access::CreateOrOpen } else { Access::Open };
        let (matched, modified, upserted_id) = match session.endpoint(access)? {
            Endpoint::Embedded(database) => {
                let collection = if self.upsert {
                    database.collection(&self.collection)
                } else {
                    session::existing(&database, &self.collection)?
                };
                let result = self.update(&collection, session)?.run()?;
                (result.matched, result.modified, result.upserted_id)
            }
            target @ Endpoint::Server(_) => {
                if !self.upsert {
                    target.check(&self.collection)?;
                }
                let reply = target.write(&self.command()?)?;
                if let Some((_, failure)) = refusals(&reply).next() {
                    return Err(failure);
                }
                let mut upserted = reply.get_array("upserted").into_iter().flatten().filter_map(Bson::as_document);
                let id = upserted.next().and_then(|upserted| upserted.get("_id").cloned());
                let matched = number(&reply, "n").saturating_sub(u64::from(id.is_some()));
                (matched, number(&reply, "nModified"), id)
            }
        };
        let out = session.out();
        write!(out, "{matched} matched, {modified} changed")?;
        match upserted_id {
            Some(id) => writeln!(out, ", 1 inserted with _id {}", output::relaxed(id))?,
            None => writeln!(out)?,
        }
        Ok(Exit::Success)
    }
}
