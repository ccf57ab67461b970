//! Commands of the library: alone, in a transaction, as a retryable write, or at the snapshot of a session.

mod awaiting;
mod retryable;
mod snapshot;
mod statements;
mod transaction;

use std::{borrow::Cow, sync::Arc};

use bson::{RawDocument, RawDocumentBuf, cstr};

use crate::{
    auth,
    commands::{Call, Trait, diagnosis},
    failure::{Code, Failure, Result},
    profiler::{self, PROFILE},
    protected,
    session::SessionId,
    stages,
};

pub(crate) use transaction::{abort, commit};

/// Executes a command of the library.
pub(crate) async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let command = call.command;
    if command.name == "drop" && command.collection() == Some(PROFILE) && !command.in_transaction {
        return profiler::drop_collection(call);
    }
    protected::check(command)?;
    let result = run_in_scope(call).await;
    if result.is_ok() {
        forget_dropped(call);
    }
    if command.is(Trait::Writes) {
        call.shared().database.next_time();
    }
    let Some(unsatisfied) = command.unsatisfied else { return result };
    let mut reply = result.map_err(|failure| failure.with_write_concern_error(unsatisfied.describe()))?;
    reply.append(cstr!("writeConcernError"), unsatisfied.describe());
    Ok(reply)
}

/// Removes the times of collections that a command has dropped or renamed.
fn forget_dropped(call: &Call<'_>) {
    let (command, top) = (call.command, &call.shared().top);
    match &*command.name {
        "drop" => command.collection().iter().for_each(|dropped| top.forget(command.database(), Some(dropped))),
        "dropDatabase" => {
            top.forget(command.database(), None);
            call.shared().profiler.forget(command.database());
        }
        "renameCollection" => {
            let full = |name| command.get(name).ok().flatten().and_then(|full| full.as_str()?.split_once('.'));
            for (database, collection) in full("renameCollection").into_iter().chain(full("to")) {
                top.forget(database, Some(collection));
            }
        }
        _ => {}
    }
}

/// Executes the command in the scope that its fields select: in a transaction, as a retryable write, at a snapshot or alone.
async fn run_in_scope(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let command = call.command;
    let shared = call.shared();
    let session = command.session().map(|lsid| SessionId::read(lsid, call.owner())).transpose()?;
    // A client that has not logged in must not create sessions.
    if let Some(id) = session.filter(|_| !call.is_of_stranger()) {
        shared.sessions.use_session(id)?;
    }
    match (session, command.number) {
        (None, Some(_)) => {
            Err(Failure::new(Code::INVALID_OPTIONS, "a transaction number requires a session id to also be specified"))
        }
        (Some(id), Some(number)) if command.in_transaction => transaction::run(call, id, number).await,
        (Some(_), Some(_)) if command.starts_transaction => {
            let message = "'startTransaction' field requires 'autocommit' field to also be specified";
            Err(Failure::new(Code::INVALID_OPTIONS, message))
        }
        (Some(_), Some(_)) if !command.is(Trait::Retryable) => Err(transaction::not_retryable(command)),
        (Some(id), Some(number)) => retryable::run(call, id, number).await,
        (_, None) if command.in_transaction || command.starts_transaction => {
            let message = "'autocommit' and 'startTransaction' require a transaction number";
            Err(Failure::new(Code::INVALID_OPTIONS, message))
        }
        (session, None) => match &command.read_concern {
            Some(concern)
                if command.name != "getMore"
                    && (concern.level.as_deref() == Some("snapshot") || concern.at.is_some()) =>
            {
                snapshot::run(call, session, concern).await
            }
            _ => {
                let rewritten = match diagnosis::with_own_documents(call)? {
                    Some(rewritten) => Some(rewritten),
                    None => auth::narrowed(call)?,
                };
                let document = rewritten.map_or_else(|| command.for_library(), |rewritten| Ok(Arc::new(rewritten)))?;
                // A user who may close every cursor closes them without being their owner.
                let closes_all = command.name == "killCursors"
                    && auth::holds(call, &auth::Target::Cluster, auth::Action::KillAnyCursor);
                if command.name == "getMore" {
                    return awaiting::get_more(call, document).await;
                }
                let commands = if closes_all { Cow::Borrowed(&shared.commands) } else { call.commands() };
                let reply = commands.run_shared(&document, call.running()).await?;
                if command.explains() { diagnosis::with_server(call, &reply) } else { Ok(reply) }
            }
        },
    }
}

/// Whether a command opens or reads a change stream.
pub(crate) fn is_of_stream(call: &Call<'_>) -> bool {
    match &*call.command.name {
        "getMore" => awaiting::is_of_stream(call),
        "aggregate" => {
            let pipeline = call.command.get("pipeline").ok().flatten().and_then(|pipeline| pipeline.as_array());
            let first = pipeline.and_then(|pipeline| stages::first(pipeline).ok().flatten());
            first.is_some_and(|(name, _)| name == "$changeStream")
        }
        _ => false,
    }
}

/// Returns whether a write has failed statements. A `bulkWrite` counts them, because their errors can be in a later batch of its cursor.
fn has_refused(reply: &RawDocument) -> bool {
    let count = reply.get("nErrors").ok().flatten();
    count.map_or_else(|| reply.get_array("writeErrors").is_ok(), |errors| errors.as_i32() != Some(0))
}

/// Returns the failure of the first failed statement of an `insert`, `update` or `delete`; `None` if all have succeeded.
pub(crate) fn first_write_error(reply: &RawDocument) -> Option<Failure> {
    let failure = |error: &RawDocument| {
        Some(Failure::of_reply(error.get_i32("code").ok()?, error.get_str("errmsg").unwrap_or_default()))
    };
    let errors = reply.get_array("writeErrors");
    errors.into_iter().flatten().flatten().find_map(|error| failure(error.as_document()?))
}
