use bson::{Document, doc};
use clap::Args;
use slate_core::{Access, Database, ExplainVerbosity};

use super::{Run, documents, selection};
use crate::{
    endpoint::{Endpoint, Rows, Server},
    failure::{Exit, Failure, Result},
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
    /// Returns MongoDB's command.
    pub(super) fn command(&self) -> Document {
        let pipeline = self.pipeline.0.clone();
        let mut command = doc! { "aggregate": &self.collection, "pipeline": pipeline, "cursor": {} };
        self.terms.add_to(&mut command);
        command
    }

    fn run_on(&self, server: &Server, session: &mut Session) -> Result<Exit> {
        Endpoint::Server(server.clone()).check(&self.collection)?;
        let command = self.command();
        if self.writes() {
            server.write(&command)?;
            return Ok(Exit::Success);
        }
        let format = output::of_results(self.format.format.as_deref())?;
        let open = || server.rows(&command).map(Rows::Server);
        output::write(format, Cells::Plain, session.out(), open, || {})?;
        Ok(Exit::Success)
    }

    fn query(&self, database: &Database, session: &Session) -> Result<slate_core::Aggregate<Document>> {
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
        let access = if self.writes() { Access::Open } else { Access::ReadOnly };
        let database = match session.endpoint(access)? {
            Endpoint::Embedded(database) => database,
            Endpoint::Server(server) => return self.run_on(&server, session),
        };
        let aggregate = self.query(&database, session)?;
        if self.writes() {
            // Runs the pipeline, which returns no documents.
            aggregate.cursor()?.advance()?;
            return Ok(Exit::Success);
        }
        let format = output::of_results(self.format.format.as_deref())?;
        let open = || aggregate.clone().cursor().map(Rows::Embedded).map_err(Failure::from);
        output::write(format, Cells::Plain, session.out(), open, || {})?;
        Ok(Exit::Success)
    }
}
