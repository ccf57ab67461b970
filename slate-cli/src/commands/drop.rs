use std::io::Write;

use clap::Args;
use slate_core::Access;

use super::{Run, unfinished};
use crate::{
    failure::{Exit, Result},
    output,
    session::Session,
};

/// Drop a collection with its documents and indexes
#[derive(Clone, Debug, Args)]
pub(crate) struct Drop {
    /// The collection
    #[arg(required_unless_present = "unfinished")]
    collection: Option<String>,
    /// Drop what copies that were killed have left, the collections slate.copy.…; a copy that still runs fails
    #[arg(long, conflicts_with = "collection")]
    unfinished: bool,
}

impl Run for Drop {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let target = session.endpoint(Access::Open)?;
        let Some(collection) = self.collection else {
            let removed = unfinished::remove(&target)?;
            let removed = output::counted(removed, "collection", "collections");
            writeln!(session.out(), "{removed} of unfinished copies dropped")?;
            return Ok(Exit::Success);
        };
        target.check(&collection)?;
        let documents = target.estimated_count(&collection)?;
        target.drop_collection(&collection)?;
        writeln!(session.out(), "{collection} with {} dropped", output::documents(documents))?;
        Ok(Exit::Success)
    }
}
