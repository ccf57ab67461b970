//! The commands of the command line and of the shell: one file each, and their table.

mod aggregate;
mod backup;
mod collections;
mod command;
mod compact;
mod completions;
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
mod man;
mod repair;
mod restore;
mod schema_version;
mod selection;
mod stats;
mod transfer;
mod update;
mod verify;

use clap::Subcommand;

use crate::{
    failure::{Exit, Result},
    session::Session,
};

/// A command with its arguments.
pub(crate) trait Run {
    /// Executes the command and writes its result to the session's output.
    ///
    /// # Errors
    /// Says why the command failed.
    fn run(self, session: &mut Session) -> Result<Exit>;
}

/// Declares the commands: one line each.
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
            /// As the command.
            pub(crate) fn run(self, session: &mut Session) -> Result<Exit> {
                match self {
                    $(Self::$name(arguments) => arguments.run(session)),*
                }
            }
        }
    };
}

commands! {
    /// Print the documents that match a filter
    Find(find::Find),
    /// Count the documents that match a filter
    Count(count::Count),
    /// Print the distinct values of a field
    Distinct(distinct::Distinct),
    /// Run an aggregation pipeline
    Aggregate(aggregate::Aggregate),
    /// Insert documents
    Insert(insert::Insert),
    /// Change the first document that matches a filter, or all of them
    Update(update::Update),
    /// Delete the first document that matches a filter, or all of them
    Delete(delete::Delete),
    /// Draw the plan of a command
    Explain(explain::Explain),
    /// List the collections
    Collections(collections::Collections),
    /// Drop a collection with its documents and indexes
    Drop(drop::Drop),
    /// List the indexes of a collection
    Indexes(indexes::Indexes),
    /// Create an index
    CreateIndex(create_index::CreateIndex),
    /// Drop an index
    DropIndex(drop_index::DropIndex),
    /// Run a command of MongoDB, given as a document
    Command(command::Command),
    /// Load files into collections
    Import(import::Import),
    /// Write collections to files
    Export(export::Export),
    /// Copy all collections and their indexes to another database, on any store
    Copy(copy::Copy),
    /// Write a copy of the database
    Backup(backup::Backup),
    /// Create a database from a backup
    Restore(restore::Restore),
    /// Show what collections and indexes take
    Stats(stats::Stats),
    /// Print the number of migration steps that the database has
    SchemaVersion(schema_version::SchemaVersion),
    /// Check documents and indexes for damage
    Verify(verify::Verify),
    /// Complete what a crash interrupted, and rebuild damaged indexes
    Repair(repair::Repair),
    /// Return unused space to the file system
    Compact(compact::Compact),
    /// Print completions for a shell such as bash
    Completions(completions::Completions),
    /// Print what a command line can become
    #[command(hide = true)]
    Complete(completions::Complete),
    /// Write manual pages
    Man(man::Man),
}
