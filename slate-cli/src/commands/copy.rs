use std::io::Write;

use clap::Args;
use slate_core::Access;

use super::{
    Run, across,
    source::CopySource,
    transfer::{self, NewFiles},
};
use crate::{
    endpoint::{self, Endpoint},
    failure::{Exit, Failure, Result},
    session::Session,
};

/// Copy all collections and their indexes to another database, on any store or a server
#[derive(Clone, Debug, Args)]
#[command(override_usage = "slate copy FROM TO\n       slate URL copy TO")]
pub(crate) struct Copy {
    /// The URLs of the source and of the target; in a shell the target alone
    #[arg(required = true, num_args = 1..=2, value_names = ["FROM", "TO"])]
    urls: Vec<String>,
    /// Leave out damaged parts of the source and list them; exits with 3 if there are any
    #[arg(long)]
    skip_damaged: bool,
}

impl Copy {
    /// Copies from a server, or to one.
    fn with_server(&self, from: Endpoint, to: &str, session: &mut Session) -> Result<Exit> {
        if self.skip_damaged {
            return Err(Failure::usage(format!("{}, and writes to such files", transfer::FILES_ONLY)));
        }
        let files = NewFiles::at(to);
        let target = session.other_endpoint(to, Access::CreateOrOpen)?;
        let mut made = Vec::new();
        let copied = CopySource::of(from).and_then(|from| across::copy(&from, &target, session, &mut made));
        let copied = copied.and_then(|copied| match &target {
            Endpoint::Embedded(database) => Ok(database.clone().close().map(|()| copied)?),
            Endpoint::Server(_) => Ok(copied),
        });
        let copied = copied.inspect_err(|_| match target {
            Endpoint::Embedded(database) => {
                if !files.is_new() {
                    across::undo(&Endpoint::Embedded(database.clone()), &made);
                }
                let made: Vec<&str> = made.iter().map(|made| &*made.name).collect();
                files.remove(database, &made);
            }
            Endpoint::Server(_) => across::undo(&target, &made),
        })?;
        writeln!(session.out(), "{} copied to {}", copied.described, endpoint::shown(to))?;
        Ok(if copied.left_out == 0 { Exit::Success } else { Exit::Incomplete })
    }
}

impl Run for Copy {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let (from, to) = match self.urls.as_slice() {
            [from, to] => (session.other_endpoint(from, Access::ReadOnly)?, to.as_str()),
            urls => (session.endpoint(Access::ReadOnly)?, urls.first().map_or("", String::as_str)),
        };
        if to.starts_with("memory:") {
            return Err(Failure::usage("a database in memory ends with the command that fills it")
                .hint("copy to a file; `backup` of a database in memory writes a file that opens as memory:PATH"));
        }
        let from = match from {
            Endpoint::Embedded(from) if !endpoint::is_server(to) => from,
            from => return self.with_server(from, to, session),
        };
        let files = NewFiles::at(to);
        let target = session.open_other(to, Access::CreateOrOpen)?;
        let copied = match self.skip_damaged {
            true => transfer::salvage(&from, &target, &session.cancel()),
            false => transfer::copy(&from, &target, &session.cancel()).map(|copied| (copied, Vec::new())),
        };
        let copied = copied.and_then(|copied| target.clone().close().map(|()| copied).map_err(Failure::from));
        let (copied, damages) = copied.inspect_err(|_| files.remove(target, &[]))?;
        for damage in &damages {
            writeln!(session.out(), "left out: {damage}")?;
        }
        writeln!(session.out(), "{copied} copied to {to}")?;
        Ok(if damages.is_empty() { Exit::Success } else { Exit::Incomplete })
    }
}
