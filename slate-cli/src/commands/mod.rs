//! The commands of the command line and of the shell: one file each, and their table.

mod across;
mod aggregate;
mod backup;
mod collect_garbage;
mod collections;
mod command;
mod compact;
mod copy;
mod count;
mod create_index;
mod definitions;
mod delete;
mod distinct;
mod documents;
mod drop;
mod drop_index;
mod explain;
mod export;
mod find;
mod import;
mod indexes;
mod insert;
mod repair;
mod restore;
mod schema_version;
mod selection;
mod source;
mod stats;
mod transfer;
mod unfinished;
mod update;
mod verify;

use clap::Subcommand;

pub(crate) use definitions::indexes_of;

use crate::{
    failure::{Exit, Failure, Result},
    session::Session,
};

/// A command with its arguments.
pub(crate) trait Run {
    /// Executes the command and writes its result to the session's output.
    ///
    /// # Errors
    /// Fails if the command does.
    fn run(self, session: &mut Session) -> Result<Exit>;
}

/// Declares the commands: one line each. Their help is the documentation of their arguments.
macro_rules! commands {
    ($($(#[$attribute:meta])* $name:ident($arguments:ty)),* $(,)?) => {
        /// Every command with its arguments.
        #[derive(Debug, Subcommand)]
        #[command(disable_help_subcommand = false)]
        pub(crate) enum Command {
            $($(#[$attribute])* $name($arguments)),*
        }

        impl Command {
            /// Executes the command.
            ///
            /// # Errors
            /// Fails as the command does.
            pub(crate) fn run(self, session: &mut Session) -> Result<Exit> {
                if session.is_server() && let Some(refusal) = self.refusal_of_server() {
                    return Err(refusal);
                }
                match self {
                    $(Self::$name(arguments) => arguments.run(session)),*
                }
            }
        }
    };
}

impl Command {
    /// Returns the failure that refuses a command on files, with a hint at another command; `None` if a server can
    /// execute the command.
    fn refusal_of_server(&self) -> Option<Failure> {
        let (name, instead) = match self {
            Self::Restore(_) => {
                ("restore", "`copy redb:BACKUP mongodb://…` writes the collections of a backup to a server")
            }
            Self::Repair(_) => ("repair", "`verify` checks the collections of a server; stop it to repair its files"),
            Self::Compact(_) => {
                ("compact", "`command '{ compact: \"COLLECTION\" }'` compacts a collection of a server")
            }
            Self::CollectGarbage(_) => {
                ("collect-garbage", "`slate tikv://… collect-garbage` works beside the servers of a cluster")
            }
            Self::SchemaVersion(_) => {
                ("schema-version", "`find slate.migrations` lists the steps that the database has")
            }
            _ => return None,
        };
        let message = format!("`{name}` works on the files of a database, and not on a server");
        Some(Failure::usage(message).hint(instead))
    }
}

commands! {
    Find(find::Find),
    Count(count::Count),
    Distinct(distinct::Distinct),
    Aggregate(aggregate::Aggregate),
    Insert(insert::Insert),
    Update(update::Update),
    Delete(delete::Delete),
    Explain(explain::Explain),
    Collections(collections::Collections),
    Drop(drop::Drop),
    Indexes(indexes::Indexes),
    CreateIndex(create_index::CreateIndex),
    DropIndex(drop_index::DropIndex),
    Command(command::Command),
    Import(import::Import),
    Export(export::Export),
    Copy(copy::Copy),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Stats(stats::Stats),
    SchemaVersion(schema_version::SchemaVersion),
    Verify(verify::Verify),
    Repair(repair::Repair),
    Compact(compact::Compact),
    CollectGarbage(collect_garbage::CollectGarbage),
}
