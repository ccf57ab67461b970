use std::time::Instant;

use bson::{RawBsonRef, RawDocumentBuf, Timestamp, cstr};
use slate_core::aio;

use crate::{
    command::ReadConcern,
    commands::{Call, Trait},
    failure::{Code, Failure, Result},
    session::{SessionId, SessionSnapshot},
};

/// Executes a read with the level `snapshot`. The first one of a session takes a snapshot and returns its time; later ones specify that time.
pub(super) async fn run(call: &Call<'_>, session: Option<SessionId>, concern: &ReadConcern) -> Result<RawDocumentBuf> {
    if !call.command.is(Trait::Reads) {
        let message = format!("the command '{}' does not support readConcern level 'snapshot'", call.command.name);
        return Err(Failure::new(Code::INVALID_OPTIONS, message));
    }
    let (time, snapshot) = take(call, session, concern).await?;
    let commands = call.commands().at_snapshot(&snapshot);
    let reply = commands.run_shared(&call.command.for_library()?, call.running()).await?;
    with_time(&reply, time)
}

async fn take(
    call: &Call<'_>,
    session: Option<SessionId>,
    concern: &ReadConcern,
) -> Result<(Timestamp, aio::Snapshot)> {
    let shared = call.shared();
    let too_old = || Failure::new(Code::SNAPSHOT_TOO_OLD, "the snapshot of this time is no longer available");
    let Some(id) = session else {
        return match concern.at {
            Some(_) => Err(too_old()),
            None => Ok((shared.database.last_time(), call.unless_ended(shared.database.snapshot()).await??)),
        };
    };
    let session = shared.sessions.use_session(id)?;
    let mut state = call.unless_ended(session.state.lock()).await?;
    match concern.at {
        Some(time) => {
            let held = state.snapshot.as_ref().filter(|held| held.time == time);
            held.map(|held| (time, held.snapshot.clone())).ok_or_else(too_old)
        }
        None => {
            // Drops the session's older snapshot first, to free its quota.
            state.snapshot = None;
            let place = shared.snapshots.take(call.owner().map(Into::into))?;
            let (time, snapshot) = (shared.database.next_time(), call.unless_ended(shared.database.snapshot()).await??);
            let held = SessionSnapshot { time, snapshot: snapshot.clone(), since: Instant::now(), _place: place };
            state.snapshot = Some(held);
            Ok((time, snapshot))
        }
    }
}

/// Returns the reply with `atClusterTime`: in its cursor if it has one, otherwise as a field.
fn with_time(reply: &bson::RawDocument, time: Timestamp) -> Result<RawDocumentBuf> {
    let mut copy = RawDocumentBuf::new();
    let mut is_in_cursor = false;
    for element in reply.iter() {
        let (name, value) = element?;
        match value {
            RawBsonRef::Document(cursor) if name == "cursor" => {
                let mut cursor = cursor.to_owned();
                cursor.append(cstr!("atClusterTime"), time);
                copy.append(name, cursor);
                is_in_cursor = true;
            }
            value => copy.append(name, value),
        }
    }
    if !is_in_cursor {
        copy.append(cstr!("atClusterTime"), time);
    }
    Ok(copy)
}
