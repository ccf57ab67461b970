//! The commands of a server, which the library does not have, and their table.

mod authentication;
pub(crate) mod diagnosis;
mod hello;
mod maintenance;
mod replication;
mod sessions;
mod status;
mod users;

use std::{
    borrow::Cow,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bson::{RawDocument, RawDocumentBuf};
use slate_core::{Activity, CancelToken, aio::Commands};
use tokio::sync::Notify;

use crate::{
    api_version,
    auth::{self, User},
    clock,
    command::Command,
    connection::Connection,
    data, fail_points,
    failure::{Code, Failure, Result},
    labels,
    listener::Address,
    profiler::{self, PROFILE},
    shared::Shared,
};

/// A command that a client has sent, and what its execution may use.
pub(crate) struct Call<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) command: &'c Arc<Command>,
    /// Cancels the command.
    pub(crate) token: &'c CancelToken,
    /// Shows what the command does.
    pub(crate) activity: &'c Activity,
    /// Notified when the client vanishes.
    pub(crate) gone: &'c Notify,
    /// Set when the connection is closed in place of the reply.
    pub(crate) closes: AtomicBool,
}

type Work<'c> = Pin<Box<dyn Future<Output = Result<RawDocumentBuf>> + Send + 'c>>;

/// An implementation of a command.
#[derive(Clone, Copy)]
enum Implementation {
    Immediate(fn(&Call<'_>) -> Result<RawDocumentBuf>),
    Waiting(for<'c> fn(&'c Call<'_>) -> Work<'c>),
    /// Fails with the command's name.
    Unsupported,
}

use Implementation::{Immediate, Unsupported, Waiting};

/// The commands, sorted by name.
static COMMANDS: &[(&str, Implementation)] = &[
    ("abortTransaction", Waiting(|call| Box::pin(data::abort(call)))),
    ("authenticate", Waiting(|call| Box::pin(authentication::authenticate(call)))),
    ("backup", Waiting(|call| Box::pin(maintenance::backup(call)))),
    ("buildInfo", Immediate(status::build_info)),
    ("buildinfo", Immediate(status::build_info)),
    ("commitTransaction", Waiting(|call| Box::pin(data::commit(call)))),
    ("configureFailPoint", Immediate(fail_points::configure)),
    ("connectionStatus", Immediate(authentication::connection_status)),
    ("createRole", Unsupported),
    ("createUser", Waiting(|call| Box::pin(users::create(call)))),
    ("currentOp", Waiting(|call| Box::pin(diagnosis::current_op(call)))),
    ("dropAllUsersFromDatabase", Waiting(|call| Box::pin(users::remove_all(call)))),
    ("dropRole", Unsupported),
    ("dropUser", Waiting(|call| Box::pin(users::remove(call)))),
    ("endSessions", Waiting(|call| Box::pin(sessions::end(call)))),
    ("fsync", Waiting(|call| Box::pin(maintenance::fsync(call)))),
    ("getCmdLineOpts", Immediate(status::command_line)),
    ("getLog", Immediate(diagnosis::log)),
    ("getParameter", Immediate(status::parameter)),
    ("grantRolesToUser", Waiting(|call| Box::pin(users::grant(call)))),
    ("hello", Waiting(|call| Box::pin(hello::hello(call)))),
    ("hostInfo", Immediate(status::host_info)),
    ("isMaster", Waiting(|call| Box::pin(hello::is_master(call)))),
    ("ismaster", Waiting(|call| Box::pin(hello::is_master(call)))),
    ("killAllSessions", Waiting(|call| Box::pin(sessions::kill_all(call)))),
    ("killOp", Immediate(diagnosis::kill_op)),
    ("killSessions", Waiting(|call| Box::pin(sessions::kill(call)))),
    ("listCommands", Immediate(diagnosis::list_commands)),
    ("logout", Immediate(authentication::logout)),
    ("profile", Waiting(|call| Box::pin(profiler::configure(call)))),
    ("refreshSessions", Immediate(sessions::refresh)),
    ("replSetGetConfig", Immediate(replication::config)),
    ("replSetGetStatus", Immediate(replication::status)),
    ("replSetInitiate", Immediate(replication::initiate)),
    ("revokeRolesFromUser", Waiting(|call| Box::pin(users::revoke(call)))),
    ("rolesInfo", Immediate(users::roles_info)),
    ("saslContinue", Immediate(authentication::sasl_continue)),
    ("saslStart", Waiting(|call| Box::pin(authentication::sasl_start(call)))),
    ("serverStatus", Immediate(status::server_status)),
    ("setParameter", Unsupported),
    ("shutdown", Immediate(maintenance::shutdown)),
    ("startSession", Immediate(sessions::start)),
    ("top", Immediate(diagnosis::top)),
    ("updateRole", Unsupported),
    ("updateUser", Waiting(|call| Box::pin(users::update(call)))),
    ("usersInfo", Waiting(|call| Box::pin(users::info(call)))),
    ("whatsmyuri", Immediate(status::my_uri)),
];

/// The commands of a server that a transaction contains.
const OF_TRANSACTIONS: [&str; 2] = ["abortTransaction", "commitTransaction"];

impl Call<'_> {
    pub(crate) fn shared(&self) -> &Shared {
        &self.connection.shared
    }

    /// Returns the user who has logged in, as the last command has found it.
    pub(crate) fn user(&self) -> Option<Arc<User>> {
        self.connection.login.user()
    }

    /// Returns the address of the server as the client is to know it.
    pub(crate) fn own_address(&self) -> String {
        match (&self.shared().settings.host, &self.connection.local) {
            (Some(host), Address::Tcp(_)) => host.clone(),
            (_, reached) => reached.to_string(),
        }
    }

    /// Whether nobody has logged in where that is required.
    pub(crate) fn is_of_stranger(&self) -> bool {
        self.shared().settings.authentication && self.user().is_none()
    }

    /// Returns what stands for the user in sessions and cursors.
    pub(crate) fn owner(&self) -> Option<[u8; 32]> {
        self.user().map(|user| user.digest)
    }

    /// Returns the commands of the library, with the cursors of the user and the collection that only the server has.
    pub(crate) fn commands(&self) -> Cow<'_, Commands> {
        let commands = &self.shared().commands;
        let commands = match self.owner() {
            Some(owner) => Cow::Owned(commands.owned_by(owner)),
            None => Cow::Borrowed(commands),
        };
        let reads = matches!(&*self.command.name, "aggregate" | "count" | "distinct" | "explain" | "find");
        if !reads || self.command.collection() != Some(PROFILE) {
            return commands;
        }
        let entries = self.shared().profiler.entries(&self.command.database);
        Cow::Owned(commands.with_collection(&self.command.database, PROFILE, entries))
    }

