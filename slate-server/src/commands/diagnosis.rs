//! What the server does, and what it offers.

use std::sync::Arc;

use bson::{RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, cstr, rawdoc};

use super::{
    Call, names,
    status::{VERSION, host_name},
};
use crate::{
    auth::{self, Action, Target},
    failure::{Code, Failure, Result},
    stages,
};

/// Fields of `currentOp` that are no part of its filter.
const OPTIONS: [&str; 4] = ["apiVersion", "comment", "lsid", "maxTimeMS"];

/// `currentOp`: the commands that run, of which the other fields of the command are a filter.
pub(super) async fn current_op(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let running = described(call, !call.truth("$ownOps")?);
    let mut filter = RawDocumentBuf::new();
    for element in call.command.document().iter().skip(1) {
        let (name, value) = element?;
        let is_condition = matches!(name.as_str(), "$and" | "$expr" | "$nor" | "$or");
        if is_condition || !(name.as_str().starts_with('$') || OPTIONS.contains(&name.as_str())) {
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
    // The filter ends when the command does.
    if let Some(most) = call.command.get("maxTimeMS")? {
        pipeline.append(cstr!("maxTimeMS"), most);
    }
    let reply = call.shared().commands.run_shared(&Arc::new(pipeline), call.token).await?;
    let matching = reply.get_document("cursor")?.get_array("firstBatch")?.to_owned();
    Ok(rawdoc! { "inprog": matching, "ok": 1.0 })
}

/// Returns the commands that run, of all users if the command says so and the user may see them.
fn described(call: &Call<'_>, all: bool) -> RawArrayBuf {
    let sees_all = if call.shared().settings.authentication {
        all && auth::holds(call, &Target::Cluster, Action::Inprog)
    } else {
        all || call.user().is_none()
    };
    let owner = call.user().filter(|_| !sees_all);
    call.shared().operations.describe(&host_name(), owner.as_ref().map(|user| &user.name))
}

/// Returns a command that begins with the stage `$currentOp` or `$listLocalSessions` as one over the commands that run or the sessions;
/// `None` for another command.
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
    // The library refuses a stage of several fields.
    if first.is_none_or(|first| first.iter().nth(1).is_some()) {
        return Ok(None);
    }
    let has_users = call.shared().settings.authentication;
    let is_of_database = call.integer("aggregate")? == Some(1);
    let misplaced = |message: &str| Err(Failure::new(Code(73, "InvalidNamespace"), message));
    let documents = if name == "$currentOp" {
        if command.database != "admin" || !is_of_database {
            return misplaced("$currentOp must be run against the 'admin' database with {aggregate: 1}");
        }
        // Without users, all operations are those of everyone.
        described(call, asks_for_all || !has_users)
    } else if name == "$listLocalSessions" {
        if !is_of_database {
            return misplaced("$listLocalSessions must be run against a database with {aggregate: 1}");
        }
        let sees_all = asks_for_all && auth::holds(call, &Target::Cluster, Action::ListSessions);
        let (all, owner) = (sees_all || !has_users, call.owner());
        call.shared().sessions.describe(|id| all || id.owner() == owner)
    } else {
        return Ok(None);
    };
    let mut pipeline = RawArrayBuf::new();
    // The descriptions contain the fields of commands, which are no expressions.
    pipeline.push(rawdoc! { "$documents": { "$literal": documents } });
    for stage in stages {
        pipeline.push(bson::RawBson::from(stage?));
    }
    let mut copy = RawDocumentBuf::new();
    for element in command.document().iter() {
        match element? {
            (name, _) if name == "pipeline" => copy.append(name, pipeline.clone()),
            (name, value) => copy.append(name, value),
        }
    }
    Ok(Some(copy))
}

/// Returns the reply of an explain with the server that has planned.
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

/// `{killOp: 1, op}`: cancels a command. Succeeds if it has ended already, as in MongoDB.
pub(super) fn kill_op(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let id = call.integer("op")?.ok_or_else(|| Failure::new(Code::BAD_VALUE, "Did not provide \"op\" field"))?;
    if let Ok(id) = i32::try_from(id) {
        let kills_all = !call.shared().settings.authentication || auth::holds(call, &Target::Cluster, Action::Killop);
        let owner = call.user().filter(|_| !kills_all);
        if !call.shared().operations.kill(id, owner.as_ref().map(|user| &user.name)) {
            let message = format!("not authorized on {} to execute command killOp", call.command.database);
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

/// `listCommands`.
pub(super) fn list_commands(_: &Call<'_>) -> Result<RawDocumentBuf> {
    let mut commands = RawDocumentBuf::new();
    let mut sorted: Vec<&str> = names().collect();
    sorted.sort_unstable();
    for name in sorted {
        if let Ok(key) = bson::raw::CString::try_from(name) {
            commands.append(key, rawdoc! { "help": "", "requiresAuth": auth::needs_login(name) });
        }
    }
    Ok(rawdoc! { "commands": commands, "ok": 1.0 })
}

/// `{profile: -1 | 0}`: the profiler is off. Slow operations are reported by the library's hook.
pub(super) fn profile(call: &Call<'_>) -> Result<RawDocumentBuf> {
    match call.integer("profile")? {
        Some(-1 | 0) => Ok(rawdoc! { "was": 0, "slowms": 100, "sampleRate": 1.0, "ok": 1.0 }),
        Some(1 | 2) => Err(Failure::not_implemented(
            "profiling levels 1 and 2; `slate serve --slow 100ms` reports slow operations on standard error",
        )),
        _ => Err(Failure::new(Code::BAD_VALUE, "the profiling level is -1, 0, 1 or 2")),
    }
}
