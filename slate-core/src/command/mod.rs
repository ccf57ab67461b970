//! MongoDB's commands, given as documents: a face over the same calls as the typed API's.
//!
//! A command is parsed as strictly as MongoDB's own parser does it, with its codes: every field is known, of the right
//! type and given once. What MongoDB takes and Slate does not offer is refused by name; nothing is ignored that would
//! change an answer.

mod call;
mod collation;
mod common;
mod concern;
mod count;
mod create;
mod create_indexes;
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
mod reply;
mod statements;
mod update;

use bson::{RawDocument, RawDocumentBuf};
use slate_query::{Code, raw::Doc};

use self::call::Call;
use crate::{Database, Error, Result};

/// A command that MongoDB knows.
#[derive(Clone, Copy)]
enum Command {
    Offered(fn(&Database, Call<'_>) -> Result<RawDocumentBuf>),
    /// Fails by name.
    Unsupported,
}

use Command::{Offered, Unsupported};

/// By name, in the order of bytes.
static COMMANDS: [(&str, Command); 61] = [
    ("abortTransaction", Unsupported),
    ("aggregate", Unsupported),
    ("analyze", Unsupported),
    ("authenticate", Unsupported),
    ("buildInfo", Unsupported),
    ("buildinfo", Unsupported),
    ("bulkWrite", Unsupported),
    ("collMod", Unsupported),
    ("collStats", Unsupported),
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
    ("dbStats", Unsupported),
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

/// Runs a command, which its first field names, and gives its reply.
///
/// # Errors
/// As [`Database::command`].
pub(crate) fn run(database: &Database, command: &RawDocument) -> Result<RawDocumentBuf> {
    let call = Call::read(Doc::from(command))?;
    match known(call.name) {
        Some(Offered(run)) => run(database, call),
        Some(Unsupported) => Err(Error::unsupported_by_name(call.name)),
        None => Err(Error::invalid(Code::COMMAND_NOT_FOUND, format!("no such command: '{}'", call.name))),
    }
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
}
