//! Executes MongoDB's commands, given as documents, with the operations of the typed API.
//!
//! Parsing is as strict as MongoDB's, with the same codes: every field must be known, have the right type and occur
//! once. Fields that MongoDB accepts and Slate does not support fail with their name; no field that would change a result is
//! ignored.

mod aggregate;
mod bulk_write;
mod call;
mod coll_mod;
mod coll_stats;
mod common;
mod concern;
mod count;
mod create;
mod create_indexes;
mod db_stats;
mod delete;
mod distinct;
mod drop;
mod drop_indexes;
mod explain;
mod fields;
mod find;
mod find_and_modify;
mod hint;
mod insert;
mod list_collections;
mod list_indexes;
mod number;
mod ping;
mod read;
mod reply;
mod statements;
mod update;

use bson::{RawDocument, RawDocumentBuf};
use slate_query::{Code, raw::Doc};

use self::call::Call;
use crate::{Error, Result, call::DatabaseHandle, write::IndexSpec};

/// An implementation of a command.
#[derive(Clone, Copy)]
enum Command {
    Offered(fn(&DatabaseHandle, Call<'_>) -> Result<RawDocumentBuf>),
    /// Fails with the command's name.
    Unsupported,
}

use Command::{Offered, Unsupported};

/// All commands that MongoDB has, sorted by name.
static COMMANDS: &[(&str, Command)] = &[
    ("abortTransaction", Unsupported),
    ("aggregate", Offered(aggregate::run)),
    ("analyze", Unsupported),
    ("authenticate", Unsupported),
    ("buildInfo", Unsupported),
    ("buildinfo", Unsupported),
    ("bulkWrite", Offered(bulk_write::run)),
    ("collMod", Offered(coll_mod::run)),
    ("collStats", Offered(coll_stats::run)),
    ("commitTransaction", Unsupported),
    ("compact", Unsupported),
    ("connectionStatus", Unsupported),
    ("convertToCapped", Unsupported),
    ("count", Offered(count::run)),
    ("create", Offered(create::run)),
    ("createIndexes", Offered(create_indexes::run)),
    ("currentOp", Unsupported),
    ("dataSize", Unsupported),
    ("dbHash", Unsupported),
    ("dbStats", Offered(db_stats::run)),
    ("delete", Offered(delete::run)),
    ("deleteIndexes", Offered(drop_indexes::run)),
    ("distinct", Offered(distinct::run)),
    ("drop", Offered(drop::run)),
    ("dropDatabase", Unsupported),
    ("dropIndexes", Offered(drop_indexes::run)),
    ("endSessions", Unsupported),
    ("explain", Offered(explain::run)),
    ("find", Offered(find::run)),
    ("findAndModify", Offered(find_and_modify::run)),
    ("findandmodify", Offered(find_and_modify::run)),
    ("fsync", Unsupported),
    ("getLog", Unsupported),
    ("getMore", Unsupported),
    ("getParameter", Unsupported),
    ("hello", Unsupported),
    ("hostInfo", Unsupported),
    ("insert", Offered(insert::run)),
    ("isMaster", Unsupported),
    ("ismaster", Unsupported),
    ("killCursors", Unsupported),
    ("killOp", Unsupported),
    ("killSessions", Unsupported),
    ("listCollections", Offered(list_collections::run)),
    ("listCommands", Unsupported),
    ("listDatabases", Unsupported),
    ("listIndexes", Offered(list_indexes::run)),
    ("mapReduce", Unsupported),
    ("ping", Offered(ping::run)),
    ("planCacheClear", Unsupported),
    ("profile", Unsupported),
    ("reIndex", Unsupported),
    ("renameCollection", Unsupported),
    ("serverStatus", Unsupported),
    ("setIndexCommitQuorum", Unsupported),
    ("setParameter", Unsupported),
    ("startSession", Unsupported),
    ("top", Unsupported),
    ("update", Offered(update::run)),
    ("validate", Unsupported),
    ("whatsmyuri", Unsupported),
];

/// Executes the command that the first field names, and returns its reply.
///
/// # Errors
/// Fails like [`Database::command`](crate::Database::command).
pub(crate) fn run(database: &DatabaseHandle, command: &RawDocument) -> Result<RawDocumentBuf> {
    let call = Call::read(Doc::from(command))?;
    match known(call.name) {
        Some(Offered(run)) => run(database, call),
        Some(Unsupported) => Err(Error::unsupported_by_name(call.name)),
        None => Err(unknown(call.name)),
    }
}

fn unknown(name: &str) -> Error {
    Error::invalid(Code::COMMAND_NOT_FOUND, format!("no such command: '{name}'"))
}

/// Parses the definition of an index, as `createIndexes` has it.
///
/// # Errors
/// Fails if it is not valid, or has an option that is not supported.
pub(crate) fn parse_index(definition: Doc<'_>) -> Result<IndexSpec> {
    create_indexes::parse(definition, create_indexes::Unknown::Refused)
}

fn known(name: &str) -> Option<Command> {
    let place = COMMANDS.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    COMMANDS.get(place).map(|(_, command)| *command)
}

#[cfg(test)]
mod tests {
    use super::COMMANDS;

    #[test]
    fn the_table_is_sorted_and_names_no_command_twice() {
        assert!(COMMANDS.is_sorted_by(|(a, _), (b, _)| a < b));
    }

    #[test]
    fn the_page_lists_every_name() {
        let page = include_str!("../../../docs/operators.md");
        let missing: Vec<&str> =
            COMMANDS.iter().map(|(name, _)| *name).filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "docs/operators.md lacks {missing:?}");
    }
}