    /// Returns a number that is given as a field, truncated.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>> {
        let value = self.command.get(name)?;
        Ok(value.and_then(|value| {
            value.as_i64().or_else(|| value.as_i32().map(i64::from)).or_else(|| truncated(value.as_f64()?))
        }))
    }

    /// Whether a field is true or a number other than zero.
    pub(crate) fn truth(&self, name: &str) -> Result<bool> {
        let boolean = self.command.get(name)?.and_then(|value| value.as_bool());
        Ok(boolean.unwrap_or(self.integer(name)?.is_some_and(|number| number != 0)))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the cast of a double saturates")]
fn truncated(double: f64) -> Option<i64> {
    double.is_finite().then_some(double as i64)
}

/// Executes a command and returns its reply, which says what went wrong, if anything did.
pub(crate) async fn execute(call: &Call<'_>) -> RawDocumentBuf {
    let (shared, command) = (call.shared(), call.command);
    shared.counts.of(&command.name).fetch_add(1, Ordering::Relaxed);
    let running = shared.operations.begin(&call.connection.place, command, call.token, call.activity, call.user());
    let admitted = admit(call).await;
    let is_admitted = admitted.is_ok();
    let result = match admitted {
        Ok(()) => run(call).await,
        Err(failure) => Err(failure),
    };
    let has_succeeded = result.is_ok();
    let mut reply = result.unwrap_or_else(|failure| {
        labels::add_of_stream(labels::add(command, failure), || data::is_of_stream(call)).reply()
    });
    shared.fail_points.after(call, &mut reply);
    let time = running.elapsed();
    // A client cannot fill the profiles and the table of collections with what it may not do, or with names that no collection can have.
    if is_admitted && shared.profiler.is_on() && !call.is_of_stranger() {
        profiler::record(call, &reply, time).await;
    }
    drop(running);
    if has_succeeded {
        shared.top.record(command, &call.connection.place.usage, time);
    }
    clock::append_to(&shared.database, reply)
}

/// Refuses a command that the client may not run.
async fn admit(call: &Call<'_>) -> Result<()> {
    call.shared().fail_points.before(call).await?;
    api_version::check(call.command)?;
    auth::authorize(call).await
}

async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    // A stranger does not move the clock.
    if let Some(time) = call.command.cluster_time.filter(|_| !call.is_of_stranger()) {
        clock::hear(&call.shared().database, time);
    }
    let name = &*call.command.name;
    let Some(implementation) = find(name) else {
        let reply = data::run(call).await?;
        if has_open_cursor(&reply) {
            auth::login::close_late_cursors(call).await?;
        }
        return Ok(reply);
    };
    if call.command.in_transaction && !OF_TRANSACTIONS.contains(&name) {
        let message = format!("Cannot run '{name}' in a multi-document transaction.");
        return Err(Failure::new(Code::NOT_IN_TRANSACTION, message));
    }
    match implementation {
        Immediate(run) => run(call),
        Waiting(run) => run(call).await,
        Unsupported => Err(Failure::not_implemented(name)),
    }
}

