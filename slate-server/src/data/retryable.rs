use std::time::{Duration, Instant};

use bson::RawDocumentBuf;
use slate_core::{Commands, Error};
use tokio::time::sleep;

use super::{first_write_error, transaction};
use crate::{
    commands::Call,
    failure::{Code, Failure, Result},
    session::{Record, SessionId, Work},
};

/// How long a write is repeated after conflicts, as by the library.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest pause before a repetition.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The longest reply in bytes that a session keeps in memory.
const MAX_CACHED_REPLY: usize = 1 << 12;

/// Executes a write that the client repeats with the same number if it hears nothing. Its record is committed together with it, and a
/// repetition returns the recorded reply.
pub(super) async fn run(call: &Call<'_>, id: SessionId, number: i64) -> Result<RawDocumentBuf> {
    let shared = call.shared();
    let session = shared.sessions.use_session(id)?;
    let mut state = session.state.lock().await;
    if shared.settings.read_only {
        return Ok(call.commands().run_shared(&call.command.for_library()?, call.token, call.activity).await?);
    }
    Record::load(shared, id, &mut state).await?;
    transaction::check_age(id, &state, number)?;
    if state.number == Some(number) {
        if let Work::Recorded = state.work {
            state.is_loaded = false;
            Record::load(shared, id, &mut state).await?;
        }
        return match &state.work {
            Work::Wrote(reply) => Ok(reply.clone()),
            Work::None | Work::Recorded => Err(unknown(number)),
            Work::Open(_) | Work::Committed | Work::Aborted => {
                let message =
                    format!("the transaction number {number} belongs to a transaction, not to a retryable write");
                Err(Failure::new(Code(117, "ConflictingOperationInProgress"), message))
            }
        };
    }
    // A new number ends what the session had open.
    state.number = Some(number);
    state.work = Work::Aborted;
    // The fail point acts before the transaction, which another thread may execute and repeat.
    let written = match shared.fail_points.on_write(call) {
        Ok(()) => write(call, id, number).await,
        Err(failure) => Err(failure.into()),
    };
    match written {
        Ok(reply) => {
            // A long reply is read from its record if the client asks for it again.
            let is_short = reply.as_bytes().len() <= MAX_CACHED_REPLY;
            state.work = if is_short { Work::Wrote(reply.clone()) } else { Work::Recorded };
            Ok(reply)
        }
        Err(Unwritten::Recorded) => {
            state.is_loaded = false;
            Record::load(shared, id, &mut state).await?;
            transaction::check_age(id, &state, number)?;
            match &state.work {
                Work::Wrote(reply) => Ok(reply.clone()),
                _ => Err(unknown(number)),
            }
        }
        Err(Unwritten::Failed(failure)) => {
            // Nothing was written: the same number may be sent again. If that is not known, the record says it.
            state.is_loaded = false;
            state.number = None;
            state.work = Work::None;
            Err(failure)
        }
    }
}

/// Why a write has changed nothing.
enum Unwritten {
    /// A server in another process over the same store has written it, or a later one, and has recorded that.
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

/// Executes the write, and repeats it after conflicts.
async fn write(call: &Call<'_>, id: SessionId, number: i64) -> Result<RawDocumentBuf, Unwritten> {
    let (began, mut pause) = (Instant::now(), Duration::from_micros(50));
    loop {
        match attempt(call, id, number).await {
            Err(Unwritten::Failed(failure))
                if failure.is_conflict() && began.elapsed() < PATIENCE && !call.token.is_cancelled() =>
            {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            written => return written,
        }
    }
}

async fn attempt(call: &Call<'_>, id: SessionId, number: i64) -> Result<RawDocumentBuf, Unwritten> {
    let record = move |within: &Commands, reply: RawDocumentBuf| -> Result<RawDocumentBuf, Unwritten> {
        if let Some(conflict) = first_write_error(&reply).filter(Failure::is_conflict) {
            return Err(conflict.into());
        }
        for command in Record::of_write(id, number, &reply) {
            match first_write_error(&within.run(command)?) {
                Some(failure) if failure.code == Record::EXISTS => return Err(Unwritten::Recorded),
                Some(failure) => return Err(failure.into()),
                None => {}
            }
        }
        Ok(reply)
    };
    let commands = call.commands().with_cancel(call.token.clone()).with_activity(call.activity);
    commands.run_then(&call.command.for_library()?, record).await
}

fn unknown(number: i64) -> Failure {
    Failure::new(Code::TRANSACTION_TOO_OLD, format!("the write {number} of this session is no longer known"))
}
