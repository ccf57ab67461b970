use clap::Args;
use slate_core::{Database, ExplainVerbosity};

use super::{Run, documents, selection};
use crate::{
    failure::{Exit, Result},
    output::{self, Cells},
    session::{self, Session},
};

/// Run an aggregation pipeline
#[derive(Clone, Debug, Args)]
pub(crate) struct Aggregate {
    /// The collection
    collection: String,
    /// The stages: '[{ $match: { year: 1979 } }, { $sortByCount: "$genre" }]'
    #[arg(value_parser = documents::pipeline)]
    pipeline: documents::Documents,
    #[command(flatten)]
    terms: selection::Terms,
    #[command(flatten)]
    format: selection::Format,
}

impl Aggregate {
    fn query(&self, database: &Database, session: &Session) -> Result<slate_core::Aggregate<bson::Document>> {
        let collection = session::existing(database, &self.collection)?;
        Ok(self.terms.apply(collection.aggregate(&self.pipeline.0).cancel(session.cancel())))
    }

    /// Returns whether the pipeline writes its result into a collection.
    fn writes(&self) -> bool {
        documents::write(self.pipeline.0.iter())
    }

    pub(super) fn explain(&self, session: &mut Session, verbosity: ExplainVerbosity) -> Result<slate_core::Explain> {
        let database = session.read()?;
        Ok(self.query(&database, session)?.explain(verbosity)?)
    }
}

impl Run for Aggregate {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let database = if self.writes() { session.write()? } else { session.read()? };
        let aggregate = self.query(&database, session)?;
        if self.writes() {
            // Runs the pipeline, which returns no documents.
            aggregate.cursor()?.advance()?;
            return Ok(Exit::Success);
        }
        let format = output::of_results(self.format.format.as_deref())?;
        output::write(format, Cells::Plain, session.out(), || aggregate.clone().cursor(), || {})?;
        Ok(Exit::Success)
    }
}
