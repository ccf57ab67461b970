//! The running operations, and the commands that the server offers.

use std::{borrow::Cow, cell::LazyCell, collections::HashMap, sync::Arc};

use bson::{RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, cstr, rawdoc};
use slate_core::OpenCursor;

use super::{
    Call,
    status::{VERSION, host_name},
    table::{OF_EVERY_COMMAND, offered_names},
};
use crate::{
    auth::{self, Action, Target},
    failure::{Code, Failure, Result},
    operations::{self, Scope, Whose},
    stages,
};

/// `currentOp`: lists the running commands. Its other fields are a filter of the list.
pub(super) async fn current_op(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let (all, idle_connections) = (!call.truth("$ownOps")?, call.truth("$all")?);
    let running = described(call, Described { all, idle_connections, truncates: true, ..Described::default() })?;
    let mut filter = RawDocumentBuf::new();
    for element in call.command.document().iter().skip(1) {
        let (name, value) = element?;
        let is_condition = matches!(name.as_str(), "$and" | "$expr" | "$nor" | "$or");
        if is_condition || !(name.as_str().starts_with('$') || OF_EVERY_COMMAND.contains(&name.as_str())) {
            filter.append(name, value);
        }
    }
    if filter.is_empty() {
        return Ok(rawdoc! { "inprog": running, "ok": 1.0 });
    }
    let mut pipeline = rawdoc! {
        "aggregate": 1, "$db": "admin", "cursor": { "batchSize": i32::MAX },
        "pipeline": [{ "$documents": { "$literal": running } }, { "$match": filter }],
    };
    // The filter has the time limit of the command.
    if let Some(most) = call.command.get("maxTimeMS")? {
        pipeline.append(cstr!("maxTimeMS"), most);
    }
    let reply = call.shared().commands.run_shared(&Arc::new(pipeline), call.running()).await?;
    let matching = reply.get_document("cursor")?.get_array("firstBatch")?.to_owned();
    Ok(rawdoc! { "inprog": matching, "ok": 1.0 })
}

/// What `currentOp` and `$currentOp` list.
#[derive(Clone, Copy, Debug)]
struct Described {
    /// Whether operations of all users are listed.
    all: bool,
    idle_connections: bool,
    idle_cursors: bool,
    /// Whether sessions with an open transaction between two commands are listed.
    idle_sessions: bool,
    /// Whether long commands are truncated.
    truncates: bool,
}

impl Default for Described {
    fn default() -> Self {
        Self { all: false, idle_connections: false, idle_cursors: false, idle_sessions: true, truncates: false }
    }
}

impl Described {
    /// Reads the options of `$currentOp`.
    fn read(options: &RawDocument) -> Result<Self> {
        let mut described = Self::default();
        for option in options {
            let (name, value) = option?;
            let known = match name.as_str() {
                "allUsers" => &mut described.all,
                "idleConnections" => &mut described.idle_connections,
                "idleCursors" => &mut described.idle_cursors,
                "idleSessions" => &mut described.idle_sessions,
                "truncateOps" => &mut described.truncates,
                // These options are for several servers, or for features that this server does not have.
                "backtrace" | "localOps" | "targetAllNodes" => &mut false,
                name => {
                    let message = format!("Unrecognized option '{name}' in $currentOp stage.");
                    return Err(Failure::new(Code::FAILED_TO_PARSE, message));
                }
            };
            *known = value.as_bool().ok_or_else(|| {
                let message = format!("The '{name}' parameter of the $currentOp stage must be a boolean value.");
                Failure::new(Code::FAILED_TO_PARSE, message)
            })?;
        }
        Ok(described)
    }
}

/// Maximum bytes of descriptions that one command collects, before its first stage or filter reads them. MongoDB's limit for a stage that holds
/// documents is 100 MB; the descriptions are copied twice.
const MAX_DESCRIPTIONS: usize = 32 << 20;

/// Descriptions of operations or sessions, up to a total size.
#[derive(Default)]
struct Descriptions {
    all: RawArrayBuf,
    bytes: usize,
}

