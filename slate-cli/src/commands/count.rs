use std::io::Write;

use clap::Args;
use slate_core::ExplainVerbosity;

use super::{
    Run,
    selection::{Selection, Slice},
};
use crate::{
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
        let count = self.query(session)?.run()?;
        writeln!(session.out(), "{count}")?;
        Ok(Exit::Success)
    }
}
