use std::io::Write;

use bson::{Document, doc};
use clap::Args;
use slate_core::{Access, ExplainVerbosity, Hint};

use super::{Run, documents, selection};
use crate::{
    endpoint::Endpoint,
    failure::{Exit, Result},
    output,
    session::{self, Session},
};

/// Print the distinct values of a field, as extended JSON
#[derive(Clone, Debug, Args)]
pub(crate) struct Distinct {
    /// The collection
    collection: String,
    /// The field, or a path such as address.city
    field: String,
    /// The filter, in MongoDB's query language: '{ age: { $gte: 21 } }'
    #[arg(default_value = "{}", hide_default_value = true, value_parser = documents::query)]
    filter: Document,
    /// The index to use: its name, or its keys
    #[arg(long, value_parser = selection::hint, value_name = "INDEX")]
    hint: Option<Hint>,
    /// Compare strings by a collation: a locale, or '{ locale: "en", strength: 2 }', which ignores case
    #[arg(long, value_parser = documents::collation, value_name = "SPEC")]
    collation: Option<Document>,
    /// Write every type, as canonical extended JSON
    #[arg(long)]
    canonical: bool,
}

impl Distinct {
    /// Returns MongoDB's command.
    pub(super) fn command(&self) -> Document {
        let mut command = doc! { "distinct": &self.collection, "key": &self.field, "query": self.filter.clone() };
        if let Some(hint) = &self.hint {
            selection::add_hint(&mut command, hint);
        }
        if let Some(collation) = &self.collation {
            command.insert("collation", collation.clone());
        }
        command
    }

    fn query(&self, session: &mut Session) -> Result<slate_core::Distinct> {
        let collection = session::existing(&session.read()?, &self.collection)?;
        let mut distinct = collection.distinct(&self.field, &self.filter).cancel(session.cancel());
        if let Some(hint) = &self.hint {
            distinct = distinct.hint(hint.clone());
        }
        Ok(match &self.collation {
            Some(collation) => distinct.collation(collation),
            None => distinct,
        })
    }

    pub(super) fn explain(&self, session: &mut Session, verbosity: ExplainVerbosity) -> Result<slate_core::Explain> {
        Ok(self.query(session)?.explain(verbosity)?)
    }
}

impl Run for Distinct {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let values = match session.endpoint(Access::ReadOnly)? {
            Endpoint::Embedded(_) => self.query(session)?.run()?,
            target @ Endpoint::Server(_) => {
                target.check(&self.collection)?;
                target.run(&self.command())?.get_array("values").cloned().unwrap_or_default()
            }
        };
        for value in values {
            let text = if self.canonical { output::canonical(value) } else { output::relaxed(value) };
            writeln!(session.out(), "{text}")?;
        }
        Ok(Exit::Success)
    }
}
