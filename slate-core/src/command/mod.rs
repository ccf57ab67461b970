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

/// Executes a command.
type Run = fn(Call<'_>) -> Result<RawDocumentBuf>;

/// The offered commands, sorted by name.
static COMMANDS: &[(&str, Run)] = &[
    ("aggregate", aggregate::run),
    ("bulkWrite", bulk_write::run),
    ("collMod", coll_mod::run),
    ("collStats", coll_stats::run),
    ("collstats", coll_stats::run),
    ("compact", compact::run),
    ("count", count::run),
    ("create", create::run),
    ("createIndexes", create_indexes::run),
    ("dbStats", db_stats::run),
    ("dbstats", db_stats::run),
    ("delete", delete::run),
    ("deleteIndexes", drop_indexes::run),
    ("distinct", distinct::run),
    ("drop", drop::run),
    ("dropDatabase", drop_database::run),
    ("dropIndexes", drop_indexes::run),
    ("explain", explain::run),
    ("find", find::run),
    ("findAndModify", find_and_modify::run),
    ("findandmodify", find_and_modify::run),
    ("getMore", get_more::run),
    ("insert", insert::run),
    ("killCursors", kill_cursors::run),
    ("listCollections", list_collections::run),
    ("listDatabases", list_databases::run),
    ("listIndexes", list_indexes::run),
    ("ping", ping::run),
    ("renameCollection", rename_collection::run),
    ("update", update::run),
    ("validate", validate::run),
];

/// The other commands of MongoDB, which fail with their name. `slate-server` implements some of them.
const UNSUPPORTED: &str = "\
    abortReshardCollection abortTransaction addShard addShardToZone analyze analyzeShardKey appendOplogNote applyOps authenticate autoCompact \
    balancerCollectionStatus balancerStart balancerStatus balancerStop buildInfo buildinfo checkMetadataConsistency cleanupOrphaned \
    cleanupReshardCollection cleanupStructuredEncryptionData clearJumboFlag cloneCollectionAsCapped commitReshardCollection commitTransaction \
    compactStructuredEncryptionData configureCollectionBalancing configureFailPoint configureQueryAnalyzer connPoolStats connPoolSync \
    connectionStatus convertToCapped createRole createSearchIndexes createUser currentOp dataSize dbCheck dbHash dropAllRolesFromDatabase \
    dropAllUsersFromDatabase dropConnections dropRole dropSearchIndex dropUser enableSharding endSessions features filemd5 flushRouterConfig \
    fsync fsyncUnlock getAuditConfig getChangeStreamState getClusterParameter getCmdLineOpts getDefaultRWConcern getDiagnosticData getLog \
    getParameter getShardMap getShardVersion grantPrivilegesToRole grantRolesToRole grantRolesToUser hello hostInfo invalidateUserCache isMaster \
    isdbgrid ismaster killAllSessions killAllSessionsByPattern killOp killSessions listCommands listSearchIndexes listShards lockInfo logRotate \
    logout mapReduce mergeAllChunksOnShard mergeChunks moveChunk moveCollection movePrimary moveRange netstat oidcListKeys oidcRefreshKeys \
    planCacheClear planCacheClearFilters planCacheListFilters planCacheSetFilter profile reIndex refineCollectionShardKey refreshSessions \
    removeQuerySettings removeShard removeShardFromZone replSetAbortPrimaryCatchUp replSetFreeze replSetGetConfig replSetGetStatus \
    replSetInitiate replSetMaintenance replSetReconfig replSetResizeOplog replSetStepDown replSetStepUp replSetSyncFrom resetPlacementHistory \
    reshardCollection revokePrivilegesFromRole revokeRolesFromRole revokeRolesFromUser rolesInfo rotateCertificates saslContinue saslStart \
    serverStatus setAllowMigrations setAuditConfig setChangeStreamState setClusterParameter setDefaultRWConcern setFeatureCompatibilityVersion \
    setIndexCommitQuorum setParameter setProfilingFilterGlobally setQuerySettings setUserWriteBlockMode shardCollection shardingState shutdown \
    split splitVector startSession startTrafficRecording stopTrafficRecording top transitionFromDedicatedConfigServer \
    transitionToDedicatedConfigServer unshardCollection untrackUnshardedCollection updateRole updateSearchIndex updateUser updateZoneKeyRange \
    usersInfo validateDBMetadata waitForFailPoint whatsmyuri";

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
    match COMMANDS.binary_search_by(|(known, _)| (*known).cmp(call.name)).ok().and_then(|place| COMMANDS.get(place)) {
        Some((_, run)) => run(call).map_err(|error| shown_error(error, database)),
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

/// Whether MongoDB has the command.
fn is_known(name: &str) -> bool {
    is_unsupported(name) || COMMANDS.iter().any(|(known, _)| *known == name)
}

fn is_unsupported(name: &str) -> bool {
    UNSUPPORTED.split_ascii_whitespace().any(|known| known == name)
}

/// Returns the error for a command that is not offered.
fn unknown(name: &str) -> Error {
    if is_unsupported(name) {
        return Error::unsupported_by_name(name);
    }
    Error::invalid(Code::COMMAND_NOT_FOUND, format!("no such command: '{name}'"))
}

#[cfg(test)]
mod tests {
    use super::COMMANDS;

    #[test]
    fn the_table_is_sorted_and_names_no_command_twice() {
        assert!(COMMANDS.is_sorted_by(|(a, _), (b, _)| a < b));
    }
}
