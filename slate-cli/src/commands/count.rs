use std::io::Write;

use bson::{Document, doc};
use clap::Args;
use slate_core::{Access, ExplainVerbosity};

use super::{
    Run,
    selection::{Selection, Slice},
};
use crate::{
    endpoint::{Endpoint, Server, number},
    failure::{Exit, Result},
    session::{self, Session},
};

/// Count the documents that match a filter
#[derive(Clone, Debug, Args)]
pub(crate) struct Count {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    slice: Slice,
}

impl Count {
    /// Returns MongoDB's command: an aggregation if there are variables, which `count` does not have.
    pub(super) fn command(&self) -> Document {
        let Selection { collection, filter, terms } = &self.selection;
        let mut command = if terms.variables().is_some() {
            let mut stages = vec![doc! { "$match": filter.clone() }];
            for name in ["$skip", "$limit"] {
                let mut stage = Document::new();
                self.slice.add_to(&mut stage, "$skip", "$limit");
                stages.extend(stage.remove(name).map(|number| doc! { name: number }));
            }
            stages.push(doc! { "$count": "n" });
            doc! { "aggregate": collection, "pipeline": stages, "cursor": {} }
        } else {
            let mut count = doc! { "count": collection, "query": filter.clone() };
            self.slice.add_to(&mut count, "skip", "limit");
            count
        };
        terms.add_to(&mut command);
        command
    }

    fn run_on(&self, server: &Server) -> Result<u64> {
        let target = Endpoint::Server(server.clone());
        target.check(&self.selection.collection)?;
        let command = self.command();
        Ok(match self.selection.terms.variables() {
            Some(_) => target.listed(&command)?.first().map_or(0, |row| number(row, "n")),
            None => number(&target.run(&command)?, "n"),
        })
    }

    fn query(&self, session: &mut Session) -> Result<slate_core::Count> {
        let collection = session::existing(&session.read()?, &self.selection.collection)?;
        Ok(self.slice.apply(self.selection.find(&collection, session)).count())
    }

    pub(super) fn explain(&self, session: &mut Session, verbosity: ExplainVerbosity) -> Result<slate_core::Explain> {
        Ok(self.query(session)?.explain(verbosity)?)
    }
}

impl Run for Count {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let count = match session.endpoint(Access::ReadOnly)? {
            Endpoint::Embedded(_) => self.query(session)?.run()?,
            Endpoint::Server(server) => self.run_on(&server)?,
        };
        writeln!(session.out(), "{count}")?;
        Ok(Exit::Success)
    }
}