impl Descriptions {
    /// Adds descriptions. Fails with `ExceededMemoryLimit` (146) above [`MAX_DESCRIPTIONS`] bytes.
    fn add(&mut self, descriptions: impl IntoIterator<Item = RawDocumentBuf>) -> Result<()> {
        for description in descriptions {
            self.bytes += description.as_bytes().len();
            if self.bytes > MAX_DESCRIPTIONS {
                let message = format!("what the server has to describe exceeds {MAX_DESCRIPTIONS} bytes");
                return Err(Failure::new(Code(146, "ExceededMemoryLimit"), message));
            }
            self.all.push(description);
        }
        Ok(())
    }
}

/// Returns the running commands and the other selected operations; those of other users only if selected and permitted.
fn described(call: &Call<'_>, wanted: Described) -> Result<RawArrayBuf> {
    let (shared, host) = (call.shared(), host_name());
    let sees_all = if shared.settings.authentication {
        wanted.all && auth::holds(call, &Target::Cluster, Action::Inprog)
    } else {
        wanted.all || call.user().is_none()
    };
    let owner = call.user().filter(|_| !sees_all);
    let scope = Scope { idle_connections: wanted.idle_connections && sees_all, truncates: wanted.truncates };
    let commands = if sees_all { Cow::Borrowed(&shared.commands) } else { call.commands() };
    let cursors = LazyCell::new(|| -> HashMap<i64, OpenCursor> {
        commands.as_blocking().cursors().into_iter().map(|cursor| (cursor.id(), cursor)).collect()
    });
    let whose = Whose::of(owner.as_deref());
    let mut described = Descriptions::default();
    described.add(shared.operations.describe(&host, whose, scope, |id| cursors.get(&id)))?;
    if wanted.idle_cursors {
        let mut idle: Vec<&OpenCursor> = cursors.values().filter(|cursor| !cursor.is_in_use()).collect();
        idle.sort_unstable_by_key(|cursor| cursor.created());
        described.add(idle.into_iter().map(|cursor| operations::idle_cursor(cursor, &host)))?;
    }
    if wanted.idle_sessions {
        let owner = owner.map(|owner| owner.digest);
        described.add(shared.sessions.idle_transactions(
            |id| sees_all || id.owner() == owner,
            shared.settings.transaction_life,
            &host,
        ))?;
    }
    Ok(described.all)
}

/// Rewrites a command that begins with the stage `$currentOp`, `$listLocalSessions` or `$listSessions` to one over the operations or sessions as
/// documents; `None` for another command.
///
/// # Errors
/// Fails if the stage is not where MongoDB allows it.
pub(crate) fn with_own_documents(call: &Call<'_>) -> Result<Option<RawDocumentBuf>> {
    let command = call.command;
    if command.name != "aggregate" {
        return Ok(None);
    }
    let Some(RawBsonRef::Array(stages)) = command.get("pipeline")? else { return Ok(None) };
    let Some((name, options)) = stages::first(stages)? else { return Ok(None) };
    let asks_for_all = options.as_document().is_some_and(|options| options.get_bool("allUsers").unwrap_or_default());
    let mut stages = stages.into_iter();
    let first = stages.next().transpose()?.and_then(|first| first.as_document());
    // The library refuses a stage with several fields.
    if first.is_none_or(|first| first.iter().nth(1).is_some()) {
        return Ok(None);
    }
    let has_users = call.shared().settings.authentication;
    let is_of_database = call.integer("aggregate")? == Some(1);
    let misplaced = |message: &str| Err(Failure::new(Code(73, "InvalidNamespace"), message));
    let documents = if name == "$currentOp" {
        if command.database() != "admin" || !is_of_database {
            return misplaced("$currentOp must be run against the 'admin' database with {aggregate: 1}");
        }
        let Some(options) = options.as_document() else {
            return Err(Failure::new(Code::FAILED_TO_PARSE, "$currentOp options must be specified in an object."));
        };
        let wanted = Described::read(options)?;
        // Without users, all operations belong to the same client.
        described(call, Described { all: wanted.all || !has_users, ..wanted })?
    } else if name == "$listLocalSessions" || name == "$listSessions" {
        // In a replica set of one member, the sessions of the set are those of the server.
        let is_listed = command.database() == "config" && command.collection() == Some("system.sessions");
        match name {
            "$listSessions" if !is_listed => {
                return misplaced("$listSessions may only be run against config.system.sessions");
            }
            "$listLocalSessions" if !is_of_database => {
                return misplaced("$listLocalSessions must be run against a database with {aggregate: 1}");
            }
            _ => {}
        }
        let sees_all = asks_for_all && auth::holds(call, &Target::Cluster, Action::ListSessions);
        let (all, owner) = (sees_all || !has_users, call.owner());
        let mut described = Descriptions::default();
        described.add(call.shared().sessions.describe(|id| all || id.owner() == owner))?;
        described.all
    } else {
        return Ok(None);
    };
    let mut pipeline = RawArrayBuf::new();
    // A literal, because fields of commands in the descriptions must not be read as expressions.
    pipeline.push(rawdoc! { "$documents": { "$literal": documents } });
    for stage in stages {
        pipeline.push(bson::RawBson::from(stage?));
    }
    let mut copy = RawDocumentBuf::new();
    for element in command.document().iter() {
        match element? {
            (name, _) if name == "aggregate" => copy.append(name, 1),
            (name, _) if name == "pipeline" => copy.append(name, pipeline.clone()),
            (name, value) => copy.append(name, value),
        }
    }
    Ok(Some(copy))
}

