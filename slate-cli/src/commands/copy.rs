use std::io::Write;

use clap::Args;
use slate_core::Access;

use super::{
    Run,
    transfer::{self, NewFiles},
};
use crate::{
    failure::{Exit, Failure, Result},
    session::Session,
};

/// Copy all collections and their indexes to another database, on any store
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

impl Run for Copy {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let (from, to) = match self.urls.as_slice() {
            [from, to] => (session.open_other(from, Access::ReadOnly)?, to.as_str()),
            urls => (session.read()?, urls.first().map_or("", String::as_str)),
        };
        if to.starts_with("memory:") {
            return Err(Failure::usage("a database in memory ends with the command that fills it")
                .hint("copy to a file; `backup` of a database in memory writes a file that opens as memory:PATH"));
        }
        let files = NewFiles::at(to);
        let target = session.open_other(to, Access::CreateOrOpen)?;
        let copied = match self.skip_damaged {
            true => transfer::salvage(&from, &target, &session.cancel()),
            false => transfer::copy(&from, &target, &session.cancel()).map(|copied| (copied, Vec::new())),
        };
        let copied = copied.and_then(|copied| target.clone().close().map(|()| copied).map_err(Failure::from));
        let (copied, damages) = copied.inspect_err(|_| files.remove(target))?;
        for damage in &damages {
            writeln!(session.out(), "left out: {damage}")?;
        }
        writeln!(session.out(), "{copied} copied to {to}")?;
        Ok(if damages.is_empty() { Exit::Success } else { Exit::Incomplete })
    }
}
