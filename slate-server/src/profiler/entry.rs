use std::time::Duration;

use bson::{DateTime, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, cstr, rawdoc};

use super::{MAX_ENTRY, bulk::BulkPart};
use crate::{
    command::{Command, beginning},
    commands::Call,
    operations::{MAX_COMMAND, kind, number, shown},
};

/// Maximum bytes of a recorded error message.
const MAX_MESSAGE: usize = 1000;

/// About the maximum bytes of the fields after the plan in an entry.
const REST: usize = 1 << 12;

/// Bytes of a message in addition to its document.
const AROUND: usize = 21;

/// Describes a finished command, or a part of it, in the form of MongoDB's profiler.
pub(super) fn describe(
    call: &Call<'_>,
    part: Option<BulkPart<'_>>,
    reply: &RawDocument,
    time: Duration,
) -> RawDocumentBuf {
    let (command, activity) = (call.command, call.activity);
    let shown = match &part {
        Some(part) => shown(&part.document(), MAX_COMMAND),
        None => statement(command).unwrap_or_else(|| shown(command.document(), MAX_COMMAND)),
    };
    let mut entry = rawdoc! {
        "op": kind(&command.name),
        "ns": part.as_ref().map_or_else(|| command.namespace(), BulkPart::namespace),
        "command": shown,
    };
    // Examined and written documents are known only for the whole command.
    let is_all = part.as_ref().is_none_or(|part| part.is_all);
    let summary = activity.plan_summary().filter(|_| is_all);
    if let Ok(cursor) = reply.get_document("cursor") {
        append_cursor(&mut entry, command, cursor);
    }
    if summary.is_some() {
        entry.append(cstr!("keysExamined"), number(activity.keys_examined()));
        entry.append(cstr!("docsExamined"), number(activity.documents_examined()));
    }
    if is_all {
        append_result(&mut entry, command, reply);
    }
    entry.append(cstr!("numYield"), 0);
    entry.append(cstr!("responseLength"), number(reply.as_bytes().len() + AROUND));
    entry.append(cstr!("protocol"), "op_msg");
    entry.append(cstr!("millis"), number(time.as_millis()));
    if let Some(summary) = summary {
        entry.append(cstr!("planSummary"), summary);
        if let Some(stages) = activity.plan().and_then(|plan| RawDocumentBuf::try_from(&plan).ok()) {
            // A long filter occurs in the stages, too. Without them the entry may be short enough.
            if entry.as_bytes().len() + stages.as_bytes().len() <= MAX_ENTRY - REST {
                entry.append(cstr!("execStats"), stages);
            }
        }
    }
    append_failure(&mut entry, reply, is_all);
    entry.append(cstr!("ts"), DateTime::now());
    entry.append(cstr!("client"), call.connection.peer.host());
    if let Some(application) = call.connection.place.application() {
        entry.append(cstr!("appName"), application);
    }
    let user = call.user();
    let users: RawArrayBuf = user.iter().map(|user| user.name.document()).collect();
    entry.append(cstr!("allUsers"), users);
    entry.append(cstr!("user"), user.map(|user| user.name.to_string()).unwrap_or_default());
    entry
}

/// Returns the only statement of an `update` or `delete`, because MongoDB records statements; `None` if it is too long, or if there are several,
/// which are one entry here.
fn statement(command: &Command) -> Option<RawDocumentBuf> {
    let name = match &*command.name {
        "update" => "updates",
        "delete" => "deletes",
        _ => return None,
    };
    let mut statements = command.get(name).ok()??.as_array()?.into_iter();
    let only = statements.next()?.ok()?.as_document()?;
    (statements.next().is_none() && only.as_bytes().len() <= MAX_COMMAND).then(|| only.to_owned())
}

fn append_cursor(entry: &mut RawDocumentBuf, command: &Command, cursor: &RawDocument) {
    let opened = command.get("getMore").ok().flatten().and_then(|id| id.as_i64());
    let id = cursor.get_i64("id").unwrap_or_default();
    if let Some(id) = opened.or(Some(id)).filter(|id| *id != 0) {
        entry.append(cstr!("cursorid"), id);
    }
    if id == 0 {
        entry.append(cstr!("cursorExhausted"), true);
    }
    if command.name != "bulkWrite"
        && let Ok(batch) = cursor.get_array("firstBatch").or_else(|_| cursor.get_array("nextBatch"))
    {
        entry.append(cstr!("nreturned"), number(batch.into_iter().count()));
    }
}

/// Appends the counts of a write; nothing for another command.
fn append_result(entry: &mut RawDocumentBuf, command: &Command, reply: &RawDocument) {
    let count = |name: &str| reply.get(name).ok().flatten().and_then(integer).unwrap_or_default();
    match &*command.name {
        "insert" => entry.append(cstr!("ninserted"), count("n")),
        "delete" => entry.append(cstr!("ndeleted"), count("n")),
        "update" => {
            let upserted = number(reply.get_array("upserted").map_or(0, |upserted| upserted.into_iter().count()));
            entry.append(cstr!("nMatched"), count("n") - upserted);
            entry.append(cstr!("nModified"), count("nModified"));
            entry.append(cstr!("nUpserted"), upserted);
        }
        "bulkWrite" => {
            entry.append(cstr!("ninserted"), count("nInserted"));
            entry.append(cstr!("nMatched"), count("nMatched"));
            entry.append(cstr!("nModified"), count("nModified"));
            entry.append(cstr!("nUpserted"), count("nUpserted"));
            entry.append(cstr!("ndeleted"), count("nDeleted"));
        }
        _ => {}
    }
}

/// Appends the error of the command, or of its first failed statement.
fn append_failure(entry: &mut RawDocumentBuf, reply: &RawDocument, is_all: bool) {
    let has_failed = reply.get_f64("ok").is_ok_and(|ok| ok < 1.0);
    let refused = || reply.get_array("writeErrors").ok()?.into_iter().next()?.ok()?.as_document();
    let Some(failure) = (if has_failed { Some(reply) } else { refused() }) else { return };
    // The message could be one of another database.
    if let Ok(message) = failure.get_str("errmsg")
        && is_all
    {
        entry.append(cstr!("errMsg"), beginning(message, MAX_MESSAGE));
    }
    if let Ok(name) = failure.get_str("codeName") {
        entry.append(cstr!("errName"), name);
    }
    if let Ok(code) = failure.get_i32("code") {
        entry.append(cstr!("errCode"), code);
    }
    if has_failed {
        entry.append(cstr!("ok"), 0.0);
    }
}

fn integer(value: RawBsonRef<'_>) -> Option<i64> {
    value.as_i64().or_else(|| value.as_i32().map(i64::from))
}