fn find(name: &str) -> Option<Implementation> {
    let place = COMMANDS.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    COMMANDS.get(place).map(|(_, implementation)| *implementation)
}

/// Whether there is a command of this name.
pub(crate) fn is_known(name: &str) -> bool {
    find(name).is_some() || data::NAMES.contains(&name)
}

/// Returns the names of all commands, for tests.
#[cfg(test)]
pub(crate) fn all_names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(name, _)| *name).chain(data::NAMES)
}

/// Returns the names of the commands that are offered.
fn names() -> impl Iterator<Item = &'static str> {
    let own =
        COMMANDS.iter().filter(|(_, implementation)| !matches!(implementation, Unsupported)).map(|(name, _)| *name);
    own.chain(data::NAMES)
}

/// Whether the client may ask for a further batch.
pub(crate) fn has_open_cursor(reply: &RawDocument) -> bool {
    reply.get_document("cursor").and_then(|cursor| cursor.get_i64("id")).is_ok_and(|id| id != 0)
}

/// Returns whether a client that allows it gets further replies without asking: the next batch of a cursor, the next state of the server.
pub(crate) fn continues(call: &Call<'_>, reply: &RawDocumentBuf) -> bool {
    match &*call.command.name {
        "getMore" => has_open_cursor(reply),
        "hello" | "isMaster" | "ismaster" => {
            // Without a pause between them, the replies would have no end.
            hello::waits(call) && reply.get_f64("ok").is_ok_and(|ok| ok > 0.0)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_shares_no_name_with_the_library() {
        assert!(COMMANDS.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(data::NAMES.is_sorted());
        assert!(data::NAMES.iter().all(|name| find(name).is_none()));
    }

    #[test]
    fn the_page_lists_every_name() {
        let page = include_str!("../../../docs/operators.md");
        let missing: Vec<&str> =
            COMMANDS.iter().map(|(name, _)| *name).filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "docs/operators.md lacks {missing:?}");
    }
}
