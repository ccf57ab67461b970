//! Executes MongoDB's commands, given as documents, with the operations of the typed API, in any scope: the database, a snapshot or an open
//! transaction. A reply contains one batch of rows, and the rest is parked ([`parked_cursors`]) until `getMore`. For a caller without cursors it
//! contains all rows.
//!
//! Parsing is as strict as MongoDB's, with the same codes: every field must be known, have the right type and occur
//! once. Fields that MongoDB accepts and Slate does not support fail with their name; no field that would change a result is
//! ignored.

mod aggregate;
mod bulk_write;
mod call;
mod change_stream;
mod coll_mod;
mod coll_stats;
mod commands;
mod common;
mod compact;
mod concern;
mod count;
mod create;
mod create_indexes;
mod cursor;
mod databases;
mod db_stats;
mod delete;
mod distinct;
mod drop;
mod drop_database;
mod drop_indexes;
mod explain;
mod fields;
mod find;
mod find_and_modify;
mod find_by_id;
mod get_more;
mod hint;
mod insert;
mod kill_cursors;
mod list_collections;
mod list_databases;
mod list_indexes;
mod number;
mod open_cursor;
mod own_collection;
mod parked_cursors;
mod ping;
mod read;
mod rename_collection;
mod reply;
mod statements;
mod update;
mod validate;

use bson::RawDocumentBuf;
use slate_query::{Code, raw::Doc};
#[cfg(feature = "async")]
use slate_query::{raw::Value, sink::Sink};

#[cfg(feature = "async")]
pub(crate) use self::call::Running;
use self::{
    call::{Call, CommandScope},
    databases::{StoredNames, shown_error},
};
pub use self::{commands::Commands, open_cursor::OpenCursor};
use crate::{Database, Error, IntoDocument, Result, call::Scope};

