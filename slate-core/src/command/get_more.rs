use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Doc, Kind, Value},
};

use super::{
    call::{Call, Waits},
    concern::Concerns,
    fields::missing,
    reply::Reply,
};
use crate::{
    Error, Result,
    api::watch::Parked,
    changes::{OtherWriters, POLL},
};

/// `{getMore: id, collection, batchSize}`: the next batch of a cursor, with the time limit of the command that opened it.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let id = cursor_id(&call)?;
    let collection = call.fields.string("collection")?.ok_or_else(|| missing("getMore", "collection"))?;
    let batch = call.fields.size("batchSize")?;
    call.fields.integer("term")?;
    call.fields.object("lastKnownCommittedOpTime")?;
    let common = call.common(Concerns::Neither)?;
    call.fields.finish()?;
    let Some(cursors) = call.at.cursors else { return Err(no_cursors("getMore")) };
    let awaits = cursors.awaits(id);
    if common.max_time.is_some() && cursors.is_of_query(id) {
        let message = "cannot set maxTimeMS on getMore command for a non-awaitData cursor";
        return Err(Error::invalid(Code::BAD_VALUE, message).at("maxTimeMS"));
    }
    let mut reply = Reply::default();
    let batch = batch.filter(|&documents| documents > 0);
    let namespace = common.namespace(collection);
    if !awaits || call.at.waits == Waits::No {
        cursors.next_batch(&mut reply, id, &namespace, &common, batch, call.at.running.token)?;
        return reply.finish();
    }
    // For a change stream, `maxTimeMS` is the time to wait for an event.
    let until = Instant::now() + common.max_time.unwrap_or(AWAIT);
    loop {
        let parked = Parked::here();
        let waiting = cursors.wait(id, Arc::clone(&parked).into()).transpose()?;
        let others = waiting.as_ref().map_or(Ok(OtherWriters::None), |(_, database)| database.other_writers())?;
        let mut reply = Reply::default();
        cursors.next_batch(&mut reply, id, &namespace, &common, batch, call.at.running.token)?;
        let reply = reply.finish()?;
        if !is_empty_batch(&reply) {
            return Ok(reply);
        }
        // Commits of other processes do not wake this thread.
        let next_look = Instant::now() + POLL;
        let looks = others == OtherWriters::Expected && next_look < until;
        if !parked.wait(if looks { next_look } else { until }, call.at.running.token)? && !looks {
            return Ok(reply);
        }
        drop(waiting);
    }
}

/// How long to wait for an event of a change stream without `maxTimeMS`, as in MongoDB.
const AWAIT: Duration = Duration::from_secs(1);

/// Whether a reply has no documents and its cursor is still open.
pub(super) fn is_empty_batch(reply: &RawDocumentBuf) -> bool {
    let Some(cursor) = Doc::from(reply).get("cursor").and_then(Value::as_document) else { return false };
    let is_open = cursor.get("id").and_then(Value::as_i64) != Some(0);
    is_open && cursor.get("nextBatch").and_then(Value::as_array).is_some_and(Doc::is_empty)
}

fn cursor_id(call: &Call<'_>) -> Result<i64> {
    call.target.as_i64().filter(|_| call.target.kind() == Kind::Int64).ok_or_else(|| {
        let message = format!(
            "BSON field 'getMore.getMore' is the wrong type '{}', expected type 'long'",
            call.target.kind().alias()
        );
        Error::invalid(Code::TYPE_MISMATCH, message).at("getMore")
    })
}

/// Returns the error of a command about cursors if the caller has none: see [`Database::commands`](crate::Database::commands).
pub(super) fn no_cursors(command: &str) -> Error {
    let message =
        format!("every reply of Database::command contains all documents; {command} needs Database::commands");
    Error::invalid(Code::CURSOR_NOT_FOUND, message).at(command)
}
