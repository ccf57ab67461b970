use bson::RawDocumentBuf;
use slate_query::{Code, raw::Kind};

use super::{call::Call, concern::Concerns, fields::missing, reply::Reply};
use crate::{Error, Result};

/// `{getMore: id, collection, batchSize}`: the next batch of a cursor, with the time limit of the command that has opened it.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let id = cursor_id(&call)?;
    let collection = call.fields.string("collection")?.ok_or_else(|| missing("getMore", "collection"))?;
    let batch = call.fields.size("batchSize")?;
    call.fields.integer("term")?;
    call.fields.object("lastKnownCommittedOpTime")?;
    let common = call.common(Concerns::Neither)?;
    call.fields.finish()?;
    if common.max_time.is_some() {
        let message = "cannot set maxTimeMS on getMore command for a non-awaitData cursor";
        return Err(Error::invalid(Code::BAD_VALUE, message).at("maxTimeMS"));
    }
    let Some(cursors) = call.at.cursors else { return Err(no_cursors("getMore")) };
    let mut reply = Reply::default();
    let batch = batch.filter(|&documents| documents > 0);
    cursors.next_batch(&mut reply, id, &common.namespace(collection), &common, batch)?;
    reply.finish()
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

/// Returns the error of a command about cursors where none can be open.
pub(super) fn no_cursors(command: &str) -> Error {
    let message =
        format!("every reply of Database::command contains all documents; {command} needs Database::commands");
    Error::invalid(Code::CURSOR_NOT_FOUND, message).at(command)
}
