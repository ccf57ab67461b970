use std::{mem, sync::Arc};

use bson::RawDocumentBuf;
use slate_core::{Commands, Error};

use super::{
    first_write_error,
    statements::{Recorded, Statements},
    transaction,
};
use crate::{
    commands::Call,
    failure::{Code, Failure, Result},
    session::{Record, SessionId, SessionState, Work},
};

/// Maximum length in bytes of a record that a session holds in memory.
const MAX_CACHED_RECORD: usize = 1 << 12;

/// Executes a retryable write: a client repeats it with the same number if it receives no reply. A record is committed together with the write, and
/// statements in the record are not executed again.
pub(super) async fn run(call: &Call<'_>, id: SessionId, number: i64) -> Result<RawDocumentBuf> {
    let shared = call.shared();
    let session = shared.sessions.use_session(id)?;
    let mut state = call.unless_ended(session.state.lock()).await?;
    if shared.settings.read_only {
        return Ok(call.commands().run_shared(&call.command.for_library()?, call.running()).await?);
    }
    let statements = Statements::of(call.command)?;
    loop {
        call.unless_ended(Record::load(shared, id, &mut state)).await??;
        transaction::check_age(id, &state, number)?;
        let before = recorded(call, id, &mut state, number).await?;
        let positions = match &before {
            Some(record) => match statements.look_up(record)? {
                Recorded::All(reply) => return Ok(reply),
                Recorded::AllBut(positions) => positions,
            },
            None => statements.positions(),
        };
        if before.is_none() {
            // A new number ends the session's transaction, if one is open.
            state.number = Some(number);
            state.work = Work::Aborted;
        }
        // The fail point acts before the transaction, because that may be executed by another thread, and repeatedly.
        let written = match shared.fail_points.on_write(call) {
            Ok(()) => write(call, id, number, before.as_ref(), positions).await,
            Err(failure) => Err(failure.into()),
        };
        match written {
            Ok((reply, record)) => {
                // A longer record is read from the database if the client repeats the write.
                let is_short = record.as_bytes().len() <= MAX_CACHED_RECORD;
                state.work = if is_short { Work::Wrote(record) } else { Work::Recorded };
                return Ok(reply);
            }
            Err(Unwritten::Recorded(failure)) => {
                // The record of another process decides. A duplicate key without a newer record has another cause.
                (state.is_loaded, state.number, state.work) = (false, None, Work::None);
                call.unless_ended(Record::load(shared, id, &mut state)).await??;
                let is_same = matches!(&state.work, Work::Wrote(record) if before.as_ref() == Some(record));
                if state.number < Some(number) || is_same {
                    return Err(failure);
                }
            }
            Err(Unwritten::Failed(failure)) => {
                // Nothing was written, so the same number may be sent again; if the outcome is unknown, the record decides.
                (state.is_loaded, state.number, state.work) = (false, None, Work::None);
                return Err(failure);
            }
        }
    }
}

/// Returns the record of the writes with this number; `None` if the number is new.
async fn recorded(
    call: &Call<'_>,
    id: SessionId,
    state: &mut SessionState,
    number: i64,
) -> Result<Option<RawDocumentBuf>> {
    if state.number != Some(number) {
        return Ok(None);
    }
    if let Work::Recorded = state.work {
        state.is_loaded = false;
        call.unless_ended(Record::load(call.shared(), id, state)).await??;
    }
    if let Some(record) = known_record(state) {
        return Ok(Some(record));
    }
    Err(match &state.work {
        Work::None | Work::Recorded | Work::Wrote(_) => {
            let message = format!("the write {number} of this session is no longer known");
            Failure::new(Code::TRANSACTION_TOO_OLD, message)
        }
        Work::Open(_) | Work::Committed | Work::Aborted => {
            let message = format!("the transaction number {number} belongs to a transaction, not to a retryable write");
            Failure::new(Code::INCOMPLETE_HISTORY, message)
        }
    })
}

/// Returns the record of the session's last writes, if it is in memory. A long one is then removed from memory.
fn known_record(state: &mut SessionState) -> Option<RawDocumentBuf> {
    match &state.work {
        Work::Wrote(reply) if reply.as_bytes().len() <= MAX_CACHED_RECORD => Some(reply.clone()),
        Work::Wrote(_) => match mem::replace(&mut state.work, Work::Recorded) {
            Work::Wrote(reply) => Some(reply),
            _ => None,
        },
        _ => None,
    }
}

/// Why the write was not made.
enum Unwritten {
    /// The record is not the one on which the write is based: a server in another process on the same store may have written it.
    Recorded(Failure),
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

/// Executes the statements at `positions` together with their record, and repeats both after conflicts. Returns the reply and the new record.
async fn write(
    call: &Call<'_>,
    id: SessionId,
    number: i64,
    before: Option<&RawDocumentBuf>,
    positions: Vec<usize>,
) -> Result<(RawDocumentBuf, RawDocumentBuf), Unwritten> {
    let statements = Statements::of(call.command)?;
    let document = match before {
        Some(_) => Arc::new(statements.only(&positions)?),
        None => call.command.for_library()?,
    };
    let (command, before) = (Arc::clone(call.command), before.cloned());
    let record = move |within: &Commands, reply: RawDocumentBuf| -> Result<_, Unwritten> {
        let statements = Statements::of(&command)?;
        let record = statements.record(before.as_deref(), &positions, &reply)?;
        for command in Record::of_writes(id, number, before.as_deref(), &record) {
            match first_write_error(&within.run(command)?) {
                Some(failure) if failure.code == Record::EXISTS => return Err(Unwritten::Recorded(failure)),
                Some(failure) => return Err(failure.into()),
                None => {}
            }
        }
        let reply = match before.as_ref().filter(|_| positions.len() < statements.count()) {
            Some(before) => statements.merged(before, &positions, Some(&reply))?,
            None => reply,
        };
        Ok((reply, record))
    };
    let is_conflict = |unwritten: &Unwritten| matches!(unwritten, Unwritten::Failed(failure) if failure.is_conflict());
    call.commands().run_then(&document, call.running(), record, is_conflict).await
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    #[test]
    fn a_long_record_does_not_stay_in_memory() {
        let record = |length: usize| rawdoc! { "value": "x".repeat(length) };
        for (length, stays) in [(10, true), (MAX_CACHED_RECORD + 1, false)] {
            let mut state = SessionState { work: Work::Wrote(record(length)), ..SessionState::default() };
            assert_eq!(known_record(&mut state), Some(record(length)));
            assert_eq!(matches!(state.work, Work::Wrote(_)), stays);
        }
        assert_eq!(known_record(&mut SessionState::default()), None);
    }
}
