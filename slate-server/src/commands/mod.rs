//! The commands of a server, and the execution of every command.

mod authentication;
pub(crate) mod diagnosis;
mod hello;
mod maintenance;
mod replication;
mod sessions;
mod status;
mod table;
mod users;

use std::{
    borrow::Cow,
    future::pending,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use bson::{RawDocument, RawDocumentBuf};
use slate_core::{
    Activity, CancelToken,
    aio::{Commands, RunningCommand},
};
use tokio::{sync::Notify, time::sleep_until};

use crate::{
    api_version,
    auth::{self, User},
    clock,
    command::Command,
    connection::Connection,
    data,
    failure::{Code, Failure, Result},
    labels,
    listener::Address,
    profiler::{self, PROFILE},
    shared::Shared,
};

#[cfg(test)]
pub(crate) use table::all_names;
pub(crate) use table::{Implementation, KnownCommand, Trait, find};

/// A command of a client, and what its execution may use.
pub(crate) struct Call<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) command: &'c Arc<Command>,
    /// When the command arrived.
    pub(crate) began: Instant,
    /// Cancels the command.
    pub(crate) token: &'c CancelToken,
    /// Shows the work of the command to other threads.
    pub(crate) activity: &'c Activity,
    /// Notified when the client disconnects.
    pub(crate) gone: &'c Notify,
    /// Set when the connection must be closed instead of sending the reply.
    pub(crate) closes: AtomicBool,
}

