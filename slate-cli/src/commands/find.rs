use std::io::Write;

use clap::Args;
use slate_core::ExplainVerbosity;

use super::{
    Run,
    selection::{Fields, Format, Selection, Slice},
};
use crate::{
    failure::{Exit, Result},
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
        let database = session.read()?;
        session::existing(&database, &self.selection.collection)?;
        // Some formats run the query twice. The snapshot shows both runs the same documents.
        let collection = database.snapshot()?.collection(&self.selection.collection);
        let find = self.slice.apply(self.fields.apply(self.selection.find(&collection, session)));
        let most = (session.at_prompt() && self.slice.limit.is_none()).then_some(SHOWN_IN_SHELL);
        let open = || most.map_or_else(|| find.clone(), |most| find.clone().limit(most)).cursor();
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
    pub(super) fn explain(&self, session: &mut Session, verbosity: ExplainVerbosity) -> Result<slate_core::Explain> {
        let collection = session::existing(&session.read()?, &self.selection.collection)?;
        let find = self.slice.apply(self.fields.apply(self.selection.find(&collection, session)));
        Ok(find.explain(verbosity)?)
    }
}
