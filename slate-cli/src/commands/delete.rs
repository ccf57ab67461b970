use std::io::Write;

use bson::{Document, RawDocumentBuf};
use clap::Args;
use slate_core::{Collection, ExplainVerbosity};

use super::{Run, documents, selection::Terms};
use crate::{
    failure::{Exit, Result},
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
        let collection = session::existing(&session.write()?, &self.collection)?;
        let deleted = self.delete(&collection, session).run()?;
        writeln!(session.out(), "{deleted} deleted")?;
        Ok(Exit::Success)
    }
}
