use std::io::Write;

use bson::Document;
use clap::Args;
use slate_core::{Access, ExplainVerbosity};

use super::{
    Run,
    selection::{Fields, Format, Selection, Slice, bounded},
};
use crate::{
    endpoint::{Endpoint, Rows, Server},
    failure::{Exit, Failure, Result},
    message::message,
    output::{self, Cells},
    session::{self, Session},
};

/// Documents that a shell prints of a query without `--limit`.
const SHOWN_IN_SHELL: u64 = 50;

/// Print the documents that match a filter
#[derive(Clone, Debug, Args)]
pub(crate) struct Find {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    slice: Slice,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    format: Format,
}

impl Run for Find {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let database = match session.endpoint(Access::ReadOnly)? {
            Endpoint::Embedded(database) => database,
            Endpoint::Server(server) => return self.run_on(&server, session),
        };
        session::existing(&database, &self.selection.collection)?;
        // Some formats run the query twice. The snapshot shows both runs the same documents.
        let collection = database.snapshot()?.collection(&self.selection.collection);
        let find = self.slice.apply(self.fields.apply(self.selection.find(&collection, session)));
        let most = (session.at_prompt() && self.slice.limit.is_none()).then_some(SHOWN_IN_SHELL);
        let open = || {
            most.map_or_else(|| find.clone(), |most| find.clone().limit(most))
                .cursor()
                .map(Rows::Embedded)
                .map_err(Failure::from)
        };
        let format = output::of_results(self.format.format.as_deref())?;
        let count = output::write(format, Cells::Plain, session.out(), open, || {})?;
        if count == 0 && session.at_prompt() {
            message!("no document matches");
        }
        if let Some(most) = most.filter(|most| count == *most)
            && find.clone().limit(most + 1).count().run()? > most
        {
            writeln!(session.out(), "These are the first {most}: --limit N prints more, --limit 0 all.")?;
        }
        Ok(Exit::Success)
    }
}

impl Find {
    /// Returns MongoDB's command.
    pub(super) fn command(&self) -> Document {
        self.selection.command(&self.slice, &self.fields)
    }

    fn run_on(&self, server: &Server, session: &mut Session) -> Result<Exit> {
        Endpoint::Server(server.clone()).check(&self.selection.collection)?;
        let most = (session.at_prompt() && self.slice.limit.is_none()).then_some(SHOWN_IN_SHELL);
        let mut command = self.command();
        if let Some(most) = most {
            command.insert("limit", bounded(most));
        }
        let format = output::of_results(self.format.format.as_deref())?;
        let open = || server.rows(&command).map(Rows::Server);
        let count = output::write(format, Cells::Plain, session.out(), open, || {})?;
        if count == 0 && session.at_prompt() {
            message!("no document matches");
        }
        if let Some(most) = most.filter(|most| count == *most) {
            command.insert("skip", bounded(self.slice.skip.saturating_add(most)));
            command.insert("limit", 1);
            if server.rows(&command)?.next(|_| Ok(()))?.is_some() {
                writeln!(session.out(), "These are the first {most}: --limit N prints more, --limit 0 all.")?;
            }
        }
        Ok(Exit::Success)
    }

    pub(super) fn explain(&self, session: &mut Session, verbosity: ExplainVerbosity) -> Result<slate_core::Explain> {
        let collection = session::existing(&session.read()?, &self.selection.collection)?;
        let find = self.slice.apply(self.fields.apply(self.selection.find(&collection, session)));
        Ok(find.explain(verbosity)?)
    }
}
