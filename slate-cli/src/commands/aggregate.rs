use clap::Args;
use slate_core::{ExplainVerbosity, Hint};

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
    /// The index to use: its name, or its keys
    #[arg(long, value_parser = selection::hint, value_name = "INDEX")]
    hint: Option<Hint>,
    #[command(flatten)]
    format: selection::Format,
}

impl Aggregate {
    fn query(&self, session: &mut Session) -> Result<slate_core::Aggregate<bson::Document>> {
        let database = if self.writes() { session.write()? } else { session.read()? };
        let collection = session::existing(&database, &self.collection)?;
        let aggregate = collection.aggregate(&self.pipeline.0).cancel(session.cancel());
        Ok(match &self.hint {
            Some(hint) => aggregate.hint(hint.clone()),
            None => aggregate,
        })
    }

    /// Whether the pipeline writes its result into a collection.
    fn writes(&self) -> bool {
        self.pipeline.0.last().is_some_and(|stage| stage.contains_key("$out") || stage.contains_key("$merge"))
    }

    pub(super) fn explain(&self, session: &mut Session, verbosity: ExplainVerbosity) -> Result<slate_core::Explain> {
        Ok(self.query(session)?.explain(verbosity)?)
    }
}

impl Run for Aggregate {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let aggregate = self.query(session)?;
        if self.writes() {
            // Once, and there is nothing to print.
            aggregate.cursor()?.advance()?;
            return Ok(Exit::Success);
        }
        let format = output::of_results(self.format.format.as_deref());
        output::write(format, Cells::Plain, session.out(), || aggregate.clone().cursor(), || {})?;
        Ok(Exit::Success)
    }
}
