use std::{
    fs::File,
    io::{Read, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};
use slate_core::{Access, Database};

use super::{
    Run,
    transfer::{self, NewFiles},
    verify,
};
use crate::{
    failure::{Exit, Failure, Result},
    session::Session,
};

/// Create a database from a backup
///
/// The backup can be of any store, and is verified first. The database must not exist, or be empty.
#[derive(Clone, Debug, Args)]
pub(crate) struct Restore {
    /// The copy that `backup` wrote
    #[arg(value_hint = ValueHint::AnyPath)]
    from: PathBuf,
}

/// The first bytes of a file of redb.
const REDB: &[u8] = b"redb\x1a\x0a\xa9\x0d\x0a";

impl Run for Restore {
    fn run(self, session: &mut Session) -> Result<Exit> {
        let from = open(&self.from, session)?;
        let damage = verify::check(&from, None, session)?;
        if !damage.is_sound() {
            verify::print(&damage, session)?;
            return Err(Failure::new(format!("{} is damaged, and nothing was restored", self.from.display()))
                .hint("`slate copy --skip-damaged FROM TO` writes what can be read to a new database"));
        }
        let files = NewFiles::at(session.url()?);
        let database = session.create()?;
        if !database.list_collection_names()?.is_empty() {
            return Err(
                Failure::new("the database is not empty").hint("restore creates a new database: choose another URL")
            );
        }
        // `finish` reports failures to make the copy durable.
        let copied = transfer::copy(&from, &database, &session.cancel()).inspect_err(|_| {
            session.forget();
            files.remove(database, &[]);
        })?;
        writeln!(session.out(), "{copied} restored")?;
        Ok(Exit::Success)
    }
}

/// Opens a backup, whatever store wrote it.
fn open(path: &Path, session: &Session) -> Result<Database> {
    let metadata = std::fs::metadata(path).map_err(|error| Failure::file(path, error))?;
    let scheme = if metadata.is_dir() {
        "rocksdb"
    } else {
        let mut head = Vec::new();
        let file = File::open(path).map_err(|error| Failure::file(path, error))?;
        file.take(REDB.len() as u64).read_to_end(&mut head).map_err(|error| Failure::file(path, error))?;
        if head == REDB { "redb" } else { "memory" }
    };
    session.open_other(&format!("{scheme}:{}", path.display()), Access::ReadOnly)
}
