use std::mem;

use bson::RawDocumentBuf;
use slate_core::{Commands, Error};

use super::{first_write_error, transaction};
use crate::{
    commands::Call,
    failure::{Code, Failure, Result},
    session::{Record, SessionId, SessionState, Work},
};

/// Maximum length in bytes of a reply that a session holds in memory.
const MAX_CACHED_REPLY: usize = 1 << 12;

/// Executes a retryable write: a client repeats it with the same number if it receives no reply. A record is committed together with the write, and
/// a repetition returns the reply in the record.
pub(super) async fn run(call: &Call<'_>, id: SessionId, number: i64) -> Result<RawDocumentBuf> {
    let shared = call.shared();
    let session = shared.sessions.use_session(id)?;
    let mut state = call.unless_ended(session.state.lock()).await?;
    if shared.settings.read_only {
        return Ok(call.commands().run_shared(&call.command.for_library()?, call.running()).await?);
    }
    call.unless_ended(Record::load(shared, id, &mut state)).await??;
    transaction::check_age(id, &state, number)?;
    if state.number == Some(number) {
        if let Work::Recorded = state.work {
            state.is_loaded = false;
            call.unless_ended(Record::load(shared, id, &mut state)).await??;
        }
        if let Some(reply) = known_reply(&mut state) {
            return Ok(reply);
        }
        return match &state.work {
            Work::None | Work::Recorded | Work::Wrote(_) => Err(unknown(number)),
            Work::Open(_) | Work::Committed | Work::Aborted => {
                let message =
                    format!("the transaction number {number} belongs to a transaction, not to a retryable write");
                Err(Failure::new(Code(117, "ConflictingOperationInProgress"), message))
            }
        };
    }
    // A new number ends the session's transaction, if one is open.
    state.number = Some(number);
    state.work = Work::Aborted;
    // The fail point acts before the transaction, because that may be executed by another thread, and repeatedly.
    let written = match shared.fail_points.on_write(call) {
        Ok(()) => write(call, id, number).await,
        Err(failure) => Err(failure.into()),
    };
    match written {
        Ok(reply) => {
            // A longer reply is read from its record if the client repeats the write.
            let is_short = reply.as_bytes().len() <= MAX_CACHED_REPLY;
            state.work = if is_short { Work::Wrote(reply.clone()) } else { Work::Recorded };
            Ok(reply)
        }
        Err(Unwritten::Recorded) => {
            state.is_loaded = false;
            call.unless_ended(Record::load(shared, id, &mut state)).await??;
            transaction::check_age(id, &state, number)?;
            known_reply(&mut state).ok_or_else(|| unknown(number))
        }
        Err(Unwritten::Failed(failure)) => {
            // Nothing was written, so the same number may be sent again; if the outcome is unknown, the record decides.
            state.is_loaded = false;
            state.number = None;
            state.work = Work::None;
            Err(failure)
        }
    }
}

/// Returns the reply of the session's last write, if it is in memory. A long one is then removed from memory; its record has it.
fn known_reply(state: &mut SessionState) -> Option<RawDocumentBuf> {
    match &state.work {
        Work::Wrote(reply) if reply.as_bytes().len() <= MAX_CACHED_REPLY => Some(reply.clone()),
        Work::Wrote(_) => match mem::replace(&mut state.work, Work::Recorded) {
            Work::Wrote(reply) => Some(reply),
            _ => None,
        },
        _ => None,
    }
}

/// Why the write was not made.
enum Unwritten {
    /// A server in another process on the same store has recorded this write or a later one.
    Recorded,
    Failed(Failure),
}

impl From<Failure> for Unwritten {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Error> for Unwritten {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Executes the write together with its record, and repeats both after conflicts.
async fn write(call: &Call<'_>, id: SessionId, number: i64) -> Result<RawDocumentBuf, Unwritten> {
    let record = move |within: &Commands, reply: RawDocumentBuf| -> Result<RawDocumentBuf, Unwritten> {
        for command in Record::of_write(id, number, &reply) {
            match first_write_error(&within.run(command)?) {
                Some(failure) if failure.code == Record::EXISTS => return Err(Unwritten::Recorded),
                Some(failure) => return Err(failure.into()),
                None => {}
            }
        }
        Ok(reply)
    };
    let is_conflict = |unwritten: &Unwritten| matches!(unwritten, Unwritten::Failed(failure) if failure.is_conflict());
    call.commands().run_then(&call.command.for_library()?, call.running(), record, is_conflict).await
}

fn unknown(number: i64) -> Failure {
    Failure::new(Code::TRANSACTION_TOO_OLD, format!("the write {number} of this session is no longer known"))
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    #[test]
    fn a_long_reply_does_not_stay_in_memory() {
        let reply = |length: usize| rawdoc! { "value": "x".repeat(length) };
        for (length, stays) in [(10, true), (MAX_CACHED_REPLY + 1, false)] {
            let mut state = SessionState { work: Work::Wrote(reply(length)), ..SessionState::default() };
            assert_eq!(known_reply(&mut state), Some(reply(length)));
            assert_eq!(matches!(state.work, Work::Wrote(_)), stays);
        }
        assert_eq!(known_reply(&mut SessionState::default()), None);
    }
}