/// How a command is handled.
#[derive(Clone, Copy)]
enum Command {
    Offered(fn(Call<'_>) -> Result<RawDocumentBuf>),
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
    ("collstats", Offered(coll_stats::run)),
    ("commitTransaction", Unsupported),
    ("compact", Offered(compact::run)),
    ("connectionStatus", Unsupported),
    ("convertToCapped", Unsupported),
    ("count", Offered(count::run)),
    ("create", Offered(create::run)),
    ("createIndexes", Offered(create_indexes::run)),
    ("currentOp", Unsupported),
    ("dataSize", Unsupported),
    ("dbHash", Unsupported),
    ("dbStats", Offered(db_stats::run)),
    ("dbstats", Offered(db_stats::run)),
    ("delete", Offered(delete::run)),
    ("deleteIndexes", Offered(drop_indexes::run)),
    ("distinct", Offered(distinct::run)),
    ("drop", Offered(drop::run)),
    ("dropDatabase", Offered(drop_database::run)),
    ("dropIndexes", Offered(drop_indexes::run)),
    ("endSessions", Unsupported),
    ("explain", Offered(explain::run)),
    ("find", Offered(find::run)),
    ("findAndModify", Offered(find_and_modify::run)),
    ("findandmodify", Offered(find_and_modify::run)),
    ("fsync", Unsupported),
    ("getLog", Unsupported),
    ("getMore", Offered(get_more::run)),
    ("getParameter", Unsupported),
    ("hello", Unsupported),
    ("hostInfo", Unsupported),
    ("insert", Offered(insert::run)),
    ("isMaster", Unsupported),
    ("ismaster", Unsupported),
    ("killCursors", Offered(kill_cursors::run)),
    ("killOp", Unsupported),
    ("killSessions", Unsupported),
    ("listCollections", Offered(list_collections::run)),
    ("listCommands", Unsupported),
    ("listDatabases", Offered(list_databases::run)),
    ("listIndexes", Offered(list_indexes::run)),
    ("mapReduce", Unsupported),
    ("ping", Offered(ping::run)),
    ("planCacheClear", Unsupported),
    ("profile", Unsupported),
    ("reIndex", Unsupported),
    ("renameCollection", Offered(rename_collection::run)),
    ("serverStatus", Unsupported),
    ("setIndexCommitQuorum", Unsupported),
    ("setParameter", Unsupported),
    ("startSession", Unsupported),
    ("top", Unsupported),
    ("update", Offered(update::run)),
    ("validate", Offered(validate::run)),
    ("whatsmyuri", Unsupported),
];

impl Database {
    /// Runs one of MongoDB's commands and returns its reply, for tests, tools and wire protocols. Commands execute the same
    /// operations as the typed API and are parsed as strictly as by MongoDB: an invalid command fails with MongoDB's code, an
    /// unsupported option with its name ([`Error::unsupported`](crate::Error::unsupported)).
    ///
    /// | command | support |
    /// |---|---|
    /// | `find` | all documents in the first batch: the cursor's `id` is 0. For batches see [`Database::commands`] |
    /// | `count`, `distinct` | full |
    /// | `aggregate` | the stages of [aggregations](crate::ReadCollection::aggregate) |
    /// | `insert`, `update`, `delete`, `bulkWrite` | an `insert` is one transaction; otherwise each statement is one |
    /// | `findAndModify` | full |
    /// | `create`, `collMod`, `drop`, `listCollections` | collections, with a validator, and views |
    /// | `createIndexes`, `dropIndexes`, `listIndexes` | ordered and wildcard indexes, with all options but those of other types |
    /// | `collStats`, `dbStats` | sizes of documents and indexes |
    /// | `listDatabases`, `dropDatabase`, `renameCollection` | across the databases of the store |
    /// | `validate`, `compact` | a collection and its indexes; the whole store |
    /// | `explain` | of reads and of the targets of writes, with the stages of MongoDB; the plan is executed unless the verbosity is `queryPlanner` |
    /// | `ping` | |
    /// | `getMore`, `killCursors` | only with [`Database::commands`] |
    ///
    /// The field `$db` names the database; without it the collections are those of the typed API. These belong to the database `test`,
    /// and those of another one are stored as `$database.collection`, which is their name in the typed API.
    ///
    /// Arguments that concern only servers, sessions and logs (`lsid`, `comment`, `$readPreference`, …) are checked and
    /// have no effect. A rejected statement is reported in `writeErrors`, in a reply whose `ok` is 1.
    ///
    /// # Errors
    /// Fails if the command is unknown (code 59), unsupported or not valid; if the storage fails.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::doc;
    /// use slate_core::Row;
    ///
    /// db.command(doc! { "insert": "users", "documents": [{ "_id": 1, "age": 36 }] })?;
    /// let reply = db.command(doc! { "find": "users", "filter": { "age": { "$gt": 21 } } })?;
    /// assert_eq!(reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().into_iter().count(), 1);
    /// println!("{}", Row::from(&reply));                                             // as extended JSON
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn command(&self, command: impl IntoDocument) -> Result<RawDocumentBuf> {
        self.handle().limits().check()?;
        let scope = Scope::Database(self.handle().clone());
        let command = command.into_document()?;
        run(CommandScope::without_cursors(&scope, self.name().as_deref(), Doc::from(&command)))
    }
}

/// Executes the command that the first field names, and returns its reply.
///
/// # Errors
/// Fails like [`Database::command`](crate::Database::command).
fn run(at: CommandScope<'_>) -> Result<RawDocumentBuf> {
    if let Some(reply) = find_by_id::run(at) {
        return reply;
    }
    let mut call = Call::read(at)?;
    let database = call.database()?;
    let stored = StoredNames::of(&call, database)?;
    stored.apply(&mut call);
    match known(call.name) {
        Some(Offered(run)) => run(call).map_err(|error| shown_error(error, database)),
        Some(Unsupported) => Err(Error::unsupported_by_name(call.name)),
        None => Err(unknown(call.name)),
    }
}

/// Returns whether a command that has spent its budget can be repeated: it reads, or it is one transaction. `getMore` cannot: its rows would be lost.
#[cfg(feature = "async")]
fn is_short(command: Doc<'_>) -> bool {
    let is_one = |name| command.get(name).and_then(Value::as_array).is_some_and(|all| all.elements().nth(1).is_none());
    match name_of(command) {
        b"find" | b"aggregate" | b"count" | b"distinct" | b"insert" | b"findAndModify" | b"findandmodify" | b"ping" => {
            true
        }
        b"update" => is_one("updates"),
        b"delete" => is_one("deletes"),
        _ => false,
    }
}

/// Returns whether a command may write. An `aggregate` does so only if it ends with `$out` or `$merge`.
#[cfg(feature = "async")]
fn writes(command: Doc<'_>) -> bool {
    match name_of(command) {
        b"aggregate" => {
            let last = command.get("pipeline").and_then(Value::as_array).and_then(|stages| stages.values().last());
            last.and_then(Value::as_document).is_some_and(Sink::is)
        }
        name => !matches!(name, b"find" | b"count" | b"distinct" | b"getMore" | b"killCursors" | b"ping" | b"explain"),
    }
}

#[cfg(feature = "async")]
fn name_of(command: Doc<'_>) -> &[u8] {
    command.elements().next().map_or(b"", |first| first.name)
}

fn unknown(name: &str) -> Error {
    Error::invalid(Code::COMMAND_NOT_FOUND, format!("no such command: '{name}'"))
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