impl Call<'_> {
    /// Returns what the library needs to know about the command besides its fields.
    pub(crate) fn running(&self) -> RunningCommand<'_> {
        RunningCommand { began: self.began, token: self.token, activity: self.activity }
    }

    /// Returns the time limit of the command; `None` if it has none.
    pub(crate) fn time_limit(&self) -> Option<Duration> {
        self.shared().commands.time_limit(self.command.document())
    }

    /// Returns the deadline of the command; `None` if it has none.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.time_limit().and_then(|limit| self.began.checked_add(limit))
    }

    /// Awaits `wait`, which precedes the command's execution. Drops it when the command is cancelled or its deadline has passed.
    ///
    /// # Errors
    /// Fails with `Interrupted` (11601) or `MaxTimeMSExpired` (50).
    pub(crate) async fn unless_ended<T>(&self, wait: impl Future<Output = T>) -> Result<T> {
        let cancelled = || Err(Failure::new(Code::INTERRUPTED, "the operation was cancelled"));
        let over = || Err(Failure::new(Code::TIME_LIMIT, "operation exceeded time limit"));
        let end = self.end();
        // A cancelled command does not begin `wait`, even if that would be ready at once.
        if self.token.is_cancelled() {
            return cancelled();
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return over();
        }
        let time_is_over = async {
            match end {
                Some(end) => sleep_until(end.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            done = wait => Ok(done),
            () = self.token.cancelled() => cancelled(),
            () = time_is_over => over(),
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.connection.shared
    }

    /// Returns the user of the connection, as last read by a command; `None` without a login.
    pub(crate) fn user(&self) -> Option<Arc<User>> {
        self.connection.login.user()
    }

    /// Returns the address of the server to report to the client.
    pub(crate) fn own_address(&self) -> String {
        match (&self.shared().settings.host, &self.connection.local) {
            (Some(host), Address::Tcp(_)) => host.clone(),
            (_, reached) => reached.to_string(),
        }
    }

    /// Whether the client has not logged in although the server requires it.
    pub(crate) fn is_of_stranger(&self) -> bool {
        self.connection.is_of_stranger()
    }

    /// Returns what identifies the user in sessions and cursors; `None` without a login.
    pub(crate) fn owner(&self) -> Option<[u8; 32]> {
        self.user().map(|user| user.digest)
    }

    /// Returns the library's commands, with the user as the owner of cursors and with the collection that only the server has.
    pub(crate) fn commands(&self) -> Cow<'_, Commands> {
        let commands = &self.shared().commands;
        let commands = match self.owner() {
            Some(owner) => Cow::Owned(commands.owned_by(owner)),
            None => Cow::Borrowed(commands),
        };
        let reads = self.command.is(Trait::Reads) || self.command.name == "explain";
        if !reads || self.command.collection() != Some(PROFILE) {
            return commands;
        }
        let entries = self.shared().profiler.entries(self.command.database());
        Cow::Owned(commands.with_collection(self.command.database(), PROFILE, entries))
    }

    /// Returns a numeric field, truncated to an integer; `None` if it is missing or not a finite number.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>> {
        let value = self.command.get(name)?;
        Ok(value.and_then(|value| {
            value.as_i64().or_else(|| value.as_i32().map(i64::from)).or_else(|| truncated(value.as_f64()?))
        }))
    }

    /// Whether a field is `true` or a number other than zero.
    pub(crate) fn truth(&self, name: &str) -> Result<bool> {
        let boolean = self.command.get(name)?.and_then(|value| value.as_bool());
        Ok(boolean.unwrap_or(self.integer(name)?.is_some_and(|number| number != 0)))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the cast of a double saturates")]
fn truncated(double: f64) -> Option<i64> {
    double.is_finite().then_some(double as i64)
}

/// Executes a command and returns its reply, which has the error if it fails.
pub(crate) async fn execute(call: &Call<'_>) -> RawDocumentBuf {
    let (shared, command) = (call.shared(), call.command);
    call.connection.place.traffic.executes(&command.name);
    let running = shared.operations.begin(&call.connection.place, command, call.running(), call.user());
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
    // Records only admitted commands: a client must not fill the profiles and the table of collections by commands that it may not execute, or with
    // invalid names.
    if is_admitted && shared.profiler.is_on() && !call.is_of_stranger() {
        profiler::record(call, &reply, time).await;
    }
    drop(running);
    if has_succeeded {
        shared.top.record(command, &call.connection.place.usage, time);
    }
    clock::append_to(&shared.database, reply)
}

/// Applies the fail points. Then refuses a command that the client may not execute.
async fn admit(call: &Call<'_>) -> Result<()> {
    call.shared().fail_points.before(call).await?;
    api_version::check(call.command)?;
    if call.command.is(Trait::Admin) && call.command.database() != "admin" {
        let message = format!("{} may only be run against the admin database.", call.command.name);
        return Err(Failure::new(Code::UNAUTHORIZED, message));
    }
    auth::authorize(call).await
}

async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    // A client without a login must not advance the clock.
    if let Some(time) = call.command.cluster_time.filter(|_| !call.is_of_stranger()) {
        clock::hear(&call.shared().database, time);
    }
    let command = call.command;
    let implementation = command.known.map_or(Implementation::Library, |known| known.implementation);
    if let Some(concern) = &command.read_concern {
        concern.check_times(call.shared().database.last_time())?;
    }
    if matches!(implementation, Implementation::Library) {
        let reply = data::run(call).await?;
        auth::login::close_late_cursors(call, &reply).await?;
        return Ok(reply);
    }
    if command.in_transaction && !command.is(Trait::Transaction) {
        let message = format!("Cannot run '{}' in a multi-document transaction.", command.name);
        return Err(Failure::new(Code::NOT_IN_TRANSACTION, message));
    }
    if let Some(known) = command.known {
        known.check_fields(command.document())?;
    }
    match implementation {
        Implementation::Immediate(run) => run(call),
        Implementation::Waiting(run) => run(call).await,
        Implementation::Library | Implementation::Unsupported => Err(Failure::not_implemented(&command.name)),
    }
}

/// Whether a reply has a cursor with further batches.
pub(crate) fn has_open_cursor(reply: &RawDocument) -> bool {
    reply.get_document("cursor").and_then(|cursor| cursor.get_i64("id")).is_ok_and(|id| id != 0)
}

/// Whether a client that allows it gets further replies without further requests: the next batches of a cursor, or the next states of the server.
pub(crate) fn continues(call: &Call<'_>, reply: &RawDocumentBuf) -> bool {
    match &*call.command.name {
        "getMore" => has_open_cursor(reply),
        "hello" | "isMaster" | "ismaster" => {
            // Only if the command waits: without a pause, there would be an endless flood of replies.
            hello::waits(call) && reply.get_f64("ok").is_ok_and(|ok| ok > 0.0)
        }
        _ => false,
    }
}
