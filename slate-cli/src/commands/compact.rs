use std::{
    io::Write,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use clap::Args;

use super::Run;
use crate::{
    arguments::duration,
    failure::{Exit, Result},
    session::Session,
};

/// Return unused space to the file system, as far as the store can
#[derive(Clone, Debug, Args)]
pub(crate) struct Compact {
    /// Compact in steps, and stop after this time: what was done remains, and the next run only has to read it
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    within: Option<Duration>,
}

impl Run for Compact {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let database = session.write()?;
        let before = database.size()?.on_disk;
        let left = match self.within {
            None => database.compact().map(|()| None)?,
            Some(within) => {
                let (begin, mut left) = (Instant::now(), 100);
                let compacted = database.compact_while(|examined, total| {
                    left = 100 - examined.saturating_mul(100).checked_div(total).unwrap_or_default().min(100);
                    if begin.elapsed() < within { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?;
                compacted.is_break().then_some(left)
            }
        };
        drop(database);
        // Closing the database writes to its file, too.
        session.release()?;
        match (before, session.read()?.size()?.on_disk) {
            (Some(before), Some(after)) => writeln!(session.out(), "{before} bytes before, {after} bytes now")?,
            _ => writeln!(session.out(), "the store has nothing to compact")?,
        }
        if let Some(left) = left {
            writeln!(session.out(), "not complete: about {left} % are left")?;
        }
        Ok(Exit::Success)
    }
}
