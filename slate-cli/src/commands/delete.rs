use std::io::Write;

use bson::{Document, RawDocumentBuf, doc};
use clap::Args;
use slate_core::{Access, Collection, ExplainVerbosity};

use super::{Run, documents, selection::Terms};
use crate::{
    endpoint::{Endpoint, number},
    failure::{Exit, Result},
    load::refusals,
    session::{self, Session},
};

/// Delete the first document that matches a filter, or all of them with --many
#[derive(Clone, Debug, Args)]
pub(crate) struct Delete {
    /// The collection
    collection: String,
    /// The filter, in MongoDB's query language: '{ _id: 1 }'
    #[arg(value_parser = documents::query)]
    filter: Document,
    /// Delete all documents that match
    #[arg(long)]
    many: bool,
    #[command(flatten)]
    terms: Terms,
}

impl Delete {
    /// Returns MongoDB's command.
    pub(super) fn command(&self) -> Document {
        let mut statement = doc! { "q": self.filter.clone(), "limit": i32::from(!self.many) };
        self.terms.add_to_statement(&mut statement);
        let mut command = doc! { "delete": &self.collection, "deletes": [statement] };
        if let Some(variables) = self.terms.variables() {
            command.insert("let", variables.clone());
        }
        command
    }

    fn delete(&self, collection: &Collection<RawDocumentBuf>, session: &Session) -> slate_core::Delete {
        let delete = if self.many { collection.delete_many(&self.filter) } else { collection.delete_one(&self.filter) };
        self.terms.apply(delete.cancel(session.cancel()))
    }

    pub(super) fn explain(&self, session: &mut Session, verbosity: ExplainVerbosity) -> Result<slate_core::Explain> {
        let collection = session::existing(&session.read()?, &self.collection)?;
        Ok(self.delete(&collection, session).explain(verbosity)?)
    }
}

impl Run for Delete {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let deleted = match session.endpoint(Access::Open)? {
            Endpoint::Embedded(database) => {
                let collection = session::existing(&database, &self.collection)?;
                self.delete(&collection, session).run()?
            }
            target @ Endpoint::Server(_) => {
                target.check(&self.collection)?;
                let reply = target.write(&self.command())?;
                if let Some((_, failure)) = refusals(&reply).next() {
                    return Err(failure);
                }
                number(&reply, "n")
            }
        };
        writeln!(session.out(), "{deleted} deleted")?;
        Ok(Exit::Success)
    }
}
