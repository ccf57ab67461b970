use std::{io::Write, time::Duration};

use clap::Args;

use super::Run;
use crate::{
    arguments::duration,
    failure::{Exit, Result},
    session::Session,
};

/// Remove from a cluster what only old snapshots show (tikv:)
///
/// Without it replaced and deleted documents take space for ever, in all databases of the cluster: run it every ten minutes, in one place. It
/// first waits some minutes, until the commits that began before it have ended. What a backup of the cluster reads is not removed.
#[derive(Clone, Debug, Args)]
pub(crate) struct CollectGarbage {
    /// Keep what snapshots, cursors and transactions of this age show: older ones fail. At least a minute
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30m")]
    keep: Duration,
}

impl Run for CollectGarbage {
    fn run(self, session: &mut Session) -> Result<Exit> {
        session.write()?.collect_garbage(self.keep)?;
        let keep = jiff::SignedDuration::try_from(self.keep).unwrap_or(jiff::SignedDuration::MAX);
        writeln!(session.out(), "what only snapshots older than {keep:#} show was removed")?;
        Ok(Exit::Success)
    }
}
