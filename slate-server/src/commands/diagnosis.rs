//! What the server does, and what it offers.

use bson::{RawDocumentBuf, rawdoc};

use super::{Call, names, status::host_name};
use crate::failure::{Code, Failure, Result};

/// `currentOp`: the commands that run.
pub(super) fn current_op(call: &Call<'_>) -> Result<RawDocumentBuf> {
    Ok(rawdoc! { "inprog": call.shared().operations.describe(&host_name()), "ok": 1.0 })
}

/// `{killOp: 1, op}`: cancels a command. Succeeds if it has ended already, as in MongoDB.
pub(super) fn kill_op(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let id = call.integer("op")?.ok_or_else(|| Failure::new(Code::BAD_VALUE, "Did not provide \"op\" field"))?;
    if let Ok(id) = i32::try_from(id) {
        call.shared().operations.kill(id);
    }
    Ok(rawdoc! { "info": "attempting to kill op", "ok": 1.0 })
}

/// `{getLog: "*" | "global" | "startupWarnings"}`: no line is kept in memory.
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
