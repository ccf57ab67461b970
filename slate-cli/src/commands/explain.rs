use std::io::Write;

use bson::{Bson, doc};
use clap::{Args, Subcommand};
use slate_core::{Access, ExplainVerbosity};

use super::{Run, aggregate::Aggregate, count::Count, delete::Delete, distinct::Distinct, find::Find, update::Update};
use crate::{
    failure::{Exit, Result},
    output,
    session::Session,
};

/// Draw the plan of a command, without running it
///
/// Nothing is written, also not with --analyze: of an update or a deletion, the query for its targets is run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Explain {
    /// Run the query, and show the rows, keys, documents, bytes and time of each node
    #[arg(long, global = true)]
    analyze: bool,
    /// Print the plan as a document
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Explained,
}

/// The commands that have a plan.
#[derive(Clone, Debug, Subcommand)]
enum Explained {
    /// Print the documents that match a filter
    Find(Find),
    /// Count the documents that match a filter
    Count(Count),
    /// Print the distinct values of a field
    Distinct(Distinct),
    /// Run an aggregation pipeline
    Aggregate(Aggregate),
    /// Change documents
    Update(Update),
    /// Delete documents
    Delete(Delete),
}

impl Explain {
    /// Prints the reply of a server, whose plan only the server can draw.
    fn run_on_server(self, session: &mut Session) -> Result<Exit> {
        let target = session.endpoint(Access::ReadOnly)?;
        let command = match self.command {
            Explained::Find(find) => find.command(),
            Explained::Count(count) => count.command(),
            Explained::Distinct(distinct) => distinct.command(),
            Explained::Aggregate(aggregate) => aggregate.command(),
            Explained::Update(update) => update.command()?,
            Explained::Delete(delete) => delete.command(),
        };
        let verbosity = if self.analyze { "executionStats" } else { "queryPlanner" };
        let reply = Bson::Document(target.run(&doc! { "explain": command, "verbosity": verbosity })?);
        let text = if self.json { output::relaxed(reply) } else { output::indented(reply) };
        writeln!(session.out(), "{text}")?;
        Ok(Exit::Success)
    }
}

impl Run for Explain {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let verbosity = if self.analyze { ExplainVerbosity::ExecutionStats } else { ExplainVerbosity::QueryPlanner };
        if session.is_server() {
            return self.run_on_server(session);
        }
        let explain = match self.command {
            Explained::Find(find) => find.explain(session, verbosity),
            Explained::Count(count) => count.explain(session, verbosity),
            Explained::Distinct(distinct) => distinct.explain(session, verbosity),
            Explained::Aggregate(aggregate) => aggregate.explain(session, verbosity),
            Explained::Update(update) => update.explain(session, verbosity),
            Explained::Delete(delete) => delete.explain(session, verbosity),
        }?;
        if self.json {
            writeln!(session.out(), "{}", output::relaxed(Bson::Document(explain.to_document())))?;
        } else {
            writeln!(session.out(), "{}", explain.to_string().trim_end())?;
        }
        Ok(Exit::Success)
    }
}
