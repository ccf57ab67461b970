//! The properties of each command, in one table.

use std::{fmt, future::Future, pin::Pin};

use bson::{RawDocument, RawDocumentBuf};

use super::{Call, authentication, diagnosis, hello, maintenance, replication, sessions, status, users};
use crate::{
    auth::{
        Action::*,
        needs::{
            self,
            Rule::{self, LoggedIn, Of, OnCollection, OnDatabase, OnServer, Open},
        },
    },
    data, fail_points,
    failure::{Failure, Result},
    profiler,
};

type Work<'c> = Pin<Box<dyn Future<Output = Result<RawDocumentBuf>> + Send + 'c>>;

/// How a command is handled.
#[derive(Clone, Copy)]
pub(crate) enum Implementation {
    Immediate(fn(&Call<'_>) -> Result<RawDocumentBuf>),
    Waiting(for<'c> fn(&'c Call<'_>) -> Work<'c>),
    /// The library executes it.
    Library,
    /// Is known but not supported: fails with the command's name.
    Unsupported,
}

/// A property that several commands share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trait {
    /// Is sent to the database `admin`, and refused elsewhere.
    Admin,
    /// The value of the command's first field is a collection of its database.
    Collection,
    /// Returns results computed from the documents of its collection.
    Reads,
    /// Has these fields and the generic ones, and fails with others: a misspelt field is not ignored.
    Fields(&'static [&'static str]),
    /// May be repeated with the same transaction number.
    Retryable,
    /// Is in version 1 of the stable API.
    Stable,
    /// May be used in a transaction.
    Transaction,
    /// May write.
    Writes,
}

/// A known command.
pub(crate) struct KnownCommand {
    pub(crate) name: &'static str,
    pub(crate) implementation: Implementation,
    traits: &'static [Trait],
    /// Which users may execute the command.
    pub(crate) rule: Rule,
}

impl KnownCommand {
    pub(crate) fn is(&self, wanted: Trait) -> bool {
        self.traits.contains(&wanted)
    }

