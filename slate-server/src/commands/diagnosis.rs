//! What the server does, and what it offers.

use bson::{RawArrayBuf, RawBsonRef, RawDocumentBuf, rawdoc};

use super::{Call, names, status::host_name};
use crate::failure::{Code, Failure, Result};

/// `currentOp`: the commands that run.
pub(super) fn current_op(call: &Call<'_>) -> Result<RawDocumentBuf> {
    Ok(rawdoc! { "inprog": call.shared().operations.describe(&host_name()), "ok": 1.0 })
}

/// Returns a command that begins with the stage `$currentOp` as one over the commands that run; `None` for another command.
///
/// # Errors
/// Fails if the stage is not in the database `admin`, as in MongoDB.
pub(crate) fn with_operations(call: &Call<'_>) -> Result<Option<RawDocumentBuf>> {
    let command = call.command;
    let Some(RawBsonRef::Array(stages)) = command.get("pipeline")?.filter(|_| command.name == "aggregate") else {
        return Ok(None);
    };
    let mut stages = stages.into_iter();
    let first = stages.next().transpose()?.and_then(|first| first.as_document());
    if !first.is_some_and(|first| matches!(first.get("$currentOp"), Ok(Some(_)))) {
        return Ok(None);
    }
    if command.database != "admin" || call.integer("aggregate")? != Some(1) {
        let message = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
        return Err(Failure::new(Code(73, "InvalidNamespace"), message));
    }
    let running = call.shared().operations.describe(&host_name());
    let mut pipeline = RawArrayBuf::new();
    // The descriptions contain the fields of commands, which are no expressions.
    pipeline.push(rawdoc! { "$documents": { "$literal": running } });
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

/// `{killOp: 1, op}`: cancels a command. Succeeds if it has ended already, as in MongoDB.
pub(super) fn kill_op(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let id = call.integer("op")?.ok_or_else(|| Failure::new(Code::BAD_VALUE, "Did not provide \"op\" field"))?;
    if let Ok(id) = i32::try_from(id) {
        call.shared().operations.kill(id);
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
        if let Ok(name) = bson::raw::CString::try_from(name) {
            commands.append(name, rawdoc! { "help": "", "requiresAuth": false });
        }
    }
    Ok(rawdoc! { "commands": commands, "ok": 1.0 })
}

/// `{profile: -1 | 0}`: the profiler is off. Slow operations are reported by the library's hook.
pub(super) fn profile(call: &Call<'_>) -> Result<RawDocumentBuf> {
    match call.integer("profile")? {
        Some(-1 | 0) => Ok(rawdoc! { "was": 0, "slowms": 100, "sampleRate": 1.0, "ok": 1.0 }),
        Some(1 | 2) => Err(Failure::not_implemented("profiling levels 1 and 2")),
        _ => Err(Failure::new(Code::BAD_VALUE, "the profiling level is -1, 0, 1 or 2")),
    }
}
