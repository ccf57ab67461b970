//! What the server knows about each command, in one table. Only the privileges that commands need have a table of their own, in
//! [`auth`](crate::auth).

use std::{fmt, future::Future, pin::Pin};

use bson::RawDocumentBuf;

use super::{Call, authentication, diagnosis, hello, maintenance, replication, sessions, status, users};
use crate::{data, fail_points, failure::Result, profiler};

type Work<'c> = Pin<Box<dyn Future<Output = Result<RawDocumentBuf>> + Send + 'c>>;

/// An implementation of a command.
#[derive(Clone, Copy)]
pub(crate) enum Implementation {
    Immediate(fn(&Call<'_>) -> Result<RawDocumentBuf>),
    Waiting(for<'c> fn(&'c Call<'_>) -> Work<'c>),
    /// The library executes it.
    Library,
    /// Fails with the command's name.
    Unsupported,
}

/// What a command has in common with some others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trait {
    /// Its value is the name of a collection of its database.
    Collection,
    /// Returns what is computed of the documents of its collection.
    Reads,
    /// May be repeated with the same transaction number.
    Retryable,
    /// Belongs to version 1 of the stable API.
    Stable,
    /// A transaction may contain it.
    Transaction,
    /// May write.
    Writes,
}

/// A command that the server has a name for.
pub(crate) struct KnownCommand {
    pub(crate) name: &'static str,
    pub(crate) implementation: Implementation,
    traits: &'static [Trait],
}

impl KnownCommand {
    pub(crate) fn is(&self, wanted: Trait) -> bool {
        self.traits.contains(&wanted)
    }
}

impl fmt::Debug for KnownCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const fn known(name: &'static str, implementation: Implementation, traits: &'static [Trait]) -> KnownCommand {
    KnownCommand { name, implementation, traits }
}

use Implementation::{Immediate, Library, Unsupported, Waiting};
use Trait::{Collection, Reads, Retryable, Stable, Transaction, Writes};

/// The commands, sorted by name.
static COMMANDS: &[KnownCommand] = &[
    known("abortTransaction", Waiting(|call| Box::pin(data::abort(call))), &[Stable, Transaction]),
    known("aggregate", Library, &[Collection, Reads, Stable, Transaction, Writes]),
    known("authenticate", Waiting(|call| Box::pin(authentication::authenticate(call))), &[Stable]),
    known("backup", Waiting(|call| Box::pin(maintenance::backup(call))), &[]),
    known("buildInfo", Immediate(status::build_info), &[]),
    known("buildinfo", Immediate(status::build_info), &[]),
    known("bulkWrite", Library, &[Retryable, Stable, Transaction, Writes]),
    known("collMod", Library, &[Collection, Stable, Writes]),
    known("collStats", Library, &[Collection]),
    known("collstats", Library, &[Collection]),
    known("commitTransaction", Waiting(|call| Box::pin(data::commit(call))), &[Stable, Transaction]),
    known("compact", Library, &[Collection]),
    known("configureFailPoint", Immediate(fail_points::configure), &[]),
    known("connectionStatus", Immediate(authentication::connection_status), &[]),
    known("count", Library, &[Collection, Reads, Stable]),
    known("create", Library, &[Collection, Stable, Transaction, Writes]),
    known("createIndexes", Library, &[Collection, Stable, Transaction, Writes]),
    known("createRole", Unsupported, &[]),
    known("createUser", Waiting(|call| Box::pin(users::create(call))), &[]),
    known("currentOp", Waiting(|call| Box::pin(diagnosis::current_op(call))), &[]),
    known("dbStats", Library, &[]),
    known("dbstats", Library, &[]),
    known("delete", Library, &[Collection, Retryable, Stable, Transaction, Writes]),
    known("deleteIndexes", Library, &[Collection, Writes]),
    known("distinct", Library, &[Collection, Reads, Transaction]),
    known("drop", Library, &[Collection, Stable, Writes]),
    known("dropAllUsersFromDatabase", Waiting(|call| Box::pin(users::remove_all(call))), &[]),
    known("dropDatabase", Library, &[Stable, Writes]),
    known("dropIndexes", Library, &[Collection, Stable, Writes]),
    known("dropRole", Unsupported, &[]),
    known("dropUser", Waiting(|call| Box::pin(users::remove(call))), &[]),
    known("endSessions", Waiting(|call| Box::pin(sessions::end(call))), &[Stable]),
    known("explain", Library, &[Stable]),
    known("find", Library, &[Collection, Reads, Stable, Transaction]),
    known("findAndModify", Library, &[Collection, Retryable, Stable, Transaction, Writes]),
    known("findandmodify", Library, &[Collection, Retryable, Transaction, Writes]),
    known("fsync", Waiting(|call| Box::pin(maintenance::fsync(call))), &[]),
    known("getCmdLineOpts", Immediate(status::command_line), &[]),
    known("getLog", Immediate(diagnosis::log), &[]),
    known("getMore", Library, &[Stable, Transaction]),
    known("getParameter", Immediate(status::parameter), &[]),
    known("grantRolesToUser", Waiting(|call| Box::pin(users::grant(call))), &[]),
    known("hello", Waiting(|call| Box::pin(hello::hello(call))), &[Stable]),
    known("hostInfo", Immediate(status::host_info), &[]),
    known("insert", Library, &[Collection, Retryable, Stable, Transaction, Writes]),
    known("isMaster", Waiting(|call| Box::pin(hello::is_master(call))), &[]),
    known("ismaster", Waiting(|call| Box::pin(hello::is_master(call))), &[]),
    known("killAllSessions", Waiting(|call| Box::pin(sessions::kill_all(call))), &[]),
    known("killCursors", Library, &[Collection, Stable, Transaction]),
    known("killOp", Immediate(diagnosis::kill_op), &[]),
    known("killSessions", Waiting(|call| Box::pin(sessions::kill(call))), &[]),
    known("listCollections", Library, &[Stable]),
    known("listCommands", Immediate(diagnosis::list_commands), &[]),
    known("listDatabases", Library, &[Stable]),
    known("listIndexes", Library, &[Collection, Stable]),
    known("logout", Immediate(authentication::logout), &[Stable]),
    known("ping", Library, &[Stable]),
    known("profile", Waiting(|call| Box::pin(profiler::configure(call))), &[]),
    known("refreshSessions", Immediate(sessions::refresh), &[Stable]),
    known("renameCollection", Library, &[Writes]),
    known("replSetGetConfig", Immediate(replication::config), &[]),
    known("replSetGetStatus", Immediate(replication::status), &[]),
    known("replSetInitiate", Immediate(replication::initiate), &[]),
    known("revokeRolesFromUser", Waiting(|call| Box::pin(users::revoke(call))), &[]),
    known("rolesInfo", Immediate(users::roles_info), &[]),
    known("saslContinue", Immediate(authentication::sasl_continue), &[Stable]),
    known("saslStart", Waiting(|call| Box::pin(authentication::sasl_start(call))), &[Stable]),
    known("serverStatus", Immediate(status::server_status), &[]),
    known("setParameter", Unsupported, &[]),
    known("shutdown", Immediate(maintenance::shutdown), &[]),
    known("startSession", Immediate(sessions::start), &[]),
    known("top", Immediate(diagnosis::top), &[]),
    known("update", Library, &[Collection, Retryable, Stable, Transaction, Writes]),
    known("updateRole", Unsupported, &[]),
    known("updateUser", Waiting(|call| Box::pin(users::update(call))), &[]),
    known("usersInfo", Waiting(|call| Box::pin(users::info(call))), &[]),
    known("validate", Library, &[Collection]),
    known("whatsmyuri", Immediate(status::my_uri), &[]),
];

/// Returns a command by its name.
pub(crate) fn find(name: &str) -> Option<&'static KnownCommand> {
    let place = COMMANDS.binary_search_by(|known| known.name.cmp(name)).ok()?;
    COMMANDS.get(place)
}

/// Returns the names of all commands, for tests.
#[cfg(test)]
pub(crate) fn all_names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|known| known.name)
}

/// Returns the names of the commands that are offered.
pub(super) fn offered_names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().filter(|known| !matches!(known.implementation, Unsupported)).map(|known| known.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn the_page_lists_every_name() {
        let page = include_str!("../../../docs/operators.md");
        let missing: Vec<&str> = all_names().filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "docs/operators.md lacks {missing:?}");
    }
}