    /// Fails with `IDLUnknownField` (40415) if the command has a field that is neither generic nor one of its [`Fields`].
    pub(crate) fn check_fields(&self, command: &RawDocument) -> Result<()> {
        let fields = self.traits.iter().find_map(|known| if let Fields(fields) = known { Some(fields) } else { None });
        let Some(fields) = fields else { return Ok(()) };
        for element in command.into_iter().skip(1) {
            let name = element?.0.as_str();
            if !fields.contains(&name) && !OF_EVERY_COMMAND.contains(&name) {
                return Err(Failure::unknown_field(&format!("{}.{name}", self.name)));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for KnownCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const fn known(
    name: &'static str,
    implementation: Implementation,
    traits: &'static [Trait],
    rule: Rule,
) -> KnownCommand {
    KnownCommand { name, implementation, traits, rule }
}

use Implementation::{Immediate, Library, Unsupported, Waiting};
use Trait::{Admin, Collection, Fields, Reads, Retryable, Stable, Transaction, Writes};

/// Generic fields, which any command may have.
pub(super) const OF_EVERY_COMMAND: [&str; 20] = [
    "$client",
    "$clusterTime",
    "$db",
    "$queryOptions",
    "$readPreference",
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "autocommit",
    "clientOperationKey",
    "comment",
    "lsid",
    "maxTimeMS",
    "maxTimeMSOpOnly",
    "mayBypassWriteBlocking",
    "rawData",
    "readConcern",
    "startTransaction",
    "txnNumber",
    "writeConcern",
];

/// The fields of `usersInfo`.
const INFO: &[&str] =
    &["filter", "showAuthenticationRestrictions", "showCredentials", "showCustomData", "showPrivileges"];

/// The fields of a user.
const USER: &[&str] = &["authenticationRestrictions", "customData", "digestPassword", "mechanisms", "pwd", "roles"];

/// The commands, sorted by name.
static COMMANDS: &[KnownCommand] = &[
    known("abortTransaction", Waiting(|call| Box::pin(data::abort(call))), &[Admin, Stable, Transaction], LoggedIn),
    known("aggregate", Library, &[Collection, Reads, Stable, Transaction, Writes], Of(needs::aggregate)),
    known("authenticate", Waiting(|call| Box::pin(authentication::authenticate(call))), &[Stable], Open),
    known("backup", Waiting(|call| Box::pin(maintenance::backup(call))), &[Admin], OnServer(Backup)),
    known("buildInfo", Immediate(status::build_info), &[], Open),
    known("buildinfo", Immediate(status::build_info), &[], Open),
    known("bulkWrite", Library, &[Admin, Retryable, Stable, Transaction, Writes], Of(needs::bulk_write)),
    known("collMod", Library, &[Collection, Stable, Writes], Of(needs::coll_mod)),
    known("collStats", Library, &[Collection], OnCollection(CollStats)),
    known("collstats", Library, &[Collection], OnCollection(CollStats)),
    known("commitTransaction", Waiting(|call| Box::pin(data::commit(call))), &[Admin, Stable, Transaction], LoggedIn),
    known("compact", Library, &[Collection], OnCollection(Compact)),
    known("configureFailPoint", Immediate(fail_points::configure), &[Admin], OnServer(SetParameter)),
    known("connectionStatus", Immediate(authentication::connection_status), &[Fields(&["showPrivileges"])], Open),
    known("count", Library, &[Collection, Reads, Stable], OnCollection(Find)),
    known("create", Library, &[Collection, Stable, Transaction, Writes], Of(needs::create)),
    known("createIndexes", Library, &[Collection, Stable, Transaction, Writes], OnCollection(CreateIndex)),
    known("createRole", Unsupported, &[], OnDatabase(CreateRole)),
    known("createUser", Waiting(|call| Box::pin(users::create(call))), &[Fields(USER)], Of(needs::create_user)),
    known("currentOp", Waiting(|call| Box::pin(diagnosis::current_op(call))), &[Admin], Of(needs::current_op)),
    known("dbStats", Library, &[], OnDatabase(DbStats)),
    known("dbstats", Library, &[], OnDatabase(DbStats)),
    known("delete", Library, &[Collection, Retryable, Stable, Transaction, Writes], OnCollection(Remove)),
    known("deleteIndexes", Library, &[Collection, Writes], OnCollection(DropIndex)),
    known("distinct", Library, &[Collection, Reads, Transaction], OnCollection(Find)),
    known("drop", Library, &[Collection, Stable, Writes], OnCollection(DropCollection)),
    known("dropAllUsersFromDatabase", Waiting(|call| Box::pin(users::remove_all(call))), &[], OnDatabase(DropUser)),
    known("dropDatabase", Library, &[Stable, Writes], OnDatabase(DropDatabase)),
    known("dropIndexes", Library, &[Collection, Stable, Writes], OnCollection(DropIndex)),
    known("dropRole", Unsupported, &[], OnDatabase(DropRole)),
    known("dropUser", Waiting(|call| Box::pin(users::remove(call))), &[], OnDatabase(DropUser)),
    known("endSessions", Waiting(|call| Box::pin(sessions::end(call))), &[Stable], Open),
    known("explain", Library, &[Stable], Of(needs::explain)),
    known("find", Library, &[Collection, Reads, Stable, Transaction], OnCollection(Find)),
    known("findAndModify", Library, &[Collection, Retryable, Stable, Transaction, Writes], Of(needs::find_and_modify)),
    known("findandmodify", Library, &[Collection, Retryable, Transaction, Writes], Of(needs::find_and_modify)),
    known("fsync", Waiting(|call| Box::pin(maintenance::fsync(call))), &[Admin], OnServer(Fsync)),
    known("getCmdLineOpts", Immediate(status::command_line), &[Admin], OnServer(GetCmdLineOpts)),
    known("getLog", Immediate(diagnosis::log), &[Admin], OnServer(GetLog)),
    known("getMore", Library, &[Stable, Transaction], LoggedIn),
    known("getParameter", Immediate(status::parameter), &[Admin], OnServer(GetParameter)),
    known("grantRolesToUser", Waiting(|call| Box::pin(users::grant(call))), &[Fields(&["roles"])], Of(needs::grant)),
    known("hello", Waiting(|call| Box::pin(hello::hello(call))), &[Stable], Open),
    known("hostInfo", Immediate(status::host_info), &[], OnServer(HostInfo)),
    known("insert", Library, &[Collection, Retryable, Stable, Transaction, Writes], Of(needs::insert)),
    known("isMaster", Waiting(|call| Box::pin(hello::is_master(call))), &[], Open),
    known("ismaster", Waiting(|call| Box::pin(hello::is_master(call))), &[], Open),
    known("killAllSessions", Waiting(|call| Box::pin(sessions::kill_all(call))), &[], OnServer(KillAnySession)),
    known("killCursors", Library, &[Collection, Stable, Transaction], LoggedIn),
    known("killOp", Immediate(diagnosis::kill_op), &[Admin], LoggedIn),
    known("killSessions", Waiting(|call| Box::pin(sessions::kill(call))), &[], LoggedIn),
    known("listCollections", Library, &[Stable], Of(needs::list_collections)),
    known("listCommands", Immediate(diagnosis::list_commands), &[], Open),
    known("listDatabases", Library, &[Admin, Stable], LoggedIn),
    known("listIndexes", Library, &[Collection, Stable], OnCollection(ListIndexes)),
    known("logout", Immediate(authentication::logout), &[Stable], Open),
    known("ping", Library, &[Stable], Open),
    known(
        "profile",
        Waiting(|call| Box::pin(profiler::configure(call))),
        &[Fields(&["filter", "sampleRate", "slowms"])],
        Of(needs::profile),
    ),
    known("refreshSessions", Immediate(sessions::refresh), &[Stable], LoggedIn),
    known("renameCollection", Library, &[Admin, Writes], Of(needs::rename)),
    known("replSetGetConfig", Immediate(replication::config), &[Admin], OnServer(ReplSetGetConfig)),
    known("replSetGetStatus", Immediate(replication::status), &[Admin], OnServer(ReplSetGetStatus)),
    known("replSetInitiate", Immediate(replication::initiate), &[Admin], OnServer(ReplSetConfigure)),
    known(
        "revokeRolesFromUser",
        Waiting(|call| Box::pin(users::revoke(call))),
        &[Fields(&["roles"])],
        Of(needs::revoke),
    ),
    known("rolesInfo", Immediate(users::roles_info), &[], Of(needs::roles_info)),
    known("saslContinue", Immediate(authentication::sasl_continue), &[Stable], Open),
    known("saslStart", Waiting(|call| Box::pin(authentication::sasl_start(call))), &[Stable], Open),
    known("serverStatus", Immediate(status::server_status), &[], OnServer(ServerStatus)),
    known("setParameter", Unsupported, &[Admin], OnServer(SetParameter)),
    known("shutdown", Immediate(maintenance::shutdown), &[Admin], OnServer(Shutdown)),
    known("startSession", Immediate(sessions::start), &[], LoggedIn),
    known("top", Immediate(diagnosis::top), &[Admin], OnServer(Top)),
    known("update", Library, &[Collection, Retryable, Stable, Transaction, Writes], Of(needs::update)),
    known("updateRole", Unsupported, &[], OnDatabase(GrantRole)),
    known("updateUser", Waiting(|call| Box::pin(users::update(call))), &[Fields(USER)], Of(needs::update_user)),
    known("usersInfo", Waiting(|call| Box::pin(users::info(call))), &[Fields(INFO)], Of(needs::users_info)),
    known("validate", Library, &[Collection], OnCollection(Validate)),
    known("whatsmyuri", Immediate(status::my_uri), &[], Open),
];

/// Returns a command by its name; `None` if it is unknown.
pub(crate) fn find(name: &str) -> Option<&'static KnownCommand> {
    let place = COMMANDS.binary_search_by(|known| known.name.cmp(name)).ok()?;
    COMMANDS.get(place)
}

/// Returns the names of all commands, for tests.
#[cfg(test)]
pub(crate) fn all_names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|known| known.name)
}

/// Returns the names of the supported commands.
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