/// Returns the reply to an explain, with the fields that describe this server.
pub(crate) fn with_server(call: &Call<'_>, reply: &RawDocument) -> Result<RawDocumentBuf> {
    let me = call.own_address();
    let port = me.rsplit_once(':').and_then(|(_, port)| port.parse::<i32>().ok()).unwrap_or_default();
    let mut copy = RawDocumentBuf::new();
    for element in reply.iter() {
        let (name, value) = element?;
        if name == "ok" {
            let server = rawdoc! { "host": host_name(), "port": port, "version": VERSION, "gitVersion": "" };
            copy.append(cstr!("serverInfo"), server);
        }
        copy.append(name, value);
    }
    Ok(copy)
}

/// `{killOp: 1, op}`: cancels a command. Also succeeds if it has already ended, as in MongoDB.
pub(super) fn kill_op(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let id = call.integer("op")?.ok_or_else(|| Failure::new(Code::BAD_VALUE, "Did not provide \"op\" field"))?;
    if let Ok(id) = i32::try_from(id) {
        let kills_all = !call.shared().settings.authentication || auth::holds(call, &Target::Cluster, Action::Killop);
        let owner = call.user().filter(|_| !kills_all);
        if !call.shared().operations.kill(id, Whose::of(owner.as_deref())) {
            let message = format!("not authorized on {} to execute command killOp", call.command.database());
            return Err(Failure::new(Code::UNAUTHORIZED, message));
        }
    }
    Ok(rawdoc! { "info": "attempting to kill op", "ok": 1.0 })
}

/// `{getLog: "*" | "global" | "startupWarnings"}`: always empty, because the server stores no log.
pub(super) fn log(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let which = call.command.get("getLog")?.and_then(|which| which.as_str());
    match which.ok_or_else(|| Failure::mistyped("getLog", "string"))? {
        "*" => Ok(rawdoc! { "names": ["global", "startupWarnings"], "ok": 1.0 }),
        "global" | "startupWarnings" => Ok(rawdoc! { "totalLinesWritten": 0, "log": [], "ok": 1.0 }),
        other => Err(Failure::new(Code(96, "OperationFailed"), format!("No log named '{other}'"))),
    }
}

/// `listCommands`: returns the names of the offered commands.
pub(super) fn list_commands(_: &Call<'_>) -> Result<RawDocumentBuf> {
    let mut commands = RawDocumentBuf::new();
    let mut sorted: Vec<&str> = offered_names().collect();
    sorted.sort_unstable();
    for name in sorted {
        if let Ok(key) = bson::raw::CString::try_from(name) {
            commands.append(key, rawdoc! { "help": "", "requiresAuth": auth::needs_login(name) });
        }
    }
    Ok(rawdoc! { "commands": commands, "ok": 1.0 })
}

/// `top`: the time that commands have taken on each collection since the start.
pub(super) fn top(call: &Call<'_>) -> Result<RawDocumentBuf> {
    Ok(rawdoc! { "totals": call.shared().top.describe(), "ok": 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_described_is_limited() {
        let mut described = Descriptions::default();
        let one = || std::iter::once(rawdoc! { "a": "x".repeat(8 << 20) });
        for _ in 0..3 {
            described.add(one()).unwrap();
        }
        assert_eq!(described.add(one()).unwrap_err().code, 146);
        assert_eq!(described.all.into_iter().count(), 3);
    }
}
